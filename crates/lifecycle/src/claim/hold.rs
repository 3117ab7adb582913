//! Who holds back what would happen to a claim now: switches of its pool, and maintenance windows (sheet 03 §15).

use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;
use kerf_model::cluster::NodeClaim;
use kerf_model::maintenance::Action;
use kerf_model::node_pool::NodePool;

use crate::steps::Steps;
use crate::view::View;

/// What is held back happens at once when the hold ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Hold {
    PoolDisabled,
    DisruptionOff,
    /// The pool's own switch: `expiration` or `drift`.
    SwitchedOff {
        what: &'static str,
    },
    Window {
        name: Arc<str>,
        until: Option<Timestamp>,
    },
}

impl Hold {
    pub(super) fn of_expiration(claim: &NodeClaim, view: View<'_>) -> Option<Self> {
        Self::find(claim, view, Action::Expiration, |pool| {
            (!pool.disruption.expiration_enabled).then_some("expiration")
        })
    }

    pub(super) fn of_drift(claim: &NodeClaim, view: View<'_>) -> Option<Self> {
        Self::find(claim, view, Action::Drift, |pool| (!pool.disruption.drift_enabled).then_some("drift"))
    }

    fn find(
        claim: &NodeClaim,
        view: View<'_>,
        action: Action,
        switched_off: impl Fn(&NodePool) -> Option<&'static str>,
    ) -> Option<Self> {
        // A pool that is gone or does not parse holds nothing back.
        let pool = claim.pool().and_then(|name| view.snapshot.pool(name)).and_then(|pool| pool.spec.as_ref().ok());
        if let Some(pool) = pool {
            if pool.disabled {
                return Some(Self::PoolDisabled);
            }
            if !pool.disruption.enabled {
                return Some(Self::DisruptionOff);
            }
            if let Some(what) = switched_off(pool) {
                return Some(Self::SwitchedOff { what });
            }
        }
        // Windows select nodes; before there is one, its labels to be.
        let node = view.snapshot.nodes_of(claim).next();
        let labels = node.map_or(&claim.meta.labels, |node| &node.meta.labels);
        let denying = view.snapshot.maintenance_windows().filter(|window| window.denies(action, labels, view.now));
        // All must allow it, so the one that ends last is the one to name.
        let last = denying
            .map(|window| (window.next_transition(view.now), window))
            .max_by_key(|(until, window)| (until.unwrap_or(Timestamp::MAX), window.name.clone()));
        last.map(|(until, window)| Self::Window { name: window.name.clone(), until })
    }

    /// To look again when a window ends; a change of the pool brings us back anyway.
    pub(super) fn wait(&self) -> Steps {
        match self {
            Self::Window { until: Some(until), .. } => Steps::waiting_until(*until),
            Self::Window { until: None, .. } | Self::PoolDisabled | Self::DisruptionOff | Self::SwitchedOff { .. } => {
                Steps::default()
            }
        }
    }
}

impl fmt::Display for Hold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PoolDisabled => f.write_str("its pool is disabled"),
            Self::DisruptionOff => f.write_str("its pool has disruption switched off"),
            Self::SwitchedOff { what } => write!(f, "its pool has {what} switched off"),
            Self::Window { name, until: Some(until) } => write!(f, "by maintenance window {name} until {until}"),
            Self::Window { name, until: None } => write!(f, "by maintenance window {name}"),
        }
    }
}
