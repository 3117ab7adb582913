//! What others can count and draw: kept by what happens, and made from the cluster's state whenever somebody asks.
//!
//! [`catalogue`] says what there is, `registry` keeps what was counted, `state` makes the gauges of pods, nodes and pools
//! from one look at the cluster. Nothing is kept per object, so nothing has to be forgotten with it.

pub mod catalogue;
mod process;
mod registry;
mod state;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use kerf_disruption::{KeepReason, Reason, Round, Verdict};
use kerf_engine::DisruptionNote;
use kerf_engine::commands::Decision;
use kerf_lifecycle::{Cause, Note};
use kerf_model::budget::Allowance;
use kerf_model::cloud::Interruption;
use kerf_model::cluster::{Condition, ConditionStatus, Conditions, Node, NodeClaim, Pod, condition_kind};
use kerf_model::effect::{NewClaim, WriteError};
use kerf_model::label::{self, annotation};
use kerf_model::maintenance::Action;
use kerf_model::node_pool::ConsolidationPolicy;
use kerf_model::snapshot::ClusterSnapshot;
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

use crate::brain::Heard;
use crate::effects::AT_ONCE;
use crate::traffic::Traffic;
use catalogue as metric;
pub(crate) use registry::{Page, Registry};
pub use state::{Seen, Waiting};

/// More instances than are announced at once. Then those that still are count once more.
const MANY_ANNOUNCED: usize = 10_000;

/// The engine may be in the middle of a long round: then the last look is shown again.
const LOOK_WITHIN: Duration = Duration::from_secs(2);

/// What runs.
#[derive(Debug, Clone, Copy)]
pub struct Build {
    pub version: &'static str,
    /// Empty if nobody has told.
    pub commit: &'static str,
}

#[derive(Debug)]
pub struct Metrics {
    values: Mutex<Values>,
    /// Whether pods, nodes and pools are shown.
    observes_state: bool,
    lease: Option<String>,
    engine: Mutex<Engine>,
    traffic: Traffic,
}

#[derive(Debug, Default)]
struct Values {
    registry: Registry,
    /// By claim uid. Notes are repeated as long as their effects are; each counts once per claim.
    counted: BTreeSet<(Arc<str>, &'static str)>,
    /// By provider id. Announcements are repeated too, also of instances that have no claim.
    announced: BTreeSet<(Arc<str>, &'static str)>,
}

/// Who can show the cluster, and what was shown last.
#[derive(Debug, Default)]
struct Engine {
    queue: Option<mpsc::Sender<Heard>>,
    last: Option<Arc<Seen>>,
}

/// A condition that has changed.
#[derive(Debug, Clone)]
pub struct Transition<'a> {
    pub before: Option<&'a Condition>,
    pub now: &'a Condition,
}

impl Metrics {
    pub fn new(build: &Build, observes_state: bool, lease: Option<&str>, traffic: Traffic) -> Self {
        let metrics = Self {
            values: Mutex::default(),
            observes_state,
            lease: lease.map(str::to_owned),
            engine: Mutex::default(),
            traffic,
        };
        metrics.set(&metric::BUILD_INFO, &[build.version, "", std::env::consts::ARCH, build.commit], 1.0);
        metrics.set(&metric::STATE_SYNCED, &[], 0.0);
        metrics.set(&metric::STATE_NODES, &[], 0.0);
        metrics.set(&metric::MOST_WORKERS, &["effects"], AT_ONCE as f64);
        for consolidation_type in ["multi", "single"] {
            metrics.set(&metric::DISRUPTION_TIMEOUTS, &[consolidation_type], 0.0);
        }
        metrics.set_leading(false);
        metrics
    }

    pub const fn observes_state(&self) -> bool {
        self.observes_state
    }

    /// In the text format of Prometheus.
    pub async fn text(&self) -> String {
        let mut page = Page::default();
        process::write(&mut page);
        if let Some(seen) = self.look().await {
            seen.write(self.observes_state, &mut page);
        }
        self.values().registry.write(&mut page);
        self.traffic.write(&mut page);
        page.text()
    }

