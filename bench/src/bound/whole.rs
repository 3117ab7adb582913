//! The same bound with whole pods on whole nodes: prices need only be fair to what can really stand on a node together.
//!
//! Where pods are large beside nodes, half of a pod does not help, and the linear relaxation promises room that nobody
//! can use. Here a node's constraint is the best *packing* that it can hold, found by branch and bound; where that takes
//! too long, the linear answer for that node is taken instead, which is never lower. So the bound stays true.

use microlp::{ComparisonOp, LinearExpr, OptimizationDirection, Problem as Program};

use super::model::{Model, Room};
use super::{PATIENCE, Prices};

/// More shapes than this are not tried. Measured: with 30 no node's search ends, with 60 on 400 types all of them together
/// take minutes, and the linear bound stands in the end.
const MOST_SHAPES: usize = 12;
/// Rounds of looking for packings that the prices are unfair to. Measured: most workloads need less than ten.
const ROUNDS: usize = 40;
/// How many partial packings of one node are looked at.
const MOST_STEPS: usize = 200_000;
const TOLERANCE: f64 = 1e-6;

/// A bound that holds for pods and nodes that are whole.
pub(super) struct Whole {
    pub cost: f64,
    /// Whether no better bound of this kind exists.
    pub is_best: bool,
}

/// A bound that is at least `least`, which the prices `start` gave, for answers with at most so many nodes.
///
/// Where nodes are few, room on them is dearer than what they cost: each pays a premium, which all of them together get
/// back. Fair is then what pays no more than price and premium.
pub(super) fn bound(model: &Model, start: &Prices, least: f64, most_nodes: Option<f64>) -> Whole {
    let mut best = Whole { cost: least, is_best: false };
    // Room that is there already would have to be packed too.
    if model.shapes.len() > MOST_SHAPES || !model.existing.is_empty() {
        return best;
    }
    let (mut prices, mut premium) = (Prices(start.0.clone()), 0.0);
    let mut packings: Vec<(f64, Vec<f64>)> = Vec::new();
    for round in 0..ROUNDS {
        let mut excess = 1.0_f64;
        let (mut is_new, mut is_complete) = (false, true);
        for column in model.whole.iter().filter(|column| column.price > 0.0) {
            let found = Search::new(model, &prices, &column.room).run();
            let fair = column.price + premium;
            excess = excess.max(found.at_most / fair);
            is_complete &= found.at_most <= found.value;
            if found.value > fair * (1.0 + TOLERANCE) {
                packings.push((column.price, found.packing));
                is_new = true;
            }
        }
        let all: f64 = model.shapes.iter().zip(&prices.0).map(|(shape, price)| shape.count * price).sum();
        let returned = premium * most_nodes.unwrap_or_default();
        // A hair less, for the rounding of floating point.
        best.cost = best.cost.max(all / excess * (1.0 - 1e-9) - returned);
        // The first prices are fair to more than there is, and are only a start.
        if round > 0 && !is_new {
            best.is_best = is_complete;
            break;
        }
        let Some(next) = propose(model, &packings, most_nodes) else { break };
        (prices, premium) = next;
    }
    best
}

/// Prices that are fair to the packings and pay as much as possible, and the premium of a node.
fn propose(model: &Model, packings: &[(f64, Vec<f64>)], most_nodes: Option<f64>) -> Option<(Prices, f64)> {
    let mut program = Program::new(OptimizationDirection::Maximize);
    program.set_time_limit(PATIENCE);
    let dearest = model.whole.iter().map(|column| column.price).fold(0.0, f64::max);
    let most = most_nodes.map_or(0.0, |_| dearest);
    let premium = program.add_var(-most_nodes.unwrap_or_default(), (0.0, most));
    let paid: Vec<_> = model.shapes.iter().map(|shape| program.add_var(shape.count, (0.0, f64::INFINITY))).collect();
    for (at, paid) in paid.iter().enumerate() {
        // Nobody pays more than for a node alone.
        let columns = model.whole.iter().filter(|column| column.room.admits.binary_search(&at).is_ok());
        let alone = columns.map(|column| column.price).fold(f64::INFINITY, f64::min);
        let mut own = LinearExpr::empty();
        own.add(*paid, 1.0);
        own.add(premium, -1.0);
        program.add_constraint(own, ComparisonOp::Le, alone);
    }
    for (price, packing) in packings {
        let mut sum = LinearExpr::empty();
        packing.iter().zip(&paid).filter(|(count, _)| **count > 0.0).for_each(|(count, paid)| sum.add(*paid, *count));
        sum.add(premium, -1.0);
        program.add_constraint(sum, ComparisonOp::Le, *price);
    }
    let solution = program.solve().ok()?.into_solution().ok()?;
    let prices = Prices(paid.iter().map(|price| solution.var_value(*price).max(0.0)).collect());
    Some((prices, solution.var_value(premium).max(0.0)))
}

