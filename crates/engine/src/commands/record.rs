//! A command as it stands on the objects it touches.
//!
//! Every claim that is to go carries the whole of it but the other claims: those carry it too. A claim that was made for
//! it says so, and for whom. Together they tell a new process where the command is.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use kerf_disruption::{Method, ProposalId, Reason};
use kerf_model::cloud::Repair;
use kerf_model::node_pool::ConsolidationPolicy;

use super::Decision;

/// `v1 ID METHOD DECISION REASON STARTED [replacements=A,B] [condition=TYPE] [bound=SECS] [policy=P]`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    pub id: ProposalId,
    pub method: Method,
    pub decision: Decision,
    pub reason: Reason,
    pub started: Timestamp,
    /// Names of the claims that come first.
    pub replacements: Vec<Arc<str>>,
    /// If this claim's node is sick.
    pub repair: Option<Repair>,
    pub policy: Option<ConsolidationPolicy>,
}

/// `v1 ID UID,UID`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replaces {
    pub id: ProposalId,
    /// Uids of the claims that go.
    pub candidates: Vec<Arc<str>>,
}

/// The text is no record of ours, or of a later version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unreadable;

const VERSION: &str = "v1";

impl fmt::Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { id, method, decision, reason, started, .. } = self;
        write!(f, "{VERSION} {id} {} {} {reason} {started}", method.label(), decision.label())?;
        if !self.replacements.is_empty() {
            write!(f, " replacements={}", self.replacements.join(","))?;
        }
        if let Some(repair) = &self.repair {
            write!(f, " condition={}", repair.condition)?;
            if let Some(bound) = repair.bound {
                write!(f, " bound={}", bound.as_secs())?;
            }
        }
        if let Some(policy) = self.policy {
            write!(f, " policy={}", policy.label())?;
        }
        Ok(())
    }
}

impl FromStr for Record {
    type Err = Unreadable;

    fn from_str(text: &str) -> Result<Self, Unreadable> {
        let mut words = text.split(' ');
        let mut next = || words.next().ok_or(Unreadable);
        if next()? != VERSION {
            return Err(Unreadable);
        }
        let id = ProposalId::from(next()?);
        let method = next()?;
        let method = Method::ALL.into_iter().find(|known| known.label() == method).ok_or(Unreadable)?;
        let decision = next()?;
        let decision = Decision::ALL.into_iter().find(|known| known.label() == decision).ok_or(Unreadable)?;
        let reason = next()?.parse().map_err(|_| Unreadable)?;
        let started = next()?.parse().map_err(|_| Unreadable)?;
        let mut record =
            Self { id, method, decision, reason, started, replacements: Vec::new(), repair: None, policy: None };
        let (mut condition, mut bound) = (None, None);
        // What a later version adds may be missed.
        for (key, value) in words.filter_map(|word| word.split_once('=')) {
            match key {
                "replacements" => record.replacements = value.split(',').map(Arc::from).collect(),
                "condition" => condition = Some(Arc::from(value)),
                "bound" => bound = Some(SignedDuration::from_secs(value.parse().map_err(|_| Unreadable)?)),
                "policy" => record.policy = value.parse().ok(),
                _ => {}
            }
        }
        record.repair = condition.map(|condition| Repair { condition, bound });
        Ok(record)
    }
}

impl fmt::Display for Replaces {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{VERSION} {} {}", self.id, self.candidates.join(","))
    }
}

impl FromStr for Replaces {
    type Err = Unreadable;

    fn from_str(text: &str) -> Result<Self, Unreadable> {
        let rest = text.strip_prefix(VERSION).and_then(|rest| rest.strip_prefix(' ')).ok_or(Unreadable)?;
        let (id, uids) = rest.split_once(' ').ok_or(Unreadable)?;
        Ok(Self { id: ProposalId::from(id), candidates: uids.split(',').map(Arc::from).collect() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_reads_back_as_it_was_written() {
        let record = Record {
            id: ProposalId::from("00ff"),
            method: Method::Drift,
            decision: Decision::Replace,
            reason: Reason::Drifted,
            started: "2026-11-17T10:00:00Z".parse().unwrap(),
            replacements: vec![Arc::from("a"), Arc::from("b")],
            repair: Some(Repair { condition: Arc::from("Ready"), bound: Some(SignedDuration::from_secs(60)) }),
            policy: Some(ConsolidationPolicy::Balanced),
        };
        let text = record.to_string();
        assert_eq!(
            text,
            "v1 00ff drift replace Drifted 2026-11-17T10:00:00Z replacements=a,b condition=Ready bound=60 policy=Balanced"
        );
        assert_eq!(text.parse(), Ok(record.clone()));
        assert_eq!(format!("{text} later=1").parse(), Ok(record));
        let plain = "v1 00ff emptiness delete Empty 2026-11-17T10:00:00Z";
        assert_eq!(plain.parse::<Record>().unwrap().to_string(), plain);
        for unreadable in ["", "v2 00ff", "v1 00ff dance delete Empty 2026-11-17T10:00:00Z"] {
            assert_eq!(unreadable.parse::<Record>(), Err(Unreadable));
        }
        let replaces = Replaces { id: ProposalId::from("00ff"), candidates: vec![Arc::from("u1"), Arc::from("u2")] };
        assert_eq!(replaces.to_string().parse(), Ok(replaces));
    }
}
