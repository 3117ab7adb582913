//! What the operator of a history has set: gates, policy, waves, what a recommendation of the cloud means.

use jiff::SignedDuration;
use kerf_api::change::Features;
use kerf_disruption::{RebalanceAction, Waves};
use kerf_engine::Settings;
use kerf_model::cloud::{RepairAction, RepairPolicy};
use kerf_model::cluster::ConditionStatus;

use crate::autoscaler::Autoscaler;
use crate::random::Random;

/// On nodes: sick in a way that takes a new one.
pub(super) const SICK: &str = "Sick";
/// On nodes: sick in a way that a reboot may cure.
pub(super) const STUCK: &str = "Stuck";

/// Each is on in every other history.
const GATES: [&str; 7] = [
    "StaticCapacity",
    "InPlaceDrift",
    "NodeRepair",
    "SpotToSpotConsolidation",
    "TerminateFirstDrift",
    "TerminateFirstRepair",
    "PodDeletionCostManagement",
];

pub(super) fn draw(random: &mut Random) -> (Settings, Features) {
    let mut settings = Autoscaler::default_settings();
    if random.one_in(4) {
        settings.choose_as_the_reference();
    }
    for gate in GATES {
        settings.set_gate(gate, random.one_in(2));
    }
    if random.one_in(10) {
        settings.set_gate("Drift", false);
    }
    settings.lifecycle.registration_hooks = random.one_in(4);
    // The cloud of the world drifts: a class may name another image, or other tags.
    settings.lifecycle.provider_drift = random.one_in(2);
    let is_legacy = random.one_in(4);
    let policies = repair_policies(random);
    // Ours are valid: a test below says so.
    let _valid = settings.repair_by(policies, is_legacy);
    settings.rebalance_by(random.of([RebalanceAction::Ignore, RebalanceAction::Cordon, RebalanceAction::Replace]));
    settings.disruption.waves = random.one_in(3).then(|| waves(random));
    let features = Features { capacity_buffers: random.one_in(2), ..Features::default() };
    (settings, features)
}

fn waves(random: &mut Random) -> Waves {
    Waves {
        percent: random.of([10, 34, 50]),
        bake: SignedDuration::from_mins(random.between(1, 20)),
        failures: if random.one_in(2) { 1 } else { 2 },
    }
}

fn repair_policies(random: &mut Random) -> Vec<RepairPolicy> {
    let policy = |condition: &str, status, reason: Option<&str>, toleration, grace, action| RepairPolicy {
        condition: condition.into(),
        status,
        reason: reason.map(Into::into),
        toleration,
        termination_grace_period: grace,
        priority: if action == RepairAction::RebootNode { 10 } else { 0 },
        action,
    };
    let any = Some(".*");
    let (replace, reboot) = (RepairAction::ReplaceNode, RepairAction::RebootNode);
    let at_once = Some(SignedDuration::ZERO);
    let graces = [None, at_once, Some(SignedDuration::from_secs(45)), Some(SignedDuration::from_mins(3))];
    let mut grace = || random.of(graces);
    let silence = SignedDuration::from_mins(10);
    let sickness = SignedDuration::from_secs(30);
    vec![
        policy("Ready", ConditionStatus::False, None, silence, at_once, replace),
        policy("Ready", ConditionStatus::Unknown, any, silence, at_once, replace),
        policy(SICK, ConditionStatus::True, any, sickness, grace(), replace),
        policy(STUCK, ConditionStatus::True, any, sickness, grace(), reboot),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_setting_is_met_within_a_few_dozen_histories() {
        let drawn: Vec<(Settings, Features)> = (0..100).map(|seed| draw(&mut Random::new(seed))).collect();
        let count = |is: fn(&Settings) -> bool| drawn.iter().filter(|(settings, _)| is(settings)).count();
        let often = [
            count(|settings| settings.disruption.policy == kerf_disruption::Policy::Compatible),
            count(|settings| settings.disruption.waves.is_some()),
            count(|settings| settings.lifecycle.legacy_repair.is_some()),
            count(|settings| settings.disruption.gates.node_repair && settings.lifecycle.legacy_repair.is_none()),
            count(|settings| settings.disruption.gates.static_capacity),
            count(|settings| settings.lifecycle.in_place_drift),
            count(|settings| !settings.lifecycle.drift),
            count(|settings| settings.disruption.rebalance == RebalanceAction::Replace),
            drawn.iter().filter(|(_, features)| features.capacity_buffers).count(),
        ];
        assert!(often.iter().all(|times| (3..97).contains(times)), "{often:?}");
    }

    #[test]
    fn the_repair_policies_can_be_used() {
        let mut settings = Autoscaler::default_settings();
        settings.set_gate("NodeRepair", true);
        for seed in 0..20 {
            assert_eq!(settings.repair_by(repair_policies(&mut Random::new(seed)), false), Ok(()));
        }
    }
}
