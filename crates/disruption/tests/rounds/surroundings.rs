//! What-ifs know what scheduling knows: the default spread of the cluster, and the pods of capacity buffers (sheet 02
//! §20 and §23, case 29).

use std::sync::Arc;

use kerf_disruption::{Proposal, Round, View, decide};
use kerf_model::change::Change;
use kerf_model::cluster::{ObjectName, Pod, Service, SpreadConstraint, Texts, WhenUnsatisfiable};
use kerf_model::effect::EventKind;
use kerf_model::label::{self, annotation};
use kerf_scheduling::{DefaultSpread, NO_DEFAULT_SPREAD};

use crate::fixture::{Fixture, judged, told};

/// With pods like this one, which nobody has bound, as those of a buffer.
fn with_buffer(text: &str, like: &str, count: usize) -> Round {
    let fixture = Fixture::read(text);
    let template = Fixture::read(like).snapshot.pod(&ObjectName::new("default", "room")).unwrap().clone();
    let copies: Vec<Arc<Pod>> = (0..count)
        .map(|at| {
            let mut pod = (*template).clone();
            pod.meta.name = ObjectName::new("default", format!("capacity-buffer-room-{at}"));
            pod.priority = i32::MIN;
            pod.meta.uid = Arc::from(format!("room-{at}"));
            pod.meta.annotations.insert(Arc::from(annotation::BUFFER_POD), Arc::from("true"));
            Arc::new(pod)
        })
        .collect();
    decide(&View { virtual_pods: &copies, ..fixture.view() })
}

/// Found by the reference's suite: nodes that had come for a buffer were deleted as empty before the buffer was scheduled
/// again. Where its pods would be is asked of the cluster as it is, and not remembered.
#[test]
fn case_29_a_node_that_holds_room_for_buffers_stays() {
    let text = "type small cpu=4
         pool p
         node a pool=p cpu=4
         node b pool=p cpu=4";
    let round = |count| with_buffer(text, "pod room cpu=3", count);
    let both = |round: &Round| [judged(round, "a"), judged(round, "b")];
    assert_eq!(both(&round(0)), ["a go emptiness", "b go emptiness"]);
    assert_eq!(both(&round(1)), ["a buffers_here", "b go emptiness"], "one is enough");
    assert_eq!(both(&round(2)), ["a buffers_here", "b buffers_here"]);
    assert_eq!(both(&round(9)), ["a buffers_here", "b buffers_here"], "as far as there is room");
    assert_eq!(
        told(&round(1), "a"),
        [(EventKind::Node, "Unconsolidatable"), (EventKind::NodeClaim, "Unconsolidatable")]
    );
}

/// Case 29, end.
#[test]
fn a_node_whose_buffer_has_room_elsewhere_goes() {
    let text = "type small cpu=4
         pool p
         node b pool=p cpu=4";
    assert_eq!(judged(&with_buffer(text, "pod room cpu=3", 1), "b"), "b buffers_here");
    let busy = "node a pool=p cpu=8
         pod web on=a cpu=4 protected";
    assert_eq!(judged(&with_buffer(&format!("{text}\n{busy}"), "pod room cpu=3", 1), "b"), "b go emptiness");
}

/// Its room moves like a pod, and may not be lost where the pool's limit leaves no new one.
#[test]
fn a_node_with_pods_and_room_for_a_buffer_goes_if_both_have_another_place() {
    let round = |cpu: u32| {
        let text = format!(
            "type small cpu=4 price=1
             pool p limit:cpu=4
             node a pool=p cpu=4
             pod x on=a cpu=1
             node b pool=p cpu={cpu}
             pod y on=b cpu=2 protected"
        );
        with_buffer(&text, "pod room cpu=2", 1)
    };
    assert_eq!(judged(&round(8), "a"), "a go single_node_consolidation");
    assert!(round(4).proposals.is_empty(), "a has the only room");
}

/// The node that goes has nothing of the buffer; where its pods land, the buffer has its room.
#[test]
fn pods_that_move_to_save_money_do_not_take_the_room_of_a_buffer_where_they_land() {
    let round = |room: &str| {
        let text = "type small cpu=4 price=1
             pool p
             node a pool=p cpu=4
             pod x on=a cpu=2
             pod z on=a cpu=1
             node b pool=p cpu=4
             pod y on=b cpu=1 protected";
        with_buffer(text, room, 1)
    };
    assert_eq!(
        judged(&round("pod room cpu=5"), "a"),
        "a go single_node_consolidation",
        "no node has room for it anyway"
    );
    let kept = round("pod room cpu=3");
    assert!(kept.proposals.is_empty(), "b has room for the pods of a or for the buffer: {:?}", kept.verdicts);
}

