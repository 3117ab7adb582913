//! A whole life in a tiny cluster that does what the steps want: does it settle, and does a crash between any two effects
//! change the end? (Sheet 04 §8.5; the simulator does this at scale.)

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::SignedDuration;
use kerf_lifecycle::Steps;
use kerf_model::change::{Change, Input};
use kerf_model::cloud::{Launched, TerminateAnswer};
use kerf_model::cluster::{Node, NodeClaim, ObjectMeta, ObjectName, condition_kind as kind};
use kerf_model::effect::{Effect, MetaPatch, Target, WriteError};

use crate::world::World;

/// Where the controller dies: after this many effects, with the rest of the step undone.
type Crash = Option<usize>;

struct Cluster {
    world: World,
    /// By claim. A launch for the same claim finds the same machine.
    machines: BTreeMap<Arc<str>, Arc<str>>,
    launches: usize,
    evictions: BTreeSet<Arc<str>>,
    /// How often the budget still refuses.
    refusals: usize,
    effects: usize,
    crash: Crash,
}

impl Cluster {
    fn new(text: &str, crash: Crash) -> Self {
        Self {
            world: World::new(text),
            machines: BTreeMap::new(),
            launches: 0,
            evictions: BTreeSet::new(),
            refusals: 3,
            effects: 0,
            crash,
        }
    }

    /// Second by second, until a minute passes in which nobody wants anything.
    fn settle(&mut self) {
        let (mut quiet, mut passed) = (0, 0);
        while quiet < 60 {
            quiet = if self.round() { 0 } else { quiet + 1 };
            self.world.now += SignedDuration::from_secs(1);
            self.kubelets();
            passed += 1;
            assert!(passed < 1_800, "it does not settle");
        }
    }

    /// Whether anything was done.
    fn round(&mut self) -> bool {
        let claims: Vec<_> = self.world.snapshot.claims().map(|claim| claim.name().clone()).collect();
        let nodes: Vec<_> = self.world.snapshot.nodes().map(|node| node.name().clone()).collect();
        let mut busy = false;
        for name in claims {
            if self.world.snapshot.claim(&name).is_some() {
                let steps = self.world.claim_steps(&name);
                busy |= self.execute(steps);
            }
        }
        for name in nodes {
            if self.world.snapshot.node(&name).is_some() {
                let steps = self.world.node_steps(&name);
                busy |= self.execute(steps);
            }
        }
        busy
    }

    fn execute(&mut self, steps: Steps) -> bool {
        let effects: Vec<_> =
            steps.effects.into_iter().filter(|effect| !matches!(effect, Effect::Publish(_))).collect();
        let busy = !effects.is_empty();
        for effect in effects {
            if self.crash == Some(self.effects) {
                self.crash = None;
                self.world.restart();
                return true;
            }
            self.effects += 1;
            self.perform(effect);
        }
        busy
    }

