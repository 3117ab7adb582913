//! Problem files: one JSON object per line, so that neither side needs more memory to read them than for what is in them.
//!
//! The first line is the [`Header`], then come instance types, then Kubernetes objects as an API server lists them.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use kerf_api::change::{Reader, WatchedKind};
use kerf_api::node_claim::NodeClaim;
use kerf_api::node_pool::NodePool;
use kerf_api::provider::label_rules;
use kerf_api::slim::{SlimDaemonSet, SlimNode, SlimPod};
use kerf_model::change::Change;
use kerf_model::cluster::{InstanceType, Offering, Overhead};
use kerf_model::label::LabelRules;
use kerf_model::price::Price;
use kerf_model::quantity::Quantity;
use kerf_model::requirement::{Expression, Operator, Requirement, Requirements};
use kerf_model::resources::{ResourceList, ResourceName};
use kerf_model::snapshot::ClusterSnapshot;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What is said once.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Header {
    pub kind: String,
    pub name: String,
    /// Labels that instance types define, besides those that every provider has.
    pub well_known_labels: Vec<String>,
    /// `Respect` or `Ignore`, as `--preference-policy` takes it.
    pub preferences: String,
}

/// An instance type as both sides read it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WireType {
    kind: String,
    name: String,
    requirements: Vec<WireRequirement>,
    offerings: Vec<WireOffering>,
    capacity: BTreeMap<String, String>,
    reserved: WireReserved,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct WireRequirement {
    key: String,
    operator: String,
    values: Vec<String>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireOffering {
    requirements: Vec<WireRequirement>,
    price_micros: i64,
    available: bool,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct WireReserved {
    kube: BTreeMap<String, String>,
    system: BTreeMap<String, String>,
    eviction: BTreeMap<String, String>,
}

/// A problem as Kerf sees it.
#[derive(Debug)]
pub struct Problem {
    pub header: Header,
    pub cluster: ClusterSnapshot,
    /// Every pool sees all of them.
    pub types: Arc<[InstanceType]>,
    pub rules: LabelRules,
}

impl Problem {
    pub fn read(path: &Path) -> Result<Self> {
        let file = File::open(path).with_context(|| format!("cannot open {}", path.display()))?;
        Self::from_lines(BufReader::new(file)).with_context(|| format!("cannot read {}", path.display()))
    }

    pub fn from_lines(mut lines: impl BufRead) -> Result<Self> {
        let mut line = String::new();
        lines.read_line(&mut line)?;
        let header: Header = serde_json::from_str(&line).context("the first line is no header")?;
        let rules = label_rules(None).with_well_known(header.well_known_labels.iter().map(String::as_str));
        let mut reader = Reader::new(None);
        let (mut cluster, mut types) = (ClusterSnapshot::default(), Vec::new());
        loop {
            line.clear();
            if lines.read_line(&mut line)? == 0 {
                return Ok(Self { header, cluster, types: types.into(), rules });
            }
            match kind_of(&line)? {
                "InstanceType" => types.push(serde_json::from_str::<WireType>(&line)?.to_type(&rules)?),
                kind => cluster.apply(change(&mut reader, kind, &line)?),
            }
        }
    }

    /// An object that comes later.
    pub fn add(&mut self, kind: &str, object: &Value) -> Result<()> {
        self.cluster.apply(change(&mut Reader::new(None), kind, &object.to_string())?);
        Ok(())
    }

    /// What each pool may launch.
    pub fn types_by_pool(&self) -> BTreeMap<Arc<str>, Arc<[InstanceType]>> {
        self.cluster.pools().map(|pool| (Arc::clone(&pool.meta.name.name), Arc::clone(&self.types))).collect()
    }
}

fn change(reader: &mut Reader, kind: &str, object: &str) -> Result<Change> {
    let seen = match kind {
        "Pod" => reader.seen(WatchedKind::Pod, &serde_json::from_str::<SlimPod>(object)?)?,
        "Node" => reader.seen(WatchedKind::Node, &serde_json::from_str::<SlimNode>(object)?)?,
        "NodeClaim" => reader.seen(WatchedKind::NodeClaim, &serde_json::from_str::<NodeClaim>(object)?)?,
        "NodePool" => reader.seen(WatchedKind::NodePool, &serde_json::from_str::<NodePool>(object)?)?,
        "DaemonSet" => reader.seen(WatchedKind::DaemonSet, &serde_json::from_str::<SlimDaemonSet>(object)?)?,
        _ => bail!("a problem has no {kind}"),
    };
    if let Some(warning) = seen.warnings.first() {
        bail!("{kind}: {warning}");
    }
    Ok(seen.change)
}

/// Every line starts with its kind, so that the whole need not be read twice.
fn kind_of(line: &str) -> Result<&str> {
    let rest = line.strip_prefix("{\"kind\":\"").context("a line does not start with its kind")?;
    rest.split_once('"').map(|(kind, _)| kind).context("a line does not name its kind")
}

/// The line of a Kubernetes object: its kind comes first.
pub fn line(kind: &str, object: &Value) -> String {
    let Value::Object(fields) = object else { return String::new() };
    let mut text = format!("{{\"kind\":{}", Value::from(kind));
    for (key, value) in fields.iter().filter(|(key, _)| *key != "kind") {
        text.push_str(&format!(",{}:{value}", Value::from(key.as_str())));
    }
    text.push('}');
    text
}

impl WireType {
    pub fn of(instance_type: &InstanceType) -> Self {
        let InstanceType { name, requirements, offerings, capacity, overhead, .. } = instance_type;
        let offering = |offering: &Offering| WireOffering {
            requirements: requirements_to_wire(&offering.requirements),
            price_micros: offering.price.micros(),
            available: offering.available,
        };
        Self {
            kind: "InstanceType".into(),
            name: name.to_string(),
            requirements: requirements_to_wire(requirements),
            offerings: offerings.iter().map(offering).collect(),
            capacity: amounts(capacity),
            reserved: WireReserved {
                kube: amounts(&overhead.kube_reserved),
                system: amounts(&overhead.system_reserved),
                eviction: amounts(&overhead.eviction_threshold),
            },
        }
    }

    fn to_type(&self, rules: &LabelRules) -> Result<InstanceType> {
        let offering = |offering: &WireOffering| -> Result<Offering> {
            Ok(Offering {
                requirements: requirements_from_wire(&offering.requirements, rules)?,
                price: Price::from_micros(offering.price_micros),
                available: offering.available,
                reservation_capacity: None,
                overrides: None,
            })
        };
        Ok(InstanceType {
            name: Arc::from(self.name.as_str()),
            requirements: requirements_from_wire(&self.requirements, rules)?,
            offerings: self.offerings.iter().map(offering).collect::<Result<_>>()?,
            capacity: list(&self.capacity)?,
            volume_limits: BTreeMap::new(),
            overhead: Overhead {
                kube_reserved: list(&self.reserved.kube)?,
                system_reserved: list(&self.reserved.system)?,
                eviction_threshold: list(&self.reserved.eviction)?,
            },
        })
    }
}

fn requirements_to_wire(requirements: &Requirements) -> Vec<WireRequirement> {
    let wire = |expression: Expression| WireRequirement {
        key: expression.key.to_string(),
        operator: expression.operator.as_str().to_owned(),
        values: expression.values.iter().map(ToString::to_string).collect(),
    };
    requirements.expressions().into_iter().map(wire).collect()
}

fn requirements_from_wire(wire: &[WireRequirement], rules: &LabelRules) -> Result<Requirements> {
    let mut requirements = Requirements::new();
    for WireRequirement { key, operator, values } in wire {
        let operator: Operator = operator.parse()?;
        requirements.add(Requirement::new(key, operator, values)?, rules);
    }
    Ok(requirements)
}

fn amounts(list: &ResourceList) -> BTreeMap<String, String> {
    list.iter().map(|(name, amount)| (name.to_string(), amount.to_string())).collect()
}

fn list(amounts: &BTreeMap<String, String>) -> Result<ResourceList> {
    let amount = |(name, amount): (&String, &String)| -> Result<_> {
        Ok((ResourceName::from(name.as_str()), amount.parse::<Quantity>()?))
    };
    amounts.iter().map(amount).collect()
}
