//! Commands step by step: sheet 03 §11, cases 33-35, 40-42, 79.

use super::*;

use std::collections::{BTreeMap, BTreeSet};

use kerf_disruption::KeepReason;
use kerf_model::change::Change;
use kerf_model::cluster::{
    ClaimStatus, Condition, Conditions, Node, ObjectName, Pod, PodPhase, StoredWindow, WindowStatus,
};
use kerf_model::maintenance::{Action, MaintenanceWindow};
use kerf_model::taint::Taint;
use kerf_testkit::{meta, new_claim};

const LIMIT: SignedDuration = SignedDuration::from_mins(10);

/// Two nodes, `a` and `b`, that make way for one or more new ones.
struct Bed {
    snapshot: ClusterSnapshot,
    command: Command,
    now: Timestamp,
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + second).unwrap()
}

fn target(name: &str) -> Target {
    Target { name: ObjectName::of_cluster(name), uid: Arc::from(format!("uid-{name}")) }
}

fn command(replacements: &[&str], bound: Option<SignedDuration>) -> Command {
    let repair = bound.map(|bound| Repair { condition: Arc::from("Ready"), bound: Some(bound) });
    let going = |name: &str| Going { claim: target(name), pool: Arc::from("p"), repair: repair.clone(), policy: None };
    let replacement = |name: &&str| Replacement::new(Arc::from(*name), Some(Box::new(new_claim(name))));
    Command {
        id: ProposalId::from("c1"),
        method: Method::Drift,
        reason: Reason::Drifted,
        decision: if replacements.is_empty() { Decision::Delete } else { Decision::Replace },
        candidates: vec![going("a"), going("b")],
        replacements: replacements.iter().map(replacement).collect(),
        started: at(0),
        phase: Phase::Marking,
        marking: None,
        taken_up: None,
    }
}

impl Bed {
    fn new(replacements: &[&str]) -> Self {
        Self::bounded(replacements, None)
    }

    fn bounded(replacements: &[&str], bound: Option<SignedDuration>) -> Self {
        let command = command(replacements, bound);
        let mut bed = Self { snapshot: ClusterSnapshot::default(), command, now: at(0) };
        for name in ["a", "b"] {
            bed.claim(name, |_| {});
            bed.node(name, false);
        }
        bed
    }

    fn claim(&mut self, name: &str, edit: impl FnOnce(&mut NodeClaim)) {
        let at = ObjectName::of_cluster(name);
        let mut claim = match self.snapshot.claim(name) {
            Some(known) => NodeClaim::clone(known),
            None => {
                let provider_id = Some(Arc::from(format!("i-{name}")));
                NodeClaim { status: ClaimStatus { provider_id, ..ClaimStatus::default() }, ..kerf_testkit::claim(name) }
            }
        };
        edit(&mut claim);
        self.snapshot.apply(Change::NodeClaim(at, Some(Arc::new(claim))));
    }

    fn gone(&mut self, name: &str) {
        self.snapshot.apply(Change::NodeClaim(ObjectName::of_cluster(name), None));
    }

    fn node(&mut self, name: &str, tainted: bool) {
        let node = Node {
            provider_id: Some(Arc::from(format!("i-{name}"))),
            taints: tainted.then(Taint::disrupted).into_iter().collect(),
            ..kerf_testkit::node(name)
        };
        self.snapshot.apply(Change::Node(ObjectName::of_cluster(name), Some(Arc::new(node))));
    }

    fn pod(&mut self, node: &str) {
        let (node_name, phase) = (Some(Arc::from(node)), PodPhase::Running);
        let pod = Pod { node_name, phase, ..kerf_testkit::pod("w") };
        self.snapshot.apply(Change::Pod(pod.meta.name.clone(), Some(Arc::new(pod))));
    }

