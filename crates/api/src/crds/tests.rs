use serde_json::{Value, json};

use super::*;

/// One definition as JSON, the way the API server gets it.
fn crd(provider: Option<Provider>, kind: &str) -> Value {
    let crd = crds(provider).into_iter().find(|crd| crd.spec.names.kind == kind).unwrap();
    serde_json::to_value(crd).unwrap()
}

fn version(crd: &Value) -> &Value {
    &crd["spec"]["versions"][0]
}

/// The schema at a path of field names; `[]` goes into the items of a list.
fn field<'a>(crd: &'a Value, path: &str) -> &'a Value {
    let root = &version(crd)["schema"]["openAPIV3Schema"];
    path.split('.').fold(root, |schema, step| match step {
        "[]" => &schema["items"],
        name => &schema["properties"][name],
    })
}

fn rules(schema: &Value) -> Vec<&str> {
    let rules = schema["x-kubernetes-validations"].as_array().map(Vec::as_slice).unwrap_or_default();
    rules.iter().map(|rule| rule["rule"].as_str().unwrap()).collect()
}

/// `Name` for each printer column, `Name*` for those that only `-o wide` shows.
fn columns(crd: &Value) -> Vec<String> {
    let columns = version(crd)["additionalPrinterColumns"].as_array().cloned().unwrap_or_default();
    let name = |column: &Value| {
        let wide = if column["priority"] == 1 { "*" } else { "" };
        format!("{}{wide}", column["name"].as_str().unwrap())
    };
    columns.iter().map(name).collect()
}

fn kinds(provider: Option<Provider>) -> Vec<String> {
    crds(provider).into_iter().map(|crd| crd.spec.names.kind).collect()
}

const REQUIREMENT_KEY: &str = "spec.template.spec.requirements.[].key";

#[test]
fn each_provider_brings_its_own_node_class() {
    let shared = ["NodePool", "NodeClaim", "NodeOverlay", "CapacityBuffer", "MaintenanceWindow"];
    assert_eq!(kinds(Some(Provider::Kwok)), [&shared[..], &["KWOKNodeClass"]].concat());
    assert_eq!(kinds(Some(Provider::Aws)), [&shared[..], &["EC2NodeClass"]].concat());
    assert_eq!(kinds(None), [&shared[..], &["KWOKNodeClass", "EC2NodeClass"]].concat());
}

#[test]
fn every_kind_has_its_names_scope_and_columns() {
    let facts = |kind: &str| {
        let crd = crd(None, kind);
        let names = &crd["spec"]["names"];
        assert_eq!(names["listKind"], format!("{kind}List"));
        assert_eq!(names["singular"], kind.to_lowercase());
        assert_eq!(version(&crd)["subresources"]["status"], json!({}));
        let shorts = names["shortNames"].as_array().cloned().unwrap_or_default();
        let words = |values: &[Value]| values.iter().map(|v| v.as_str().unwrap()).collect::<Vec<_>>().join(",");
        format!(
            "{} {} {} [{}] {} | {}",
            crd["metadata"]["name"].as_str().unwrap(),
            version(&crd)["name"].as_str().unwrap(),
            crd["spec"]["scope"].as_str().unwrap(),
            words(&shorts),
            words(names["categories"].as_array().unwrap()),
            columns(&crd).join(" "),
        )
    };
    // Sheet 01 §1.
    assert_eq!(
        facts("NodePool"),
        "nodepools.karpenter.sh v1 Cluster [] karpenter | NodeClass Nodes Ready Age Weight* CPU* Memory*"
    );
    assert_eq!(
        facts("NodeClaim"),
        "nodeclaims.karpenter.sh v1 Cluster [] karpenter \
         | Type Capacity Zone Node Ready Age ImageID* ID* NodePool* NodeClass* Drifted*"
    );
    assert_eq!(
        facts("NodeOverlay"),
        "nodeoverlays.karpenter.sh v1alpha1 Cluster [overlays] karpenter | Ready Age Weight*"
    );
    assert_eq!(
        facts("CapacityBuffer"),
        "capacitybuffers.autoscaling.x-k8s.io v1beta1 Namespaced [cb] autoscaling \
         | Strategy PodTemplate Replicas ConditionsType ConditionsStatus ConditionsReason Age"
    );
    assert_eq!(
        facts("KWOKNodeClass"),
        "kwoknodeclasses.karpenter.kwok.sh v1alpha1 Cluster [kwoknc,kwokncs] karpenter | "
    );
    assert_eq!(
        facts("EC2NodeClass"),
        "ec2nodeclasses.karpenter.k8s.aws v1 Cluster [ec2nc,ec2ncs] karpenter | Ready Age Role*"
    );
    assert_eq!(
        facts("MaintenanceWindow"),
        "maintenancewindows.karpenter.sh v1alpha1 Cluster [mw,mws] karpenter | Active Next Nodes Ready Age"
    );
}

