//! The Node of a claim: its name, its labels, its shape.

use std::borrow::Cow;
use std::sync::Arc;

use kerf_cloud::choice::Choice;
use kerf_cloud::fingerprint::fingerprint;
use kerf_model::cluster::{NodeClaim, Texts};
use kerf_model::label::HOSTNAME;
use kerf_model::price::Price;
use kerf_model::resources::ResourceList;
use kerf_model::taint::Taint;
use serde_json::{Map, Value, json};

/// On Nodes that the KWOK simulator keeps alive: a label and an annotation.
pub const FAKE_NODE: (&str, &str) = ("kwok.x-k8s.io/node", "fake");
/// Large test beds run several simulators; each takes the nodes of its partition. Ours are all in one.
pub const PARTITION: (&str, &str) = ("kwok-partition", "a");
/// Read by eks-node-viewer.
pub const PRICE_LABEL: &str = "eks-node-viewer/instance-price";

/// Of a label's value, in characters.
const LONGEST_LABEL: usize = 63;

const PROVIDER_ID_PREFIX: &str = "kwok://";

/// The same for a claim whenever it is asked; another claim of that name, made later, gets another. Upstream draws a name
/// at random, so a launch repeated after a crash makes a second node.
pub fn node_name(claim: &NodeClaim) -> String {
    // 32 bits are plenty: they only tell apart claims of one name.
    let suffix = fingerprint(&claim.meta.uid) >> 32;
    format!("kwok-{}-{suffix:08x}", claim.name())
}

/// The claim's name, as upstream, but no longer than a label may be: a pool's name may have all of its characters already.
fn hostname(claim: &str) -> Cow<'_, str> {
    if claim.len() <= LONGEST_LABEL {
        return Cow::Borrowed(claim);
    }
    // The end of a claim's name tells it from others of its pool, and so does this.
    let suffix = format!("-{:08x}", fingerprint(claim) >> 32);
    let stem = &claim[..claim.floor_char_boundary(LONGEST_LABEL - suffix.len())];
    Cow::Owned(stem.trim_end_matches(['-', '.']).to_owned() + &suffix)
}

pub fn provider_id(node_name: &str) -> Arc<str> {
    format!("{PROVIDER_ID_PREFIX}{node_name}").into()
}

/// `None` if the id is of another provider.
pub fn name_in(provider_id: &str) -> Option<&str> {
    provider_id.strip_prefix(PROVIDER_ID_PREFIX)
}

/// What the node is labelled with: as the claim, and with all that launching it has settled.
pub fn labels(claim: &NodeClaim, choice: &Choice<'_>) -> Texts {
    let mut labels = claim.meta.labels.clone();
    labels.extend(choice.labels());
    let price = price_text(choice.offering.price);
    let hostname = hostname(claim.name());
    let own = [(PRICE_LABEL, price.as_str()), PARTITION, (HOSTNAME, &*hostname), FAKE_NODE];
    labels.extend(own.map(|(key, value)| (Arc::from(key), Arc::from(value))));
    labels
}

/// The Node to post. It has the capacity of its type; upstream gives it the claim's requests, which makes pool usage and
/// limits wrong.
///
/// The claim owns it from the start, and not only once it has joined: should the claim go at the very moment of the post,
/// the cluster collects the Node.
pub fn to_post(claim: &NodeClaim, choice: &Choice<'_>, name: &str) -> Value {
    let taint = Taint::unregistered();
    let mut annotations = texts(&claim.meta.annotations);
    annotations.insert(FAKE_NODE.0.to_owned(), Value::from(FAKE_NODE.1));
    json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": texts(&labels(claim, choice)),
            "annotations": annotations,
            "ownerReferences": [{
                "apiVersion": "karpenter.sh/v1",
                "kind": "NodeClaim",
                "name": &**claim.name(),
                "uid": &*claim.meta.uid,
                "blockOwnerDeletion": true,
            }],
        },
        "spec": {
            "providerID": &*provider_id(name),
            "taints": [{"key": &*taint.key, "effect": taint.effect.as_str()}],
        },
        "status": {
            "capacity": amounts(&choice.capacity()),
            "allocatable": amounts(&choice.allocatable()),
            "phase": "Pending",
        },
    })
}

/// Dollars with six decimal places.
fn price_text(price: Price) -> String {
    let micros = price.micros().unsigned_abs();
    let sign = if price < Price::ZERO { "-" } else { "" };
    format!("{sign}{}.{:06}", micros / 1_000_000, micros % 1_000_000)
}

fn texts(texts: &Texts) -> Map<String, Value> {
    texts.iter().map(|(key, value)| (key.to_string(), Value::from(&**value))).collect()
}

fn amounts(resources: &ResourceList) -> Map<String, Value> {
    resources.iter().map(|(name, amount)| (name.to_string(), Value::from(amount.to_string()))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prices_have_six_places() {
        for (micros, text) in [(27_147, "0.027147"), (0, "0.000000"), (8_599_023, "8.599023"), (-1, "-0.000001")] {
            assert_eq!(price_text(Price::from_micros(micros)), text);
        }
    }

    #[test]
    fn only_our_ids_name_a_node() {
        assert_eq!(name_in(&provider_id("a")), Some("a"));
        assert_eq!(name_in("aws:///us-east-1a/i-0"), None);
    }
}
