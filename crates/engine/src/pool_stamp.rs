//! The hash of a pool, as it goes on the claims made from it.

use std::sync::Arc;

use kerf_lifecycle::pool::stamp;
use kerf_model::cluster::Texts;
use kerf_model::snapshot::ClusterSnapshot;

/// Of the pool as it was scheduled from, whatever becomes of the pool meanwhile.
pub fn pool_stamp(pool: &str, snapshot: &ClusterSnapshot) -> Texts {
    let hash = snapshot.pool(pool).and_then(|pool| pool.hash.as_ref());
    hash.into_iter().flat_map(stamp).map(|(key, value)| (Arc::from(key), value.clone())).collect()
}
