//! Which nodes the autoscaler disrupts by choice, and whether it may: budgets, windows, protection, replacement first, and
//! that what it does to save money does.
//!
//! A choice is judged by what had been heard when it was made, and counted with all that are under way.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use kerf_model::budget::{Allowance, Budget, BudgetText, DisruptionReason};
use kerf_model::duration::GoDuration;
use kerf_model::effect::{Effect, Target};
use kerf_model::label::{self, annotation};
use kerf_model::maintenance::Action;
use kerf_model::price::Price;

use super::Broken;
use crate::autoscaler::{Act, Ledger};
use crate::store::{Kind, Object, Store};

/// Longer than the server refuses to write a mark. What is marked later is judged by that.
const MARKED_WITHIN: SignedDuration = SignedDuration::from_mins(2);

#[derive(Default)]
pub(super) struct Choices {
    seen: u64,
    /// Claims that were chosen, by uid, and when that was decided where it is known.
    chosen: BTreeMap<String, Option<Timestamp>>,
    /// Claims whose nodes could once take pods, by name.
    ready: BTreeSet<String>,
    /// What the nodes of a command cost when they were chosen, in millionths of a dollar per hour.
    prices: BTreeMap<String, BTreeMap<String, i64>>,
}

impl Choices {
    /// What others did.
    pub fn before(&mut self, store: &Store) {
        for claim in self.news(store) {
            self.note(&claim);
        }
    }

    /// What the autoscaler did.
    pub fn after(&mut self, store: &Store, acts: &[Act], ledger: &Ledger) -> Vec<Broken> {
        let mut broken = Vec::new();
        let mut choices = Vec::new();
        for claim in self.news(store) {
            self.note(&claim);
            if chosen_for(&claim).is_none() || self.chosen.contains_key(claim.uid()) {
                continue;
            }
            let act = acts.iter().find(|act| is_patch_of(act, claim.uid()));
            self.chosen.insert(claim.uid().to_owned(), act.map(|act| act.decided));
            self.note_price(&claim, ledger);
            // A choice without a known act was taken up from an older process, which is judged by its own.
            choices.extend(act.map(|act| (claim, act)));
        }
        for (claim, act) in choices {
            broken.extend(self.judge(&claim, act, store));
        }
        for act in acts {
            if let Effect::DeleteClaim(target) = &act.effect {
                broken.extend(self.deleted(target, act, store, ledger));
            }
        }
        broken
    }

    /// A claim that goes for a command goes after its replacements have come, and dearer ones never come to save money.
    fn deleted(&self, target: &Target, act: &Act, store: &Store, ledger: &Ledger) -> Vec<Broken> {
        let claim = store.get(Kind::NodeClaim, &target.name).ok().filter(|claim| *claim.uid() == *target.uid);
        let claim = claim.filter(|claim| !must_go(claim, act, store, ledger));
        let Some(command) = claim.and_then(Command::of) else { return Vec::new() };
        let mut broken = Vec::new();
        let early = command.replacements.iter().find(|name| !self.ready.contains(**name));
        if let Some(replacement) = early {
            let (claim, replacement) = (target.name.to_string(), (*replacement).to_owned());
            broken.push(Broken::DeletedBeforeReplacement { claim, replacement });
        }
        if command.reason == "Underutilized" && command.decision == "replace" {
            let before: i64 = self.prices.get(command.id).into_iter().flat_map(BTreeMap::values).sum();
            let claims = store.all(Kind::NodeClaim).filter(|it| command.replacements.contains(&&*it.name.name));
            let after: i64 = claims.filter_map(|claim| price(claim, ledger)).sum();
            if after >= before {
                let command = command.id.to_owned();
                broken.push(Broken::CostRaised { command, before, after });
            }
        }
        broken
    }

