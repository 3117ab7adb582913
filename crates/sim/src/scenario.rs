//! A scenario: the objects of a cluster, what happens to them and when, and what must be seen.
//!
//! Written as YAML in `scenarios/`; the same file drives `kerf demo`, `kerf simulate` and the tests. [`Scenario::read`]
//! turns the text into values or says what is wrong and on which line; [`Run`] plays it.

mod expectation;
mod read;
mod run;
mod settings;
mod value;

use std::collections::BTreeMap;

use jiff::SignedDuration;
use kerf_api::Provider;
use kerf_api::change::Features;
use kerf_cloud::Catalogue;
use kerf_model::cloud::InterruptionCause;
use kerf_model::cluster::ObjectName;
use serde_json::Value;

pub use expectation::{Expectation, Finding, Outlook, When};
pub use read::ScenarioError;
pub use run::{Run, RunError, Summary};
pub use value::{Amount, parse_duration};

use crate::autoscaler::Shortage;
use crate::store::Kind;
use crate::world::Truth;
use settings::SettingsText;

/// The scenarios that come with Kerf, by name. The first is the one to start with.
const BUILT_IN: &[(&str, &str)] = &[
    ("welcome", include_str!("../../../scenarios/welcome.yaml")),
    ("provisioning", include_str!("../../../scenarios/provisioning.yaml")),
    ("delete-node", include_str!("../../../scenarios/delete-node.yaml")),
    ("delete-nodeclaim", include_str!("../../../scenarios/delete-nodeclaim.yaml")),
    ("delete-nodepool", include_str!("../../../scenarios/delete-nodepool.yaml")),
    ("expiry", include_str!("../../../scenarios/expiry.yaml")),
    ("protected-pods", include_str!("../../../scenarios/protected-pods.yaml")),
    ("node-overlay", include_str!("../../../scenarios/node-overlay.yaml")),
    ("consolidation", include_str!("../../../scenarios/consolidation.yaml")),
    ("drift", include_str!("../../../scenarios/drift.yaml")),
    ("capacity-buffer", include_str!("../../../scenarios/capacity-buffer.yaml")),
    ("launch-failures", include_str!("../../../scenarios/launch-failures.yaml")),
    ("registration-hook", include_str!("../../../scenarios/registration-hook.yaml")),
    ("restart", include_str!("../../../scenarios/restart.yaml")),
    ("disruption/balanced", include_str!("../../../scenarios/disruption/balanced.yaml")),
    ("disruption/blocked", include_str!("../../../scenarios/disruption/blocked.yaml")),
    ("disruption/blocked-for-now", include_str!("../../../scenarios/disruption/blocked-for-now.yaml")),
    ("disruption/budgets", include_str!("../../../scenarios/disruption/budgets.yaml")),
    ("disruption/churn", include_str!("../../../scenarios/disruption/churn.yaml")),
    ("disruption/drift-storm", include_str!("../../../scenarios/disruption/drift-storm.yaml")),
    ("disruption/empty-nodes", include_str!("../../../scenarios/disruption/empty-nodes.yaml")),
    ("disruption/failing-pool", include_str!("../../../scenarios/disruption/failing-pool.yaml")),
    ("disruption/in-place-drift", include_str!("../../../scenarios/disruption/in-place-drift.yaml")),
    ("disruption/in-place-aws", include_str!("../../../scenarios/disruption/in-place-aws.yaml")),
    ("disruption/interruption", include_str!("../../../scenarios/disruption/interruption.yaml")),
    ("disruption/legacy-repair", include_str!("../../../scenarios/disruption/legacy-repair.yaml")),
    ("disruption/rebalance", include_str!("../../../scenarios/disruption/rebalance.yaml")),
    ("disruption/reboot", include_str!("../../../scenarios/disruption/reboot.yaml")),
    ("disruption/repair", include_str!("../../../scenarios/disruption/repair.yaml")),
    ("disruption/repair-breaker", include_str!("../../../scenarios/disruption/repair-breaker.yaml")),
    ("disruption/spot-kept", include_str!("../../../scenarios/disruption/spot-kept.yaml")),
    ("disruption/spot-to-spot", include_str!("../../../scenarios/disruption/spot-to-spot.yaml")),
    ("disruption/static-drift", include_str!("../../../scenarios/disruption/static-drift.yaml")),
    ("disruption/terminate-first", include_str!("../../../scenarios/disruption/terminate-first.yaml")),
    ("disruption/three-into-one", include_str!("../../../scenarios/disruption/three-into-one.yaml")),
    ("disruption/waves", include_str!("../../../scenarios/disruption/waves.yaml")),
    ("disruption/waves-halt", include_str!("../../../scenarios/disruption/waves-halt.yaml")),
    ("mission/000-drift-fields", include_str!("../../../scenarios/mission/000-drift-fields.yaml")),
    ("mission/000-drift-fields-aws", include_str!("../../../scenarios/mission/000-drift-fields-aws.yaml")),
    ("mission/001-upgrade", include_str!("../../../scenarios/mission/001-upgrade.yaml")),
    ("mission/002-toggles", include_str!("../../../scenarios/mission/002-toggles.yaml")),
    ("mission/002-truth-table", include_str!("../../../scenarios/mission/002-truth-table.yaml")),
    ("mission/002-window-actions", include_str!("../../../scenarios/mission/002-window-actions.yaml")),
    ("mission/002-windows", include_str!("../../../scenarios/mission/002-windows.yaml")),
    ("mission/003-budgets", include_str!("../../../scenarios/mission/003-budgets.yaml")),
    ("mission/003-consolidation-order", include_str!("../../../scenarios/mission/003-consolidation-order.yaml")),
    ("mission/003-consolidation-policies", include_str!("../../../scenarios/mission/003-consolidation-policies.yaml")),
    ("mission/003-drift-and-expiration", include_str!("../../../scenarios/mission/003-drift-and-expiration.yaml")),
    ("mission/003-excluded", include_str!("../../../scenarios/mission/003-excluded.yaml")),
    ("mission/003-interruption", include_str!("../../../scenarios/mission/003-interruption.yaml")),
    ("mission/003-manual-deletion", include_str!("../../../scenarios/mission/003-manual-deletion.yaml")),
    ("mission/003-spot-consolidation", include_str!("../../../scenarios/mission/003-spot-consolidation.yaml")),
    (
        "mission/003-termination-grace-period",
        include_str!("../../../scenarios/mission/003-termination-grace-period.yaml"),
    ),
    ("mission/004-automated", include_str!("../../../scenarios/mission/004-automated.yaml")),
    ("mission/004-delete-or-replace", include_str!("../../../scenarios/mission/004-delete-or-replace.yaml")),
    ("mission/004-finalizer", include_str!("../../../scenarios/mission/004-finalizer.yaml")),
    ("mission/004-node-deletion", include_str!("../../../scenarios/mission/004-node-deletion.yaml")),
    ("mission/004-preferences", include_str!("../../../scenarios/mission/004-preferences.yaml")),
    ("mission/004-provisioner-deletion", include_str!("../../../scenarios/mission/004-provisioner-deletion.yaml")),
];

