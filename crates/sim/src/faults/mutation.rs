//! Rules that the autoscaler breaks on purpose.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use kerf_engine::Settings;
use kerf_model::budget::{BudgetList, DisruptionReason};
use kerf_model::change::{Change, Input};
use kerf_model::cluster::{ConditionStatus, DoNotDisrupt, InstanceType, Node, condition_kind};
use kerf_model::effect::{ClaimPatch, Effect, MetaPatch};
use kerf_model::label::{self, LabelRules, annotation, taint_key};
use kerf_model::node_pool::{NodePool, PoolSize};
use kerf_model::price::Price;
use kerf_model::requirement::{Requirement, Requirements};
use kerf_model::resources::ResourceList;

use crate::store::{Kind, Object, Store};

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
    /// Replacements that nobody needs stay.
    KeepReplacements,
    /// Taints come, and do not go.
    KeepTaints,
    /// Marks on claims come, and do not go.
    KeepMarks,
    /// Nobody asks for a node to be left alone.
    IgnoreProtectedNodes,
    /// Nobody asks for a pod to be left alone.
    IgnoreProtectedPods,
    /// Pools have no limits.
    IgnoreLimits,
    /// Pools have nothing switched off.
    IgnoreSwitches,
    /// Static pools want one node less than they say.
    ShrinkTooFar,
    /// Static pools are taken for others.
    TakeStaticForDynamic,
    /// A replacement that is to save money is launched as the largest machine that there is.
    LaunchDear,
    /// Every other pod is not heard of before it runs.
    OverlookPods,
    /// What is dear becomes cheap, and the other way round, every few minutes.
    SwingPrices,
    /// Drift knows no waves.
    IgnoreWaves,
    /// A roll-out goes on, however often it has failed.
    IgnoreFailures,
    /// Nodes are repaired as soon as they say that they are sick.
    RepairAtOnce,
    /// Only some nodes' sickness is heard of, and so never that of too many.
    OverlookSickness,
    /// Claims go that have nothing the matter with them.
    DeleteHealthy,
    /// What somebody else wrote as a deletion cost is taken for our own.
    TakeCostsForOurs,
}

/// A dollar times a dollar: what costs half of one is taken for two.
const SQUARE: i64 = 1_000_000_000_000;

/// Longer than a consolidation is held.
const SWING: i64 = 5 * 60;

/// The largest of the world's machines.
const LARGEST: &str = "m-256x-amd64-linux";

impl Mutation {
    /// What it is set to instead.
    pub(crate) fn settings(self, mut settings: Settings) -> Settings {
        let own = &mut settings.disruption;
        if self == Self::IgnoreWaves {
            own.waves = None;
        }
        if let Some(waves) = own.waves.as_mut().filter(|_| self == Self::IgnoreFailures) {
            waves.failures = u32::MAX;
        }
        if self == Self::RepairAtOnce {
            own.repair_policies.iter_mut().for_each(|policy| policy.toleration = SignedDuration::ZERO);
        }
        if self == Self::SwingPrices {
            // What would calm it is off.
            own.ledger.moves = 0;
        }
        settings
    }

    /// What is heard instead.
    pub(crate) fn mishear(self, input: Input) -> Option<Input> {
        let change = match input {
            Input::Change(change) => change,
            Input::Catalogue(mut types) if self == Self::MisreadPrices => {
                for types in types.values_mut() {
                    *types = types.iter().cloned().map(turned_round).collect();
                }
                return Some(Input::Catalogue(types));
            }
            other => return Some(other),
        };
        // What was just read is nobody else's yet.
        let change = match change {
            Change::MaintenanceWindow(..) if self == Self::IgnoreWindows => return None,
            Change::NodePool(name, Some(mut pool)) => {
                if let Some(Ok(spec)) = Arc::get_mut(&mut pool).map(|pool| &mut pool.spec) {
                    self.misread_pool(spec);
                }
                Change::NodePool(name, Some(pool))
            }
            Change::Node(name, Some(mut node)) => {
                if let Some(node) = Arc::get_mut(&mut node) {
                    self.misread_node(node);
                }
                Change::Node(name, Some(node))
            }
            Change::Pod(name, Some(mut pod)) => {
                let is_waiting = pod.node_name.is_none() && pod.meta.uid.ends_with(|last: char| last.is_ascii_digit());
                if self == Self::OverlookPods && is_waiting {
                    return None;
                }
                if let Some(pod) = Arc::get_mut(&mut pod) {
                    if self == Self::IgnoreProtectedPods {
                        pod.do_not_disrupt = DoNotDisrupt::No;
                    }
                    let cost = pod.meta.annotations.get(annotation::POD_DELETION_COST).cloned();
                    if let Some(cost) = cost.filter(|_| self == Self::TakeCostsForOurs) {
                        pod.meta.annotations.insert(Arc::from(annotation::OUR_COST), cost);
                    }
                }
                Change::Pod(name, Some(pod))
            }
            other => other,
        };
        Some(Input::Change(change))
    }

