//! What an operator of the scenario's cluster has set.

use std::collections::BTreeMap;

use jiff::SignedDuration;
use kerf_api::Provider;
use kerf_disruption::{RebalanceAction, Waves};
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
    /// Further feature gates, by the names that the controller knows.
    gates: BTreeMap<String, bool>,
    legacy_node_repair: bool,
    rebalance_action: RebalanceText,
    /// The cloud tells where it has put a machine some time after its launch, and the node waits for that.
    registration_hooks: bool,
    /// As of `--drift-waves`.
    drift_waves: Option<String>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
enum RebalanceText {
    #[default]
    Ignore,
    Cordon,
    Replace,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
enum PolicyText {
    #[default]
    Best,
    Compatible,
}

impl SettingsText {
    /// What is wrong with them, if anything is.
    pub fn check(&self) -> Result<(), String> {
        let mut settings = Autoscaler::default_settings();
        if let Some(gate) = self.gates.keys().find(|gate| !settings.set_gate(gate, true)) {
            return Err(format!("there is no feature gate {gate}"));
        }
        let waves = self.drift_waves.as_deref().map(str::parse::<Waves>).transpose();
        waves.map(drop).map_err(|error| error.to_string())
    }

    pub fn settings(&self, provider: Provider) -> Settings {
        let mut settings = Autoscaler::settings_for(provider);
        if self.disruption_policy == PolicyText::Compatible {
            settings.disruption = kerf_disruption::Settings::compatible(settings.lifecycle.classes.clone());
        }
        let gates = &mut settings.disruption.gates;
        gates.spot_to_spot_consolidation = self.spot_to_spot_consolidation;
        gates.node_repair = self.node_repair;
        gates.static_capacity = self.static_capacity;
        gates.drift = self.drift.unwrap_or(true);
        settings.lifecycle.static_capacity = self.static_capacity;
        settings.lifecycle.drift = self.drift.unwrap_or(true);
        // The cloud of the world drifts: a class may name another image.
        settings.lifecycle.provider_drift = true;
        settings.lifecycle.registration_hooks = self.registration_hooks;
        for (gate, on) in &self.gates {
            settings.set_gate(gate, *on);
        }
        // Ours are valid: a test of the scenarios says so.
        let _valid = settings.repair_by(repair_policies(), self.legacy_node_repair);
        settings.rebalance_by(match self.rebalance_action {
            RebalanceText::Ignore => RebalanceAction::Ignore,
            RebalanceText::Cordon => RebalanceAction::Cordon,
            RebalanceText::Replace => RebalanceAction::Replace,
        });
        settings.disruption.waves = self.drift_waves.as_ref().and_then(|text| text.parse().ok());
        settings
    }
}

/// A node that is not ready for ten minutes, or says that it is sick for half a minute, is replaced. One that says that
/// it is stuck for half a minute is rebooted.
fn repair_policies() -> Vec<RepairPolicy> {
    let policy = |condition: &str, status, reason: Option<&str>, toleration, action| RepairPolicy {
        condition: condition.into(),
        status,
        reason: reason.map(Into::into),
        toleration,
        termination_grace_period: Some(SignedDuration::ZERO),
        priority: 0,
        action,
    };
    vec![
        policy("Ready", ConditionStatus::False, None, SignedDuration::from_mins(10), RepairAction::ReplaceNode),
        policy("Sick", ConditionStatus::True, Some(".*"), SignedDuration::from_secs(30), RepairAction::ReplaceNode),
        policy("Stuck", ConditionStatus::True, Some(".*"), SignedDuration::from_secs(30), RepairAction::RebootNode),
    ]
}