    fn judge(&self, claim: &Object, act: &Act, store: &Store) -> Vec<Broken> {
        let mut broken = Vec::new();
        let Some(reason) = chosen_for(claim) else { return broken };
        let Some(pool_name) = claim.text(&["metadata", "labels", label::NODEPOOL]) else { return broken };
        let claim_name = || claim.name.to_string();
        let chosen_at = Command::of(claim).map_or(act.decided, |command| command.chosen_at(act.decided));
        let heard = |kind: Kind| store.as_of(kind, act.heard(kind)).unwrap_or_default();
        let pools = heard(Kind::NodePool);
        let pool = pools.iter().find(|pool| *pool.name.name == *pool_name);
        if let Some(pool) = pool {
            let is_of_pool = |claim: &&Object| claim.text(&["metadata", "labels", label::NODEPOOL]) == Some(pool_name);
            // A node that is gone since, or not heard of yet, may be counted.
            let nodes = count_nodes(pool_name, &heard(Kind::NodeClaim), &heard(Kind::Node)).max({
                let now = |kind: Kind| -> Vec<Object> { store.all(kind).cloned().collect() };
                count_nodes(pool_name, &now(Kind::NodeClaim), &now(Kind::Node))
            });
            let allowance = |reason: &str| allowance(pool, reason, nodes, chosen_at).unwrap_or(usize::MAX);
            let allowed = allowance(reason);
            // What was decided together has no order: any that keeps all budgets will do, the strictest first.
            let is_after = |other: &Object| {
                self.chosen.get(other.uid()) == Some(&Some(act.decided))
                    && chosen_for(other).is_some_and(|reason| allowance(reason) > allowed)
            };
            let disrupted = store
                .all(Kind::NodeClaim)
                .filter(is_of_pool)
                .filter(|claim| chosen_for(claim).is_some() && !claim.is_condition_true("InstanceTerminating"))
                // A node that is gone is not disrupted any more, whatever its claim says yet.
                .filter(|claim| has_node(claim, store) && !is_after(claim))
                .count();
            if disrupted > allowed {
                let (pool, reason) = (pool_name.to_owned(), reason.to_owned());
                broken.push(Broken::NodeBudgetExceeded { pool, reason, disrupted, allowed });
            }
            let is_off = |path: &[&str]| pool.at(path) == Some(&serde_json::Value::Bool(true));
            if is_off(&["spec", "disabled"]) || is_off(&["spec", "disableDeprovisioning"]) {
                broken.push(Broken::DisabledPoolDisrupted { pool: pool_name.to_owned(), claim: claim_name() });
            }
        }
        let id = claim.text(&["status", "providerID"]);
        let nodes = heard(Kind::Node);
        let node = nodes.iter().find(|node| id.is_some() && node.text(&["spec", "providerID"]) == id);
        let is_protected = |node: &Object| {
            [annotation::DO_NOT_DISRUPT].iter().any(|key| node.text(&["metadata", "annotations", key]) == Some("true"))
        };
        if node.is_some_and(is_protected) && reason != "Unhealthy" {
            broken.push(Broken::ProtectedNodeChosen { claim: claim_name() });
        }
        if let Some(action) = action(reason) {
            for window in heard(Kind::MaintenanceWindow) {
                let labels = node.unwrap_or(claim).labels();
                if denies(&window, action, &labels, chosen_at) {
                    let window = window.name.to_string();
                    broken.push(Broken::WindowIgnored { window, claim: claim_name(), reason: reason.to_owned() });
                }
            }
        }
        broken
    }

    fn news(&mut self, store: &Store) -> Vec<Object> {
        let events = store.events_after(Kind::NodeClaim, self.seen).unwrap_or_default();
        self.seen = store.version();
        events.iter().map(|event| event.object.clone()).collect()
    }

    fn note(&mut self, claim: &Object) {
        if claim.is_condition_true("Initialized") {
            self.ready.insert(claim.name.name.to_string());
        }
    }

    fn note_price(&mut self, claim: &Object, ledger: &Ledger) {
        if let (Some(command), Some(price)) = (Command::of(claim), price(claim, ledger)) {
            self.prices.entry(command.id.to_owned()).or_default().insert(claim.uid().to_owned(), price);
        }
    }
}

