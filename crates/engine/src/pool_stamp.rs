//! The hash of a pool, as it goes on the claims made from it.

use std::sync::Arc;

use kerf_model::cluster::Texts;
use kerf_model::label::annotation;
use kerf_model::snapshot::ClusterSnapshot;

/// Of the pool as it was scheduled from, whatever becomes of the pool meanwhile.
pub fn pool_stamp(pool: &str, snapshot: &ClusterSnapshot) -> Texts {
    let mut annotations = Texts::new();
    if let Some(hash) = snapshot.pool(pool).and_then(|pool| pool.hash.as_ref()) {
        annotations.insert(Arc::from(annotation::NODEPOOL_HASH), hash.hash.clone());
        annotations.insert(Arc::from(annotation::NODEPOOL_HASH_VERSION), hash.version.clone());
        if let Some(fields) = &hash.fields {
            annotations.insert(Arc::from(annotation::NODEPOOL_FIELD_HASHES), fields.clone());
        }
    }
    annotations
}
