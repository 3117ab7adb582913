//! How many nodes of a pool may still be disrupted, per reason.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use kerf_model::budget::Allowance;
use kerf_model::cluster::condition_kind as kind;

use crate::subject::Subject;
use crate::{BudgetUse, KeepReason, Reason, View};

/// What the budgets of all pools leave, and what this round has taken of it.
pub(crate) struct Budgets {
    uses: BTreeMap<(Arc<str>, Reason), BudgetUse>,
    /// By pool: nodes that this round takes. All reasons share one counter.
    taken: BTreeMap<Arc<str>, u32>,
    pub(crate) next_transition: Option<Timestamp>,
}

#[derive(Default, Clone, Copy)]
struct Counts {
    nodes: u32,
    /// Disrupted, for whatever reason.
    going: u32,
    not_ready: u32,
}

impl Budgets {
    /// Nodes count if they are initialised and their instance is not going yet; a rebooting one counts, and is disrupted
    /// (sheet 08 D6). What is held or under way is disrupted too.
    pub(crate) fn of(view: &View<'_>, subjects: &[Subject<'_>]) -> Self {
        let mut counts: BTreeMap<&str, Counts> = BTreeMap::new();
        for subject in subjects {
            let (name, Some(pool)) = (subject.name(), &subject.pool_name) else { continue };
            if !subject.counts_in_budget() {
                continue;
            }
            let counts = counts.entry(pool).or_default();
            counts.nodes += 1;
            let is_chosen = view.memory.command_of(name).is_some() || view.memory.held_of(name).is_some();
            // What a command that was rolled back has not taken its marks off yet is still out of service.
            if subject.is_going() || subject.is_rebooting() || is_chosen || subject.is(kind::DISRUPTION_REASON) {
                counts.going += 1;
            } else if subject.node.is_some_and(|node| !node.is_ready()) {
                counts.not_ready += 1;
            }
        }
        let mut budgets = Self { uses: BTreeMap::new(), taken: BTreeMap::new(), next_transition: None };
        for stored in view.snapshot.pools().filter(|pool| view.settings.manages_class(&pool.class)) {
            let Ok(pool) = &stored.spec else { continue };
            let Counts { nodes, going, not_ready } = counts.get(&*pool.name).copied().unwrap_or_default();
            for reason in Reason::ALL {
                let allowed = pool.disruption.budgets.allowance(reason, nodes, view.now);
                let consuming = if reason == Reason::Unhealthy { going } else { going + not_ready };
                budgets.uses.insert((Arc::clone(&pool.name), reason), BudgetUse { nodes, allowed, consuming });
            }
            let next = pool.disruption.budgets.next_transition(view.now);
            budgets.next_transition = [budgets.next_transition, next].into_iter().flatten().min();
        }
        budgets
    }

    /// What is left for the reason now.
    pub(crate) fn left(&self, pool: &str, reason: Reason) -> Allowance {
        let taken = self.taken.get(pool).copied().unwrap_or(0);
        self.get(pool, reason).map_or(Allowance::AtMost(0), |using| using.remaining().minus(taken))
    }

    /// How many may go at once for the reason, whatever uses it up.
    pub(crate) fn allowance(&self, pool: &str, reason: Reason) -> Allowance {
        self.get(pool, reason).map_or(Allowance::AtMost(0), |using| using.allowed)
    }

    pub(crate) fn take(&mut self, pool: &Arc<str>) {
        *self.taken.entry(Arc::clone(pool)).or_default() += 1;
    }

    /// Why there is no room.
    pub(crate) fn spent(&self, pool: &Arc<str>, reason: Reason, kept_back: u32) -> KeepReason {
        let taken = self.taken.get(pool).copied().unwrap_or(0) + kept_back;
        let known = self.get(pool, reason).copied();
        let using = known.unwrap_or(BudgetUse { nodes: 0, allowed: Allowance::AtMost(0), consuming: 0 });
        let BudgetUse { allowed, consuming, .. } = using;
        KeepReason::BudgetSpent { pool: Arc::clone(pool), reason, allowed, consuming: consuming + taken }
    }

    pub(crate) fn into_uses(self) -> BTreeMap<(Arc<str>, Reason), BudgetUse> {
        self.uses
    }

    fn get(&self, pool: &str, reason: Reason) -> Option<&BudgetUse> {
        self.uses.get(&(Arc::from(pool), reason))
    }
}