/// Spare room is a reason not to save money, and none to keep what is outdated.
#[test]
fn a_buffer_that_loses_its_room_for_good_does_not_hold_back_drift() {
    let text = "type small cpu=4 price=1
         pool p limit:cpu=4
         node a pool=p cpu=4 drifted=1h
         pod x on=a cpu=3
         node b pool=p cpu=4
         pod y on=b cpu=1 protected";
    assert_eq!(judged(&with_buffer(text, "pod room cpu=3", 1), "a"), "a go drift");
}

/// Drifted or sick, it was deleted at once, and until others had started the buffer had no room at all.
#[test]
fn a_node_that_holds_nothing_but_room_for_a_buffer_is_replaced_before_it_goes() {
    let launched = |text: &str, count: usize| -> Vec<String> {
        let round = with_buffer(text, "pod room cpu=3", count);
        let told = |proposal: &Proposal| {
            let names: Vec<_> = proposal.claims().map(ToString::to_string).collect();
            format!("{} {} by {}", proposal.method.label(), names.join(" "), proposal.replacements().len())
        };
        round.proposals.iter().map(told).collect()
    };
    let drifted = |limit: &str| {
        format!(
            "type small cpu=4 price=1
             pool p after=Never {limit}
             node a pool=p cpu=4 drifted=1h
             node b pool=p cpu=4 drifted=1h"
        )
    };
    assert_eq!(launched(&drifted(""), 2), ["drift a by 1", "drift b by 1"], "one for one");
    assert_eq!(launched(&drifted(""), 0), ["drift a by 0", "drift b by 0"]);
    assert_eq!(
        launched(&drifted("limit:cpu=8"), 2),
        ["drift a by 1", "drift b by 1"],
        "a node that goes does not count"
    );
    assert_eq!(
        launched(&drifted("limit:cpu=0"), 2),
        ["drift a by 0", "drift b by 0"],
        "no reason to keep what is outdated"
    );
    let sick = "settings repair
         type small cpu=4 price=1
         pool p after=Never
         node o1 pool=p cpu=1
         node o2 pool=p cpu=1
         node o3 pool=p cpu=1
         node o4 pool=p cpu=1
         node a pool=p cpu=4 sick:Ready=False/Kubelet/11m";
    assert_eq!(launched(sick, 1), ["repair a by 1"]);
}

#[test]
fn room_that_a_buffer_keeps_is_not_given_to_pods_that_need_not_move() {
    let text = "type small cpu=4 price=1
         pool p
         node a pool=p cpu=4
         pod x on=a cpu=1
         node b pool=p cpu=4
         pod y on=b cpu=1";
    assert_eq!(judged(&with_buffer(text, "pod room cpu=1", 0), "a"), "a go single_node_consolidation");
    assert_eq!(
        judged(&with_buffer(text, "pod room cpu=2", 1), "a"),
        "a go single_node_consolidation",
        "it fits as well"
    );
    let round = with_buffer(text, "pod room cpu=3", 2);
    assert!(round.proposals.is_empty(), "both nodes are needed: {:?}", round.verdicts);
}

#[test]
fn pods_that_spread_by_default_are_not_packed_into_one_zone() {
    let text = "type small cpu=4 price=1
         pool p
         node a pool=p cpu=4 zone=a
         pod x on=a cpu=1 label:app=web
         node b pool=p cpu=4 zone=b
         pod y on=b cpu=1 label:app=web";
    let mut fixture = Fixture::read(text);
    let name = ObjectName::new("default", "web");
    let mut meta = fixture.snapshot.pod(&ObjectName::new("default", "x")).unwrap().meta.clone();
    meta.name = name.clone();
    let service = Service { meta, selector: Some(Texts::from([(Arc::from("app"), Arc::from("web"))])) };
    fixture.snapshot.apply(Change::Service(name, Some(Arc::new(service))));
    let spread = DefaultSpread {
        constraints: vec![SpreadConstraint {
            max_skew: 1,
            topology_key: Arc::from(label::ZONE),
            when_unsatisfiable: WhenUnsatisfiable::DoNotSchedule,
            selector: None,
            min_domains: None,
            honors_node_affinity: true,
            honors_node_taints: false,
        }],
    };
    let packed = decide(&View { default_spread: &NO_DEFAULT_SPREAD, ..fixture.view() });
    assert_eq!(packed.proposals.len(), 1);
    let kept = decide(&View { default_spread: &spread, ..fixture.view() });
    assert!(kept.proposals.is_empty(), "{:?}", kept.verdicts);
}