#[test]
fn static_pools_scale_by_their_replicas() {
    let scale = json!({ "specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.nodes" });
    assert_eq!(version(&crd(None, "NodePool"))["subresources"]["scale"], scale);
    assert!(version(&crd(None, "NodeClaim"))["subresources"]["scale"].is_null());
}

#[test]
fn defaults_are_those_of_the_published_schemas() {
    let pool = crd(None, "NodePool");
    for (path, default) in [
        ("spec.disruption", json!({ "consolidateAfter": "0s" })),
        ("spec.disruption.consolidateAfter", json!("0s")),
        ("spec.disruption.consolidationPolicy", json!("WhenEmptyOrUnderutilized")),
        ("spec.disruption.budgets", json!([{ "nodes": "10%" }])),
        ("spec.disruption.budgets.[].nodes", json!("10%")),
        ("spec.template.spec.expireAfter", json!("720h")),
        ("status.nodes", json!(0)),
    ] {
        assert_eq!(field(&pool, path)["default"], default, "{path}");
    }
    assert_eq!(field(&pool, "spec.disruption.budgets.[]")["required"], json!(["nodes"]));
    assert_eq!(field(&crd(None, "EC2NodeClass"), "spec.metadataOptions")["default"]["httpPutResponseHopLimit"], 1);
    assert_eq!(field(&crd(None, "KWOKNodeClass"), "status")["default"]["conditions"][0]["message"], "");
}

#[test]
fn nothing_of_derive_is_left_in_the_schemas() {
    for mut crd in crds(None) {
        for root in root_schemas(&mut crd) {
            visit(root, &mut |schema| {
                assert!(schema.nullable.is_none() && schema.title.is_none(), "{schema:?}");
                assert_eq!(schema.any_of.is_some(), schema.x_kubernetes_int_or_string == Some(true), "{schema:?}");
            });
        }
    }
    assert!(field(&crd(None, "NodePool"), "spec.template.spec.requirements.[].minValues")["format"].is_null());
}

#[test]
fn node_classes_may_lack_a_spec_and_nothing_else_may() {
    for crd in crds(None) {
        let kind = crd.spec.names.kind.clone();
        let root = serde_json::to_value(crd).unwrap()["spec"]["versions"][0]["schema"]["openAPIV3Schema"].take();
        let required = if kind.ends_with("NodeClass") { Value::Null } else { json!(["spec"]) };
        assert_eq!(root["required"], required, "{kind}");
    }
}

#[test]
fn condition_lists_merge_by_type_except_on_node_classes() {
    for (kind, list_type) in [
        ("NodePool", json!("map")),
        ("NodeClaim", json!("map")),
        ("CapacityBuffer", json!("map")),
        ("EC2NodeClass", Value::Null),
        ("KWOKNodeClass", Value::Null),
    ] {
        assert_eq!(field(&crd(None, kind), "status.conditions")["x-kubernetes-list-type"], list_type, "{kind}");
    }
    let required = |kind: &str| field(&crd(None, kind), "status.conditions.[]")["required"].as_array().unwrap().len();
    assert_eq!((required("NodePool"), required("NodeClaim")), (5, 3));
}

