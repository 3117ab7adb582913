//! A node that is sick in a way that a reboot cures (sheet 08 L1, L2): asked for, emptied as far as its time allows,
//! rebooted once, and waited for.
//!
//! The condition `Rebooting` on the claim is the whole state, with the boot id from before: a restart takes it up, and a
//! call that was made before a crash is seen by its effect and not made again.

use std::fmt;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use kerf_model::cluster::{Condition, Node, NodeClaim, condition_kind as kind};
use kerf_model::duration::GoDuration;
use kerf_model::effect::{Effect, MetaPatch, NodePatch, Target};
use kerf_model::label::{self, annotation};
use kerf_model::taint::Taint;
use kerf_model::time::{later, whole_seconds};

use super::ClaimDraft;
use super::disruption::{tighten_deadline, with_taint};
use crate::memory::ANSWER_WITHIN;
use crate::steps::{Cause, Steps};
use crate::view::View;
use crate::{drain, events};

const REQUESTED: &str = kind::REBOOT_REQUESTED;
const ISSUED: &str = "RebootIssued";
const SUCCEEDED: &str = "RebootSucceeded";
const FAILED: &str = "RebootFailed";

/// The scheduler may bind a pod just after the taint.
const LEAST_DRAIN: SignedDuration = SignedDuration::from_secs(5);
/// How long the provider may refuse or not answer.
const ISSUE_WITHIN: SignedDuration = SignedDuration::from_mins(5);
/// How long the machine may take to come back.
const RECOVER_WITHIN: SignedDuration = SignedDuration::from_mins(20);
const LOOK_AGAIN: SignedDuration = SignedDuration::from_secs(15);
/// Twice as long as reboots count.
const KEPT: SignedDuration = SignedDuration::from_hours(48);

/// Why a reboot did not cure the node. It is replaced then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RebootFailure {
    NotIssued,
    NotRecovered,
    NodeGone,
}

/// Writes the order on the claim, and when it was given: so many in a day are enough.
pub(super) fn request(
    draft: &mut ClaimDraft<'_>,
    condition: &str,
    condition_reason: &str,
    grace: Option<SignedDuration>,
    now: Timestamp,
) {
    if draft.claim.status.conditions.is_true(kind::REBOOTING) {
        return;
    }
    let message = format!("rebooting for {condition}/{condition_reason}");
    draft.conditions.set_true_because(kind::REBOOTING, REQUESTED, &message);
    match grace {
        Some(grace) => {
            let text = GoDuration::try_from(grace).map(|grace| grace.to_string()).unwrap_or_default();
            draft.set_annotation(annotation::REBOOT_TERMINATION_GRACE_PERIOD, &Arc::from(text));
        }
        None => draft.remove_annotation(annotation::REBOOT_TERMINATION_GRACE_PERIOD),
    }
    draft.remove_annotation(annotation::REBOOT_PRE_BOOT_ID);
    if !is_counted(draft.claim) {
        let times = draft.claim.meta.annotation(annotation::REBOOTS).unwrap_or_default();
        let times = times.split(',').filter_map(|time| time.parse().ok());
        let recent = times.filter(|time| now.duration_since(*time) < KEPT).chain([whole_seconds(now)]);
        let texts: Vec<String> = recent.map(|time: Timestamp| time.to_string()).collect();
        draft.set_annotation(annotation::REBOOTS, &Arc::from(texts.join(",")));
    }
}

/// Whether this reboot is among the times already. They are written before the condition that asks for it, which may have
/// been refused, or been cut off by a crash: the last time is then later than anything that the condition says.
fn is_counted(claim: &NodeClaim) -> bool {
    let times = claim.meta.annotation(annotation::REBOOTS);
    let last: Option<Timestamp> = times.and_then(|times| times.rsplit(',').next()?.parse().ok());
    let asked = claim.status.conditions.get(kind::REBOOTING).map(|condition| condition.since);
    last.is_some_and(|last| asked.is_none_or(|asked| asked < last))
}

