//! Whether a schedule is one that Kubernetes would accept, whatever the cloud launches for it. Written against the labels
//! and the room that nodes will have, not with the algebra that the solver uses, and quick enough for 100,000 pods.
//!
//! Not judged: a spread whose counted pods are not all its own. Kubernetes looks at it pod by pod, so the end state alone
//! says nothing about it.

mod neighbours;
mod places;

use std::collections::BTreeMap;
use std::sync::Arc;

use kerf_model::cluster::{Pod, PodConstraints};
use kerf_model::label;
use kerf_model::resources::{ResourceList, ResourceName};
use kerf_model::selector::{Labels, NodeSelector};
use kerf_model::taint::{Effect, Taint, tolerates};
use kerf_scheduling::{PlannedClaim, Schedule};

use crate::file::Problem;
use places::{Outcomes, Place};

/// More are not worth reading.
const SHOWN: usize = 20;

/// What is wrong with the schedule; empty if nothing is.
pub fn faults(problem: &Problem, schedule: &Schedule) -> Vec<String> {
    let outcomes = Outcomes::new(problem);
    let places = places::all(problem, schedule, &outcomes);
    let mut faults = accounting(problem, schedule);
    for place in &places {
        faults.extend(place.faults(problem));
    }
    faults.extend(limits(problem, schedule));
    faults.extend(neighbours::faults(problem, &places));
    faults.truncate(SHOWN);
    faults
}

/// Every pod that waits is in exactly one place or has its reason.
fn accounting(problem: &Problem, schedule: &Schedule) -> Vec<String> {
    let on_existing = schedule.on_existing.iter().flat_map(|host| &host.pods);
    let placed = on_existing.chain(schedule.new_claims.iter().flat_map(|claim| &claim.pods));
    let mut seen: Vec<_> =
        placed.chain(schedule.unplaced.iter().map(|(pod, _)| pod)).map(|pod| &pod.meta.name).collect();
    seen.sort();
    let mut expected: Vec<_> =
        problem.cluster.pods().filter(|pod| pod.is_provisionable()).map(|pod| &pod.meta.name).collect();
    expected.sort();
    if seen == expected { Vec::new() } else { vec![format!("{} pods answered for {}", seen.len(), expected.len())] }
}

/// No pool goes over a limit, whichever of its options is launched.
fn limits(problem: &Problem, schedule: &Schedule) -> Vec<String> {
    let mut by_pool: BTreeMap<&str, Vec<&PlannedClaim>> = BTreeMap::new();
    for claim in &schedule.new_claims {
        by_pool.entry(&claim.pool).or_default().push(claim);
    }
    let kinds: BTreeMap<_, _> = problem.types.iter().map(|kind| (&kind.name, kind)).collect();
    let mut faults = Vec::new();
    for (name, claims) in by_pool {
        let Some(Ok(spec)) = problem.cluster.pool(name).map(|pool| pool.spec.as_ref()) else {
            faults.push(format!("{} claims of {name}, which is no pool", claims.len()));
            continue;
        };
        for (resource, limit) in spec.limits.iter() {
            let amount = |list: &ResourceList| match *resource == ResourceName::NODES {
                true => 1_000_000_000,
                false => list.amount(resource.as_str()).nanos(),
            };
            let own = problem.cluster.nodes().filter(|node| node.meta.label(label::NODEPOOL) == Some(name));
            let used: i128 = own.map(|node| amount(&node.capacity)).sum();
            let most = |claim: &&PlannedClaim| {
                let options = claim.options.iter().filter_map(|option| kinds.get(&option.instance_type));
                options.map(|kind| amount(&kind.capacity)).max().unwrap_or_default()
            };
            if used + claims.iter().map(most).sum::<i128>() > limit.nanos() {
                faults.push(format!("pool {name} goes over its limit of {resource}"));
            }
        }
    }
    faults
}

impl Place<'_> {
    fn faults(&self, problem: &Problem) -> Vec<String> {
        let mut faults = Vec::new();
        if self.placed.is_empty() {
            return faults;
        }
        let hard: Vec<Taint> =
            self.taints.iter().filter(|taint| taint.effect != Effect::PreferNoSchedule).cloned().collect();
        let mut judged: Option<&Arc<PodConstraints>> = None;
        for pod in self.placed {
            // Pods of one workload share their constraints and come together.
            if judged.is_some_and(|last| Arc::ptr_eq(last, &pod.constraints)) {
                continue;
            }
            judged = Some(&pod.constraints);
            if tolerates(&hard, &pod.constraints.tolerations).is_err() {
                faults.push(format!("{} does not tolerate the taints of {}", pod.meta.name, self.name));
            }
            if !self.nodes.iter().all(|node| selects(&pod.constraints, &node.labels)) {
                faults.push(format!("{} may come up on a node that it does not select: {}", pod.meta.name, self.name));
            }
        }
        if self.nodes.is_empty() {
            faults.push(format!("nothing can be launched for {}", self.name));
        }
        faults.extend(self.overfull(problem, &hard));
        faults.extend(self.shared_port());
        faults
    }

    fn overfull(&self, problem: &Problem, hard: &[Taint]) -> Option<String> {
        let pods = self.placed.iter().chain(self.running.iter().copied());
        let need = pods.fold(BTreeMap::new(), |mut sum: BTreeMap<ResourceName, i128>, pod| {
            for (name, amount) in pod.requests.iter() {
                *sum.entry(name.clone()).or_default() += amount.nanos();
            }
            sum
        });
        let daemons: Vec<_> = match self.is_new {
            true => problem.cluster.daemon_sets().collect(),
            false => Vec::new(),
        };
        let lacks = |node: &&places::PossibleNode<'_>| {
            let runs = |daemon: &&&Arc<kerf_model::cluster::DaemonSet>| {
                selects(&daemon.constraints, &node.labels) && tolerates(hard, &daemon.constraints.tolerations).is_ok()
            };
            need.iter().any(|(name, amount)| {
                let daemons: i128 =
                    daemons.iter().filter(runs).map(|daemon| daemon.requests.amount(name.as_str()).nanos()).sum();
                amount + daemons > node.room.amount(name.as_str()).nanos() && *amount > 0
            })
        };
        let short = self.nodes.iter().find(lacks)?;
        Some(format!("{} may come up too small for its {} pods: {}", self.name, self.placed.len(), short.room))
    }

    fn shared_port(&self) -> Option<String> {
        let all: Vec<&Arc<Pod>> = self.placed.iter().chain(self.running.iter().copied()).collect();
        let with_ports: Vec<_> = all.iter().filter(|pod| !pod.constraints.host_ports.is_empty()).collect();
        let clash = |(at, pod): (usize, &&&Arc<Pod>)| {
            with_ports[at + 1..].iter().any(|other| {
                let taken = |port| other.constraints.host_ports.iter().any(|own| own.conflicts_with(port));
                pod.constraints.host_ports.iter().any(taken)
            })
        };
        with_ports.iter().enumerate().any(clash).then(|| format!("two pods on {} want the same host port", self.name))
    }
}

fn selects(constraints: &PodConstraints, labels: &impl Labels) -> bool {
    let terms = &constraints.required_node_terms;
    let holds = || NodeSelector::new(terms.iter().map(Vec::as_slice)).is_ok_and(|selector| selector.matches(labels));
    constraints.node_selector.iter().all(|(key, value)| labels.label(key) == Some(&**value))
        && (terms.is_empty() || holds())
}