    /// The marks that the command wants are seen.
    fn marked(&mut self) {
        let mut marks = Marks::default();
        self.command.mark(&mut marks);
        for name in ["a", "b"] {
            let mark = marks.get(name).cloned();
            let Some(Mark { order: Order::Leave { record, deadline }, .. }) = mark else {
                panic!("no mark for {name}")
            };
            self.claim(name, |claim| {
                claim.meta.annotations.insert(Arc::from(annotation::COMMAND), record);
                if let Some(deadline) = deadline {
                    let key = Arc::from(annotation::TERMINATION_TIMESTAMP);
                    claim.meta.annotations.insert(key, Arc::from(deadline.to_string()));
                }
                claim.status.conditions = Conditions(vec![condition(kind::DISRUPTION_REASON)]);
            });
            self.node(name, true);
        }
    }

    fn made(&mut self, name: &str) {
        let replaces =
            Replaces { id: ProposalId::from("c1"), candidates: vec![Arc::from("uid-a"), Arc::from("uid-b")] };
        self.claim(name, |claim| {
            claim.meta.annotations.insert(Arc::from(annotation::REPLACES), Arc::from(replaces.to_string()));
        });
    }

    fn joined(&mut self, name: &str) {
        self.claim(name, |claim| claim.status.conditions = Conditions(vec![condition(kind::REGISTERED)]));
    }

    fn ready(&mut self, name: &str) {
        self.made(name);
        self.claim(name, |claim| claim.status.conditions = Conditions(vec![condition(kind::INITIALIZED)]));
    }

    fn deleting(&mut self, name: &str) {
        let now = self.now;
        self.claim(name, |claim| claim.meta.deleting = Some(now));
    }

    /// Everything that is wanted now, events aside.
    fn look(&mut self) -> String {
        let mut lines = Vec::new();
        loop {
            let step = self.command.advance(&self.snapshot, LIMIT, self.now);
            lines.extend(step.effects.iter().filter_map(|effect| match effect {
                Effect::CreateClaim(claim) => Some(format!("create {}", claim.name)),
                Effect::DeleteClaim(target) => Some(format!("delete {target}")),
                Effect::Publish(_) => None,
                other => panic!("unexpected: {other:?}"),
            }));
            match step.ended {
                Some(Outcome::Done) => lines.push("done".to_owned()),
                Some(Outcome::RolledBack(failure)) => lines.push(format!("rolled back: {}", failure.label())),
                None if step.is_moved => continue,
                None => {}
            }
            return lines.join(", ");
        }
    }

    /// The reasons of the events of one look, with the object.
    fn told(&mut self) -> Vec<String> {
        let step = self.command.advance(&self.snapshot, LIMIT, self.now);
        let events = step.effects.iter().filter_map(|effect| match effect {
            Effect::Publish(event) => Some(event),
            _ => None,
        });
        events.map(|it| format!("{} on {:?} {}", it.reason, it.about.kind, it.about.target)).collect()
    }

    fn restart(&mut self) {
        let mut commands = Command::resume(&self.snapshot);
        assert_eq!(commands.len(), 1);
        self.command = commands.remove(0);
    }
}

fn condition(kind: &str) -> Condition {
    kerf_testkit::condition(kind, at(-60))
}

/// Cases 33, 35.
#[test]
fn old_nodes_go_only_after_every_replacement_can_take_pods() {
    let mut bed = Bed::new(&["x", "y", "z"]);
    assert_eq!(bed.look(), "", "nothing is made before the marks are seen");
    bed.marked();
    assert_eq!(bed.look(), "create x, create y, create z");
    for name in ["x", "y", "z"] {
        bed.made(name);
    }
    assert_eq!(bed.look(), "");
    bed.ready("x");
    bed.ready("z");
    assert_eq!(bed.look(), "", "two of three are not enough");
    bed.joined("y");
    assert_eq!(bed.look(), "", "nor one that has joined and is not initialised");
    bed.ready("y");
    assert_eq!(bed.look(), "delete a, delete b");
    bed.deleting("a");
    assert_eq!(bed.look(), "delete b", "a deletion that is not seen is asked for again");
    bed.deleting("b");
    assert_eq!(bed.look(), "");
    bed.gone("a");
    bed.gone("b");
    assert_eq!(bed.look(), "done");
}

