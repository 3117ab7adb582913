//! Sheet 05 §12 and its cases 83 to 91; sheet 03 §15.5.
#![expect(clippy::unwrap_used, reason = "in helpers of tests a failure is the failure of the test")]

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;
use kerf_api::Provider;
use kerf_api::hash::EC2_NODE_CLASS_KEYS;
use kerf_api::provider::label_rules;
use kerf_cloud_aws::{CannotTell, Ec2Class, InstanceFacts, Look, drift, stamps};
use kerf_model::cluster::{InstanceType, NodeClaim, Overhead, Texts};
use kerf_model::label::{ARCH, INSTANCE_TYPE, LabelRules};
use kerf_model::node_pool::NodeClassRef;
use kerf_model::requirement::{Requirement, Requirements};
use kerf_model::resources::ResourceList;
use serde_json::{Value, json};

const CA: &str = "QUJD";

/// A class as it was when an instance was launched, what became of it, and the instance.
struct Case {
    before: Value,
    after: Value,
    facts: InstanceFacts,
    labels: Vec<(&'static str, &'static str)>,
    group: Option<&'static str>,
    has_instance: bool,
}

fn object() -> Value {
    let image = |id: &str, arch: &str| {
        json!({"id": id, "name": format!("{arch}-image"), "requirements": [
            {"key": ARCH, "operator": "In", "values": [arch]},
        ]})
    };
    json!({
        "metadata": {"name": "default", "uid": "u", "creationTimestamp": "2026-01-05T09:00:00Z"},
        "spec": {
            "role": "nodes",
            "amiFamily": "AL2023",
            "amiSelectorTerms": [{"name": "*"}],
            "subnetSelectorTerms": [{"tags": {"tier": "private"}}],
            "securityGroupSelectorTerms": [{"name": "nodes"}],
            "tags": {"cost": "one"},
            "metadataOptions": {
                "httpEndpoint": "enabled", "httpProtocolIPv6": "disabled",
                "httpPutResponseHopLimit": 1, "httpTokens": "required",
            },
        },
        "status": {
            "amis": [image("ami-1arm", "arm64"), image("ami-1", "amd64")],
            "subnets": [{"id": "subnet-a", "zone": "a"}, {"id": "subnet-b", "zone": "b"}],
            "securityGroups": [{"id": "sg-1"}, {"id": "sg-2"}],
            "instanceProfile": "profile",
        },
    })
}

fn case() -> Case {
    Case {
        before: object(),
        after: object(),
        facts: InstanceFacts {
            image_id: Some("ami-1".into()),
            subnet_id: Some("subnet-a".into()),
            security_groups: ["sg-2", "sg-1"].map(Arc::from).into(),
            reservation_id: None,
            is_fresh: true,
            tags: Some([("cost".into(), "one".into())].into()),
            detailed_monitoring: Some(false),
        },
        labels: vec![(INSTANCE_TYPE, "m5.large")],
        group: None,
        has_instance: true,
    }
}

/// The class with the stamps that its controller gives it.
fn stamped(object: &Value, version: Option<&str>) -> Ec2Class {
    let mut object = object.clone();
    let class = Ec2Class::read(&object).unwrap();
    let mut annotations = stamps::of_update(&class, CA).unwrap();
    if let Some(version) = version {
        annotations.insert(EC2_NODE_CLASS_KEYS.version.into(), version.into());
    }
    for (key, value) in &annotations {
        object["metadata"]["annotations"][&**key] = json!(&**value);
    }
    Ec2Class::read(&object).unwrap()
}

fn texts(texts: &[(&str, &str)]) -> Texts {
    texts.iter().map(|(key, value)| (Arc::from(*key), Arc::from(*value))).collect()
}

fn claim(annotations: Texts, labels: &[(&str, &str)]) -> NodeClaim {
    let class = NodeClassRef { group: "karpenter.k8s.aws".into(), kind: "EC2NodeClass".into(), name: "default".into() };
    let mut claim = kerf_cloud::contract::claim("a", &class, Requirements::new());
    claim.meta.labels = texts(labels);
    claim.meta.annotations = annotations;
    claim
}

