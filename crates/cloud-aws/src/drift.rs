//! Whether an instance would be made otherwise today (sheet 05 §12, upstream: `CloudProvider.isNodeClassDrifted`).
//!
//! What the class says by itself is compared by hash, and so is known without asking anybody. What its selectors select is
//! compared with how the instance was made. The first difference is told, in the reference's order; the message names the
//! field with both values, as far as they are known.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use kerf_model::cloud::CloudDrift;
use kerf_model::cluster::{InstanceType, NodeClaim};
use kerf_model::label::{self, LabelRules};
use kerf_model::requirement::{Requirements, UndefinedKeys};

use crate::class::{Ec2Class, Image, PlacementGroup};

mod edited;

pub use edited::{Edited, FieldChange, Known, edited, edited_as_written};

/// On claims: the placement group that their instance was launched into.
pub const PLACEMENT_GROUP: &str = "karpenter.k8s.aws/placement-group-id";

/// What is compared.
#[derive(Debug, Clone, Copy)]
pub struct Look<'a> {
    pub class: &'a Ec2Class,
    pub claim: &'a NodeClaim,
    /// `None` if there is no such instance.
    pub instance: Option<&'a InstanceFacts>,
    /// The claim's type, if the cloud still has it.
    pub instance_type: Option<&'a InstanceType>,
    /// What the class's placement group selector was resolved to, if it names the group.
    pub placement_group: Option<&'a str>,
    pub rules: &'a LabelRules,
}

/// How an instance was made, and what it is like now.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InstanceFacts {
    pub image_id: Option<Arc<str>>,
    pub subnet_id: Option<Arc<str>>,
    pub security_groups: BTreeSet<Arc<str>>,
    /// While it runs in one. An instance whose reservation has ended runs on as an ordinary one.
    pub reservation_id: Option<Arc<str>>,
    /// Read for this look, and not kept from an earlier one.
    pub is_fresh: bool,
    /// `None` where they were not looked at.
    pub tags: Option<BTreeMap<Arc<str>, Arc<str>>>,
    pub detailed_monitoring: Option<bool>,
}

/// Why an instance would be made otherwise today.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DriftReason {
    NodeClass(Edited),
    Ami(Selected),
    SecurityGroup(Selected),
    Subnet(Selected),
    CapacityReservation(Selected),
    PlacementGroup(Selected),
}

/// What a selector selected for the instance, and what it selects now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selected {
    pub old: Vec<Arc<str>>,
    pub new: Vec<Arc<str>>,
}

/// What is missing for an answer. No drift: it is asked again.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CannotTell {
    #[error("there is no such instance")]
    NoInstance,
    #[error("the cloud does not know the instance type {0:?}")]
    NoInstanceType(Option<Arc<str>>),
    #[error("the image of the instance is not known")]
    NoImage,
    #[error("the node class has found no images")]
    NoImagesFound,
    #[error("the node class has found no security groups")]
    NoSecurityGroupsFound,
    #[error("the node class has found no subnets")]
    NoSubnetsFound,
    /// What is kept may be older than the end of the reservation: the instance has to be read again.
    #[error("whether the instance still runs in its capacity reservation {0} has to be read first")]
    ReservationNotFresh(Arc<str>),
    #[error("the placement group of the node class is not resolved")]
    NoPlacementGroupFound,
}

