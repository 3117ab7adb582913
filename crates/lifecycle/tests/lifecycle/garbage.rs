//! Instances and claims that lost each other: sheet 04, cases 24-26.

use crate::world::{World, check};

/// Case 24; case 25 cannot happen here, because a snapshot has no lookups that fail.
#[test]
fn a_registered_claim_whose_instance_is_gone_goes_unless_its_node_is_ready() {
    let claim = "claim a id=i-1 launched registered";
    let deleted = "delete claim a\nnote a garbage_collected";
    check(&World::new(&format!("{claim}\nnode n id=i-1 not-ready")).collect("i-2@11:59:50"), deleted);
    check(&World::new(&format!("{claim}\nnode n id=i-1 not-ready")).collect("i-1@11:00!"), deleted);
    check(&World::new(&format!("{claim}\nnode n id=i-1 not-ready")).collect("i-1@11:00"), "");
    check(&World::new(&format!("{claim}\nnode n id=i-1")).collect(""), "");
    check(&World::new(claim).collect(""), deleted);
    check(&World::new("claim a id=i-1 launched").collect(""), "");
    check(&World::new(&format!("{claim} deleting=11:59")).collect(""), "");
    check(&World::new(&format!("{claim} class-kind=EC2NodeClass")).collect(""), "");
}

/// Case 26.
#[test]
fn an_instance_without_a_claim_is_ended_after_half_a_minute() {
    let mut world = World::new("node n id=i-1");
    check(
        &world.collect("i-1@11:59:29"),
        "terminate orphan i-1
         delete node n",
    );
    check(&world.collect("i-1@11:59:31"), "");
    check(&world.collect("i-1@11:00!"), "");
    check(&world.apply("claim a id=i-1 launched").collect("i-1@11:00"), "");
}

/// The orphan was ended, and the delete of its node was lost with a crash.
#[test]
fn a_node_without_claim_and_instance_goes_unless_it_is_ready() {
    let node = "node n id=i-1 label.karpenter.sh/nodepool=default";
    check(&World::new(&format!("{node} not-ready")).collect(""), "delete node n");
    check(&World::new(&format!("{node} not-ready")).collect("i-1@11:59:59"), "");
    check(&World::new(node).collect(""), "");
    check(&World::new("node n id=i-1 bare not-ready").collect(""), "");
    check(&World::new(&format!("{node} not-ready\nclaim a id=i-1 launched")).collect(""), "");
}

#[test]
fn an_instance_that_a_claim_in_launch_may_own_is_kept() {
    let mut world = World::new("claim a created=11:57");
    check(&world.collect("i-1@11:58"), "");
    check(&world.collect("i-1@11:56"), "terminate orphan i-1");
}

#[test]
fn what_was_launched_after_the_question_is_not_missing_in_the_answer() {
    let mut world = World::new("claim a id=i-1 created=11:59 registered cond.Launched=True@12:00:01");
    world.garbage();
    check(&world.apply("now 12:00:02").collect(""), "");
}

/// The provider took more than a minute, was asked again, and then answered the first question.
#[test]
fn a_late_answer_was_taken_for_one_to_the_second_question_and_young_nodes_were_deleted() {
    let mut world =
        World::new("claim a id=i-1 created=11:59 registered cond.Launched=True@12:00:30\nnode n id=i-1 not-ready");
    world.garbage();
    assert!(world.apply("now 12:01").garbage().starts_with("list instances"));
    check(&world.apply("now 12:01:02").collect(""), "");
    check(&world.apply("now 12:01:03").collect(""), "");
    assert!(world.apply("now 12:03:03").garbage().starts_with("list instances"));
    check(&world.apply("now 12:03:04").collect(""), "delete claim a\nnote a garbage_collected");
}

#[test]
fn instances_are_listed_every_two_minutes_and_a_lost_answer_is_asked_for_again() {
    let mut world = World::new("");
    check(
        &world.garbage(),
        "list instances
         wake 12:01:00",
    );
    check(&world.garbage(), "wake 12:01:00");
    assert!(world.apply("now 12:01").garbage().starts_with("list instances"));
    world.collect("");
    check(&world.garbage(), "wake 12:03:00");
    assert!(world.apply("now 12:03").garbage().starts_with("list instances"));
}