fn m5_large() -> InstanceType {
    let mut requirements = Requirements::new();
    requirements.add(Requirement::one_of(ARCH, ["amd64"]), &LabelRules::core());
    InstanceType {
        name: "m5.large".into(),
        requirements,
        offerings: Vec::new(),
        capacity: ResourceList::new(),
        overhead: Overhead::default(),
        volume_limits: Default::default(),
    }
}

impl Case {
    fn spec(mut self, field: &str, before: Value, after: Value) -> Self {
        for (object, value) in [(&mut self.before, before), (&mut self.after, after)] {
            match value {
                Value::Null => drop(object["spec"].as_object_mut().unwrap().remove(field)),
                value => object["spec"][field] = value,
            }
        }
        self
    }

    fn found(mut self, field: &str, value: Value) -> Self {
        self.after["status"][field] = value;
        self
    }

    fn instance(mut self, change: impl FnOnce(&mut InstanceFacts)) -> Self {
        change(&mut self.facts);
        self
    }

    fn ask(&self) -> Result<Option<(String, String, bool)>, CannotTell> {
        let annotations = stamps::of_launch(&Ec2Class::read(&self.before).unwrap(), CA).unwrap();
        self.ask_of(&claim(annotations, &self.labels), &stamped(&self.after, None))
    }

    fn ask_of(&self, claim: &NodeClaim, class: &Ec2Class) -> Result<Option<(String, String, bool)>, CannotTell> {
        let (rules, kind) = (label_rules(Some(Provider::Aws)), m5_large());
        let has_type = claim.meta.label(INSTANCE_TYPE) == Some("m5.large");
        let answer = drift(Look {
            class,
            claim,
            instance: self.has_instance.then_some(&self.facts),
            instance_type: has_type.then_some(&kind),
            placement_group: self.group,
            rules: &rules,
        })?;
        Ok(answer.map(|drift| (drift.reason.to_string(), drift.message.to_string(), drift.in_place)))
    }

    fn drifts(&self, reason: &str, message: &str) {
        let answer = self.ask().unwrap().unwrap_or_default();
        assert_eq!((answer.0.as_str(), answer.1.as_str(), answer.2), (reason, message, false));
    }

    fn drifts_in_place(&self, message: &str) {
        let answer = self.ask().unwrap().unwrap_or_default();
        assert_eq!((answer.0.as_str(), answer.1.as_str(), answer.2), ("NodeClassDrift", message, true));
    }

    fn stays(&self) {
        assert_eq!(self.ask(), Ok(None));
    }
}

/// The hash of a field, as `kerf hash --fields` prints it.
fn hash(object: &Value, field: &str) -> String {
    let seal = Ec2Class::read(object).unwrap().seal(CA).unwrap();
    seal.fields.iter().find(|(name, _)| *name == field).unwrap().1.to_string()
}

#[test]
fn an_instance_that_is_as_its_class_says_stays() {
    case().stays();
}

