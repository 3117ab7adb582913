//! Pools: sheet 04, cases 22, 23 and 58-62.

use std::sync::Arc;

use kerf_model::change::{Change, Input};
use kerf_model::effect::{Effect, WriteError};

use crate::world::{World, check};

/// A pool with nothing left to say, and its class.
const POOL: &str = "pool p resources=cpu:0,memory:0,pods:0,ephemeral-storage:0,nodes:0 class-generation=1 \
     cond.ValidationSucceeded=True cond.NodeClassReady=True cond.Ready=True cond.NodeRegistrationHealthy=Unknown/AwaitingReconciliation";
const CLASS: &str = "class default";

fn world(more: &str) -> World {
    World::new(&format!("{POOL}\n{CLASS}\n{more}"))
}

/// The claim's timeout is decided and noted.
fn times_out(world: &mut World, claim: &str) {
    world.apply(&format!("claim {claim} pool=p id={claim} created=11:00 launched"));
    assert!(world.claim(claim).contains("registration_timeout"));
}

fn registers(world: &mut World, claim: &str) {
    world.apply(&format!(
        "claim {claim} pool=p id={claim} created=12:00 launched\nnode {claim} id={claim} registered owner={claim}"
    ));
    assert!(world.claim(claim).contains("registered"));
}

fn health(world: &mut World) -> String {
    let steps = world.pool("p");
    let words = steps.split_whitespace().filter(|word| word.starts_with("NodeRegistrationHealthy"));
    words.collect::<Vec<_>>().join(" ")
}

/// Case 22.
#[test]
fn two_failures_of_the_last_four_make_a_pool_unhealthy() {
    let mut world = world("");
    times_out(&mut world, "a");
    assert_eq!(health(&mut world), "NodeRegistrationHealthy=True", "one failure is none");
    times_out(&mut world, "a");
    assert_eq!(health(&mut world), "NodeRegistrationHealthy=True", "a claim counts once");
    times_out(&mut world, "b");
    assert_eq!(health(&mut world), "NodeRegistrationHealthy=False/RegistrationFailed");
    registers(&mut world, "c");
    assert_eq!(health(&mut world), "NodeRegistrationHealthy=False/RegistrationFailed");
    registers(&mut world, "d");
    registers(&mut world, "e");
    assert_eq!(health(&mut world), "NodeRegistrationHealthy=True");
}

/// Case 22, end.
#[test]
fn a_pool_made_anew_under_an_old_name_does_not_inherit() {
    let mut world = world("");
    world.apply(&POOL.replace("pool p", "pool p uid=new"));
    times_out(&mut world, "a");
    times_out(&mut world, "b");
    assert_eq!(health(&mut world), "");
}

/// Case 23.
#[test]
fn health_starts_anew_with_an_edit_and_goes_on_after_a_restart() {
    let mut edited = world("class default generation=2");
    times_out(&mut edited, "a");
    times_out(&mut edited, "b");
    assert!(edited.pool("p").contains("class-generation=2 NodeRegistrationHealthy~"));
    edited.apply(&POOL.replace("class-generation=1", "class-generation=2"));
    assert_eq!(health(&mut edited), "", "the failures from before are forgotten");

    let unhealthy = POOL.replace("Unknown/AwaitingReconciliation", "False/RegistrationFailed");
    let mut world = World::new(&format!("{unhealthy}\n{CLASS}"));
    for (claim, expected) in [("a", ""), ("b", ""), ("c", "NodeRegistrationHealthy=True")] {
        registers(&mut world, claim);
        assert_eq!(health(&mut world), expected, "{claim}");
    }
}

