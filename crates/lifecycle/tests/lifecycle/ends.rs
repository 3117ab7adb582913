//! Claims and nodes on their way out: sheet 04, cases 30-37 and 49-54.

use kerf_model::change::Input;
use kerf_model::cloud::TerminateAnswer;
use kerf_model::cluster::condition_kind as kind;

use crate::world::{World, check, message};

const CLAIM: &str = "claim a id=i-1 deleting=12:00 launched registered initialized";
const NODE: &str = "node n id=i-1 registered initialized owner=a deleting=12:00 fenced";

fn ending(more: &str) -> World {
    World::new(&format!("{CLAIM}\n{NODE}\n{more}"))
}

/// Case 30.
#[test]
fn a_deleted_node_takes_its_claim_along_and_goes_step_by_step() {
    let mut world = World::new("claim a id=i-1 launched registered initialized");
    world.apply("node n id=i-1 registered initialized owner=a deleting=12:00");
    check(
        &world.node("n"),
        "delete claim a
         patch node n: node.kubernetes.io/exclude-from-external-load-balancers=karpenter \
         taints=[karpenter.sh/disrupted:NoSchedule]
         note a node_deleted",
    );
    world.apply(CLAIM).apply(NODE);
    check(
        &world.node("n"),
        "patch claim a: Drained=Unknown/Draining
         wake 12:00:05",
    );
    world.apply(&format!("now 12:00:04\n{CLAIM} cond.Drained=Unknown/Draining@12:00"));
    check(&world.node("n"), "wake 12:00:05");
    check(
        &world.apply("now 12:00:05").node("n"),
        "terminate i-1 of a
         patch claim a: Drained=True VolumesDetached=True
         wake 12:01:05",
    );
    world.apply(&format!("{CLAIM} cond.Drained=True@12:00:05 cond.VolumesDetached=True@12:00:05"));
    check(&world.node("n"), "wake 12:01:05");
    world.terminated("a", TerminateAnswer::Accepted);
    check(
        &world.node("n"),
        "patch claim a: InstanceTerminating=True
         wake 12:00:10",
    );
    check(world.apply("now 12:00:10").node("n").lines().next().unwrap(), "terminate i-1 of a");
    world.terminated("a", TerminateAnswer::Gone);
    check(
        &world.node("n"),
        "patch node n: finalizers=[]
         patch claim a: InstanceTerminating=True",
    );
    check(&world.apply("gone node n").claim("a"), "patch claim a: finalizers=[]");
}

#[test]
fn a_taint_of_the_same_key_and_another_effect_is_replaced() {
    let mut world =
        World::new("node n registered deleting=12:00 taint=karpenter.sh/disrupted=x:NoExecute taint=a:NoSchedule");
    let steps = world.node("n");
    assert!(steps.ends_with("taints=[a:NoSchedule karpenter.sh/disrupted:NoSchedule]"), "{steps}");
}

/// Case 31.
#[test]
fn a_node_that_no_claim_or_too_many_claims_own_drains_and_keeps_its_instance() {
    let mut world = World::new(&format!("{NODE}\npod w node=n"));
    check(
        &world.node("n"),
        "evict w
         wake 12:00:02",
    );
    check(&world.apply("gone pod w").node("n"), "patch node n: finalizers=[]");
    let mut world = World::new(&format!("{NODE}\n{CLAIM}\n{}", CLAIM.replace("claim a", "claim b")));
    check(&world.node("n"), "patch node n: finalizers=[]");
}

/// Case 32.
#[test]
fn a_node_of_another_controller_is_not_touched() {
    let mut world = World::new("node n bare id=i-1 deleting=12:00 label.karpenter.k8s.aws/ec2nodeclass=x");
    check(&world.node("n"), "");
    check(&World::new("node n registered").node("n"), "");
}

/// Case 33.
#[test]
fn a_deleted_claim_deletes_all_its_nodes_and_waits_for_them() {
    let mut world = World::new(
        "claim a id=i-1 deleting=12:00 launched registered
         node l id=i-1
         node m id=i-1 deleting=12:00
         node n id=i-1
         node other id=i-2",
    );
    check(
        &world.claim("a"),
        "delete node l
         delete node n",
    );
}

