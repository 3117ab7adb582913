//! What an operator can set.

use std::str::FromStr;

use jiff::SignedDuration;
use kerf_model::cloud::RepairPolicy;
use kerf_model::cluster::NodeClaim;
use kerf_model::duration::GoDuration;
use kerf_model::node_pool::{ClassKind, NodeClassRef};
use kerf_model::price::Price;

#[derive(Debug, Clone)]
pub struct Settings {
    /// The node classes of our provider. Claims and pools of other kinds belong to other controllers: they get no
    /// verdict.
    pub classes: Vec<ClassKind>,
    /// `--disruption-policy`.
    pub policy: Policy,
    pub gates: Gates,
    /// How long a proposal of the consolidation family waits before it is validated.
    pub hold: SignedDuration,
    /// What a consolidation must save at least.
    pub floor: Floor,
    pub ledger: Ledger,
    /// The provider's; used with the gate `NodeRepair`.
    pub repair_policies: Vec<RepairPolicy>,
    /// Drift in waves; `None` is as fast as the budgets allow.
    pub waves: Option<Waves>,
    pub rebalance: RebalanceAction,
}

/// How nodes are chosen, within the same rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Policy {
    /// Every candidate is examined, several commands per round, savings must be worth the move.
    Best,
    /// The reference's choices: its order of methods, the first that finds work ends the round, prefix search.
    Compatible,
}

/// Feature gates, with the reference's defaults.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gates {
    pub drift: bool,
    pub node_repair: bool,
    /// Not a gate but a flag: repair is done the old way, outside of the rounds.
    pub legacy_node_repair: bool,
    pub spot_to_spot_consolidation: bool,
    pub terminate_first_drift: bool,
    pub terminate_first_repair: bool,
    pub pod_deletion_cost_management: bool,
    pub static_capacity: bool,
}

/// A consolidation that saves less than either is not worth its evictions. Zeros are the reference's rule: anything
/// cheaper.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Floor {
    /// Per hour.
    pub absolute: Price,
    /// Of what the removed nodes cost.
    pub percent: u8,
}

/// A node that replaced a replacement, and so on so many times within this time, is not replaced by yet another. It may
/// still be deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ledger {
    pub window: SignedDuration,
    /// 0 is the reference's rule: as often as it saves.
    pub moves: u32,
}

/// A roll-out of drift in steps: so many nodes of a pool, then a pause in which they must prove themselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Waves {
    /// Of the pool's nodes, rounded up; at least one node. Budgets limit a wave further.
    pub percent: u8,
    /// From the last replacement of a wave being ready to the next wave.
    pub bake: SignedDuration,
    /// Replacements that failed to become ready in one wave before the roll-out of the pool halts by itself.
    pub failures: u32,
}

/// The text names no waves.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} are no waves: write the share of a wave and the time between waves, like 10%:30m, or 10%:30m:2 to halt \
         after two failures"
)]
pub struct InvalidWaves(String);

/// `10%:30m`, and with `:2` the failures that halt a roll-out; one by default.
impl FromStr for Waves {
    type Err = InvalidWaves;

    fn from_str(text: &str) -> Result<Self, InvalidWaves> {
        let read = || {
            let mut parts = text.split(':');
            let percent =
                parts.next()?.strip_suffix('%')?.parse().ok().filter(|percent| (1..=100).contains(percent))?;
            let bake = SignedDuration::from(parts.next()?.parse::<GoDuration>().ok()?);
            let failures = parts.next().map_or(Some(1), |part| part.parse().ok().filter(|count| *count > 0))?;
            (parts.next().is_none() && !bake.is_negative()).then_some(Self { percent, bake, failures })
        };
        read().ok_or_else(|| InvalidWaves(text.to_owned()))
    }
}

/// The text names no floor.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is no floor for savings: write a share of what goes, dollars per hour, or both, like 5%, 0.01 or 5%:0.01; 0 \
         for none"
)]
pub struct InvalidFloor(String);

