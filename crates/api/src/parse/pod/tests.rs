use std::collections::BTreeMap;
use std::sync::Arc;

use kerf_model::cluster::{DoNotDisrupt, Pod, PodPhase, WhenUnsatisfiable};
use kerf_model::taint::{Taint, tolerates};
use serde_json::{Value, json};

use super::*;

fn parse(value: Value) -> Result<Parsed<Pod>, ParseError> {
    pod(&serde_json::from_value(value).unwrap(), &mut Shapes::default())
}

fn pod_of(spec: Value, status: Value) -> Pod {
    let metadata = json!({"name": "web-1", "namespace": "shop", "labels": {"app": "web", "pod-template-hash": "7f9"}});
    parse(json!({"metadata": metadata, "spec": spec, "status": status})).unwrap().value
}

/// A pod of containers in a line: `app`, `init` and `sidecar` in order, `pod` for the pod as a whole, `overhead`.
fn spec(text: &str) -> Value {
    let mut spec = json!({"containers": [], "initContainers": []});
    for (index, line) in text.lines().map(str::trim).filter(|line| !line.is_empty()).enumerate() {
        let (role, requests) = line.split_once(' ').unwrap_or((line, ""));
        let requests: serde_json::Map<String, Value> = requests
            .split_whitespace()
            .map(|item| item.split_once('=').unwrap())
            .map(|(name, amount)| (name.to_owned(), json!(amount)))
            .collect();
        let mut container = json!({"name": format!("c{index}"), "resources": {"requests": requests}});
        match role {
            "app" => spec["containers"].as_array_mut().unwrap().push(container),
            "init" => spec["initContainers"].as_array_mut().unwrap().push(container),
            "sidecar" => {
                container["restartPolicy"] = json!("Always");
                spec["initContainers"].as_array_mut().unwrap().push(container);
            }
            "pod" => spec["resources"] = json!({"requests": requests}),
            "overhead" => spec["overhead"] = json!(requests),
            other => panic!("unknown role {other}"),
        }
    }
    spec
}

/// Sheet 02 §5 and cases 14 to 19.
#[test]
fn a_pod_needs_the_most_that_runs_at_once() {
    for (case, containers, expected) in [
        ("nothing", "app", "pods=1"),
        ("the sum of its containers", "app cpu=1 memory=1Gi\n app cpu=500m", "cpu=1500m memory=1Gi pods=1"),
        (
            "case 14: init before the sidecar",
            "app cpu=6 memory=2Gi\n init cpu=10 memory=4Gi\n sidecar cpu=4.9 memory=2.9Gi",
            "cpu=10900m memory=5261334937600m pods=1",
        ),
        (
            "case 15: sidecar first, containers need most",
            "sidecar cpu=4.9 memory=2.9Gi\n init cpu=5 memory=1Gi\n app cpu=6 memory=2Gi",
            "cpu=10900m memory=5261334937600m pods=1",
        ),
        (
            "case 16: sidecar first, init needs most",
            "sidecar cpu=4.9 memory=2.9Gi\n init cpu=6 memory=2Gi\n app cpu=5 memory=1Gi",
            "cpu=10900m memory=5261334937600m pods=1",
        ),
        ("a large init container alone", "app cpu=1\n init cpu=3\n init cpu=2", "cpu=3 pods=1"),
        (
            "case 17: the pod as a whole",
            "app cpu=1 memory=1Gi example.com/x=1\n init cpu=20\n pod cpu=9.9 memory=3.9Gi example.com/x=7",
            "cpu=9900m example.com/x=1 memory=4187593113600m pods=1",
        ),
        ("hugepages as a whole", "app cpu=1\n pod hugepages-2Mi=4Mi", "cpu=1 hugepages-2Mi=4Mi pods=1"),
        (
            "case 18: overhead on top of all",
            "app cpu=1\n pod cpu=2\n overhead cpu=250m memory=64Mi",
            "cpu=2250m memory=64Mi pods=1",
        ),
        ("case 19: nothing of an unknown resource", "app cpu=1 example.com/x=0", "cpu=1 example.com/x=0 pods=1"),
        ("pods cannot be asked for", "app pods=5", "pods=1"),
    ] {
        assert_eq!(pod_of(spec(containers), json!({})).requests.to_string(), expected, "{case}");
    }
}

