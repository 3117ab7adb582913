//! The engine with the smallest cluster that its main loop can be watched on: what it writes is done, or refused, by the
//! test.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use kerf_model::budget::{Budget, BudgetText};
use kerf_model::change::{Change, Input};
use kerf_model::cluster::{
    BufferShape, BufferSpec, BufferStatus, CapacityBuffer, ClaimStatus, ConditionStatus, Conditions, InstanceType,
    Node, NodeClaim, NodeCondition, ObjectMeta, ObjectName, Offering, Overhead, Pod, PodPhase, PodShape, PodTemplate,
    PoolStatus, StoredPool, Texts, condition_kind as kind,
};
use kerf_model::effect::{Effect, MetaPatch, Target, WriteError};
use kerf_model::label::{self, LabelRules, annotation, capacity_type};
use kerf_model::node_pool::{ClassKind, ConsolidationPolicy, Disruption, NodePool, PoolSize};
use kerf_model::price::Price;
use kerf_model::requirement::{Requirement, Requirements};
use kerf_model::resources::{ResourceList, ResourceName};
use kerf_testkit::{class, condition, meta, node_spec};

use crate::{DisruptionNote, Engine, Output, PodVerdict, Settings};

pub struct Bed {
    pub engine: Engine,
    pub now: Timestamp,
    /// Objects that no write is done on, by name.
    pub refused: BTreeSet<String>,
    /// Claims that are not patched.
    pub refused_claims: BTreeSet<String>,
    /// How many rounds of disruption were made.
    pub looks: usize,
    version: u64,
}

pub const POOL: &str = "p";

impl Bed {
    /// One pool of nodes with four cpus, whose nodes go as soon as they are empty.
    pub fn new() -> Self {
        let lifecycle = kerf_lifecycle::Settings::for_classes(vec![class_kind()]);
        let mut settings = Settings::new(lifecycle, LabelRules::core());
        settings.capacity_buffers = true;
        let engine = Engine::new(settings);
        let now = "2026-01-05T09:00:00Z".parse().unwrap();
        let mut bed =
            Self { engine, now, refused: BTreeSet::new(), refused_claims: BTreeSet::new(), looks: 0, version: 1 };
        let pool = bed.pool();
        bed.hear([Input::Change(Change::NodePool(pool.meta.name.clone(), Some(Arc::new(pool))))]);
        bed.hear([Input::Catalogue(catalogue())]);
        bed
    }

    pub fn hear(&mut self, inputs: impl IntoIterator<Item = Input>) -> Output {
        let output = self.engine.handle(inputs, self.now);
        self.looks += output.disruption.iter().filter(|note| **note == DisruptionNote::Looked).count();
        output
    }

    pub fn see(&mut self, change: Change) -> Output {
        self.hear([Input::Change(change)])
    }

    /// The first lists are in, and what follows from them is done.
    pub fn start(&mut self) -> Vec<String> {
        let output = self.hear([Input::Synced]);
        self.carry_out(output)
    }

    /// Lets time pass as the engine wants it, and does what it asks for. Says what was asked for that is not about
    /// statuses.
    pub fn run(&mut self, seconds: i64) -> Vec<String> {
        let end = self.now + SignedDuration::from_secs(seconds);
        let mut asked = Vec::new();
        let mut output = self.hear([]);
        loop {
            let wake = output.wake;
            asked.extend(self.carry_out(output));
            let next = self.hear([]);
            let soonest = [wake, next.wake].into_iter().flatten().min().unwrap_or(end);
            output = next;
            if output.effects.iter().any(|effect| !matches!(effect, Effect::Publish(_))) {
                continue;
            }
            // Never twice at one moment: what is due now has been done.
            self.now = soonest.max(self.now + SignedDuration::from_millis(100)).min(end);
            if self.now >= end {
                asked.extend(self.carry_out(output));
                return asked;
            }
            output = self.hear([]);
        }
    }