/// Every field of a class that is compared by its hash, but for those of the next test.
#[test]
fn an_edited_field_is_named_with_what_is_known_of_both_values() {
    let groups = |size: &str| json!([{"deviceName": "/dev/xvda", "ebs": {"volumeSize": size}}]);
    for (field, before, after, now) in [
        ("kubelet", json!({"maxPods": 40}), json!({"maxPods": 30}), r#"{"maxPods":30}"#),
        ("role", json!("nodes"), json!("others"), "others"),
        ("amiFamily", json!("AL2023"), json!("Custom"), "Custom"),
        (
            "metadataOptions",
            json!({"httpTokens": "required"}),
            json!({"httpTokens": "optional"}),
            r#"{"httpTokens":"optional"}"#,
        ),
        (
            "blockDeviceMappings",
            groups("20Gi"),
            groups("50Gi"),
            r#"[{"deviceName":"/dev/xvda","ebs":{"volumeSize":"50Gi"}}]"#,
        ),
        ("associatePublicIPAddress", json!(true), json!(false), "false"),
        ("context", json!("a"), json!("b"), "b"),
        (
            "cpuOptions",
            json!({"nestedVirtualization": "enabled"}),
            json!({"nestedVirtualization": "disabled"}),
            r#"{"nestedVirtualization":"disabled"}"#,
        ),
        ("connectionTracking", json!({"udpTimeout": 30}), json!({"udpTimeout": 60}), r#"{"udpTimeout":60}"#),
        ("placementGroupSelector", json!({"name": "a"}), json!({"name": "b"}), r#"{"name":"b"}"#),
        (
            "networkInterfaces",
            json!([{"networkCardIndex": 0, "deviceIndex": 0, "interfaceType": "interface"}]),
            json!([{"networkCardIndex": 0, "deviceIndex": 1, "interfaceType": "interface"}]),
            r#"[{"deviceIndex":1,"interfaceType":"interface","networkCardIndex":0}]"#,
        ),
    ] {
        let case = case().spec(field, before, after);
        let field = format!("spec.{field}");
        let old = hash(&case.before, &field);
        case.drifts("NodeClassDrift", &format!("{field} was a value with hash {old} and is {now}"));
    }
    case()
        .spec("instanceStorePolicy", Value::Null, json!("RAID0"))
        .drifts("NodeClassDrift", "spec.instanceStorePolicy is new: RAID0");
    let gone = case().spec("context", json!("a"), Value::Null);
    gone.drifts(
        "NodeClassDrift",
        &format!("spec.context is gone: a value with hash {}", hash(&gone.before, "spec.context")),
    );
}

#[test]
fn what_claim_and_instance_show_is_told_of_the_old_value() {
    let profiles =
        case().spec("role", Value::Null, Value::Null).spec("instanceProfile", json!("profile"), json!("two"));
    profiles.drifts("NodeClassDrift", "spec.instanceProfile was profile and is two");
    case()
        .spec("tags", json!({"cost": "one"}), json!({"cost": "two", "team": "a"}))
        .drifts_in_place("spec.tags[cost] was one and is two; spec.tags[team] is new: a");
    case()
        .instance(|facts| facts.detailed_monitoring = Some(true))
        .spec("detailedMonitoring", json!(true), Value::Null)
        .drifts_in_place("spec.detailedMonitoring is gone: true");
}

/// Conditions are read by many.
#[test]
fn user_data_is_not_shown() {
    let case = case().spec("userData", json!("password=1"), json!("password=2"));
    let [old, new] = [&case.before, &case.after].map(|object| hash(object, "spec.userData"));
    case.drifts("NodeClassDrift", &format!("spec.userData was a value with hash {old} and is a value with hash {new}"));
}

#[test]
fn long_values_are_cut() {
    let message = case().spec("context", Value::Null, json!("ü".repeat(150))).ask().unwrap().unwrap().1;
    assert_eq!(message, format!("spec.context is new: {}...", "ü".repeat(100)));
}

/// Case 87.
#[test]
fn another_ca_bundle_is_drift_that_only_its_hash_shows() {
    let annotations = stamps::of_launch(&Ec2Class::read(&object()).unwrap(), "old").unwrap();
    let case = case();
    let (reason, message, in_place) =
        case.ask_of(&claim(annotations, &case.labels), &stamped(&case.after, None)).unwrap().unwrap();
    assert_eq!((reason.as_str(), in_place), ("NodeClassDrift", false));
    assert!(message.starts_with("clusterCABundle was a value with hash "), "{message}");
}

/// Cases 84, 86 and 88, and edits that only add or take away an empty value.
#[test]
fn edits_that_mean_nothing_are_no_drift() {
    case().spec("detailedMonitoring", Value::Null, json!(false)).stays();
    case().spec("detailedMonitoring", json!(false), Value::Null).stays();
    case().spec("amiFamily", Value::Null, json!("AL2023")).aliased().stays();
    case().spec("ipPrefixCount", json!(1), json!(2)).stays();
    case().spec("blockDeviceMappings", Value::Null, json!([])).stays();
}

/// Case 83.
#[test]
fn selectors_are_compared_by_what_they_select() {
    case().spec("subnetSelectorTerms", json!([{"id": "subnet-a"}]), json!([{"tags": {"a": "b"}}])).stays();
    case().spec("amiSelectorTerms", json!([{"id": "ami-1"}]), json!([{"name": "*"}])).stays();
}

/// Case 85, and annotations of other controllers.
#[test]
fn hashes_of_other_versions_say_nothing_and_without_hashes_of_fields_only_that_there_is_an_edit() {
    let case = case().spec("role", json!("nodes"), json!("others"));
    let all = stamps::of_launch(&Ec2Class::read(&case.before).unwrap(), CA).unwrap();
    let with = |key: &str, value: Option<&str>| {
        let mut annotations = all.clone();
        match value {
            Some(value) => drop(annotations.insert(key.into(), value.into())),
            None => drop(annotations.remove(key)),
        }
        claim(annotations, &case.labels)
    };
    let now = stamped(&case.after, None);
    let keys = EC2_NODE_CLASS_KEYS;
    assert_eq!(case.ask_of(&with(keys.version, Some("v5")), &now), Ok(None));
    assert_eq!(case.ask_of(&with(keys.version, None), &now), Ok(None));
    assert_eq!(case.ask_of(&with(keys.hash, None), &now), Ok(None));
    assert_eq!(case.ask_of(&with("other", None), &stamped(&case.after, Some("v5"))), Ok(None));
    let (reason, message, in_place) = case.ask_of(&with(keys.fields, None), &now).unwrap().unwrap();
    assert_eq!((reason.as_str(), in_place), ("NodeClassDrift", false));
    let [old, new] = [&case.before, &case.after].map(|object| Ec2Class::read(object).unwrap().seal(CA).unwrap().hash);
    assert_eq!(
        message,
        format!("the node class was edited; of what only the hash is known, which was {old} and is {new}")
    );
}

#[test]
fn an_image_that_is_not_the_one_for_the_type_drifts() {
    let image =
        |id: &str, arch: &str| json!({"id": id, "requirements": [{"key": ARCH, "operator": "In", "values": [arch]}]});
    let newer = json!([image("ami-2", "amd64"), image("ami-1", "amd64")]);
    case().found("amis", newer).drifts("AMIDrift", "spec.amiSelectorTerms selected ami-1 and selects ami-2");
    // For another architecture it may be as new as it likes.
    case().found("amis", json!([image("ami-2", "arm64"), image("ami-1", "amd64")])).stays();
    case()
        .found("amis", json!([image("ami-2", "arm64")]))
        .drifts("AMIDrift", "spec.amiSelectorTerms selected ami-1 and selects nothing that suits");
}

/// Case 89.
#[test]
fn security_groups_are_compared_as_sets() {
    case().found("securityGroups", json!([{"id": "sg-3"}, {"id": "sg-2"}, {"id": "sg-1"}])).drifts(
        "SecurityGroupDrift",
        "spec.securityGroupSelectorTerms selected sg-1, sg-2 and selects sg-1, sg-2, sg-3",
    );
    case()
        .found("securityGroups", json!([{"id": "sg-1"}]))
        .drifts("SecurityGroupDrift", "spec.securityGroupSelectorTerms selected sg-1, sg-2 and selects sg-1");
}

#[test]
fn a_subnet_that_is_not_selected_any_more_drifts() {
    case()
        .found("subnets", json!([{"id": "subnet-b", "zone": "b"}, {"id": "subnet-c", "zone": "a"}]))
        .drifts("SubnetDrift", "spec.subnetSelectorTerms selected subnet-a and selects subnet-b, subnet-c");
    case().found("subnets", json!([{"id": "subnet-a", "zone": "a"}])).stays();
}

/// Case 90.
#[test]
fn a_reservation_that_is_not_selected_any_more_drifts_once_it_is_sure_that_it_is_used() {
    let reserved =
        |is_fresh| case().instance(|facts| (facts.reservation_id, facts.is_fresh) = (Some("cr-1".into()), is_fresh));
    let kept = json!([{
        "id": "cr-1", "availabilityZone": "a", "instanceMatchCriteria": "open", "instanceType": "m5.large",
        "ownerID": "123456789012",
    }]);
    reserved(true).found("capacityReservations", kept).stays();
    reserved(true).drifts(
        "CapacityReservationDrift",
        "spec.capacityReservationSelectorTerms selected cr-1 and selects nothing that suits",
    );
    assert_eq!(reserved(false).ask(), Err(CannotTell::ReservationNotFresh("cr-1".into())));
    // It has ended, and the instance runs on as an ordinary one.
    case().stays();
}

#[test]
fn another_placement_group_drifts() {
    const LABEL: &str = drift::PLACEMENT_GROUP;
    let named = json!({"name": "close"});
    let mut case = case().spec("placementGroupSelector", named.clone(), named);
    case.labels.push((LABEL, "pg-1"));
    assert_eq!(case.ask(), Err(CannotTell::NoPlacementGroupFound));
    case.group = Some("pg-1");
    case.stays();
    case.group = Some("pg-2");
    case.drifts("PlacementGroupDrift", "spec.placementGroupSelector selected pg-1 and selects pg-2");
    case.labels.pop();
    case.drifts("PlacementGroupDrift", "spec.placementGroupSelector selected nothing that suits and selects pg-2");
    let id = json!({"id": "pg-1"});
    let mut by_id = self::case().spec("placementGroupSelector", id.clone(), id);
    by_id.labels.push((LABEL, "pg-1"));
    by_id.stays();
    let mut none = self::case();
    none.labels.push((LABEL, "pg-1"));
    none.drifts("PlacementGroupDrift", "spec.placementGroupSelector selected pg-1 and selects nothing that suits");
}

#[test]
fn of_several_reasons_the_first_in_the_references_order_is_told() {
    let mut case = case().found("amis", json!([{"id": "ami-9", "requirements": []}]));
    case = case
        .found("securityGroups", json!([{"id": "sg-9"}]))
        .found("subnets", json!([{"id": "subnet-9", "zone": "a"}]));
    case = case.instance(|facts| facts.reservation_id = Some("cr-1".into()));
    case.labels.push((drift::PLACEMENT_GROUP, "pg-1"));
    let reason = |case: &Case| case.ask().unwrap().unwrap().0;
    let edited = case.spec("role", json!("nodes"), json!("others"));
    assert_eq!(reason(&edited), "NodeClassDrift");
    let mut case = edited.spec("role", json!("nodes"), json!("nodes"));
    let mut seen = Vec::new();
    for _ in 0..5 {
        let found = reason(&case);
        match found.as_str() {
            "AMIDrift" => case.after["status"]["amis"] = object()["status"]["amis"].clone(),
            "SecurityGroupDrift" => {
                case.after["status"]["securityGroups"] = object()["status"]["securityGroups"].clone();
            }
            "SubnetDrift" => case.after["status"]["subnets"] = object()["status"]["subnets"].clone(),
            "CapacityReservationDrift" => case.facts.reservation_id = None,
            _ => drop(case.labels.pop()),
        }
        seen.push(found);
    }
    let order = ["AMIDrift", "SecurityGroupDrift", "SubnetDrift", "CapacityReservationDrift", "PlacementGroupDrift"];
    assert_eq!(seen, order);
    case.stays();
}

/// Sheet 03 §15.6: tags and monitoring alone can be changed on an instance that runs.
#[test]
fn what_needs_a_new_instance_anyway_is_not_changed_in_place() {
    let tagged = || case().spec("tags", json!({"cost": "one"}), json!({"cost": "two"}));
    tagged().drifts_in_place("spec.tags[cost] was one and is two");
    tagged()
        .found("subnets", json!([{"id": "subnet-9", "zone": "a"}]))
        .drifts("NodeClassDrift", "spec.tags[cost] was one and is two");
    let reserved = tagged().instance(|facts| (facts.reservation_id, facts.is_fresh) = (Some("cr-1".into()), false));
    assert_eq!(reserved.ask(), Err(CannotTell::ReservationNotFresh("cr-1".into())));
    let both = tagged().spec("context", Value::Null, json!("x"));
    both.drifts("NodeClassDrift", "spec.context is new: x; spec.tags[cost] was one and is two");
}

/// Sheet 05 §12: errors, not drift.
#[test]
fn what_is_not_known_is_no_drift() {
    let unknown = |change: &dyn Fn(&mut Case)| {
        let mut case = case();
        change(&mut case);
        case.ask().unwrap_err()
    };
    assert_eq!(unknown(&|case| case.has_instance = false), CannotTell::NoInstance);
    assert_eq!(unknown(&|case| case.labels.clear()), CannotTell::NoInstanceType(None));
    assert_eq!(unknown(&|case| case.after["status"]["amis"] = json!([])), CannotTell::NoImagesFound);
    assert_eq!(unknown(&|case| case.facts.image_id = None), CannotTell::NoImage);
    assert_eq!(unknown(&|case| case.after["status"]["securityGroups"] = json!([])), CannotTell::NoSecurityGroupsFound);
    assert_eq!(unknown(&|case| case.after["status"]["subnets"] = json!([])), CannotTell::NoSubnetsFound);
    // An edit is known without all of it.
    let mut edited = case().spec("role", json!("nodes"), json!("others"));
    edited.has_instance = false;
    assert_eq!(edited.ask().unwrap().unwrap().0, "NodeClassDrift");
}

impl Case {
    fn aliased(mut self) -> Self {
        for object in [&mut self.before, &mut self.after] {
            object["spec"]["amiSelectorTerms"] = json!([{"alias": "al2023@latest"}]);
        }
        self
    }
}

/// Case 91, and sheet 01 §9.3: claims first, the class once none is left.
#[test]
fn claims_get_a_new_version_before_their_class_does() {
    let class = Ec2Class::read(&object()).unwrap();
    let keys = EC2_NODE_CLASS_KEYS;
    let old = texts(&[(keys.hash, "1"), (keys.version, "v3")]);
    let mut drifted = claim(old.clone(), &[]);
    let since = "2026-01-05T09:00:00Z".parse::<Timestamp>().unwrap();
    drifted.meta.name = kerf_model::cluster::ObjectName::of_cluster("drifted");
    drifted.status.conditions = kerf_model::cluster::Conditions(vec![kerf_model::cluster::Condition {
        kind: "Drifted".into(),
        status: kerf_model::cluster::ConditionStatus::True,
        reason: "AMIDrift".into(),
        message: "".into(),
        since,
        observed_generation: 1,
    }]);
    let plain = claim(old, &[]);
    let writes = stamps::next(&class, CA, [&plain, &drifted]).unwrap();
    let all = stamps::of_update(&class, CA).unwrap();
    let version = texts(&[(keys.version, "v6")]);
    assert_eq!(writes.claims, [("a".into(), all.clone()), ("drifted".into(), version)]);
    assert_eq!(writes.class, None);
    let writes = stamps::next(&class, CA, [&claim(all.clone(), &[])]).unwrap();
    assert_eq!((writes.claims.len(), writes.class), (0, Some(all)));
    assert_eq!(stamps::next(&stamped(&object(), None), CA, []).unwrap(), stamps::Writes::default());
    // A claim of another class is nobody's business here.
    let mut other = plain;
    other.node.class.name = "other".into();
    assert!(stamps::next(&class, CA, [&other]).unwrap().class.is_some());
}

#[test]
fn a_claim_carries_its_hash_and_its_profile_from_the_launch_on() {
    let keys: BTreeSet<_> = stamps::of_launch(&Ec2Class::read(&object()).unwrap(), CA).unwrap().into_keys().collect();
    let expected = [
        "karpenter.k8s.aws/ec2nodeclass-hash",
        "karpenter.k8s.aws/ec2nodeclass-hash-version",
        "karpenter.k8s.aws/instance-profile-name",
        "kerf.sh/ec2nodeclass-field-hashes",
    ];
    assert_eq!(keys, expected.map(Arc::from).into());
}