/// What must not be left when all has settled.
pub(super) fn leftovers(store: &Store) -> Vec<Broken> {
    let mut broken = Vec::new();
    let claims: BTreeMap<&str, &Object> = store.all(Kind::NodeClaim).map(|claim| (claim.uid(), claim)).collect();
    for node in store.all(Kind::Node).filter(|node| !node.is_deleting()) {
        if node.list(&["spec", "taints"]).iter().any(|taint| taint["key"] == label::taint_key::DISRUPTED) {
            broken.push(Broken::TaintLeft { node: node.name.to_string() });
        }
    }
    for claim in claims.values().filter(|claim| !claim.is_deleting()) {
        if chosen_for(claim).is_some() {
            broken.push(Broken::MarkLeft { claim: claim.name.to_string() });
        }
        // Made for a command that came to nothing: what it was to replace is there, and nobody uses it.
        let replaced = claim.text(&["metadata", "annotations", annotation::REPLACES]);
        let replaced = replaced.and_then(|text| text.rsplit(' ').next()).into_iter().flat_map(|uids| uids.split(','));
        let is_moot = replaced.into_iter().any(|uid| claims.contains_key(uid));
        if is_moot && !is_used(claim, store) {
            broken.push(Broken::ReplacementOrphaned { claim: claim.name.to_string() });
        }
    }
    broken
}

fn is_used(claim: &Object, store: &Store) -> bool {
    let node = claim.text(&["status", "nodeName"]).unwrap_or_default();
    let is_daemon = |pod: &Object| pod.controller().is_some_and(|owner| owner.kind == "DaemonSet");
    store.pods_on(node).any(|pod| !is_daemon(pod))
}

/// The record that a command leaves on its claims, as far as it matters here.
struct Command<'a> {
    id: &'a str,
    decision: &'a str,
    reason: &'a str,
    /// By the autoscaler's clock.
    started: Option<Timestamp>,
    replacements: Vec<&'a str>,
}

impl<'a> Command<'a> {
    fn of(claim: &'a Object) -> Option<Self> {
        let text = claim.text(&["metadata", "annotations", annotation::COMMAND])?;
        let mut words = text.split(' ').skip(1);
        let (id, _method, decision, reason) = (words.next()?, words.next()?, words.next()?, words.next()?);
        let started = words.next().and_then(|text| text.parse().ok());
        let named = words.find_map(|word| word.strip_prefix("replacements="));
        let replacements = named.into_iter().flat_map(|names| names.split(',')).collect();
        Some(Self { id, decision, reason, started, replacements })
    }

    /// When its nodes were chosen: the mark may be written later, because the server refused it at first, and what has been
    /// started is finished whatever window opens.
    fn chosen_at(&self, marked: Timestamp) -> Timestamp {
        let started = self.started.unwrap_or(marked).min(marked);
        if marked.duration_since(started) < MARKED_WITHIN { started } else { marked }
    }
}

/// Whether the claim goes whatever becomes of the command: its node was deleted by somebody else, it has expired, or its
/// instance is gone.
fn must_go(claim: &Object, act: &Act, store: &Store, ledger: &Ledger) -> bool {
    let Some(id) = claim.text(&["status", "providerID"]) else { return false };
    let nodes = store.as_of(Kind::Node, act.heard(Kind::Node)).unwrap_or_default();
    let mut nodes = nodes.iter().filter(|node| node.text(&["spec", "providerID"]) == Some(id));
    let life = claim.text(&["spec", "expireAfter"]).and_then(|text| text.parse::<GoDuration>().ok());
    let expires = claim.created().zip(life).map(|(created, life)| created + SignedDuration::from(life));
    nodes.any(Object::is_deleting) || expires.is_some_and(|at| at <= act.decided) || ledger.price(id).is_none()
}

fn has_node(claim: &Object, store: &Store) -> bool {
    let id = claim.text(&["status", "providerID"]);
    store.all(Kind::Node).any(|node| id.is_some() && node.text(&["spec", "providerID"]) == id)
}

/// Whether a command under way replaces it.
pub(super) fn is_replaced(claim: &Object) -> bool {
    Command::of(claim).is_some_and(|command| command.decision == "replace")
}