    async fn look(&self) -> Option<Arc<Seen>> {
        let queue = self.engine().queue.clone()?;
        let (answer, shown) = oneshot::channel();
        let seen = timeout(LOOK_WITHIN, async {
            queue.send(Heard::Show(answer)).await.ok()?;
            shown.await.ok()
        });
        let seen = seen.await.ok().flatten();
        let mut engine = self.engine();
        if seen.is_some() {
            engine.last = seen;
        }
        engine.last.clone()
    }

    /// From now on this one is asked to show the cluster.
    pub(crate) fn ask(&self, queue: mpsc::Sender<Heard>) {
        self.engine().queue = Some(queue);
    }

    pub(crate) fn ask_nobody(&self) {
        *self.engine() = Engine::default();
        // Nobody will say when these claims are gone.
        self.values().counted.clear();
        self.set(&metric::STATE_SYNCED, &[], 0.0);
    }

    pub(crate) fn set_leading(&self, leads: bool) {
        if let Some(name) = &self.lease {
            self.set(&metric::LEADS, &[name], f64::from(u8::from(leads)));
        }
    }

    pub(crate) fn set_synced(&self, unsynced_for: Option<SignedDuration>) {
        self.set(&metric::STATE_SYNCED, &[], f64::from(u8::from(unsynced_for.is_none())));
        self.set(&metric::STATE_UNSYNCED, &[], unsynced_for.unwrap_or_default().as_secs_f64());
    }

    pub(crate) fn set_cluster(&self, nodes: usize) {
        self.set(&metric::STATE_NODES, &[], nodes as f64);
    }

    pub(crate) fn claim_created(&self, claim: &NewClaim) {
        let pool = claim.labels.get(label::NODEPOOL).map(AsRef::as_ref).unwrap_or_default();
        let relaxed = claim.annotations.get(annotation::MIN_VALUES_RELAXED).map_or("false", AsRef::as_ref);
        let reason = claim.replaces_for.map_or("provisioned", Reason::metric);
        self.add(&metric::CLAIMS_CREATED, &[reason, pool, relaxed]);
    }

    pub(crate) fn claim_gone(&self, claim: &NodeClaim, now: Timestamp) {
        let [pool, capacity_type, zone] = labels(&claim.meta.labels);
        self.add(&metric::CLAIMS_TERMINATED, &[pool, capacity_type, zone]);
        if let Some(took) = since_deletion(claim.meta.deleting, now) {
            self.observe(&metric::CLAIM_TERMINATION, &[pool], took);
            self.observe(&metric::CLAIM_TERMINATED, &[], took);
        }
        let mut values = self.values();
        values.counted.retain(|(uid, _)| *uid != claim.meta.uid);
        values.announced.retain(|(id, _)| Some(id) != claim.status.provider_id.as_ref());
    }

    pub(crate) fn instance_gone(&self, claim: &NodeClaim, now: Timestamp) {
        if self.is_first(&claim.meta.uid, "instance gone")
            && let Some(took) = since_deletion(claim.meta.deleting, now)
        {
            self.observe(&metric::INSTANCE_TERMINATION, &[claim.pool().unwrap_or_default()], took);
        }
    }

    pub(crate) fn node_gone(&self, node: &Node, now: Timestamp) {
        let [pool, _, zone] = labels(&node.meta.labels);
        self.add(&metric::NODES_TERMINATED, &[pool, zone]);
        self.observe(&metric::NODE_LIFETIME, &[pool], now.duration_since(node.meta.created).as_secs_f64());
        if let Some(took) = since_deletion(node.meta.deleting, now) {
            self.observe(&metric::NODE_TERMINATION, &[pool], took);
            self.observe(&metric::NODE_TERMINATED, &[], took);
        }
    }

    /// Whether it is told for the first time.
    pub(crate) fn note(&self, note: &Note, snapshot: &ClusterSnapshot, now: Timestamp) -> bool {
        let (target, what) = match note {
            Note::Registered { claim } => (claim, "registered"),
            Note::Initialized { claim } => (claim, "initialized"),
            Note::GivenUp { claim, .. } => (claim, "given up"),
            Note::Postponed { claim, .. } => (claim, "postponed"),
        };
        if !self.is_first(&target.uid, what) {
            return false;
        }
        let Some(claim) = snapshot.claim(&target.name.name) else { return true };
        match note {
            Note::Registered { .. } => {
                let [pool, _, zone] = labels(&claim.meta.labels);
                self.add(&metric::NODES_CREATED, &[pool, zone]);
            }
            Note::Initialized { .. } => {}
            Note::GivenUp { cause, .. } => self.given_up(claim, cause, snapshot, now),
            Note::Postponed { window, .. } => self.add(&metric::WINDOW_BLOCKS, &[window, Action::Expiration.label()]),
        }
        true
    }

