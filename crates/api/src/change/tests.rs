use std::collections::BTreeSet;

use kerf_model::cluster::WindowStatus;
use kerf_model::maintenance::Action;
use kerf_model::requirement::Requirement;
use kerf_model::snapshot::ClusterSnapshot;
use kube::Resource;
use serde_json::json;

use super::*;
use crate::api_kind::ApiKind;
use crate::ec2_node_class::Ec2NodeClass;
use crate::kwok_node_class::KwokNodeClass;

fn reader() -> Reader {
    Reader::new(Some(Provider::Kwok))
}

fn read(kind: WatchedKind, object: Value) -> Result<Seen, Unreadable> {
    reader().seen_json(kind, &object)
}

fn claim(requirements: Value) -> Value {
    json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim",
        "metadata": {"name": "c", "uid": "u"},
        "spec": {
            "nodeClassRef": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"},
            "requirements": requirements,
        },
        "status": {"providerID": "kwok://c", "nodeName": "c"},
    })
}

#[test]
fn every_kind_has_a_change_and_its_end() {
    let mut snapshot = ClusterSnapshot::default();
    let mut reader = reader();
    for kind in WatchedKind::all(Provider::Kwok).into_iter().chain(Features::ALL.kinds()) {
        let spec = match kind {
            WatchedKind::NodePool => json!({"template": {"spec": claim(json!([]))["spec"]}}),
            WatchedKind::NodeClaim => claim(json!([]))["spec"].clone(),
            WatchedKind::DaemonSet => json!({"template": {"spec": {}}}),
            WatchedKind::MaintenanceWindow => json!({"actions": ["Drift"]}),
            WatchedKind::NodeOverlay => json!({"requirements": []}),
            WatchedKind::VolumeAttachment => json!({"nodeName": "n", "source": {}}),
            _ => json!({}),
        };
        let namespace = kind.api_kind().namespaced.then_some("ns");
        let object = json!({"metadata": {"name": "x", "namespace": namespace}, "spec": spec});
        let Seen { change, warnings } = reader.seen_json(kind, &object).unwrap();
        assert!(warnings.is_empty(), "{kind:?}: {warnings:?}");
        let meta: WireMeta = serde_json::from_value(object["metadata"].clone()).unwrap();
        let gone = kind.gone(&meta);
        assert_eq!(std::mem::discriminant(&change), std::mem::discriminant(&gone), "{kind:?}");
        snapshot.apply(change);
        snapshot.apply(gone);
        let api = kind.api_kind();
        assert_eq!(WatchedKind::of(&api.api_version(), api.kind), Some(kind));
    }
    assert_eq!((snapshot.pools().count(), snapshot.claims().count(), snapshot.classes().count()), (0, 0, 0));
    assert_eq!(WatchedKind::of("v1", "ConfigMap"), None);
}

#[test]
fn the_kinds_are_those_of_the_types() {
    fn check<T: Resource<DynamicType = ()>>(kind: ApiKind) {
        let of_type = (T::group(&()), T::version(&()), T::kind(&()), T::plural(&()));
        assert_eq!(of_type, (kind.group.into(), kind.version.into(), kind.kind.into(), kind.plural.into()));
    }
    check::<SlimPod>(ApiKind::POD);
    check::<SlimNode>(ApiKind::NODE);
    check::<SlimNamespace>(ApiKind::NAMESPACE);
    check::<k8s_openapi::api::core::v1::Event>(ApiKind::EVENT);
    check::<SlimPersistentVolume>(ApiKind::PERSISTENT_VOLUME);
    check::<SlimPersistentVolumeClaim>(ApiKind::PERSISTENT_VOLUME_CLAIM);
    check::<SlimDaemonSet>(ApiKind::DAEMON_SET);
    check::<SlimPodDisruptionBudget>(ApiKind::DISRUPTION_BUDGET);
    check::<SlimStorageClass>(ApiKind::STORAGE_CLASS);
    check::<SlimCsiNode>(ApiKind::CSI_NODE);
    check::<SlimVolumeAttachment>(ApiKind::VOLUME_ATTACHMENT);
    check::<NodePool>(ApiKind::NODE_POOL);
    check::<NodeClaim>(ApiKind::NODE_CLAIM);
    check::<NodeOverlay>(ApiKind::NODE_OVERLAY);
    check::<CapacityBuffer>(ApiKind::CAPACITY_BUFFER);
    check::<SlimPodTemplateObject>(ApiKind::POD_TEMPLATE);
    check::<SlimService>(ApiKind::SERVICE);
    check::<k8s_openapi::api::apps::v1::Deployment>(ApiKind::workload(WorkloadKind::Deployment));
    check::<k8s_openapi::api::apps::v1::StatefulSet>(ApiKind::workload(WorkloadKind::StatefulSet));
    check::<k8s_openapi::api::apps::v1::ReplicaSet>(ApiKind::workload(WorkloadKind::ReplicaSet));
    check::<k8s_openapi::api::core::v1::ReplicationController>(ApiKind::workload(WorkloadKind::ReplicationController));
    check::<MaintenanceWindow>(ApiKind::MAINTENANCE_WINDOW);
    check::<KwokNodeClass>(ApiKind::node_class(Provider::Kwok));
    check::<Ec2NodeClass>(ApiKind::node_class(Provider::Aws));
}

