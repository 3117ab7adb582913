//! Nodes that are disrupted by choice: why, what comes in their place, and what it saves.

use std::collections::BTreeMap;

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
    /// From the choice until it is gone or stays after all.
    pub is_under_way: bool,
    /// In millionths of a dollar per hour.
    price: i64,
}

#[derive(Default)]
pub(super) struct Choices {
    /// By the uid of the claim.
    chosen: BTreeMap<String, Disruption>,
    /// What came instead, and for which claims; by the uid of the replacement.
    replacements: BTreeMap<String, Replacement>,
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
        let Some((reason, _)) = condition(claim, "DisruptionReason") else {
            if let Some(known) = self.chosen.get_mut(claim.uid()) {
                known.is_under_way = false;
            }
            return None;
        };
        if let Some(known) = self.chosen.get_mut(claim.uid()) {
            // As budgets count: a node whose instance is going is behind us.
            known.is_under_way = condition(claim, "InstanceTerminating").is_none();
            return None;
        }
        let pool = claim.text(&["metadata", "labels", label::NODEPOOL]).unwrap_or_default().to_owned();
        let price = price.unwrap_or(0);
        let disruption = Disruption { pool, reason: reason.to_owned(), is_under_way: true, price };
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
    let command = claim.text(&["metadata", "annotations", annotation::COMMAND]).unwrap_or_default();
    let replacements = command.split(' ').find_map(|word| word.strip_prefix("replacements="));
    match replacements.map(|names| names.split(',').count()) {
        None => format!("{why}: it goes"),
        Some(1) => format!("{why}: it goes once its replacement is ready"),
        Some(count) => format!("{why}: it goes once {} are ready", several(&count.to_string(), "replacement")),
    }
}

/// Reason and message of a condition that is true.
fn condition<'a>(claim: &'a Object, type_: &str) -> Option<(&'a str, &'a str)> {
    let mut conditions = claim.list(&["status", "conditions"]).iter();
    let found = conditions.find(|known| known["type"] == type_ && known["status"] == "True")?;
    Some((found["reason"].as_str().unwrap_or_default(), found["message"].as_str().unwrap_or_default()))
}
