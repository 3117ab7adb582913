//! How many nodes of a pool go at once.

use jiff::Timestamp;
use kerf_model::budget::{Allowance, Budget, BudgetText, DisruptionReason};

use super::super::choice::{Choice, chosen_for};
use super::Chosen;
use crate::checkers::Broken;
use crate::store::{Kind, Object, Store};

pub(super) fn check(choice: &Choice<'_>, chosen: &Chosen) -> Option<Broken> {
    let pool = choice.pool.as_ref()?;
    // A node that is not whole has nothing to spend.
    if choice.reason == "Unhealthy" && !choice.claim.is_condition_true("Initialized") {
        return None;
    }
    let nodes = choice.nodes_of_pool();
    let allowance = |reason: &str| allowance(pool, reason, nodes, choice.chosen_at).unwrap_or(usize::MAX);
    let allowed = allowance(choice.reason);
    // What was decided together has no order: any that keeps all budgets will do, the strictest first.
    let is_after = |other: &Object| {
        chosen.get(other.uid()) == Some(&Some(choice.act.decided))
            && chosen_for(other).is_some_and(|reason| allowance(reason) > allowed)
    };
    let is_out = |claim: &&Object| chosen_for(claim).is_some() || claim.is_condition_true("Rebooting");
    let disrupted = choice
        .store
        .all(Kind::NodeClaim)
        .filter(|claim| choice.is_of_pool(claim))
        .filter(|claim| is_out(claim) && !claim.is_condition_true("InstanceTerminating"))
        // A node that is gone is not disrupted any more, whatever its claim says yet.
        .filter(|claim| has_node(claim, choice.store) && !is_after(claim))
        .count();
    (disrupted > allowed).then(|| Broken::NodeBudgetExceeded {
        pool: choice.pool_name.to_owned(),
        reason: choice.reason.to_owned(),
        disrupted,
        allowed,
    })
}

fn has_node(claim: &Object, store: &Store) -> bool {
    let id = claim.text(&["status", "providerID"]);
    store.all(Kind::Node).any(|node| id.is_some() && node.text(&["spec", "providerID"]) == id)
}

/// How many nodes of the pool the strictest of its budgets leaves to this reason; `None` is any number.
fn allowance(pool: &Object, reason: &str, nodes: usize, at: Timestamp) -> Option<usize> {
    let nodes = u32::try_from(nodes).unwrap_or(u32::MAX);
    let default = [serde_json::json!({"nodes": "10%"})];
    let budgets = match pool.at(&["spec", "disruption", "budgets"]) {
        Some(_) => pool.list(&["spec", "disruption", "budgets"]),
        None => &default,
    };
    let allowances = budgets.iter().filter_map(|budget| {
        let text = |name: &str| budget[name].as_str();
        let reasons: Vec<&str> =
            budget["reasons"].as_array().into_iter().flatten().filter_map(|it| it.as_str()).collect();
        let parsed = Budget::parse(BudgetText {
            nodes: text("nodes").unwrap_or("10%"),
            reasons: &reasons,
            schedule: text("schedule"),
            duration: text("duration"),
            time_zone: text("timeZone"),
        });
        let reason: DisruptionReason = reason.parse().ok()?;
        match parsed {
            Ok(budget) if !budget.reasons.include(reason) => None,
            Ok(budget) => match budget.allowance(nodes, at) {
                Allowance::Unlimited => None,
                Allowance::AtMost(count) => Some(count),
            },
            Err(_) => Some(0),
        }
    });
    allowances.min().map(|count| usize::try_from(count).unwrap_or(usize::MAX))
}
