use std::collections::BTreeMap;

use jiff::SignedDuration;
use kerf_model::cluster::{Condition, ConditionStatus, Conditions, Owner, WindowStatus};
use kerf_model::effect::{ClaimStatusPatch, Event, EventKind, EventSeverity, EventTarget, NewClaim, WindowPatch};
use kerf_model::label;
use kerf_model::node_pool::{NodeClassRef, NodeSpec};
use kerf_model::requirement::{Operator, Requirement, Requirements};
use kerf_model::resources::{ResourceList, ResourceName};

use super::*;
use crate::node_claim::NodeClaim;
use crate::provider::{Provider, label_rules};

const NOW: &str = "2026-11-18T01:02:03.9Z";

fn writes(effect: Effect) -> Vec<ApiWrite> {
    api_writes(&effect, NOW.parse().unwrap()).unwrap()
}

fn text(text: &str) -> Arc<str> {
    Arc::from(text)
}

fn target(name: &str) -> Target {
    Target { name: ObjectName::of_cluster(name), uid: text("u1") }
}

fn amounts(list: &str) -> ResourceList {
    let items = list.split_whitespace().map(|item| item.split_once('=').unwrap());
    items.map(|(name, amount)| (ResourceName::from(name), amount.parse().unwrap())).collect()
}

fn condition(kind: &str, status: ConditionStatus, generation: i64) -> Condition {
    let since = "2026-11-17T10:00:00.5Z".parse().unwrap();
    Condition {
        kind: text(kind),
        status,
        reason: text(kind),
        message: text(""),
        since,
        observed_generation: generation,
    }
}

/// RFC 7386, as the API server applies it.
fn merge(object: &mut Value, patch: &Value) {
    let Some(patch) = patch.as_object() else {
        *object = patch.clone();
        return;
    };
    if !object.is_object() {
        *object = json!({});
    }
    for (key, value) in patch {
        match value {
            Value::Null => drop(object.as_object_mut().unwrap().remove(key)),
            value => merge(&mut object[key], value),
        }
    }
}

fn new_claim(provider: Provider) -> NewClaim {
    let api = ApiKind::node_class(provider);
    let class_label = format!("{}/{}", api.group, api.kind.to_lowercase());
    let rules = label_rules(Some(provider)).with_well_known([class_label.as_str()]);
    let mut requirements = Requirements::new();
    for requirement in [
        Requirement::one_of(label::INSTANCE_TYPE, ["a", "b", "c"]).with_min_values(Some(2)),
        Requirement::one_of(label::NODEPOOL, ["general"]),
        Requirement::one_of(class_label.as_str(), ["default"]),
        Requirement::one_of(label::CAPACITY_TYPE, ["spot"]),
        Requirement::none_of("team", ["x"]),
        Requirement::does_not_exist("tier"),
        Requirement::exists("rack"),
        Requirement::new("example.com/size", Operator::Gt, ["4"]).unwrap(),
        Requirement::new("example.com/size", Operator::Lte, ["64"]).unwrap(),
        Requirement::none_of("example.com/size", ["7"]),
    ] {
        requirements.add(requirement, &rules);
    }
    let owner = Owner {
        api_version: text("karpenter.sh/v1"),
        kind: text("NodePool"),
        name: text("general"),
        uid: text("pool-uid"),
        controller: false,
        blocks_deletion: true,
    };
    NewClaim {
        name: text("general-7xk2f"),
        labels: BTreeMap::from([(text(label::NODEPOOL), text("general"))]),
        annotations: BTreeMap::from([(text(label::annotation::NODEPOOL_HASH), text("123"))]),
        owner: Some(owner),
        node: NodeSpec {
            class: NodeClassRef { group: text(api.group), kind: text(api.kind), name: text("default") },
            requirements,
            taints: vec!["dedicated=web:NoSchedule".parse().unwrap()],
            startup_taints: vec!["cni:NoExecute".parse().unwrap()],
            expire_after: "720h".parse().unwrap(),
            termination_grace_period: Some("1h30m".parse().unwrap()),
        },
        requests: amounts("cpu=1500m memory=1.5Gi pods=3"),
        replaces_for: None,
    }
}