/// Sheet 08 L10: whoever looks every two seconds sees the replacement beside the node that it replaces.
#[test]
fn a_replacement_proves_itself_for_a_moment_before_the_old_node_goes() {
    let mut bed = Bed::new(&["x"]);
    bed.marked();
    bed.look();
    bed.made("x");
    let since = bed.now;
    bed.claim("x", |claim| {
        claim.status.conditions = Conditions(vec![Condition { since, ..condition(kind::INITIALIZED) }]);
    });
    assert_eq!(bed.look(), "");
    bed.now = later(since, PROVES_ITSELF);
    assert_eq!(bed.look(), "delete a, delete b");
}

/// Sheet 03 case 89, end: what has begun is finished, whatever window opens meanwhile.
#[test]
fn a_window_that_opens_after_the_start_stops_nothing() {
    let mut bed = Bed::new(&["x"]);
    bed.marked();
    assert_eq!(bed.look(), "create x");
    let name = ObjectName::of_cluster("always");
    let spec = MaintenanceWindow {
        name: Arc::clone(&name.name),
        schedules: Vec::new(),
        outside_schedules: false,
        actions: BTreeSet::from(Action::ALL),
        selector: None,
        until: None,
    };
    let window = StoredWindow { meta: meta(name.clone()), spec, problem: None, status: WindowStatus::default() };
    bed.snapshot.apply(Change::MaintenanceWindow(name, Some(Arc::new(window))));
    bed.ready("x");
    assert_eq!(bed.look(), "delete a, delete b");
}

/// Case 34.
#[test]
fn nodes_that_need_no_replacement_go_when_their_marks_are_seen() {
    let mut bed = Bed::new(&[]);
    assert_eq!(bed.look(), "");
    bed.marked();
    assert_eq!(bed.look(), "delete a, delete b");
}

/// One node that a webhook would not let be tainted kept all empty nodes of all pools waiting, marked and of no use.
#[test]
fn a_deletion_goes_on_without_a_node_that_cannot_be_marked() {
    let mut bed = Bed::new(&[]);
    bed.look();
    bed.marked();
    bed.node("b", false);
    bed.now = at(1);
    assert_eq!(bed.look(), "");
    bed.now = at(30);
    assert_eq!(bed.look(), "", "half a minute since the last one was marked");
    bed.now = at(31);
    assert_eq!(bed.look(), "delete a");
    let mut marks = Marks::default();
    bed.command.mark(&mut marks);
    assert!(marks.get("b").is_none());
    bed.gone("a");
    assert_eq!(bed.look(), "done");
}

#[test]
fn a_deletion_none_of_whose_nodes_can_be_marked_is_given_up_and_a_replacement_waits_its_whole_time() {
    let mut bed = Bed::new(&[]);
    bed.look();
    bed.now = at(30);
    assert_eq!(bed.look(), "rolled back: not_marked_in_time");
    let mut bed = Bed::new(&["x"]);
    bed.marked();
    bed.node("b", false);
    bed.now = at(599);
    assert_eq!(bed.look(), "");
    bed.now = at(600);
    assert_eq!(bed.look(), "rolled back: not_marked_in_time");
}

/// Case 42: what was asked for and is not seen is waited for, and asked for again under the same name.
#[test]
fn a_replacement_that_is_not_seen_is_asked_for_again_and_not_given_up() {
    let mut bed = Bed::new(&["x"]);
    bed.marked();
    assert_eq!(bed.look(), "create x");
    bed.now = at(9);
    assert_eq!(bed.look(), "");
    bed.now = at(10);
    assert_eq!(bed.look(), "create x");
    bed.command.create_failed("x", bed.now);
    bed.now = at(11);
    assert_eq!(bed.look(), "create x", "a refusal need not be waited for");
}

/// A webhook that was down had one creation after the other to refuse, as fast as it could answer.
#[test]
fn a_creation_that_fails_is_repeated_after_a_second_and_then_ever_later() {
    let mut bed = Bed::new(&["x"]);
    bed.marked();
    let mut created = Vec::new();
    for tenth in 0..400 {
        bed.now = at(0) + SignedDuration::from_millis(tenth * 100);
        for _ in 0..50 {
            if bed.look() == "create x" {
                created.push(tenth / 10);
                bed.command.create_failed("x", bed.now);
            }
        }
    }
    assert_eq!(created, [0, 1, 3, 7, 15, 25, 35]);
}

