//! Pods and nodes as kube-scheduler reads them, straight from their JSON.
//!
//! On purpose not `kerf_api`'s reading, which the engine uses: where the two disagree, a test should see it.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use kerf_model::cluster::{HostPort, ObjectName, Protocol, WhenUnsatisfiable};
use kerf_model::quantity::{Notation, Quantity};
use kerf_model::resources::{ResourceList, ResourceName};
use kerf_model::selector::Selector;
use kerf_model::taint::{Taint, ToleratedValue, Toleration};
use serde_json::{Map, Value};

use crate::store::Object;
use crate::store::object::{at, list};
use crate::store::query::{expression, selector};

/// What scheduling looks at.
#[derive(Debug, Clone)]
pub struct PodView {
    pub name: ObjectName,
    pub labels: BTreeMap<String, String>,
    /// It was told to stop, and has not yet.
    pub is_terminating: bool,
    pub requests: ResourceList,
    pub tolerations: Vec<Toleration>,
    pub placement: Placement,
    pub spread: Vec<Spread>,
    pub affinity: Vec<PodTerm>,
    pub anti_affinity: Vec<PodTerm>,
    pub ports: Vec<HostPort>,
    /// Names of persistent volume claims, in the pod's namespace.
    pub claims: Vec<String>,
}

/// Node selector and required node affinity.
#[derive(Debug, Clone, Default)]
pub struct Placement {
    labels: Selector,
    /// One of them must hold; `None` if there is no affinity.
    terms: Option<Vec<NodeTerm>>,
}

#[derive(Debug, Clone)]
struct NodeTerm {
    labels: Selector,
    /// From `matchFields`, which knows only the node's name.
    names: Option<Vec<String>>,
}

#[derive(Debug, Clone)]
pub struct Spread {
    pub key: String,
    pub max_skew: i64,
    pub when: WhenUnsatisfiable,
    pub selector: Option<Selector>,
    pub min_domains: Option<i64>,
    pub honors_taints: bool,
    pub honors_placement: bool,
}

#[derive(Debug, Clone)]
pub struct PodTerm {
    pub key: String,
    pub selector: Option<Selector>,
    pub namespaces: Vec<String>,
    pub namespace_selector: Option<Selector>,
}

impl PodView {
    pub fn read(pod: &Object) -> Self {
        let spec = pod.at(&["spec"]).unwrap_or(&Value::Null);
        let required = |kind: &str| {
            let terms = list(spec, &["affinity", kind, "requiredDuringSchedulingIgnoredDuringExecution"]);
            terms.iter().filter_map(PodTerm::read).collect()
        };
        let labels = texts(pod.at(&["metadata", "labels"]));
        let spread = list(spec, &["topologySpreadConstraints"]).iter();
        Self {
            name: pod.name.clone(),
            is_terminating: pod.is_deleting(),
            requests: requests(spec),
            tolerations: list(spec, &["tolerations"]).iter().filter_map(toleration).collect(),
            placement: Placement::read(spec),
            spread: spread.filter_map(|constraint| Spread::read(constraint, &labels)).collect(),
            affinity: required("podAffinity"),
            anti_affinity: required("podAntiAffinity"),
            ports: list(spec, &["containers"]).iter().flat_map(host_ports).collect(),
            claims: list(spec, &["volumes"]).iter().filter_map(|volume| claim_name(&pod.name.name, volume)).collect(),
            labels,
        }
    }
}

impl Placement {
    pub fn read(spec: &Value) -> Self {
        let labels = texts(at(spec, &["nodeSelector"]));
        let pairs = labels.iter().map(|(key, value)| (key.as_str(), value.as_str()));
        let path = ["affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms"];
        let terms = at(spec, &path).and_then(Value::as_array);
        Self {
            labels: Selector::new(pairs, []).unwrap_or_default(),
            terms: terms.map(|terms| terms.iter().filter_map(NodeTerm::read).collect()),
        }
    }

    pub fn allows(&self, node: &str, labels: &BTreeMap<String, String>) -> bool {
        self.labels.matches(labels)
            && self.terms.as_ref().is_none_or(|terms| terms.iter().any(|term| term.allows(node, labels)))
    }
}

impl NodeTerm {
    /// `None` for a term that says nothing, which selects nothing.
    pub fn read(term: &Value) -> Option<Self> {
        let expressions: Vec<_> = list(term, &["matchExpressions"]).iter().filter_map(expression).collect();
        let names = list(term, &["matchFields"]).first().map(|field| {
            list(field, &["values"]).iter().filter_map(Value::as_str).map(str::to_owned).collect::<Vec<_>>()
        });
        if expressions.is_empty() && names.is_none() {
            return None;
        }
        Some(Self { labels: Selector::new([], &expressions).ok()?, names })
    }

    fn allows(&self, node: &str, labels: &BTreeMap<String, String>) -> bool {
        self.names.as_ref().is_none_or(|names| names.iter().any(|name| name == node)) && self.labels.matches(labels)
    }
}

/// Whether a volume's required node affinity holds on a node.
pub fn volume_allows(volume: &Object, node: &str, labels: &BTreeMap<String, String>) -> bool {
    match volume.at(&["spec", "nodeAffinity", "required", "nodeSelectorTerms"]).and_then(Value::as_array) {
        None => true,
        Some(terms) => terms.iter().filter_map(NodeTerm::read).any(|term| term.allows(node, labels)),
    }
}

