//! What no answer can cost less than: the linear relaxation of the packing, in which nodes and pods may be split.
//!
//! A pod pays a price, and the prices are *fair* if on no node that could be launched the pods that it can hold pay more
//! than it costs. Then whatever is launched costs at least what all pods pay, less what they pay to room that is there
//! already and costs nothing. That is linear duality; its use here is that any fair prices give a true bound, however they
//! were found. So the solver only proposes prices, and `Prices::worth` checks every column and scales them until they
//! are fair. A mistake of the solver makes the bound weaker, not false.
//!
//! What is in it: requests, taints, node selectors and required node affinity, with zones and capacity types, and one pod
//! per host where pods say so of their own kind; where there are few shapes of pods, also that pods and nodes are whole
//! (`whole.rs`). What is not: limits, spread over zones, affinity.

mod model;
mod whole;

use std::time::{Duration, Instant};

use microlp::{ComparisonOp, LinearExpr, OptimizationDirection, Problem as Program};
use serde::{Deserialize, Serialize};

use crate::file::Problem;
use model::{Model, Room};

/// Rounds of looking for columns that the prices are unfair to, and how many are taken in each.
const ROUNDS: usize = 15;
const COLUMNS_PER_ROUND: usize = 12;
/// Prices that are this nearly fair are scaled and not searched further.
const TOLERANCE: f64 = 1e-4;
/// For one linear program; without an answer by then, the prices of the round before stand.
const PATIENCE: Duration = Duration::from_secs(60);

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Bound {
    pub cost_per_hour: f64,
    /// Pods that nothing can hold; the bound is for the others.
    pub impossible_pods: usize,
    /// Whether a better linear relaxation does not exist, up to a ten-thousandth.
    pub is_exact: bool,
    /// Whether pods and nodes are whole in it, and no better such bound exists: then it is as tight as bounds by prices get.
    pub is_whole: bool,
    /// The same for answers with no more nodes than were asked about; without whole pods and nodes no higher.
    pub cost_per_hour_at_nodes: f64,
    pub took_ms: u64,
}

/// What no answer costs less than, and no answer with at most `most_nodes` nodes to launch.
pub fn bound(problem: &Problem, most_nodes: Option<usize>) -> Bound {
    let start = Instant::now();
    let (model, impossible_pods) = Model::new(problem);
    let (linear, is_exact, prices) = best(&model);
    let whole = whole::bound(&model, &prices, linear, None);
    let most_nodes = most_nodes.map(|nodes| nodes as f64);
    let at_nodes = most_nodes.map_or(whole.cost, |_| whole::bound(&model, &prices, whole.cost, most_nodes).cost);
    let took_ms = u64::try_from(start.elapsed().as_millis()).unwrap_or(u64::MAX);
    Bound {
        cost_per_hour: whole.cost,
        impossible_pods,
        is_exact,
        is_whole: whole.is_best,
        cost_per_hour_at_nodes: at_nodes,
        took_ms,
    }
}

fn best(model: &Model) -> (f64, bool, Prices) {
    let mut active = model.first_columns();
    let (mut best, mut last) = (0.0_f64, Prices(vec![0.0; model.shapes.len()]));
    for _ in 0..ROUNDS {
        let Some(prices) = propose(model, &active) else { return (best, false, last) };
        let mut unfair: Vec<(f64, usize)> = (0..model.columns.len())
            .filter(|column| !active.contains(column))
            .map(|column| (prices.paid_to(&model.columns[column].room, model) / model.columns[column].price, column))
            .collect();
        unfair.sort_by(|a, b| b.0.total_cmp(&a.0));
        best = best.max(prices.worth(model));
        if unfair.first().is_none_or(|(excess, _)| *excess <= 1.0 + TOLERANCE) {
            return (best, true, prices);
        }
        let worst = unfair.into_iter().take_while(|(excess, _)| *excess > 1.0 + TOLERANCE).take(COLUMNS_PER_ROUND);
        active.extend(worst.map(|(_, column)| column));
        last = prices;
    }
    (best, false, last)
}

/// What each shape of pods pays per pod.
struct Prices(Vec<f64>);

impl Prices {
    /// The bound that these prices give, after they were made fair to every column.
    fn worth(&self, model: &Model) -> f64 {
        let columns = model.columns.iter().filter(|column| column.price > 0.0);
        let excess = columns.map(|column| self.paid_to(&column.room, model) / column.price).fold(1.0, f64::max);
        let all: f64 = model.shapes.iter().zip(&self.0).map(|(shape, price)| shape.count * price).sum();
        let to_existing: f64 = model.existing.iter().map(|room| self.paid_to(room, model)).sum();
        // A hair less, for the rounding of floating point.
        ((all - to_existing) / excess * (1.0 - 1e-9)).max(0.0)
    }

    /// The most that split pods can pay for the room: the linear knapsack, from its dual side, where every feasible point
    /// is an upper bound.
    fn paid_to(&self, room: &Room, model: &Model) -> f64 {
        self.paid_with_rents(room, model).0
    }