/// Case 41.
#[test]
fn a_replacement_that_vanishes_rolls_back_and_those_that_nobody_uses_go() {
    let mut bed = Bed::new(&["x", "y"]);
    bed.marked();
    bed.look();
    bed.made("x");
    bed.made("y");
    bed.look();
    bed.gone("x");
    assert_eq!(bed.look(), "delete y");
    assert_eq!(bed.look(), "delete y", "lost");
    bed.deleting("y");
    assert_eq!(bed.look(), "rolled back: replacement_gone");
}

/// "Do better" 8: a replacement that pods run on already is a node like any other.
#[test]
fn a_replacement_that_hosts_pods_survives_the_roll_back() {
    let mut bed = Bed::new(&["x", "y"]);
    bed.marked();
    bed.look();
    bed.ready("x");
    bed.node("x", false);
    bed.pod("x");
    bed.made("y");
    bed.look();
    bed.gone("y");
    assert_eq!(bed.look(), "rolled back: replacement_gone");
}

/// Case 40.
#[test]
fn a_replacement_that_is_not_ready_in_time_rolls_back() {
    let mut bed = Bed::new(&["x"]);
    bed.marked();
    bed.look();
    bed.made("x");
    bed.now = at(599);
    assert_eq!(bed.look(), "");
    bed.now = at(600);
    assert_eq!(bed.look(), "delete x");
    bed.gone("x");
    assert_eq!(bed.look(), "rolled back: not_ready_in_time");
}

/// Sheet 04 §14: right after the roll-back a replacement that has joined is still there.
#[test]
fn a_replacement_that_has_joined_too_late_is_left_to_become_ready_after_the_roll_back() {
    let mut bed = Bed::new(&["x"]);
    bed.marked();
    bed.look();
    bed.made("x");
    bed.joined("x");
    bed.now = at(600);
    assert_eq!(bed.look(), "rolled back: not_ready_in_time");
    let claim = bed.snapshot.claim("x").unwrap();
    assert!(is_joining(claim));
    bed.ready("x");
    assert!(!is_joining(bed.snapshot.claim("x").unwrap()));
}

/// "Do better" 7.
#[test]
fn nothing_is_rolled_back_once_the_deletion_has_begun() {
    let mut bed = Bed::new(&["x"]);
    bed.marked();
    bed.look();
    bed.ready("x");
    assert_eq!(bed.look(), "delete a, delete b");
    bed.now = at(100_000);
    bed.gone("x");
    assert_eq!(bed.look(), "delete a, delete b");
}

#[test]
fn replacements_stay_when_one_of_the_nodes_goes_by_another_hand() {
    let mut bed = Bed::new(&["x", "y"]);
    bed.marked();
    bed.look();
    bed.made("x");
    bed.made("y");
    bed.look();
    bed.deleting("a");
    bed.gone("x");
    assert_eq!(bed.look(), "rolled back: replacement_gone", "and the pods of a have y to go to");
}

#[test]
fn a_replacement_that_the_server_refuses_ends_the_command_at_once() {
    let mut bed = Bed::new(&["x"]);
    bed.marked();
    bed.look();
    bed.command.refused("x", "spec is wrong");
    assert_eq!(bed.look(), "rolled back: replacement_refused");
}

/// Sheet 08 D8.
#[test]
fn a_bounded_drain_has_its_deadline_before_the_claim_goes() {
    let mut bed = Bed::bounded(&[], Some(SignedDuration::from_secs(60)));
    bed.marked();
    bed.now = at(5);
    assert_eq!(bed.look(), "", "the deadline counts from here, and is not written yet");
    bed.marked();
    assert_eq!(bed.look(), "delete a, delete b");
    let written = bed.snapshot.claim("a").and_then(|claim| written_deadline(claim));
    assert_eq!(written, Some(at(65)));
}

