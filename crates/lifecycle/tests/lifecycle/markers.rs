//! What a claim says about itself for disruption: sheet 03 §12, cases 28, 44-50.

use std::sync::Arc;

use kerf_lifecycle::{Mark, Order};
use kerf_model::budget::DisruptionReason;
use kerf_model::effect::Effect;

use crate::world::{World, check};

const CLASS: &str = "class default";
const RUNNING: &str = "id=i-1 launched registered initialized cond.ConsistentStateFound=True pool=p";
const NODE: &str = "node n id=i-1 registered initialized owner=a pool=p";

/// A running claim `a` of pool `p`, with more words for each.
fn world(pool: &str, claim: &str) -> World {
    World::new(&format!("{CLASS}\npool p {pool}\nclaim a {RUNNING} {claim}\n{NODE}"))
}

/// The message of the condition that the claim asks for.
fn drift_message(world: &mut World) -> Option<String> {
    let steps = world.claim_steps("a");
    steps.effects.iter().find_map(|effect| match effect {
        Effect::PatchClaim(_, patch) => {
            Some(patch.status.conditions.as_ref()?.get("Drifted")?.message.as_ref().to_owned())
        }
        _ => None,
    })
}

#[test]
fn a_node_may_be_consolidated_when_its_pods_have_been_quiet_for_the_pools_time() {
    let mut world = world("rest=5m", "pod-event=11:57");
    check(&world.claim("a"), "wake 12:02:00");
    world.apply("now 12:02");
    check(&world.claim("a"), "patch claim a: Consolidatable=True");
}

#[test]
fn without_a_pod_event_the_time_counts_from_the_initialisation() {
    let mut world = world("rest=2h", "created=11:00");
    check(&world.claim("a"), "wake 13:00:00");
}

#[test]
fn a_pod_event_takes_the_mark_back_with_the_same_write() {
    let mut world = world("rest=5m", "pod-event=11:00 cond.Consolidatable=True");
    world.apply("pod x node=n started=11:59");
    check(
        &world.claim("a"),
        "patch claim a: pod-event=11:59:00 Consolidatable-
         wake 12:04:00",
    );
}

/// Case 28, and 55: neither is a node of a pool that never consolidates, has it switched off, or is static.
#[test]
fn a_node_that_is_never_consolidated_is_never_marked() {
    for pool in ["", "rest=0s consolidation-off", "rest=0s replicas=1"] {
        check(&world(pool, "").claim("a"), "");
        check(&world(pool, "cond.Consolidatable=True").claim("a"), "patch claim a: Consolidatable-");
    }
    let mut unready = World::new(&format!("{CLASS}\npool p rest=0s\nclaim a id=i-1 launched registered pool=p"));
    assert!(!unready.claim("a").contains("Consolidatable"));
}

const HASHES: &str = "annotation.karpenter.sh/nodepool-hash-version=v3 annotation.karpenter.sh/nodepool-hash";

/// Case 45, the hash says that the template was edited; the texts say how.
#[test]
fn drift_of_the_template_names_the_field_with_both_values() {
    let edited = |pool: &str, claim: &str| world(&format!("hash=2 {HASHES}=2 {pool}"), &format!("{HASHES}=1 {claim}"));
    check(&edited("", "").claim("a"), "patch claim a: Drifted=True/NodePoolDrifted");
    for (pool, claim, message) in [
        ("template-label.team=b", "label.team=a", "spec.template.metadata.labels[team] was a and is b"),
        ("template-annotation.note=b", "", "spec.template.metadata.annotations[note] is new: b"),
        ("taint=x:NoSchedule", "", "spec.template.spec.taints is new: x:NoSchedule"),
        ("", "startup=x:NoExecute", "spec.template.spec.startupTaints is gone: x:NoExecute"),
        ("expire=30h", "expire=20h", "spec.template.spec.expireAfter was 20h0m0s and is 30h0m0s"),
        (
            "class-kind=Other",
            "",
            "spec.template.spec.nodeClassRef was KWOKNodeClass.karpenter.kwok.sh/default and is Other.karpenter.kwok.sh/default",
        ),
        ("tgp=60s", "", "spec.template.spec.terminationGracePeriod is new: 1m0s"),
        ("", "", "the pool's template was edited"),
    ] {
        assert_eq!(drift_message(&mut edited(pool, claim)).as_deref(), Some(message));
    }
}

