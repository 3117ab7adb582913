//! Cases 74 and 75: no search is cut short, and nothing that was found keeps the next look from looking.

use kerf_disruption::View;

use crate::fixture::{Fixture, show};

/// Three hundred nodes in three pools; `words` are for every node.
fn many(pool: &str, words: &str) -> String {
    let pools: String = ["p", "q", "r"].iter().map(|name| format!("pool {name} {pool}\n")).collect();
    let node = |at: usize| {
        let pool = ["p", "q", "r"][at % 3];
        format!("node n{at:03} pool={pool} cpu=4 {words}\npod w{at:03} on=n{at:03} cpu=3\n")
    };
    format!("type small cpu=4 price=0.10\n{pools}{}", (0..300).map(node).collect::<String>())
}

/// Case 74. The reference stops after a minute or three; nodes late in its order are never examined.
#[test]
fn case_74_every_candidate_of_a_large_cluster_is_examined_in_every_round() {
    let fixture = Fixture::read(&many("", ""));
    for _ in 0..2 {
        let round = fixture.decide();
        assert_eq!(round.verdicts.len(), 300);
        let unexamined = round.verdicts.values().filter(|verdict| verdict.label() != "no_cheaper").count();
        assert_eq!(unexamined, 0, "{}", show(&round));
        assert!(round.work.what_ifs + round.work.pruned >= 300, "{:?}", round.work);
    }
    // Drift goes through all of them as well, whatever became of those before.
    let round = Fixture::read(&many("after=Never", "drifted")).decide();
    assert_eq!(round.proposals.len(), 300);
}

/// Case 75. What the reference waits up to five minutes for is seen by the next look.
#[test]
fn case_75_a_round_that_found_nothing_hides_nothing_from_the_next() {
    let text = "type small cpu=4 price=0.10
         pool p
         node a pool=p cpu=4
         pod x on=a cpu=3
         node b pool=p cpu=4
         pod y on=b cpu=3";
    let nothing = |fixture: &Fixture| {
        let round = fixture.decide();
        assert!(round.proposals.is_empty(), "{}", show(&round));
        assert_eq!(round.work.candidates, fixture.decide().work.candidates, "the same again");
    };
    let goes = |mut fixture: Fixture, change: &str| {
        nothing(&fixture);
        fixture.change(change);
        assert!(!fixture.decide().proposals.is_empty(), "{change}");
    };
    // A pod that gets smaller, as one that is deleted.
    goes(Fixture::read(text), "pod y on=b cpu=1");
    // Held back by a budget, a window, a protected pod, a PodDisruptionBudget, a node that had not settled.
    let small = text.replace("cpu=3", "cpu=1");
    goes(Fixture::read(&small.replace("pool p", "pool p budget=0")), "pool p budget=1");
    goes(Fixture::read(&format!("{small}\nwindow w action=Consolidation")), "window w action=Drift");
    let protected = small.replace("cpu=1", "cpu=1 label:app=x protected");
    goes(Fixture::read(&protected), "pod x on=a cpu=1");
    let guarded = format!("{}\npdb x allowed=0 select:app=x", small.replace("cpu=1", "cpu=1 label:app=x"));
    goes(Fixture::read(&guarded), "pdb x allowed=1 select:app=x");
    goes(Fixture::read(&small.replace("cpu=4\n         pod", "cpu=4 unsettled\n         pod")), "node a pool=p cpu=4");
    // Prices.
    let fixture = Fixture::read(&text.replace("type small", "type small kind=on-demand"));
    nothing(&fixture);
    let cheaper = Fixture::read(&text.replace("type small", "type tiny cpu=4 price=0.01\ntype small")).types;
    let view = View { types: &cheaper, ..fixture.view() };
    assert!(!kerf_disruption::decide(&view).proposals.is_empty());
}
