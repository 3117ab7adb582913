//! What an operator can set.

use jiff::SignedDuration;
use kerf_disruption::{InvalidPolicies, RebalanceAction, RepairPolicies};
use kerf_lifecycle::claim::health::LegacyRepair;
use kerf_model::cloud::RepairPolicy;
use kerf_model::label::LabelRules;

#[derive(Debug, Clone)]
pub struct Settings {
    pub lifecycle: kerf_lifecycle::Settings,
    pub disruption: kerf_disruption::Settings,
    pub scheduling: kerf_scheduling::Options,
    pub labels: LabelRules,
    /// Prices and extended resources of instance types may be corrected (the gate `NodeOverlay`).
    pub node_overlays: bool,
    /// Room may be kept free (the gate `CapacityBuffer`).
    pub capacity_buffers: bool,
    /// What pods without spread constraints get (`--scheduler-config`).
    pub default_spread: kerf_scheduling::DefaultSpread,
    /// A batch closes when no new pod has come for this long (`--batch-idle-duration`).
    pub batch_idle: SignedDuration,
    /// A batch closes this long after its first pod, whatever comes (`--batch-max-duration`).
    pub batch_max: SignedDuration,
}

impl Settings {
    /// The reference's numbers.
    pub fn new(lifecycle: kerf_lifecycle::Settings, labels: LabelRules) -> Self {
        let disruption = kerf_disruption::Settings::for_classes(lifecycle.classes.clone());
        Self {
            lifecycle,
            disruption,
            scheduling: kerf_scheduling::Options::default(),
            labels,
            node_overlays: false,
            capacity_buffers: false,
            default_spread: kerf_scheduling::DefaultSpread::default(),
            batch_idle: SignedDuration::from_secs(1),
            batch_max: SignedDuration::from_secs(10),
        }
    }

    /// Which nodes are chosen for disruption is as the reference would have it (`--disruption-policy compatible`).
    pub fn choose_as_the_reference(&mut self) {
        let compatible = kerf_disruption::Settings::compatible(self.disruption.classes.clone());
        let own = &mut self.disruption;
        let (gates, rebalance, waves) = (own.gates, own.rebalance, own.waves);
        let repair_policies = std::mem::take(&mut own.repair_policies);
        self.disruption = kerf_disruption::Settings { gates, rebalance, waves, repair_policies, ..compatible };
    }

    /// How sick nodes are repaired with the gate `NodeRepair`: by the provider's policies, or the old way
    /// (`--legacy-node-repair`). To be called when the gates are set.
    ///
    /// # Errors
    /// The policies cannot be used. The old way takes them as they are.
    pub fn repair_by(&mut self, policies: Vec<RepairPolicy>, old_way: bool) -> Result<(), InvalidPolicies> {
        let gates = &mut self.disruption.gates;
        gates.legacy_node_repair = old_way;
        if gates.node_repair && old_way {
            self.lifecycle.legacy_repair = Some(LegacyRepair::new(&policies));
        }
        if gates.node_repair && !old_way {
            RepairPolicies::new(&policies)?;
        }
        self.disruption.repair_policies = policies;
        Ok(())
    }

    /// What a recommendation to leave a spot node means (`--rebalance-action`).
    pub fn rebalance_by(&mut self, action: RebalanceAction) {
        self.disruption.rebalance = action;
        self.lifecycle.rebalance_cordons = action == RebalanceAction::Cordon;
    }

    /// Switches a feature gate of disruption or of the lifecycle, by the reference's name. Whether there is one.
    pub fn set_gate(&mut self, name: &str, on: bool) -> bool {
        let gates = &mut self.disruption.gates;
        match name {
            "Drift" => (self.lifecycle.drift, gates.drift) = (on, on),
            "StaticCapacity" => (self.lifecycle.static_capacity, gates.static_capacity) = (on, on),
            "InPlaceDrift" => self.lifecycle.in_place_drift = on,
            "NodeRepair" => gates.node_repair = on,
            "SpotToSpotConsolidation" => gates.spot_to_spot_consolidation = on,
            "TerminateFirstDrift" => gates.terminate_first_drift = on,
            "PodDeletionCostManagement" => {
                (self.lifecycle.manages_deletion_cost, gates.pod_deletion_cost_management) = (on, on);
            }
            "TerminateFirstRepair" => gates.terminate_first_repair = on,
            _ => return false,
        }
        true
    }
}
