//! Expiration: a claim's time is over, whatever runs on its node (sheet 04 §3; held back as in sheet 03 §15).

use std::fmt;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use kerf_model::cluster::NodeClaim;
use kerf_model::maintenance::Action;

use crate::events;
use crate::steps::{Cause, Steps};
use crate::view::{View, later};

/// Where a claim stands in its life.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expiry {
    Never,
    At(Timestamp),
    Due,
    /// Overdue, and somebody wants it to wait.
    Held(Hold),
}

/// Who holds an expiration back. It happens at once when the hold ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Hold {
    PoolDisabled,
    DisruptionOff,
    ExpirationOff,
    Window { name: Arc<str>, until: Option<Timestamp> },
}

pub fn judge(claim: &NodeClaim, view: View<'_>) -> Expiry {
    let Some(lifetime) = claim.node.expire_after.duration() else { return Expiry::Never };
    let end = later(claim.meta.created, SignedDuration::from(lifetime));
    if view.now < end {
        return Expiry::At(end);
    }
    hold(claim, view).map_or(Expiry::Due, Expiry::Held)
}

pub(super) fn cause(claim: &NodeClaim, view: View<'_>) -> Option<Cause> {
    (judge(claim, view) == Expiry::Due).then_some(Cause::Expired)
}

pub(super) fn wait(claim: &NodeClaim, view: View<'_>) -> Steps {
    match judge(claim, view) {
        Expiry::Never | Expiry::Due => Steps::default(),
        Expiry::At(end) => Steps::waiting_until(end),
        Expiry::Held(hold) => {
            let wake = match &hold {
                Hold::Window { until, .. } => *until,
                // A change of the pool brings us back.
                Hold::PoolDisabled | Hold::DisruptionOff | Hold::ExpirationOff => None,
            };
            Steps { wake, ..Steps::of(events::expiration_held(claim, &hold)) }
        }
    }
}

fn hold(claim: &NodeClaim, view: View<'_>) -> Option<Hold> {
    // A pool that is gone or does not parse holds nothing back: the claim itself says when it ends.
    let pool = claim.pool().and_then(|name| view.snapshot.pool(name)).and_then(|pool| pool.spec.as_ref().ok());
    if let Some(pool) = pool {
        if pool.disabled {
            return Some(Hold::PoolDisabled);
        }
        if !pool.disruption.enabled {
            return Some(Hold::DisruptionOff);
        }
        if !pool.disruption.expiration_enabled {
            return Some(Hold::ExpirationOff);
        }
    }
    // Windows select nodes; before there is one, its labels to be.
    let node = view.snapshot.nodes_of(claim).next();
    let labels = node.map_or(&claim.meta.labels, |node| &node.meta.labels);
    let denying =
        view.snapshot.maintenance_windows().filter(|window| window.denies(Action::Expiration, labels, view.now));
    // All must allow it, so the one that ends last is the one to name.
    let held = denying
        .map(|window| (window.next_transition(view.now), window))
        .max_by_key(|(until, window)| (until.unwrap_or(Timestamp::MAX), window.name.clone()));
    held.map(|(until, window)| Hold::Window { name: window.name.clone(), until })
}

impl fmt::Display for Hold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PoolDisabled => f.write_str("its pool is disabled"),
            Self::DisruptionOff => f.write_str("its pool has disruption switched off"),
            Self::ExpirationOff => f.write_str("its pool has expiration switched off"),
            Self::Window { name, until: Some(until) } => write!(f, "by maintenance window {name} until {until}"),
            Self::Window { name, until: None } => write!(f, "by maintenance window {name}"),
        }
    }
}