    /// Does what was asked for, or refuses it, until nothing is asked for any more.
    pub fn carry_out(&mut self, mut output: Output) -> Vec<String> {
        let mut asked = Vec::new();
        for _ in 0..100 {
            let mut inputs = Vec::new();
            for effect in output.effects {
                asked.extend(shown(&effect));
                let is_refused = name_of(&effect).is_some_and(|name| self.refused.contains(&*name));
                let is_patch = matches!(&effect, Effect::PatchClaim(..));
                let is_refused_claim =
                    is_patch && name_of(&effect).is_some_and(|name| self.refused_claims.contains(&*name));
                if is_refused || is_refused_claim {
                    let error = WriteError::Invalid { message: "refused by a webhook".to_owned() };
                    inputs.push(Input::WriteFailed { effect: Box::new(effect), error });
                    continue;
                }
                inputs.extend(self.done(&effect).map(Input::Change));
            }
            // What is deleted is not there to be written.
            inputs.sort_by_key(|input| matches!(input, Input::Change(Change::NodeClaim(_, None))));
            if inputs.is_empty() {
                return asked;
            }
            output = self.hear(inputs);
        }
        panic!("there is no end to it: {asked:?} {:?}", output.effects);
    }

    fn done(&mut self, effect: &Effect) -> Option<Change> {
        self.version += 1;
        let version: Arc<str> = Arc::from(self.version.to_string());
        match effect {
            Effect::PatchClaim(target, patch) => {
                let mut claim = NodeClaim::clone(self.engine.snapshot().claim(&target.name.name)?);
                write_meta(&mut claim.meta, &patch.meta, version);
                if let Some(conditions) = &patch.status.conditions {
                    claim.status.conditions = conditions.clone();
                }
                claim.status.last_pod_event = patch.status.last_pod_event.or(claim.status.last_pod_event);
                Some(Change::NodeClaim(target.name.clone(), Some(Arc::new(claim))))
            }
            Effect::PatchNode(target, patch) => {
                let mut node = Node::clone(self.engine.snapshot().node(&target.name.name)?);
                write_meta(&mut node.meta, &patch.meta, version);
                if let Some(taints) = &patch.taints {
                    node.taints = taints.clone();
                }
                Some(Change::Node(target.name.clone(), Some(Arc::new(node))))
            }
            Effect::DeleteClaim(target) => Some(Change::NodeClaim(target.name.clone(), None)),
            _ => None,
        }
    }

    fn meta(&mut self, name: ObjectName) -> ObjectMeta {
        self.version += 1;
        let created = self.now - SignedDuration::from_hours(24);
        ObjectMeta { resource_version: Arc::from(self.version.to_string()), created, ..meta(name) }
    }

    fn pool(&mut self) -> StoredPool {
        let budget = Budget::parse(BudgetText { nodes: "100%", ..BudgetText::default() });
        let spec = NodePool {
            weight: 0,
            size: PoolSize::Dynamic,
            limits: ResourceList::new(),
            labels: Texts::new(),
            annotations: Texts::new(),
            node: node_spec(),
            disruption: Disruption {
                enabled: true,
                policy: ConsolidationPolicy::WhenEmpty,
                consolidate_after: "0s".parse().unwrap(),
                consolidation_enabled: true,
                drift_enabled: true,
                drift_force_evict: false,
                expiration_enabled: true,
                budgets: [budget].into_iter().collect(),
            },
            disabled: false,
            name: Arc::from(POOL),
        };
        let conditions = Conditions(vec![condition(kind::READY, self.now)]);
        let status = PoolStatus { conditions, ..PoolStatus::default() };
        StoredPool { meta: self.meta(ObjectName::of_cluster(POOL)), spec: Ok(spec), class: class(), hash: None, status }
    }

    /// A claim and its node, ready and empty since yesterday.
    pub fn node(&mut self, name: &str) {
        self.node_with(name, |_, _| {});
    }

