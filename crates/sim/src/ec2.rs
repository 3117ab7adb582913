//! The little that the world has of AWS: an account with images, subnets and security groups, and the controller that
//! resolves EC2NodeClasses from it.
//!
//! It is there in worlds whose scenario has an EC2NodeClass. Not modelled: SSM parameters, roles and profiles that do not
//! exist, capacity reservations, placement groups, and the finalizer of a class.

mod account;
mod classes;

use std::collections::BTreeSet;
use std::sync::Arc;

use kerf_cloud::InstanceTypes;
use kerf_cloud_aws::{CLASS_KIND, Ec2Class};
use kerf_model::cluster::{InstanceType, ObjectName};
use kerf_model::label::{LabelRules, ZONE};
use kerf_model::node_pool::NodeClassRef;
use kerf_model::requirement::UndefinedKeys;

pub use account::Account;
pub use classes::Classes;

use crate::store::{Kind, Store};

/// What nodes get to trust the API server: the world has no certificates.
pub const CA_BUNDLE: &str = "";

/// The class as it is now; `None` if it is not there or cannot be read.
pub fn class(store: &Store, name: &str) -> Option<Ec2Class> {
    Ec2Class::read(store.get(Kind::Ec2NodeClass, &ObjectName::of_cluster(name)).ok()?.body()).ok()
}

/// What a pool can launch with its class.
#[derive(Debug, Clone, PartialEq)]
pub enum Launchable {
    Everything,
    /// Where the class has subnets, what it has images for.
    With(Option<Box<Ec2Class>>),
}

impl Launchable {
    pub fn of(store: &Store, class_ref: &NodeClassRef) -> Self {
        match CLASS_KIND.is_kind_of(class_ref) {
            true => Self::With(class(store, &class_ref.name).map(Box::new)),
            false => Self::Everything,
        }
    }

    /// Whether the same can be launched.
    pub fn is_as(&self, other: &Self) -> bool {
        let found = |of: &Self| match of {
            Self::Everything => None,
            Self::With(class) => Some(class.as_ref().map(|class| (class.images.clone(), class.subnets.clone()))),
        };
        found(self) == found(other)
    }

    pub fn types(&self, all: &InstanceTypes, rules: &LabelRules) -> InstanceTypes {
        match self {
            Self::Everything => Arc::clone(all),
            Self::With(None) => Arc::new([]),
            Self::With(Some(class)) => all.iter().map(|kind| launchable(kind, class, rules)).collect(),
        }
    }
}

/// The type with its offerings, of which only those can be had that the class can use.
pub fn launchable(kind: &InstanceType, class: &Ec2Class, rules: &LabelRules) -> InstanceType {
    let has_image = class.image_for(&kind.requirements, UndefinedKeys::OpenIfWellKnown(rules)).is_some();
    let zones: BTreeSet<&Arc<str>> = class.subnets.iter().map(|subnet| &subnet.zone).collect();
    let mut kind = kind.clone();
    for offering in &mut kind.offerings {
        let zone = offering.requirements.get(ZONE);
        let has_subnet = zone.is_some_and(|zone| zones.iter().any(|known| zone.has(known)));
        offering.available &= has_image && has_subnet;
    }
    kind
}
