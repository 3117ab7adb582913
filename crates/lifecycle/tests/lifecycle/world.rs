//! A small cluster from text, and what the steps see of it.
//!
//! One object per line; the same line again replaces the object, `gone KIND NAME` removes it. Claims and nodes are ours,
//! with finalizer and class label, unless the line says otherwise.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use kerf_lifecycle::claim::PoolRoom;
use kerf_lifecycle::claim::drift::in_place::PodKeys;
use kerf_lifecycle::conditions::ConditionEditor;
use kerf_lifecycle::{ClassKind, Marks, Memory, Settings, Steps, View, claim, garbage, node, pool, window};
use kerf_model::budget::BudgetList;
use kerf_model::change::{Change, Input};
use kerf_model::cloud::{CloudDrift, HookReport, Instance, LaunchError, Launched, TerminateAnswer};
use kerf_model::cluster::{
    ClaimStatus, ClassReadiness, Condition, ConditionStatus, Conditions, DoNotDisrupt, InstanceType, Node, NodeClaim,
    NodeClass, NodeCondition, ObjectMeta, ObjectName, Offering, Overhead, Owner, PersistentVolumeClaim, Pod,
    PodAffinityTerm, PodConstraints, PodPhase, PodVolume, PoolHash, PoolStatus, PreferredNodeTerm, SpreadConstraint,
    StoredPool, StoredWindow, VolumeAttachment, WhenUnsatisfiable, WindowStatus,
};
use kerf_model::cron::{Dialect, Schedule};
use kerf_model::duration::NillableDuration;
use kerf_model::effect::{Effect, Target, WriteError};
use kerf_model::label::{self, LabelRules};
use kerf_model::maintenance::{Action, MaintenanceWindow};
use kerf_model::node_pool::{ConsolidationPolicy, Disruption, NodeClassRef, NodePool, NodeSpec, PoolSize};
use kerf_model::price::Price;
use kerf_model::requirement::{Expression, Operator, Requirements};
use kerf_model::selector::Selector;
use kerf_model::snapshot::ClusterSnapshot;
use kerf_model::taint::{Taint, ToleratedValue, Toleration};
use kerf_model::window::Window;

use crate::render;
use crate::words::{Words, time};

const CLASS_LABEL: &str = "karpenter.kwok.sh/kwoknodeclass";

pub struct World {
    pub snapshot: ClusterSnapshot,
    pub memory: Memory,
    pub settings: Settings,
    pub types: BTreeMap<Arc<str>, Arc<[InstanceType]>>,
    pub rules: LabelRules,
    pub marks: Marks,
    pub pod_keys: PodKeys,
    pub room: PoolRoom,
    pub now: Timestamp,
}

impl World {
    pub fn new(text: &str) -> Self {
        let kwok = ClassKind { group: Arc::from("karpenter.kwok.sh"), kind: Arc::from("KWOKNodeClass") };
        let mut world = Self {
            snapshot: ClusterSnapshot::default(),
            memory: Memory::default(),
            settings: Settings { static_capacity: true, ..Settings::for_classes(vec![kwok]) },
            types: BTreeMap::new(),
            rules: LabelRules::core(),
            marks: Marks::default(),
            pod_keys: PodKeys::default(),
            room: PoolRoom::default(),
            now: time("12:00"),
        };
        world.apply(text);
        world
    }