/// Case 34.
#[test]
fn a_claim_without_an_instance_just_goes() {
    let mut world = World::new("claim a deleting=12:00\nnode n");
    check(&world.claim("a"), "patch claim a: finalizers=[]");
}

#[test]
fn a_claim_deleted_during_its_launch_waits_for_the_answer_and_ends_the_instance() {
    let mut world = World::new("claim a created=12:00");
    world.claim("a");
    world.apply("claim a created=12:00 deleting=12:00");
    check(&world.claim("a"), "wake 12:02:00");
    world.launched("a", "i-1", &[]);
    check(
        &world.claim("a"),
        "terminate i-1 of a
         wake 12:01:00",
    );
    world.terminated("a", TerminateAnswer::Gone);
    check(&world.claim("a"), "patch claim a: finalizers=[]");
}

/// Case 35; the reference leaves the node (sheet 04, do better 13).
#[test]
fn an_unregistered_claim_takes_its_node_along() {
    let mut world = World::new("claim a id=i-1 deleting=12:00 launched\nnode n bare id=i-1");
    check(
        &world.claim("a"),
        "delete node n
         terminate i-1 of a
         wake 12:01:00",
    );
}

/// Case 36.
#[test]
fn the_end_of_an_instance_is_asked_for_until_it_is_gone() {
    let failed = || TerminateAnswer::Failed { message: "no".into() };
    let mut world = World::new("claim a id=i-1 deleting=12:00 launched registered");
    let asked = |steps: String| assert!(steps.starts_with("terminate i-1 of a\n"), "{steps}");
    asked(world.claim("a"));
    check(&world.terminated("a", failed()).claim("a"), "wake 12:00:01");
    asked(world.apply("now 12:00:01").claim("a"));
    check(&world.terminated("a", failed()).claim("a"), "wake 12:00:03");
    asked(world.apply("now 12:00:03").claim("a"));
    check(
        &world.terminated("a", TerminateAnswer::Accepted).claim("a"),
        "patch claim a: InstanceTerminating=True
         wake 12:00:08",
    );
    world.apply("now 12:00:08\nclaim a id=i-1 deleting=12:00 launched registered cond.InstanceTerminating=True");
    asked(world.claim("a"));
    check(&world.claim("a"), "wake 12:01:08");
    check(&world.terminated("a", TerminateAnswer::Gone).claim("a"), "patch claim a: finalizers=[]");
    asked(world.restart().claim("a"));
}

/// Case 37.
#[test]
fn a_node_whose_machine_is_gone_is_not_drained() {
    let mut world = ending("pod w node=n");
    world.apply(&format!("{NODE} not-ready"));
    check(
        &world.node("n"),
        "find i-1
         wake 12:00:10",
    );
    check(&world.node("n"), "wake 12:00:10");
    world.hear(Input::InstanceFound { provider_id: "i-1".into(), exists: true });
    assert!(world.node("n").contains("evict w"));
    check(world.apply("now 12:00:10").node("n").lines().next().unwrap(), "find i-1");
    world.hear(Input::InstanceFound { provider_id: "i-1".into(), exists: false });
    check(
        &world.node("n"),
        "patch node n: finalizers=[]
         wake 12:00:20",
    );
    world.apply(NODE);
    let steps = world.node("n");
    assert!(!steps.contains("finalizers=[]"), "a ready node is drained, whatever the cloud says: {steps}");
}

