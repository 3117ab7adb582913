use crate::fixture::Fixture;

#[track_caller]
fn check(text: &str, expected: &str) {
    let schedule = Fixture::read(text).solve();
    let why: Vec<_> = schedule.unplaced.iter().map(|(_, why)| why.to_string()).collect();
    assert_eq!(why, [expected]);
}

#[test]
fn a_reason_names_what_was_asked_and_what_there_is() {
    let pool = "type small cpu=2 memory=4Gi\ntype large cpu=8 memory=2Gi\npool general require:zone=a,b\n";
    check(
        &format!("{pool} pod p cpu=1 select:zone=c"),
        "pool general: topology.kubernetes.io/zone In [c] is asked for, topology.kubernetes.io/zone In [a b] is offered",
    );
    check(&format!("{pool} pod p cpu=9 memory=1Gi"), "pool general: 9 cpu is needed, large comes nearest with 8");
    check(
        &format!("{pool} daemon logs cpu=500m\n pod p cpu=8 memory=1Gi"),
        "pool general: 8500m cpu is needed, large comes nearest with 8",
    );
    check(
        "type small\npool general limit:cpu=3\npod p cpu=1",
        "pool general: its limit leaves 3 cpu, the smallest node that would do has 4",
    );
    check(
        "type small\npool a taint:team=x:NoSchedule\npool b taint:soft:NoExecute\npod p cpu=1",
        "pool a: its taint team=x:NoSchedule is not tolerated; pool b: its taint soft:NoExecute is not tolerated",
    );
    check(
        "type small\npool general\npod p cpu=1 spread:team:1:app=a",
        "pool general: no team satisfies the pod's topology spread with a skew of at most 1",
    );
    check("pod p cpu=1", "no host has room and no pool may launch nodes");
}

/// Sheet 02, case 8.
#[test]
fn a_label_that_is_nearly_right_gets_a_hint() {
    check(
        "type small\npool general\npod p cpu=1 select:node.io/zone=a",
        "pool general: nothing defines the label node.io/zone (is topology.kubernetes.io/zone meant?)",
    );
}

/// Sheet 02, case 76.
#[test]
fn a_million_cores_are_a_typing_error() {
    check(
        "type small\npool general\npod p cpu=2M",
        "pool general: 2M cpu is needed, small comes nearest with 4 (is m meant, not M?)",
    );
}

/// Sheet 02, case 9 and §29.1.
#[test]
fn a_pod_that_contradicts_itself_is_told_so() {
    check(
        "type small\npool general\npod p cpu=1 select:team=a require:team=b",
        "pool general: no value of team meets all that is asked of it",
    );
}

#[test]
fn of_several_alternatives_the_one_that_came_furthest_is_told() {
    check(
        "type small\npool general\npod p cpu=9 term:zone=a term:team=x",
        "pool general: 9 cpu is needed, small comes nearest with 4",
    );
}

#[test]
fn pods_alike_share_one_reason() {
    let schedule = Fixture::read("type small\npool general\npod p cpu=9 x3").solve();
    let [(_, a), (_, b), (_, c)] = schedule.unplaced.as_slice() else { panic!("three pods") };
    assert!(std::sync::Arc::ptr_eq(a, b) && std::sync::Arc::ptr_eq(b, c));
}
