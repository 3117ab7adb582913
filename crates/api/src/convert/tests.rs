use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::manifest::read;
use crate::rule_book::RuleId;

fn run(text: &str, options: &Options) -> Output {
    convert(read("f.yaml", text.as_bytes()).into_iter().map(Result::unwrap).collect(), options)
}

fn objects(text: &str) -> Vec<Value> {
    let output = run(text, &Options::default());
    let of = |document: OutputDocument| match document.content {
        Content::Converted(objects) => objects,
        Content::Unchanged(text) => panic!("not converted: {text}"),
    };
    output.documents.into_iter().flat_map(of).collect()
}

fn ids(text: &str) -> Vec<&'static str> {
    run(text, &Options::default()).notes.iter().map(|note| note.finding.id().as_str()).collect()
}

fn provisioner(spec: &str) -> String {
    format!(
        "apiVersion: karpenter.sh/v1alpha5\nkind: Provisioner\nmetadata: {{name: p}}\nspec: {{providerRef: {{name: t}}, {spec}}}\n"
    )
}

fn template(spec: &str) -> String {
    format!(
        "apiVersion: karpenter.k8s.aws/v1alpha1\nkind: AWSNodeTemplate\nmetadata: {{name: t}}\nspec: {{subnetSelector: {{a: b}}, securityGroupSelector: {{a: b}}, instanceProfile: i, {spec}}}\n"
    )
}

/// Sheet 01, case 56.
#[test]
fn a_bare_provisioner_gets_the_old_defaults_written_out() {
    let pool = objects(&provisioner("")).remove(0);
    let spec = &pool["spec"]["template"]["spec"];
    let keys: Vec<_> =
        spec["requirements"].as_array().unwrap().iter().map(|item| item["key"].as_str().unwrap()).collect();
    assert_eq!(
        keys,
        [
            "kubernetes.io/os",
            "kubernetes.io/arch",
            "karpenter.sh/capacity-type",
            "karpenter.k8s.aws/instance-category",
            "karpenter.k8s.aws/instance-generation"
        ]
    );
    assert_eq!(spec["expireAfter"], "Never");
    assert_eq!(pool["spec"]["disruption"]["consolidateAfter"], "Never");
}

/// Sheet 01, case 56.
#[test]
fn emptiness_consolidation_and_expiry_keep_their_meaning() {
    for (spec, policy, after, expiry) in [
        ("ttlSecondsAfterEmpty: 30", "WhenEmpty", "30s", "Never"),
        ("ttlSecondsAfterEmpty: 0", "WhenEmpty", "0s", "Never"),
        ("consolidation: {enabled: true}", "WhenEmptyOrUnderutilized", "0s", "Never"),
        ("consolidation: {enabled: false}", "WhenEmptyOrUnderutilized", "Never", "Never"),
        ("ttlSecondsUntilExpired: 2592000", "WhenEmptyOrUnderutilized", "Never", "2592000s"),
    ] {
        let pool = objects(&provisioner(spec)).remove(0);
        let disruption = &pool["spec"]["disruption"];
        assert_eq!(disruption["consolidationPolicy"], policy, "{spec}");
        assert_eq!(disruption["consolidateAfter"], after, "{spec}");
        assert_eq!(pool["spec"]["template"]["spec"]["expireAfter"], expiry, "{spec}");
    }
}

/// Sheet 01, case 56.
#[test]
fn emptiness_together_with_consolidation_is_an_error_of_the_input() {
    let text = provisioner("ttlSecondsAfterEmpty: 30, consolidation: {enabled: true}");
    let output = run(&text, &Options::default());
    assert!(output.has_errors());
    assert_eq!(output.to_yaml(), text);
    assert_eq!(ids(&text), ["emptiness_and_consolidation"]);
}

/// Sheet 01, case 57.
#[test]
fn an_inline_provider_becomes_a_class_of_its_own() {
    let text = "apiVersion: karpenter.sh/v1alpha5\nkind: Provisioner\nmetadata: {name: p}\nspec:\n  provider:\n    subnetSelector: {aws-ids: 'subnet-1,subnet-2'}\n    securityGroupSelector: {a: b}\n";
    let objects = objects(text);
    assert_eq!(objects[0]["spec"]["template"]["spec"]["nodeClassRef"]["name"], "p");
    assert_eq!(objects[1]["metadata"]["name"], "p");
    assert_eq!(objects[1]["spec"]["subnetSelectorTerms"], json!([{"id": "subnet-1"}, {"id": "subnet-2"}]));
    assert_eq!(objects[1]["spec"]["amiSelectorTerms"], json!([{"alias": "al2@latest"}]));
}