    fn given_up(&self, claim: &NodeClaim, cause: &Cause, snapshot: &ClusterSnapshot, now: Timestamp) {
        let reason = cause.label();
        let [pool, capacity_type, _] = labels(&claim.meta.labels);
        let policy = match cause {
            Cause::Disrupted { consolidation_policy: Some(policy), .. } => policy_label(*policy),
            _ => "",
        };
        if let Cause::RebootFailed = cause
            && let Some(state) = claim.status.conditions.get(condition_kind::REBOOTING)
        {
            // The reasons of the condition: asked for, or issued and not back in time.
            let result = if &*state.reason == "RebootIssued" { "recovery_timeout" } else { "provider_error" };
            self.add(&metric::NODES_REBOOTS, &[result]);
            self.observe(&metric::NODE_REBOOT, &[result], seconds(state.since, now));
        }
        let mode = termination_mode(claim.node.termination_grace_period.map(SignedDuration::from));
        let labels = [reason, pool, capacity_type, policy, mode];
        self.add(&metric::CLAIMS_DISRUPTED, &labels);
        let pods = snapshot.nodes_of(claim).flat_map(|node| snapshot.pods_on(node.name()));
        let pods = pods.filter(|pod| pod.is_reschedulable()).count();
        self.values().registry.add(&metric::PODS_DISRUPTED, &labels, pods as f64);
        let unhealthy = |condition: &str, mode| {
            let image = claim.status.image_id.as_deref().unwrap_or_default();
            self.add(&metric::CLAIMS_UNHEALTHY, &[&snake(condition), pool, capacity_type, image, mode]);
        };
        if let Cause::Unhealthy { condition } = cause {
            unhealthy(condition, "forceful");
        } else if let Cause::Disrupted { repair: Some(repair), .. } = cause {
            // Without a bound of its own the repair drains as the claim says.
            unhealthy(&repair.condition, repair.bound.map_or(mode, |bound| termination_mode(Some(bound))));
        }
    }

    /// What disruption did. `took` is the look that it was part of.
    pub(crate) fn disruption(&self, note: &DisruptionNote, round: &Round, took: Duration) {
        match note {
            DisruptionNote::Looked => {
                self.observe(&metric::DISRUPTION_EVALUATION, &["", ""], took.as_secs_f64());
                for move_ in &round.scored {
                    let decision = if move_.approved { "approved" } else { "rejected" };
                    let labels = [decision, &*move_.pool, move_.policy.label()];
                    self.add(&metric::CONSOLIDATION_MOVES, &labels);
                    if let Some(score) = move_.score {
                        self.observe(&metric::CONSOLIDATION_SCORE, &labels, score);
                    }
                }
                for verdict in round.verdicts.values() {
                    if let Verdict::Keep(KeepReason::Window { window, action, .. }) = verdict {
                        self.add(&metric::WINDOW_BLOCKS, &[window, action.label()]);
                    }
                }
                self.budgets(round);
                self.reconciled("disruption", "success", took);
            }
            DisruptionNote::Started { method, reason, decision, nodes, .. } => {
                let labels = [decision.metric(), reason.metric(), method.consolidation_type()];
                self.add(&metric::DISRUPTION_DECISIONS, &labels);
                for pool in nodes.keys() {
                    self.add(&metric::DISRUPTION_DECISIONS_BY_POOL, &[pool, labels[0], labels[1], labels[2]]);
                    if let Decision::TerminateFirst(why) = decision {
                        self.add(&metric::DISRUPTION_TERMINATE_FIRST, &[pool, reason.metric(), why.label()]);
                    }
                }
            }
            DisruptionNote::Withdrawn { method, nodes, .. } => {
                let labels = [method.consolidation_type()];
                self.values().registry.add(&metric::DISRUPTION_WITHDRAWN, &labels, *nodes as f64);
            }
            DisruptionNote::Failed { method, reason, decision, missing, .. } => {
                let labels = [decision.metric(), reason.metric(), method.consolidation_type()];
                self.values().registry.add(&metric::DISRUPTION_FAILED, &labels, *missing as f64);
            }
            DisruptionNote::BackedOff { pool, seconds } => {
                self.add(&metric::DRIFT_BACK_OFFS, &[pool]);
                self.set(&metric::POOLS_DRIFT_BACK_OFF, &[pool], *seconds as f64);
            }
            DisruptionNote::Replaced { method, pools, .. } => {
                for pool in pools.iter().filter(|_| method.is_drift()) {
                    self.set(&metric::POOLS_DRIFT_BACK_OFF, &[pool], 0.0);
                }
            }
            DisruptionNote::Done { .. } => {}
        }
    }

