//! From a claim to its Node, and its end.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use kerf_cloud::{Catalogue, Order, Provider, contract};
use kerf_cloud_kwok::{INTERRUPTION, KwokClass, KwokProvider, NodeApi, node};
use kerf_model::cloud::{InterruptionCause, LaunchError, Launched, TerminateAnswer};
use kerf_model::cluster::{ClassReadiness, Condition, ConditionStatus, NodeClaim, OfferingName, condition_kind};
use kerf_model::label::{CAPACITY_TYPE, HOSTNAME, INSTANCE_TYPE, LabelRules, TERMINATION_FINALIZER, ZONE};
use kerf_model::requirement::{Requirement, Requirements};
use serde_json::json;

use crate::support::{Memory, class, class_ref, now_or_never};

const TYPE: &str = "c-1x-amd64-linux";

struct Bench {
    nodes: Memory,
    provider: KwokProvider<Memory>,
    class: KwokClass,
}

impl Bench {
    fn new(delay_secs: i64) -> Self {
        let nodes = Memory::default();
        let provider = KwokProvider::new(nodes.clone(), Catalogue::kwok());
        Self { nodes, provider, class: class(delay_secs) }
    }

    fn launch(&self, claim: &NodeClaim) -> Result<Launched, LaunchError> {
        now_or_never(self.provider.launch(Order { claim, class: Some(&self.class) }))
    }

    /// Launches the claim at second 0, and writes that down as the engine would.
    fn launched(&self, mut claim: NodeClaim) -> NodeClaim {
        let launched = self.launch(&claim).unwrap();
        for (key, value) in launched.labels {
            claim.meta.labels.entry(key).or_insert(value);
        }
        claim.status.provider_id = Some(launched.provider_id);
        set(&mut claim, condition_kind::LAUNCHED);
        claim
    }

    fn tend(&self, claim: &NodeClaim, second: i64) -> Result<Option<i64>, String> {
        let next = now_or_never(self.provider.tend(Order { claim, class: Some(&self.class) }, at(second)));
        let reason = |error: kerf_cloud::CloudError| format!("{error}: {}", error.source);
        next.map(|next| next.map(Timestamp::as_second)).map_err(reason)
    }

    fn terminate(&self, claim: &NodeClaim) -> TerminateAnswer {
        now_or_never(self.provider.terminate(claim.status.provider_id.as_ref().unwrap()))
    }

    fn exists(&self, claim: &NodeClaim) -> bool {
        now_or_never(self.provider.find(claim.status.provider_id.as_ref().unwrap())).unwrap()
    }

    fn listed(&self) -> Vec<String> {
        let instances = now_or_never(self.provider.list()).unwrap();
        let end = |terminating| if terminating { " terminating" } else { "" };
        instances.iter().map(|one| format!("{}{}", one.provider_id, end(one.is_terminating))).collect()
    }
}

fn at(second: i64) -> Timestamp {
    Timestamp::UNIX_EPOCH + SignedDuration::from_secs(second)
}

fn set(claim: &mut NodeClaim, condition: &str) {
    claim.status.conditions.0.push(Condition {
        kind: condition.into(),
        status: ConditionStatus::True,
        reason: condition.into(),
        message: Arc::from(""),
        since: at(0),
        observed_generation: 1,
    });
}

fn claim(name: &str, wanted: &[(&str, &[&str])]) -> NodeClaim {
    let mut requirements = Requirements::new();
    for (key, values) in wanted {
        requirements.add(Requirement::one_of(*key, *values), &LabelRules::core());
    }
    contract::claim(name, &class_ref(), requirements)
}

fn on_demand(name: &str) -> NodeClaim {
    claim(name, &[(INSTANCE_TYPE, &[TYPE]), (CAPACITY_TYPE, &["on-demand"]), (ZONE, &["test-zone-b"])])
}

