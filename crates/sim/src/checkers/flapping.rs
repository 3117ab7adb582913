//! Pods that are moved again and again though nothing else happens: each move is paid for with a restart.

use std::collections::BTreeMap;

use kerf_model::cluster::ObjectName;
use kerf_model::effect::Effect;

use super::{Broken, choices};
use crate::autoscaler::Act;
use crate::store::{Kind, Object, Store};

/// A pod may be moved when its node is emptied, once more when where it landed is, and once more because the scheduler put
/// it elsewhere than was foreseen. More often than that, on average, is to and fro.
const MOVES_PER_POD: usize = 3;

/// By workload: how many of its pods were moved to save money.
#[derive(Default)]
pub(super) struct Flapping {
    moved: BTreeMap<String, usize>,
}

impl Flapping {
    pub fn after(&mut self, store: &Store, acts: &[Act]) -> Vec<Broken> {
        let evicted = acts.iter().filter_map(|act| match &act.effect {
            Effect::EvictPod(pod, _) => store.get(Kind::Pod, &pod.name).ok().filter(|known| *known.uid() == *pod.uid),
            _ => None,
        });
        evicted.filter_map(|pod| self.moved(pod, store)).collect()
    }

    fn moved(&mut self, pod: &Object, store: &Store) -> Option<Broken> {
        let node = pod.text(&["spec", "nodeName"])?;
        let mut claims = store.all(Kind::NodeClaim);
        let claim = claims.find(|claim| claim.text(&["status", "nodeName"]) == Some(node))?;
        if !matches!(choices::chosen_for(claim)?, "Empty" | "Underutilized") {
            return None;
        }
        let app = pod.text(&["metadata", "labels", "app"])?;
        let pods = store.in_namespace(Kind::Pod, &pod.name.namespace);
        let pods = pods.filter(|other| other.text(&["metadata", "labels", "app"]) == Some(app)).count();
        let workload = ObjectName::new(pod.name.namespace.clone(), app).to_string();
        self.count(workload, pods)
    }

    fn count(&mut self, workload: String, pods: usize) -> Option<Broken> {
        let moved = self.moved.entry(workload.clone()).or_default();
        *moved += 1;
        let is_restless = *moved > MOVES_PER_POD * pods.max(1);
        is_restless.then_some(Broken::Flapping { workload, moved: *moved, pods })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_workload_whose_pods_are_moved_more_often_than_needed_is_reported() {
        let mut flapping = Flapping::default();
        let moves = |flapping: &mut Flapping, times: usize| {
            (0..times).filter_map(|_| flapping.count("default/web".into(), 2)).last()
        };
        assert_eq!(moves(&mut flapping, 6), None);
        let broken = Broken::Flapping { workload: "default/web".into(), moved: 7, pods: 2 };
        assert_eq!(moves(&mut flapping, 1), Some(broken));
    }
}