    fn budgets(&self, round: &Round) {
        let mut values = self.values();
        // Pools that are gone have no budgets any more.
        values.registry.forget(&metric::POOLS_ALLOWED);
        values.registry.forget(&metric::POOLS_CONSUMING);
        // Without the gate nobody repairs, and what budgets leave to it says nothing.
        let budgets = round.budgets.iter().filter(|((_, reason), _)| *reason != Reason::Unhealthy || round.repairs());
        for ((pool, reason), budget) in budgets {
            let allowed = match budget.allowed {
                Allowance::AtMost(count) => count,
                Allowance::Unlimited => budget.nodes,
            };
            let labels = [&**pool, Reason::metric(*reason)];
            values.registry.set(&metric::POOLS_ALLOWED, &labels, f64::from(allowed));
            values.registry.set(&metric::POOLS_CONSUMING, &labels, f64::from(budget.consuming));
        }
        values.registry.forget(&metric::DISRUPTION_ELIGIBLE);
        for (reason, count) in round.eligible_by_reason() {
            values.registry.set(&metric::DISRUPTION_ELIGIBLE, &[reason.metric()], f64::from(count));
        }
    }

    /// By pool: nodes whose pods' deletion costs wait.
    pub(crate) fn pod_costs_pending(&self, pending: &BTreeMap<Arc<str>, u32>) {
        let mut values = self.values();
        values.registry.forget(&metric::POD_COSTS_PENDING);
        for (pool, nodes) in pending {
            values.registry.set(&metric::POD_COSTS_PENDING, &[pool], f64::from(*nodes));
        }
    }

    /// A pod's deletion cost was written, or not.
    pub(crate) fn pod_cost_written(&self, error: Option<&WriteError>) {
        let result = match error {
            None => "updated",
            Some(WriteError::NotFound) => "skipped_notfound",
            Some(WriteError::Conflict) => "skipped_conflict",
            Some(WriteError::BudgetRefused { .. } | WriteError::Invalid { .. } | WriteError::Unavailable { .. }) => {
                "error"
            }
        };
        self.add(&metric::POD_COST_WRITES, &[result]);
    }

    /// What the cloud announced.
    pub(crate) fn interruption_received(&self, interruption: &Interruption) {
        let cause = interruption.cause.label();
        let mut values = self.values();
        if values.announced.len() >= MANY_ANNOUNCED {
            values.announced.clear();
        }
        if values.announced.insert((Arc::clone(&interruption.provider_id), cause)) {
            values.registry.add(&metric::INTERRUPTIONS, &[cause], 1.0);
        }
    }

    /// A reboot has ended: see the reasons of the condition `Rebooting`.
    pub(crate) fn rebooted(&self, claim: &NodeClaim, change: &Transition<'_>, now: Timestamp) {
        if &*change.now.kind != condition_kind::REBOOTING || change.now.status != ConditionStatus::False {
            return;
        }
        let Some(before) = change.before.filter(|before| before.status == ConditionStatus::True) else { return };
        let result = match &*change.now.reason {
            "RebootSucceeded" => "succeeded",
            _ => "invalid_request",
        };
        let took = seconds(before.since, now);
        self.add(&metric::NODES_REBOOTS, &[result]);
        self.observe(&metric::NODE_REBOOT, &[result], took);
        if result == "succeeded" {
            let initialized = claim.status.conditions.get(condition_kind::INITIALIZED);
            let issued = initialized.map_or(before.since, |condition| condition.since.max(before.since));
            self.observe(&metric::NODE_REBOOT_RECOVERY, &[], seconds(issued, now));
        }
    }

