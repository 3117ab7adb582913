//! Drift hashes against the reference's own.
//!
//! The files in `vectors/` hold random objects, and what Karpenter's code computed for them in a process in UTC: core
//! 1.15.0 for `v3`, the AWS provider 1.11.1 for `v4`, 1.14.0 for `v5`, and commit 1d927085d, before 1.15, for `v6`.
//! `null` means that it could not decode the object; a missing version, that its release did not know all fields.
//! The Go side applies no defaults: the API server does, so what is absent here is absent in the hash.

#![expect(clippy::unwrap_used, reason = "test helpers, which clippy does not see as tests")]

use std::collections::BTreeSet;

use kerf_api::hash::{Ec2HashVersion, ec2_node_class_hash, node_pool_hash};
use serde_json::{Value, json};

#[test]
fn node_pools_hash_as_the_reference_hashes_them() {
    for (line, vector) in read(include_str!("vectors/node_pools.jsonl")) {
        let ours = node_pool_hash(&vector["object"]).ok().map(|hash| hash.to_string());
        assert_eq!(ours.as_deref(), vector["v3"].as_str(), "line {line}: {}", vector["object"]);
    }
}

#[test]
fn ec2_node_classes_hash_as_the_reference_hashes_them() {
    for (line, vector) in read(include_str!("vectors/ec2_node_classes.jsonl")) {
        let ca_bundle = vector["ca"].as_str().unwrap();
        for version in Ec2HashVersion::ALL {
            let Some(theirs) = vector.get(version.as_str()) else { continue };
            let ours = ec2_node_class_hash(&vector["object"], version, ca_bundle).ok().map(|hash| hash.to_string());
            assert_eq!(ours.as_deref(), theirs.as_str(), "line {line}, {version}: {}", vector["object"]);
        }
    }
}

/// Sheet 01, case 1.
#[test]
fn the_published_ec2_node_class_hashes_in_three_versions() {
    check_class(&base_class(), "v4", "4950366118253097694");
    check_class(&base_class(), "v5", "2608468723537941485");
    check_class(&base_class(), "v6", "11148166120438674859");
}

/// Sheet 01, case 2.
#[test]
fn each_published_edit_of_the_base_class_has_its_hash() {
    for (pointer, value, hash) in [
        ("userData", json!("userdata-test-2"), "11774429238106843388"),
        ("tags/keyTag-test-3", json!("valueTag-test-3"), "9327338697296909506"),
        ("context", json!("context-2"), "2279761750428738028"),
        ("detailedMonitoring", json!(true), "1936848126751988570"),
        ("instanceStorePolicy", json!("RAID0"), "16697988646989909967"),
        ("associatePublicIPAddress", json!(true), "16141801171825097963"),
        ("metadataOptions/httpPutResponseHopLimit", json!(10), "14046948658064232764"),
        ("metadataOptions/httpTokens", json!("required"), "1346719102507290084"),
        ("connectionTracking", json!({"tcpEstablishedTimeout": 300}), "1619669030802245540"),
        ("cpuOptions", json!({"nestedVirtualization": "enabled"}), "6157846767212910604"),
        ("blockDeviceMappings/0/ebs/volumeSize", json!("10G"), "10372902467896351912"),
    ] {
        check_class(&edited(&base_class(), pointer, value), "v6", hash);
    }
    let profile = edited(&base_class(), "instanceProfile", json!("test-instance-profile"));
    check_class(&edited(&profile, "role", json!("")), "v6", "10323991363677716244");
}

/// Sheet 01, case 3.
#[test]
fn order_and_selector_terms_leave_the_hash_of_a_class_alone() {
    let mut reordered = base_class();
    reordered["spec"]["blockDeviceMappings"].as_array_mut().unwrap().reverse();
    check_class(&reordered, "v6", "11148166120438674859");
    for terms in
        ["subnetSelectorTerms", "securityGroupSelectorTerms", "amiSelectorTerms", "capacityReservationSelectorTerms"]
    {
        let edited = edited(&base_class(), terms, json!([{"tags": {"key": "value"}}]));
        check_class(&edited, "v6", "11148166120438674859");
    }
}

