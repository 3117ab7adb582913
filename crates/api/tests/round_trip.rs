//! What is read is what is written: the wire types neither add, drop nor rewrite anything.

use kerf_api::capacity_buffer::CapacityBuffer;
use kerf_api::ec2_node_class::Ec2NodeClass;
use kerf_api::kwok_node_class::KwokNodeClass;
use kerf_api::maintenance_window::MaintenanceWindow;
use kerf_api::node_claim::NodeClaim;
use kerf_api::node_overlay::NodeOverlay;
use kerf_api::node_pool::NodePool;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

fn check<T: DeserializeOwned + Serialize>(object: &Value) {
    let decoded: T = serde_json::from_value(object.clone()).expect("the object decodes");
    assert_eq!(serde_json::to_value(decoded).expect("the object encodes"), *object);
}

fn pool(template: Value, rest: Value) -> Value {
    let mut spec = rest;
    spec["template"] = template;
    spec["template"]["spec"]["nodeClassRef"] = json!({ "group": "g", "kind": "k", "name": "n" });
    spec["template"]["spec"]["requirements"] = json!([]);
    json!({ "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": { "name": "p" }, "spec": spec })
}

/// Drift hashes tell `labels: {}` from no labels and `taints: []` from no taints (sheet 01, case 6).
#[test]
fn present_but_empty_and_absent_stay_apart() {
    check::<NodePool>(&pool(json!({ "spec": {} }), json!({})));
    check::<NodePool>(&pool(
        json!({ "metadata": { "labels": {}, "annotations": {} }, "spec": { "taints": [], "startupTaints": [] } }),
        json!({ "limits": {}, "disruption": { "budgets": [], "drift": {} } }),
    ));
    check::<NodePool>(&pool(
        json!({ "metadata": {}, "spec": {} }),
        json!({ "disruption": { "budgets": [{ "reasons": [] }] } }),
    ));
}

#[test]
fn durations_and_quantities_keep_their_text() {
    check::<NodePool>(&pool(
        json!({ "spec": { "expireAfter": "43200m", "terminationGracePeriod": "9999999999h" } }),
        json!({ "limits": { "cpu": 1000, "memory": "1000Gi", "x/y": "1e3", "z": -1 }, "replicas": 0 }),
    ));
}

#[test]
fn values_of_a_later_version_decode() {
    check::<NodePool>(&pool(
        json!({ "spec": { "taints": [{ "key": "a", "effect": "Later" }] } }),
        json!({ "disruption": { "consolidationPolicy": "Later", "budgets": [{ "nodes": "1", "reasons": ["Later"] }] } }),
    ));
}

#[test]
fn a_claim_of_an_old_version_decodes_without_reason_and_message() {
    let claim = json!({
        "metadata": { "name": "c" },
        "spec": { "nodeClassRef": { "group": "g", "kind": "k", "name": "n" }, "requirements": [] },
        "status": { "conditions": [{ "type": "Ready", "status": "True", "lastTransitionTime": "2024-01-01t00:00:00z" }] },
    });
    let claim: NodeClaim = serde_json::from_value(claim).unwrap();
    let conditions = claim.status.and_then(|status| status.conditions).unwrap();
    assert_eq!((conditions[0].reason.as_str(), conditions[0].message.as_str()), ("", ""));
}

#[test]
fn every_kind_comes_back_whole() {
    check::<NodeClaim>(&json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "metadata": { "name": "c" },
        "spec": {
            "nodeClassRef": { "group": "g", "kind": "k", "name": "n" },
            "requirements": [{ "key": "a", "operator": "In", "values": ["x"], "minValues": 1 }],
            "resources": { "requests": { "cpu": 1 } },
            "taints": [{ "key": "a", "value": "b", "effect": "NoSchedule", "timeAdded": "2024-01-01T00:00:00Z" }],
        },
        "status": {
            "providerID": "kwok://c", "imageID": "i", "nodeName": "n", "lastPodEventTime": "2024-01-01T00:00:00Z",
            "capacity": { "cpu": "4" }, "allocatable": {},
        },
    }));
    check::<NodeOverlay>(&json!({
        "apiVersion": "karpenter.sh/v1alpha1", "kind": "NodeOverlay", "metadata": { "name": "o" },
        "spec": { "requirements": [], "priceAdjustment": "-10%", "capacity": { "x/y": 2 }, "weight": 5 },
    }));
    check::<CapacityBuffer>(&json!({
        "apiVersion": "autoscaling.x-k8s.io/v1beta1", "kind": "CapacityBuffer", "metadata": { "name": "b" },
        "spec": { "scalableRef": { "apiGroup": "apps", "kind": "Deployment", "name": "d" }, "percentage": 10 },
        "status": { "podTemplateRef": { "name": "t" }, "podTemplateGeneration": 3, "replicas": 2 },
    }));
    check::<MaintenanceWindow>(&json!({
        "apiVersion": "karpenter.sh/v1alpha1", "kind": "MaintenanceWindow", "metadata": { "name": "w" },
        "spec": {
            "type": "Deny", "actions": ["Drift"], "outsideSchedules": false,
            "schedules": [{ "cron": "0 9 * * mon-fri", "duration": "8h", "timeZone": "Europe/Paris" }],
            "selector": { "matchLabels": {}, "matchExpressions": [{ "key": "a", "operator": "Exists" }] },
        },
        "status": { "active": true, "matchedNodes": 0, "nextTransitionTime": "2024-01-01T00:00:00Z" },
    }));
    check::<KwokNodeClass>(&json!({
        "apiVersion": "karpenter.kwok.sh/v1alpha1", "kind": "KWOKNodeClass", "metadata": { "name": "k" },
        "spec": { "nodeRegistrationDelay": "5s" },
    }));
    check::<Ec2NodeClass>(&json!({
        "apiVersion": "karpenter.k8s.aws/v1", "kind": "EC2NodeClass", "metadata": { "name": "e" },
        "spec": {
            "role": "r", "tags": {}, "associatePublicIPAddress": false, "kubelet": { "maxPods": "vcpus*10", "x": null },
            "amiSelectorTerms": [{ "alias": "al2023@latest" }],
            "subnetSelectorTerms": [{ "id": "subnet-1" }], "securityGroupSelectorTerms": [{ "tags": { "a": "*" } }],
            "capacityReservationSelectorTerms": [{ "ownerID": "123456789012", "instanceMatchCriteria": "open" }],
            "blockDeviceMappings": [{ "ebs": { "volumeSize": "T", "kmsKeyID": "k", "snapshotID": "s", "iops": 0 } }],
            "metadataOptions": { "httpProtocolIPv6": "disabled" }, "cpuOptions": {}, "networkInterfaces": [],
        },
        "status": { "subnets": [{ "id": "s", "zone": "z", "zoneID": "i" }], "amis": [{ "id": "a", "requirements": [] }] },
    }));
}

#[test]
fn a_node_class_without_a_spec_decodes() {
    let class: Ec2NodeClass = serde_json::from_value(json!({ "metadata": { "name": "e" } })).unwrap();
    assert!(class.spec.subnet_selector_terms.is_empty());
    let class: KwokNodeClass = serde_json::from_value(json!({ "metadata": { "name": "k" } })).unwrap();
    assert_eq!(class.spec.node_registration_delay, None);
}