/// The search for what pays most on one node.
struct Search<'m> {
    model: &'m Model,
    prices: &'m Prices,
    /// Shapes that pay, those that pay most of their rent first.
    order: Vec<usize>,
    /// What a unit of each resource, and a place of each group, is worth at most.
    rents: (Vec<f64>, Vec<f64>),
    linear: f64,
    left: Vec<f64>,
    places: Vec<f64>,
    packing: Vec<f64>,
    best: (f64, Vec<f64>),
    steps: usize,
}

/// What pays most on one node.
struct Found {
    value: f64,
    packing: Vec<f64>,
    /// No packing pays more than this.
    at_most: f64,
}

impl<'m> Search<'m> {
    fn new(model: &'m Model, prices: &'m Prices, room: &'m Room) -> Self {
        let (linear, rents) = prices.paid_with_rents(room, model);
        let mut search = Self {
            model,
            prices,
            order: Vec::new(),
            rents,
            linear,
            left: room.capacity.iter().map(|amount| amount.max(0.0)).collect(),
            places: model.groups.iter().map(|skew| skew * room.hosts).collect(),
            packing: vec![0.0; model.shapes.len()],
            best: (0.0, vec![0.0; model.shapes.len()]),
            steps: 0,
        };
        let mut order: Vec<usize> = room.admits.iter().copied().filter(|shape| prices.0[*shape] > 0.0).collect();
        order.sort_by(|a, b| {
            let share = |shape: usize| prices.0[shape] / search.rent(shape).max(f64::MIN_POSITIVE);
            share(*b).total_cmp(&share(*a)).then(a.cmp(b))
        });
        search.order = order;
        search
    }

    fn run(mut self) -> Found {
        let is_complete = self.visit(0, 0.0);
        let at_most = if is_complete { self.best.0 } else { self.linear };
        Found { value: self.best.0, packing: self.best.1, at_most: at_most.max(self.best.0) }
    }

    fn rent(&self, shape: usize) -> f64 {
        let shape = &self.model.shapes[shape];
        let of_resources: f64 = shape.requests.iter().zip(&self.rents.0).map(|(amount, rent)| amount * rent).sum();
        of_resources + shape.group.map_or(0.0, |group| self.rents.1[group])
    }

    /// What the room that is left can bring at most.
    fn worth_of_rest(&self) -> f64 {
        let room: f64 = self.left.iter().zip(&self.rents.0).map(|(left, rent)| left * rent).sum();
        room + self.places.iter().zip(&self.rents.1).map(|(left, rent)| left * rent).sum::<f64>()
    }

    /// Tries every number of pods of each shape from `nth` on, the most first. `false` if it took too long.
    fn visit(&mut self, nth: usize, value: f64) -> bool {
        if value > self.best.0 {
            self.best = (value, self.packing.clone());
        }
        self.steps += 1;
        if self.steps > MOST_STEPS {
            return false;
        }
        let Some(shape) = self.order.get(nth).copied() else { return true };
        // Rooms and rents are rounded; what is better by less than a hair is not looked for.
        if value + self.worth_of_rest() <= self.best.0 * (1.0 + 1e-9) {
            return true;
        }
        let own = &self.model.shapes[shape];
        let fitting = own.requests.iter().zip(&self.left).filter(|(asked, _)| **asked > 0.0);
        let by_room = fitting.map(|(asked, left)| (left * (1.0 + 1e-9) / asked).floor()).fold(own.count, f64::min);
        let most = own.group.map_or(by_room, |group| by_room.min(self.places[group])).max(0.0);
        let mut count = most;
        while count >= 0.0 {
            self.take(shape, count);
            let went_on = self.visit(nth + 1, value + count * self.prices.0[shape]);
            self.take(shape, -count);
            if !went_on {
                return false;
            }
            count -= 1.0;
        }
        true
    }

    fn take(&mut self, shape: usize, count: f64) {
        let own = &self.model.shapes[shape];
        self.left.iter_mut().zip(&own.requests).for_each(|(left, asked)| *left -= asked * count);
        if let Some(group) = own.group {
            self.places[group] -= count;
        }
        self.packing[shape] += count;
    }
}
