//! The EC2NodeClass, with what its selectors found.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kerf_api::change::WatchedKind;
use kerf_api::ec2_node_class::{Ami, Ec2NodeClassStatus};
use kerf_api::hash::{EC2_NODE_CLASS_KEYS, HashError, Seal, Stamp, ec2_node_class_fields, ec2_node_class_seal};
use kerf_api::provider::{Provider, label_rules};
use kerf_api::slim::SlimNodeClass;
use kerf_cloud::ClassKind;
use kerf_model::cluster::NodeClass;
use kerf_model::label::LabelRules;
use kerf_model::requirement::{Expression, Requirements, UndefinedKeys};
use serde::Deserialize;
use serde_json::Value;

pub const CLASS_KIND: ClassKind = ClassKind { group: "karpenter.k8s.aws", kind: "EC2NodeClass" };

#[derive(Debug, Clone, PartialEq)]
pub struct Ec2Class {
    pub common: NodeClass,
    /// The hashes that stand on it.
    pub stamp: Stamp,
    /// Newest first.
    pub images: Vec<Image>,
    pub subnets: Vec<Subnet>,
    pub security_groups: BTreeSet<Arc<str>>,
    pub reservations: BTreeSet<Arc<str>>,
    pub instance_profile: Option<Arc<str>>,
    /// As the API server has it, with its defaults: hashes are of that.
    object: Value,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    pub id: Arc<str>,
    pub name: Option<Arc<str>>,
    /// What an instance type must be to boot it.
    pub requirements: Requirements,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subnet {
    pub id: Arc<str>,
    pub zone: Arc<str>,
    pub zone_id: Option<Arc<str>>,
}

#[derive(Debug, thiserror::Error)]
pub enum ReadClassError {
    #[error("the node class does not decode")]
    Undecodable(#[source] serde_json::Error),
    #[error("the requirements of image {image} mean nothing")]
    Requirements {
        image: String,
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

impl Ec2Class {
    /// # Errors
    /// The object breaks its schema.
    pub fn read(object: &Value) -> Result<Self, ReadClassError> {
        let api = WatchedKind::NodeClass(Provider::Aws).api_kind();
        let slim = SlimNodeClass::deserialize(object).map_err(ReadClassError::Undecodable)?;
        let common = kerf_api::parse::node_class(&slim, api.group, api.kind);
        let status = object.get("status").filter(|status| !status.is_null());
        let status = status.map(Ec2NodeClassStatus::deserialize).transpose().map_err(ReadClassError::Undecodable)?;
        let status = status.unwrap_or_default();
        let rules = label_rules(Some(Provider::Aws));
        let images = status.amis.unwrap_or_default();
        let subnets = status.subnets.unwrap_or_default().into_iter().map(|subnet| Subnet {
            id: subnet.id.into(),
            zone: subnet.zone.into(),
            zone_id: subnet.zone_id.map(Arc::from),
        });
        let groups = status.security_groups.unwrap_or_default();
        let reservations = status.capacity_reservations.unwrap_or_default();
        Ok(Self {
            stamp: Stamp::find(EC2_NODE_CLASS_KEYS, |key| common.meta.annotation(key)),
            common,
            images: images.iter().map(|image| Image::read(image, &rules)).collect::<Result<_, _>>()?,
            subnets: subnets.collect(),
            security_groups: groups.into_iter().map(|group| group.id.into()).collect(),
            reservations: reservations.into_iter().map(|reservation| reservation.id.into()).collect(),
            instance_profile: status.instance_profile.map(Arc::from),
            object: object.clone(),
        })
    }

    /// The image that a node of this kind boots: the first that suits it. Upstream: `MapToInstanceTypes`.
    pub fn image_for(&self, node: &Requirements, undefined: UndefinedKeys<'_>) -> Option<&Image> {
        self.images.iter().find(|image| node.compatible(&image.requirements, undefined).is_ok())
    }

    /// Tags that its instances have besides those that the controller sets.
    pub fn tags(&self) -> BTreeMap<Arc<str>, Arc<str>> {
        let tags = self.object.pointer("/spec/tags").and_then(Value::as_object).into_iter().flatten();
        tags.filter_map(|(key, value)| Some((Arc::from(key.as_str()), Arc::from(value.as_str()?)))).collect()
    }

    pub fn detailed_monitoring(&self) -> bool {
        self.object.pointer("/spec/detailedMonitoring").and_then(Value::as_bool).unwrap_or(false)
    }

    pub(crate) fn placement_group(&self) -> PlacementGroup<'_> {
        let selector = self.object.pointer("/spec/placementGroupSelector").filter(|selector| !selector.is_null());
        match (selector, selector.and_then(|selector| selector["id"].as_str())) {
            (None, _) => PlacementGroup::None,
            (Some(_), Some(id)) => PlacementGroup::Id(id),
            (Some(_), None) => PlacementGroup::ByName,
        }
    }

    /// What drifts with an edit, by the names that field hashes have. None of them if the object cannot be hashed.
    pub(crate) fn fields(&self) -> BTreeMap<String, Value> {
        ec2_node_class_fields(&self.object).unwrap_or_default()
    }

    /// # Errors
    /// The spec cannot be hashed.
    pub fn seal(&self, ca_bundle: &str) -> Result<Seal, HashError> {
        ec2_node_class_seal(&self.object, ca_bundle)
    }

    pub(crate) fn object(&self) -> &Value {
        &self.object
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PlacementGroup<'a> {
    None,
    Id(&'a str),
    ByName,
}

impl AsRef<NodeClass> for Ec2Class {
    fn as_ref(&self) -> &NodeClass {
        &self.common
    }
}

impl Image {
    fn read(wire: &Ami, rules: &LabelRules) -> Result<Self, ReadClassError> {
        let refused = |source: Box<dyn std::error::Error + Send + Sync>| ReadClassError::Requirements {
            image: wire.id.clone(),
            source,
        };
        let mut expressions = Vec::new();
        for requirement in &wire.requirements {
            let operator = requirement.operator.parse().map_err(|error| refused(Box::new(error)))?;
            let values = requirement.values.as_deref().unwrap_or_default();
            expressions.push(Expression::new(&requirement.key, operator, values));
        }
        let requirements = Requirements::parse(&expressions, rules);
        let requirements = requirements.map_err(|error| refused(Box::new(error)))?;
        Ok(Self { id: wire.id.as_str().into(), name: wire.name.as_deref().map(Arc::from), requirements })
    }
}