#[derive(Debug, Clone, PartialEq)]
pub struct Scenario {
    /// Where it was read from, for messages.
    pub file: String,
    pub name: String,
    pub description: String,
    pub seed: u64,
    pub catalogue: CatalogueName,
    /// What is switched on that is off by default.
    pub features: Features,
    pub duration: SignedDuration,
    settings: SettingsText,
    objects: Vec<Manifest>,
    /// In the order of their times.
    actions: Vec<TimedAction>,
    expectations: Vec<Expectation>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CatalogueName {
    #[default]
    Kwok,
    Ec2Like,
}

impl CatalogueName {
    fn load(self) -> Catalogue {
        match self {
            Self::Kwok => Catalogue::kwok(),
            Self::Ec2Like => Catalogue::ec2_like(),
        }
    }
}

/// An object to be applied, and the line it stands on.
#[derive(Debug, Clone, PartialEq)]
struct Manifest {
    line: u64,
    kind: Kind,
    body: Value,
}

#[derive(Debug, Clone, PartialEq)]
struct TimedAction {
    line: u64,
    at: SignedDuration,
    /// What the timeline says instead of what is done.
    note: Option<String>,
    action: Action,
}

#[derive(Debug, Clone, PartialEq)]
enum Action {
    Apply(Vec<Manifest>),
    Delete(Reference),
    Scale {
        kind: Kind,
        name: ObjectName,
        replicas: u32,
    },
    Patch {
        target: Reference,
        merge: Value,
    },
    /// The cloud takes a node's machine, and says why.
    Interrupt(Reference, InterruptionCause),
    /// The cloud advises to leave the node, and takes nothing back.
    Recommend(Reference),
    /// The process dies, and comes back after this.
    Restart(SignedDuration),
    /// What the cloud has none of from now on.
    Shortage(Vec<Shortage>),
    /// A node says something of itself.
    SetCondition {
        target: Reference,
        type_: String,
        status: Truth,
        reason: String,
    },
}

/// An object by its name, or by its age where names are made up by the cluster.
#[derive(Debug, Clone, PartialEq)]
struct Reference {
    kind: Kind,
    which: Which,
    /// Of those with these labels.
    labels: BTreeMap<String, String>,
    /// What the rest of the script calls it.
    alias: Option<String>,
}

#[derive(Debug, Clone, PartialEq)]
enum Which {
    Named(ObjectName),
    /// By what the script called it before.
    Known(String),
    Oldest,
    Newest,
    All,
}

impl Scenario {
    /// Reads the text of a scenario. `file` is only for messages.
    pub fn read(file: &str, text: &str) -> Result<Self, ScenarioError> {
        read::read(file, text)
    }

    /// Whose node classes its pools name: AWS's if it begins with one of them.
    fn provider(&self) -> Provider {
        match self.objects.iter().any(|object| object.kind == Kind::Ec2NodeClass) {
            true => Provider::Aws,
            false => Provider::Kwok,
        }
    }

    /// A scenario that comes with Kerf; `None` if there is none of this name.
    pub fn built_in(name: &str) -> Option<Result<Self, ScenarioError>> {
        let (_, text) = BUILT_IN.iter().find(|(known, _)| *known == name)?;
        Some(Self::read(&format!("scenarios/{name}.yaml"), text))
    }

    /// The names of the scenarios that come with Kerf.
    pub fn built_in_names() -> impl Iterator<Item = &'static str> {
        BUILT_IN.iter().map(|(name, _)| *name)
    }
}
