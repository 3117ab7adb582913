//! Which nodes the autoscaler disrupts by choice, and whether it may: budgets, windows, protection, switches, replacement
//! first, and that what it does to save money does.
//!
//! A choice is judged by what had been heard when it was made, and counted with all that are under way.

mod choice;
mod rules;
mod waves;

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use kerf_engine::Settings;
use kerf_model::duration::GoDuration;
use kerf_model::effect::{Effect, Target};
use kerf_model::label::{self, annotation};
use kerf_model::price::Price;

use super::Broken;
use crate::autoscaler::{Act, Ledger};
use crate::store::{Kind, Object, Store};
use choice::{Choice, Command};
use waves::WaveWatch;

pub(super) use choice::{chosen_for, is_replaced, is_terminate_first};
pub(super) use rules::{denies, is_sick};

pub(super) struct Choices {
    settings: Settings,
    seen: u64,
    /// Claims that were chosen, by uid, and when that was decided where it is known.
    chosen: rules::Chosen,
    /// Claims whose nodes could once take pods, by name.
    ready: BTreeSet<String>,
    /// What the nodes of a command cost when they were chosen, in millionths of a dollar per hour.
    prices: BTreeMap<String, BTreeMap<String, i64>>,
    waves: WaveWatch,
    /// When the claims that reboot were asked to, by uid.
    reboots: BTreeMap<String, Timestamp>,
}

impl Choices {
    pub fn new(settings: &Settings) -> Self {
        Self {
            settings: settings.clone(),
            seen: 0,
            chosen: BTreeMap::new(),
            ready: BTreeSet::new(),
            prices: BTreeMap::new(),
            waves: WaveWatch::default(),
            reboots: BTreeMap::new(),
        }
    }

    /// What others did.
    pub fn before(&mut self, store: &Store) {
        for claim in self.news(store) {
            self.note(&claim);
        }
    }

    /// What the autoscaler did: its process of that number.
    pub fn after(
        &mut self,
        store: &Store,
        acts: &[Act],
        ledger: &Ledger,
        (process, now): (u64, Timestamp),
    ) -> Vec<Broken> {
        let mut broken = Vec::new();
        let mut choices = Vec::new();
        for claim in self.news(store) {
            self.note(&claim);
            let is_known = self.chosen.contains_key(claim.uid()) && !self.is_new_reboot(&claim);
            if chosen_for(&claim).is_none() || is_known {
                continue;
            }
            let act = acts.iter().find(|act| is_patch_of(act, claim.uid()));
            self.chosen.insert(claim.uid().to_owned(), act.map(|act| act.decided));
            self.note_price(&claim, ledger);
            // A choice without a known act was taken up from an older process, which is judged by its own.
            choices.extend(act.map(|act| (claim, act)));
        }
        self.waves.look(store, process, now);
        for (claim, act) in choices {
            let Some(choice) = Choice::of(&claim, act, store, &self.settings) else { continue };
            broken.extend(rules::judge(&choice, &self.chosen));
            broken.extend(self.waves.chosen(&choice, now));
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

    fn news(&mut self, store: &Store) -> Vec<Object> {
        let events = store.events_after(Kind::NodeClaim, self.seen).unwrap_or_default();
        self.seen = store.version();
        events.iter().map(|event| event.object.clone()).collect()
    }

    fn note(&mut self, claim: &Object) {
        // Whoever is let go of may be chosen again.
        if chosen_for(claim).is_none() {
            self.chosen.remove(claim.uid());
        }
        if claim.is_condition_true("Initialized") {
            self.ready.insert(claim.name.name.to_string());
        }
    }

    /// A node that is to boot once more has been chosen once more, also where its marks were never off.
    fn is_new_reboot(&mut self, claim: &Object) -> bool {
        let Some(asked) = reboot_since(claim, "True") else { return false };
        self.reboots.insert(claim.uid().to_owned(), asked).is_some_and(|before| before != asked)
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
        let ours = [label::taint_key::DISRUPTED, label::taint_key::REBOOTING];
        if node.list(&["spec", "taints"]).iter().any(|taint| ours.iter().any(|key| taint["key"] == *key)) {
            broken.push(Broken::TaintLeft { node: node.name.to_string() });
        }
    }
    for claim in claims.values().filter(|claim| !claim.is_deleting()) {
        if chosen_for(claim).is_some() || claim.is_condition_true("Rebooting") {
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

/// Whether the claim goes whatever becomes of the command: its node was deleted by somebody else, it has expired, or its
/// instance is gone, or is about to be taken by the cloud.
fn must_go(claim: &Object, act: &Act, store: &Store, ledger: &Ledger) -> bool {
    let Some(id) = claim.text(&["status", "providerID"]) else { return false };
    let nodes = store.as_of(Kind::Node, act.heard(Kind::Node)).unwrap_or_default();
    let mut nodes = nodes.iter().filter(|node| node.text(&["spec", "providerID"]) == Some(id));
    let life = claim.text(&["spec", "expireAfter"]).and_then(|text| text.parse::<GoDuration>().ok());
    let expires = claim.created().zip(life).map(|(created, life)| created + SignedDuration::from(life));
    nodes.any(Object::is_deleting)
        || expires.is_some_and(|at| at <= act.decided)
        || ledger.price(id).is_none()
        || ledger.is_ending(id)
}

/// Since when the claim's condition `Rebooting` has this status.
fn reboot_since(claim: &Object, status: &str) -> Option<Timestamp> {
    let mut conditions = claim.list(&["status", "conditions"]).iter();
    let condition = conditions.find(|known| known["type"] == "Rebooting" && known["status"] == status)?;
    condition["lastTransitionTime"].as_str()?.parse().ok()
}

fn is_patch_of(act: &Act, claim_uid: &str) -> bool {
    let Effect::PatchClaim(target, _) = &act.effect else { return false };
    *target.uid == *claim_uid
}

fn price(claim: &Object, ledger: &Ledger) -> Option<i64> {
    ledger.price(claim.text(&["status", "providerID"])?).map(Price::micros)
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
        let mut choices = Choices::new(&crate::autoscaler::Autoscaler::default_settings());
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
        let broken = choices.after(&store, &acts, &Ledger::default(), (0, now));
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
        let command = Command {
            id: "c",
            method: "drift",
            decision: "delete",
            reason: "Drifted",
            started,
            replacements: Vec::new(),
        };
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