    pub fn apply(&mut self, text: &str) -> &mut Self {
        for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let words: Vec<_> = line.split_whitespace().collect();
            match words[..] {
                ["now", at] => self.now = time(at),
                ["type", name, ref rest @ ..] => self.offer(name, &Words(rest.to_vec())),
                ["gone", kind, name] => self.hear(Input::Change(removal(kind, name))),
                [kind, name, ref rest @ ..] => self.hear(Input::Change(object(kind, name, &Words(rest.to_vec())))),
                _ => panic!("cannot read {line:?}"),
            }
        }
        self
    }

    /// `type NAME pool=POOL offer=ZONE/CAPACITY-TYPE …`; one type per pool is enough here.
    fn offer(&mut self, name: &str, words: &Words<'_>) {
        let offering = |text: &str| {
            let (zone, capacity_type) = text.split_once('/').unwrap();
            let labels = [(label::ZONE, zone), (label::CAPACITY_TYPE, capacity_type)];
            let requirements = Requirements::from_labels(labels, &self.rules);
            Offering { requirements, price: Price::ZERO, available: false, reservation_capacity: None, overrides: None }
        };
        let offered = InstanceType {
            name: Arc::from(name),
            requirements: Requirements::new(),
            offerings: words.all("offer").map(offering).collect(),
            capacity: words.resources("capacity"),
            overhead: Overhead::default(),
            volume_limits: Default::default(),
        };
        self.types.insert(words.text("pool").unwrap(), Arc::from([offered]));
        self.room.renew();
    }

    /// Types that are not offered anywhere, with their capacity.
    pub fn offer_all(&mut self, pool: &str, types: impl IntoIterator<Item = (String, String)>) {
        let offered = |(name, capacity): (String, String)| InstanceType {
            name: Arc::from(name),
            requirements: Requirements::new(),
            offerings: Vec::new(),
            capacity: Words(vec![&format!("capacity={capacity}")]).resources("capacity"),
            overhead: Overhead::default(),
            volume_limits: Default::default(),
        };
        self.types.insert(Arc::from(pool), types.into_iter().map(offered).collect());
        self.room.renew();
    }

    pub fn drift_found(&mut self, claim: &str, reason: Option<&str>) -> &mut Self {
        let drift = reason.map(|reason| CloudDrift {
            reason: Arc::from(reason),
            message: Arc::from("other image"),
            in_place: false,
        });
        self.hear(Input::DriftFound { claim: self.target(claim), drift });
        self
    }

    pub fn hooks_ran(&mut self, claim: &str, pending: &[&str], labels: &[(&str, &str)]) -> &mut Self {
        let report = HookReport {
            pending: pending.iter().copied().map(Arc::from).collect(),
            again: SignedDuration::from_secs(5),
            labels: labels.iter().map(|(key, value)| (Arc::from(*key), Arc::from(*value))).collect(),
        };
        self.hear(Input::HooksRan { claim: self.target(claim), report });
        self
    }

    pub fn hear(&mut self, input: Input) {
        self.memory.hear(&input, &self.snapshot, self.now);
        self.pod_keys = PodKeys::default();
        self.room.renew();
        if let Input::Change(change) = input {
            self.snapshot.apply(change);
        }
    }

    /// Everything that is not in the API is forgotten.
    pub fn restart(&mut self) -> &mut Self {
        self.memory = Memory::default();
        self
    }

    pub fn claim_steps(&mut self, name: &str) -> Steps {
        let claim = self.snapshot.claim(name).unwrap().clone();
        let steps = claim::next(&claim, self.view());
        self.took(steps)
    }

    pub fn node_steps(&mut self, name: &str) -> Steps {
        let node = self.snapshot.node(name).unwrap().clone();
        let steps = node::next(&node, self.view());
        self.took(steps)
    }

    pub fn claim(&mut self, name: &str) -> String {
        let steps = self.claim_steps(name);
        render::steps(&steps, &self.snapshot)
    }

    pub fn node(&mut self, name: &str) -> String {
        let steps = self.node_steps(name);
        render::steps(&steps, &self.snapshot)
    }

    pub fn pool_steps(&mut self, name: &str) -> Steps {
        let pool = self.snapshot.pool(name).unwrap().clone();
        let steps = pool::next(&pool, &pool::Totals::of(&self.snapshot), self.view());
        self.took(steps)
    }

    pub fn pool(&mut self, name: &str) -> String {
        let steps = self.pool_steps(name);
        render::steps(&steps, &self.snapshot)
    }

    pub fn window(&mut self, name: &str) -> String {
        let steps = window::next(self.snapshot.window(name).unwrap(), self.view());
        render::steps(&steps, &self.snapshot)
    }

    /// What the window wants its status to say is written.
    pub fn write_window(&mut self, name: &str) {
        let stored = self.snapshot.window(name).unwrap().clone();
        for effect in window::next(&stored, self.view()).effects {
            if let Effect::PatchWindow(target, patch) = effect {
                let written = StoredWindow { status: patch.status, ..(*stored).clone() };
                self.snapshot.apply(Change::MaintenanceWindow(target.name, Some(Arc::new(written))));
            }
        }
    }

    pub fn garbage(&mut self) -> String {
        let steps = garbage::next(self.view());
        let steps = self.took(steps);
        render::steps(&steps, &self.snapshot)
    }

    /// `id@launched`, with a trailing `!` when terminating.
    pub fn collect(&mut self, list: &str) -> String {
        let instances: Vec<_> = list.split_whitespace().map(instance).collect();
        self.hear(Input::Instances(instances.clone()));
        let steps = garbage::collect(&instances, self.view());
        let steps = self.took(steps);
        render::steps(&steps, &self.snapshot)
    }

    pub fn launched(&mut self, claim: &str, id: &str, labels: &[(&str, &str)]) -> &mut Self {
        let texts =
            |pairs: &[(&str, &str)]| pairs.iter().map(|(key, value)| (Arc::from(*key), Arc::from(*value))).collect();
        let launched = Launched {
            provider_id: Arc::from(id),
            image_id: None,
            capacity: Words(vec!["x=cpu:2"]).resources("x"),
            allocatable: Words(vec!["x=cpu:2"]).resources("x"),
            labels: texts(labels),
            annotations: texts(&[("from", "cloud")]),
        };
        self.hear(Input::Launched { claim: self.target(claim), answer: Ok(launched) });
        self
    }

    pub fn launch_failed(&mut self, claim: &str, error: LaunchError) -> &mut Self {
        self.hear(Input::Launched { claim: self.target(claim), answer: Err(error) });
        self
    }

    pub fn terminated(&mut self, claim: &str, answer: TerminateAnswer) -> &mut Self {
        self.hear(Input::Terminated { claim: self.target(claim), answer });
        self
    }

    pub fn eviction_failed(&mut self, pod: &str, error: WriteError) -> &mut Self {
        let pod = self.snapshot.pod(&pod_name(pod)).unwrap();
        let effect = Box::new(Effect::EvictPod(Target::from(&pod.meta), Arc::from("")));
        self.hear(Input::WriteFailed { effect, error });
        self
    }

    fn target(&self, claim: &str) -> Target {
        Target::from(&self.snapshot.claim(claim).unwrap().meta)
    }

    fn view(&self) -> View<'_> {
        View {
            snapshot: &self.snapshot,
            memory: &self.memory,
            settings: &self.settings,
            types: &self.types,
            rules: &self.rules,
            marks: &self.marks,
            pod_keys: &self.pod_keys,
            room: &self.room,
            now: self.now,
        }
    }

    fn took(&mut self, steps: Steps) -> Steps {
        self.memory.took(&steps, &self.snapshot, self.now);
        steps
    }
}

