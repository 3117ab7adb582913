//! Rules that the autoscaler breaks on purpose.

use std::sync::Arc;

use jiff::SignedDuration;
use kerf_model::budget::BudgetList;
use kerf_model::change::{Change, Input};
use kerf_model::cluster::InstanceType;
use kerf_model::effect::{ClaimPatch, Effect, MetaPatch};
use kerf_model::label::annotation;
use kerf_model::price::Price;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mutation {
    /// Pods are deleted where they should be evicted.
    SkipBudgets,
    /// The finalizer goes before the instance.
    ForgetFinalizer,
    /// The cloud makes an instance each time it is asked.
    LaunchTwice,
    /// The budgets of pools are taken for unlimited.
    IgnoreNodeBudgets,
    /// Maintenance windows are not heard of.
    IgnoreWindows,
    /// A claim that is marked to go is deleted at once, whatever it waits for.
    DeleteAtOnce,
    /// What is dear is taken for cheap, and the other way round.
    MisreadPrices,
}

/// A dollar times a dollar: what costs half of one is taken for two.
const SQUARE: i64 = 1_000_000_000_000;

impl Mutation {
    /// What is heard instead.
    pub(crate) fn mishear(self, input: Input) -> Option<Input> {
        match (self, input) {
            (Self::IgnoreWindows, Input::Change(Change::MaintenanceWindow(..))) => None,
            (Self::IgnoreNodeBudgets, Input::Change(Change::NodePool(name, Some(mut pool)))) => {
                // Just read, and nobody else's yet.
                if let Some(Ok(spec)) = Arc::get_mut(&mut pool).map(|pool| &mut pool.spec) {
                    spec.disruption.budgets = BudgetList::default();
                }
                Some(Input::Change(Change::NodePool(name, Some(pool))))
            }
            (Self::MisreadPrices, Input::Catalogue(mut types)) => {
                for types in types.values_mut() {
                    *types = types.iter().cloned().map(turned_round).collect();
                }
                Some(Input::Catalogue(types))
            }
            (_, input) => Some(input),
        }
    }

    /// What is done on top of it.
    pub(crate) fn add(self, effect: &Effect) -> Option<Effect> {
        match (self, effect) {
            (Self::DeleteAtOnce, Effect::PatchClaim(claim, patch)) => {
                let is_marked = patch.meta.annotations.get(annotation::COMMAND).is_some_and(Option::is_some);
                is_marked.then(|| Effect::DeleteClaim(claim.clone()))
            }
            (_, _) => None,
        }
    }

    /// What is done instead.
    pub(crate) fn spoil(self, effect: Effect) -> Effect {
        match (self, effect) {
            (Self::SkipBudgets, Effect::EvictPod(pod, why)) => {
                Effect::DeletePod(pod, SignedDuration::from_secs(30), why)
            }
            (Self::ForgetFinalizer, Effect::Terminate { claim, .. }) => {
                let patch = ClaimPatch {
                    meta: MetaPatch { finalizers: Some(Vec::new()), ..MetaPatch::default() },
                    ..ClaimPatch::default()
                };
                Effect::PatchClaim(claim, Box::new(patch))
            }
            (_, effect) => effect,
        }
    }
}

fn turned_round(mut kind: InstanceType) -> InstanceType {
    for offering in &mut kind.offerings {
        offering.price = Price::from_micros(SQUARE / offering.price.micros().max(1));
    }
    kind
}