#[test]
fn a_claim_that_does_not_parse_stays_known_and_cannot_be_launched_for() {
    let bad = json!([{"key": "karpenter.sh/unknown", "operator": "In", "values": ["x"]}]);
    let Seen { change: Change::NodeClaim(_, Some(claim)), warnings } =
        read(WatchedKind::NodeClaim, claim(bad)).unwrap()
    else {
        panic!("a claim")
    };
    assert_eq!(claim.status.provider_id.as_deref(), Some("kwok://c"));
    assert!(claim.node.requirements.iter().any(Requirement::is_contradiction));
    assert_eq!(warnings[0].field, "spec.requirements[0].key");
}

#[test]
fn a_pool_that_does_not_decode_is_there_and_says_why() {
    let object = json!({"metadata": {"name": "p", "uid": "u"}, "spec": {"template": {"spec": {}}}});
    let Seen { change: Change::NodePool(_, Some(pool)), .. } = read(WatchedKind::NodePool, object).unwrap() else {
        panic!("a pool")
    };
    let reason = pool.spec.as_ref().unwrap_err();
    assert_eq!((&**reason, &*pool.meta.uid), ("spec.template.spec: missing field `nodeClassRef`", "u"));
}

/// Sheet 03 §15.1.
#[test]
fn a_window_that_cannot_be_read_is_always_active() {
    let invalid = json!({"actions": ["Drift"], "schedules": [{"schedule": "never", "duration": "1h"}]});
    for (spec, problem) in [(invalid, "spec.schedules[0]"), (json!({"actions": 3}), "spec.actions")] {
        let seen = read(WatchedKind::MaintenanceWindow, json!({"metadata": {"name": "w"}, "spec": spec})).unwrap();
        assert_eq!(seen.warnings.len(), 1);
        let Change::MaintenanceWindow(_, Some(window)) = seen.change else { panic!("a window") };
        assert_eq!(window.spec.actions, BTreeSet::from(Action::ALL));
        assert!(window.spec.is_active(jiff::Timestamp::UNIX_EPOCH) && window.spec.selector.is_none());
        assert!(window.problem.as_ref().unwrap().contains(problem), "{:?}", window.problem);
    }
}

#[test]
fn a_window_is_read_with_what_its_status_says() {
    let condition = json!({"type": "Ready", "status": "True", "reason": "Ready", "message": "",
                           "lastTransitionTime": "2026-11-18T12:00:00Z", "observedGeneration": 1});
    let status = json!({"active": true, "matchedNodes": 3, "nextTransitionTime": "2026-11-18T17:00:00Z",
                        "conditions": [condition]});
    let object = json!({"metadata": {"name": "w"}, "spec": {"actions": ["Drift"]}, "status": status});
    let seen = read(WatchedKind::MaintenanceWindow, object).unwrap();
    let Change::MaintenanceWindow(_, Some(window)) = seen.change else { panic!("a window") };
    let WindowStatus { active, next_transition, matched_nodes, conditions } = &window.status;
    assert_eq!((*active, *matched_nodes, conditions.is_true("Ready")), (Some(true), Some(3), true));
    assert_eq!(*next_transition, Some("2026-11-18T17:00:00Z".parse().unwrap()));
    assert_eq!(window.problem, None);
}

#[test]
fn what_cannot_be_read_names_its_object() {
    let undecodable = json!({"metadata": {"name": "p", "namespace": "n"}, "spec": {"priority": "high"}});
    let error = read(WatchedKind::Pod, undecodable).unwrap_err();
    assert_eq!(error.to_string(), "Pod n/p does not decode");
    let source = std::error::Error::source(&error).unwrap().to_string();
    assert!(source.starts_with("spec.priority: "), "{source}");
    let invalid = json!({"metadata": {"name": "n"}, "status": {"capacity": {"cpu": "x"}}});
    assert!(matches!(read(WatchedKind::Node, invalid), Err(Unreadable::Invalid(error)) if error.name == "n"));
}