/// `5%:0.01`, or one of the two; the other is then nothing.
impl FromStr for Floor {
    type Err = InvalidFloor;

    fn from_str(text: &str) -> Result<Self, InvalidFloor> {
        let share = |part: &str| part.strip_suffix('%')?.parse().ok().filter(|percent| *percent < 100);
        let dollars = |part: &str| part.parse().ok().filter(|price| *price >= Price::ZERO);
        let read = || match text.split_once(':') {
            Some((percent, absolute)) => Some(Self { absolute: dollars(absolute)?, percent: share(percent)? }),
            None if text.ends_with('%') => Some(Self { absolute: Price::ZERO, percent: share(text)? }),
            None => Some(Self { absolute: dollars(text)?, percent: 0 }),
        };
        read().ok_or_else(|| InvalidFloor(text.to_owned()))
    }
}

/// What a spot rebalance recommendation means to us.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RebalanceAction {
    /// It is reported, no more. The reference's way.
    Ignore,
    /// Nothing new goes onto the node. Whoever executes rounds does it; no decision is needed.
    Cordon,
    /// The node is replaced, replacement first, within the budgets.
    Replace,
}

impl Settings {
    pub fn for_classes(classes: Vec<ClassKind>) -> Self {
        Self {
            classes,
            policy: Policy::Best,
            gates: Gates::default(),
            hold: SignedDuration::from_secs(15),
            floor: Floor::default(),
            ledger: Ledger::default(),
            repair_policies: Vec::new(),
            waves: None,
            rebalance: RebalanceAction::Ignore,
        }
    }

    /// The reference's choices: nothing that it has not.
    pub fn compatible(classes: Vec<ClassKind>) -> Self {
        Self {
            policy: Policy::Compatible,
            floor: Floor { absolute: Price::ZERO, percent: 0 },
            ledger: Ledger { moves: 0, ..Ledger::default() },
            ..Self::for_classes(classes)
        }
    }

    pub(crate) fn manages(&self, claim: &NodeClaim) -> bool {
        self.manages_class(&claim.node.class)
    }

    pub(crate) fn manages_class(&self, class: &NodeClassRef) -> bool {
        self.classes.iter().any(|kind| kind.is_of(class))
    }
}

impl Default for Gates {
    fn default() -> Self {
        Self {
            drift: true,
            node_repair: false,
            legacy_node_repair: false,
            spot_to_spot_consolidation: false,
            terminate_first_drift: false,
            terminate_first_repair: false,
            pod_deletion_cost_management: false,
            static_capacity: false,
        }
    }
}

impl Default for Floor {
    /// A tenth of a cent per hour is less than a dollar a month; below five percent a node's pods are evicted for
    /// less than the next change of prices or of load makes of it ([ADR 12](../../../docs/adr/0012-savings-of-five-percent.md)).
    fn default() -> Self {
        Self { absolute: Price::from_micros(1_000), percent: 5 }
    }
}

impl Default for Ledger {
    fn default() -> Self {
        Self { window: SignedDuration::from_hours(6), moves: 2 }
    }
}

impl Policy {
    pub const fn label(self) -> &'static str {
        match self {
            Self::Best => "best",
            Self::Compatible => "compatible",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_floor_is_a_share_an_amount_or_both() {
        let floor = |text: &str| text.parse::<Floor>().map(|floor| (floor.percent, floor.absolute.micros())).ok();
        assert_eq!(floor("5%:0.001"), Some((5, 1_000)));
        assert_eq!(floor("5%"), Some((5, 0)));
        assert_eq!(floor("0.01"), Some((0, 10_000)));
        assert_eq!(floor("0"), Some((0, 0)));
        for wrong in ["", "%", "100%", "-1%", "5%:", "0.01:5%", "5%:0.01:1", "-0.01", "much"] {
            assert_eq!(floor(wrong), None, "{wrong}");
        }
    }
}