    pub fn node_with(&mut self, name: &str, edit: impl FnOnce(&mut NodeClaim, &mut Node)) {
        let mut meta = self.meta(ObjectName::of_cluster(name));
        for (key, value) in [
            (label::NODEPOOL, POOL),
            (label::INSTANCE_TYPE, "four"),
            (label::ZONE, "a"),
            (label::CAPACITY_TYPE, capacity_type::ON_DEMAND),
            (label::HOSTNAME, name),
            (label::REGISTERED, "true"),
            (label::INITIALIZED, "true"),
        ] {
            meta.labels.insert(Arc::from(key), Arc::from(value));
        }
        let id: Arc<str> = Arc::from(format!("i-{name}"));
        let long_ago = meta.created;
        let kinds = [kind::LAUNCHED, kind::REGISTERED, kind::INITIALIZED, kind::CONSOLIDATABLE];
        let mut claim = NodeClaim {
            meta: meta.clone(),
            node: node_spec(),
            requests: ResourceList::new(),
            status: ClaimStatus {
                provider_id: Some(Arc::clone(&id)),
                node_name: Some(Arc::from(name)),
                capacity: four_cpus(),
                allocatable: four_cpus(),
                conditions: Conditions(kinds.iter().map(|kind| condition(kind, long_ago)).collect()),
                ..ClaimStatus::default()
            },
        };
        let ready = NodeCondition {
            kind: Arc::from("Ready"),
            status: ConditionStatus::True,
            reason: Arc::from(""),
            since: long_ago,
        };
        let mut node = Node {
            meta,
            provider_id: Some(id),
            capacity: four_cpus(),
            allocatable: four_cpus(),
            conditions: vec![ready],
            ..kerf_testkit::node(name)
        };
        edit(&mut claim, &mut node);
        let change = Change::NodeClaim(claim.meta.name.clone(), Some(Arc::new(claim)));
        let other = Change::Node(node.meta.name.clone(), Some(Arc::new(node)));
        let output = self.hear([Input::Change(change), Input::Change(other)]);
        self.carry_out(output);
    }

    /// A claim that was made and has no instance yet, or one with so many cpus now.
    pub fn coming(&mut self, name: &str, launched: Option<&str>) {
        let now = self.now;
        let mut meta = match self.engine.snapshot().claim(name) {
            Some(known) => known.meta.clone(),
            None => ObjectMeta { created: now, ..self.meta(ObjectName::of_cluster(name)) },
        };
        self.version += 1;
        meta.resource_version = Arc::from(self.version.to_string());
        meta.labels.insert(Arc::from(label::NODEPOOL), Arc::from(POOL));
        let mut claim =
            NodeClaim { meta, node: node_spec(), requests: ResourceList::new(), status: ClaimStatus::default() };
        if let Some(cpus) = launched {
            claim.status.provider_id = Some(Arc::from(format!("i-{name}")));
            claim.status.conditions = Conditions(vec![condition(kind::LAUNCHED, now)]);
            claim.status.capacity = list(&[("cpu", cpus), ("memory", "16Gi"), ("pods", "110")]);
            claim.status.allocatable = claim.status.capacity.clone();
        }
        let output = self.see(Change::NodeClaim(claim.meta.name.clone(), Some(Arc::new(claim))));
        self.carry_out(output);
    }

    /// A pod of one cpu; without a node it waits for one.
    pub fn pod(&mut self, name: &str, node: Option<&str>, edit: impl FnOnce(&mut Pod)) -> Output {
        let name = ObjectName::new("default", name);
        let mut pod = Pod {
            meta: self.meta(name.clone()),
            node_name: node.map(Arc::from),
            phase: if node.is_some() { PodPhase::Running } else { PodPhase::Pending },
            requests: list(&[("cpu", "1"), ("pods", "1")]),
            unschedulable: node.is_none(),
            ..kerf_testkit::pod(&name.name)
        };
        edit(&mut pod);
        self.see(Change::Pod(name, Some(Arc::new(pod))))
    }

    /// Whether the pod has an answer, and which.
    pub fn has_place(&self, pod: &str) -> bool {
        match self.engine.pod_verdicts().get(&ObjectName::new("default", pod)) {
            Some(PodVerdict::Fits(_) | PodVerdict::Planned { .. }) => true,
            Some(PodVerdict::NoPlace(why)) => panic!("{why}"),
            None => false,
        }
    }

    pub fn target(&self, claim: &str) -> Target {
        Target::from(&self.engine.snapshot().claim(claim).unwrap().meta)
    }

    /// Room for one pod of one cpu is to be kept.
    pub fn buffer(&mut self) {
        let name = ObjectName::new("default", "room");
        let (labels, requests) = (Texts::new(), list(&[("cpu", "1"), ("pods", "1")]));
        let pod = PodShape { labels, requests, constraints: Arc::default(), uses_resource_claims: false };
        let template = PodTemplate { meta: self.meta(name.clone()), pod };
        let spec = BufferSpec {
            strategy: Arc::from("buffer.x-k8s.io/active-capacity"),
            shape: BufferShape::Template(Arc::clone(&name.name)),
            replicas: Some(1),
            percentage: None,
            limits: ResourceList::new(),
        };
        let buffer = CapacityBuffer { meta: self.meta(name.clone()), spec, status: BufferStatus::default() };
        self.see(Change::PodTemplate(name.clone(), Some(Arc::new(template))));
        self.see(Change::CapacityBuffer(name, Some(Arc::new(buffer))));
    }