#[test]
fn a_new_process_takes_a_command_up_wherever_it_was() {
    let mut bed = Bed::new(&["x"]);
    bed.marked();
    bed.look();
    bed.made("x");
    bed.restart();
    assert_eq!(bed.look(), "", "it waits for the same replacement");
    assert_eq!((bed.command.started, bed.command.method), (at(0), Method::Drift));
    bed.ready("x");
    bed.restart();
    assert_eq!(bed.look(), "delete a, delete b");
    bed.deleting("a");
    bed.restart();
    assert_eq!(bed.look(), "delete b");
    bed.deleting("b");
    bed.restart();
    assert_eq!(bed.look(), "");
    bed.gone("a");
    bed.gone("b");
    assert_eq!(bed.look(), "done");
    assert!(Command::resume(&bed.snapshot).is_empty());
}

#[test]
fn a_command_whose_process_died_before_its_replacements_were_made_is_rolled_back() {
    let mut bed = Bed::new(&["x"]);
    bed.marked();
    bed.restart();
    assert_eq!(bed.look(), "rolled back: interrupted");
}

#[test]
fn a_pure_deletion_goes_on_with_the_nodes_that_were_marked() {
    let mut bed = Bed::new(&[]);
    bed.marked();
    bed.claim("b", |claim| claim.meta.annotations.clear());
    bed.restart();
    assert_eq!(bed.look(), "delete a");
}

/// The record is the first of three writes: a pod may have come between it and the taint.
#[test]
fn a_pure_deletion_none_of_whose_nodes_was_fully_marked_is_rolled_back() {
    let mut bed = Bed::new(&[]);
    bed.marked();
    bed.node("a", false);
    bed.claim("b", |claim| claim.status.conditions = Conditions::default());
    bed.restart();
    assert_eq!(bed.look(), "rolled back: interrupted");
}

#[test]
fn a_replacement_whose_nodes_lost_their_marks_is_asked_once_more_and_stands_or_falls_as_a_whole() {
    let doubtful = || {
        let mut bed = Bed::new(&["x"]);
        bed.marked();
        bed.look();
        bed.ready("x");
        bed.node("a", false);
        bed.restart();
        assert_eq!(bed.look(), "", "the marks come first");
        bed.marked();
        assert_eq!(bed.look(), "", "and then the question");
        bed
    };
    let mut bed = doubtful();
    bed.command.heard(&BTreeMap::new());
    assert_eq!(bed.look(), "delete a, delete b");
    let mut bed = doubtful();
    bed.command.heard(&[(Arc::from("b"), KeepReason::DoNotConsolidate)].into());
    assert_eq!(bed.look(), "delete x");
    bed.gone("x");
    assert_eq!(bed.look(), "rolled back: overtaken");
}

/// A cluster was handed to the reference in the middle of a roll-out, which was undone there, and came back days later: the
/// old node was taken for one that has its replacement, and went.
#[test]
fn a_record_whose_marks_another_autoscaler_took_off_long_ago_is_void() {
    let mut bed = Bed::new(&["x"]);
    bed.marked();
    bed.look();
    bed.ready("x");
    for name in ["a", "b"] {
        bed.node(name, false);
        bed.claim(name, |claim| claim.status.conditions = Conditions::default());
    }
    bed.now = at(181);
    bed.restart();
    assert_eq!(bed.look(), "rolled back: interrupted", "and the new node stays");
}

#[test]
fn a_replacement_that_was_decided_a_while_ago_is_asked_once_more_by_a_new_process_only() {
    let mut bed = Bed::new(&["x"]);
    bed.marked();
    bed.look();
    bed.ready("x");
    bed.now = at(181);
    bed.restart();
    assert_eq!(bed.look(), "");
    bed.deleting("a");
    bed.restart();
    assert_eq!(bed.look(), "delete b", "they had been allowed to go");
    let mut bed = Bed::new(&["x"]);
    bed.marked();
    bed.look();
    bed.ready("x");
    bed.now = at(181);
    assert_eq!(bed.look(), "delete a, delete b");
}

