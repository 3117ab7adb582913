//! Pools with their identity and status.

use std::sync::Arc;

use kerf_model::cluster::{PoolHash, PoolStatus, StoredPool};
use kerf_model::label::LabelRules;
use kerf_model::node_pool::NodeClassRef;

use crate::hash::node_pool::node_pool_seal;
use crate::node_pool::{NodePool, NodePoolStatus};

use super::metadata::{conditions, object_meta};
use super::{Collector, Parsed, Problem, node_pool};

/// A pool that cannot be used is stored as such: its nodes still count, and its status tells why.
pub fn stored_pool(wire: &NodePool, rules: &LabelRules) -> Parsed<StoredPool> {
    let mut problems = Collector::default();
    let class = &wire.spec.template.spec.node_class_ref;
    let class = NodeClassRef {
        group: class.group.as_str().into(),
        kind: class.kind.as_str().into(),
        name: class.name.as_str().into(),
    };
    let status = wire.status.as_ref().map(|wire| status(wire, &mut problems)).unwrap_or_default();
    let (spec, mut warnings) = match node_pool(wire, rules) {
        Ok(parsed) => (Ok(parsed.value), parsed.warnings),
        Err(error) => {
            let texts: Vec<String> = error.problems.iter().map(Problem::to_string).collect();
            (Err(Arc::from(texts.join("; "))), error.problems)
        }
    };
    // We wrote the status and will write it anew: what cannot be read of it is worth a word, no more.
    warnings.extend(problems.into_problems());
    Parsed { value: StoredPool { meta: object_meta(&wire.metadata), spec, class, hash: hash(wire), status }, warnings }
}

/// `None` if a field that is hashed cannot be read; `spec` tells which.
fn hash(wire: &NodePool) -> Option<PoolHash> {
    let seal = node_pool_seal(&serde_json::to_value(wire).ok()?).ok()?;
    Some(PoolHash {
        hash: Arc::from(seal.hash.to_string()),
        version: Arc::from(seal.version),
        fields: Some(Arc::from(seal.fields.to_string())),
    })
}

fn status(wire: &NodePoolStatus, problems: &mut Collector) -> PoolStatus {
    PoolStatus {
        resources: problems.resources("status.resources", wire.resources.as_ref()),
        nodes: wire.nodes.unwrap_or(0),
        class_observed_generation: wire.node_class_observed_generation,
        conditions: conditions(wire.conditions.as_deref()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn stored(requirements: serde_json::Value) -> Parsed<StoredPool> {
        let wire = json!({
            "apiVersion": "karpenter.sh/v1", "kind": "NodePool",
            "metadata": {"name": "general", "uid": "u"},
            "spec": {"template": {"spec": {
                "nodeClassRef": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"},
                "requirements": requirements,
            }}},
            "status": {"nodes": 3, "resources": {"cpu": "12", "memory": "much"}},
        });
        stored_pool(&serde_json::from_value(wire).unwrap(), &LabelRules::core())
    }

    #[test]
    fn a_usable_pool_brings_its_spec_and_what_is_readable_of_its_status() {
        let Parsed { value: pool, warnings } = stored(json!([]));
        assert_eq!(&*pool.spec.unwrap().name, "general");
        assert_eq!((pool.status.nodes, pool.status.resources.to_string().as_str()), (3, "cpu=12"));
        assert_eq!(warnings[0].field, "status.resources[memory]");
        let hash = pool.hash.unwrap();
        assert_eq!((&*hash.version, hash.fields.is_some()), ("v3", true));
    }

    #[test]
    fn an_unusable_pool_keeps_identity_class_and_reason() {
        let pool = stored(json!([{"key": "karpenter.sh/x", "operator": "Exists"}])).value;
        let reason = pool.spec.unwrap_err();
        assert!(reason.starts_with("spec.template.spec.requirements[0].key: "), "{reason}");
        assert_eq!((&*pool.meta.uid, &*pool.class.name, pool.status.nodes), ("u", "default", 3));
    }
}