impl Spread {
    fn read(constraint: &Value, labels: &BTreeMap<String, String>) -> Option<Self> {
        let text = |name: &str| at(constraint, &[name]).and_then(Value::as_str);
        let number = |name: &str| at(constraint, &[name]).and_then(Value::as_i64);
        let mut chosen = at(constraint, &["labelSelector"]).cloned();
        // `matchLabelKeys`: only pods that have the same value as this one count.
        if let Some(chosen) = &mut chosen {
            for key in list(constraint, &["matchLabelKeys"]).iter().filter_map(Value::as_str) {
                if let Some(value) = labels.get(key) {
                    chosen["matchLabels"][key] = Value::from(value.as_str());
                }
            }
        }
        Some(Self {
            key: text("topologyKey")?.to_owned(),
            max_skew: number("maxSkew").unwrap_or(1),
            when: match text("whenUnsatisfiable") {
                Some("ScheduleAnyway") => WhenUnsatisfiable::ScheduleAnyway,
                _ => WhenUnsatisfiable::DoNotSchedule,
            },
            selector: selector(chosen.as_ref()),
            min_domains: number("minDomains"),
            honors_taints: text("nodeTaintsPolicy") == Some("Honor"),
            honors_placement: text("nodeAffinityPolicy") != Some("Ignore"),
        })
    }
}

impl PodTerm {
    fn read(term: &Value) -> Option<Self> {
        let namespaces = list(term, &["namespaces"]).iter().filter_map(Value::as_str);
        Some(Self {
            key: at(term, &["topologyKey"])?.as_str()?.to_owned(),
            selector: selector(at(term, &["labelSelector"])),
            namespaces: namespaces.map(str::to_owned).collect(),
            namespace_selector: selector(at(term, &["namespaceSelector"])),
        })
    }
}

/// A pod's own claim, or the one that is made for it from a template.
pub fn claim_name(pod: &str, volume: &Value) -> Option<String> {
    let named = at(volume, &["persistentVolumeClaim", "claimName"]).and_then(Value::as_str).map(str::to_owned);
    named.or_else(|| {
        at(volume, &["ephemeral"])?;
        Some(format!("{pod}-{}", at(volume, &["name"])?.as_str()?))
    })
}

pub fn taints(node: &Value) -> Vec<Taint> {
    let text = |taint: &Value, name: &str| taint[name].as_str().unwrap_or_default().to_owned();
    let taints = list(node, &["spec", "taints"]).iter();
    taints
        .filter_map(|taint| {
            Some(Taint::new(&text(taint, "key"), &text(taint, "value"), text(taint, "effect").parse().ok()?))
        })
        .collect()
}

pub fn toleration(value: &Value) -> Option<Toleration> {
    let text = |name: &str| at(value, &[name]).and_then(Value::as_str).filter(|text| !text.is_empty());
    let bound = text("value").unwrap_or_default();
    let value = match text("operator").unwrap_or("Equal") {
        "Equal" => ToleratedValue::Equal(Arc::from(bound)),
        "Exists" => ToleratedValue::Any,
        "Lt" => ToleratedValue::below(bound),
        "Gt" => ToleratedValue::above(bound),
        _ => return None,
    };
    let effect = match text("effect") {
        None => None,
        Some(effect) => Some(effect.parse().ok()?),
    };
    Some(Toleration { key: text("key").map(Arc::from), effect, value })
}

pub fn texts(map: Option<&Value>) -> BTreeMap<String, String> {
    let entries = map.and_then(Value::as_object).into_iter().flatten();
    entries.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect()
}

pub fn resources(map: Option<&Value>) -> ResourceList {
    let entries = map.and_then(Value::as_object).into_iter().flat_map(Map::iter);
    entries.filter_map(|(name, amount)| Some((ResourceName::from(name.as_str()), quantity(amount)?))).collect()
}

fn quantity(value: &Value) -> Option<Quantity> {
    match value {
        Value::String(text) => text.parse().ok(),
        Value::Number(number) => number.to_string().parse().ok(),
        _ => None,
    }
}

/// What a pod takes of its node: the larger of what its containers need together and what starting them needs at most.
fn requests(spec: &Value) -> ResourceList {
    let of = |container: &Value| resources(at(container, &["resources", "requests"]));
    let containers = list(spec, &["containers"]).iter().map(of).fold(ResourceList::new(), sum);
    let (mut sidecars, mut starting) = (ResourceList::new(), ResourceList::new());
    for container in list(spec, &["initContainers"]) {
        let needs = sum(sidecars.clone(), of(container));
        starting = starting.max(&needs);
        if container["restartPolicy"] == "Always" {
            sidecars = needs;
        }
    }
    let mut total = sum(containers, sidecars).max(&starting);
    for (name, amount) in resources(at(spec, &["resources", "requests"])).iter() {
        total.insert(name.clone(), amount);
    }
    total = sum(total, resources(at(spec, &["overhead"])));
    total.insert(ResourceName::PODS, Quantity::from_value(1, Notation::DecimalSi));
    total
}

/// Amounts beyond what a quantity can hold fit nowhere, whatever the sum says.
pub fn sum(left: ResourceList, right: ResourceList) -> ResourceList {
    left.clone().plus(&right).unwrap_or_else(|_| left.max(&right))
}

fn host_ports(container: &Value) -> Vec<HostPort> {
    let ports = list(container, &["ports"]).iter();
    ports
        .filter_map(|port| {
            let number =
                port["hostPort"].as_u64().and_then(|port| u16::try_from(port).ok()).filter(|port| *port > 0)?;
            let protocol = match port["protocol"].as_str() {
                Some("UDP") => Protocol::Udp,
                Some("SCTP") => Protocol::Sctp,
                _ => Protocol::Tcp,
            };
            let ip = port["hostIP"].as_str().and_then(|ip| ip.parse().ok());
            Some(HostPort { ip: ip.unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED)), protocol, port: number })
        })
        .collect()
}