    pub(crate) fn drained(&self, claim: &NodeClaim) {
        self.add(&metric::NODES_DRAINED, &[claim.pool().unwrap_or_default()]);
    }

    pub(crate) fn eviction_answered(&self, code: u16) {
        self.add(&metric::PODS_EVICTIONS, &[&code.to_string()]);
    }

    pub(crate) fn pod_drained(&self, reason: &str) {
        self.add(&metric::PODS_DRAINED, &[reason]);
    }

    pub(crate) fn pod_bound(&self, pod: &Pod, decided: Option<Timestamp>, now: Timestamp) {
        let devices = uses_devices(pod);
        self.observe(&metric::PODS_BOUND, &[devices], seconds(pod.meta.created, now));
        if let Some(decided) = decided {
            self.observe(&metric::PODS_PROVISIONING_BOUND, &[devices], seconds(decided, now));
        }
    }

    pub(crate) fn pod_started(&self, pod: &Pod, decided: Option<Timestamp>, now: Timestamp) {
        self.observe(&metric::PODS_STARTUP, &[], seconds(pod.meta.created, now));
        if let Some(decided) = decided {
            self.observe(&metric::PODS_PROVISIONING_STARTUP, &[], seconds(decided, now));
        }
    }

    pub(crate) fn pod_decided(&self, first_seen: Timestamp, now: Timestamp) {
        self.observe(&metric::PODS_DECISION, &[], seconds(first_seen, now));
    }

    pub(crate) fn scheduled(&self, took: Duration) {
        self.observe(&metric::SCHEDULER_DURATION, &["provisioner"], took.as_secs_f64());
        self.reconciled("provisioner", "success", took);
    }

    /// A call to the provider, with its error if it failed.
    pub(crate) fn called(&self, call: &CloudCall<'_>, took: Duration, error: Option<&str>) {
        let CloudCall { controller, method, provider, pool } = *call;
        self.observe(&metric::CLOUD_DURATION, &[controller, method, provider], took.as_secs_f64());
        if let Some(error) = error {
            self.add(&metric::CLOUD_ERRORS, &[controller, method, provider, error, pool]);
        }
    }

    pub(crate) fn claim_condition(&self, change: &Transition<'_>) {
        let metrics = [&metric::CLAIM_CONDITION_TRANSITIONS, &metric::CLAIM_CONDITION_TRANSITION];
        self.condition(metrics, "NodeClaim", change);
    }

    pub(crate) fn pool_condition(&self, change: &Transition<'_>) {
        let metrics = [&metric::POOL_CONDITION_TRANSITIONS, &metric::POOL_CONDITION_TRANSITION];
        self.condition(metrics, "NodePool", change);
    }