/// Compares line by line, whatever the indentation.
#[track_caller]
/// What the steps say of a condition of a claim.
pub fn message(steps: &Steps, kind: &str) -> String {
    let mut messages = steps.effects.iter().filter_map(|effect| match effect {
        Effect::PatchClaim(_, patch) => Some(patch.status.conditions.as_ref()?.get(kind)?.message.to_string()),
        _ => None,
    });
    messages.next().unwrap()
}

pub fn check(actual: &str, expected: &str) {
    let expected: Vec<_> = expected.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    assert_eq!(actual.lines().collect::<Vec<_>>(), expected);
}

fn object(kind: &str, name: &str, words: &Words<'_>) -> Change {
    let at = ObjectName::of_cluster(name);
    match kind {
        "claim" => Change::NodeClaim(at.clone(), Some(Arc::new(claim_object(at, words)))),
        "node" => Change::Node(at.clone(), Some(Arc::new(node_object(at, words)))),
        "pod" => Change::Pod(pod_name(name), Some(Arc::new(pod_object(pod_name(name), words)))),
        "pool" => Change::NodePool(at.clone(), Some(Arc::new(pool_object(at, words)))),
        "class" => {
            let meta = meta(at, words);
            let readiness = match words.get("not-ready") {
                Some(reason) => ClassReadiness::NotReady { reason: Arc::from(reason), message: Arc::from("no") },
                None if words.flag("unknown") => ClassReadiness::Unknown,
                None => ClassReadiness::Ready,
            };
            let class = class(name, words);
            Change::NodeClass(class.clone(), Some(Arc::new(NodeClass { meta, class, readiness })))
        }
        "attachment" => {
            let node = words.text("node").unwrap();
            let attachment = VolumeAttachment { name: at.clone(), node, volume: words.text("volume") };
            Change::VolumeAttachment(at, Some(Arc::new(attachment)))
        }
        "pvc" => {
            let meta = meta(pod_name(name), words);
            let volume = words.text("volume");
            let pvc = PersistentVolumeClaim { meta, volume, storage_class: None, is_bound: true, is_lost: false };
            Change::PersistentVolumeClaim(pod_name(name), Some(Arc::new(pvc)))
        }
        "window" => Change::MaintenanceWindow(at.clone(), Some(Arc::new(stored_window(at, words)))),
        other => panic!("no such kind: {other}"),
    }
}

