//! The main loop over some time: what is asked for, how often, and when.

use std::sync::Arc;

use jiff::SignedDuration;
use kerf_model::change::{Change, Input};
use kerf_model::cloud::{Interruption, InterruptionCause};
use kerf_model::cluster::{DoNotDisrupt, ObjectName, Pod};
use kerf_model::effect::{Effect, WriteError};
use kerf_model::resources::ResourceList;

mod bed;

use bed::{Bed, mark, write_record};

/// The first of three writes had landed when the process died, and the scheduler bound a protected pod to the node that
/// had no taint yet.
#[test]
fn a_deletion_whose_node_was_never_out_of_reach_is_not_taken_up() {
    let mut bed = Bed::new();
    let started = bed.now - SignedDuration::from_secs(20);
    bed.node_with("a", |claim, _| write_record(claim, started));
    bed.node_with("b", |claim, node| mark(claim, node, started));
    bed.pod("w", Some("a"), |pod| pod.do_not_disrupt = DoNotDisrupt::Always);
    assert_eq!(bed.start(), ["delete b"]);
    assert_eq!(bed.run(60), [""; 0]);
    assert_eq!(bed.verdict("a"), "protected_pod");
    assert!(!bed.is_tainted("a"));
    let claim = bed.engine.snapshot().claim("a").unwrap();
    assert!(claim.meta.annotations.is_empty(), "{:?}", claim.meta.annotations);
}

/// A process that comes hours later finds nodes that are marked from top to bottom, and a cluster that is another.
#[test]
fn a_deletion_that_was_decided_long_ago_is_asked_once_more_whether_it_may_go_on() {
    let mut bed = Bed::new();
    let started = bed.now - SignedDuration::from_hours(2);
    bed.node_with("a", |claim, node| mark(claim, node, started));
    bed.node_with("b", |claim, node| mark(claim, node, started));
    bed.pod("w", Some("a"), |pod| pod.do_not_disrupt = DoNotDisrupt::Always);
    assert_eq!(bed.start(), [""; 0], "its lists may be old");
    let mut asked = bed.run(30);
    asked.sort();
    assert_eq!(asked, ["delete b", "untaint a"]);
    assert_eq!(bed.verdict("a"), "protected_pod");
}

#[test]
fn a_deletion_that_has_begun_goes_on_however_old_it_is() {
    let mut bed = Bed::new();
    let (now, started) = (bed.now, bed.now - SignedDuration::from_hours(2));
    bed.node_with("a", |claim, node| mark(claim, node, started));
    bed.node_with("b", |claim, node| {
        mark(claim, node, started);
        claim.meta.deleting = Some(now);
        claim.meta.finalizers = vec![Arc::from("karpenter.sh/termination")];
    });
    assert_eq!(bed.start(), ["delete a"]);
}

/// A deletion that the API server forbade was asked for again with every answer, for ever.
#[test]
fn a_deletion_that_is_refused_is_not_repeated_at_once() {
    let mut bed = Bed::new();
    bed.refused.insert("a".to_owned());
    let now = bed.now;
    bed.node_with("a", |claim, node| mark(claim, node, now));
    assert_eq!(bed.start(), ["delete a"]);
    let output = bed.hear([]);
    for _ in 0..50 {
        let effect = Box::new(Effect::DeleteClaim(bed.target("a")));
        let error = WriteError::Invalid { message: "forbidden".to_owned() };
        let again = bed.hear([Input::WriteFailed { effect, error }]);
        assert_eq!(bed.carry_out(again), [""; 0]);
    }
    assert!(output.wake.is_some_and(|at| at <= now + SignedDuration::from_secs(10)));
    let asked = bed.run(60);
    assert!((4..=6).contains(&asked.len()), "{asked:?}: it is still to go");
    bed.refused.clear();
    assert_eq!(bed.run(20), ["delete a"]);
}

#[test]
fn a_deletion_that_a_busy_server_did_not_do_is_repeated_after_a_second() {
    let mut bed = Bed::new();
    let now = bed.now;
    bed.node_with("a", |claim, node| mark(claim, node, now));
    let output = bed.hear([Input::Synced]);
    let asked = output.effects.into_iter().find(|effect| matches!(effect, Effect::DeleteClaim(_))).unwrap();
    let error = WriteError::Unavailable { message: "busy".to_owned() };
    let output = bed.hear([Input::WriteFailed { effect: Box::new(asked), error }]);
    assert_eq!(bed.carry_out(output), [""; 0]);
    assert_eq!(bed.run(2), ["delete a"]);
}