pub(super) fn step(draft: &mut ClaimDraft<'_>, view: View<'_>) -> Steps {
    let claim = draft.claim;
    let Some(state) = claim.status.conditions.get(kind::REBOOTING).filter(|_| is_rebooting(claim)) else {
        return Steps::default();
    };
    let grace = match claim.meta.annotation(annotation::REBOOT_TERMINATION_GRACE_PERIOD).map(str::parse::<GoDuration>) {
        None => None,
        Some(Ok(grace)) if grace >= GoDuration::ZERO => Some(SignedDuration::from(grace)),
        // Nobody knows what was wanted: the node stays as it is.
        Some(_) => {
            draft.conditions.set_false(kind::REBOOTING, FAILED, "the grace period cannot be read");
            return untaint(claim, view);
        }
    };
    let mut nodes = view.snapshot.nodes_of(claim);
    let (Some(node), None) = (nodes.next(), nodes.next()) else {
        // A machine that boots may register as another Node, and a first list may be too old to show it.
        let end = match &*state.reason {
            REQUESTED => later(later(state.since, grace.unwrap_or_default().max(LEAST_DRAIN)), ISSUE_WITHIN),
            _ => recovers_by(claim, state, grace, view),
        };
        return match view.now < end {
            true => Steps::waiting_until(end.min(later(view.now, LOOK_AGAIN))),
            false => fail(draft, RebootFailure::NodeGone, grace, view),
        };
    };
    let rebooting = Taint::rebooting();
    match &*state.reason {
        REQUESTED if !node.has_taint(&rebooting) && !is_rebooted(claim, node) => {
            Steps::of(with_taint(node, &rebooting, true))
        }
        REQUESTED => {
            let emptying = emptied(node, state, grace, view);
            let mut steps = match emptying {
                Ok(()) => issue(draft, node, state, grace, view),
                Err(waiting) => waiting,
            };
            steps.look_again(later(view.now, LOOK_AGAIN));
            steps
        }
        _ => recover(draft, node, state, grace, view),
    }
}

pub(super) fn is_rebooting(claim: &NodeClaim) -> bool {
    claim.status.conditions.is_true(kind::REBOOTING)
}

/// Pods are asked to leave, and never made to: those that are still there when the time is up live through the reboot.
fn emptied(node: &Node, state: &Condition, grace: Option<SignedDuration>, view: View<'_>) -> Result<(), Steps> {
    let least = later(state.since, LEAST_DRAIN);
    let end = grace.map(|grace| later(state.since, grace.max(LEAST_DRAIN)));
    if end.is_some_and(|end| view.now >= end) {
        return Ok(());
    }
    // A grace of zero asks nobody to leave.
    if grace == Some(SignedDuration::ZERO) {
        return Err(Steps::waiting_until(least));
    }
    let plan = drain::plan(node, None, state.since, view);
    if plan.waiting.is_empty() && view.now >= least {
        return Ok(());
    }
    let mut steps = Steps { effects: plan.effects(node, "Unhealthy", view.now), wake: plan.wake, ..Steps::default() };
    let again = if view.now < least { least } else { later(view.now, LOOK_AGAIN) };
    steps.look_again(end.map_or(again, |end| end.min(again)));
    Err(steps)
}

/// The boot id is written down before the call: if the node shows another one later, the call has had its effect.
fn issue(
    draft: &mut ClaimDraft<'_>,
    node: &Node,
    state: &Condition,
    grace: Option<SignedDuration>,
    view: View<'_>,
) -> Steps {
    let claim = draft.claim;
    let boot_id = node.boot_id.as_deref().unwrap_or_default();
    let Some(before) = claim.meta.annotation(annotation::REBOOT_PRE_BOOT_ID) else {
        draft.set_annotation(annotation::REBOOT_PRE_BOOT_ID, &Arc::from(boot_id));
        return Steps::default();
    };
    let call = view.memory.reboot(claim);
    if before != boot_id || call.is_some_and(|call| call.accepted.is_some()) {
        draft.conditions.set_true_because(kind::REBOOTING, ISSUED, &state.message);
        return Steps::default();
    }
    if call.is_some_and(|call| view.now >= later(call.first_asked, ISSUE_WITHIN)) {
        return fail(draft, RebootFailure::NotIssued, grace, view);
    }
    match (call.and_then(|call| call.asked).map(|at| later(at, ANSWER_WITHIN)), &claim.status.provider_id) {
        (Some(at), _) if view.now < at => Steps::waiting_until(at),
        (_, Some(provider_id)) => {
            let operation = format!("{}-{}-{before}", claim.meta.uid, state.since.as_nanosecond());
            let effect = Effect::Reboot {
                claim: Target::from(&claim.meta),
                provider_id: provider_id.clone(),
                operation: Arc::from(operation),
            };
            Steps::asking(effect, later(view.now, ANSWER_WITHIN))
        }
        (_, None) => fail(draft, RebootFailure::NodeGone, grace, view),
    }
}

