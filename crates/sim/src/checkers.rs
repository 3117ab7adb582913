//! The first promise as code: nothing is lost. The checkers look at the store and the cloud after every step, with their
//! own eyes, and never at what the engine thinks.
//!
//! [`Guarded`] is the autoscaler with the checkers looking over its shoulder: what changes while it acts is its doing.

mod at_rest;
mod choices;
mod creations;
mod deletions;
mod flapping;
mod pods;
mod violation;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use jiff::Timestamp;
use kerf_engine::Settings;
use kerf_model::cluster::ObjectName;
use kerf_model::label;
use kerf_model::quantity::Quantity;

pub use violation::{Broken, Violation};

use crate::autoscaler::Autoscaler;
use crate::store::{ApiError, Kind, Object, Store};
use crate::world::Actor;
use choices::Choices;
use deletions::Deletions;
use flapping::Flapping;
use pods::PodWatch;

pub struct Checkers {
    pods: PodWatch,
    choices: Choices,
    deletions: Deletions,
    /// Since everything else is calm.
    flapping: Option<Flapping>,
    /// What was launched, by the claim's uid and resource.
    counted: BTreeSet<(String, &'static str)>,
    claims_seen: u64,
    machines_seen: Option<u64>,
    /// Claims that have shown their instance, by uid.
    launched: BTreeSet<String>,
    violations: Vec<Violation>,
    reported: BTreeSet<Broken>,
}

impl Checkers {
    /// For an autoscaler that is set so.
    pub fn new(settings: &Settings) -> Self {
        Self {
            pods: PodWatch::default(),
            choices: Choices::new(settings),
            deletions: Deletions::new(settings),
            flapping: None,
            counted: BTreeSet::new(),
            claims_seen: 0,
            machines_seen: None,
            launched: BTreeSet::new(),
            violations: Vec::new(),
            reported: BTreeSet::new(),
        }
    }

    pub fn violations(&self) -> &[Violation] {
        &self.violations
    }

    /// From now on nothing changes but by the autoscaler, and nothing goes wrong.
    pub fn calm(&mut self) {
        self.flapping = Some(Flapping::default());
    }

    /// Each once: a broken rule stays broken for a while.
    pub fn report(&mut self, broken: Broken, at: Timestamp) {
        if self.reported.insert(broken.clone()) {
            self.violations.push(Violation { broken, at });
        }
    }

    /// What must hold at every moment.
    pub fn after_step(&mut self, store: &Store, autoscaler: &Autoscaler, now: Timestamp) {
        let changed = store.events_after(Kind::NodeClaim, self.claims_seen).map_or(true, |events| !events.is_empty());
        if changed {
            self.claims_seen = store.version();
            self.check_limits(store, now);
            let with_instance =
                store.all(Kind::NodeClaim).filter(|claim| claim.text(&["status", "providerID"]).is_some());
            self.launched.extend(with_instance.map(|claim| claim.uid().to_owned()));
        }
        let machines = Some(autoscaler.cloud().changes());
        if changed || machines != self.machines_seen {
            self.machines_seen = machines;
            self.check_instances(store, autoscaler, now);
        }
    }

    /// Nothing is launched over a limit. Only a launch is judged: that a limit is lowered below what there is breaks
    /// nothing, nor does a node that stays after all. A node that is marked to be replaced does not count beside its
    /// replacement, which comes first: a pool at its limit could never be renewed otherwise (the reference counts so too).
    fn check_limits(&mut self, store: &Store, now: Timestamp) {
        let mut used: BTreeMap<(&str, &str), Quantity> = BTreeMap::new();
        let mut grown: BTreeSet<(&str, &str)> = BTreeSet::new();
        let staying = store.all(Kind::NodeClaim).filter(|claim| !claim.is_deleting());
        // A claim without an instance costs nothing yet.
        for claim in staying.filter(|claim| claim.text(&["status", "providerID"]).is_some()) {
            let Some(pool) = pool_of(claim) else { continue };
            let cpu = claim.text(&["status", "capacity", "cpu"]).and_then(|text| text.parse().ok());
            for (resource, amount) in [("cpu", cpu), ("nodes", "1".parse().ok())] {
                let Some(amount) = amount else { continue };
                if self.counted.insert((claim.uid().to_owned(), resource)) && is_of(claim, pool, store) {
                    grown.insert((pool, resource));
                }
                if !choices::is_replaced(claim) {
                    let total = used.entry((pool, resource)).or_insert(Quantity::ZERO);
                    *total = total.checked_add(amount).unwrap_or(*total);
                }
            }
        }
        for (pool, resource) in grown {
            let stored = store.get(Kind::NodePool, &ObjectName::of_cluster(pool)).ok();
            let limit = stored.and_then(|pool| pool.text(&["spec", "limits", resource])?.parse::<Quantity>().ok());
            let (Some(limit), Some(total)) = (limit, used.get(&(pool, resource))) else { continue };
            if *total > limit {
                let (limit, total) = (limit.to_string(), total.to_string());
                let (pool, resource) = (pool.to_owned(), resource.to_owned());
                self.report(Broken::LimitExceeded { pool, resource, limit, total }, now);
            }
        }
    }

