//! DaemonSets: one pod on every node that they may run on.

use std::collections::BTreeMap;

use jiff::Timestamp;
use kerf_model::taint::{Effect, Taint, Toleration};
use serde_json::{Value, json};

use super::{OwnerWatch, count, create_pod, delete_pod, is_active, is_over, is_ready, pods_of};
use crate::store::object::{at, field, list};
use crate::store::{ApiError, Kind, Object, Store};
use crate::world::condition::change_status;
use crate::world::pod_reading::{self, Placement};
use crate::world::{Actor, Watch};

/// What every daemon pod tolerates.
const TOLERATED: [(&str, &str); 6] = [
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
];

const TARGET: [&str; 4] =
    ["affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms"];

pub struct DaemonSets {
    sets: OwnerWatch,
    nodes: Watch,
}

/// What a set has to say about a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Run,
    /// No new pod, but one that is there may stay.
    Stay,
    Leave,
}

impl DaemonSets {
    pub fn new() -> Self {
        Self { sets: OwnerWatch::new(Kind::DaemonSet, Kind::Pod), nodes: Watch::new(Kind::Node) }
    }
}

impl Actor for DaemonSets {
    fn name(&self) -> &'static str {
        "daemon sets"
    }

    fn step(&mut self, store: &mut Store, now: Timestamp) -> Result<(), ApiError> {
        let mut sets = self.sets.changed_owners(store);
        if !self.nodes.touched(store).is_empty() {
            sets = store.all(Kind::DaemonSet).filter(|set| !set.is_deleting()).cloned().collect();
        }
        for set in sets {
            manage(store, &set, now)?;
        }
        Ok(())
    }

    fn next_due(&self) -> Option<Timestamp> {
        None
    }
}

fn manage(store: &mut Store, set: &Object, now: Timestamp) -> Result<(), ApiError> {
    let spec = set.at(&["spec", "template", "spec"]).cloned().unwrap_or_default();
    let placement = Placement::read(&spec);
    let tolerations: Vec<_> = tolerations(&spec).iter().filter_map(pod_reading::toleration).collect();
    let mut pods: BTreeMap<String, Vec<Object>> = BTreeMap::new();
    for pod in pods_of(store, set) {
        if let Some(node) = target(&pod) {
            pods.entry(node.to_owned()).or_default().push(pod);
        }
    }
    let nodes: Vec<_> = store.all(Kind::Node).cloned().collect();
    let mut wanted = 0;
    for node in &nodes {
        let here = pods.remove(&*node.name.name).unwrap_or_default();
        let verdict = judge(node, &placement, &tolerations);
        wanted += i64::from(verdict == Verdict::Run);
        for over in here.iter().filter(|pod| is_over(pod) && !pod.is_deleting()) {
            delete_pod(store, over, now)?;
        }
        let mut alive = here.iter().filter(|pod| !is_over(pod));
        match (verdict, alive.next()) {
            (Verdict::Run, None) if here.is_empty() => {
                create_pod(store, set, |pod| edit(pod, &node.name.name), now)?;
            }
            (Verdict::Leave, Some(pod)) if !pod.is_deleting() => delete_pod(store, pod, now)?,
            (Verdict::Run | Verdict::Stay | Verdict::Leave, _) => {}
        }
    }
    // Pods for nodes that are gone: those that were bound are collected with their node.
    for pod in pods.values().flatten().filter(|pod| !pod.is_deleting() && pod.at(&["spec", "nodeName"]).is_none()) {
        delete_pod(store, pod, now)?;
    }
    let pods = pods_of(store, set);
    let status = json!({
        "desiredNumberScheduled": wanted, "currentNumberScheduled": count(&pods, is_active),
        "numberReady": count(&pods, |pod| is_active(pod) && is_ready(pod)), "observedGeneration": set.generation(),
    });
    change_status(store, Kind::DaemonSet, &set.name, |current| *current = status)
}

fn judge(node: &Object, placement: &Placement, tolerations: &[Toleration]) -> Verdict {
    let labels = pod_reading::texts(node.at(&["metadata", "labels"]));
    if !placement.allows(&node.name.name, &labels) {
        return Verdict::Leave;
    }
    let taints = pod_reading::taints(node.body());
    let is_bad = |effect| {
        let repels = |taint: &&Taint| taint.effect == effect && !tolerations.iter().any(|it| it.covers(taint));
        taints.iter().any(|taint| repels(&taint))
    };
    match (is_bad(Effect::NoExecute), is_bad(Effect::NoSchedule)) {
        (true, _) => Verdict::Leave,
        (false, true) => Verdict::Stay,
        (false, false) => Verdict::Run,
    }
}

fn tolerations(spec: &Value) -> Vec<Value> {
    let added = TOLERATED.iter().map(|(key, effect)| json!({"key": key, "operator": "Exists", "effect": effect}));
    list(spec, &["tolerations"]).iter().cloned().chain(added).collect()
}

/// The scheduler binds daemon pods too; they name their node by an affinity to its name.
fn edit(pod: &mut Value, node: &str) {
    let spec = field(pod, "spec");
    *field(spec, "tolerations") = json!(tolerations(spec));
    let name = json!({"key": "metadata.name", "operator": "In", "values": [node]});
    let terms = at(spec, &TARGET).and_then(Value::as_array).cloned().unwrap_or_else(|| vec![json!({})]);
    let terms: Vec<_> = terms
        .into_iter()
        .map(|mut term| {
            *field(&mut term, "matchFields") = json!([name]);
            term
        })
        .collect();
    let affinity = field(field(spec, TARGET[0]), TARGET[1]);
    *field(field(affinity, TARGET[2]), TARGET[3]) = json!(terms);
}

fn target(pod: &Object) -> Option<&str> {
    let bound = pod.text(&["spec", "nodeName"]);
    bound.or_else(|| {
        let spec = pod.at(&["spec"])?;
        let field = list(spec, &TARGET).first()?.get("matchFields")?.get(0)?;
        field.get("values")?.get(0)?.as_str()
    })
}