#[test]
fn a_new_claim_reads_back_as_it_was_meant() {
    for provider in Provider::ALL {
        let claim = new_claim(provider);
        let [write] = writes(Effect::CreateClaim(Box::new(claim.clone()))).try_into().unwrap();
        assert_eq!(write.path(), "/apis/karpenter.sh/v1/nodeclaims");
        let object = write.body(None);
        let wire: NodeClaim = serde_json::from_value(object.clone()).unwrap();
        let read = crate::parse::node_claim(&wire, &label_rules(Some(provider))).unwrap();
        assert!(read.warnings.is_empty(), "{:?}", read.warnings);
        let read = read.value;
        assert_eq!((&read.node, &read.requests), (&claim.node, &claim.requests));
        assert_eq!((&read.meta.labels, &read.meta.annotations), (&claim.labels, &claim.annotations));
        assert_eq!((read.name(), read.meta.owners.first()), (&claim.name, claim.owner.as_ref()));

        assert_eq!(object["spec"]["expireAfter"], "720h0m0s");
        assert_eq!(object["spec"]["terminationGracePeriod"], "1h30m0s");
        let requests = json!({"cpu": "1500m", "memory": "1536Mi", "pods": "3"});
        assert_eq!(object["spec"]["resources"]["requests"], requests);
        let owner = &object["metadata"]["ownerReferences"][0];
        assert_eq!((&owner["blockOwnerDeletion"], owner.get("controller")), (&json!(true), None));
    }
}

#[test]
fn a_standalone_claim_without_extras_writes_no_empty_fields() {
    let mut claim = new_claim(Provider::Kwok);
    (claim.owner, claim.labels, claim.annotations, claim.requests) = Default::default();
    claim.node.taints.clear();
    claim.node.startup_taints.clear();
    claim.node.termination_grace_period = None;
    claim.node.expire_after = "Never".parse().unwrap();
    let object = writes(Effect::CreateClaim(Box::new(claim)))[0].body(None);
    assert_eq!(object["metadata"], json!({"name": "general-7xk2f"}));
    let fields: Vec<&String> = object["spec"].as_object().unwrap().keys().collect();
    assert_eq!(fields, ["expireAfter", "nodeClassRef", "requirements"]);
    assert_eq!(object["spec"]["expireAfter"], "Never");
}

#[cfg(feature = "admission")]
#[test]
fn new_claims_and_their_status_are_admitted() {
    use crate::admission::{Admission, Outcome};
    for provider in Provider::ALL {
        let admission = Admission::new(&crate::crds(Some(provider))).unwrap();
        let object = writes(Effect::CreateClaim(Box::new(new_claim(provider))))[0].body(None);
        let Outcome::Accepted(accepted) = admission.create(&object) else { panic!("{:?}", admission.create(&object)) };
        assert!(accepted.pruned.is_empty(), "{:?}", accepted.pruned);
        let patch = Effect::PatchClaim(target("general-7xk2f"), Box::new(launched()));
        let status = writes(patch).pop().unwrap().body(None);
        let mut with_status = accepted.object.clone();
        with_status["status"] = status["status"].clone();
        let outcome = admission.update_status(&accepted.object, &with_status);
        assert!(matches!(&outcome, Outcome::Accepted(accepted) if accepted.pruned.is_empty()), "{outcome:?}");
    }
}

