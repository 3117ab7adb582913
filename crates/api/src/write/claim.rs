//! New claims.

use std::collections::BTreeMap;

use kerf_model::cluster::{ObjectName, Texts};
use kerf_model::effect::NewClaim;
use kerf_model::requirement::Expression;
use kerf_model::resources::ResourceList;
use kerf_model::taint::Taint;
use serde_json::{Value, json};

use crate::api_kind::ApiKind;
use crate::node_claim::{NodeClaimSpec, ResourceRequests};
use crate::requirement::Requirement;
use crate::schema::{NodeClassRef, Quantities, Taint as WireTaint};
use crate::text::{DurationText, NillableDurationText, QuantityText};

use super::{ApiWrite, Request, fields};

pub fn create(claim: &NewClaim) -> ApiWrite {
    let mut metadata = json!({"name": &*claim.name});
    for (name, texts) in [("labels", &claim.labels), ("annotations", &claim.annotations)] {
        if !texts.is_empty() {
            metadata[name] = json!(plain(texts));
        }
    }
    if let Some(owner) = &claim.owner {
        metadata["ownerReferences"] = Value::Array(vec![fields::owner(owner)]);
    }
    let object = json!({
        "apiVersion": ApiKind::NODE_CLAIM.api_version(),
        "kind": ApiKind::NODE_CLAIM.kind,
        "metadata": metadata,
        "spec": spec(claim),
    });
    let name = ObjectName::of_cluster(claim.name.clone());
    ApiWrite { kind: ApiKind::NODE_CLAIM, name, request: Request::Create(object) }
}

fn plain(texts: &Texts) -> BTreeMap<&str, &str> {
    texts.iter().map(|(key, value)| (&**key, &**value)).collect()
}

fn spec(claim: &NewClaim) -> NodeClaimSpec {
    let node = &claim.node;
    NodeClaimSpec {
        expire_after: Some(NillableDurationText(node.expire_after.to_string())),
        node_class_ref: NodeClassRef {
            group: node.class.group.to_string(),
            kind: node.class.kind.to_string(),
            name: node.class.name.to_string(),
        },
        requirements: node.requirements.expressions().into_iter().map(requirement).collect(),
        resources: quantities(&claim.requests).map(|requests| ResourceRequests { requests: Some(requests) }),
        startup_taints: taints(&node.startup_taints),
        taints: taints(&node.taints),
        termination_grace_period: node.termination_grace_period.map(|period| DurationText(period.to_string())),
    }
}

fn requirement(expression: Expression) -> Requirement {
    let values: Vec<String> = expression.values.iter().map(ToString::to_string).collect();
    Requirement {
        key: expression.key.to_string(),
        // More than fits is more than the schema admits: the server refuses the claim and says so.
        min_values: expression.min_values.map(|count| u8::try_from(count).unwrap_or(u8::MAX)),
        operator: expression.operator.to_string(),
        values: (!values.is_empty()).then_some(values),
    }
}

fn quantities(list: &ResourceList) -> Option<Quantities> {
    let amounts = list.iter();
    let amounts = amounts.map(|(name, amount)| (name.to_string(), QuantityText::Text(amount.to_string())));
    (!list.is_empty()).then(|| amounts.collect())
}

fn taints(taints: &[Taint]) -> Option<Vec<WireTaint>> {
    let wire = taints.iter().map(|taint| WireTaint {
        effect: taint.effect.to_string(),
        key: taint.key.to_string(),
        time_added: None,
        value: (!taint.value.is_empty()).then(|| taint.value.to_string()),
    });
    (!taints.is_empty()).then(|| wire.collect())
}
