//! Where a pod's volumes let it run, and how many of them a node takes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kerf_model::cluster::{ObjectName, PersistentVolumeClaim, Pod};
use kerf_model::label::{self, LabelRules};
use kerf_model::requirement::{Expression, Requirement, Requirements};
use kerf_model::snapshot::ClusterSnapshot;

use crate::intake::{InvalidPod, VolumeProblem};

/// What the volumes of one pod ask of a node.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct VolumeNeeds {
    /// One of them must hold; none means anywhere.
    pub(crate) places: Vec<Requirements>,
    /// What will be attached.
    pub(crate) attached: Attached,
}

/// Volume claims by their driver. One that several pods share counts once.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Attached(BTreeMap<Arc<str>, BTreeSet<ObjectName>>);

impl VolumeNeeds {
    pub(crate) fn of(pod: &Pod, cluster: &ClusterSnapshot, rules: &LabelRules) -> Result<Self, InvalidPod> {
        let mut needs = Self::default();
        for volume in &pod.volumes {
            let name = ObjectName::new(Arc::clone(&pod.meta.name.namespace), Arc::clone(&volume.claim));
            let found = Found::look_up(cluster, &name).and_then(|found| {
                needs.restrict(&found.places(rules)?);
                Ok(found)
            });
            match found {
                Ok(found) => needs.attached.insert(found.driver, name),
                Err(problem) => return Err(InvalidPod::Volume { claim: name, problem }),
            }
        }
        Ok(needs)
    }

    /// Every pair of an old and a new place, without those that exclude each other. If all do, one stays: it says why
    /// the pod fits nowhere.
    fn restrict(&mut self, places: &[Requirements]) {
        if self.places.is_empty() || places.is_empty() {
            self.places.extend_from_slice(places);
            return;
        }
        let pairs = self.places.iter().flat_map(|old| {
            places.iter().map(|new| {
                let mut both = old.clone();
                both.merge(new);
                both
            })
        });
        let mut pairs: Vec<_> = pairs.collect();
        let contradicts = |pair: &Requirements| pair.iter().any(Requirement::is_contradiction);
        match pairs.iter().all(contradicts) {
            true => pairs.truncate(1),
            false => pairs.retain(|pair| !contradicts(pair)),
        }
        self.places = pairs;
    }
}

impl Attached {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn insert(&mut self, driver: Option<Arc<str>>, claim: ObjectName) {
        if let Some(driver) = driver {
            self.0.entry(driver).or_default().insert(claim);
        }
    }

    pub(crate) fn extend(&mut self, more: &Self) {
        for (driver, claims) in &more.0 {
            self.0.entry(Arc::clone(driver)).or_default().extend(claims.iter().cloned());
        }
    }

    /// What is attached already. A claim that is not known any more counts for nothing.
    pub(crate) fn by<'a>(pods: impl Iterator<Item = &'a Arc<Pod>>, cluster: &ClusterSnapshot) -> Self {
        let mut attached = Self::default();
        for pod in pods {
            for volume in &pod.volumes {
                let name = ObjectName::new(Arc::clone(&pod.meta.name.namespace), Arc::clone(&volume.claim));
                if let Some(claim) = cluster.volume_claim(&name) {
                    attached.insert(driver(cluster, claim), name);
                }
            }
        }
        attached
    }

    /// Whether a node with these limits attaches all of them.
    pub(crate) fn is_within(&self, limits: &BTreeMap<Arc<str>, u32>) -> bool {
        self.0.iter().all(|(driver, claims)| limits.get(driver).is_none_or(|limit| claims.len() <= *limit as usize))
    }

    /// Whether both together stay within the limits.
    pub(crate) fn has_room_for<'l>(&self, more: &Self, limit_of: impl Fn(&str) -> Option<u32> + 'l) -> bool {
        more.0.iter().all(|(driver, claims)| {
            let Some(limit) = limit_of(driver) else { return true };
            let own = self.0.get(driver);
            let added = claims.iter().filter(|claim| own.is_none_or(|own| !own.contains(*claim))).count();
            own.map_or(0, BTreeSet::len) + added <= limit as usize
        })
    }
}

/// A claim that can be used, and what it leads to.
struct Found {
    /// Each set of expressions is one place.
    terms: Vec<Vec<Expression>>,
    driver: Option<Arc<str>>,
    is_local: bool,
}

impl Found {
    fn look_up(cluster: &ClusterSnapshot, name: &ObjectName) -> Result<Self, VolumeProblem> {
        let claim = cluster.volume_claim(name).ok_or(VolumeProblem::NoClaim)?;
        if claim.meta.is_deleting() {
            return Err(VolumeProblem::ClaimDeleting);
        }
        if claim.is_lost {
            return Err(VolumeProblem::Lost);
        }
        let driver = driver(cluster, claim);
        if let Some(name) = &claim.volume {
            let volume = cluster.volume(name).filter(|volume| !volume.meta.is_deleting());
            let volume = volume.ok_or_else(|| VolumeProblem::NoVolume(Arc::clone(name)))?;
            if !claim.is_bound {
                return Err(VolumeProblem::NotBound);
            }
            return Ok(Self { terms: volume.node_terms.clone(), driver, is_local: volume.is_local });
        }
        let class = claim.storage_class.as_deref().and_then(|name| cluster.storage_class(name));
        let class = class.ok_or(VolumeProblem::NoStorageClass)?;
        if class.binds_immediately {
            return Err(VolumeProblem::BindsImmediately);
        }
        Ok(Self { terms: class.topologies.clone(), driver, is_local: false })
    }

    fn places(&self, rules: &LabelRules) -> Result<Vec<Requirements>, VolumeProblem> {
        let mut places = Vec::new();
        for term in self.terms.iter().filter(|term| !term.is_empty()) {
            // The node that has the disk is gone or going; a node of another name may get one of its kind.
            let kept = term.iter().filter(|expression| !(self.is_local && &*expression.key == label::HOSTNAME));
            places.push(Requirements::parse(kept, rules).map_err(VolumeProblem::Place)?);
        }
        Ok(places)
    }
}

fn driver(cluster: &ClusterSnapshot, claim: &PersistentVolumeClaim) -> Option<Arc<str>> {
    match &claim.volume {
        Some(name) => cluster.volume(name)?.driver.clone(),
        None => Some(Arc::clone(&cluster.storage_class(claim.storage_class.as_deref()?)?.provisioner)),
    }
}