    fn perform(&mut self, effect: Effect) {
        match effect {
            Effect::PatchClaim(target, patch) => {
                let Some(mut claim) = self.world.snapshot.claim(&target.name.name).map(|claim| (**claim).clone())
                else {
                    return;
                };
                if !apply_meta(&mut claim.meta, patch.meta) {
                    return;
                }
                let status = patch.status;
                claim.status.provider_id = status.provider_id.or(claim.status.provider_id);
                claim.status.node_name = status.node_name.or(claim.status.node_name);
                claim.status.last_pod_event = status.last_pod_event.or(claim.status.last_pod_event);
                claim.status.capacity = status.capacity.unwrap_or(claim.status.capacity);
                claim.status.conditions = status.conditions.unwrap_or(claim.status.conditions);
                self.store_claim(claim);
            }
            Effect::PatchNode(target, patch) => {
                let Some(mut node) = self.world.snapshot.node(&target.name.name).map(|node| (**node).clone()) else {
                    return;
                };
                if apply_meta(&mut node.meta, patch.meta) {
                    node.taints = patch.taints.unwrap_or(node.taints);
                    self.store_node(node);
                }
            }
            Effect::DeleteClaim(target) => self.delete_claim(&target.name.name),
            Effect::DeleteNode(target) => self.delete_node(&target.name.name),
            Effect::EvictPod(target, why) if self.refusals > 0 => {
                self.refusals -= 1;
                let error = WriteError::BudgetRefused { message: "not now".into() };
                self.world.hear(Input::WriteFailed { effect: Box::new(Effect::EvictPod(target, why)), error });
            }
            Effect::EvictPod(target, _) => {
                let pod = self.world.snapshot.pod(&target.name).map(|pod| (**pod).clone());
                if let Some(mut pod) = pod {
                    assert!(self.evictions.insert(pod.meta.uid.clone()), "evicted twice");
                    pod.meta.deleting = Some(self.world.now + SignedDuration::from_secs(5));
                    self.world.hear(Input::Change(Change::Pod(target.name, Some(Arc::new(pod)))));
                }
            }
            Effect::DeletePod(target, grace, _) => {
                let mut pod = (**self.world.snapshot.pod(&target.name).unwrap()).clone();
                assert!(self.evictions.insert(pod.meta.uid.clone()), "deleted twice");
                pod.meta.deleting = Some(self.world.now + grace);
                self.world.hear(Input::Change(Change::Pod(target.name, Some(Arc::new(pod)))));
            }
            Effect::Launch { claim } => self.launch(claim),
            Effect::Terminate { claim, .. } => {
                let known = self.machines.remove(&claim.name.name).is_some();
                let answer = if known { TerminateAnswer::Accepted } else { TerminateAnswer::Gone };
                self.world.hear(Input::Terminated { claim, answer });
            }
            other => panic!("nobody should want {other:?}"),
        }
    }

    fn launch(&mut self, claim: Target) {
        let id: Arc<str> = Arc::from(format!("machine-of-{}", claim.uid));
        if self.machines.insert(claim.name.name.clone(), id.clone()).is_none() {
            self.launches += 1;
        }
        let launched = Launched {
            provider_id: id,
            image_id: None,
            capacity: Default::default(),
            allocatable: Default::default(),
            labels: Default::default(),
            annotations: Default::default(),
        };
        self.world.hear(Input::Launched { claim, answer: Ok(launched) });
    }

    /// Machines join, and pods end when their time is over.
    fn kubelets(&mut self) {
        for (claim, id) in self.machines.clone() {
            let name = format!("node-{claim}");
            if self.world.snapshot.node(&name).is_none()
                && self.world.snapshot.claim(&claim).is_some_and(|claim| !claim.meta.is_deleting())
            {
                self.world.apply(&format!("node {name} bare id={id} taint=karpenter.sh/unregistered:NoExecute"));
            }
        }
        let now = self.world.now;
        let over = self.world.snapshot.pods().filter(|pod| pod.meta.deleting.is_some_and(|end| end <= now));
        for name in over.map(|pod| pod.meta.name.clone()).collect::<Vec<_>>() {
            self.world.hear(Input::Change(Change::Pod(name, None)));
        }
    }

    fn delete_claim(&mut self, name: &str) {
        let claim = self.world.snapshot.claim(name).map(|claim| (**claim).clone());
        if let Some(mut claim) = claim.filter(|claim| !claim.meta.is_deleting()) {
            claim.meta.deleting = Some(self.world.now);
            claim.meta.generation += 1;
            self.store_claim(claim);
        }
    }

    fn delete_node(&mut self, name: &str) {
        let node = self.world.snapshot.node(name).map(|node| (**node).clone());
        if let Some(mut node) = node.filter(|node| !node.meta.is_deleting()) {
            node.meta.deleting = Some(self.world.now);
            self.store_node(node);
        }
    }

    fn store_claim(&mut self, mut claim: NodeClaim) {
        touch(&mut claim.meta);
        let name = claim.meta.name.clone();
        let kept = !(claim.meta.is_deleting() && claim.meta.finalizers.is_empty());
        self.world.hear(Input::Change(Change::NodeClaim(name, kept.then(|| Arc::new(claim)))));
    }