pub(super) fn chosen_for(claim: &Object) -> Option<&str> {
    let mut conditions = claim.list(&["status", "conditions"]).iter();
    let condition = conditions.find(|known| known["type"] == "DisruptionReason" && known["status"] == "True")?;
    condition["reason"].as_str()
}

fn is_patch_of(act: &Act, claim_uid: &str) -> bool {
    let Effect::PatchClaim(target, _) = &act.effect else { return false };
    *target.uid == *claim_uid
}

fn price(claim: &Object, ledger: &Ledger) -> Option<i64> {
    ledger.price(claim.text(&["status", "providerID"])?).map(Price::micros)
}

/// The nodes that shares of a budget are taken of: initialised, as they say themselves, and their instances not going yet.
fn count_nodes(pool: &str, claims: &[Object], nodes: &[Object]) -> usize {
    let staying = claims.iter().filter(|claim| !claim.is_condition_true("InstanceTerminating"));
    let ids: BTreeSet<&str> = staying.filter_map(|claim| claim.text(&["status", "providerID"])).collect();
    let is = |node: &Object, key: &str, value: &str| node.text(&["metadata", "labels", key]) == Some(value);
    let of_pool = nodes.iter().filter(|node| is(node, label::NODEPOOL, pool) && is(node, label::INITIALIZED, "true"));
    of_pool.filter(|node| node.text(&["spec", "providerID"]).is_some_and(|id| ids.contains(id))).count()
}

/// How many nodes of the pool the strictest of its budgets leaves to this reason; `None` is any number.
fn allowance(pool: &Object, reason: &str, nodes: usize, at: Timestamp) -> Option<usize> {
    let nodes = u32::try_from(nodes).unwrap_or(u32::MAX);
    let default = [serde_json::json!({"nodes": "10%"})];
    let budgets = match pool.at(&["spec", "disruption", "budgets"]) {
        Some(_) => pool.list(&["spec", "disruption", "budgets"]),
        None => &default,
    };
    let allowances = budgets.iter().filter_map(|budget| {
        let text = |name: &str| budget[name].as_str();
        let reasons: Vec<&str> =
            budget["reasons"].as_array().into_iter().flatten().filter_map(|it| it.as_str()).collect();
        let parsed = Budget::parse(BudgetText {
            nodes: text("nodes").unwrap_or("10%"),
            reasons: &reasons,
            schedule: text("schedule"),
            duration: text("duration"),
            time_zone: text("timeZone"),
        });
        let reason: DisruptionReason = reason.parse().ok()?;
        match parsed {
            Ok(budget) if !budget.reasons.include(reason) => None,
            Ok(budget) => match budget.allowance(nodes, at) {
                Allowance::Unlimited => None,
                Allowance::AtMost(count) => Some(count),
            },
            Err(_) => Some(0),
        }
    });
    allowances.min().map(|count| usize::try_from(count).unwrap_or(usize::MAX))
}

/// What a window calls it.
fn action(reason: &str) -> Option<Action> {
    match reason {
        "Empty" => Some(Action::EmptyConsolidation),
        "Underutilized" => Some(Action::NonEmptyConsolidation),
        "Drifted" => Some(Action::Drift),
        "Unhealthy" => Some(Action::Repair),
        _ => None,
    }
}