fn launched() -> ClaimPatch {
    ClaimPatch {
        meta: MetaPatch {
            resource_version: Some(text("41")),
            labels: BTreeMap::from([(text("zone"), Some(text("a"))), (text("old"), None)]),
            finalizers: Some(vec![text("karpenter.sh/termination")]),
            ..MetaPatch::default()
        },
        status: ClaimStatusPatch {
            provider_id: Some(text("kwok://x")),
            capacity: Some(amounts("cpu=4 memory=8Gi")),
            last_pod_event: Some("2026-11-17T10:00:00.7Z".parse().unwrap()),
            conditions: Some(Conditions(vec![
                condition("Launched", ConditionStatus::True, 1),
                condition("Ready", ConditionStatus::Unknown, 0),
            ])),
            ..ClaimStatusPatch::default()
        },
    }
}

#[test]
fn a_claim_patch_goes_to_the_object_and_then_to_its_status() {
    let [object, status] = writes(Effect::PatchClaim(target("c"), Box::new(launched()))).try_into().unwrap();
    assert_eq!(object.path(), "/apis/karpenter.sh/v1/nodeclaims/c");
    assert_eq!(status.path(), "/apis/karpenter.sh/v1/nodeclaims/c/status");
    // The first write moves the object to a new version, which the second one continues from.
    assert_eq!(object.body(None)["metadata"]["resourceVersion"], "41");
    assert_eq!(status.body(Some("42"))["metadata"]["resourceVersion"], "42");

    let mut stored = json!({
        "metadata": {"name": "c", "uid": "u1", "labels": {"old": "1", "kept": "2"}, "finalizers": ["other"]},
        "status": {"imageID": "i", "conditions": [{"type": "Gone"}]},
    });
    merge(&mut stored, &object.body(None));
    merge(&mut stored, &status.body(Some("42")));
    let expected = json!({
        "metadata": {
            "name": "c", "uid": "u1", "resourceVersion": "42",
            "labels": {"zone": "a", "kept": "2"}, "finalizers": ["karpenter.sh/termination"],
        },
        "status": {
            "imageID": "i", "providerID": "kwok://x", "capacity": {"cpu": "4", "memory": "8Gi"},
            "lastPodEventTime": "2026-11-17T10:00:00Z",
            "conditions": [
                {
                    "type": "Launched", "status": "True", "reason": "Launched", "message": "",
                    "lastTransitionTime": "2026-11-17T10:00:00Z", "observedGeneration": 1,
                },
                {
                    "type": "Ready", "status": "Unknown", "reason": "Ready", "message": "",
                    "lastTransitionTime": "2026-11-17T10:00:00Z",
                },
            ],
        },
    });
    assert_eq!(stored, expected);
}

#[test]
fn the_status_is_written_before_the_last_finalizer_goes() {
    let mut patch = launched();
    patch.meta.finalizers = Some(Vec::new());
    let [status, object] = writes(Effect::PatchClaim(target("c"), Box::new(patch))).try_into().unwrap();
    assert_eq!(status.body(None)["metadata"]["resourceVersion"], "41");
    assert_eq!(object.body(Some("42"))["metadata"]["finalizers"], json!([]));
    assert_eq!(object.body(Some("42"))["metadata"]["resourceVersion"], "42");
}

#[test]
fn a_patch_that_says_nothing_is_not_sent() {
    let meta = MetaPatch { resource_version: Some(text("1")), ..MetaPatch::default() };
    let patch = NodePatch { meta, taints: None };
    assert_eq!(writes(Effect::PatchNode(target("n"), Box::new(patch))), []);
}