    /// The same with the rents of resources and of the groups' places that prove it.
    fn paid_with_rents(&self, room: &Room, model: &Model) -> (f64, (Vec<f64>, Vec<f64>)) {
        let mut program = Program::new(OptimizationDirection::Minimize);
        let resources: Vec<_> =
            room.capacity.iter().map(|amount| program.add_var(amount.max(0.0), (0.0, f64::INFINITY))).collect();
        let groups: Vec<_> =
            model.groups.iter().map(|skew| program.add_var(skew * room.hosts, (0.0, f64::INFINITY))).collect();
        let mut paying = Vec::new();
        for shape in room.admits.iter().copied().filter(|shape| self.0[*shape] > 0.0) {
            let mut rent = LinearExpr::empty();
            for (amount, price) in model.shapes[shape].requests.iter().zip(&resources) {
                rent.add(*price, *amount);
            }
            if let Some(group) = model.shapes[shape].group {
                rent.add(groups[group], 1.0);
            }
            program.add_constraint(rent, ComparisonOp::Ge, self.0[shape]);
            paying.push(shape);
        }
        if paying.is_empty() {
            return (0.0, (vec![0.0; resources.len()], vec![0.0; groups.len()]));
        }
        let solved = program.solve().ok().and_then(|outcome| outcome.into_solution().ok());
        let rents: (Vec<f64>, Vec<f64>) = match &solved {
            Some(solution) => (
                resources.iter().map(|price| solution.var_value(*price).max(0.0)).collect(),
                groups.iter().map(|price| solution.var_value(*price).max(0.0)).collect(),
            ),
            // Any positive rents will do: they are made high enough below.
            None => (vec![1.0; resources.len()], vec![1.0; groups.len()]),
        };
        let rent = |shape: usize| {
            let shape = &model.shapes[shape];
            let of_resources: f64 = shape.requests.iter().zip(&rents.0).map(|(amount, rent)| amount * rent).sum();
            of_resources + shape.group.map_or(0.0, |group| rents.1[group])
        };
        // The solver's answer is only believed as far as it holds: where a pod pays more than its rent, rents go up.
        let short = paying.iter().map(|shape| self.0[*shape] / rent(*shape)).fold(1.0, f64::max);
        let capacity = room.capacity.iter().zip(&rents.0).map(|(amount, rent)| amount.max(0.0) * rent).sum::<f64>();
        let hosts = model.groups.iter().zip(&rents.1).map(|(skew, rent)| skew * room.hosts * rent).sum::<f64>();
        let raised = |rents: &[f64]| rents.iter().map(|rent| rent * short).collect();
        ((capacity + hosts) * short, (raised(&rents.0), raised(&rents.1)))
    }
}

/// Prices that are fair to the active columns and pay as much as possible. `None` if the solver finds none in time.
fn propose(model: &Model, active: &[usize]) -> Option<Prices> {
    let mut program = Program::new(OptimizationDirection::Maximize);
    program.set_time_limit(PATIENCE);
    let paid: Vec<_> = model.shapes.iter().map(|shape| program.add_var(shape.count, (0.0, f64::INFINITY))).collect();
    let launched = active.iter().map(|column| (&model.columns[*column].room, Some(model.columns[*column].price)));
    for (room, price) in launched.chain(model.existing.iter().map(|room| (room, None))) {
        // Rent of room that is there is lost to the bound; rent of a node to launch may not exceed its price.
        let cost = |amount: f64| if price.is_none() { -amount } else { 0.0 };
        let capacity: Vec<f64> = room.capacity.iter().map(|amount| amount.max(0.0)).collect();
        let resources: Vec<_> =
            capacity.iter().map(|amount| program.add_var(cost(*amount), (0.0, f64::INFINITY))).collect();
        let hosts: Vec<_> = model.groups.iter().map(|skew| skew * room.hosts).collect();
        let groups: Vec<_> = hosts.iter().map(|amount| program.add_var(cost(*amount), (0.0, f64::INFINITY))).collect();
        for shape in &room.admits {
            let mut rest = LinearExpr::empty();
            rest.add(paid[*shape], 1.0);
            for (amount, rent) in model.shapes[*shape].requests.iter().zip(&resources) {
                rest.add(*rent, -amount);
            }
            if let Some(group) = model.shapes[*shape].group {
                rest.add(groups[group], -1.0);
            }
            program.add_constraint(rest, ComparisonOp::Le, 0.0);
        }
        if let Some(price) = price {
            let mut rent = LinearExpr::empty();
            let all = resources.iter().zip(&capacity).chain(groups.iter().zip(&hosts));
            all.for_each(|(variable, amount)| rent.add(*variable, *amount));
            program.add_constraint(rent, ComparisonOp::Le, price);
        }
    }
    let solution = program.solve().ok()?.into_solution().ok()?;
    Some(Prices(paid.iter().map(|price| solution.var_value(*price).max(0.0)).collect()))
}
