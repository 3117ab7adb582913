//! What an operator of the scenario's cluster has set.

use jiff::SignedDuration;
use kerf_engine::Settings;
use kerf_model::cloud::{RepairAction, RepairPolicy};
use kerf_model::cluster::ConditionStatus;
use serde::Deserialize;

use crate::autoscaler::Autoscaler;

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct SettingsText {
    spot_to_spot_consolidation: bool,
    node_repair: bool,
    static_capacity: bool,
    /// The gate `Drift`.
    drift: Option<bool>,
    disruption_policy: PolicyText,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
enum PolicyText {
    #[default]
    Best,
    Compatible,
}

impl SettingsText {
    pub fn settings(&self) -> Settings {
        let mut settings = Autoscaler::default_settings();
        if self.disruption_policy == PolicyText::Compatible {
            settings.disruption = kerf_disruption::Settings::compatible(settings.lifecycle.classes.clone());
        }
        settings.disruption.repair_policies = repair_policies();
        let gates = &mut settings.disruption.gates;
        gates.spot_to_spot_consolidation = self.spot_to_spot_consolidation;
        gates.node_repair = self.node_repair;
        gates.static_capacity = self.static_capacity;
        gates.drift = self.drift.unwrap_or(true);
        settings.lifecycle.static_capacity = self.static_capacity;
        settings.lifecycle.drift = self.drift.unwrap_or(true);
        // The cloud of the world drifts: a class may name another image.
        settings.lifecycle.provider_drift = true;
        settings
    }
}

/// A node that is not ready for ten minutes, or says that it is sick for half a minute, is replaced.
fn repair_policies() -> Vec<RepairPolicy> {
    let policy = |condition: &str, status, reason: Option<&str>, toleration| RepairPolicy {
        condition: condition.into(),
        status,
        reason: reason.map(Into::into),
        toleration,
        termination_grace_period: Some(SignedDuration::ZERO),
        priority: 0,
        action: RepairAction::ReplaceNode,
    };
    vec![
        policy("Ready", ConditionStatus::False, None, SignedDuration::from_mins(10)),
        policy("Sick", ConditionStatus::True, Some(".*"), SignedDuration::from_secs(30)),
    ]
}