#[test]
fn taints_of_a_node_are_written_whole_with_their_times_beside_its_metadata() {
    let taint: kerf_model::taint::Taint = "a=1:NoExecute".parse().unwrap();
    let taint = taint.with_added(Some("2026-11-17T09:00:00Z".parse().unwrap()));
    let patch = NodePatch {
        meta: MetaPatch {
            resource_version: Some(text("9")),
            annotations: BTreeMap::from([(text("a"), None)]),
            owners: Some(vec![Owner {
                api_version: text("karpenter.sh/v1"),
                kind: text("NodeClaim"),
                name: text("c"),
                uid: text("cu"),
                controller: false,
                blocks_deletion: true,
            }]),
            ..MetaPatch::default()
        },
        taints: Some(vec!["karpenter.sh/disrupted:NoSchedule".parse().unwrap(), taint]),
    };
    let [write] = writes(Effect::PatchNode(target("n"), Box::new(patch))).try_into().unwrap();
    let expected = json!({
        "metadata": {
            "uid": "u1", "resourceVersion": "9", "annotations": {"a": null},
            "ownerReferences": [
                {"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "name": "c", "uid": "cu", "blockOwnerDeletion": true},
            ],
        },
        "spec": {"taints": [
            {"key": "karpenter.sh/disrupted", "effect": "NoSchedule"},
            {"key": "a", "value": "1", "effect": "NoExecute", "timeAdded": "2026-11-17T09:00:00Z"},
        ]},
    });
    assert_eq!((write.path().as_str(), write.body(None)), ("/api/v1/nodes/n", expected));
    let none = NodePatch { meta: MetaPatch::default(), taints: Some(Vec::new()) };
    let [write] = writes(Effect::PatchNode(target("n"), Box::new(none))).try_into().unwrap();
    assert_eq!(write.body(None), json!({"metadata": {"uid": "u1"}, "spec": {"taints": []}}));
}

#[test]
fn a_pool_forgets_the_resources_it_has_no_more_of() {
    let patch = PoolPatch {
        resources: Some(amounts("cpu=8 nodes=2")),
        gone_resources: vec![ResourceName::from("nvidia.com/gpu")],
        nodes: Some(2),
        class_observed_generation: Some(5),
        ..PoolPatch::default()
    };
    let [write] = writes(Effect::PatchPool(target("p"), Box::new(patch))).try_into().unwrap();
    assert_eq!(write.path(), "/apis/karpenter.sh/v1/nodepools/p/status");
    let mut stored = json!({"status": {"nodes": 3, "resources": {"cpu": "12", "nvidia.com/gpu": "1"}}});
    merge(&mut stored, &write.body(None));
    let expected = json!({"nodes": 2, "nodeClassObservedGeneration": 5, "resources": {"cpu": "8", "nodes": "2"}});
    assert_eq!(stored["status"], expected);
}

/// Sheet 04 §4.6: evictions and deletions hit the pod that was meant, and not its namesake.
#[test]
fn pods_are_evicted_and_deleted_by_uid() {
    let pod = Target { name: ObjectName::new("shop", "web"), uid: text("pu") };
    let [evict] = writes(Effect::EvictPod(pod.clone(), Arc::from("Drifted"))).try_into().unwrap();
    assert_eq!(evict.path(), "/api/v1/namespaces/shop/pods/web/eviction");
    let eviction: k8s_openapi::api::policy::v1::Eviction = serde_json::from_value(evict.body(None)).unwrap();
    let options = eviction.delete_options.unwrap();
    assert_eq!(options.preconditions.unwrap().uid.as_deref(), Some("pu"));
    assert_eq!((options.grace_period_seconds, eviction.metadata.name.as_deref()), (None, Some("web")));

    for (grace, secs) in [("1.2s", 2), ("30s", 30), ("0s", 0), ("-5s", 0)] {
        let grace = SignedDuration::from(grace.parse::<kerf_model::duration::GoDuration>().unwrap());
        let [delete] = writes(Effect::DeletePod(pod.clone(), grace, Arc::from("Drifted"))).try_into().unwrap();
        assert_eq!(delete.path(), "/api/v1/namespaces/shop/pods/web");
        assert_eq!(delete.body(None)["gracePeriodSeconds"], secs);
        assert_eq!(delete.body(None)["preconditions"], json!({"uid": "pu"}));
    }
    let [delete] = writes(Effect::DeleteNode(target("n"))).try_into().unwrap();
    assert_eq!(delete.body(None).get("gracePeriodSeconds"), None);
}

/// Sheet 04 §10.
#[test]
fn events_are_those_of_the_core_group_and_named_after_what_they_say() {
    let event = |kind, name: ObjectName| Event {
        about: EventTarget { kind, target: Target { name, uid: text("u1") } },
        severity: EventSeverity::Warning,
        reason: "FailedDraining",
        message: "3 pods are waiting".to_owned(),
        dedupe: "n".to_owned(),
        interval: SignedDuration::from_mins(2),
    };
    let at = |event: &Event, now: &str| {
        let writes = api_writes(&Effect::Publish(Box::new(event.clone())), now.parse().unwrap()).unwrap();
        writes[0].clone()
    };
    let node = event(EventKind::Node, ObjectName::of_cluster("node-a"));
    let write = at(&node, NOW);
    assert_eq!(write.path(), "/api/v1/namespaces/default/events");
    let object: k8s_openapi::api::core::v1::Event = serde_json::from_value(write.body(None)).unwrap();
    assert_eq!(object.source.unwrap().component.as_deref(), Some("karpenter"));
    assert_eq!((object.type_.as_deref(), object.reason.as_deref()), (Some("Warning"), Some("FailedDraining")));
    let involved = object.involved_object;
    assert_eq!(
        (involved.kind.as_deref(), involved.uid.as_deref(), involved.namespace),
        (Some("Node"), Some("u1"), None)
    );
    assert_eq!(write.body(None)["lastTimestamp"], "2026-11-18T01:02:03Z");

    let pod = at(&event(EventKind::Pod, ObjectName::new("shop", "web")), NOW);
    assert_eq!(pod.path(), "/api/v1/namespaces/shop/events");
    assert_eq!(pod.body(None)["involvedObject"]["namespace"], "shop");

    let name = |event: &Event, now: &str| at(event, now).name.name;
    assert_eq!(name(&node, NOW), name(&node, "2026-11-18T01:03:59Z"), "the same within the interval");
    assert_ne!(name(&node, NOW), name(&node, "2026-11-18T01:04:00Z"));
    assert_ne!(name(&node, NOW), name(&Event { dedupe: "m".to_owned(), ..node.clone() }, NOW));
    let long = event(EventKind::Node, ObjectName::of_cluster("n".repeat(253)));
    assert_eq!(name(&long, NOW).len(), 253);
}

#[test]
fn what_is_for_the_cloud_is_no_request_to_the_api() {
    let now = NOW.parse().unwrap();
    for effect in [
        Effect::Launch { claim: target("c") },
        Effect::Terminate { claim: target("c"), provider_id: text("x") },
        Effect::ListInstances,
        Effect::FindInstance { provider_id: text("x") },
    ] {
        assert_eq!(api_writes(&effect, now), None);
    }
}

#[test]
fn the_status_of_a_window_is_written_as_a_whole() {
    let status = WindowStatus {
        active: Some(false),
        next_transition: None,
        matched_nodes: Some(0),
        conditions: Conditions(vec![condition("Ready", ConditionStatus::True, 1)]),
    };
    let patch = WindowPatch { resource_version: text("7"), status };
    let writes = writes(Effect::PatchWindow(target("w"), Box::new(patch)));
    let [ApiWrite { kind, request: Request::MergePatch { subresource, version, body }, .. }] = &writes[..] else {
        panic!("{writes:?}")
    };
    assert_eq!((*kind, *subresource), (ApiKind::MAINTENANCE_WINDOW, Subresource::Status));
    assert_eq!(*version, Version::Exactly(text("7")));
    let status = &body["status"];
    assert_eq!((&status["active"], &status["matchedNodes"]), (&json!(false), &json!(0)));
    assert!(status["nextTransitionTime"].is_null() && status.get("nextTransitionTime").is_some(), "{status}");
    assert_eq!(status["conditions"][0]["type"], "Ready");
}