/// Sheet 04 §13 and case 69, with the type's real capacity and an owner from the start.
#[test]
fn a_node_looks_as_the_simulator_and_karpenter_expect() {
    let bench = Bench::new(0);
    let mut wanted = on_demand("default-x7k2p");
    wanted.meta.labels.insert(Arc::from("karpenter.sh/nodepool"), Arc::from("default"));
    wanted.meta.annotations.insert(Arc::from("karpenter.sh/nodepool-hash"), Arc::from("1"));
    let claim = bench.launched(wanted);
    assert_eq!(bench.tend(&claim, 0), Ok(None));
    let name = &bench.nodes.names()[0];
    let expected = json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {
                "eks-node-viewer/instance-price": "0.027147",
                "karpenter.kwok.sh/instance-cpu": "1",
                "karpenter.kwok.sh/instance-family": "c",
                "karpenter.kwok.sh/instance-memory": "2Gi",
                "karpenter.kwok.sh/instance-size": "1",
                "karpenter.kwok.sh/kwoknodeclass": "default",
                "karpenter.sh/capacity-type": "on-demand",
                "karpenter.sh/nodepool": "default",
                "kubernetes.io/arch": "amd64",
                "kubernetes.io/hostname": "default-x7k2p",
                "kubernetes.io/os": "linux",
                "kwok-partition": "a",
                "kwok.x-k8s.io/node": "fake",
                "node.kubernetes.io/instance-type": TYPE,
                "topology.kubernetes.io/zone": "test-zone-b",
            },
            "annotations": {"karpenter.sh/nodepool-hash": "1", "kwok.x-k8s.io/node": "fake"},
            "ownerReferences": [{
                "apiVersion": "karpenter.sh/v1",
                "kind": "NodeClaim",
                "name": "default-x7k2p",
                "uid": "uid-of-default-x7k2p",
                "blockOwnerDeletion": true,
            }],
        },
        "spec": {
            "providerID": format!("kwok://{name}"),
            "taints": [{"key": "karpenter.sh/unregistered", "effect": "NoExecute"}],
        },
        "status": {
            "capacity": {"cpu": "1", "ephemeral-storage": "20Gi", "memory": "2Gi", "pods": "16"},
            "allocatable": {"cpu": "900m", "ephemeral-storage": "20Gi", "memory": "2038Mi", "pods": "16"},
            "phase": "Pending",
        },
    });
    assert_eq!(bench.nodes.posted(name), Some(expected));
}

/// Its host name was the claim's, which a label could not hold: the claim was refused until its launch timed out, and so was
/// the next one.
#[test]
fn a_pool_with_a_long_name_gets_nodes() {
    let bench = Bench::new(0);
    // Cut off where a label may not end.
    let pool = format!("{}-abcdef", "x".repeat(53));
    let hostnames: BTreeSet<_> = ["bcdfgh", "bcdfgj"]
        .map(|suffix| {
            let mut wanted = on_demand(&format!("{pool}-{suffix}"));
            wanted.meta.labels.insert(Arc::from("karpenter.sh/nodepool"), Arc::from(&*pool));
            let claim = bench.launched(wanted);
            assert_eq!(bench.tend(&claim, 0), Ok(None));
            let name = node::name_in(claim.status.provider_id.as_deref().unwrap()).unwrap().to_owned();
            assert!(name.len() <= 253 && name.contains(claim.name().as_ref()), "{name}");
            let posted = bench.nodes.posted(&name).unwrap();
            let posted: BTreeMap<String, String> =
                serde_json::from_value(posted["metadata"]["labels"].clone()).unwrap();
            let of_claim = claim.meta.labels.iter().map(|(key, value)| (key.to_string(), value.to_string()));
            for (key, value) in posted.clone().into_iter().chain(of_claim) {
                assert!(is_label_value(&value), "{key}: {value}");
            }
            posted[HOSTNAME].clone()
        })
        .into();
    assert_eq!(hostnames.len(), 2, "{hostnames:?}");
}

fn is_label_value(text: &str) -> bool {
    let is_end = |letter: Option<char>| letter.is_none_or(|letter| letter.is_ascii_alphanumeric());
    let is_middle = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
    text.len() <= 63 && is_end(text.chars().next()) && is_end(text.chars().last()) && text.chars().all(is_middle)
}

/// Sheet 04, case 69.
#[test]
fn a_launch_tells_what_the_node_will_be() {
    let bench = Bench::new(0);
    let spot = bench.launch(&claim("a", &[(INSTANCE_TYPE, &[TYPE])])).unwrap();
    assert_eq!(&*spot.labels[node::PRICE_LABEL], "0.019003");
    assert_eq!(&*spot.labels[HOSTNAME], "a");
    assert_eq!(spot.capacity.to_string(), "cpu=1 ephemeral-storage=20Gi memory=2Gi pods=16");
    assert_eq!(spot.allocatable.to_string(), "cpu=900m ephemeral-storage=20Gi memory=2038Mi pods=16");
    assert_eq!(spot.image_id, None);
    assert_eq!(bench.nodes.names(), Vec::<String>::new(), "a launch writes nothing");
}