/// Case 58, and sheet 03 case 47; the hashes themselves are tested in kerf-api.
#[test]
fn a_new_hash_version_reaches_the_claims_before_the_pool() {
    let claims =
        "claim a pool=p annotation.karpenter.sh/nodepool-hash-version=v2 annotation.karpenter.sh/nodepool-hash=1
         claim b pool=p cond.Drifted=True annotation.karpenter.sh/nodepool-hash=1
         claim c pool=p annotation.karpenter.sh/nodepool-hash-version=v3 annotation.karpenter.sh/nodepool-hash=1
         claim d pool=other";
    let mut world = world(claims);
    world.apply(&format!("{POOL} hash=9"));
    check(
        &world.pool("p"),
        "patch claim a: @karpenter.sh/nodepool-hash=9 @karpenter.sh/nodepool-hash-version=v3
         patch claim b: @karpenter.sh/nodepool-hash-version=v3",
    );
    world.apply(
        &claims
            .replace("=v2", "=v3")
            .replace("Drifted=True", "Drifted=True annotation.karpenter.sh/nodepool-hash-version=v3"),
    );
    check(&world.pool("p"), "patch pool p: @karpenter.sh/nodepool-hash=9 @karpenter.sh/nodepool-hash-version=v3");
}

#[test]
fn an_edit_that_changes_no_field_reaches_the_claims_and_one_that_does_stays_visible() {
    let key = "annotation.karpenter.sh/nodepool-hash";
    let pool = format!("{POOL} {key}-version=v3 {key}=1 hash=9 fields=v1_9_x=1");
    let claim = format!("claim a pool=p {key}-version=v3 {key}=1 annotation.kerf.sh/nodepool-field-hashes=v1_1_x=");
    let cosmetic = world(&format!("{pool}\n{claim}1")).pool("p");
    assert!(cosmetic.starts_with("patch claim a: @karpenter.sh/nodepool-hash=9 "), "{cosmetic}");
    let real = world(&format!("{pool}\n{claim}2")).pool("p");
    assert!(real.starts_with("patch pool p: @karpenter.sh/nodepool-hash=9 "), "{real}");
    let foreign = world(&format!("{pool}\n{claim}1 {key}=7")).pool("p");
    assert!(foreign.starts_with("patch pool p: "), "{foreign}");
}

/// One claim that an admission policy did not let anybody change kept its pool from being stamped for ever, and nothing of
/// the pool from being seen as drifted.
#[test]
fn a_claim_whose_stamp_is_refused_for_good_does_not_hold_back_its_pool() {
    let claims = "claim a pool=p annotation.karpenter.sh/nodepool-hash=1
         claim b pool=p annotation.karpenter.sh/nodepool-hash=1";
    let mut world = world(&format!("{claims}\n{POOL} hash=9"));
    let steps = world.pool_steps("p");
    let fail = |world: &mut World, claim: &str, error: WriteError| {
        let of_claim =
            |effect: &&Effect| matches!(effect, Effect::PatchClaim(target, _) if &*target.name.name == claim);
        let effect = Box::new(steps.effects.iter().find(of_claim).unwrap().clone());
        world.hear(Input::WriteFailed { effect, error });
    };
    let refused = || WriteError::Invalid { message: "denied by a policy".to_owned() };
    fail(&mut world, "a", refused());
    fail(&mut world, "b", WriteError::Unavailable { message: "busy".to_owned() });
    check(&world.pool("p"), "patch claim b: @karpenter.sh/nodepool-hash=9 @karpenter.sh/nodepool-hash-version=v3");
    fail(&mut world, "b", refused());
    check(&world.pool("p"), "patch pool p: @karpenter.sh/nodepool-hash=9 @karpenter.sh/nodepool-hash-version=v3");
    // Another version of the claim may be taken.
    let mut changed = (**world.snapshot.claim("b").unwrap()).clone();
    changed.meta.resource_version = Arc::from("8");
    world.hear(Input::Change(Change::NodeClaim(changed.meta.name.clone(), Some(Arc::new(changed)))));
    check(&world.pool("p"), "patch claim b: @karpenter.sh/nodepool-hash=9 @karpenter.sh/nodepool-hash-version=v3");
}

