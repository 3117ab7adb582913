//! The problem with everything that does not matter for its cost taken out: pods by shape, offerings that are not worse
//! than others, and the room on nodes by what may go there.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kerf_model::cluster::{InstanceType, Node, Offering, Pod, PodConstraints, StoredPool, WhenUnsatisfiable};
use kerf_model::label::{self, LabelRules};
use kerf_model::node_pool::NodePool;
use kerf_model::requirement::{Expression, Operator, Requirements, UndefinedKeys};
use kerf_model::resources::{ResourceList, ResourceName};
use kerf_model::selector::Selector;
use kerf_model::taint::{Effect, Taint, tolerates};
use kerf_scheduling::{is_leaving, is_usable};

use crate::file::Problem;

pub(super) struct Model {
    pub shapes: Vec<Shape>,
    /// What can be launched, without what another is at least as good as if nodes may be split.
    pub columns: Vec<Column>,
    /// The same if they may not.
    pub whole: Vec<Column>,
    pub existing: Vec<Room>,
    /// Kinds of pods that keep to themselves, by how many of them a host takes.
    pub groups: Vec<f64>,
}

/// Pods that ask for the same and may go to the same places.
pub(super) struct Shape {
    pub count: f64,
    /// In the order of the model's resources.
    pub requests: Vec<f64>,
    pub group: Option<usize>,
}

/// Something that can be launched.
#[derive(Clone)]
pub(super) struct Column {
    pub price: f64,
    pub room: Room,
}

/// What pods can use, and which.
#[derive(Clone)]
pub(super) struct Room {
    pub capacity: Vec<f64>,
    /// On how many hosts it is.
    pub hosts: f64,
    /// Shapes, in order.
    pub admits: Vec<usize>,
}

/// How nodes may be divided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Splitting {
    Freely,
    /// A part of a node is no host of its own.
    KeepingHosts,
    Never,
}

/// A workload's pods before it is known where they may go.
struct Asked<'a> {
    constraints: &'a PodConstraints,
    requests: Vec<f64>,
    group: Option<usize>,
    count: usize,
    /// One of these must be met.
    terms: Vec<Requirements>,
}

impl Model {
    /// The model, and how many pods nothing can hold.
    pub fn new(problem: &Problem) -> (Self, usize) {
        let pods: Vec<_> = problem.cluster.pods().filter(|pod| pod.is_provisionable()).collect();
        let names: BTreeSet<_> =
            pods.iter().flat_map(|pod| pod.requests.iter()).map(|(name, _)| name.clone()).collect();
        let resources: Vec<ResourceName> = names.into_iter().collect();
        let (asked, groups) = ask(&pods, &resources, &problem.rules);
        let splitting = if groups.is_empty() { Splitting::Freely } else { Splitting::KeepingHosts };
        let [columns, whole] = [splitting, Splitting::Never].map(|rule| columns(problem, &asked, &resources, rule));
        let existing = existing(problem, &asked, &resources);
        let mut model = Self { shapes: Vec::new(), columns, whole, existing, groups };
        let impossible = model.take_shapes(asked);
        (model, impossible)
    }

    /// Leaves out what fits nowhere, and renumbers the rest.
    fn take_shapes(&mut self, asked: Vec<Asked<'_>>) -> usize {
        let rooms = || self.columns.iter().map(|column| &column.room).chain(&self.existing);
        let possible: BTreeSet<usize> = rooms().flat_map(|room| room.admits.iter().copied()).collect();
        let renumbered: BTreeMap<usize, usize> = possible.iter().enumerate().map(|(new, old)| (*old, new)).collect();
        let launched = self.columns.iter_mut().chain(&mut self.whole).map(|column| &mut column.room);
        for room in launched.chain(&mut self.existing) {
            room.admits.iter_mut().for_each(|shape| *shape = renumbered[shape]);
        }
        let mut impossible = 0;
        for (at, Asked { requests, group, count, .. }) in asked.into_iter().enumerate() {
            if possible.contains(&at) {
                self.shapes.push(Shape { count: count as f64, requests, group });
            } else {
                impossible += count;
            }
        }
        impossible
    }