/// Sheet 04, case 70.
#[test]
fn of_two_architectures_at_one_price_the_first_is_launched() {
    let launched = Bench::new(0).launch(&claim("a", &[(INSTANCE_TYPE, &["c-16x-arm64-linux", "c-16x-amd64-linux"])]));
    let labels = launched.unwrap().labels;
    assert_eq!(&*labels[INSTANCE_TYPE], "c-16x-amd64-linux");
    assert!(labels[ZONE].starts_with("test-zone-"));
}

#[test]
fn a_claim_has_one_node_however_often_it_is_looked_after() {
    let bench = Bench::new(0);
    let claim = bench.launched(on_demand("a"));
    for second in 0..3 {
        assert_eq!(bench.tend(&claim, second), Ok(None));
    }
    let restarted = KwokProvider::new(bench.nodes.clone(), Catalogue::kwok());
    let order = Order { claim: &claim, class: Some(&bench.class) };
    assert!(now_or_never(restarted.tend(order, at(9))).is_ok());
    assert_eq!(now_or_never(restarted.launch(order)).unwrap().provider_id, claim.status.provider_id.unwrap());
    assert_eq!((bench.nodes.names().len(), bench.nodes.posts()), (1, 1));
}

#[test]
fn another_claim_of_the_same_name_gets_another_node() {
    let (bench, first) = (Bench::new(0), on_demand("a"));
    let mut second = first.clone();
    second.meta.uid = Arc::from("another");
    assert_ne!(bench.launch(&first).unwrap().provider_id, bench.launch(&second).unwrap().provider_id);
}

/// Sheet 04, case 71: upstream leaks the node.
#[test]
fn a_claim_deleted_during_the_delay_never_gets_a_node() {
    let bench = Bench::new(30);
    let mut claim = bench.launched(on_demand("a"));
    assert_eq!(bench.tend(&claim, 0), Ok(Some(30)));
    claim.meta.deleting = Some(at(10));
    assert_eq!(bench.tend(&claim, 10), Ok(None));
    assert_eq!(bench.terminate(&claim), TerminateAnswer::Gone);
    assert_eq!(bench.tend(&claim, 30), Ok(None));
    assert_eq!(bench.nodes.posts(), 0);
}

#[test]
fn a_node_joins_when_the_delay_has_passed_and_not_before() {
    let bench = Bench::new(30);
    let claim = bench.launched(on_demand("a"));
    assert_eq!(bench.tend(&claim, 29), Ok(Some(30)));
    assert_eq!(bench.nodes.posts(), 0);
    assert_eq!(bench.tend(&claim, 30), Ok(None));
    assert_eq!(bench.nodes.posts(), 1);
}

#[test]
fn a_claim_not_yet_launched_gets_no_node() {
    let bench = Bench::new(0);
    let mut claim = on_demand("a");
    assert_eq!(bench.tend(&claim, 0), Ok(None));
    claim.status.provider_id = Some(bench.launch(&claim).unwrap().provider_id);
    assert_eq!(bench.tend(&claim, 0), Ok(None), "not written down as launched");
    assert_eq!(bench.nodes.posts(), 0);
}

/// Sheet 04, case 71: the claim's own timeout ends this.
#[test]
fn a_refused_post_is_reported_and_tried_again() {
    let bench = Bench::new(0);
    let claim = bench.launched(on_demand("a"));
    bench.nodes.refuse_posts(true);
    for second in [0, 60] {
        let error = bench.tend(&claim, second).unwrap_err();
        assert_eq!(error, "cannot post the node of a claim: the API did not take the node");
    }
    bench.nodes.refuse_posts(false);
    assert_eq!(bench.tend(&claim, 61), Ok(None));
    assert_eq!(bench.nodes.posts(), 1);
}

#[test]
fn a_name_that_another_node_has_is_reported() {
    let bench = Bench::new(0);
    let claim = bench.launched(on_demand("a"));
    bench.tend(&claim, 0).unwrap();
    let name = bench.nodes.names().remove(0);
    bench.nodes.change(&name, |node| node.provider_id = Some(Arc::from("kwok://other")));
    let error = bench.tend(&claim, 0).unwrap_err();
    assert_eq!(error, format!("cannot post the node of a claim: another node has the name {name}"));
    assert_eq!(bench.terminate(&claim), TerminateAnswer::Gone, "the other node is not ours to end");
    assert_eq!(bench.nodes.names(), [name]);
}