#[test]
fn label_domains_are_reserved_where_the_providers_definitions_do_so() {
    let count = |provider, kind: &str, path: &str, domain: &str| {
        let crd = crd(provider, kind);
        let end = format!(r#"endsWith("{domain}")"#);
        rules(field(&crd, path)).iter().filter(|rule| rule.contains(&end)).count()
    };
    let labels = "spec.template.metadata.labels";
    for (kind, path, kwok, aws) in [
        ("NodePool", REQUIREMENT_KEY, 1, 1),
        ("NodePool", labels, 0, 1),
        ("NodeClaim", "spec.requirements.[].key", 1, 1),
        ("NodeOverlay", "spec.requirements.[].key", 0, 1),
    ] {
        for provider in [None, Some(Provider::Kwok)] {
            assert_eq!(count(provider, kind, path, "karpenter.kwok.sh"), kwok, "{kind} {path}");
        }
        for provider in [None, Some(Provider::Aws)] {
            assert_eq!(count(provider, kind, path, "karpenter.k8s.aws"), aws, "{kind} {path}");
        }
        assert_eq!(count(Some(Provider::Aws), kind, path, "karpenter.kwok.sh"), 0);
        assert_eq!(count(Some(Provider::Kwok), kind, path, "karpenter.k8s.aws"), 0);
    }
}

/// Sheet 01, case 22.
#[test]
fn only_pools_refuse_the_key_that_names_the_pool() {
    let refuses =
        |kind: &str, path: &str| rules(field(&crd(None, kind), path)).contains(&r#"self != "karpenter.sh/nodepool""#);
    assert!(refuses("NodePool", REQUIREMENT_KEY));
    assert!(!refuses("NodeClaim", "spec.requirements.[].key"));
    assert!(!refuses("NodeOverlay", "spec.requirements.[].key"));
}

#[test]
fn every_rule_says_what_is_wrong() {
    for mut crd in crds(None) {
        for root in root_schemas(&mut crd) {
            visit(root, &mut |schema| {
                for rule in schema.x_kubernetes_validations.iter().flatten() {
                    assert!(rule.message.as_ref().is_some_and(|message| !message.is_empty()), "{rule:?}");
                }
            });
        }
    }
}

#[test]
fn rules_stand_where_the_published_schemas_have_them() {
    let count = |kind: &str, path: &str| rules(field(&crd(None, kind), path)).len();
    assert_eq!(count("NodePool", "spec"), 3);
    assert_eq!(count("NodePool", "spec.template.spec.requirements"), 3);
    assert_eq!(count("NodePool", "spec.template.spec.nodeClassRef"), 2);
    assert_eq!(count("NodeClaim", "spec"), 1);
    assert_eq!(count("NodeClaim", "spec.nodeClassRef"), 0);
    assert_eq!(count("NodeOverlay", "spec.requirements"), 3);
    assert_eq!(count("CapacityBuffer", "spec"), 2);
    assert_eq!(count("EC2NodeClass", "spec"), 8);
    assert_eq!(count("EC2NodeClass", "spec.tags"), 6);
    assert_eq!(count("EC2NodeClass", "spec.amiSelectorTerms.[].alias"), 3);
}

#[test]
fn kubelet_settings_are_kept_whatever_they_are() {
    let kubelet = crd(None, "EC2NodeClass");
    let kubelet = field(&kubelet, "spec.kubelet");
    assert_eq!(kubelet["x-kubernetes-preserve-unknown-fields"], true);
    assert_eq!(kubelet["additionalProperties"], json!({ "x-kubernetes-preserve-unknown-fields": true }));
}