/// Not ready for pods until it has shown that it is.
fn recover(
    draft: &mut ClaimDraft<'_>,
    node: &Node,
    state: &Condition,
    grace: Option<SignedDuration>,
    view: View<'_>,
) -> Steps {
    let claim = draft.claim;
    draft.conditions.set_unknown(kind::INITIALIZED, "Rebooting", "node is rebooting");
    let mut steps = Steps::default();
    if node.meta.label(label::INITIALIZED).is_some() && !is_rebooted(claim, node) {
        let labels = [(Arc::from(label::INITIALIZED), None)].into();
        let meta = MetaPatch { labels, ..MetaPatch::default() };
        steps.act([Effect::PatchNode(Target::from(&node.meta), Box::new(NodePatch { meta, taints: None }))]);
    }
    if is_rebooted(claim, node) {
        if node.has_taint(&Taint::rebooting()) {
            steps.act([events::reboot_observed(claim), with_taint(node, &Taint::rebooting(), false)]);
            return steps;
        }
        if node.is_ready() {
            draft.conditions.set_false(kind::REBOOTING, SUCCEEDED, &state.message);
            draft.remove_annotation(annotation::REBOOT_PRE_BOOT_ID);
            return steps;
        }
    }
    let end = recovers_by(claim, state, grace, view);
    if view.now >= end {
        steps.merge(fail(draft, RebootFailure::NotRecovered, grace, view));
        return steps;
    }
    steps.look_again(end.min(later(view.now, LOOK_AGAIN)));
    steps
}

/// Until when the node is to be back.
fn recovers_by(claim: &NodeClaim, state: &Condition, grace: Option<SignedDuration>, view: View<'_>) -> Timestamp {
    let accepted = view.memory.reboot(claim).and_then(|call| call.accepted);
    later(accepted.unwrap_or_else(|| issued_at_most(claim, state, grace)), RECOVER_WITHIN)
}

/// After a restart nobody knows when the order was taken: not before it was asked for, and emptied. Without a grace that may
/// have taken any time; what is sure is since when the node does not count as initialised.
fn issued_at_most(claim: &NodeClaim, state: &Condition, grace: Option<SignedDuration>) -> Timestamp {
    let asked = later(later(state.since, grace.unwrap_or_default()), ISSUE_WITHIN);
    let fenced = claim.status.conditions.get(kind::INITIALIZED).filter(|condition| &*condition.reason == "Rebooting");
    fenced.map_or(asked, |condition| condition.since.max(asked))
}

fn is_rebooted(claim: &NodeClaim, node: &Node) -> bool {
    let before = claim.meta.annotation(annotation::REBOOT_PRE_BOOT_ID);
    before.is_some_and(|before| before != node.boot_id.as_deref().unwrap_or_default())
}

/// The deadline stands on the claim before it goes.
fn fail(draft: &mut ClaimDraft<'_>, failure: RebootFailure, grace: Option<SignedDuration>, view: View<'_>) -> Steps {
    let claim = draft.claim;
    let mut steps = untaint(claim, view);
    steps.act([events::reboot_failed(claim, failure)]);
    if let Some(grace) = grace {
        tighten_deadline(draft, later(view.now, grace));
        // Seen with the next look, which is a little later: closer it comes only by much.
        if super::disruption::written_deadline(claim).is_none() {
            return steps;
        }
    }
    steps.merge(super::give_up(claim, Cause::RebootFailed));
    steps
}

fn untaint(claim: &NodeClaim, view: View<'_>) -> Steps {
    let rebooting = Taint::rebooting();
    let tainted = view.snapshot.nodes_of(claim).filter(|node| node.has_taint(&rebooting) && !node.meta.is_deleting());
    Steps { effects: tainted.map(|node| with_taint(node, &rebooting, false)).collect(), ..Steps::default() }
}

impl RebootFailure {
    pub const fn label(self) -> &'static str {
        match self {
            Self::NotIssued => "provider_error",
            Self::NotRecovered => "recovery_timeout",
            Self::NodeGone => "node_gone",
        }
    }
}

impl fmt::Display for RebootFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotIssued => "the provider did not take the order",
            Self::NotRecovered => "the node did not come back in time",
            Self::NodeGone => "the node is gone",
        })
    }
}
