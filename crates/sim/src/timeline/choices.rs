//! Nodes that are disrupted by choice: why, what comes in their place, and what it saves.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kerf_engine::commands::Record;
use kerf_model::label::{self, annotation};
use kerf_model::price::Price;

use super::{Tone, several};
use crate::autoscaler::Ledger;
use crate::store::Object;

/// A node that was chosen to go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Disruption {
    pub pool: String,
    /// As budgets name it.
    pub reason: String,
    /// Those that were chosen together have the same.
    pub command: String,
    /// As metrics name it.
    pub decision: String,
    /// Names of the claims that come in their place.
    pub replacements: Vec<Arc<str>>,
    /// From the choice until it is gone or stays after all.
    pub is_under_way: bool,
    /// It went before all its replacements could take pods.
    pub is_early: bool,
    is_going: bool,
    /// In millionths of a dollar per hour.
    price: i64,
}

#[derive(Default)]
pub(super) struct Choices {
    /// By the uid of the claim.
    chosen: BTreeMap<String, Disruption>,
    /// What came instead, and for which claims; by the uid of the replacement.
    replacements: BTreeMap<String, Replacement>,
    /// Names of claims that are initialised.
    ready: BTreeSet<String>,
    saved: i64,
}

struct Replacement {
    price: i64,
    candidates: Vec<String>,
}

impl Choices {
    pub fn all(&self) -> impl Iterator<Item = &Disruption> {
        self.chosen.values()
    }

    pub fn saved(&self) -> i64 {
        self.saved
    }

    /// What is new about a claim, to be told.
    pub fn see(&mut self, claim: &Object, ledger: &Ledger) -> Option<(String, Tone)> {
        let price = claim.text(&["status", "providerID"]).and_then(|id| ledger.price(id)).map(Price::micros);
        let replaces = claim.text(&["metadata", "annotations", annotation::REPLACES]);
        if let (Some(price), Some(candidates)) = (price, replaces.and_then(|text| text.rsplit(' ').next())) {
            let candidates = candidates.split(',').map(str::to_owned).collect();
            self.replacements.entry(claim.uid().to_owned()).or_insert(Replacement { price, candidates });
        }
        if condition(claim, "Initialized").is_some() {
            self.ready.insert(claim.name.name.to_string());
        }
        let Some((reason, _)) = condition(claim, "DisruptionReason") else {
            if let Some(known) = self.chosen.get_mut(claim.uid()) {
                known.is_under_way = false;
            }
            return None;
        };
        if let Some(known) = self.chosen.get_mut(claim.uid()) {
            // As budgets count: a node whose instance is going is behind us.
            known.is_under_way = condition(claim, "InstanceTerminating").is_none();
            known.take(claim);
            if claim.is_deleting() && !std::mem::replace(&mut known.is_going, true) {
                known.is_early = !known.replacements.iter().all(|name| self.ready.contains(&**name));
            }
            return None;
        }
        let pool = claim.text(&["metadata", "labels", label::NODEPOOL]).unwrap_or_default().to_owned();
        let price = price.unwrap_or(0);
        let mut disruption = Disruption {
            pool,
            reason: reason.to_owned(),
            command: String::new(),
            decision: String::new(),
            replacements: Vec::new(),
            is_under_way: true,
            is_early: false,
            is_going: false,
            price,
        };
        disruption.take(claim);
        self.chosen.insert(claim.uid().to_owned(), disruption);
        Some((text(claim, reason), Tone::Leaving))
    }

    pub fn gone(&mut self, claim: &Object) {
        let Some(known) = self.chosen.get_mut(claim.uid()) else { return };
        known.is_under_way = false;
        if !matches!(known.reason.as_str(), "Empty" | "Underutilized") {
            return;
        }
        self.saved += known.price;
        let is_for = |replacement: &Replacement| replacement.candidates.iter().any(|uid| uid == claim.uid());
        // Each is counted once, with the first node that it stands in for.
        let uid = self.replacements.iter().find(|(_, it)| is_for(it)).map(|(uid, _)| uid.clone());
        if let Some(replacement) = uid.and_then(|uid| self.replacements.remove(&uid)) {
            self.saved -= replacement.price;
        }
    }
}

impl Disruption {
    /// What the command says that the claim stands under. It may be another one than before.
    fn take(&mut self, claim: &Object) {
        let Some(record) = record(claim) else { return };
        self.command = record.id.to_string();
        self.decision = record.decision.metric().to_owned();
        self.replacements = record.replacements;
    }
}

fn record(claim: &Object) -> Option<Record> {
    claim.text(&["metadata", "annotations", annotation::COMMAND])?.parse().ok()
}

fn text(claim: &Object, reason: &str) -> String {
    let why = match reason {
        "Empty" => "is empty".to_owned(),
        "Underutilized" => "costs more than its pods need".to_owned(),
        "Unhealthy" => "is not well".to_owned(),
        "Drifted" => match condition(claim, "Drifted") {
            Some((reason, message)) if !message.is_empty() && message != reason => {
                format!("has drifted ({reason}: {message})")
            }
            Some((reason, _)) => format!("has drifted ({reason})"),
            None => "has drifted".to_owned(),
        },
        other => format!("is disrupted ({other})"),
    };
    match record(claim).map_or(0, |record| record.replacements.len()) {
        0 => format!("{why}: it goes"),
        1 => format!("{why}: it goes once its replacement is ready"),
        count => format!("{why}: it goes once {} are ready", several(&count.to_string(), "replacement")),
    }
}

/// Reason and message of a condition that is true.
fn condition<'a>(claim: &'a Object, type_: &str) -> Option<(&'a str, &'a str)> {
    let mut conditions = claim.list(&["status", "conditions"]).iter();
    let found = conditions.find(|known| known["type"] == type_ && known["status"] == "True")?;
    Some((found["reason"].as_str().unwrap_or_default(), found["message"].as_str().unwrap_or_default()))
}
