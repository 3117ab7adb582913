//! What stands before every method, in order; the first that fails is the reason (sheet 03 §3, sheet 08 D2).

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use kerf_model::cluster::DoNotDisrupt;
use kerf_model::label::annotation;

use crate::subject::Subject;
use crate::{KeepReason, Policy, Verdict, View};

/// How much a method may insist.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Class {
    /// Waits for every blocker.
    Graceful,
    /// Goes past blocking pods if the drain has a deadline.
    Eventual,
    /// Goes past an uninitialised node and `do-not-disrupt` on it; blocking pods need a deadline, which the method checks.
    Repair,
}

/// What older APIs called [`annotation::DO_NOT_DISRUPT`] on nodes.
const DO_NOT_DEPROVISION: &str = "karpenter.sh/do-not-deprovision";
const DO_NOT_CONSOLIDATE: &str = "karpenter.sh/do-not-consolidate";

/// A node that is spoken for: its verdict is known before any method is asked.
pub(crate) fn settled(subject: &Subject<'_>, view: &View<'_>) -> Option<Verdict> {
    let name = subject.name();
    if let Some((command, _, reason)) = view.memory.command_of(name) {
        return Some(Verdict::UnderWay { command: command.clone(), reason });
    }
    if subject.is_going() {
        return Some(Verdict::Leaving);
    }
    let held = view.memory.held_of(name)?;
    let (proposal, reason) = (held.proposal.id.clone(), held.proposal.reason);
    Some(Verdict::Go { proposal, reason, held_until: Some(held.until) })
}

/// The first gate that keeps the node from being a candidate of the class.
pub(crate) fn first(subject: &Subject<'_>, class: Class, view: &View<'_>) -> Result<(), KeepReason> {
    on_node(subject, class, view)?;
    on_pool(subject, class, view)?;
    match class {
        Class::Graceful => subject.blocker.clone().map_or(Ok(()), Err),
        Class::Eventual if may_insist(subject) => Ok(()),
        Class::Eventual => subject.blocker.clone().map_or(Ok(()), Err),
        Class::Repair => Ok(()),
    }
}

fn on_node(subject: &Subject<'_>, class: Class, view: &View<'_>) -> Result<(), KeepReason> {
    let Some(node) = subject.node else {
        return Err(match subject.claim.status.provider_id {
            None => KeepReason::NotLaunched,
            Some(_) => KeepReason::NoNode,
        });
    };
    if subject.is_rebooting() {
        return Err(KeepReason::Rebooting);
    }
    if let Some(command) = view.memory.replaces_for(subject.name()) {
        return Err(KeepReason::Replacement { command: command.id.clone() });
    }
    if !subject.is_initialized() {
        return match (subject.is_registered(), class) {
            // What comes after a check that is passed over is not asked either.
            (true, Class::Repair) => Ok(()),
            (true, Class::Graceful | Class::Eventual) => Err(KeepReason::NotInitialized),
            (false, _) => Err(KeepReason::NotRegistered),
        };
    }
    if let Some(until) = view.memory.nominations.get(node.name()).filter(|until| view.now < **until) {
        return Err(KeepReason::Nominated { until: *until });
    }
    match do_not_disrupt(subject, view) {
        Some(_) if class == Class::Repair => {}
        Some(reason) => return Err(reason),
        None => {}
    }
    let not_marked = view.memory.unmarked.until(subject.name(), view.now);
    not_marked.map_or(Ok(()), |until| Err(KeepReason::NotMarked { until }))
}

/// `true`, or with [`Policy::Best`] a duration from the node's creation.
fn do_not_disrupt(subject: &Subject<'_>, view: &View<'_>) -> Option<KeepReason> {
    let key = annotation::DO_NOT_DISRUPT;
    let always = |annotation| Some(KeepReason::DoNotDisrupt { annotation, until: None });
    match (DoNotDisrupt::read(subject.annotation(key)), view.settings.policy) {
        (DoNotDisrupt::Always, _) => return always(key),
        (DoNotDisrupt::For(duration), Policy::Best) => {
            let created = subject.node?.meta.created;
            let until = created.checked_add(SignedDuration::from(duration)).unwrap_or(Timestamp::MAX);
            if view.now < until {
                return Some(KeepReason::DoNotDisrupt { annotation: key, until: Some(until) });
            }
        }
        (DoNotDisrupt::For(_), Policy::Compatible) | (DoNotDisrupt::No | DoNotDisrupt::Invalid(_), _) => {}
    }
    match subject.annotation(DO_NOT_DEPROVISION) {
        Some("true") => always(DO_NOT_DEPROVISION),
        Some(_) | None => None,
    }
}

pub(crate) fn do_not_consolidate(subject: &Subject<'_>) -> Result<(), KeepReason> {
    match subject.annotation(DO_NOT_CONSOLIDATE) {
        Some("true") => Err(KeepReason::DoNotConsolidate),
        Some(_) | None => Ok(()),
    }
}

fn on_pool(subject: &Subject<'_>, class: Class, view: &View<'_>) -> Result<(), KeepReason> {
    let Some(name) = &subject.pool_name else { return Err(KeepReason::NoPool) };
    let pool = || Arc::clone(name);
    let stored = subject.stored.filter(|stored| view.settings.manages_class(&stored.class));
    let Some(stored) = stored else { return Err(KeepReason::PoolMissing { pool: pool() }) };
    let spec = match &stored.spec {
        Ok(spec) => spec,
        Err(why) => return Err(KeepReason::PoolInvalid { pool: pool(), why: Arc::clone(why) }),
    };
    if view.types.get(name).is_none_or(|types| types.is_empty()) {
        return Err(KeepReason::NoInstanceTypes { pool: pool() });
    }
    if class == Class::Repair {
        return Ok(());
    }
    match (spec.disabled, spec.disruption.enabled) {
        (true, _) => Err(KeepReason::PoolDisabled { pool: pool() }),
        (false, false) => Err(KeepReason::DisruptionDisabled { pool: pool() }),
        (false, true) => Ok(()),
    }
}

/// Whether blocking pods do not stop drift: they have a deadline, or the pool says so.
pub(crate) fn may_insist(subject: &Subject<'_>) -> bool {
    subject.claim.node.termination_grace_period.is_some()
        || subject.pool().is_some_and(|pool| pool.disruption.drift_force_evict)
}
