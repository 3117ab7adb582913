//! Round after round of disruption, until there is nothing left to do.
//!
//! The rules are the same for both sides: what a round decides is carried out at once when its hold is over, as it was
//! planned. Nodes come and go in no time, so that only the holds count, and evictions are the pods that move.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use jiff::{SignedDuration, Timestamp};
use kerf_disruption::{Memory, Proposal, Settings, View, decide, ledger_entry, validate_all};
use kerf_model::change::Change;
use kerf_model::cluster::{InstanceType, Pod, Texts};
use kerf_model::label::{self, annotation};
use kerf_model::price::Price;
use kerf_model::resources::ResourceList;
use kerf_scheduling::{Options, PlannedClaim};
use serde::Serialize;
use serde_json::json;

use crate::disruption::{NOW, class};
use crate::file::Problem;
use crate::objects::PoolNode;
use crate::workload::{amounts, nodes};

type Types = BTreeMap<Arc<str>, Arc<[InstanceType]>>;

/// A cluster that has not come to rest by then never will.
const MAX_ROUNDS: usize = 2000;

#[derive(Debug, Clone, Serialize)]
pub struct Settled {
    pub settled: bool,
    /// Rounds that found something: each waits out one hold.
    pub rounds: usize,
    pub commands: usize,
    pub removed: usize,
    pub launched: usize,
    pub evictions: usize,
    pub cost_before: f64,
    pub cost_after: f64,
    /// Of virtual time.
    pub settle_s: f64,
    pub real_ns: u64,
}

/// Or until the nodes cost no more than `enough` per hour.
///
/// # Errors
/// A plan cannot be carried out: a pod has no place, or a node is overfull.
pub fn settle(mut problem: Problem, enough: Option<f64>) -> Result<Settled> {
    let settings = Settings::for_classes(vec![class(&problem)?]);
    let (types, mut memory) = (problem.types_by_pool(), Memory::default());
    let first: Timestamp = NOW.parse()?;
    let (mut now, start) = (first, Instant::now());
    let cost = cost(&problem);
    let mut settled = Settled {
        settled: false,
        rounds: 0,
        commands: 0,
        removed: 0,
        launched: 0,
        evictions: 0,
        cost_before: cost,
        cost_after: cost,
        settle_s: 0.0,
        real_ns: 0,
    };
    let is_enough = |problem: &Problem| enough.is_some_and(|enough| self::cost(problem) <= enough);
    while settled.rounds < MAX_ROUNDS && !is_enough(&problem) {
        let proposals = decide(&view(&problem, &types, &settings, &memory, now)).proposals;
        let hold = proposals.iter().map(|proposal| proposal.hold).max().unwrap_or(SignedDuration::ZERO);
        now = now.checked_add(hold)?;
        let approved: Vec<_> =
            validate_all(proposals, &view(&problem, &types, &settings, &memory, now)).into_iter().flatten().collect();
        if approved.is_empty() {
            settled.settled = true;
            break;
        }
        let nothing = Memory::default();
        for approved in &approved {
            memory.started(approved.proposal(), &view(&problem, &types, &settings, &nothing, now));
        }
        for approved in approved {
            carry_out(&mut problem, approved.proposal(), &mut settled, now)?;
            if is_enough(&problem) {
                break;
            }
        }
        settled.rounds += 1;
    }
    settled.settle_s = now.duration_since(first).as_secs_f64();
    settled.real_ns = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
    settled.cost_after = self::cost(&problem);
    check(&problem)?;
    Ok(settled)
}

/// What a round of either benchmark looks at.
pub(crate) fn view<'a>(
    problem: &'a Problem,
    types: &'a Types,
    settings: &'a Settings,
    memory: &'a Memory,
    now: Timestamp,
) -> View<'a> {
    let (snapshot, labels) = (&problem.cluster, &problem.rules);
    View {
        snapshot,
        types,
        labels,
        scheduling: Options::default(),
        default_spread: &kerf_scheduling::NO_DEFAULT_SPREAD,
        virtual_pods: &[],
        settings,
        memory,
        now,
    }
}

