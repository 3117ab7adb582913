//! Kubernetes objects as JSON, with no more in them than both sides read.

use serde_json::{Value, json};

/// All objects were made at the same moment, long before the benchmark looks.
pub const CREATED: &str = "2026-01-01T00:00:00Z";
const CLASS: &str = "default";

/// A pod of a workload: the parts of its template that matter.
#[derive(Debug, Clone)]
pub struct PodTemplate {
    pub labels: Value,
    pub milli_cpu: u32,
    pub memory_mib: u32,
    /// Added to `spec` as it is: selectors, affinity, spread, tolerations.
    pub spec: Value,
    pub resources: Vec<(&'static str, u32)>,
}

impl PodTemplate {
    pub fn new(labels: Value, milli_cpu: u32, memory_mib: u32) -> Self {
        Self { labels, milli_cpu, memory_mib, spec: json!({}), resources: Vec::new() }
    }

    #[must_use]
    pub fn with(mut self, field: &str, value: Value) -> Self {
        self.spec[field] = value;
        self
    }

    /// A pod that waits, and that the scheduler has found no place for.
    pub fn pending(&self, name: &str) -> Value {
        let unschedulable = json!({
            "type": "PodScheduled", "status": "False", "reason": "Unschedulable", "lastTransitionTime": CREATED,
        });
        self.pod(name, None, json!({ "phase": "Pending", "conditions": [unschedulable] }))
    }

    /// A pod that runs on a node.
    pub fn running(&self, name: &str, node: &str) -> Value {
        self.pod(name, Some(node), json!({ "phase": "Running", "startTime": CREATED }))
    }

    fn pod(&self, name: &str, node: Option<&str>, status: Value) -> Value {
        let mut requests = json!({
            "cpu": format!("{}m", self.milli_cpu), "memory": format!("{}Mi", self.memory_mib),
        });
        for (resource, amount) in &self.resources {
            requests[*resource] = json!(amount.to_string());
        }
        let mut spec = self.spec.clone();
        spec["containers"] = json!([{ "name": "main", "resources": { "requests": requests } }]);
        if let Some(node) = node {
            spec["nodeName"] = json!(node);
        }
        let owner = json!({ "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "owner", "uid": "owner", "controller": true });
        json!({
            "apiVersion": "v1",
            "metadata": {
                "name": name, "namespace": "default", "uid": name, "labels": self.labels, "creationTimestamp": CREATED,
                "ownerReferences": [owner],
            },
            "spec": spec,
            "status": status,
        })
    }
}

pub fn hard_spread(key: &str, selector: &Value) -> Value {
    json!([{
        "maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": { "matchLabels": selector },
    }])
}

pub fn pod_term(key: &str, selector: &Value) -> Value {
    json!({ "topologyKey": key, "labelSelector": { "matchLabels": selector } })
}

pub fn anti_affinity(key: &str, selector: &Value) -> Value {
    json!({ "podAntiAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": [pod_term(key, selector)] } })
}

/// A pool that is ready. `requirements` are `[key, operator, values]`.
#[derive(Debug, Clone)]
pub struct Pool {
    pub name: String,
    pub weight: Option<u32>,
    pub labels: Value,
    pub taints: Value,
    pub requirements: Vec<(String, &'static str, Vec<String>)>,
    pub limits: Value,
}

impl Pool {
    pub fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            weight: None,
            labels: json!({}),
            taints: json!([]),
            requirements: Vec::new(),
            limits: json!({}),
        }
    }

    #[must_use]
    pub fn requiring(mut self, key: &str, operator: &'static str, values: &[&str]) -> Self {
        self.requirements.push((key.to_owned(), operator, values.iter().map(|value| (*value).to_owned()).collect()));
        self
    }

    pub fn object(&self) -> Value {
        let requirement = |(key, operator, values): &(String, &str, Vec<String>)| json!({ "key": key, "operator": operator, "values": values });
        let requirements: Vec<_> = self.requirements.iter().map(requirement).collect();
        let mut spec = json!({
            "template": {
                "metadata": { "labels": self.labels },
                "spec": { "nodeClassRef": class(), "requirements": requirements, "taints": self.taints, "expireAfter": "Never" },
            },
            "limits": self.limits,
            "disruption": {
                "consolidationPolicy": "WhenEmptyOrUnderutilized", "consolidateAfter": "0s", "budgets": [{ "nodes": "10%" }],
            },
        });
        if let Some(weight) = self.weight {
            spec["weight"] = json!(weight);
        }
        // The reference takes a pool for ready only if what Ready depends on is there too.
        let conditions = ["ValidationSucceeded", "NodeClassReady", "Ready"].map(condition);
        json!({
            "apiVersion": "karpenter.sh/v1",
            "metadata": { "name": self.name, "uid": format!("pool-{}", self.name), "creationTimestamp": CREATED },
            "spec": spec,
            "status": { "conditions": conditions },
        })
    }
}

/// A node of a pool that is up, with its claim.
pub struct PoolNode<'a> {
    pub name: &'a str,
    pub pool: &'a str,
    pub labels: Value,
    pub taints: Value,
    pub capacity: Value,
    pub allocatable: Value,
}

impl PoolNode<'_> {
    fn all_labels(&self) -> Value {
        let mut labels = self.labels.clone();
        labels["karpenter.sh/nodepool"] = json!(self.pool);
        labels["karpenter.kwok.sh/kwoknodeclass"] = json!(CLASS);
        labels
    }

    pub fn claim(&self) -> Value {
        let conditions: Vec<_> =
            ["Launched", "Registered", "Initialized", "Consolidatable", "Ready"].into_iter().map(condition).collect();
        json!({
            "apiVersion": "karpenter.sh/v1",
            "metadata": {
                "name": self.name, "uid": format!("claim-{}", self.name), "creationTimestamp": CREATED,
                "labels": self.all_labels(),
            },
            "spec": { "nodeClassRef": class(), "requirements": [], "taints": self.taints, "expireAfter": "Never" },
            "status": {
                "providerID": self.provider_id(), "nodeName": self.name, "capacity": self.capacity,
                "allocatable": self.allocatable, "conditions": conditions,
            },
        })
    }

    pub fn node(&self) -> Value {
        let mut labels = self.all_labels();
        labels["kubernetes.io/hostname"] = json!(self.name);
        labels["karpenter.sh/registered"] = json!("true");
        labels["karpenter.sh/initialized"] = json!("true");
        json!({
            "apiVersion": "v1",
            "metadata": { "name": self.name, "uid": format!("node-{}", self.name), "labels": labels, "creationTimestamp": CREATED },
            "spec": { "providerID": self.provider_id(), "taints": self.taints },
            "status": { "capacity": self.capacity, "allocatable": self.allocatable, "conditions": [condition("Ready")] },
        })
    }

    fn provider_id(&self) -> String {
        format!("bench://{}", self.name)
    }
}

fn class() -> Value {
    json!({ "group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": CLASS })
}

fn condition(kind: &str) -> Value {
    json!({ "type": kind, "status": "True", "reason": kind, "message": "", "lastTransitionTime": CREATED })
}