/// One that has joined and is deleted by hand belongs to the drain; one that has not is like a kubelet that registers anew.
#[test]
fn a_node_that_vanishes_before_it_has_joined_comes_back() {
    let bench = Bench::new(0);
    let mut claim = bench.launched(on_demand("a"));
    bench.tend(&claim, 0).unwrap();
    assert_eq!(bench.terminate(&claim), TerminateAnswer::Accepted);
    bench.tend(&claim, 1).unwrap();
    assert_eq!(bench.nodes.posts(), 2);
    set(&mut claim, condition_kind::REGISTERED);
    assert_eq!(bench.terminate(&claim), TerminateAnswer::Accepted);
    bench.tend(&claim, 2).unwrap();
    assert_eq!(bench.nodes.posts(), 2);
}

/// Karpenter gave it a random name; Kerf takes over in the middle of the delay.
#[test]
fn a_claim_launched_by_karpenter_gets_the_node_it_was_promised() {
    let bench = Bench::new(0);
    let mut claim = bench.launched(on_demand("a"));
    claim.status.provider_id = Some(Arc::from("kwok://kwok-a-nifty-swan-42"));
    bench.tend(&claim, 0).unwrap();
    assert_eq!(bench.nodes.names(), ["kwok-a-nifty-swan-42"]);
    assert!(bench.exists(&claim));
}

/// Sheet 04, case 72.
#[test]
fn without_a_usable_class_nothing_is_launched() {
    let mut bench = Bench::new(0);
    let missing = now_or_never(bench.provider.launch(Order { claim: &on_demand("a"), class: None }));
    assert!(matches!(missing, Err(LaunchError::InsufficientCapacity { .. })));
    bench.class.common.readiness =
        ClassReadiness::NotReady { reason: Arc::from("Broken"), message: Arc::from("broken on purpose") };
    assert_eq!(
        bench.launch(&on_demand("a")),
        Err(LaunchError::ClassNotReady { message: Arc::from("broken on purpose") })
    );
    bench.class.common.readiness = ClassReadiness::Unknown;
    assert!(bench.launch(&on_demand("a")).is_ok());
}

/// The finalizer is the drain's: it waits for this answer, so the answer cannot wait for it.
#[test]
fn a_node_held_by_a_finalizer_is_gone_once_its_deletion_has_begun() {
    let bench = Bench::new(0);
    let claim = bench.launched(on_demand("a"));
    bench.tend(&claim, 0).unwrap();
    let name = bench.nodes.names().remove(0);
    let id = format!("kwok://{name}");
    bench.nodes.change(&name, |node| node.meta.finalizers.push(Arc::from(TERMINATION_FINALIZER)));
    assert_eq!(bench.listed(), std::slice::from_ref(&id));

    assert_eq!(bench.terminate(&claim), TerminateAnswer::Accepted);
    assert_eq!(bench.terminate(&claim), TerminateAnswer::Gone);
    assert_eq!(bench.listed(), [format!("{id} terminating")]);
    assert!(bench.exists(&claim), "it is drained first");

    bench.nodes.change(&name, |node| node.meta.finalizers.clear());
    assert_eq!(bench.listed(), Vec::<String>::new());
    assert!(!bench.exists(&claim));
    assert_eq!(bench.terminate(&claim), TerminateAnswer::Gone);
}

#[test]
fn nodes_of_others_are_neither_listed_nor_ended() {
    let bench = Bench::new(0);
    let claim = bench.launched(on_demand("a"));
    bench.tend(&claim, 0).unwrap();
    let name = bench.nodes.names().remove(0);
    bench.nodes.change(&name, |node| drop(node.meta.labels.remove("karpenter.kwok.sh/kwoknodeclass")));
    assert_eq!(bench.listed(), Vec::<String>::new());
    // A claim whose id was overwritten could not go: its instance was asked for without end.
    let foreign = "aws:///us-east-1a/i-0123";
    assert_eq!(now_or_never(bench.provider.terminate(foreign)), TerminateAnswer::Gone);
    assert!(!now_or_never(bench.provider.find(foreign)).unwrap());
}