/// A create that was on its way when the process died arrives after the roll-back.
#[test]
fn a_replacement_that_comes_after_its_command_is_gone_is_found_and_removed() {
    let names = |bed: &Bed, commands: &[Command]| -> BTreeSet<String> {
        orphans(&bed.snapshot, commands).iter().map(|claim| claim.name().to_string()).collect()
    };
    let mut bed = Bed::new(&["x"]);
    bed.made("x");
    assert!(names(&bed, std::slice::from_ref(&bed.command)).is_empty(), "its command runs");
    assert_eq!(names(&bed, &[]), BTreeSet::from(["x".to_owned()]));
    bed.marked();
    assert!(names(&bed, &[]).is_empty(), "the records say that its command runs");
    let mut bed = Bed::new(&["x"]);
    bed.ready("x");
    assert!(names(&bed, &[]).is_empty(), "a node that is ready is a node like any other");
    bed.made("y");
    bed.gone("a");
    bed.gone("b");
    assert!(names(&bed, &[]).is_empty(), "what it replaces is gone, as it should be");
}

/// Case 79.
#[test]
fn the_time_for_replacements_grows_with_the_nodes_in_hand() {
    let secs = |nodes| time_limit(nodes).as_secs();
    assert_eq!([100, 4_000].map(secs), [600, 600]);
    assert_eq!((secs(10_000), secs(40_000), secs(80_000)), (800, 3_200, 3_600));
}

/// Sheet 03 §14.
#[test]
fn a_command_tells_on_its_replacement_what_it_waits_for_and_on_the_old_node_that_it_goes() {
    let mut bed = Bed::new(&["x"]);
    assert!(bed.told().is_empty());
    bed.marked();
    assert!(bed.told().is_empty());
    bed.made("x");
    assert_eq!(bed.told(), ["DisruptionLaunching on NodeClaim x"]);
    bed.claim("x", |claim| claim.status.conditions = Conditions(vec![condition(kind::LAUNCHED)]));
    assert_eq!(bed.told(), ["DisruptionWaitingReadiness on NodeClaim x"]);
    bed.joined("x");
    bed.claim("x", |claim| claim.status.conditions.0.push(condition(kind::LAUNCHED)));
    assert_eq!(bed.told(), ["DisruptionWaitingReadiness on NodeClaim x"]);
    bed.ready("x");
    assert!(bed.told().is_empty());
    let goes = ["a", "b"].map(|name| ["NodeClaim", "Node"].map(|of| format!("DisruptionTerminating on {of} {name}")));
    assert_eq!(bed.told(), goes.concat());
}

/// The policy of the first candidate stood for all of them, also after a restart.
#[test]
fn each_claim_of_a_command_goes_with_the_policy_of_its_own_pool() {
    let mut bed = Bed::new(&[]);
    bed.command.candidates[0].policy = Some(ConsolidationPolicy::Balanced);
    bed.command.candidates[1].policy = Some(ConsolidationPolicy::WhenEmpty);
    bed.marked();
    bed.restart();
    let mut policies = BTreeMap::new();
    while policies.is_empty() {
        for note in bed.command.advance(&bed.snapshot, LIMIT, bed.now).notes {
            let Note::GivenUp { claim, cause: Cause::Disrupted { consolidation_policy, .. } } = note else {
                panic!("{note:?}")
            };
            policies.insert(claim.name.name.to_string(), consolidation_policy);
        }
    }
    let expected = [("a", ConsolidationPolicy::Balanced), ("b", ConsolidationPolicy::WhenEmpty)];
    assert_eq!(policies, expected.map(|(name, policy)| (name.to_owned(), Some(policy))).into());
}

/// Sheet 03 §11: a failure counts for each replacement that it leaves.
#[test]
fn a_command_knows_how_many_replacements_have_not_become_ready() {
    assert_eq!(Bed::new(&[]).command.missing(), 0);
    let mut bed = Bed::new(&["x", "y"]);
    assert_eq!(bed.command.missing(), 2);
    bed.marked();
    bed.look();
    bed.ready("x");
    bed.made("y");
    bed.look();
    assert_eq!(bed.command.missing(), 1);
    bed.gone("y");
    bed.look();
    bed.deleting("x");
    assert_eq!(bed.look(), "rolled back: replacement_gone");
    assert_eq!(bed.command.missing(), 1, "the one that is gone, not the one that nobody needs");
}