    /// For every shape the column on which it alone would be cheapest.
    pub fn first_columns(&self) -> Vec<usize> {
        let alone = |shape: usize, column: &Column| {
            let parts = self.shapes[shape].requests.iter().zip(&column.room.capacity);
            let of_room = parts.filter(|(asked, _)| **asked > 0.0).map(|(asked, amount)| asked / amount);
            let of_host = self.shapes[shape].group.map_or(0.0, |group| 1.0 / self.groups[group]);
            of_room.fold(of_host, f64::max) * column.price
        };
        let mut best: Vec<Option<(f64, usize)>> = vec![None; self.shapes.len()];
        for (at, column) in self.columns.iter().enumerate() {
            for shape in &column.room.admits {
                let cost = alone(*shape, column);
                if best[*shape].is_none_or(|(least, _)| cost < least) {
                    best[*shape] = Some((cost, at));
                }
            }
        }
        let first: BTreeSet<_> = best.into_iter().flatten().map(|(_, column)| column).collect();
        first.into_iter().collect()
    }
}

/// Pods by shape, and the groups that keep to themselves on a host.
fn ask<'a>(pods: &[&'a Arc<Pod>], resources: &[ResourceName], rules: &LabelRules) -> (Vec<Asked<'a>>, Vec<f64>) {
    let mut groups: BTreeMap<(&Selector, i32), usize> = BTreeMap::new();
    let mut counts: BTreeMap<(&PodConstraints, Vec<i128>, Option<usize>), usize> = BTreeMap::new();
    for pod in pods {
        let fresh = groups.len();
        let group = own_kind(pod).map(|kind| *groups.entry(kind).or_insert(fresh));
        let requests = resources.iter().map(|name| pod.requests.amount(name.as_str()).nanos()).collect();
        *counts.entry((&pod.constraints, requests, group)).or_default() += 1;
    }
    let shape = |((constraints, requests, group), count): ((&'a PodConstraints, Vec<i128>, Option<usize>), usize)| {
        let scaled = requests.iter().zip(resources).map(|(nanos, name)| *nanos as f64 / unit(name)).collect();
        Asked { constraints, requests: scaled, group, count, terms: terms(constraints, rules) }
    };
    let mut skews: Vec<_> = groups.iter().map(|((_, skew), at)| (*at, f64::from(*skew))).collect();
    skews.sort_by_key(|(at, _)| *at);
    (counts.into_iter().map(shape).collect(), skews.into_iter().map(|(_, skew)| skew).collect())
}

/// What a pod keeps away from on its host, if that is pods like itself, and how many of them a host takes.
fn own_kind(pod: &Pod) -> Option<(&Selector, i32)> {
    let on_host = |key: &str| key == label::HOSTNAME;
    let itself = |selector: &&Selector| selector.matches(&pod.meta.labels);
    let apart = pod.constraints.required_anti_affinity.iter().filter(|term| on_host(&term.topology_key));
    let apart = apart.filter_map(|term| term.selector.as_ref()).find(itself).map(|selector| (selector, 1));
    apart.or_else(|| {
        let hard = pod.constraints.spread.iter().filter(|spread| {
            on_host(&spread.topology_key) && spread.when_unsatisfiable == WhenUnsatisfiable::DoNotSchedule
        });
        hard.filter_map(|spread| Some((spread.selector.as_ref()?, spread.max_skew)))
            .find(|(selector, _)| itself(selector))
    })
}

/// Numbers of about the same size are kinder to the solver: cores, and GiB of what is counted in bytes.
fn unit(name: &ResourceName) -> f64 {
    const NANO: f64 = 1e9;
    match *name == ResourceName::MEMORY || *name == ResourceName::EPHEMERAL_STORAGE {
        true => NANO * (1_u64 << 30) as f64,
        false => NANO,
    }
}

fn scaled(list: &ResourceList, resources: &[ResourceName]) -> Vec<f64> {
    resources.iter().map(|name| list.amount(name.as_str()).nanos() as f64 / unit(name)).collect()
}

/// A term that means nothing leaves the pod without that alternative, in the solver as here.
fn terms(constraints: &PodConstraints, rules: &LabelRules) -> Vec<Requirements> {
    let selector: Vec<_> =
        constraints.node_selector.iter().map(|(key, value)| Expression::new(key, Operator::In, [value])).collect();
    let with = |term: &[Expression]| Requirements::parse(selector.iter().chain(term), rules).ok();
    match constraints.required_node_terms.is_empty() {
        true => with(&[]).into_iter().collect(),
        false => constraints.required_node_terms.iter().filter_map(|term| with(term)).collect(),
    }
}

fn tolerated(taints: &[Taint], constraints: &PodConstraints) -> bool {
    let hard: Vec<_> = taints.iter().filter(|taint| taint.effect != Effect::PreferNoSchedule).cloned().collect();
    tolerates(&hard, &constraints.tolerations).is_ok()
}

fn fits(requests: &[f64], capacity: &[f64]) -> bool {
    // A hair is given, for the rounding of floating point: the bound may only err downwards.
    requests.iter().zip(capacity).all(|(asked, amount)| *asked <= amount * (1.0 + 1e-9))
}

/// Everything that a pool can launch, without what another column is at least as good as.
///
/// Whether a shape may go there is asked of pool, type and offering one by one: what all three allow may still be
/// impossible at once, which only makes the bound weaker.
fn columns(problem: &Problem, asked: &[Asked<'_>], resources: &[ResourceName], rule: Splitting) -> Vec<Column> {
    let meets = |own: &Requirements, shape: &Asked<'_>| shape.terms.iter().any(|term| own.intersects(term).is_ok());
    let by_type: Vec<Vec<bool>> =
        problem.types.iter().map(|kind| asked.iter().map(|shape| meets(&kind.requirements, shape)).collect()).collect();
    let mut by_offering: BTreeMap<&Requirements, Vec<bool>> = BTreeMap::new();
    let mut fronts: BTreeMap<Vec<usize>, Vec<Column>> = BTreeMap::new();
    for pool in problem.cluster.pools().filter(|pool| is_usable(pool)) {
        let Ok(spec) = &pool.spec else { continue };
        let template = template(pool, spec, &problem.rules);
        let open = UndefinedKeys::OpenIfWellKnown(&problem.rules);
        let welcome: Vec<bool> = asked
            .iter()
            .map(|shape| {
                tolerated(&spec.node.taints, shape.constraints)
                    && shape.terms.iter().any(|term| template.compatible(term, open).is_ok())
            })
            .collect();
        for (kind, of_type) in problem.types.iter().zip(&by_type) {
            if kind.requirements.intersects(&template).is_err() {
                continue;
            }
            let capacity = capacity(problem, kind, spec, resources);
            let launchable =
                |offering: &&Offering| offering.is_launchable() && offering.requirements.intersects(&template).is_ok();
            for offering in kind.offerings.iter().filter(launchable) {
                let of_offering = by_offering
                    .entry(&offering.requirements)
                    .or_insert_with(|| asked.iter().map(|shape| meets(&offering.requirements, shape)).collect());
                let may = |shape: &usize| {
                    welcome[*shape]
                        && of_type[*shape]
                        && of_offering[*shape]
                        && fits(&asked[*shape].requests, &capacity)
                };
                let admits: Vec<usize> = (0..asked.len()).filter(may).collect();
                if admits.is_empty() {
                    continue;
                }
                let price = offering.price.micros() as f64 / 1e6;
                let room = Room { capacity: capacity.clone(), hosts: 1.0, admits: admits.clone() };
                let column = Column { price, room };
                let front = fronts.entry(admits).or_default();
                if !front.iter().any(|other| other.is_as_good_as(&column, rule)) {
                    front.retain(|other| !column.is_as_good_as(other, rule));
                    front.push(column);
                }
            }
        }
    }
    let all: Vec<Column> = fronts.into_values().flatten().collect();
    let is_needed = |(at, column): &(usize, &Column)| {
        let better = |(other_at, other): (usize, &Column)| {
            let ties = other_at < *at || !column.is_as_good_as(other, rule) || !column.admits_all_of(other);
            other_at != *at && other.admits_all_of(column) && other.is_as_good_as(column, rule) && ties
        };
        !all.iter().enumerate().any(better)
    };
    all.iter().enumerate().filter(is_needed).map(|(_, column)| column.clone()).collect()
}

impl Column {
    /// Whether so much of this as the other costs holds all that the other holds.
    fn is_as_good_as(&self, other: &Self, rule: Splitting) -> bool {
        if rule == Splitting::Never {
            let holds = |(own, others): (&f64, &f64)| own >= others;
            return self.price <= other.price && self.room.capacity.iter().zip(&other.room.capacity).all(holds);
        }
        if self.price <= 0.0 {
            return true;
        }
        let nodes = other.price / self.price;
        let holds = |(own, others): (&f64, &f64)| own * nodes >= *others;
        self.room.capacity.iter().zip(&other.room.capacity).all(holds) && (rule == Splitting::Freely || nodes >= 1.0)
    }

    fn admits_all_of(&self, other: &Self) -> bool {
        other.room.admits.iter().all(|shape| self.room.admits.binary_search(shape).is_ok())
    }
}

fn template(pool: &StoredPool, spec: &NodePool, rules: &LabelRules) -> Requirements {
    let labels = spec.labels.iter().map(|(key, value)| (&**key, &**value));
    let mut template = Requirements::from_labels(labels.chain([(label::NODEPOOL, &*pool.meta.name.name)]), rules);
    template.merge(&spec.node.requirements);
    template
}

/// What is left for pods: without daemons that run on every node.
fn capacity(problem: &Problem, kind: &InstanceType, spec: &NodePool, resources: &[ResourceName]) -> Vec<f64> {
    let mut left = scaled(&kind.allocatable(), resources);
    for daemon in problem.cluster.daemon_sets() {
        let everywhere = daemon.constraints.node_selector.is_empty()
            && daemon.constraints.required_node_terms.is_empty()
            && tolerates(&spec.node.taints, &daemon.constraints.tolerations).is_ok();
        if everywhere {
            let taken = scaled(&daemon.requests, resources);
            left.iter_mut().zip(taken).for_each(|(left, taken)| *left -= taken);
        }
    }
    left
}

/// What tells nodes apart for pods, besides their room: labels without the host's, and taints.
type NodeClass<'a> = (Vec<(&'a str, &'a str)>, Vec<String>);

/// Room on nodes, together for all nodes that admit the same shapes.
fn existing(problem: &Problem, asked: &[Asked<'_>], resources: &[ResourceName]) -> Vec<Room> {
    let mut rooms: BTreeMap<Vec<usize>, Room> = BTreeMap::new();
    let mut by_labels: BTreeMap<NodeClass<'_>, Vec<usize>> = BTreeMap::new();
    for node in problem.cluster.nodes().filter(|node| !node.unschedulable && !is_leaving(&problem.cluster, node)) {
        let free = free(problem, node, resources);
        let labels: Vec<(&str, &str)> = node.meta.labels.iter().map(|(key, value)| (&**key, &**value)).collect();
        let told_apart: Vec<_> = labels.iter().filter(|(key, _)| *key != label::HOSTNAME).copied().collect();
        let taints = node.taints.iter().map(ToString::to_string).collect();
        let may = by_labels.entry((told_apart, taints)).or_insert_with(|| {
            let own = Requirements::from_labels(labels.iter().copied(), &problem.rules);
            let meets = |term: &Requirements| own.compatible(term, UndefinedKeys::Absent).is_ok();
            let may = |shape: &usize| {
                tolerated(&node.taints, asked[*shape].constraints) && asked[*shape].terms.iter().any(meets)
            };
            (0..asked.len()).filter(may).collect()
        });
        let admits: Vec<_> = may.iter().copied().filter(|shape| fits(&asked[*shape].requests, &free)).collect();
        if admits.is_empty() {
            continue;
        }
        let room = rooms.entry(admits).or_insert_with_key(|admits| Room {
            capacity: vec![0.0; resources.len()],
            hosts: 0.0,
            admits: admits.clone(),
        });
        room.hosts += 1.0;
        room.capacity.iter_mut().zip(free).for_each(|(sum, free)| *sum += free.max(0.0));
    }
    rooms.into_values().collect()
}

fn free(problem: &Problem, node: &Node, resources: &[ResourceName]) -> Vec<f64> {
    let mut left = scaled(&node.allocatable, resources);
    for pod in problem.cluster.pods_on(node.name()).filter(|pod| pod.is_active()) {
        let taken = scaled(&pod.requests, resources);
        left.iter_mut().zip(taken).for_each(|(left, taken)| *left -= taken);
    }
    left
}
