//! Case 94: moves come to an end.

use jiff::SignedDuration;
use kerf_disruption::{Settings, ledger_entry};

use crate::fixture::Fixture;

/// Prices swing between two zones, as those of spot do: each hour the other zone is cheaper by a tenth. The reference
/// follows them for ever (its issue 8536 tells of fourteen hours of one replacement after another).
fn moves(settings: impl Fn(&mut Settings)) -> usize {
    let mut moves = 0;
    let (mut zone, mut ledger) = ("a", String::new());
    for hour in 0..14 {
        let (low, high) = if hour % 2 == 0 { ("b", "a") } else { ("a", "b") };
        let mut fixture = Fixture::read(&format!(
            "type small cpu=4 price:{low}=0.40 price:{high}=0.50
             pool p
             node n{moves} pool=p zone={zone} cpu=4 {ledger}
             pod web on=n{moves} cpu=3"
        ));
        settings(&mut fixture.settings);
        fixture.now += SignedDuration::from_mins(10) * hour;
        if let Some(proposal) = fixture.decide().proposals.first() {
            let going = proposal.claims().filter_map(|claim| fixture.snapshot.claim(claim)).map(AsRef::as_ref);
            let entry = ledger_entry(proposal.method, going, fixture.now).expect("it saves money");
            ledger = format!("claim-annotation:kerf.sh/consolidations={entry}");
            moves += 1;
            zone = low;
        }
    }
    moves
}

#[test]
fn case_94_prices_that_swing_are_not_followed_for_ever() {
    assert!(moves(|_| {}) <= 2);
    let unlimited = moves(|settings| settings.ledger.moves = 0);
    assert!(unlimited > 10, "without the ledger they are: {unlimited}");
}

#[test]
fn case_94_nearly_equal_prices_are_no_reason_to_move() {
    let text = "type small cpu=4 price:a=0.500 price:b=0.495\npool p\nnode a pool=p zone=a cpu=4\npod web on=a cpu=3";
    assert_eq!(Fixture::read(text).decide().verdicts["a"].label(), "below_floor");
}

/// Applying what a round proposes leads to a cluster in which the next round proposes nothing.
#[test]
fn a_shrunken_cluster_comes_to_rest_in_one_round() {
    let mut fixture = Fixture::read(
        "type small cpu=4 price=0.10
         pool p
         node a pool=p cpu=4
         pod x on=a cpu=1
         node b pool=p cpu=4
         pod y on=b cpu=1
         node c pool=p cpu=4
         pod z on=c cpu=1",
    );
    let round = fixture.decide();
    fixture.apply(&round);
    assert!(fixture.decide().proposals.is_empty());
}