/// It was tainted and untainted again with every round, and no other empty node went.
#[test]
fn an_empty_node_that_cannot_be_marked_holds_back_no_other_and_is_left_alone_for_a_while() {
    let mut bed = Bed::new();
    bed.node("a");
    bed.node("b");
    bed.start();
    bed.refused_claims.insert("b".to_owned());
    assert_eq!(bed.run(40), ["taint a", "taint b"], "b is refused its condition and its annotation");
    let asked = bed.run(30);
    assert_eq!(asked, ["delete a", "untaint b"]);
    assert_eq!(bed.verdict("b"), "not_marked");
    let asked = bed.run(600);
    let taints = asked.iter().filter(|asked| *asked == "taint b").count();
    assert!((2..=4).contains(&taints), "{asked:?}");
    bed.refused_claims.clear();
    assert!(bed.run(600).contains(&"delete b".to_owned()));
}

/// While a roll-out made one claim after the other, pods that waited got nothing: there was always one to be launched.
#[test]
fn a_pod_that_waits_gets_its_node_though_claims_are_made_all_the_time() {
    let mut bed = Bed::new();
    bed.start();
    let mut created = Vec::new();
    for second in 0..60 {
        if second >= 4 {
            bed.coming(&format!("x{}", second - 4), Some("4"));
        }
        bed.coming(&format!("x{second}"), None);
        if second == 10 {
            let output = bed.pod("w", None, |_| {});
            bed.carry_out(output);
        }
        let asked = bed.run(1);
        created.extend(asked.iter().filter(|asked| asked.starts_with("create")).map(|_| second));
        if bed.has_place("w") {
            assert!((20..=30).contains(&second), "{second}");
            return;
        }
    }
    panic!("the pod still waits: {created:?}");
}

/// Nobody asked for it again until the next catalogue, minutes later.
#[test]
fn a_pod_whose_claim_was_slow_to_launch_and_came_too_small_gets_another() {
    let mut bed = Bed::new();
    bed.start();
    let output = bed.pod("w", None, |_| {});
    bed.carry_out(output);
    let asked = bed.run(2);
    let first = asked[0].strip_prefix("create ").unwrap();
    bed.coming(first, None);
    assert_eq!(bed.run(30), [""; 0]);
    bed.coming(first, Some("0"));
    let asked = bed.run(15);
    assert!(asked.len() == 1 && asked[0].starts_with("create "), "{asked:?}");
}

/// The round that the deletion caused was made with the pods that the buffer had had, and none came after it.
#[test]
fn a_node_that_kept_room_for_a_buffer_goes_soon_after_the_buffer() {
    let mut bed = Bed::new();
    bed.node("a");
    bed.buffer();
    bed.start();
    assert_eq!(bed.run(120), [""; 0]);
    assert_eq!(bed.verdict("a"), "buffers_here");
    bed.see(Change::CapacityBuffer(ObjectName::new("default", "room"), None));
    assert_eq!(bed.run(30), ["taint a", "delete a"]);
}

#[test]
fn a_round_is_made_when_something_can_be_launched_again_that_was_avoided() {
    let mut bed = Bed::new();
    bed.node("a");
    bed.pod("w", Some("a"), |_| {});
    bed.start();
    bed.run(120);
    let (provider_id, cause) = (Arc::from("i-a"), InterruptionCause::SpotReclaimed);
    bed.hear([Input::Interrupted(Interruption { provider_id, cause, notice: SignedDuration::from_mins(2) })]);
    bed.run(170);
    let before = bed.looks;
    bed.run(20);
    assert_eq!(bed.looks, before + 1);
}

#[test]
fn a_resized_pod_is_news_for_disruption_and_its_heartbeat_is_not() {
    let mut bed = Bed::new();
    bed.node("a");
    let check = |bed: &mut Bed, edit: &dyn Fn(&mut Pod), rounds: usize| {
        bed.pod("w", Some("a"), |_| {});
        bed.run(60);
        let before = bed.looks;
        bed.pod("w", Some("a"), edit);
        bed.run(20);
        assert_eq!(bed.looks, before + rounds);
    };
    bed.start();
    check(&mut bed, &|_| {}, 0);
    check(&mut bed, &|pod| pod.requests = ResourceList::new(), 1);
}