/// Sheet 01, case 3: as a list of bytes, 12 and 21 would be the same set.
#[test]
fn kubelet_settings_that_are_permutations_of_each_other_differ() {
    let hash = |pods: u32| class_hash(&edited(&base_class(), "kubelet", json!({"maxPods": pods})), "v6", "");
    assert_ne!(hash(12), hash(21));
}

/// Sheet 01, case 4.
#[test]
fn a_minimal_class_with_and_without_ca_bundle_and_kubelet() {
    let minimal = json!({"spec": {
        "role": "KarpenterNodeRole-demo",
        "amiSelectorTerms": [{"alias": "al2023@latest"}],
        "metadataOptions": {
            "httpEndpoint": "enabled", "httpProtocolIPv6": "disabled", "httpPutResponseHopLimit": 1, "httpTokens": "required",
        },
    }});
    assert_eq!(class_hash(&minimal, "v4", ""), "8347043255783957667");
    assert_eq!(class_hash(&minimal, "v5", ""), "13268795794593449862");
    assert_eq!(class_hash(&minimal, "v6", ""), "477699353285763520");
    assert_eq!(class_hash(&minimal, "v5", "QUJD"), "18240991242332151394");
    assert_eq!(class_hash(&minimal, "v6", "QUJD"), "4872928458314922020");

    let with_kubelet = edited(&minimal, "kubelet", json!({"maxPods": 110}));
    assert_eq!(class_hash(&with_kubelet, "v4", ""), "5304137682231009774");
    assert_eq!(class_hash(&with_kubelet, "v5", ""), "9398601179489272523");
    assert_eq!(class_hash(&with_kubelet, "v6", ""), "15797341907823663569");
}

/// Sheet 01, case 5: the value in the reference's documentation.
#[test]
fn the_documented_node_pool_hash() {
    let spec = json!({
        "nodeClassRef": {"group": "", "kind": "EC2NodeClass", "name": "default"},
        "terminationGracePeriod": "1h",
        "expireAfter": "720h",
    });
    assert_eq!(template_hash(json!({"spec": spec})), "377058807571762610");
}

/// Sheet 01, case 6.
#[test]
fn node_pools_of_an_ec2_node_class() {
    let taint = json!({"key": "dedicated", "value": "gpu", "effect": "NoSchedule"});
    for (metadata, spec, hash) in [
        (json!({}), json!({}), "6821555240594823858"),
        (json!({}), json!({"expireAfter": "Never"}), "17369979337536258260"),
        (json!({}), json!({"expireAfter": "0s"}), "15640125381500602090"),
        (json!({"labels": {}}), json!({}), "1287117484082965808"),
        (json!({"labels": {"team": "a"}}), json!({}), "1617844334411263980"),
        (json!({}), json!({"taints": []}), "17700736223175069915"),
        (json!({}), json!({"taints": [taint]}), "13579916569126205748"),
        (json!({}), json!({"taints": [taint, taint]}), "17700736223175069915"),
        (json!({}), json!({"terminationGracePeriod": "0s"}), "10356118934572431967"),
    ] {
        check_pool("karpenter.k8s.aws/EC2NodeClass", &metadata, &spec, hash);
    }
}

/// Sheet 04, section 6.5; its first row is also in sheet 01, case 6.
#[test]
fn node_pools_of_a_kwok_node_class() {
    let a = json!({"key": "a", "value": "1", "effect": "NoSchedule"});
    let b = json!({"key": "b", "effect": "NoExecute"});
    for (metadata, spec, hash) in [
        (json!({}), json!({}), "12745407319442031341"),
        (json!({}), json!({"expireAfter": "Never"}), "7428780003907761376"),
        (json!({"labels": {"team": "a"}}), json!({}), "10172464548043488983"),
        (json!({"labels": {"team": "a"}, "annotations": {"note": "b"}}), json!({}), "7766389040897660873"),
        (
            json!({}),
            json!({"taints": [{"key": "dedicated", "value": "gpu", "effect": "NoSchedule"}]}),
            "1861720833323781758",
        ),
        (
            json!({}),
            json!({"startupTaints": [{"key": "node.cilium.io/agent-not-ready", "effect": "NoExecute"}]}),
            "10323122190543792831",
        ),
        (json!({}), json!({"expireAfter": "30h", "terminationGracePeriod": "60s"}), "17354780774229441168"),
        (json!({}), json!({"terminationGracePeriod": "0s"}), "16848824146983765585"),
        (json!({}), json!({"taints": [a, b]}), "18445414455740185427"),
        (json!({}), json!({"taints": [b, a]}), "18445414455740185427"),
        (json!({"labels": {}}), json!({}), "5327702334917744615"),
    ] {
        check_pool("karpenter.kwok.sh/KWOKNodeClass", &metadata, &spec, hash);
    }
}