#[test]
fn a_label_that_the_template_lost_is_told_by_the_hash_of_its_field() {
    let fields = "annotation.kerf.sh/nodepool-field-hashes";
    let mut world = world(
        &format!("hash=2 {HASHES}=2 {fields}=v1_2_spec.template.spec.expireAfter=0b"),
        &format!(
            "{HASHES}=1 {fields}=v1_1_spec.template.metadata.labels[team]=0a,spec.template.spec.expireAfter=0b label.team=x"
        ),
    );
    assert_eq!(drift_message(&mut world).as_deref(), Some("spec.template.metadata.labels[team] is gone: x"));
}

/// Case 46.
#[test]
fn without_hash_and_version_on_both_sides_or_with_other_versions_nothing_has_drifted() {
    let version = "annotation.karpenter.sh/nodepool-hash-version";
    let hash = "annotation.karpenter.sh/nodepool-hash";
    for (pool, claim) in [
        ("", format!("{HASHES}=1")),
        (&*format!("{HASHES}=2"), String::new()),
        (&*format!("{HASHES}=2"), format!("{hash}=1")),
        (&*format!("{version}=v3"), format!("{HASHES}=1")),
        (&*format!("{hash}=2"), format!("{HASHES}=1")),
        (&*format!("{HASHES}=2"), format!("{version}=v3")),
        (&*format!("{HASHES}=2"), format!("{version}=v2 {hash}=1")),
    ] {
        check(&world(pool, &claim).claim("a"), "");
    }
}

/// Case 44.
#[test]
fn requirements_that_the_nodes_labels_do_not_meet_are_drift_and_wider_ones_are_not() {
    let claim = "label.zone=a label.cpu=8";
    for pool in ["requires=zone:In:a,b", "requires=zone:Exists", "requires=gone:DoesNotExist", "requires=cpu:Gt:4"] {
        check(&world(pool, claim).claim("a"), "");
    }
    for pool in [
        "requires=zone:In:b",
        "requires=zone:NotIn:a",
        "requires=team:In:x",
        "requires=team:Exists",
        "requires=team:Gt:1",
        "requires=zone:DoesNotExist",
        "requires=cpu:Gt:8",
        "requires=cpu:Gt:9",
        "requires=cpu:Lt:8",
    ] {
        check(&world(pool, claim).claim("a"), "patch claim a: Drifted=True/RequirementsDrifted");
    }
}

/// Case 48.
#[test]
fn a_type_that_is_not_offered_any_more_is_drift_after_an_hour() {
    let labels = "label.node.kubernetes.io/instance-type=c label.topology.kubernetes.io/zone=a";
    let case = |kind: &str, offer: &str, created: &str| {
        let mut world = world("", &format!("{labels} label.karpenter.sh/capacity-type={kind} created={created}"));
        world.apply(offer);
        world.claim("a")
    };
    let drifted = "patch claim a: Drifted=True/InstanceTypeNotFound";
    check(&case("on-demand", "type d pool=p offer=a/on-demand", "11:01"), "wake 12:01:00");
    // To the second: nothing wakes for it later.
    check(&case("on-demand", "type d pool=p offer=a/on-demand", "11:00"), drifted);
    check(&case("on-demand", "type c pool=p offer=a/on-demand", "10:59"), "");
    check(&case("on-demand", "type c pool=p offer=b/on-demand", "10:59"), drifted);
    check(&case("spot", "type c pool=p offer=a/on-demand", "10:59"), drifted);
    check(&case("reserved", "type c pool=p offer=a/reserved", "10:59"), "");
    check(&case("reserved", "type c pool=p offer=a/on-demand", "10:59"), "");
    check(&case("reserved", "type c pool=p offer=a/spot", "10:59"), drifted);
    check(&case("on-demand", "type c pool=other offer=a/spot", "10:59"), "");
}

/// It was looked at a moment before its hour was over, and then nobody looked again.
#[test]
fn the_type_is_looked_at_when_the_hour_is_over() {
    let mut world = world("", "label.node.kubernetes.io/instance-type=c created=11:01");
    world.apply("type d pool=p offer=a/on-demand");
    check(&world.claim("a"), "wake 12:01:00");
    world.apply("now 12:01");
    check(&world.claim("a"), "patch claim a: Drifted=True/InstanceTypeNotFound");
}

/// Case 49.
#[test]
fn a_claim_that_is_not_launched_has_not_drifted() {
    let text = format!("{CLASS}\npool p {HASHES}=2\nclaim a pool=p created=11:59 {HASHES}=1 cond.Drifted=True");
    assert!(World::new(&text).claim("a").contains("Drifted-"));
}

#[test]
fn the_gate_takes_the_mark_back() {
    let mut world = world(&format!("hash=2 {HASHES}=2"), &format!("{HASHES}=1 cond.Drifted=True/NodePoolDrifted"));
    world.settings.drift = false;
    check(&world.claim("a"), "patch claim a: Drifted-");
}