    pub fn is_tainted(&self, node: &str) -> bool {
        self.engine.snapshot().node(node).is_some_and(|node| !node.taints.is_empty())
    }

    pub fn verdict(&self, claim: &str) -> &'static str {
        self.engine.node_verdicts()[claim].label()
    }
}

/// What matters of it: `delete a`, `create p-1234`, `taint a`.
fn shown(effect: &Effect) -> Option<String> {
    match effect {
        Effect::DeleteClaim(target) => Some(format!("delete {target}")),
        Effect::CreateClaim(claim) => Some(format!("create {}", claim.name)),
        Effect::PatchNode(target, patch) => patch.taints.as_ref().map(|taints| match taints.is_empty() {
            true => format!("untaint {target}"),
            false => format!("taint {target}"),
        }),
        _ => None,
    }
}

fn name_of(effect: &Effect) -> Option<Arc<str>> {
    match effect {
        Effect::PatchClaim(target, _) | Effect::PatchNode(target, _) | Effect::DeleteClaim(target) => {
            Some(target.name.name.clone())
        }
        _ => None,
    }
}

fn write_meta(meta: &mut ObjectMeta, patch: &MetaPatch, version: Arc<str>) {
    meta.resource_version = version;
    for (key, value) in &patch.labels {
        match value {
            Some(value) => drop(meta.labels.insert(key.clone(), value.clone())),
            None => drop(meta.labels.remove(key)),
        }
    }
    for (key, value) in &patch.annotations {
        match value {
            Some(value) => drop(meta.annotations.insert(key.clone(), value.clone())),
            None => drop(meta.annotations.remove(key)),
        }
    }
    if let Some(finalizers) = &patch.finalizers {
        meta.finalizers.clone_from(finalizers);
    }
    if let Some(owners) = &patch.owners {
        meta.owners.clone_from(owners);
    }
}

/// The whole of its marks, as a command that was started then leaves them.
pub fn mark(claim: &mut NodeClaim, node: &mut Node, started: Timestamp) {
    write_record(claim, started);
    claim.status.conditions.0.push(condition(kind::DISRUPTION_REASON, started));
    node.taints.push(kerf_model::taint::Taint::disrupted());
}

/// The first of the three writes.
pub fn write_record(claim: &mut NodeClaim, started: Timestamp) {
    let record = format!("v1 00ff emptiness delete Empty {started:.0}");
    claim.meta.annotations.insert(Arc::from(annotation::COMMAND), Arc::from(record));
}

fn catalogue() -> BTreeMap<Arc<str>, Arc<[InstanceType]>> {
    let rules = LabelRules::core();
    let of = [(label::ZONE, "a"), (label::CAPACITY_TYPE, capacity_type::ON_DEMAND)];
    let mut requirements = Requirements::from_labels(of, &rules);
    requirements.add(Requirement::one_of(label::INSTANCE_TYPE, ["four"]), &rules);
    let offering = Offering {
        requirements: Requirements::from_labels(of, &rules),
        price: Price::from_micros(100_000),
        available: true,
        reservation_capacity: None,
        overrides: None,
    };
    let four = InstanceType {
        name: Arc::from("four"),
        requirements,
        offerings: vec![offering],
        capacity: four_cpus(),
        overhead: Overhead::default(),
        volume_limits: BTreeMap::new(),
    };
    BTreeMap::from([(Arc::from(POOL), Arc::from([four]))])
}

fn four_cpus() -> ResourceList {
    list(&[("cpu", "4"), ("memory", "16Gi"), ("pods", "110")])
}

fn list(amounts: &[(&str, &str)]) -> ResourceList {
    amounts.iter().map(|(name, amount)| (ResourceName::from(*name), amount.parse().unwrap())).collect()
}

fn class_kind() -> ClassKind {
    ClassKind { group: Arc::from("g"), kind: Arc::from("K") }
}