/// Sheet 01, case 7.
#[test]
fn the_spelling_of_durations_and_quantities_does_not_matter() {
    check_pool("karpenter.k8s.aws/EC2NodeClass", &json!({}), &json!({"expireAfter": "43200m"}), "6821555240594823858");

    let sized = |size: &str| {
        let mapping = json!([{"deviceName": "/dev/xvda", "ebs": {"volumeSize": size}}]);
        class_hash(&edited(&base_class(), "blockDeviceMappings", mapping), "v6", "")
    };
    assert_eq!(sized("1024Gi"), sized("1Ti"));
    assert_ne!(sized("1024Gi"), sized("1T"));
}

/// Sheet 01, case 7; sheet 08, section 0, for the budget.
#[test]
fn what_is_outside_of_the_template_and_its_requirements_leave_the_hash_of_a_pool_alone() {
    let mut pool = pool("karpenter.k8s.aws/EC2NodeClass", &json!({}), &json!({}));
    pool["spec"]["template"]["spec"]["requirements"] = json!([{"key": "kubernetes.io/arch", "operator": "Exists"}]);
    pool["spec"]["weight"] = json!(10);
    pool["spec"]["limits"] = json!({"cpu": "1000"});
    pool["spec"]["disruption"] = json!({"budgets": [{"nodes": "2", "reasons": ["Unhealthy"]}]});
    assert_eq!(node_pool_hash(&pool).unwrap().to_string(), "6821555240594823858");
}

/// Sheet 03, case 45: whatever of them is edited, nodes made before are seen to differ.
#[test]
fn every_field_of_the_template_but_its_requirements_has_its_part_in_the_hash_of_a_pool() {
    let base = pool("karpenter.kwok.sh/KWOKNodeClass", &json!({}), &json!({}));
    let taint = json!([{"key": "a", "effect": "NoSchedule"}]);
    let edits = [
        ("/metadata", json!({"labels": {"team": "a"}})),
        ("/metadata", json!({"labels": {"team": "b"}})),
        ("/metadata", json!({"annotations": {"team": "a"}})),
        ("/spec/taints", taint.clone()),
        ("/spec/startupTaints", taint),
        ("/spec/nodeClassRef/group", json!("other")),
        ("/spec/nodeClassRef/kind", json!("Other")),
        ("/spec/nodeClassRef/name", json!("other")),
        ("/spec/expireAfter", json!("721h")),
        ("/spec/terminationGracePeriod", json!("1m")),
        ("/spec/terminationGracePeriod", json!("2m")),
    ];
    let mut hashes = BTreeSet::from([node_pool_hash(&base).unwrap().to_string()]);
    for (path, value) in edits {
        let mut edited = base.clone();
        let (parent, field) = path.rsplit_once('/').unwrap();
        edited["spec"]["template"].pointer_mut(parent).unwrap()[field] = value.clone();
        assert!(hashes.insert(node_pool_hash(&edited).unwrap().to_string()), "{path}: {value}");
    }
}