/// Case 59.
#[test]
fn a_pool_says_what_is_wrong_with_its_class() {
    let no_health = POOL.replace("cond.NodeRegistrationHealthy=Unknown/AwaitingReconciliation", "");
    for (class, reason) in [
        ("", "NodeClassNotFound"),
        ("class default deleting=11:00", "NodeClassTerminating"),
        ("class default unknown", "NodeClassReadinessUnknown"),
        ("class default not-ready=NoSubnets", "NoSubnets"),
    ] {
        let steps = World::new(&format!("{no_health}\n{class}")).pool("p");
        assert!(steps.contains(&format!(" NodeClassReady=False/{reason}")), "{class}: {steps}");
    }
    check(&world("").pool("p"), "");
}

/// Case 60, as far as it is ours: the values are checked where pools are parsed.
#[test]
fn a_pool_that_does_not_parse_says_why_and_still_counts() {
    let mut world = World::new(&format!("{POOL} invalid=bad\n{CLASS}\nclaim a pool=p id=i-1 launched capacity=cpu:1"));
    check(
        &world.pool("p"),
        "patch pool p: [cpu=1 ephemeral-storage=0 memory=0 nodes=1 pods=0] ValidationSucceeded=False/NodePoolValidationFailed",
    );
}

#[test]
fn a_pool_that_is_switched_off_says_so() {
    check(&World::new(&format!("{POOL} disabled\n{CLASS}")).pool("p"), "patch pool p: Disabled=True");
    check(&world(&format!("{POOL} cond.Disabled=True")).pool("p"), "patch pool p: Disabled=False/Enabled");
}

/// Case 61; case 88 of sheet 02: what leaves is taken off once, however often that is said.
#[test]
fn a_starting_node_counts_as_promised_and_a_leaving_one_not_at_all() {
    let sum = |cluster: &str| world(cluster).pool("p");
    let line = |cpu, nodes| format!("patch pool p: [cpu={cpu} ephemeral-storage=0 memory=0 nodes={nodes} pods=0]");
    let claim = "claim a pool=p id=i-1 launched registered capacity=cpu:10";
    check(&sum(&format!("{claim}\nnode n id=i-1 capacity=cpu:0")), &line("10", 1));
    check(&sum(&format!("{claim} initialized\nnode n id=i-1 capacity=cpu:9")), &line("9", 1));
    check(&sum(&format!("{claim} deleting=11:00\nnode n id=i-1 capacity=cpu:9")), "");
    check(&sum(&format!("{claim}\nnode n id=i-1 deleting=11:00 capacity=cpu:9")), "");
    check(
        &sum(&format!(
            "{claim} deleting=11:00 cond.DisruptionReason=True/Drifted
             node n id=i-1 deleting=11:00 capacity=cpu:9
             claim b pool=p id=i-2 launched capacity=cpu:500m"
        )),
        &line("500m", 1),
    );
    let (marked, reboots) = ("annotation.kerf.sh/disruption-command=v1", "cond.Rebooting=True/RebootRequested");
    let node = "node n id=i-1 capacity=cpu:9";
    let other = "claim b pool=p id=i-2 launched capacity=cpu:500m";
    let going = format!("{claim} initialized cond.DisruptionReason=True/Drifted {marked}\n{node}\n{other}");
    check(&sum(&going), &line("500m", 1));
    let stays = format!("{claim} initialized cond.DisruptionReason=True/Unhealthy {reboots}\n{node}\n{other}");
    check(&sum(&stays), &line("9500m", 2));
    check(&sum("claim a pool=p"), "");
    check(&sum(&format!("{claim}\nclaim b pool=p id=i-2 launched capacity=cpu:500m")), &line("10500m", 2));
}

