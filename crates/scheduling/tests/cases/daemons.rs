use crate::fixture::{check, claims};

/// Sheet 02, case 27.
#[test]
fn a_claim_asks_for_its_pods_and_its_daemons() {
    let world = "type small cpu=4 memory=4Gi\npool general\ndaemon logs cpu=1 memory=1Mi\n";
    let requests = |pods: &str| claims(&format!("{world} {pods}"))[0].requests.to_string();
    assert_eq!(requests("pod a cpu=1 memory=1Mi"), "cpu=2 memory=2Mi pods=2");
    assert_eq!(requests("pod a cpu=1 memory=1Mi x2"), "cpu=3 memory=3Mi pods=3");
}

/// Sheet 02, case 28.
#[test]
fn daemons_count_only_on_the_types_they_run_on() {
    check(
        "type small cpu=4 memory=4Gi label:size=small
         type large cpu=8 memory=8Gi label:size=large
         pool general
         daemon few cpu=1 require:size=small
         daemon many cpu=10 require:size=large
         pod a cpu=1",
        "new general [small]: a",
    );
}

/// Sheet 02, case 29.
#[test]
fn the_port_of_a_daemon_is_taken_only_where_it_runs() {
    let world = "type small label:size=small\ntype large label:size=large\npool general\n";
    check(
        &format!("{world} daemon proxy cpu=1 port:8080 require:size=large\n pod a cpu=1 port:8080"),
        "new general [small]: a",
    );
    check(
        &format!("{world} daemon proxy cpu=1 port:8080\n pod a cpu=1 port:8080"),
        "none a: no_place general=host_port",
    );
}

/// Sheet 02, case 30 and §29.3.
#[test]
fn a_daemon_runs_wherever_one_of_its_alternatives_holds() {
    let world = "type small cpu=2
         pool blue label:team=blue
         pool green label:team=green
         daemon logs cpu=1 term:team=blue term:team=green\n";
    check(&format!("{world} pod a cpu=2 select:team=blue"), "none a: no_place blue=resources green=requirements");
    check(&format!("{world} pod a cpu=2 select:team=green"), "none a: no_place blue=requirements green=resources");
}

/// Sheet 02, case 31.
#[test]
fn a_soft_taint_of_the_pool_keeps_no_daemon_away() {
    let world = "type small cpu=2\npool general taint:soft:PreferNoSchedule\n";
    check(&format!("{world} daemon logs cpu=1\n pod a cpu=2"), "none a: no_place general=resources");
}

/// Sheet 02, case 32.
#[test]
fn a_daemon_that_waits_for_initialisation_is_counted_and_the_claim_does_not_say_so() {
    let planned = claims(
        "type small cpu=2
         pool general
         daemon late cpu=1 select:karpenter.sh/initialized=true
         pod a cpu=1",
    );
    let claim = planned[0].to_new_claim("x".into(), Default::default());
    assert_eq!(claim.requests.to_string(), "cpu=2 pods=2");
    let initialised = |key: &str| key.ends_with("initialized") || key.ends_with("registered");
    assert!(!claim.labels.keys().any(|key| initialised(key)));
    assert!(!claim.node.requirements.iter().any(|requirement| initialised(requirement.key())));
}

/// Sheet 02, case 33.
#[test]
fn a_node_keeps_room_for_daemons_that_have_not_started_and_no_more() {
    let world = "type small\npool general taint:never:NoSchedule\ndaemon logs cpu=1\n";
    check(&format!("{world} node n1 pool=general cpu=2\n pod a cpu=2"), "none a: no_place general=taint");
    check(
        &format!("{world} node n1 pool=general cpu=5\n pod d cpu=3 on=n1 owner=DaemonSet\n pod a cpu=2"),
        "node n1: a",
    );
}

/// §29.4: the least that daemons take is the least, whichever group comes first.
#[test]
fn a_claim_that_may_have_no_daemons_asks_for_none() {
    for order in
        ["type a label:size=small\ntype b label:size=large", "type b label:size=large\ntype a label:size=small"]
    {
        let planned = claims(&format!("{order}\npool general\ndaemon logs cpu=1 require:size=large\npod p cpu=1"));
        assert_eq!(planned[0].requests.to_string(), "cpu=1 pods=1");
        assert_eq!(planned[0].options.len(), 2);
    }
}

/// Sheet 02, §14. A LimitRange had given the daemon's pods two cpu that its template does not mention: every node was
/// launched too small, and the daemon threw out the pod for which it was launched.
#[test]
fn nodes_were_launched_without_room_for_what_a_limit_range_gives_daemons() {
    let world = "type small cpu=4\ntype large cpu=8\npool general\ndaemon logs memory=1Mi\nnode n1 cpu=4\n";
    check(&format!("{world} pod a cpu=3\n pod f cpu=2 on=n1"), "new general [large small]: a");
    let running = "pod old cpu=1 on=n1 owner=DaemonSet/logs created=10
                   pod new cpu=2 on=n1 owner=DaemonSet/logs created=20
                   pod going cpu=9 on=n1 owner=DaemonSet/logs created=30 deleting
                   pod other cpu=1 on=n1 owner=DaemonSet created=40";
    check(&format!("{world} {running}\n pod a cpu=3"), "new general [large]: a");
}
