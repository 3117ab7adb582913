//! What the controller's next look at a cluster would leave: for a dump that nobody has looked at since it was changed,
//! and for moments to come.

use std::sync::Arc;

use jiff::Timestamp;
use kerf_lifecycle::claim::PoolRoom;
use kerf_lifecycle::claim::drift::in_place::PodKeys;
use kerf_lifecycle::claim::expiration::Expiry;
use kerf_lifecycle::claim::{expiration, foresee};
use kerf_lifecycle::{Marks, Memory, Settings, View};
use kerf_model::change::Change;
use kerf_model::cluster::NodeClaim;

use crate::cluster::{Cluster, class_kinds};

impl Cluster {
    /// Says of every claim whether it has settled and whether it has drifted, as of this moment and of the pools and
    /// classes as they are written.
    pub fn mark(&mut self, now: Timestamp) {
        let of_class = |claim: &NodeClaim| {
            let class = self.ec2_classes.get(&claim.node.class.name)?;
            let is_of = class.common.class == claim.node.class;
            is_of.then(|| kerf_cloud_aws::foresee(class, claim, &self.rules)).flatten()
        };
        let changed = self.with_view(now, |view| {
            view.snapshot.claims().filter_map(|claim| foresee(claim, of_class(claim), view)).collect::<Vec<_>>()
        });
        self.put(changed);
    }

    /// Claims whose time is over go, whatever runs on their nodes. Says which.
    pub fn expire(&mut self, now: Timestamp) -> Vec<Arc<str>> {
        let expired: Vec<NodeClaim> = self.with_view(now, |view| {
            let managed = view.snapshot.claims().filter(|claim| view.settings.manages(&claim.node.class));
            let alive = managed.filter(|claim| !claim.meta.is_deleting());
            alive.filter(|claim| expiration::judge(claim, view) == Expiry::Due).map(|claim| (**claim).clone()).collect()
        });
        let names = expired.iter().map(|claim| Arc::clone(claim.name())).collect();
        self.put(expired.into_iter().map(|mut claim| {
            claim.meta.deleting = Some(now);
            claim
        }));
        names
    }

    /// When the claim's time is over, or what holds it back though it is.
    pub fn expiry(&self, claim: &NodeClaim, now: Timestamp) -> Expiry {
        self.with_view(now, |view| expiration::judge(claim, view))
    }

    fn with_view<T>(&self, now: Timestamp, ask: impl FnOnce(View<'_>) -> T) -> T {
        ask(View {
            snapshot: &self.snapshot,
            memory: &Memory::default(),
            settings: &Settings::for_classes(class_kinds()),
            types: &self.types,
            rules: &self.rules,
            marks: &Marks::default(),
            pod_keys: &PodKeys::default(),
            room: &PoolRoom::default(),
            now,
        })
    }

    fn put(&mut self, claims: impl IntoIterator<Item = NodeClaim>) {
        for claim in claims {
            self.snapshot.apply(Change::NodeClaim(claim.meta.name.clone(), Some(Arc::new(claim))));
        }
    }
}