/// Case 51.
#[test]
fn volumes_are_waited_for_until_the_deadline() {
    let drained = format!("{CLAIM} cond.Drained=True@12:00");
    let mut world = World::new(&format!("{drained}\n{NODE}\nattachment va node=n volume=pv-1\nattachment vb node=n"));
    check(
        &world.node("n"),
        "event AwaitingVolumeDetachment on node n
         patch claim a: VolumesDetached=Unknown/AwaitingVolumeDetachment",
    );
    world.apply("pod d node=n daemon tolerates=all volume=data\npvc data volume=pv-1");
    assert!(world.node("n").contains("VolumesDetached=True"), "the volume of a pod that stays is not waited for");
    world.apply("gone pod d\ngone attachment va");
    assert!(world.node("n").contains("VolumesDetached=True"));
    world.apply(&format!("{drained} tgp=1m\nattachment va node=n volume=pv-1"));
    assert!(world.node("n").ends_with("wake 12:01:00"));
    assert!(world.apply("now 12:01").node("n").contains("VolumesDetached=False/TerminationGracePeriodElapsed"));
}

/// Case 52.
#[test]
fn the_deadline_is_written_once_and_never_moved() {
    let claim = "claim a id=i-1 deleting=12:00 launched registered";
    let world = |more: &str| World::new(&format!("{claim} {more}\nnode n id=i-1 deleting=12:00"));
    check(
        &world("tgp=5m").claim("a"),
        "event TerminationGracePeriodExpiring on claim a
         patch claim a: @karpenter.sh/nodeclaim-termination-timestamp=2026-11-16T12:05:00Z",
    );
    assert!(world("tgp=0s").claim("a").ends_with("timestamp=2026-11-16T12:00:00Z"));
    check(&world("").claim("a"), "");
    let preset = "tgp=5m annotation.karpenter.sh/nodeclaim-termination-timestamp=2024-04-01T12:00:00-05:00";
    check(&world(preset).claim("a"), "");
}

/// Sheet 04, do better 14.
#[test]
fn a_deadline_that_cannot_be_read_counts_as_not_written() {
    let claim = format!("{CLAIM} tgp=1m annotation.karpenter.sh/nodeclaim-termination-timestamp=soon");
    let mut world = World::new(&format!("now 12:00:45\n{claim}\n{NODE}\npod w node=n protect=true"));
    assert!(world.node("n").contains("delete pod w grace=15"));
}

/// Sheet 04, do better 17.
#[test]
fn the_condition_says_which_pods_block_and_what_happens_then() {
    let mut world = ending("pod v node=n protect=true\npod w node=n protect=2m started=11:59\npod x node=n");
    world.apply(&format!("{CLAIM} tgp=5m"));
    world.node("n");
    let budget = kerf_model::effect::WriteError::BudgetRefused { message: "needs 2 healthy".into() };
    world.eviction_failed("x", budget);
    let steps = world.node_steps("n");
    assert_eq!(
        message(&steps, kind::DRAINED),
        "pod default/v is protected by karpenter.sh/do-not-disrupt; \
         pod default/w is protected until 2026-11-16T12:01:00Z; \
         pod default/x is held by a PodDisruptionBudget: needs 2 healthy; \
         pods left at 2026-11-16T12:05:00Z are deleted"
    );
}

/// Case 53, as far as it is ours: the claims of a deleted pool are deleted by Kubernetes, through their owner.
#[test]
fn claims_of_a_pool_that_is_gone_stay_until_somebody_deletes_them() {
    let mut world = World::new(
        "claim a id=i-1 launched registered initialized cond.ConsistentStateFound=True pool=p orphan
         node n id=i-1 registered initialized pool=p",
    );
    check(&world.claim("a"), "");
}

/// Case 54.
#[test]
fn a_restart_in_the_middle_of_a_drain_changes_nothing() {
    let claim = format!("{CLAIM} tgp=5m annotation.karpenter.sh/nodeclaim-termination-timestamp=2026-11-16T12:05:00Z");
    let text = format!(
        "now 12:01\n{claim} cond.Drained=Unknown/Draining@12:00\n{NODE}
         pod v node=n deleting=12:01:20
         pod w node=n"
    );
    let mut world = World::new(&text);
    let steps = world.node("n");
    assert!(steps.contains("evict w") && !steps.contains("evict v"), "{steps}");
    assert!(!world.node("n").contains("evict"));
    let again = world.restart().node("n");
    assert!(again.contains("evict w") && !again.contains("evict v"), "{again}");
    assert!(world.claim("a").is_empty(), "the deadline stays");
}