#[test]
fn the_provider_is_asked_every_five_minutes_and_when_the_class_changes() {
    let mut world = world("", "");
    world.settings.provider_drift = true;
    check(
        &world.claim("a"),
        "check drift of a
         wake 12:01:00",
    );
    check(&world.claim("a"), "wake 12:01:00");
    world.drift_found("a", Some("AMIDrift"));
    check(
        &world.claim("a"),
        "patch claim a: Drifted=True/AMIDrift
         wake 12:05:00",
    );
    world.apply("class default generation=2");
    assert!(world.claim("a").contains("check drift of a"));
    world.drift_found("a", None).apply(&format!("claim a {RUNNING} cond.Drifted=True/AMIDrift"));
    assert!(world.claim("a").contains("Drifted-"));
    world.apply("now 12:05");
    assert!(world.claim("a").contains("check drift of a"));
}

/// After a restart the mark stays until the provider has answered.
#[test]
fn what_is_known_of_the_providers_drift_survives_a_restart() {
    let mut world = world("", "cond.Drifted=True/AMIDrift");
    world.settings.provider_drift = true;
    check(
        &world.claim("a"),
        "check drift of a
         wake 12:01:00",
    );
}

/// Case 50.
#[test]
fn the_pools_drift_goes_before_the_providers() {
    let mut world = world(&format!("hash=2 {HASHES}=2"), &format!("{HASHES}=1"));
    world.settings.provider_drift = true;
    world.drift_found("a", Some("AMIDrift"));
    check(&world.claim("a"), "patch claim a: Drifted=True/NodePoolDrifted");
}

fn leave(deadline: Option<&str>) -> Mark {
    let order = Order::Leave { record: Arc::from("v1"), deadline: deadline.map(crate::words::time) };
    Mark { claim_uid: Arc::from("uid-a"), reason: DisruptionReason::Drifted, order }
}

#[test]
fn a_claim_that_is_to_go_carries_its_command_and_its_node_takes_nothing_new() {
    let mut world = world("", "");
    world.marks.insert(Arc::from("a"), leave(None));
    check(
        &world.claim("a"),
        "patch node n: taints=[karpenter.sh/disrupted:NoSchedule]
         patch claim a: @kerf.sh/disruption-command=v1 DisruptionReason=True/Drifted",
    );
    let marked = "annotation.kerf.sh/disruption-command=v1 cond.DisruptionReason=True/Drifted";
    world.apply(&format!("claim a {RUNNING} {marked}\n{NODE} taint=karpenter.sh/disrupted:NoSchedule"));
    assert!(!world.claim("a").contains("node n"));
}

/// Case 80; a taint that a person put there goes too, as in the reference.
#[test]
fn what_a_forgotten_command_left_is_taken_off_unless_the_node_goes_or_reboots() {
    let left = "annotation.kerf.sh/disruption-command=v1 cond.DisruptionReason=True/Drifted";
    let tainted = "taint=karpenter.sh/disrupted:NoSchedule taint=x:NoSchedule";
    let case = |claim: &str, node: &str| {
        let text = format!("{CLASS}\npool p\nclaim a {RUNNING} {claim}\n{NODE} {tainted} {node}");
        World::new(&text).claim("a")
    };
    check(
        &case(left, ""),
        "patch node n: taints=[x:NoSchedule]
         patch claim a: @kerf.sh/disruption-command=- DisruptionReason-",
    );
    check(&case("", ""), "patch node n: taints=[x:NoSchedule]");
    check(&case("", "deleting=11:59"), "");
    assert!(!case(&format!("{left} cond.Rebooting=True/RebootRequested"), "").contains("taints=[x:NoSchedule]"));
}

/// Sheet 08 D8, L4.
#[test]
fn a_deadline_only_comes_closer() {
    let deadline = "annotation.karpenter.sh/nodeclaim-termination-timestamp";
    for (written, result) in [
        ("", "@karpenter.sh/nodeclaim-termination-timestamp=2026-11-16T12:01:00Z"),
        ("2026-11-16T13:00:00Z", "@karpenter.sh/nodeclaim-termination-timestamp=2026-11-16T12:01:00Z"),
        ("2026-11-16T12:00:30Z", ""),
    ] {
        let mut world = world("", &if written.is_empty() { String::new() } else { format!("{deadline}={written}") });
        world.marks.insert(Arc::from("a"), leave(Some("12:01")));
        let steps = world.claim("a");
        assert_eq!(steps.contains("termination-timestamp"), !result.is_empty(), "{steps}");
        assert!(steps.contains(result), "{steps}");
    }
}
