//! Instance types from a file, in the form of KWOK's `--instance-types-file-path` (sheet 04 §13).
//!
//! Field names may be written in any case. Offerings say zone and capacity type as requirements, or as the fields `zone`
//! and `capacityType` of the published example; there upstream loses them, and such types fit nothing. `available: false`
//! is honoured, which upstream ignores.
//!
//! The published list of AWS types has an entry per architecture and system, all of one name, of which upstream only ever
//! launches the first. Here they are one type that runs several systems.

use std::collections::BTreeMap;
use std::sync::Arc;

use kerf_model::cluster::{InstanceType, Offering, Overhead, Overrides};
use kerf_model::label::{CAPACITY_TYPE, LabelRules, ZONE};
use kerf_model::price::{ParsePriceError, Price};
use kerf_model::quantity::{Notation, ParseQuantityError, Quantity};
use kerf_model::requirement::{ExpressionError, Operator, Requirement, Requirements, UnknownOperator};
use kerf_model::resources::{ResourceList, ResourceName};
use serde_json::{Map, Value};
use thiserror::Error;

use super::kwok::Description;

/// Kubernetes' own default.
const DEFAULT_PODS: i64 = 110;

/// Why a file gives no catalogue.
#[derive(Debug, Error)]
pub enum CatalogueError {
    #[error("the file is not JSON")]
    NotJson(#[source] serde_json::Error),
    /// The path is like `[3].offerings[0].price`.
    #[error("{path}: {problem}")]
    Field { path: String, problem: FieldProblem },
}

#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum FieldProblem {
    #[error("is missing")]
    Missing,
    #[error("is not {0}")]
    Not(&'static str),
    #[error("another type has this name, and other resources or offerings")]
    Repeated,
    #[error("the offering does not say its {0}")]
    Unplaced(&'static str),
    #[error("a price cannot be negative")]
    NegativePrice,
    #[error(transparent)]
    Price(#[from] ParsePriceError),
    #[error(transparent)]
    Quantity(#[from] ParseQuantityError),
    #[error(transparent)]
    Operator(#[from] UnknownOperator),
    #[error(transparent)]
    Requirement(#[from] ExpressionError),
}

pub(super) fn types(text: &str) -> Result<Vec<InstanceType>, CatalogueError> {
    let document = serde_json::from_str(text).map_err(CatalogueError::NotJson)?;
    let document = At { path: String::new(), value: &document };
    let mut descriptions: Vec<Description> = Vec::new();
    let mut by_name = BTreeMap::new();
    for item in document.items()? {
        let description = describe(&item)?;
        match by_name.get(&description.name) {
            None => {
                by_name.insert(description.name.clone(), descriptions.len());
                descriptions.push(description);
            }
            Some(index) => {
                let first: &mut Description = &mut descriptions[*index];
                if first.capacity != description.capacity || first.offerings != description.offerings {
                    return Err(item.field("name")?.wrong(FieldProblem::Repeated));
                }
                first.architectures.extend(description.architectures);
                first.systems.extend(description.systems);
            }
        }
    }
    Ok(descriptions.into_iter().map(Description::into_type).collect())
}

fn describe(item: &At<'_>) -> Result<Description, CatalogueError> {
    let systems = item.field("operatingSystems")?.items()?;
    let offerings = item.field("offerings")?.items()?;
    Ok(Description {
        name: item.field("name")?.text()?.into(),
        architectures: vec![architecture(item.field("architecture")?.text()?).into()],
        systems: systems.iter().map(|system| system.text().map(Arc::from)).collect::<Result<_, _>>()?,
        capacity: capacity(&item.field("resources")?)?,
        offerings: offerings.iter().map(offering).collect::<Result<_, _>>()?,
    })
}

/// EC2 has other words for what Kubernetes calls `amd64` and `386`.
fn architecture(text: &str) -> &str {
    match text {
        "x86_64" => "amd64",
        "i386" => "386",
        other => other,
    }
}

fn capacity(resources: &At<'_>) -> Result<ResourceList, CatalogueError> {
    let pods = (ResourceName::PODS, Quantity::from_value(DEFAULT_PODS, Notation::DecimalSi));
    let mut capacity = ResourceList::from_iter([pods]);
    amounts(Some(resources))?.iter().for_each(|(name, amount)| capacity.insert(name.clone(), amount));
    for needed in [ResourceName::CPU, ResourceName::MEMORY] {
        if capacity.get(needed.as_str()).is_none() {
            let path = format!("{}.{needed}", resources.path);
            return Err(CatalogueError::Field { path, problem: FieldProblem::Missing });
        }
    }
    Ok(capacity)
}

fn offering(offering: &At<'_>) -> Result<Offering, CatalogueError> {
    let rules = LabelRules::core();
    let mut requirements = Requirements::new();
    if let Some(entries) = offering.optional("requirements")? {
        for entry in entries.items()? {
            requirements.add(requirement(&entry)?, &rules);
        }
    }
    for (field, key, what) in [("zone", ZONE, "zone"), ("capacityType", CAPACITY_TYPE, "capacity type")] {
        if let Some(value) = offering.optional(field)? {
            requirements.add(Requirement::one_of(key, [value.text()?]), &rules);
        }
        if requirements.get(key).is_none_or(|entry| entry.count().unwrap_or_default() == 0) {
            return Err(offering.wrong(FieldProblem::Unplaced(what)));
        }
    }
    let price = offering.field("price")?;
    let available = offering.optional("available")?.map_or(Ok(true), |available| available.flag())?;
    let reservation_capacity = offering.optional("reservationCapacity")?.map(|count| count.count()).transpose()?;
    Ok(Offering {
        requirements,
        price: price.price()?,
        available,
        // Upstream writes 0 for offerings that are no reservation.
        reservation_capacity: reservation_capacity.filter(|count| *count > 0),
        overrides: overrides(offering)?.map(Arc::new),
    })
}

fn overrides(offering: &At<'_>) -> Result<Option<Overrides>, CatalogueError> {
    let capacity = amounts(offering.optional("capacityOverride")?.as_ref())?;
    let overhead = match offering.optional("overheadOverride")? {
        None => Overhead::default(),
        Some(own) => Overhead {
            kube_reserved: amounts(own.optional("kubeReserved")?.as_ref())?,
            system_reserved: amounts(own.optional("systemReserved")?.as_ref())?,
            eviction_threshold: amounts(own.optional("evictionThreshold")?.as_ref())?,
        },
    };
    let overrides = Overrides { capacity, overhead };
    Ok((overrides != Overrides::default()).then_some(overrides))
}

fn amounts(list: Option<&At<'_>>) -> Result<ResourceList, CatalogueError> {
    let Some(list) = list else { return Ok(ResourceList::new()) };
    let fields = list.object()?.iter();
    let amount = |(name, value): (&String, _)| {
        let amount = At { path: list.path_of(name), value };
        Ok((ResourceName::from(name.as_str()), amount.quantity()?))
    };
    fields.map(amount).collect()
}

fn requirement(entry: &At<'_>) -> Result<Requirement, CatalogueError> {
    let operator = entry.field("operator")?;
    let operator: Operator = operator.text()?.parse().map_err(|error| operator.wrong(error))?;
    let values = entry.optional("values")?.map_or(Ok(Vec::new()), |values| values.items())?;
    let values = values.iter().map(At::text).collect::<Result<Vec<_>, _>>()?;
    Requirement::new(entry.field("key")?.text()?, operator, values).map_err(|error| entry.wrong(error))
}

/// A value, and where it stands.
struct At<'a> {
    path: String,
    value: &'a Value,
}

impl<'a> At<'a> {
    fn wrong(&self, problem: impl Into<FieldProblem>) -> CatalogueError {
        let path = if self.path.is_empty() { "the file".to_owned() } else { self.path.clone() };
        CatalogueError::Field { path, problem: problem.into() }
    }

    fn object(&self) -> Result<&'a Map<String, Value>, CatalogueError> {
        self.value.as_object().ok_or_else(|| self.wrong(FieldProblem::Not("an object")))
    }

    fn items(&self) -> Result<Vec<Self>, CatalogueError> {
        let items = self.value.as_array().ok_or_else(|| self.wrong(FieldProblem::Not("a list")))?;
        let at = |(index, value)| Self { path: format!("{}[{index}]", self.path), value };
        Ok(items.iter().enumerate().map(at).collect())
    }

    /// The field of this name, or else one that differs in case only. `null` is as good as nothing.
    fn optional(&self, name: &str) -> Result<Option<Self>, CatalogueError> {
        let fields = self.object()?;
        let other_case = || fields.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value);
        let value = fields.get(name).or_else(other_case).filter(|value| !value.is_null());
        Ok(value.map(|value| Self { path: self.path_of(name), value }))
    }

    fn field(&self, name: &str) -> Result<Self, CatalogueError> {
        let missing = || CatalogueError::Field { path: self.path_of(name), problem: FieldProblem::Missing };
        self.optional(name)?.ok_or_else(missing)
    }

    fn path_of(&self, field: &str) -> String {
        format!("{}.{field}", self.path)
    }

    fn text(&self) -> Result<&'a str, CatalogueError> {
        let text = self.value.as_str().filter(|text| !text.is_empty());
        text.ok_or_else(|| self.wrong(FieldProblem::Not("a text")))
    }

    fn flag(&self) -> Result<bool, CatalogueError> {
        self.value.as_bool().ok_or_else(|| self.wrong(FieldProblem::Not("true or false")))
    }

    fn count(&self) -> Result<u32, CatalogueError> {
        let count = self.value.as_u64().and_then(|count| u32::try_from(count).ok());
        count.ok_or_else(|| self.wrong(FieldProblem::Not("a count")))
    }

    fn quantity(&self) -> Result<Quantity, CatalogueError> {
        let text = match self.value {
            Value::String(text) => text.clone(),
            Value::Number(number) => number.to_string(),
            Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => {
                return Err(self.wrong(FieldProblem::Not("a quantity")));
            }
        };
        let quantity = text.parse::<Quantity>().map_err(|error| self.wrong(error))?;
        if quantity.is_negative() {
            return Err(self.wrong(FieldProblem::Not("an amount above zero")));
        }
        Ok(quantity)
    }

    fn price(&self) -> Result<Price, CatalogueError> {
        let number = self.value.as_f64().ok_or_else(|| self.wrong(FieldProblem::Not("a number")))?;
        // Printed without an exponent, whatever its size.
        let price: Price = number.to_string().parse().map_err(|error| self.wrong(FieldProblem::Price(error)))?;
        if price < Price::ZERO { Err(self.wrong(FieldProblem::NegativePrice)) } else { Ok(price) }
    }
}

#[cfg(test)]
mod tests {
    use kerf_model::label::{ARCH, OS};

    use super::super::{Catalogue, KWOK_SIZE};

    const GOOD: &str = r#"[{
        "Name": "m5.large", "architecture": "amd64", "OPERATINGSYSTEMS": ["linux"],
        "resources": {"cpu": "2", "memory": "8Gi", "nvidia.com/gpu": 1},
        "offerings": [
            {"Price": 0.096, "Available": true, "Requirements": [
                {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]},
                {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["us-west-2a"]}]},
            {"price": 0.0960000000000001, "zone": "us-west-2b", "capacityType": "on-demand", "available": false}
        ]
    }]"#;

    #[test]
    fn reads_fields_in_any_case_and_offerings_in_both_forms() {
        let catalogue = Catalogue::from_json(GOOD).unwrap();
        let kind = catalogue.get("m5.large").unwrap();
        assert_eq!(kind.capacity.to_string(), "cpu=2 memory=8Gi nvidia.com/gpu=1 pods=110");
        let shown: Vec<_> = kind
            .offerings
            .iter()
            .map(|offering| format!("{} {} {}", offering.price, offering.available, offering.requirements))
            .collect();
        let expected = [
            "0.096 true karpenter.sh/capacity-type In [on-demand], topology.kubernetes.io/zone In [us-west-2a]",
            "0.096 false karpenter.sh/capacity-type In [on-demand], topology.kubernetes.io/zone In [us-west-2b]",
        ];
        assert_eq!(shown, expected);
        assert!(kind.requirements.get(KWOK_SIZE).unwrap().has("large"));
        assert_eq!(kind.allocatable().to_string(), "cpu=1900m memory=8182Mi nvidia.com/gpu=1 pods=110");
    }

    #[test]
    fn reads_what_an_offering_has_instead_of_its_type() {
        let with = r#""zone": "us-west-2b", "capacityOverride": {"memory": "6Gi", "example.com/slice": 4},
            "overheadOverride": {"kubeReserved": {"cpu": "1"}}, "#;
        let catalogue = Catalogue::from_json(&GOOD.replacen(r#""zone": "us-west-2b", "#, with, 1)).unwrap();
        let kind = catalogue.get("m5.large").unwrap();
        assert_eq!(kind.offerings[0].overrides, None);
        let usable = kind.allocatable_with(kind.offerings[1].overrides.as_deref());
        assert_eq!(usable.to_string(), "cpu=1 example.com/slice=4 memory=6134Mi nvidia.com/gpu=1 pods=110");
    }

    #[test]
    fn says_what_is_wrong_and_where() {
        let cases = [
            ("[{", "", "the file is not JSON"),
            ("{}", "", "the file: is not a list"),
            (r#"["a"]"#, "", "[0]: is not an object"),
            (r#""Name": "m5.large","#, "", "[0].name: is missing"),
            (r#""cpu": "2", "#, "", "[0].resources.cpu: is missing"),
            (r#""8Gi""#, r#""8Gx""#, r#"[0].resources.memory: quantity "8Gx" has an unknown suffix "Gx" at byte 1"#),
            (r#""8Gi""#, r#""-8Gi""#, "[0].resources.memory: is not an amount above zero"),
            (r#""8Gi""#, "true", "[0].resources.memory: is not a quantity"),
            ("0.096,", r#""0.096","#, "[0].offerings[0].price: is not a number"),
            ("0.096,", "-0.096,", "[0].offerings[0].price: a price cannot be negative"),
            (r#""In", "values": ["us"#, r#""Within", "values": ["us"#, "[0].offerings[0].requirements[1].operator: "),
            (r#""zone": "us-west-2b", "#, "", "[0].offerings[1]: the offering does not say its zone"),
            (r#", "capacityType": "on-demand""#, "", "[0].offerings[1]: the offering does not say its capacity type"),
            (r#""available": false"#, r#""capacityOverride": {"a": -1}"#, "[0].offerings[1].capacityOverride.a: "),
            (r#""available": false"#, r#""available": "no""#, "[0].offerings[1].available: is not true or false"),
        ];
        for (from, to, expected) in cases {
            let text = if GOOD.contains(from) { GOOD.replacen(from, to, 1) } else { from.to_owned() };
            let error = Catalogue::from_json(&text).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{from}: {error}");
        }
    }

    #[test]
    fn a_name_stands_for_one_machine_that_may_run_several_systems() {
        let one = GOOD.trim_start_matches('[').trim_end_matches(']');
        let other = one.replace("linux", "windows").replace("amd64", "x86_64");
        let catalogue = Catalogue::from_json(&format!("[{one},{other}]")).unwrap();
        assert_eq!(catalogue.types().len(), 1);
        let requirements = &catalogue.types()[0].requirements;
        assert_eq!(requirements.get(OS).unwrap().to_string(), "kubernetes.io/os In [linux windows]");
        assert_eq!(requirements.get(ARCH).unwrap().to_string(), "kubernetes.io/arch In [amd64]");

        let other = one.replace("8Gi", "16Gi");
        let error = Catalogue::from_json(&format!("[{one},{other}]")).unwrap_err();
        assert_eq!(error.to_string(), "[1].name: another type has this name, and other resources or offerings");
    }
}