/// Case 62.
#[test]
fn a_static_pool_is_filled_up_to_its_limit_and_never_twice() {
    let mut world = world(&format!("{POOL} replicas=10 limits=nodes:5"));
    let first = world.pool("p");
    assert_eq!(first.lines().filter(|line| line.starts_with("create claim p-")).count(), 5);
    assert_eq!(world.pool("p"), first, "until the claims are seen, the same ones are created");
    for line in first.lines() {
        let name = line.split_whitespace().nth(2).unwrap();
        world.apply(&format!("claim {name} pool=p"));
    }
    check(&world.pool("p"), "");
    // Sheet 03 case 90: a pool that is disabled stays as large as it is.
    for replicas in [0, 20] {
        world.apply(&format!("{POOL} replicas={replicas} disabled cond.Disabled=True"));
        let steps = world.pool("p");
        assert!(!steps.contains("claim"), "{replicas}: {steps}");
    }
    world.apply(&format!("{POOL} replicas=20"));
    assert!(world.pool("p").contains("create claim"));
    world.settings.static_capacity = false;
    world.apply(&format!("{POOL} replicas=20"));
    check(&world.pool("p"), "");
}

/// Without the label its node would not meet the pool's own requirements, and drift for ever.
#[test]
fn a_claim_of_a_static_pool_carries_a_value_for_every_label_that_the_pool_requires() {
    let mut world = world(&format!("{POOL} replicas=1 requires=tier:In:gold,silver requires=rack:Exists"));
    let created = world.pool("p");
    assert!(created.contains("tier=gold") && created.contains("rack=0"), "{created}");
}

/// A roll-out in waves is written on its pool, once.
#[test]
fn a_roll_out_stands_on_its_pool() {
    let mut world = world(POOL);
    world.marks.set_rollout("p".into(), "v1 00 1 0".into());
    check(&world.pool("p"), "patch pool p: @kerf.sh/rollout=v1 00 1 0");
}

/// Seen with terminate-first at the pool's limit: who waited for the end of a claim, by name, found its successor.
#[test]
fn the_successor_of_a_claim_of_a_static_pool_had_its_name() {
    let mut world = world(&format!("{POOL} replicas=1 limits=nodes:1"));
    let create = |world: &mut World| world.pool("p").split_whitespace().nth(2).unwrap().to_owned();
    let first = create(&mut world);
    check(&world.apply(&format!("claim {first} pool=p deleting=11:00")).pool("p"), "");
    world.apply(&format!("gone claim {first}"));
    let second = create(&mut world);
    assert_ne!(second, first);
    assert_eq!(create(&mut world), second, "until it is seen, the same");
}