fn removal(kind: &str, name: &str) -> Change {
    let at = ObjectName::of_cluster(name);
    match kind {
        "claim" => Change::NodeClaim(at, None),
        "node" => Change::Node(at, None),
        "pod" => Change::Pod(pod_name(name), None),
        "pool" => Change::NodePool(at, None),
        "attachment" => Change::VolumeAttachment(at, None),
        other => panic!("no such kind: {other}"),
    }
}

fn pod_name(name: &str) -> ObjectName {
    ObjectName::new("default", name)
}

fn instance(text: &str) -> Instance {
    let (text, is_terminating) = text.strip_suffix('!').map_or((text, false), |text| (text, true));
    let (id, launched) = text.split_once('@').unwrap();
    Instance { provider_id: Arc::from(id), launched: time(launched), is_terminating }
}

fn meta(name: ObjectName, words: &Words<'_>) -> ObjectMeta {
    // Values have no blanks in this language: an underscore stands for one.
    let text = |value: &str| Arc::from(value.replace('_', " "));
    let texts = |prefix| words.under(prefix).map(|(key, value)| (Arc::from(key), text(value))).collect();
    ObjectMeta {
        uid: words.text("uid").unwrap_or_else(|| Arc::from(format!("uid-{}", name.name))),
        name,
        resource_version: Arc::from("7"),
        generation: words.get("generation").map_or(1, |text| text.parse().unwrap()),
        created: words.time("created").unwrap_or_else(|| time("11:00")),
        deleting: words.time("deleting"),
        labels: texts("label"),
        annotations: texts("annotation"),
        finalizers: Vec::new(),
        owners: Vec::new(),
    }
}

/// A claim or a node of ours, unless it is `bare`.
fn our_meta(name: ObjectName, words: &Words<'_>) -> ObjectMeta {
    let mut meta = meta(name, words);
    if !words.flag("bare") {
        meta.finalizers.push(Arc::from(label::TERMINATION_FINALIZER));
        meta.labels.entry(Arc::from(CLASS_LABEL)).or_insert_with(|| Arc::from("default"));
    }
    if let Some(pool) = words.text("pool") {
        meta.labels.insert(Arc::from(label::NODEPOOL), pool);
    }
    meta
}

fn owner(kind: &str, name: &str) -> Owner {
    Owner {
        api_version: Arc::from("karpenter.sh/v1"),
        kind: Arc::from(kind),
        name: Arc::from(name),
        uid: Arc::from(format!("uid-{name}")),
        controller: false,
        blocks_deletion: true,
    }
}