#[test]
fn an_object_without_hash_names_the_field_and_the_rule() {
    let message = |spec: Value| {
        node_pool_hash(&pool("karpenter.k8s.aws/EC2NodeClass", &json!({}), &spec)).unwrap_err().to_string()
    };
    assert_eq!(
        message(json!({"expireAfter": "1hr"})),
        r#"spec.template.spec.expireAfter: duration "1hr" has an unknown unit "hr" at byte 1 (use h, m, s, ms, us or ns)"#,
    );
    assert_eq!(message(json!({"taints": [{"key": 7}]})), "spec.template.spec.taints[0].key: not a string");

    let class_message = |class: &Value, version| ec2_node_class_hash(class, version, "").unwrap_err().to_string();
    let with_kubelet = edited(&base_class(), "kubelet", json!({"maxPods": "vcpus * 10"}));
    assert!(ec2_node_class_hash(&with_kubelet, Ec2HashVersion::V6, "").is_ok());
    assert_eq!(class_message(&with_kubelet, Ec2HashVersion::V5), "spec.kubelet.maxPods: not a 32-bit integer");
    let with_kubelet = edited(&base_class(), "kubelet", json!({"cpuManagerPolicy": "static"}));
    assert_eq!(
        class_message(&with_kubelet, Ec2HashVersion::V4),
        "spec.kubelet.cpuManagerPolicy: not a field of the typed kubelet configuration"
    );
    let with_alias = edited(&base_class(), "amiSelectorTerms", json!([{"alias": "ubuntu@latest"}]));
    assert_eq!(
        class_message(&with_alias, Ec2HashVersion::V6),
        r#"spec.amiSelectorTerms[0].alias: not an alias of a known AMI family: "ubuntu@latest""#
    );
}

#[test]
fn writing_the_family_that_the_alias_implies_is_no_change() {
    let alias = edited(&base_class(), "amiSelectorTerms", json!([{"alias": "bottlerocket@v1.10.0"}]));
    let both = edited(&alias, "amiFamily", json!("Bottlerocket"));
    assert_eq!(class_hash(&alias, "v6", ""), class_hash(&both, "v6", ""));
    assert_ne!(class_hash(&alias, "v6", ""), class_hash(&base_class(), "v6", ""));
}

fn base_class() -> Value {
    json!({"spec": {
        "role": "role-1",
        "tags": {"keyTag-1": "valueTag-1", "keyTag-2": "valueTag-2"},
        "context": "fake-context",
        "detailedMonitoring": false,
        "associatePublicIPAddress": false,
        "metadataOptions": {
            "httpEndpoint": "disabled", "httpProtocolIPv6": "disabled", "httpPutResponseHopLimit": 1, "httpTokens": "optional",
        },
        "blockDeviceMappings": [
            {
                "deviceName": "map-device-1",
                "ebs": {
                    "deleteOnTermination": false, "encrypted": false, "iops": 0, "kmsKeyID": "fakeKMSKeyID",
                    "snapshotID": "fakeSnapshot", "throughput": 0, "volumeSize": "2G", "volumeType": "standard",
                },
            },
            {"deviceName": "map-device-2"},
        ],
        "userData": "userdata-test-1",
    }})
}

/// A copy with one field of the spec replaced or added; `path` is separated by slashes.
fn edited(class: &Value, path: &str, value: Value) -> Value {
    let mut class = class.clone();
    let target = path.split('/').fold(&mut class["spec"], |target, name| match name.parse::<usize>() {
        Ok(index) => &mut target[index],
        Err(_) => &mut target[name],
    });
    *target = value;
    class
}

fn class_hash(class: &Value, version: &str, ca_bundle: &str) -> String {
    let version = Ec2HashVersion::from_annotation(version).unwrap();
    ec2_node_class_hash(class, version, ca_bundle).unwrap().to_string()
}

fn check_class(class: &Value, version: &str, hash: &str) {
    assert_eq!(class_hash(class, version, "test-ca-bundle"), hash, "{class}");
}

/// A pool with `expireAfter: 720h`, and the given spec on top.
fn pool(node_class: &str, metadata: &Value, spec: &Value) -> Value {
    let (group, kind) = node_class.split_once('/').unwrap();
    let mut template = json!({"metadata": metadata, "spec": {
        "nodeClassRef": {"group": group, "kind": kind, "name": "default"},
        "requirements": [],
        "expireAfter": "720h",
    }});
    for (name, value) in spec.as_object().unwrap() {
        template["spec"][name] = value.clone();
    }
    json!({"spec": {"template": template}})
}

fn template_hash(template: Value) -> String {
    node_pool_hash(&json!({"spec": {"template": template}})).unwrap().to_string()
}

fn check_pool(node_class: &str, metadata: &Value, spec: &Value, hash: &str) {
    let pool = pool(node_class, metadata, spec);
    assert_eq!(node_pool_hash(&pool).unwrap().to_string(), hash, "{pool}");
}

fn read(file: &str) -> impl Iterator<Item = (usize, Value)> {
    file.lines().enumerate().map(|(index, line)| (index + 1, serde_json::from_str(line).unwrap()))
}