    /// Under the name with the kind, and under the older one without.
    fn condition(&self, [count, lasted]: [&'static metric::Metric; 2], kind: &str, change: &Transition<'_>) {
        let Transition { before, now } = change;
        let became = [&*now.kind, now.status.as_str(), &*now.reason, metric::GROUP, kind];
        self.add(count, &became[..3]);
        self.add(&metric::CONDITION_TRANSITIONS, &became);
        if let Some(before) = before {
            let labels = [&*now.kind, before.status.as_str(), now.status.as_str(), metric::GROUP, kind];
            let took = seconds(before.since, now.since);
            self.observe(lasted, &labels[..3], took);
            self.observe(&metric::CONDITION_TRANSITION, &labels, took);
        }
    }

    /// One look at the cluster, under the names that dashboards of controllers know.
    pub(crate) fn looked(&self, heard: usize, effects: usize, took: Duration) {
        self.reconciled("engine", "success", took);
        let mut values = self.values();
        values.registry.set(&metric::QUEUE_DEPTH, &["engine"], heard as f64);
        values.registry.add(&metric::QUEUE_ADDS, &["engine"], heard as f64);
        values.registry.add(&metric::QUEUE_ADDS, &["effects"], effects as f64);
    }

    /// How many effects wait, and how many are under way.
    pub(crate) fn effects_pending(&self, waiting: usize, under_way: usize) {
        self.set(&metric::QUEUE_DEPTH, &["effects"], waiting as f64);
        self.set(&metric::WORKERS, &["effects"], under_way as f64);
    }

    pub(crate) fn effect_done(&self, is_failed: bool, took: Duration) {
        if is_failed {
            self.add(&metric::RECONCILE_ERRORS, &["effects"]);
        }
        self.reconciled("effects", if is_failed { "error" } else { "success" }, took);
    }

    fn reconciled(&self, controller: &'static str, result: &'static str, took: Duration) {
        self.add(&metric::RECONCILES, &[controller, result]);
        self.observe(&metric::RECONCILE_TIME, &[controller], took.as_secs_f64());
    }

    /// Whether nobody has told this about the claim before.
    fn is_first(&self, uid: &Arc<str>, what: &'static str) -> bool {
        self.values().counted.insert((Arc::clone(uid), what))
    }

    fn set(&self, metric: &'static metric::Metric, labels: &[&str], value: f64) {
        self.values().registry.set(metric, labels, value);
    }

    fn add(&self, metric: &'static metric::Metric, labels: &[&str]) {
        self.values().registry.add(metric, labels, 1.0);
    }

    fn observe(&self, metric: &'static metric::Metric, labels: &[&str], value: f64) {
        self.values().registry.observe(metric, labels, value);
    }

    fn values(&self) -> MutexGuard<'_, Values> {
        self.values.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn engine(&self) -> MutexGuard<'_, Engine> {
        self.engine.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What was asked of the provider, and by whom.
#[derive(Debug, Clone, Copy)]
pub struct CloudCall<'a> {
    pub controller: &'static str,
    pub method: &'static str,
    pub provider: &'static str,
    /// Empty if it is about no pool.
    pub pool: &'a str,
}

/// Conditions whose status is another than before.
pub fn transitions<'a>(before: Option<&'a Conditions>, now: &'a Conditions) -> impl Iterator<Item = Transition<'a>> {
    now.0.iter().filter_map(move |now| {
        let before = before.and_then(|before| before.get(&now.kind));
        let is_same = before.is_some_and(|before| before.status == now.status);
        (!is_same).then_some(Transition { before, now })
    })
}

/// By the time that a drain may take.
fn termination_mode(grace: Option<SignedDuration>) -> &'static str {
    match grace {
        None => "graceful",
        Some(grace) if grace.is_positive() => "eventual",
        Some(_) => "forceful",
    }
}

/// The metric label `consolidation_policy`.
const fn policy_label(policy: ConsolidationPolicy) -> &'static str {
    match policy {
        ConsolidationPolicy::WhenEmpty => "when_empty",
        ConsolidationPolicy::WhenEmptyOrUnderutilized => "when_empty_or_underutilized",
        ConsolidationPolicy::Balanced => "balanced",
    }
}

/// `MemoryPressure` as `memory_pressure`.
fn snake(name: &str) -> String {
    let mut text = String::new();
    for (at, letter) in name.char_indices() {
        if letter.is_ascii_uppercase() && at > 0 {
            text.push('_');
        }
        text.push(letter.to_ascii_lowercase());
    }
    text
}

/// Pool, capacity type and zone.
fn labels(labels: &kerf_model::cluster::Texts) -> [&str; 3] {
    [label::NODEPOOL, label::CAPACITY_TYPE, label::ZONE]
        .map(|key| labels.get(key).map(AsRef::as_ref).unwrap_or_default())
}

fn since_deletion(deleting: Option<Timestamp>, now: Timestamp) -> Option<f64> {
    deleting.map(|deleting| seconds(deleting, now))
}

fn seconds(from: Timestamp, to: Timestamp) -> f64 {
    to.duration_since(from).as_secs_f64().max(0.0)
}

const fn uses_devices(pod: &Pod) -> &'static str {
    if pod.uses_resource_claims { "true" } else { "false" }
}

#[cfg(test)]
mod tests;
