//! What stands around scheduling: overlays on the catalogue, room that is kept free, spread for pods that ask for none.
//! The objects are those that people write; the functions are those that the engine asks.
#![expect(clippy::unwrap_used, reason = "in helpers of tests a failure is the failure of the test")]

use std::collections::BTreeMap;
use std::sync::Arc;

use kerf_api::Provider;
use kerf_api::change::{Reader, WatchedKind};
use kerf_api::provider::label_rules;
use kerf_api::scheduler_config::default_constraints;
use kerf_cloud::Catalogue;
use kerf_model::cluster::{InstanceType, Pod};
use kerf_model::price::Price;
use kerf_model::snapshot::ClusterSnapshot;
use kerf_scheduling::{DefaultSpread, Overlaid, OverlayVerdict, is_virtual, overlaid, resolve};
use serde_json::{Value, json};

fn snapshot(objects: impl IntoIterator<Item = Value>) -> ClusterSnapshot {
    let mut reader = Reader::new(Some(Provider::Kwok));
    let mut snapshot = ClusterSnapshot::default();
    for object in objects {
        let kind = WatchedKind::of(object["apiVersion"].as_str().unwrap(), object["kind"].as_str().unwrap()).unwrap();
        snapshot.apply(reader.seen_json(kind, &object).unwrap().change);
    }
    snapshot
}

fn pool(name: &str, labels: Value) -> Value {
    json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": name},
        "spec": {"template": {"metadata": {"labels": labels}, "spec": {
            "nodeClassRef": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"},
            "requirements": [],
        }}},
    })
}

fn overlay(name: &str, weight: u32, requirements: Value, change: Value) -> Value {
    let mut spec = change;
    spec["requirements"] = requirements;
    if weight > 0 {
        spec["weight"] = json!(weight);
    }
    json!({"apiVersion": "karpenter.sh/v1alpha1", "kind": "NodeOverlay", "metadata": {"name": name}, "spec": spec})
}

fn type_is(name: &str) -> Value {
    json!([{"key": "node.kubernetes.io/instance-type", "operator": "In", "values": [name]}])
}

const TYPE: &str = "c-4x-amd64-linux";
const OTHER: &str = "s-4x-amd64-linux";

fn put(objects: impl IntoIterator<Item = Value>) -> Overlaid {
    let cluster = snapshot([pool("general", json!({"team": "a"}))].into_iter().chain(objects));
    let types = Catalogue::kwok().types().clone();
    // The second pool has types, but nothing else is known about it.
    let catalogues = ["general", "unknown"].map(|pool| (Arc::from(pool), types.clone())).into();
    let overlays = cluster.overlays().map(|overlay| &**overlay);
    let pools = cluster.pools().filter_map(|pool| pool.spec.as_ref().ok());
    overlaid(&catalogues, overlays, pools, &label_rules(Some(Provider::Kwok)))
}

fn prices(kind: &InstanceType) -> Vec<Price> {
    kind.offerings.iter().map(|offering| offering.price).collect()
}

fn find<'a>(result: &'a Overlaid, name: &str) -> &'a InstanceType {
    result.types["general"].iter().find(|kind| &*kind.name == name).unwrap()
}

fn verdict(result: &Overlaid, name: &str) -> OverlayVerdict {
    result.verdicts[name].clone()
}

