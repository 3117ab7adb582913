//! One claim that was chosen, with what had been heard of the cluster when that was decided.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};
use kerf_engine::Settings;
use kerf_model::cluster::ObjectName;
use kerf_model::label::{self, annotation};
use serde_json::Value;

use crate::autoscaler::Act;
use crate::checkers::pool_of;
use crate::store::{Kind, Object, Store};

/// Longer than the server refuses to write a mark. What is marked later is judged by that.
const MARKED_WITHIN: SignedDuration = SignedDuration::from_mins(2);

pub(super) struct Choice<'a> {
    pub claim: &'a Object,
    pub reason: &'a str,
    pub act: &'a Act,
    pub store: &'a Store,
    pub settings: &'a Settings,
    pub chosen_at: Timestamp,
    pub pool_name: &'a str,
    pub pool: Option<Object>,
    pub node: Option<Object>,
}

impl<'a> Choice<'a> {
    pub fn of(claim: &'a Object, act: &'a Act, store: &'a Store, settings: &'a Settings) -> Option<Self> {
        let reason = chosen_for(claim)?;
        let pool_name = pool_of(claim)?;
        let heard = |kind: Kind| store.as_of(kind, act.heard(kind)).unwrap_or_default();
        let id = claim.text(&["status", "providerID"]);
        Some(Self {
            claim,
            reason,
            act,
            store,
            settings,
            chosen_at: Command::of(claim).map_or(act.decided, |command| command.chosen_at(act.decided)),
            pool_name,
            pool: heard(Kind::NodePool).into_iter().find(|pool| *pool.name.name == *pool_name),
            node: heard(Kind::Node).into_iter().find(|node| id.is_some() && node.text(&["spec", "providerID"]) == id),
        })
    }

    /// All of a kind, as they were known.
    pub fn heard(&self, kind: Kind) -> Vec<Object> {
        self.store.as_of(kind, self.act.heard(kind)).unwrap_or_default()
    }

    pub fn claim_name(&self) -> String {
        self.claim.name.to_string()
    }

    /// How it was chosen; `None` for a reboot, which no command stands for.
    pub fn method(&self) -> Option<&'a str> {
        Command::of(self.claim).map(|command| command.method)
    }

    pub fn pool_at(&self, path: &[&str]) -> Option<&Value> {
        self.pool.as_ref().and_then(|pool| pool.at(path))
    }

    pub fn is_of_pool(&self, claim: &Object) -> bool {
        pool_of(claim) == Some(self.pool_name)
    }

    /// The nodes that shares of a budget are taken of: initialised, as they say themselves, and their instances not going
    /// yet. One that is gone since, or not heard of yet, may be counted.
    pub fn nodes_of_pool(&self) -> usize {
        let now = |kind: Kind| -> Vec<Object> { self.store.all(kind).cloned().collect() };
        let before = self.count_nodes(&self.heard(Kind::NodeClaim), &self.heard(Kind::Node));
        before.max(self.count_nodes(&now(Kind::NodeClaim), &now(Kind::Node)))
    }

    fn count_nodes(&self, claims: &[Object], nodes: &[Object]) -> usize {
        let counts = |claim: &&Object| self.is_of_pool(claim) && !claim.is_condition_true("InstanceTerminating");
        let staying = claims.iter().filter(counts);
        let ids: BTreeSet<&str> = staying.filter_map(|claim| claim.text(&["status", "providerID"])).collect();
        // What reboots is still there, though it takes no pods.
        let rebooting = claims.iter().filter(|claim| claim.is_condition_true("Rebooting"));
        let rebooting: BTreeSet<&str> = rebooting.filter_map(|claim| claim.text(&["status", "providerID"])).collect();
        let initialized = |node: &&Object| {
            let id = node.text(&["spec", "providerID"]);
            node.text(&["metadata", "labels", label::INITIALIZED]) == Some("true")
                || id.is_some_and(|id| rebooting.contains(id))
        };
        let is_of_pool = |node: &&Object| node.text(&["spec", "providerID"]).is_some_and(|id| ids.contains(id));
        nodes.iter().filter(initialized).filter(is_of_pool).count()
    }
}

/// The record that a command leaves on its claims, as far as it matters here.
pub(super) struct Command<'a> {
    pub id: &'a str,
    pub method: &'a str,
    pub decision: &'a str,
    pub reason: &'a str,
    /// By the autoscaler's clock.
    pub started: Option<Timestamp>,
    pub replacements: Vec<&'a str>,
}

impl<'a> Command<'a> {
    pub fn of(claim: &'a Object) -> Option<Self> {
        let text = claim.text(&["metadata", "annotations", annotation::COMMAND])?;
        let mut words = text.split(' ').skip(1);
        let (id, method, decision, reason) = (words.next()?, words.next()?, words.next()?, words.next()?);
        let started = words.next().and_then(|text| text.parse().ok());
        let named = words.find_map(|word| word.strip_prefix("replacements="));
        let replacements = named.into_iter().flat_map(|names| names.split(',')).collect();
        Some(Self { id, method, decision, reason, started, replacements })
    }

    /// When its nodes were chosen: the mark may be written later, because the server refused it at first, and what has been
    /// started is finished whatever window opens.
    pub fn chosen_at(&self, marked: Timestamp) -> Timestamp {
        let started = self.started.unwrap_or(marked).min(marked);
        if marked.duration_since(started) < MARKED_WITHIN { started } else { marked }
    }
}

pub(in crate::checkers) fn chosen_for(claim: &Object) -> Option<&str> {
    let mut conditions = claim.list(&["status", "conditions"]).iter();
    let condition = conditions.find(|known| known["type"] == "DisruptionReason" && known["status"] == "True")?;
    condition["reason"].as_str()
}

/// Whether a command under way replaces it.
pub(in crate::checkers) fn is_replaced(claim: &Object) -> bool {
    Command::of(claim).is_some_and(|command| command.decision == "replace")
}

pub(in crate::checkers) fn is_terminate_first(claim: &Object) -> bool {
    Command::of(claim).is_some_and(|command| command.decision.starts_with("terminate-first"))
}

pub(super) fn pool_named(store: &Store, name: &str) -> Option<Object> {
    store.get(Kind::NodePool, &ObjectName::of_cluster(name)).ok().cloned()
}
