//! A new claim, as a pool's template says.

use std::sync::Arc;

use kerf_model::cluster::StoredPool;
use kerf_model::effect::NewClaim;
use kerf_model::label::LabelRules;
use kerf_model::node_pool::NodePool;
use kerf_model::resources::ResourceList;

use super::stamp;
use crate::claim::reparenting::owner_of;

/// The template's texts, the labels that tell pool and class, the pool's hash, and the pool as its owner. Narrower
/// requirements and what is to run on it are the caller's to fill in.
pub fn claim_from(pool: &StoredPool, spec: &NodePool, name: Arc<str>, rules: &LabelRules) -> NewClaim {
    let mut annotations = spec.annotations.clone();
    annotations.extend(pool.hash.iter().flat_map(stamp).map(|(key, value)| (Arc::from(key), value.clone())));
    NewClaim {
        name,
        labels: spec.claim_labels(&spec.node.requirements, rules),
        annotations,
        owner: Some(owner_of(&pool.meta.name.name, &pool.meta.uid)),
        node: spec.node.clone(),
        requests: ResourceList::new(),
        replaces_for: None,
    }
}