/// Sheet 02 §22, case 92.
#[test]
fn an_overlay_changes_the_offerings_that_it_is_about_and_nothing_else() {
    let before = Catalogue::kwok();
    let spot = json!([
        {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": [TYPE]},
        {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["spot"]},
    ]);
    let result = put([overlay("cheap", 0, spot, json!({"priceAdjustment": "-10%"}))]);
    assert_eq!(verdict(&result, "cheap"), OverlayVerdict::Applied);
    let (old, new) = (before.get(TYPE).unwrap(), find(&result, TYPE));
    for (old, new) in old.offerings.iter().zip(&new.offerings) {
        let is_spot = old.requirements.get("karpenter.sh/capacity-type").unwrap().has("spot");
        let expected = if is_spot { old.price.micros() * 9 / 10 } else { old.price.micros() };
        assert!((new.price.micros() - expected).abs() <= 1, "{old:?} {new:?}");
    }
    assert_eq!(before.get(OTHER).unwrap(), find(&result, OTHER));
    assert!(result.marks("general", TYPE).price && !result.marks("general", TYPE).capacity);
    assert!(!result.marks("general", OTHER).price);
}

#[test]
fn overlays_can_ask_for_the_pool_and_for_the_labels_of_its_template() {
    let of = |key: &str, value: &str| {
        let result =
            put([overlay("o", 0, json!([{"key": key, "operator": "In", "values": [value]}]), json!({"price": "1"}))]);
        prices(find(&result, TYPE))[0] == "1".parse().unwrap()
    };
    assert!(of("karpenter.sh/nodepool", "general") && !of("karpenter.sh/nodepool", "other"));
    assert!(of("team", "a") && !of("team", "b"));
    // Nothing defines it, so nothing matches.
    assert!(!of("color", "red"));
}

/// Sheet 08 S7: what an overlay does not name stays.
#[test]
fn an_extended_resource_is_added_to_the_whole_type() {
    let result = put([overlay("slots", 0, type_is(TYPE), json!({"capacity": {"example.com/slots": "3"}}))]);
    let (old, new) = (Catalogue::kwok().get(TYPE).unwrap().clone(), find(&result, TYPE).clone());
    assert_eq!(new.allocatable().amount("example.com/slots").value(), Some(3));
    assert_eq!(new.allocatable().amount("cpu"), old.allocatable().amount("cpu"));
    assert_eq!((new.offerings.clone(), new.requirements.clone()), (old.offerings, old.requirements));
    assert!(result.marks("general", TYPE).capacity);
}

/// Sheet 02 case 92: the later one in order is the one whose name comes first.
#[test]
fn of_two_overlays_of_one_weight_on_one_price_the_later_is_refused_as_a_whole() {
    let both = [TYPE, OTHER].map(|name| json!(name));
    let wide = json!([{"key": "node.kubernetes.io/instance-type", "operator": "In", "values": both}]);
    let result = put([
        overlay("b-first", 5, type_is(TYPE), json!({"price": "1"})),
        overlay("a-later", 5, wide, json!({"price": "1"})),
    ]);
    assert_eq!(verdict(&result, "b-first"), OverlayVerdict::Applied);
    assert_eq!(verdict(&result, "a-later"), OverlayVerdict::Conflict { with: Arc::from("b-first") });
    // Not even where nothing stands against it.
    assert_eq!(find(&result, OTHER), Catalogue::kwok().get(OTHER).unwrap());
}

#[test]
fn the_higher_weight_wins_without_a_conflict() {
    let result = put([
        overlay("low", 1, type_is(TYPE), json!({"price": "1", "capacity": {"example.com/slots": "1"}})),
        overlay("high", 9, type_is(TYPE), json!({"price": "2"})),
    ]);
    assert_eq!(prices(find(&result, TYPE))[0], "2".parse().unwrap());
    assert_eq!(find(&result, TYPE).capacity.amount("example.com/slots").value(), Some(1));
    assert_eq!((verdict(&result, "low"), verdict(&result, "high")), (OverlayVerdict::Applied, OverlayVerdict::Applied));
}

/// Sheet 02 §29, 13: upstream remembers only the last overlay's resources, and lets the third pass.
#[test]
fn a_third_overlay_of_one_weight_cannot_hide_behind_the_second() {
    let capacity = |name: &str| json!({"capacity": {name: "1"}});
    let result = put([
        overlay("c", 5, type_is(TYPE), capacity("example.com/a")),
        overlay("b", 5, type_is(TYPE), capacity("example.com/b")),
        overlay("a", 5, type_is(TYPE), capacity("example.com/a")),
    ]);
    assert_eq!(verdict(&result, "b"), OverlayVerdict::Applied);
    assert_eq!(verdict(&result, "a"), OverlayVerdict::Conflict { with: Arc::from("c") });
}

#[test]
fn an_overlay_that_cannot_be_read_says_why_and_a_pool_that_is_not_known_has_no_types() {
    let result = put([overlay("odd", 0, json!([{"key": "karpenter.sh/odd", "operator": "Exists"}]), json!({}))]);
    assert!(matches!(verdict(&result, "odd"), OverlayVerdict::Invalid { .. }));
    assert_eq!(result.types.keys().map(|pool| &**pool).collect::<Vec<_>>(), ["general"]);
}

fn workload(kind: &str, name: &str, replicas: u32) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": kind,
        "metadata": {"name": name, "namespace": "shop", "uid": format!("uid-{name}")},
        "spec": {
            "replicas": replicas, "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}}, "spec": {
                "containers": [{"name": "c", "resources": {"requests": {"cpu": "2", "memory": "1Gi"}}}],
                "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}],
            }},
        },
    })
}