type Check = fn(Look<'_>, &InstanceFacts) -> Result<Option<DriftReason>, CannotTell>;

/// In the reference's order: what would be seen first by a user of it is seen first here.
const CHECKS: [Check; 5] = [image, security_groups, subnet, reservation, placement_group];

/// # Errors
/// Something that it depends on is not known.
pub fn drift(look: Look<'_>) -> Result<Option<CloudDrift>, CannotTell> {
    if let Some(edited) = edited(look.class, look.claim, look.instance) {
        // A change in place is worth nothing where a new instance is needed anyway. Where that is not known yet, the edit
        // waits for it: a node that could stay must not go meanwhile.
        let in_place = edited.can_be_made_in_place() && selected_otherwise(look)?.is_none();
        return Ok(Some(DriftReason::NodeClass(edited).told(in_place)));
    }
    Ok(selected_otherwise(look)?.map(|reason| reason.told(false)))
}

/// As far as it follows from class and claim as they are written: what is edited, and which image the class has found.
pub fn foresee(class: &Ec2Class, claim: &NodeClaim, rules: &LabelRules) -> Option<CloudDrift> {
    if let Some(edited) = edited_as_written(class, claim) {
        return Some(DriftReason::NodeClass(edited).told(false));
    }
    let labels = claim.meta.labels.iter().map(|(key, value)| (&**key, &**value));
    let wanted = class.image_for(&Requirements::from_labels(labels, rules), UndefinedKeys::Absent)?;
    let made_from = claim.status.image_id.as_ref().filter(|id| **id != wanted.id)?;
    Some(other_image(class, made_from, Some(wanted)).told(false))
}

fn selected_otherwise(look: Look<'_>) -> Result<Option<DriftReason>, CannotTell> {
    let instance = look.instance.ok_or(CannotTell::NoInstance)?;
    for check in CHECKS {
        if let Some(reason) = check(look, instance)? {
            return Ok(Some(reason));
        }
    }
    Ok(None)
}

fn image(look: Look<'_>, instance: &InstanceFacts) -> Result<Option<DriftReason>, CannotTell> {
    let name = look.claim.meta.labels.get(label::INSTANCE_TYPE);
    let instance_type = look.instance_type.ok_or_else(|| CannotTell::NoInstanceType(name.cloned()))?;
    if look.class.images.is_empty() {
        return Err(CannotTell::NoImagesFound);
    }
    let made_from = instance.image_id.as_ref().or(look.claim.status.image_id.as_ref()).ok_or(CannotTell::NoImage)?;
    let wanted = look.class.image_for(&instance_type.requirements, UndefinedKeys::OpenIfWellKnown(look.rules));
    if wanted.is_some_and(|wanted| wanted.id == *made_from) {
        return Ok(None);
    }
    Ok(Some(other_image(look.class, made_from, wanted)))
}

fn other_image(class: &Ec2Class, made_from: &Arc<str>, wanted: Option<&Image>) -> DriftReason {
    let named = |image: &Image| match &image.name {
        Some(name) => format!("{} ({name})", image.id).into(),
        None => Arc::clone(&image.id),
    };
    let old = class.images.iter().find(|image| image.id == *made_from).map_or_else(|| Arc::clone(made_from), named);
    DriftReason::Ami(Selected { old: vec![old], new: wanted.map(named).into_iter().collect() })
}

/// As sets: the order in which they are listed means nothing.
fn security_groups(look: Look<'_>, instance: &InstanceFacts) -> Result<Option<DriftReason>, CannotTell> {
    let wanted = &look.class.security_groups;
    if wanted.is_empty() {
        return Err(CannotTell::NoSecurityGroupsFound);
    }
    let differs = instance.security_groups != *wanted;
    Ok(differs.then(|| DriftReason::SecurityGroup(Selected::of(&instance.security_groups, wanted))))
}

fn subnet(look: Look<'_>, instance: &InstanceFacts) -> Result<Option<DriftReason>, CannotTell> {
    let subnets = &look.class.subnets;
    if subnets.is_empty() {
        return Err(CannotTell::NoSubnetsFound);
    }
    let is_in = |subnet: &crate::Subnet| instance.subnet_id.as_ref() == Some(&subnet.id);
    let differs = !subnets.iter().any(is_in);
    let ids = subnets.iter().map(|subnet| &subnet.id);
    Ok(differs.then(|| DriftReason::Subnet(Selected::of(&instance.subnet_id, ids))))
}

fn reservation(look: Look<'_>, instance: &InstanceFacts) -> Result<Option<DriftReason>, CannotTell> {
    let Some(used) = &instance.reservation_id else { return Ok(None) };
    if look.class.reservations.contains(used) {
        return Ok(None);
    }
    match instance.is_fresh {
        true => Ok(Some(DriftReason::CapacityReservation(Selected::of([used], &look.class.reservations)))),
        false => Err(CannotTell::ReservationNotFresh(Arc::clone(used))),
    }
}

fn placement_group(look: Look<'_>, _: &InstanceFacts) -> Result<Option<DriftReason>, CannotTell> {
    let used = look.claim.meta.labels.get(PLACEMENT_GROUP).filter(|id| !id.is_empty());
    let wanted = match look.class.placement_group() {
        PlacementGroup::None => None,
        PlacementGroup::Id(id) => Some(id),
        PlacementGroup::ByName => Some(look.placement_group.ok_or(CannotTell::NoPlacementGroupFound)?),
    };
    let differs = used.map(|used| &**used) != wanted;
    let wanted = wanted.map(Arc::from);
    Ok(differs.then(|| DriftReason::PlacementGroup(Selected::of(used, &wanted))))
}

impl Selected {
    fn of<'a>(old: impl IntoIterator<Item = &'a Arc<str>>, new: impl IntoIterator<Item = &'a Arc<str>>) -> Self {
        Self { old: old.into_iter().cloned().collect(), new: new.into_iter().cloned().collect() }
    }
}

impl DriftReason {
    /// The reference's name: the reason of the condition.
    pub fn label(&self) -> &'static str {
        match self {
            Self::NodeClass(_) => "NodeClassDrift",
            Self::Ami(_) => "AMIDrift",
            Self::SecurityGroup(_) => "SecurityGroupDrift",
            Self::Subnet(_) => "SubnetDrift",
            Self::CapacityReservation(_) => "CapacityReservationDrift",
            Self::PlacementGroup(_) => "PlacementGroupDrift",
        }
    }

    pub fn told(&self, in_place: bool) -> CloudDrift {
        CloudDrift { reason: self.label().into(), message: self.to_string().into(), in_place }
    }
}

impl fmt::Display for DriftReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (field, selected) = match self {
            Self::NodeClass(edited) => return write!(f, "{edited}"),
            Self::Ami(selected) => ("spec.amiSelectorTerms", selected),
            Self::SecurityGroup(selected) => ("spec.securityGroupSelectorTerms", selected),
            Self::Subnet(selected) => ("spec.subnetSelectorTerms", selected),
            Self::CapacityReservation(selected) => ("spec.capacityReservationSelectorTerms", selected),
            Self::PlacementGroup(selected) => ("spec.placementGroupSelector", selected),
        };
        let list = |ids: &[Arc<str>]| match ids {
            [] => "nothing that suits".to_owned(),
            ids => ids.join(", "),
        };
        write!(f, "{field} selected {} and selects {}", list(&selected.old), list(&selected.new))
    }
}