#[test]
fn an_inline_provider_does_not_take_the_name_of_another_class() {
    let inline = "apiVersion: karpenter.sh/v1alpha5\nkind: Provisioner\nmetadata: {name: t}\nspec: {provider: {subnetSelector: {a: b}, securityGroupSelector: {a: b}}}\n";
    let objects = objects(&format!("{inline}---\n{}", template("")));
    let names: Vec<_> = objects.iter().map(|object| object["metadata"]["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["t", "t-inline", "t"]);
    assert_eq!(objects[0]["spec"]["template"]["spec"]["nodeClassRef"]["name"], "t-inline");
}

/// Sheet 01, case 57.
#[test]
fn launch_templates_are_refused() {
    assert_eq!(ids(&template("launchTemplate: x")), ["launch_template"]);
}

/// Sheet 01, case 57.
#[test]
fn names_and_owners_of_images_make_a_term_for_every_pair() {
    let class = objects(&template("amiSelector: {'aws::name': 'a,b', 'aws::owners': 'self,amazon'}")).remove(0);
    let terms = json!([
        {"name": "a", "owner": "self"}, {"name": "b", "owner": "self"},
        {"name": "a", "owner": "amazon"}, {"name": "b", "owner": "amazon"},
    ]);
    assert_eq!(class["spec"]["amiSelectorTerms"], terms);
    assert_eq!(class["spec"]["amiFamily"], "AL2");
}

/// Sheet 01, case 58.
#[test]
fn v1beta1_keeps_never_and_fills_in_the_class_reference() {
    let text = "apiVersion: karpenter.sh/v1beta1\nkind: NodePool\nmetadata: {name: p}\nspec:\n  template: {spec: {requirements: [], nodeClassRef: {name: c}}}\n  disruption: {consolidationPolicy: WhenUnderutilized, consolidateAfter: Never, expireAfter: Never}\n";
    let pool = objects(text).remove(0);
    assert_eq!(pool["spec"]["disruption"]["consolidateAfter"], "Never");
    assert_eq!(pool["spec"]["disruption"]["consolidationPolicy"], "WhenEmptyOrUnderutilized");
    assert_eq!(pool["spec"]["template"]["spec"]["expireAfter"], "Never");
    let reference = json!({"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "c"});
    assert_eq!(pool["spec"]["template"]["spec"]["nodeClassRef"], reference);
    assert_eq!(ids(text), [""; 0]);
}

#[test]
fn default_requirements_can_be_left_out() {
    let options = Options { skip_default_requirements: true, ..Options::default() };
    let output = run(&provisioner(""), &options);
    assert!(output.to_yaml().contains("requirements: []"));
}

#[test]
fn kubelet_settings_are_not_lost_when_their_class_is_elsewhere() {
    let text = provisioner("kubeletConfiguration: {maxPods: 20}");
    let output = run(&text, &Options::default());
    let note = output.notes.iter().find(|note| note.finding.id() == RuleId::KubeletLeftOut).unwrap();
    assert_eq!(note.field, "spec.kubeletConfiguration");
    assert!(note.to_string().contains(r#"{"maxPods":20}"#), "{note}");
}

#[test]
fn a_class_of_another_provider_is_left_alone() {
    let text = "apiVersion: karpenter.sh/v1beta1\nkind: NodePool\nmetadata: {name: p}\nspec:\n  template: {spec: {requirements: [], kubelet: {maxPods: 1}, nodeClassRef: {apiVersion: karpenter.kwok.sh/v1alpha1, kind: KWOKNodeClass, name: t}}}\n  disruption: {expireAfter: Never}\n";
    let both = format!("{text}---\n{}", template(""));
    assert_eq!(ids(&both), ["kubelet_without_class"]);
    let objects = objects(&both);
    let reference = json!({"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "t"});
    assert_eq!(objects[0]["spec"]["template"]["spec"]["nodeClassRef"], reference);
    assert_eq!(objects[1]["spec"].get("kubelet"), None);
}

#[test]
fn every_field_that_is_left_out_is_named() {
    let text = format!("{}status: {{resources: {{}}}}\nextra: 1\n", provisioner("limits: {nodes: 1}, ttl: 3"));
    let output = run(&text, &Options::default());
    let mut fields: Vec<_> = output
        .notes
        .iter()
        .filter(|note| note.finding == Finding::UnknownField)
        .map(|note| note.field.as_str())
        .collect();
    fields.sort_unstable();
    assert_eq!(fields, ["extra", "spec.limits.nodes", "spec.ttl"]);
}

#[test]
fn a_list_without_legacy_items_keeps_its_text() {
    let text = "apiVersion: v1\nkind: List\nitems: [{kind: Service, apiVersion: v1}] # as it was\n";
    assert_eq!(run(text, &Options::default()).to_yaml(), text);
}

/// Objects of the legacy kinds, with fields that exist and values that need not make sense.
fn legacy_object() -> impl Strategy<Value = Map<String, Value>> {
    let kinds = prop::sample::select(vec![
        ("karpenter.sh/v1alpha5", "Provisioner"),
        ("karpenter.sh/v1alpha5", "Machine"),
        ("karpenter.k8s.aws/v1alpha1", "AWSNodeTemplate"),
        ("karpenter.sh/v1beta1", "NodePool"),
        ("karpenter.sh/v1beta1", "NodeClaim"),
        ("karpenter.k8s.aws/v1beta1", "EC2NodeClass"),
        ("v1", "Pod"),
    ]);
    let fields = prop::sample::select(vec![
        "name",
        "labels",
        "annotations",
        "finalizers",
        "template",
        "spec",
        "metadata",
        "disruption",
        "requirements",
        "kubelet",
        "kubeletConfiguration",
        "provider",
        "providerRef",
        "nodeClassRef",
        "machineTemplateRef",
        "limits",
        "resources",
        "weight",
        "consolidation",
        "enabled",
        "ttlSecondsAfterEmpty",
        "ttlSecondsUntilExpired",
        "expiration",
        "drift",
        "maintenanceCron",
        "maintenanceDurationSeconds",
        "amiSelector",
        "amiFamily",
        "aws-ids",
        "aws::name",
        "aws::owners",
        "subnetSelector",
        "securityGroupSelector",
        "amiSelectorTerms",
        "tags",
        "role",
        "instanceProfile",
        "metadataOptions",
        "launchTemplate",
        "expireAfter",
        "consolidateAfter",
        "key",
        "extra",
        "karpenter.sh/do-not-evict",
        "karpenter.sh/provisioner-name",
        "containerRuntime",
        "budgets",
        "status",
    ]);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i8>().prop_map(Value::from),
        prop::sample::select(vec!["a", "AL2", "Ubuntu", "Never", "true", "", "a,b", "* * * * *"]).prop_map(Value::from),
    ];
    let value = leaf.prop_recursive(5, 64, 8, move |inner| {
        prop_oneof![
            1 => prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            4 => prop::collection::btree_map(fields.clone().prop_map(str::to_owned), inner, 0..8)
                .prop_map(|entries| Value::Object(entries.into_iter().collect())),
        ]
    });
    (kinds, value.clone(), value).prop_map(|((api_version, kind), metadata, spec)| {
        Map::from_iter([
            ("apiVersion".to_owned(), Value::from(api_version)),
            ("kind".to_owned(), Value::from(kind)),
            ("metadata".to_owned(), metadata),
            ("spec".to_owned(), spec),
        ])
    })
}

proptest! {
    #[test]
    fn converting_twice_is_converting_once(objects in prop::collection::vec(legacy_object(), 1..4), rewrite in any::<bool>()) {
        let options = Options { rewrite_workloads: rewrite, ..Options::default() };
        let file: Arc<str> = Arc::from("f.yaml");
        let documents = objects.into_iter().enumerate().map(|(line, object)| Document::new(file.clone(), line, object));
        let once = convert(documents.collect(), &options).to_yaml();
        prop_assert_eq!(run(&once, &options).to_yaml(), once);
    }
}