/// Makes the cluster what the proposal said it would be.
fn carry_out(problem: &mut Problem, proposal: &Proposal, settled: &mut Settled, now: Timestamp) -> Result<()> {
    let of = |node: &str| problem.cluster.pods_on(node).map(|pod| Arc::clone(&pod.meta.uid)).collect::<Vec<_>>();
    let mut going: BTreeSet<Arc<str>> =
        proposal.candidates.iter().flat_map(|candidate| of(&candidate.node.name.name)).collect();
    settled.evictions += going.len();
    settled.removed += proposal.candidates.len();
    settled.launched += proposal.replacements().len();
    let removed = proposal.claims().filter_map(|claim| problem.cluster.claim(claim)).map(AsRef::as_ref);
    let ledger = ledger_entry(proposal.method, removed, now);
    for (at, claim) in proposal.replacements().iter().enumerate() {
        let name = Arc::from(format!("new-{:05}-{at}", settled.commands));
        launch(problem, &name, claim, ledger.as_deref())?;
        move_pods(problem, &claim.pods, &name, &mut going);
    }
    for landing in &proposal.lands_on {
        move_pods(problem, &landing.pods, landing.host.name(), &mut going);
    }
    ensure!(going.is_empty(), "{} pods of {} have no place", going.len(), proposal.id);
    for candidate in &proposal.candidates {
        problem.cluster.apply(Change::Node(candidate.node.name.clone(), None));
        problem.cluster.apply(Change::NodeClaim(candidate.claim.name.clone(), None));
    }
    settled.commands += 1;
    Ok(())
}

fn move_pods(problem: &mut Problem, pods: &[Arc<Pod>], to: &Arc<str>, going: &mut BTreeSet<Arc<str>>) {
    for pod in pods {
        going.remove(&pod.meta.uid);
        let moved = Pod { node_name: Some(Arc::clone(to)), ..Pod::clone(pod) };
        problem.cluster.apply(Change::Pod(pod.meta.name.clone(), Some(Arc::new(moved))));
    }
}

/// The cheapest that could be launched.
fn launch(problem: &mut Problem, name: &str, claim: &PlannedClaim, ledger: Option<&str>) -> Result<()> {
    let option = claim.options.first().context("a claim without options")?;
    let offering = option.offerings.iter().min_by_key(|offering| offering.price).context("a type without offerings")?;
    let (zone, capacity_type) = (offering.zone.as_deref(), offering.capacity_type.as_deref());
    let kind = option.kind();
    let node = PoolNode {
        name,
        pool: &claim.pool,
        labels: nodes::labels(kind, zone.unwrap_or_default(), capacity_type.unwrap_or_default()),
        taints: json!([]),
        capacity: amounts(&kind.capacity),
        allocatable: amounts(&kind.allocatable()),
    };
    let mut claim = node.claim();
    claim["metadata"]["annotations"] = json!(ledger.map(|entry| json!({ annotation::CONSOLIDATIONS: entry })));
    problem.add("NodeClaim", &claim)?;
    problem.add("Node", &node.node())
}

/// Of all nodes per hour, by their labels.
fn cost(problem: &Problem) -> f64 {
    let mut prices: BTreeMap<[&str; 3], Price> = BTreeMap::new();
    for kind in problem.types.iter() {
        for offering in &kind.offerings {
            let value = |key| offering.requirements.get(key).and_then(|own| own.values().first()).map_or("", |own| own);
            prices.insert([&kind.name, value(label::ZONE), value(label::CAPACITY_TYPE)], offering.price);
        }
    }
    let of_node = |labels: &Texts| {
        let value = |key| labels.get(key).map_or("", |value| value);
        prices.get(&[value(label::INSTANCE_TYPE), value(label::ZONE), value(label::CAPACITY_TYPE)]).copied()
    };
    let micros: i64 = problem.cluster.nodes().filter_map(|node| of_node(&node.meta.labels)).map(Price::micros).sum();
    micros as f64 / 1e6
}

/// Every pod is on a node that is there and has room for it.
fn check(problem: &Problem) -> Result<()> {
    let mut used: BTreeMap<&str, ResourceList> = BTreeMap::new();
    for pod in problem.cluster.pods() {
        let node = pod.node_name.as_deref().with_context(|| format!("{} has no node", pod.meta.name))?;
        let sum = used.entry(node).or_default();
        *sum = std::mem::take(sum).plus(&pod.requests).context("a node's requests cannot be added up")?;
    }
    for (node, used) in used {
        let found = problem.cluster.node(node).with_context(|| format!("pods are on {node}, which is gone"))?;
        for (resource, amount) in used.iter() {
            ensure!(amount <= found.allocatable.amount(resource.as_str()), "{node} is overfull: {resource} {amount}");
        }
    }
    Ok(())
}