fn buffer(spec: Value) -> Value {
    json!({
        "apiVersion": "autoscaling.x-k8s.io/v1beta1", "kind": "CapacityBuffer",
        "metadata": {"name": "b", "namespace": "shop", "uid": "u"}, "spec": spec,
    })
}

fn size(replicas: u32, mut spec: Value) -> u32 {
    spec["scalableRef"] = json!({"apiGroup": "apps", "kind": "Deployment", "name": "web"});
    let cluster = snapshot([workload("Deployment", "web", replicas), buffer(spec)]);
    let found = cluster.buffers().next().unwrap();
    let resolved = resolve(found, &cluster).unwrap();
    assert_eq!(resolved.pods.len(), resolved.replicas as usize);
    resolved.replicas
}

/// Sheet 02 case 91.
#[test]
fn a_buffer_is_the_larger_of_number_and_percentage_within_its_limits() {
    assert_eq!(size(50, json!({"replicas": 5, "percentage": 20})), 10);
    assert_eq!(size(50, json!({"replicas": 50, "percentage": 20, "limits": {"cpu": "20"}})), 10);
    assert_eq!(size(3, json!({"percentage": 1})), 1);
    assert_eq!(size(0, json!({"percentage": 50})), 0);
    assert_eq!(size(3, json!({"limits": {"cpu": "5"}})), 2);
    assert_eq!(size(3, json!({"replicas": 4, "limits": {"example.com/gpu": "1"}})), 4);
    assert_eq!(size(3, json!({"limits": {"example.com/gpu": "1"}})), 0);
    assert_eq!(size(3, json!({"limits": {"memory": "2500Mi", "cpu": "100"}})), 2);
    assert_eq!(size(3, json!({})), 0);
}

#[test]
fn virtual_pods_have_the_shape_of_the_workload_and_no_volumes() {
    let spec = json!({"replicas": 2, "scalableRef": {"kind": "StatefulSet", "name": "db"}});
    let cluster = snapshot([workload("StatefulSet", "db", 3), buffer(spec)]);
    let pods = resolve(cluster.buffers().next().unwrap(), &cluster).unwrap().pods;
    let [first, second] = pods.as_slice() else { panic!("two pods") };
    assert_eq!((&*first.meta.name.name, &*second.meta.uid), ("capacity-buffer-b-1", "u-2"));
    assert_eq!(first.requests.to_string(), "cpu=2 memory=1Gi pods=1");
    assert!(first.volumes.is_empty() && is_virtual(first) && first.is_provisionable() && first.priority == i32::MIN);
    assert_eq!(first.meta.label("app"), Some("db"));
}

#[test]
fn a_buffer_without_a_shape_says_what_is_missing() {
    let reason = |spec: Value| {
        let cluster = snapshot([buffer(spec)]);
        resolve(cluster.buffers().next().unwrap(), &cluster).unwrap_err().id()
    };
    assert_eq!(
        reason(json!({"replicas": 1, "scalableRef": {"kind": "Deployment", "name": "x"}})),
        "ScalableRefNotFound"
    );
    assert_eq!(reason(json!({"replicas": 1, "podTemplateRef": {"name": "x"}})), "PodTemplateNotFound");
    assert_eq!(reason(json!({"replicas": 1, "scalableRef": {"kind": "Job", "name": "x"}})), "ResolutionFailed");
    assert_eq!(reason(json!({})), "ResolutionFailed");
}