fn class(name: &str, words: &Words<'_>) -> NodeClassRef {
    let kind = words.get("class-kind").unwrap_or("KWOKNodeClass");
    NodeClassRef { group: Arc::from("karpenter.kwok.sh"), kind: Arc::from(kind), name: Arc::from(name) }
}

fn node_spec(words: &Words<'_>) -> NodeSpec {
    NodeSpec {
        class: class("default", words),
        requirements: requirements(words),
        taints: words.taints("taint"),
        startup_taints: words.taints("startup"),
        expire_after: words.duration("expire").map_or(NillableDuration::Never, NillableDuration::After),
        termination_grace_period: words.duration("tgp"),
    }
}

/// `KEY:OPERATOR:VALUE,VALUE`
fn expression(text: &str) -> Expression {
    let mut parts = text.splitn(3, ':');
    let (key, operator) = (parts.next().unwrap(), parts.next().unwrap().parse::<Operator>().unwrap());
    Expression::new(key, operator, parts.next().into_iter().flat_map(|values| values.split(',')))
}

fn pair((key, value): (&str, &str)) -> (Arc<str>, Arc<str>) {
    (Arc::from(key), Arc::from(value))
}

fn preferred(text: &str) -> PreferredNodeTerm {
    PreferredNodeTerm { weight: 1, expressions: vec![expression(text)] }
}

fn spread(key: &str) -> SpreadConstraint {
    SpreadConstraint {
        max_skew: 1,
        topology_key: Arc::from(key),
        when_unsatisfiable: WhenUnsatisfiable::ScheduleAnyway,
        selector: None,
        min_domains: None,
        honors_node_affinity: true,
        honors_node_taints: false,
    }
}

fn term(key: &str) -> PodAffinityTerm {
    PodAffinityTerm { topology_key: Arc::from(key), selector: None, namespaces: Vec::new(), namespace_selector: None }
}

/// `requires=KEY:OPERATOR:VALUE,VALUE`
fn requirements(words: &Words<'_>) -> Requirements {
    let expressions: Vec<_> = words.all("requires").map(expression).collect();
    Requirements::parse(&expressions, &LabelRules::core()).unwrap()
}

/// `launched`, `registered`, `initialized`, or `cond.Kind=Status/Reason@12:00`; all of the generation `observed`.
fn conditions(words: &Words<'_>, created: Timestamp, generation: i64) -> Conditions {
    let condition = |kind: &str, status: &str, reason: &str, since| Condition {
        kind: Arc::from(kind),
        status: status.parse().unwrap(),
        reason: Arc::from(reason),
        // What a drain says that nothing blocks.
        message: Arc::from(if reason == "Draining" { "pods are leaving the node" } else { "" }),
        since,
        observed_generation: words.get("observed").map_or(generation, |text| text.parse().unwrap()),
    };
    let flags = [("launched", "Launched"), ("registered", "Registered"), ("initialized", "Initialized")];
    let mut list: Vec<_> = flags
        .into_iter()
        .filter(|(flag, _)| words.flag(flag))
        .map(|(_, kind)| condition(kind, "True", kind, created))
        .collect();
    for (kind, text) in words.under("cond") {
        let (text, since) = text.split_once('@').map_or((text, created), |(text, at)| (text, time(at)));
        let (status, reason) = text.split_once('/').unwrap_or((text, kind));
        list.push(condition(kind, status, reason, since));
    }
    Conditions(list)
}

fn claim_object(name: ObjectName, words: &Words<'_>) -> NodeClaim {
    let mut meta = our_meta(name, words);
    if let Some(pool) = words.get("owner").or_else(|| words.get("pool")).filter(|_| !words.flag("orphan")) {
        meta.owners.push(owner("NodePool", pool));
    }
    let status = ClaimStatus {
        provider_id: words.text("id"),
        capacity: words.resources("capacity"),
        last_pod_event: words.time("pod-event"),
        conditions: conditions(words, meta.created, meta.generation),
        ..ClaimStatus::default()
    };
    let mut claim = NodeClaim { node: node_spec(words), requests: words.resources("requests"), status, meta };
    let complete = completed(ConditionEditor::of_claim(&claim, claim.meta.created), &claim.status.conditions, words);
    claim.status.conditions = complete;
    claim
}