fn denies(window: &Object, action: Action, labels: &crate::store::LabelMap<'_>, at: Timestamp) -> bool {
    let Ok(wire) = serde_json::from_value(window.body().clone()) else { return false };
    let parsed = kerf_api::parse::maintenance_window(&wire);
    parsed.is_ok_and(|parsed| parsed.value.denies(action, labels, at))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use kerf_api::admission::Admission;
    use kerf_model::cluster::ObjectName;
    use serde_json::{Value, json};

    use super::*;
    use crate::store::{Part, Patch};

    /// Says what is broken when nodes are chosen for these reasons, all in one moment, from a pool of five with these
    /// budgets.
    fn check(budgets: Value, reasons: &[&str], expected: &[(&str, usize, usize)]) {
        let now: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let mut store = Store::new(Arc::new(Admission::new(&kerf_api::crds(None)).unwrap()), 1, now);
        let class = json!({"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"});
        let spec = json!({"nodeClassRef": class, "requirements": []});
        let pool = json!({
            "metadata": {"name": "general"},
            "spec": {"disruption": {"consolidateAfter": "0s", "budgets": budgets}, "template": {"spec": spec}},
        });
        store.create(Kind::NodePool, pool, now).unwrap();
        for name in ["a", "b", "c", "d", "e"] {
            let of_pool = json!({label::NODEPOOL: "general", label::INITIALIZED: "true"});
            let node = json!({"metadata": {"name": name, "labels": of_pool}, "spec": {"providerID": name}});
            store.create(Kind::Node, node, now).unwrap();
            let claim = json!({"metadata": {"name": name, "labels": {label::NODEPOOL: "general"}}, "spec": spec});
            store.create(Kind::NodeClaim, claim, now).unwrap();
            let status = Patch::Merge(json!({"status": {"providerID": name}}));
            store.patch(Kind::NodeClaim, &ObjectName::of_cluster(name), Part::Status, &status).unwrap();
        }
        let mut choices = Choices::default();
        choices.before(&store);
        let heard: BTreeMap<_, _> = Kind::ALL.into_iter().map(|kind| (kind, store.version())).collect();
        let heard = Arc::new(heard);
        let mut acts = Vec::new();
        for (name, reason) in ["a", "b", "c", "d", "e"].into_iter().zip(reasons) {
            let condition = json!({
                "type": "DisruptionReason", "status": "True", "reason": reason, "message": reason,
                "lastTransitionTime": now,
            });
            let marked = Patch::Merge(json!({"status": {"conditions": [condition]}}));
            let name = ObjectName::of_cluster(name);
            let claim = store.patch(Kind::NodeClaim, &name, Part::Status, &marked).unwrap();
            let effect = Effect::PatchClaim(Target { name, uid: claim.uid().into() }, Box::default());
            acts.push(Act { effect, decided: now, heard: Arc::clone(&heard) });
        }
        let broken = choices.after(&store, &acts, &Ledger::default());
        let found: BTreeSet<_> = broken
            .iter()
            .map(|broken| match broken {
                Broken::NodeBudgetExceeded { reason, disrupted, allowed, .. } => {
                    (reason.as_str(), *disrupted, *allowed)
                }
                other => panic!("{other}"),
            })
            .collect();
        assert_eq!(found, expected.iter().copied().collect());
    }

    /// Seed 893: a mark was refused twice, and written just after a window had opened.
    #[test]
    fn a_command_is_judged_by_its_start_unless_its_mark_comes_much_later() {
        let at = |text: &str| format!("2026-01-01T{text}Z").parse::<Timestamp>().unwrap();
        let started = Some(at("01:59:59"));
        let command = Command { id: "c", decision: "delete", reason: "Drifted", started, replacements: Vec::new() };
        assert_eq!(command.chosen_at(at("02:00:03")), at("01:59:59"));
        assert_eq!(command.chosen_at(at("02:02:00")), at("02:02:00"));
        assert_eq!(command.chosen_at(at("01:58:00")), at("01:58:00"), "a clock that was set back");
    }

    #[test]
    fn nodes_that_are_chosen_in_one_moment_count_against_each_other() {
        check(json!([{"nodes": "1"}]), &["Empty"], &[]);
        check(json!([{"nodes": "1"}]), &["Empty", "Empty"], &[("Empty", 2, 1)]);
        check(json!([{"nodes": "1"}]), &["Empty", "Drifted"], &[("Drifted", 2, 1), ("Empty", 2, 1)]);
    }

    #[test]
    fn of_two_reasons_in_one_moment_the_one_with_less_room_comes_first() {
        let budgets = json!([{"nodes": "3"}, {"nodes": "1", "reasons": ["Drifted"]}]);
        check(budgets.clone(), &["Empty", "Empty", "Drifted"], &[]);
        check(budgets.clone(), &["Drifted", "Empty", "Drifted"], &[("Drifted", 2, 1)]);
        check(budgets, &["Empty", "Empty", "Drifted", "Empty"], &[("Empty", 4, 3)]);
    }
}