/// Sheet 02 §5 and case 20.
#[test]
fn a_pod_that_is_resized_needs_what_it_has_and_what_it_wants() {
    let infeasible = json!([{"type": "PodResizePending", "status": "True", "reason": "Infeasible"}]);
    let deferred = json!([{"type": "PodResizePending", "status": "True", "reason": "Deferred"}]);
    let none = json!([]);
    for (case, wanted, allocated, actual, conditions, expected) in [
        ("case 20: down in progress", "2", "6", "6", &none, "cpu=6 pods=1"),
        ("case 20: infeasible", "6", "2", "2", &infeasible, "cpu=2 pods=1"),
        ("deferred", "6", "2", "2", &deferred, "cpu=6 pods=1"),
        ("actuated last", "2", "2", "3", &none, "cpu=3 pods=1"),
        ("infeasible while another is actuated", "9", "2", "3", &infeasible, "cpu=3 pods=1"),
    ] {
        for (role, list) in [("app", "containerStatuses"), ("sidecar", "initContainerStatuses")] {
            let statuses = json!([{
                "name": "c0", "allocatedResources": {"cpu": allocated}, "resources": {"requests": {"cpu": actual}},
            }]);
            let pod = pod_of(spec(&format!("{role} cpu={wanted}")), json!({"conditions": conditions, list: statuses}));
            assert_eq!(pod.requests.to_string(), expected, "{case}, {role}");
        }
    }
    for (conditions, expected) in [(&none, "cpu=9 pods=1"), (&infeasible, "cpu=5 pods=1")] {
        let held = json!({"allocatedResources": {"cpu": "5"}, "resources": {"requests": {"cpu": "4"}}});
        let mut status = json!({"conditions": conditions});
        status.as_object_mut().unwrap().extend(held.as_object().unwrap().clone());
        assert_eq!(pod_of(spec("app cpu=1\n pod cpu=9"), status).requests.to_string(), expected, "as a whole");
    }
    let started = json!({"containerStatuses": [{"name": "c0"}], "conditions": infeasible});
    assert_eq!(pod_of(spec("app cpu=6"), started).requests.to_string(), "cpu=6 pods=1", "nothing reported yet");
}

/// Sheet 02 §6.
#[test]
fn host_ports_conflict_by_address_protocol_and_port() {
    let ports = |ports: Value| {
        let spec = json!({"containers": [{"name": "c", "ports": ports}]});
        pod_of(spec, json!({})).constraints.host_ports.clone()
    };
    let port = |ip: &str, protocol: &str, port: u16| json!([{"containerPort": 1, "hostPort": port, "hostIP": ip, "protocol": protocol}]);
    for (left, right, conflict) in [
        (port("", "TCP", 80), port("", "TCP", 80), true),
        (port("", "TCP", 80), port("", "", 80), true),
        (port("", "TCP", 80), port("", "UDP", 80), false),
        (port("", "TCP", 80), port("", "TCP", 81), false),
        (port("10.0.0.1", "TCP", 80), port("10.0.0.2", "TCP", 80), false),
        (port("10.0.0.1", "TCP", 80), port("0.0.0.0", "TCP", 80), true),
        (port("10.0.0.1", "TCP", 80), port("::", "TCP", 80), true),
    ] {
        let (left, right) = (ports(left), ports(right));
        let found = left.iter().any(|left| right.iter().any(|right| left.conflicts_with(right)));
        assert_eq!(found, conflict, "{left:?} {right:?}");
    }
    assert!(ports(json!([{"containerPort": 80}])).is_empty());
    let with_init = |policy: Value| {
        let init = json!([{"name": "i", "restartPolicy": policy, "ports": [{"hostPort": 90}]}]);
        pod_of(json!({"containers": [], "initContainers": init}), json!({})).constraints.host_ports.len()
    };
    assert_eq!((with_init(json!(null)), with_init(json!("Always"))), (0, 1));
}

#[test]
fn tolerations_keep_their_operators() {
    let taint: Taint = "team=5:NoSchedule".parse().unwrap();
    for (toleration, expected) in [
        (json!({"operator": "Exists"}), true),
        (json!({"key": "team", "value": "5"}), true),
        (json!({"key": "team", "operator": "Equal", "value": "6"}), false),
        (json!({"key": "team", "operator": "Exists", "effect": "NoSchedule"}), true),
        (json!({"key": "team", "operator": "Exists", "effect": "NoExecute"}), false),
        (json!({"key": "team", "operator": "Lt", "value": "6"}), true),
        (json!({"key": "team", "operator": "Gt", "value": "6"}), false),
        (json!({"key": "team", "operator": "Like", "value": "5"}), false),
    ] {
        let pod = pod_of(json!({"tolerations": [toleration]}), json!({}));
        let tolerated = tolerates(std::slice::from_ref(&taint), &pod.constraints.tolerations).is_ok();
        assert_eq!(tolerated, expected, "{toleration}");
    }
}

