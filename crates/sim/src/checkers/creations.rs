//! Claims that the autoscaler makes: none in a pool that is switched off, and no more of a static pool than it may have.

use kerf_model::effect::Effect;
use kerf_model::label;

use super::{Broken, pool_of};
use crate::autoscaler::Act;
use crate::store::{Kind, Object, Store};

pub(super) fn after(store: &Store, acts: &[Act]) -> Vec<Broken> {
    let mut broken = Vec::new();
    for (at, act) in acts.iter().enumerate() {
        let Effect::CreateClaim(new) = &act.effect else { continue };
        let Some(pool_name) = new.labels.get(label::NODEPOOL) else { continue };
        let heard = |kind: Kind| store.as_of(kind, act.heard(kind)).unwrap_or_default();
        let pools = heard(Kind::NodePool);
        let Some(pool) = pools.iter().find(|pool| pool.name.name == *pool_name) else { continue };
        if pool.at(&["spec", "disabled"]) == Some(&serde_json::Value::Bool(true)) {
            let (pool, claim) = (pool_name.to_string(), new.name.to_string());
            broken.push(Broken::DisabledPoolGrew { pool, claim });
        }
        if pool.at(&["spec", "replicas"]).is_none() {
            continue;
        }
        let limit = pool.text(&["spec", "limits", "nodes"]).and_then(|text| text.parse::<usize>().ok());
        let Some(limit) = limit else { continue };
        let claims = heard(Kind::NodeClaim);
        let is_of_pool = |claim: &&Object| pool_of(claim) == Some(&**pool_name);
        let known = claims.iter().filter(is_of_pool).filter(|claim| claim.name.name != new.name).count();
        // Those that were made together, up to this one.
        let made = acts[..=at].iter().filter(|other| {
            let Effect::CreateClaim(other) = &other.effect else { return false };
            other.labels.get(label::NODEPOOL) == Some(pool_name)
                && !claims.iter().any(|claim| claim.name.name == other.name)
        });
        let nodes = known + made.count();
        if nodes > limit {
            broken.push(Broken::StaticPoolTooLarge { pool: pool_name.to_string(), nodes, limit });
        }
    }
    broken
}