    fn misread_pool(self, pool: &mut NodePool) {
        if self == Self::IgnoreNodeBudgets {
            pool.disruption.budgets = BudgetList::default();
        }
        if self == Self::IgnoreLimits {
            pool.limits = ResourceList::new();
        }
        if self == Self::IgnoreSwitches {
            pool.disabled = false;
            pool.disruption.enabled = true;
            pool.disruption.consolidation_enabled = true;
            pool.disruption.drift_enabled = true;
            pool.disruption.expiration_enabled = true;
        }
        if let PoolSize::Static { replicas } = &mut pool.size {
            if self == Self::ShrinkTooFar {
                *replicas = replicas.saturating_sub(1);
            }
            if self == Self::TakeStaticForDynamic {
                pool.size = PoolSize::Dynamic;
            }
        }
    }

    fn misread_node(self, node: &mut Node) {
        if self == Self::IgnoreProtectedNodes {
            node.meta.annotations.retain(|key, _| !key.starts_with("karpenter.sh/do-not-"));
        }
        if self == Self::OverlookSickness && node.meta.uid.ends_with(|last: char| last.is_ascii_digit()) {
            node.conditions.retain(|known| &*known.kind == "Ready" || known.status != ConditionStatus::True);
        }
    }

    /// What is done on top of it.
    pub(crate) fn add(self, effect: &Effect, store: &Store) -> Option<Effect> {
        let Effect::PatchClaim(target, patch) = effect else { return None };
        let delete = || Effect::DeleteClaim(target.clone());
        if self == Self::DeleteAtOnce {
            let is_marked = patch.meta.annotations.get(annotation::COMMAND).is_some_and(Option::is_some);
            return is_marked.then(delete);
        }
        let claim = store.get(Kind::NodeClaim, &target.name).ok().filter(|_| self == Self::DeleteHealthy)?;
        (claim.is_condition_true("Consolidatable") && !is_marked(claim)).then(delete)
    }

    /// What is done instead.
    pub(crate) fn spoil(self, effect: Effect, store: &Store) -> Option<Effect> {
        let effect = match (self, effect) {
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
            (Self::KeepReplacements, Effect::DeleteClaim(target)) => {
                let claim = store.get(Kind::NodeClaim, &target.name).ok();
                let is_replacement =
                    claim.is_some_and(|claim| claim.text(&["metadata", "annotations", annotation::REPLACES]).is_some());
                return (!is_replacement).then_some(Effect::DeleteClaim(target));
            }
            (Self::KeepTaints, Effect::PatchNode(target, patch)) => {
                let keys = [taint_key::DISRUPTED, taint_key::REBOOTING];
                let stays = patch.taints.as_ref().is_none_or(|taints| {
                    let node = store.get(Kind::Node, &target.name).ok();
                    let tainted = node.into_iter().flat_map(|node| node.list(&["spec", "taints"]));
                    let ours = tainted.filter(|taint| keys.iter().any(|key| taint["key"] == *key)).count();
                    taints.iter().filter(|taint| keys.contains(&&*taint.key)).count() >= ours
                });
                return stays.then_some(Effect::PatchNode(target, patch));
            }
            (Self::KeepMarks, Effect::PatchClaim(target, patch)) => {
                let claim = store.get(Kind::NodeClaim, &target.name).ok();
                let loses_mark = patch.status.conditions.as_ref().is_some_and(|conditions| {
                    conditions.get(condition_kind::DISRUPTION_REASON).is_none() && claim.is_some_and(is_marked)
                });
                return (!loses_mark).then_some(Effect::PatchClaim(target, patch));
            }
            (Self::LaunchDear, Effect::CreateClaim(mut new))
                if new.replaces_for == Some(DisruptionReason::Underutilized) =>
            {
                let mut requirements = Requirements::new();
                requirements.add(Requirement::one_of(label::INSTANCE_TYPE, [LARGEST]), &LabelRules::core());
                new.node.requirements = requirements;
                Effect::CreateClaim(new)
            }
            (_, effect) => effect,
        };
        Some(effect)
    }

    /// Which edition of the prices holds, and when the next does.
    pub(crate) fn swing(self, now: Timestamp) -> Option<(u64, Timestamp)> {
        let swings = now.as_second().div_euclid(SWING);
        let next = Timestamp::from_second((swings + 1) * SWING).ok()?;
        (self == Self::SwingPrices).then_some((u64::try_from(swings).unwrap_or(0), next))
    }
}

fn is_marked(claim: &Object) -> bool {
    claim.is_condition_true(condition_kind::DISRUPTION_REASON)
}

pub(crate) fn turned_round(mut kind: InstanceType) -> InstanceType {
    for offering in &mut kind.offerings {
        offering.price = Price::from_micros(SQUARE / offering.price.micros().max(1));
    }
    kind
}