/// Sheet 02, case 57, and the defaults of the policies.
#[test]
fn a_spread_constraint_counts_pods_of_its_own_revision() {
    let spread = |extra: Value| {
        let mut constraint = json!({
            "maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"app": "web"}},
        });
        constraint.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        pod_of(json!({"topologySpreadConstraints": [constraint]}), json!({})).constraints.spread[0].clone()
    };
    let plain = spread(json!({}));
    assert_eq!((plain.honors_node_affinity, plain.honors_node_taints, plain.min_domains), (true, false, None));
    assert_eq!(plain.when_unsatisfiable, WhenUnsatisfiable::DoNotSchedule);
    let labels = |hash: &str| {
        BTreeMap::from([("app".to_owned(), "web".to_owned()), ("pod-template-hash".to_owned(), hash.to_owned())])
    };
    assert!(plain.selector.as_ref().unwrap().matches(&labels("other")));

    let by_revision = spread(json!({"matchLabelKeys": ["pod-template-hash", "unknown"]}));
    let selector = by_revision.selector.as_ref().unwrap();
    assert!(selector.matches(&labels("7f9")) && !selector.matches(&labels("other")));
    // Newer API servers have written the same into the selector already.
    let folded = json!({
        "matchLabels": {"app": "web"},
        "matchExpressions": [{"key": "pod-template-hash", "operator": "In", "values": ["7f9"]}],
    });
    assert_eq!(spread(json!({"matchLabelKeys": ["pod-template-hash"], "labelSelector": folded})), by_revision);

    let set = spread(json!({"nodeAffinityPolicy": "Ignore", "nodeTaintsPolicy": "Honor", "minDomains": 3}));
    assert_eq!((set.honors_node_affinity, set.honors_node_taints, set.min_domains), (false, true, Some(3)));
    assert_eq!(spread(json!({"labelSelector": null})).selector, None);
}

#[test]
fn affinities_keep_their_terms_namespaces_and_weights() {
    let term = json!({
        "topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "db"}}, "mismatchLabelKeys": ["app"],
        "namespaces": ["a", "b"], "namespaceSelector": {},
    });
    let zone = json!({"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]});
    let pinned = json!({"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["node-1"]}]});
    let affinity = json!({
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [zone, {}, pinned]},
            "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 9, "preference": zone}],
        },
        "podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]},
        "podAntiAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 5, "podAffinityTerm": term}],
        },
    });
    let pod = pod_of(json!({"affinity": affinity, "nodeSelector": {"b": "2", "a": "1"}}), json!({}));
    let constraints = &pod.constraints;
    assert_eq!(constraints.node_selector[0].0.as_ref(), "a");
    let keys: Vec<Vec<&str>> =
        constraints.required_node_terms.iter().map(|term| term.iter().map(|e| &*e.key).collect()).collect();
    assert_eq!(keys, [vec!["zone"], vec!["field:metadata.name"]]);
    assert_eq!(constraints.preferred_node_terms[0].weight, 9);
    let affinity = &constraints.required_affinity[0];
    assert_eq!((affinity.namespaces.len(), affinity.namespace_selector.is_some()), (2, true));
    let db = |value: &str| BTreeMap::from([("app".to_owned(), value.to_owned())]);
    // `mismatchLabelKeys` excludes the pod's own value.
    assert!(affinity.selector.as_ref().unwrap().matches(&db("db")));
    assert_eq!(constraints.preferred_anti_affinity[0].term, *affinity);
    assert_eq!(constraints.preferred_anti_affinity[0].weight, 5);

    let nothing = json!({"nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{}]},
    }});
    assert_eq!(pod_of(json!({"affinity": nothing}), json!({})).constraints.required_node_terms.len(), 1);
}

