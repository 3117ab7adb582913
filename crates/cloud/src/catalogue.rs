//! Instance types without a cloud: what a machine has, where it is on offer and at what price.

mod ec2_like;
mod file;
mod kwok;

use std::collections::BTreeSet;
use std::sync::Arc;

use kerf_model::cluster::InstanceType;
use kerf_model::label::LabelRules;
use kerf_model::requirement::{Requirement, Requirements};

pub use file::{CatalogueError, FieldProblem};

/// In the order of the catalogue, which breaks ties. Shared: pools that see the same types see the same list.
pub type InstanceTypes = Arc<[InstanceType]>;

/// Labels that KWOK's instance types have, also those of a file.
pub const KWOK_LABELS: [&str; 4] = [KWOK_SIZE, KWOK_FAMILY, KWOK_CPU, KWOK_MEMORY];
pub(crate) const KWOK_SIZE: &str = "karpenter.kwok.sh/instance-size";
pub(crate) const KWOK_FAMILY: &str = "karpenter.kwok.sh/instance-family";
pub(crate) const KWOK_CPU: &str = "karpenter.kwok.sh/instance-cpu";
pub(crate) const KWOK_MEMORY: &str = "karpenter.kwok.sh/instance-memory";

/// A list of instance types that stays as it is.
#[derive(Debug, Clone, PartialEq)]
pub struct Catalogue {
    types: InstanceTypes,
}

impl Catalogue {
    /// KWOK's built-in 144 types (sheet 04 §13): 12 sizes, three families, two systems, two architectures.
    pub fn kwok() -> Self {
        kwok::types().collect()
    }

    /// Families and sizes as on EC2, with memory overhead as there. The prices are list prices of a past day or made up:
    /// good for realistic demos, not for accounting.
    pub fn ec2_like() -> Self {
        ec2_like::types().collect()
    }

    /// From the JSON that `--instance-types-file-path` names.
    ///
    /// # Errors
    /// The first field that cannot be used, with its place.
    pub fn from_json(text: &str) -> Result<Self, CatalogueError> {
        Ok(file::types(text)?.into_iter().collect())
    }

    pub fn types(&self) -> &InstanceTypes {
        &self.types
    }

    pub fn get(&self, name: &str) -> Option<&InstanceType> {
        self.types.iter().find(|instance_type| &*instance_type.name == name)
    }

    /// Every label that a type or an offering defines: pools and pods may use them.
    pub fn label_keys(&self) -> BTreeSet<&Arc<str>> {
        let mut keys = BTreeSet::new();
        for instance_type in self.types.iter() {
            keys.extend(instance_type.requirements.iter().map(Requirement::key));
            for offering in &instance_type.offerings {
                keys.extend(offering.requirements.iter().map(Requirement::key));
            }
        }
        keys
    }
}

impl FromIterator<InstanceType> for Catalogue {
    fn from_iter<I: IntoIterator<Item = InstanceType>>(types: I) -> Self {
        Self { types: types.into_iter().collect() }
    }
}

/// A set in which each label has one of its values.
pub(crate) fn labels<'a, V>(labels: impl IntoIterator<Item = (&'a str, V)>) -> Requirements
where
    V: IntoIterator,
    V::Item: AsRef<str>,
{
    let rules = LabelRules::core();
    let mut requirements = Requirements::new();
    for (key, values) in labels {
        requirements.add(Requirement::one_of(key, values), &rules);
    }
    requirements
}