/// With the root and the dependents that somebody must have written with the others.
fn completed(mut editor: ConditionEditor<'_>, conditions: &Conditions, words: &Words<'_>) -> Conditions {
    if words.get("observed").is_none() {
        conditions.0.iter().for_each(|condition| editor.refresh(&condition.kind));
    }
    editor.finish().unwrap_or_else(|| conditions.clone())
}

fn node_object(name: ObjectName, words: &Words<'_>) -> Node {
    let mut meta = our_meta(name, words);
    for (flag, key) in [("registered", label::REGISTERED), ("initialized", label::INITIALIZED)] {
        if words.flag(flag) {
            meta.labels.insert(Arc::from(key), Arc::from("true"));
        }
    }
    if let Some(claim) = words.get("owner") {
        meta.owners.push(owner("NodeClaim", claim));
    }
    let mut taints = words.taints("taint");
    if words.flag("fenced") {
        taints.push(Taint::disrupted());
        meta.labels.insert(Arc::from(label::EXCLUDE_FROM_BALANCERS), Arc::from("karpenter"));
    }
    let status = if words.flag("not-ready") { ConditionStatus::False } else { ConditionStatus::True };
    let ready = NodeCondition { kind: Arc::from("Ready"), status, reason: Arc::from(""), since: meta.created };
    Node {
        provider_id: words.text("id"),
        taints,
        unschedulable: false,
        capacity: words.resources("capacity"),
        allocatable: words.resources("allocatable"),
        conditions: words.under("sick").map(sick).chain([ready]).collect(),
        boot_id: words.text("boot"),
        meta,
    }
}

/// `sick.Kind=Status/Reason@12:00`
fn sick((kind, text): (&str, &str)) -> NodeCondition {
    let (text, since) = text.split_once('@').unwrap();
    let (status, reason) = text.split_once('/').unwrap();
    NodeCondition {
        kind: Arc::from(kind),
        status: status.parse().unwrap(),
        reason: Arc::from(reason),
        since: time(since),
    }
}

fn pod_object(name: ObjectName, words: &Words<'_>) -> Pod {
    let mut meta = meta(name, words);
    for (flag, api_version, kind) in
        [("daemon", "apps/v1", "DaemonSet"), ("mirror", "v1", "Node"), ("stateful", "apps/v1", "StatefulSet")]
    {
        if words.flag(flag) {
            meta.owners.push(Owner { api_version: Arc::from(api_version), ..owner(kind, "x") });
        }
    }
    let phase = match words.get("phase") {
        None | Some("Running") => PodPhase::Running,
        Some("Pending") => PodPhase::Pending,
        Some("Succeeded") => PodPhase::Succeeded,
        Some("Failed") => PodPhase::Failed,
        Some(other) => panic!("no such phase: {other}"),
    };
    let constraints = PodConstraints {
        tolerations: words.all("tolerates").map(toleration).collect(),
        node_selector: words.all("selects").map(|text| text.split_once(':').unwrap()).map(pair).collect(),
        required_node_terms: words.all("needs").map(|text| vec![expression(text)]).collect(),
        preferred_node_terms: words.all("prefers").map(preferred).collect(),
        spread: words.all("spreads").map(spread).collect(),
        required_anti_affinity: words.all("avoids").map(term).collect(),
        ..Default::default()
    };
    Pod {
        node_name: words.text("node"),
        phase,
        requests: words.resources("requests"),
        constraints: Arc::new(constraints),
        volumes: words.all("volume").map(|claim| PodVolume { claim: Arc::from(claim) }).collect(),
        priority: words.get("priority").map_or(0, |text| text.parse().unwrap()),
        priority_class: words.flag("critical").then(|| Arc::from("system-node-critical")),
        unschedulable: false,
        nominated_node: None,
        do_not_disrupt: DoNotDisrupt::read(words.get("protect")),
        started: words.time("started"),
        termination_grace: Some(words.span("grace").unwrap_or(SignedDuration::from_secs(30))),
        is_unready: false,
        uses_resource_claims: false,
        meta,
    }
}

