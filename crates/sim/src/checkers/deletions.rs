//! Claims that the autoscaler deletes: each for a reason that can be seen, or else a node is lost for nothing. What has
//! expired waits for windows and switches; a static pool keeps the nodes that it was promised.

use std::collections::BTreeSet;

use jiff::SignedDuration;
use kerf_engine::Settings;
use kerf_model::duration::GoDuration;
use kerf_model::effect::{Effect, Target};
use kerf_model::label::annotation;
use kerf_model::maintenance::Action;

use super::choices::{chosen_for, denies, is_sick, is_terminate_first};
use super::{Broken, pool_of};
use crate::autoscaler::{Act, Ledger};
use crate::store::{Kind, Object, Store};

pub(super) struct Deletions {
    settings: Settings,
    /// By uid, what was deleted by us.
    deleted: BTreeSet<String>,
}

/// What was known when a claim was deleted.
struct Known {
    claim: Object,
    node: Option<Object>,
    pool: Option<Object>,
    claims: Vec<Object>,
    windows: Vec<Object>,
}

impl Deletions {
    pub fn new(settings: &Settings) -> Self {
        Self { settings: settings.clone(), deleted: BTreeSet::new() }
    }

    pub fn after(&mut self, store: &Store, acts: &[Act], ledger: &Ledger) -> Vec<Broken> {
        let mut broken = Vec::new();
        for act in acts {
            let Effect::DeleteClaim(target) = &act.effect else { continue };
            let Some(known) = Known::of(target, act, store) else { continue };
            if !known.claim.is_deleting() && !self.deleted.contains(&*target.uid) {
                broken.extend(self.judge(&known, act, ledger));
            }
            self.deleted.insert(target.uid.to_string());
        }
        broken
    }

    fn judge(&self, known: &Known, act: &Act, ledger: &Ledger) -> Option<Broken> {
        let claim = known.claim.name.to_string();
        let id = known.claim.text(&["status", "providerID"]);
        let is_lost = id.is_some_and(|id| ledger.price(id).is_none() || ledger.is_ending(id));
        let is_whole = known.claim.is_condition_true("Initialized");
        let is_rebooting = known.claim.is_condition_true("Rebooting");
        let is_deleted_by_node = known.node.as_ref().is_some_and(Object::is_deleting);
        if is_lost || is_rebooting || is_deleted_by_node || !is_whole {
            return None;
        }
        // Whether a choice was a good one is looked at where it is made.
        if chosen_for(&known.claim).is_some() {
            let is_static = known.pool.as_ref().is_some_and(|pool| pool.at(&["spec", "replicas"]).is_some());
            let is_moved = known.claim.text(&["metadata", "annotations", annotation::COMMAND]);
            let is_replaced = is_moved.is_some_and(|text| text.contains(" replacements="));
            let is_short = is_static && !is_replaced && !is_terminate_first(&known.claim);
            return is_short.then_some(Broken::StaticNodeNotReplaced { claim });
        }
        let is_needless = known.claim.text(&["metadata", "annotations", annotation::REPLACES]).is_some();
        let is_legacy = self.settings.lifecycle.legacy_repair.is_some();
        let policies = &self.settings.disruption.repair_policies;
        let is_ill = is_legacy && known.node.as_ref().is_some_and(|node| is_sick(node, policies));
        if is_needless || is_ill {
            return None;
        }
        if let Some(replicas) = known.pool.as_ref().and_then(|pool| pool.number(&["spec", "replicas"])) {
            let pool = pool_of(&known.claim)?.to_owned();
            let left = known.active(&pool).filter(|claim| !self.deleted.contains(claim.uid()));
            // With the one that goes now.
            let nodes = left.count().saturating_sub(1);
            let replicas = usize::try_from(replicas).unwrap_or(0);
            if !known.is_expired(act) {
                return (nodes < replicas).then_some(Broken::StaticPoolTooSmall { pool, nodes, replicas });
            }
        }
        match known.is_expired(act) {
            true => known.hold(act).map(|by| Broken::ExpiredTooEarly { claim, by }),
            false => Some(Broken::DeletedForNothing { claim }),
        }
    }
}

impl Known {
    fn of(target: &Target, act: &Act, store: &Store) -> Option<Self> {
        let heard = |kind: Kind| store.as_of(kind, act.heard(kind)).unwrap_or_default();
        let claims = heard(Kind::NodeClaim);
        let claim = claims.iter().find(|claim| *claim.uid() == *target.uid)?.clone();
        let id = claim.text(&["status", "providerID"]);
        let node = |node: &Object| id.is_some() && node.text(&["spec", "providerID"]) == id;
        let pool = |pool: &Object| pool_of(&claim) == Some(&*pool.name.name);
        Some(Self {
            node: heard(Kind::Node).into_iter().find(node),
            pool: heard(Kind::NodePool).into_iter().find(pool),
            windows: heard(Kind::MaintenanceWindow),
            claims,
            claim,
        })
    }

    fn active<'k>(&'k self, pool: &'k str) -> impl Iterator<Item = &'k Object> {
        let is_active = |claim: &&Object| !claim.is_deleting() && chosen_for(claim).is_none();
        self.claims.iter().filter(is_active).filter(move |claim| pool_of(claim) == Some(pool))
    }

    fn is_expired(&self, act: &Act) -> bool {
        let life = self.claim.text(&["spec", "expireAfter"]).and_then(|text| text.parse::<GoDuration>().ok());
        let end = self.claim.created().zip(life).map(|(created, life)| created + SignedDuration::from(life));
        end.is_some_and(|end| end <= act.decided)
    }

    /// What should have kept it though it has expired.
    fn hold(&self, act: &Act) -> Option<String> {
        let is = |path: &[&str], value: bool| {
            self.pool.as_ref().and_then(|pool| pool.at(path)) == Some(&serde_json::Value::Bool(value))
        };
        let switches = [
            ("disabled", is(&["spec", "disabled"], true)),
            ("disableDeprovisioning", is(&["spec", "disableDeprovisioning"], true)),
            ("expiration.enabled", is(&["spec", "disruption", "expiration", "enabled"], false)),
        ];
        let switch = switches.into_iter().find(|(_, is_set)| *is_set).map(|(name, _)| name.to_owned());
        let labels = self.node.as_ref().unwrap_or(&self.claim).labels();
        let window = self.windows.iter().find(|window| denies(window, Action::Expiration, &labels, act.decided));
        switch.or_else(|| window.map(|window| window.name.to_string()))
    }
}