/// Sheet 04 §13.
#[test]
fn the_domain_is_reserved_but_for_what_the_types_define() {
    let rules = Bench::new(0).provider.label_rules().clone();
    for name in ["size", "family", "cpu", "memory"] {
        assert!(rules.check_unrestricted(&format!("karpenter.kwok.sh/instance-{name}")).is_ok(), "{name}");
    }
    assert!(rules.check_unrestricted("karpenter.kwok.sh/kwoknodeclass").is_err());
    assert!(rules.check_unrestricted("karpenter.kwok.sh/team").is_err());
    let rack = r#"[{"name": "r", "architecture": "amd64", "operatingSystems": ["linux"],
        "resources": {"cpu": 1, "memory": "1Gi"}, "offerings": [{"price": 1, "zone": "z", "capacityType": "spot",
        "requirements": [{"key": "karpenter.kwok.sh/rack", "operator": "In", "values": ["7"]}]}]}]"#;
    let provider = KwokProvider::new(Memory::default(), Catalogue::from_json(rack).unwrap());
    assert!(provider.label_rules().check_unrestricted("karpenter.kwok.sh/rack").is_ok());
}

/// Sheet 08 L7.
#[test]
fn sick_nodes_are_repaired_as_karpenter_does() {
    let shown: Vec<_> = Bench::new(0)
        .provider
        .repair_policies()
        .iter()
        .map(|policy| {
            let reason = policy.reason.as_deref().unwrap_or("-");
            let grace = policy.termination_grace_period.unwrap().as_secs();
            let toleration = policy.toleration.as_secs();
            format!("{} {} {reason} {toleration} {grace} {:?}", policy.condition, policy.status, policy.action)
        })
        .collect();
    let expected = [
        "Ready False - 600 0 ReplaceNode",
        "Ready Unknown .* 600 0 ReplaceNode",
        "KWOKUnhealthy True .* 30 45 ReplaceNode",
        "KWOKRebootRequired True .* 30 60 RebootNode",
    ];
    assert_eq!(shown, expected);
}

/// Sheet 08 L7: a reboot shows as another boot id, and the same order makes the same one.
#[test]
fn a_reboot_gives_the_node_the_boot_id_of_its_operation() {
    let bench = Bench::new(0);
    let running = bench.launched(on_demand("a"));
    bench.tend(&running, 0).unwrap();
    let id = running.status.provider_id.clone().unwrap();
    let boot_id = || {
        let node = now_or_never(bench.nodes.get(node::name_in(&id).unwrap())).unwrap().unwrap();
        node.boot_id.map(|id| id.to_string())
    };
    let before = boot_id();
    for (operation, expected) in [("uid-1-x", "kwok-uid-1-x"), ("uid-1-x", "kwok-uid-1-x"), ("uid-2-y", "kwok-uid-2-y")]
    {
        now_or_never(bench.provider.reboot(&id, operation)).unwrap();
        assert_eq!(boot_id().as_deref(), Some(expected));
        assert_ne!(boot_id(), before);
    }
    assert!(now_or_never(bench.provider.reboot("kwok://nobody", "uid-1-x")).is_err());
}

/// Who wants to see an interruption labels the Node; it is told as long as the label is there, and launches go elsewhere.
#[test]
fn a_labelled_node_is_interrupted_and_what_is_to_be_avoided_is_not_launched() {
    let bench = Bench::new(0);
    let running = bench.launched(on_demand("a"));
    bench.tend(&running, 0).unwrap();
    let announced = || now_or_never(bench.provider.interruptions()).unwrap();
    assert!(announced().is_empty());
    let name = node::name_in(running.status.provider_id.as_ref().unwrap()).unwrap().to_owned();
    let label = |value: &str| {
        let value: Arc<str> = Arc::from(value);
        bench.nodes.change(&name, |node| drop(node.meta.labels.insert(Arc::from(INTERRUPTION), value)));
    };
    label("spot_interrupted");
    let told = announced();
    assert_eq!((told.len(), told[0].cause), (1, InterruptionCause::SpotReclaimed));
    assert_eq!(Some(&told[0].provider_id), running.status.provider_id.as_ref());
    assert_eq!(announced(), told, "until the label goes");
    label("nonsense");
    assert!(announced().is_empty());

    let zone = |launched: &Launched| launched.labels[ZONE].clone();
    let anywhere = claim("b", &[(INSTANCE_TYPE, &[TYPE]), (CAPACITY_TYPE, &["spot"])]);
    let first = bench.launch(&anywhere).unwrap();
    let avoided = OfferingName {
        instance_type: first.labels[INSTANCE_TYPE].clone(),
        zone: zone(&first),
        capacity_type: first.labels[CAPACITY_TYPE].clone(),
    };
    bench.provider.avoid(vec![avoided]);
    assert_ne!(zone(&bench.launch(&anywhere).unwrap()), zone(&first));
    bench.provider.avoid(Vec::new());
    assert_eq!(zone(&bench.launch(&anywhere).unwrap()), zone(&first));
}