fn toleration(text: &str) -> Toleration {
    let (key, value) = match text {
        "all" => (None, ToleratedValue::Any),
        "exists" => (Some("karpenter.sh/disrupted"), ToleratedValue::Any),
        "equal" => (Some("karpenter.sh/disrupted"), ToleratedValue::Equal(Arc::from(""))),
        "unschedulable" => (Some("node.kubernetes.io/unschedulable"), ToleratedValue::Any),
        other => panic!("no such toleration: {other}"),
    };
    Toleration { key: key.map(Arc::from), effect: None, value }
}

fn pool_object(name: ObjectName, words: &Words<'_>) -> StoredPool {
    let meta = meta(name.clone(), words);
    let texts = |prefix| words.under(prefix).map(|(key, value)| (Arc::from(key), Arc::from(value))).collect();
    let size = match words.get("replicas") {
        Some(replicas) => PoolSize::Static { replicas: replicas.parse().unwrap() },
        None => PoolSize::Dynamic,
    };
    let disruption = Disruption {
        enabled: !words.flag("disruption-off"),
        policy: ConsolidationPolicy::WhenEmpty,
        consolidate_after: words.duration("rest").map_or(NillableDuration::Never, NillableDuration::After),
        consolidation_enabled: !words.flag("consolidation-off"),
        drift_enabled: !words.flag("drift-off"),
        drift_force_evict: false,
        expiration_enabled: !words.flag("expiration-off"),
        budgets: BudgetList::default(),
    };
    let spec = NodePool {
        name: name.name,
        weight: 0,
        size,
        limits: words.resources("limits"),
        labels: texts("template-label"),
        annotations: texts("template-annotation"),
        node: node_spec(words),
        disruption,
        disabled: words.flag("disabled"),
    };
    let hash = words.text("hash").map(|hash| PoolHash {
        hash,
        version: Arc::from("v3"),
        fields: words.get("fields").map(|text| Arc::from(text.replace('_', " "))),
    });
    let status = PoolStatus {
        resources: words.resources("resources"),
        nodes: words.get("nodes").map_or(0, |text| text.parse().unwrap()),
        class_observed_generation: words.get("class-generation").map(|text| text.parse().unwrap()),
        conditions: conditions(words, meta.created, meta.generation),
    };
    let spec = words.get("invalid").map_or(Ok(spec), |problem| Err(Arc::from(problem)));
    let mut pool = StoredPool { class: class("default", words), spec, hash, status, meta };
    pool.status.conditions =
        completed(ConditionEditor::of_pool(&pool, pool.meta.created), &pool.status.conditions, words);
    pool
}

fn stored_window(name: ObjectName, words: &Words<'_>) -> StoredWindow {
    let schedule = words.get("daily").map(|hour| Window {
        schedule: Schedule::parse_as(&format!("0 {hour} * * *"), Dialect::MaintenanceWindow).unwrap(),
        duration: words.duration("for").unwrap(),
    });
    let spec = MaintenanceWindow {
        name: Arc::clone(&name.name),
        schedules: schedule.into_iter().collect(),
        outside_schedules: false,
        actions: BTreeSet::from([words.get("actions").map_or(Action::Expiration, |text| text.parse().unwrap())]),
        selector: words.get("covers").map(|zone| Selector::new([("zone", zone)], []).unwrap()),
        until: None,
    };
    let meta = meta(name, words);
    StoredWindow { meta, spec, problem: words.get("invalid").map(Arc::from), status: WindowStatus::default() }
}