fn pod(name: &str, labels: Value, owner: Option<(&str, &str)>, spread: Value) -> Value {
    let owners: Vec<Value> = owner
        .into_iter()
        .map(|(kind, name)| {
            json!({"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": format!("uid-{name}"), "controller": true})
        })
        .collect();
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": "shop", "labels": labels, "ownerReferences": owners},
        "spec": {"containers": [{"name": "c"}], "topologySpreadConstraints": spread},
    })
}

/// How many constraints each pod has, and which of the others its selector matches.
fn spread(objects: impl IntoIterator<Item = Value>) -> BTreeMap<String, (usize, Vec<String>)> {
    let constraints = default_constraints(
        "podTopologySpread: {defaultConstraints: [{maxSkew: 1, topologyKey: topology.kubernetes.io/zone, \
         whenUnsatisfiable: ScheduleAnyway}]}",
    );
    let cluster = snapshot(objects);
    let pods: Vec<Arc<Pod>> = cluster.pods().cloned().collect();
    let spread = DefaultSpread { constraints: constraints.unwrap() }.apply(pods.clone(), &cluster);
    let name = |pod: &Arc<Pod>| pod.meta.name.name.to_string();
    let matched = |pod: &Arc<Pod>| {
        let selector = pod.constraints.spread.first().and_then(|constraint| constraint.selector.clone());
        let is_matched = |other: &&Arc<Pod>| selector.as_ref().is_some_and(|one| one.matches(&other.meta.labels));
        pods.iter().filter(is_matched).map(name).collect::<Vec<_>>()
    };
    spread.iter().map(|pod| (name(pod), (pod.constraints.spread.len(), matched(pod)))).collect()
}

fn replica_set(name: &str, revision: &str) -> Value {
    let mut set = workload("ReplicaSet", name, 1);
    set["spec"]["selector"]["matchLabels"] = json!({"app": "web", "rev": revision});
    set
}

/// Sheet 02 case 67.
#[test]
fn pods_of_a_replica_set_are_spread_by_revision_and_bare_pods_are_left_alone() {
    let of = |revision: &str| json!({"app": "web", "rev": revision});
    let found = spread([
        replica_set("web-1", "1"),
        replica_set("web-2", "2"),
        pod("a1", of("1"), Some(("ReplicaSet", "web-1")), json!([])),
        pod("b1", of("1"), Some(("ReplicaSet", "web-1")), json!([])),
        pod("a2", of("2"), Some(("ReplicaSet", "web-2")), json!([])),
        pod("bare", of("1"), None, json!([])),
        pod("lost", of("1"), Some(("ReplicaSet", "gone")), json!([])),
    ]);
    let texts = |names: &[&str]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(found["a1"], (1, texts(&["a1", "b1", "bare", "lost"])));
    assert_eq!(found["a2"], (1, texts(&["a2"])));
    assert_eq!((found["bare"].0, found["lost"].0), (0, 0));
}

#[test]
fn a_service_is_enough_and_own_constraints_stay() {
    let service = |name: &str, selector: Value| {
        json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "namespace": "shop"},
               "spec": {"selector": selector}})
    };
    let own = json!([{"maxSkew": 3, "topologyKey": "a", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {}},
                     {"maxSkew": 3, "topologyKey": "b", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {}}]);
    let found = spread([
        service("web", json!({"app": "web"})),
        service("none", Value::Null),
        pod("a", json!({"app": "web"}), None, json!([])),
        pod("b", json!({"app": "web"}), None, own),
        pod("c", json!({"app": "other"}), None, json!([])),
    ]);
    assert_eq!((found["a"].0, found["b"].0, found["c"].0), (1, 2, 0));
    assert_eq!(found["a"].1, ["a", "b"]);
}