/// Case 62, end; sheet 03 case 54.
#[test]
fn a_static_pool_sheds_the_nodes_that_hurt_least() {
    let running = |name: &str| format!("claim {name} pool=p id={name} launched registered\nnode {name} id={name}\n");
    let claims: String = ["empty", "busy", "cheap", "guarded"].map(running).concat();
    let pods = "pod b1 node=busy
         pod b2 node=busy
         pod c1 node=cheap
         pod d1 node=empty daemon
         pod g1 node=guarded protect=true";
    let shed = |replicas: usize| {
        let mut world = world(&format!("{claims}claim new pool=p\n{pods}\n{POOL} replicas={replicas}"));
        let steps = world.pool("p");
        let names = steps.lines().filter_map(|line| line.strip_prefix("delete claim "));
        names.map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(shed(5), [""; 0]);
    assert_eq!(shed(1), ["new", "empty", "cheap", "busy"]);
    assert_eq!(shed(0), ["new", "empty", "cheap", "busy", "guarded"]);
}

/// After a drift whose replacement had registered and never became ready, the node that worked was deleted, because less of
/// its life was left, and the broken one stayed.
#[test]
fn a_static_pool_that_is_too_large_keeps_the_node_that_works() {
    let node = |name: &str, words: &str| {
        format!("claim {name} pool=p id={name} launched registered expire=2h {words}\nnode {name} id={name}\n")
    };
    let old = node("old", "created=10:30 initialized");
    let cluster = format!("{old}{}{POOL} replicas=1", node("replacement", "created=11:50"));
    let shed = |cluster: &str| {
        let steps = world(cluster).pool("p");
        let names = steps.lines().filter_map(|line| line.strip_prefix("delete claim "));
        names.map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(shed(&cluster), ["replacement"]);
    let initialized = format!("{old}{}{POOL} replicas=1", node("replacement", "created=11:50 initialized"));
    assert_eq!(shed(&initialized), ["old"]);
    let busy = format!("{cluster}\npod a node=replacement");
    assert_eq!(shed(&busy), ["old"]);
}

/// A static pool takes no nodes of others: one that is relabelled all the same is none too many.
#[test]
fn a_static_pool_does_not_count_a_claim_that_only_says_it_is_its() {
    let mut world = world(&format!("claim own pool=p\nclaim other pool=p owner=q\npool q\n{POOL} replicas=1"));
    check(&world.pool("p"), "");
    world.apply(&format!("{POOL} replicas=0"));
    assert!(world.pool("p").contains("delete claim own") && !world.pool("p").contains("delete claim other"));
}

/// Sheet 03 case 54, to the letter: two nodes of each kind.
#[test]
fn a_static_pool_of_eight_shrinks_by_two_and_two() {
    let mut cluster = String::new();
    let kinds =
        [("d", &["daemon"][..]), ("one", &["daemon", ""]), ("two", &["daemon", "", ""]), ("x", &["protect=true"])];
    for (kind, pods) in kinds {
        for at in [1, 2] {
            let name = format!("{kind}{at}");
            cluster += &format!("claim {name} pool=p id={name} launched registered\nnode {name} id={name}\n");
            for (pod, words) in pods.iter().enumerate() {
                cluster += &format!("pod {name}-{pod} node={name} {words}\n");
            }
        }
    }
    let mut world = world(&cluster);
    for (replicas, gone) in [(6, ["d1", "d2"]), (4, ["one1", "one2"]), (2, ["two1", "two2"]), (0, ["x1", "x2"])] {
        let steps = world.apply(&format!("{POOL} replicas={replicas}")).pool("p");
        let deleted: Vec<_> = steps.lines().filter_map(|line| line.strip_prefix("delete claim ")).collect();
        assert_eq!(deleted, gone, "{replicas}");
        for name in gone {
            world.apply(&format!("gone claim {name}\ngone node {name}"));
        }
    }
}

/// Sheet 08 D10 and D11: what the gate leaves on pods must not make a busy node look cheap.
#[test]
fn a_deletion_cost_of_ours_does_not_decide_which_node_of_a_static_pool_goes() {
    let running = |name: &str| format!("claim {name} pool=p id={name} launched registered\nnode {name} id={name}\n");
    let cost = "annotation.controller.kubernetes.io/pod-deletion-cost";
    let shed = |value: &str, is_ours: bool| {
        let mut world = world(&format!(
            "{}{}pod a1 node=a {cost}={value}\npod a2 node=a {cost}={value}\npod b1 node=b\n{POOL} replicas=1",
            running("a"),
            running("b")
        ));
        world.settings.manages_deletion_cost = is_ours;
        let steps = world.pool("p");
        steps.lines().find_map(|line| line.strip_prefix("delete claim ")).unwrap_or_default().to_owned()
    };
    assert_eq!(shed("-134217728", false), "a", "a person says that they cost nothing");
    assert_eq!(shed("-134217728", true), "b", "with the gate on it is ours");
    assert_eq!(shed("-2147483648", false), "b", "left over from the gate");
}

#[test]
fn a_node_that_is_being_replaced_is_neither_shed_nor_refilled() {
    let claims = "claim a pool=p id=i-1 launched registered
         claim b pool=p id=i-2 launched registered cond.DisruptionReason=True/Drifted";
    let mut world = world(&format!("{claims}\n{POOL} replicas=2"));
    assert!(!world.pool("p").contains("create"));
    assert!(!world.apply(&format!("{POOL} replicas=1")).pool("p").contains("delete"));
}