    /// One instance per claim, and no claim goes before its instance.
    fn check_instances(&mut self, store: &Store, autoscaler: &Autoscaler, now: Timestamp) {
        let mut alive: BTreeMap<&str, usize> = BTreeMap::new();
        for machine in autoscaler.cloud().machines().filter(|machine| !machine.is_ending) {
            *alive.entry(machine.claim_uid).or_default() += 1;
        }
        let claims: BTreeSet<&str> = store.all(Kind::NodeClaim).map(Object::uid).collect();
        for (claim_uid, instances) in alive {
            if instances > 1 {
                self.report(Broken::LaunchedTwice { claim_uid: claim_uid.to_owned(), instances }, now);
            }
            // An instance that its claim never heard of is for the collector, and must be gone in the end.
            if !claims.contains(claim_uid) && self.launched.contains(claim_uid) {
                self.report(Broken::ClaimGoneBeforeInstance { claim_uid: claim_uid.to_owned() }, now);
            }
        }
    }
}

/// The autoscaler in the world, watched.
pub struct Guarded {
    pub autoscaler: Rc<RefCell<Autoscaler>>,
    pub checkers: Rc<RefCell<Checkers>>,
}

impl Actor for Guarded {
    fn name(&self) -> &'static str {
        "kerf"
    }

    fn step(&mut self, store: &mut Store, now: Timestamp) -> Result<(), ApiError> {
        {
            let mut checkers = self.checkers.borrow_mut();
            checkers.pods.before(store);
            checkers.choices.before(store);
        }
        // What it does in this step is the doing of this process, though it may die at the end of it.
        let process = self.autoscaler.borrow().process();
        self.autoscaler.borrow_mut().step(store, now)?;
        let acts = self.autoscaler.borrow_mut().take_acts();
        let ledger = self.autoscaler.borrow().ledger();
        let mut checkers = self.checkers.borrow_mut();
        let mut broken = checkers.pods.after(store, &acts);
        broken.extend(checkers.choices.after(store, &acts, &ledger, (process, now)));
        broken.extend(checkers.deletions.after(store, &acts, &ledger));
        broken.extend(creations::after(store, &acts));
        if let Some(flapping) = &mut checkers.flapping {
            broken.extend(flapping.after(store, &acts));
        }
        for broken in broken {
            checkers.report(broken, now);
        }
        Ok(())
    }

    fn next_due(&self) -> Option<Timestamp> {
        self.autoscaler.borrow().next_due()
    }
}

/// Whether the pool is the one that the claim was made for, and not another that has taken its name.
fn is_of(claim: &Object, pool: &str, store: &Store) -> bool {
    let pool = store.get(Kind::NodePool, &ObjectName::of_cluster(pool)).ok();
    pool.is_some_and(|pool| claim.owners().any(|owner| owner.uid == pool.uid()))
}

/// Where it was made or moved to, whatever label somebody has put on it since.
fn pool_of(claim: &Object) -> Option<&str> {
    let owner = claim.owners().find(|owner| owner.kind == "NodePool");
    owner.map(|owner| owner.name).or_else(|| claim.text(&["metadata", "labels", label::NODEPOOL]))
}