/// Sheet 02 §2 and §7, sheet 03 §15.3.
#[test]
fn a_pod_keeps_what_decides_about_its_place_and_its_end() {
    let pod = pod_of(
        json!({
            "volumes": [
                {"name": "data", "persistentVolumeClaim": {"claimName": "data-0"}},
                {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {}}},
                {"name": "config", "configMap": {"name": "x"}},
            ],
            "priority": 7, "priorityClassName": "high", "terminationGracePeriodSeconds": 30, "nodeName": "",
            "resourceClaims": [{"name": "gpu"}],
        }),
        json!({
            "phase": "Pending", "nominatedNodeName": "",
            "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}],
        }),
    );
    let claims: Vec<&str> = pod.volumes.iter().map(|volume| &*volume.claim).collect();
    assert_eq!(claims, ["data-0", "web-1-scratch"]);
    assert_eq!((pod.priority, pod.priority_class.as_deref(), pod.phase), (7, Some("high"), PodPhase::Pending));
    assert_eq!(pod.termination_grace, Some(SignedDuration::from_secs(30)));
    assert!(pod.uses_resource_claims && pod.is_provisionable());
    let gated = json!({"conditions": [{"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}]});
    assert!(!pod_of(json!({}), gated).unschedulable);

    let protection = |annotations: Value| {
        let metadata = json!({"name": "p", "annotations": annotations});
        parse(json!({"metadata": metadata, "spec": {}})).unwrap().value.do_not_disrupt
    };
    assert_eq!(protection(json!({})), DoNotDisrupt::No);
    assert_eq!(protection(json!({"karpenter.sh/do-not-disrupt": "true"})), DoNotDisrupt::Always);
    assert_eq!(protection(json!({"karpenter.sh/do-not-evict": "true"})), DoNotDisrupt::Always);
    assert_eq!(protection(json!({"karpenter.sh/do-not-evict": "false"})), DoNotDisrupt::No);
    let both = json!({"karpenter.sh/do-not-evict": "true", "karpenter.sh/do-not-disrupt": "1h"});
    assert_eq!(protection(both), DoNotDisrupt::Always);
    let hour = protection(json!({"karpenter.sh/do-not-disrupt": "1h"}));
    assert_eq!(hour, DoNotDisrupt::For("1h".parse().unwrap()));
    assert_eq!(protection(json!({"karpenter.sh/do-not-disrupt": "no"})), DoNotDisrupt::Invalid(Arc::from("no")));
}

#[test]
fn only_annotations_that_decisions_read_are_kept() {
    let annotations = json!({
        "karpenter.sh/disruption-cost": "5", "controller.kubernetes.io/pod-deletion-cost": "1",
        "k8s.ovn.org/pod-networks": "{}",
    });
    let pod = parse(json!({"metadata": {"name": "p", "annotations": annotations}, "spec": {}})).unwrap().value;
    assert_eq!(pod.meta.annotations.len(), 2);
}

#[test]
fn pods_of_one_workload_share_their_constraints() {
    let mut shapes = Shapes::default();
    let mut parse = |name: &str, arch: &str| {
        let value = json!({
            "metadata": {"name": name, "labels": {"app": "web"}},
            "spec": {"nodeSelector": {"kubernetes.io/arch": arch}},
        });
        pod(&serde_json::from_value(value).unwrap(), &mut shapes).unwrap().value
    };
    let (first, second, other) = (parse("a", "arm64"), parse("b", "arm64"), parse("c", "amd64"));
    assert!(Arc::ptr_eq(&first.constraints, &second.constraints));
    assert!(!Arc::ptr_eq(&first.constraints, &other.constraints));
    let label = |pod: &Pod| pod.meta.labels["app"].clone();
    assert!(Arc::ptr_eq(&label(&first), &label(&other)));
}

#[test]
fn what_cannot_be_read_is_named() {
    for (spec, problem) in [
        (
            json!({"containers": [{"name": "c", "resources": {"requests": {"cpu": "x"}}}]}),
            "spec.containers[0].resources.requests[cpu]: ",
        ),
        (
            json!({"initContainers": [{"name": "c", "resources": {"requests": {"cpu": ""}}}]}),
            "spec.initContainers[0].resources.requests[cpu]: ",
        ),
        (
            json!({"containers": [
                {"name": "a", "resources": {"requests": {"cpu": "1e29"}}}, {"name": "b", "resources": {"requests": {"cpu": "1e29"}}},
            ]}),
            "spec: the amount of cpu is too large",
        ),
        (
            json!({"topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "z", "whenUnsatisfiable": "Maybe"}]}),
            "spec.topologySpreadConstraints[0].whenUnsatisfiable: \"Maybe\" is not known here",
        ),
        (
            json!({"containers": [{"name": "c", "ports": [{"hostPort": 70000}]}]}),
            "spec.containers[].ports[].hostPort: 70000 is out of range",
        ),
    ] {
        let error = parse(json!({"metadata": {"name": "p", "namespace": "n"}, "spec": spec})).unwrap_err().to_string();
        let expected = format!("Pod n/p is not usable: {problem}");
        assert!(error.starts_with(&expected), "{error}");
    }
}