    fn store_node(&mut self, mut node: Node) {
        touch(&mut node.meta);
        let name = node.meta.name.clone();
        let kept = !(node.meta.is_deleting() && node.meta.finalizers.is_empty());
        self.world.hear(Input::Change(Change::Node(name, kept.then(|| Arc::new(node)))));
    }
}

/// `false` if the object has changed since.
fn apply_meta(meta: &mut ObjectMeta, patch: MetaPatch) -> bool {
    if patch.resource_version.is_some_and(|version| version != meta.resource_version) {
        return false;
    }
    for (texts, changes) in [(&mut meta.labels, patch.labels), (&mut meta.annotations, patch.annotations)] {
        for (key, value) in changes {
            match value {
                Some(value) => drop(texts.insert(key, value)),
                None => drop(texts.remove(&key)),
            }
        }
    }
    meta.finalizers = patch.finalizers.unwrap_or(meta.finalizers.clone());
    meta.owners = patch.owners.unwrap_or(meta.owners.clone());
    true
}

fn touch(meta: &mut ObjectMeta) {
    let version: u64 = meta.resource_version.parse().unwrap();
    meta.resource_version = Arc::from((version + 1).to_string());
}

/// How the life ends.
#[derive(Debug, Clone, Copy)]
enum End {
    NodeDeleted,
    ClaimDeleted,
    /// A pod that nothing may disrupt is on the node: only the deadline gets it off.
    Deadline,
    Expired,
}

/// From a claim to a node with pods, and back to nothing. Returns how many effects that took.
fn live(end: End, crash: Crash) -> usize {
    let (spec, protection) = match end {
        End::NodeDeleted | End::ClaimDeleted => ("", ""),
        End::Deadline => ("tgp=2m", "protect=true"),
        End::Expired => ("expire=10m tgp=2m", ""),
    };
    let mut cluster = Cluster::new(&format!("claim a bare created=12:00 startup=cni:NoExecute {spec}"), crash);
    cluster.settle_except_startup_taint();
    let claim = cluster.world.snapshot.claim("a").unwrap();
    for condition in [kind::LAUNCHED, kind::REGISTERED, kind::INITIALIZED, kind::READY] {
        assert!(claim.status.conditions.is_true(condition), "{condition}, {end:?} with a crash at {crash:?}");
    }
    cluster.world.apply(&format!("pod v node=node-a {protection}\npod w node=node-a daemon"));
    cluster.settle();
    match end {
        End::NodeDeleted => cluster.delete_node("node-a"),
        End::ClaimDeleted | End::Deadline => cluster.delete_claim("a"),
        End::Expired => cluster.world.now += SignedDuration::from_mins(10),
    }
    let until = cluster.world.now + SignedDuration::from_mins(4);
    while cluster.world.now < until {
        cluster.settle();
    }
    let left =
        (cluster.world.snapshot.claims().count(), cluster.world.snapshot.nodes().count(), cluster.machines.len());
    assert_eq!(left, (0, 0, 0), "claims, nodes and machines left, {end:?} with a crash at {crash:?}");
    assert_eq!((cluster.launches, cluster.evictions.len()), (1, 2), "{end:?} with a crash at {crash:?}");
    assert!(cluster.world.snapshot.pod(&ObjectName::new("default", "v")).is_none());
    cluster.effects
}

impl Cluster {
    /// Its owner removes the startup taint after a while, and it stays away.
    fn settle_except_startup_taint(&mut self) {
        self.settle();
        let mut node = (**self.world.snapshot.node("node-a").unwrap()).clone();
        assert_eq!(node.taints.len(), 1, "the startup taint is all that is left");
        node.taints.clear();
        self.store_node(node);
        self.settle();
        assert!(self.world.snapshot.node("node-a").unwrap().taints.is_empty());
    }
}

#[test]
fn a_life_settles_at_every_stage() {
    assert!(live(End::NodeDeleted, None) > 15);
}

#[test]
fn a_crash_between_any_two_effects_changes_nothing_about_the_end() {
    for end in [End::NodeDeleted, End::ClaimDeleted, End::Deadline, End::Expired] {
        for cut in 0..live(end, None) {
            live(end, Some(cut));
        }
    }
}
