//! Whatever the cluster looks like: no round breaks a promise.

use std::collections::BTreeMap;
use std::sync::Arc;

use kerf_disruption::{Action, Method, Proposal, Reason, Round, Verdict};
use kerf_model::budget::Allowance;
use kerf_model::cluster::Pod;
use kerf_model::maintenance;
use kerf_model::price::Price;
use kerf_model::resources::ResourceList;
use proptest::prelude::*;

use crate::fixture::{Fixture, show};

const TYPES: &str = "type small cpu=4 price=0.10 kind=spot,on-demand
    type medium cpu=8 price=0.19 kind=spot,on-demand
    type large cpu=16 price=0.41 kind=on-demand
    ";

fn pool() -> impl Strategy<Value = String> {
    let budget = prop_oneof![Just("100%"), Just("1"), Just("2"), Just("30%"), Just("1:Drifted"), Just("0:Empty")];
    let policy = prop_oneof![
        Just("WhenEmptyOrUnderutilized"),
        Just("WhenEmptyOrUnderutilized"),
        Just("Balanced"),
        Just("WhenEmpty")
    ];
    let words = prop_oneof![
        Just(""),
        Just(""),
        Just("after=5m"),
        Just("limit:cpu=40"),
        Just("limit:nodes=6"),
        Just("disabled")
    ];
    (budget, policy, words).prop_map(|(budget, policy, words)| format!("budget={budget} policy={policy} {words}"))
}

fn node() -> impl Strategy<Value = String> {
    let kind = prop_oneof![Just("type=small cpu=4"), Just("type=medium cpu=8"), Just("type=large cpu=16")];
    let zone = prop_oneof![Just("a"), Just("b")];
    let state = prop_oneof![
        8 => Just(""), 2 => Just("drifted"), 1 => Just("drifted tgp=5m"), 1 => Just("pod-event=1m"), 1 => Just("nominated"),
        1 => Just("uninitialized"), 1 => Just("unready"), 1 => Just("deleting"), 1 => Just("sick:Ready=False/Kubelet/20m"),
        1 => Just("sick:GPU=False/Xid79/20m"), 1 => Just("annotation:do-not-disrupt=true"), 1 => Just("unlaunched"),
    ];
    let pod = (
        prop_oneof![Just("1"), Just("500m"), Just("2"), Just("3")],
        prop_oneof![
            6 => Just("label:app=web"), 2 => Just("label:app=db"), 1 => Just("label:app=web spread:zone:1:app=web"),
            1 => Just("label:app=db apart:host:app=db"), 1 => Just("protected"), 1 => Just("owner=DaemonSet"),
        ],
    );
    let pods = prop::collection::vec(pod, 0..4);
    (prop_oneof![3 => Just("p"), 1 => Just("q")], kind, zone, state, pods).prop_map(
        |(pool, kind, zone, state, pods)| {
            let mut text = format!("node NAME pool={pool} {kind} zone={zone} {state}\n");
            let room: i64 = kind.rsplit_once('=').map_or(0, |(_, cpu)| cpu.parse::<i64>().unwrap() * 1000);
            let mut used = 0;
            for (at, (cpu, words)) in pods.into_iter().enumerate() {
                let milli = cpu
                    .strip_suffix('m')
                    .map_or_else(|| cpu.parse::<i64>().unwrap() * 1000, |milli| milli.parse().unwrap());
                if used + milli <= room && state != "unlaunched" {
                    used += milli;
                    text.push_str(&format!("pod NAME-{at} on=NAME cpu={cpu} {words}\n"));
                }
            }
            text
        },
    )
}

fn cluster() -> impl Strategy<Value = String> {
    let settings =
        prop_oneof![Just("repair"), Just("repair spot-to-spot"), Just("repair compatible"), Just("repair floor=0/0")];
    let pdb = prop_oneof![
        Just(""),
        Just("pdb web allowed=1 select:app=web"),
        Just("pdb web allowed=2 select:app=web"),
        Just("pdb db allowed=0 select:app=db")
    ];
    let window = prop_oneof![4 => Just(""), 1 => Just("window w action=Drift"), 1 => Just("window w action=Consolidation select:zone=a")];
    let nodes = prop::collection::vec(node(), 1..12);
    (settings, pool(), pool(), pdb, window, nodes).prop_map(|(settings, p, q, pdb, window, nodes)| {
        let nodes: String =
            nodes.iter().enumerate().map(|(at, text)| text.replace("NAME", &format!("n{at:02}"))).collect();
        format!("settings {settings}\n{TYPES}\npool p {p}\npool q {q}\n{pdb}\n{window}\n{nodes}")
    })
}

fn every_claim_has_one_verdict(fixture: &Fixture, round: &Round) {
    let claims: Vec<_> = fixture.snapshot.claims().map(|claim| Arc::clone(claim.name())).collect();
    assert_eq!(round.verdicts.keys().cloned().collect::<Vec<_>>(), claims);
    let mut taken: Vec<_> = round.proposals.iter().flat_map(Proposal::claims).collect();
    taken.sort();
    assert!(taken.windows(2).all(|pair| pair[0] != pair[1]), "a node goes once");
    for (name, verdict) in &round.verdicts {
        assert_eq!(matches!(verdict, Verdict::Go { .. }), taken.contains(&name), "{name}");
    }
}

fn budgets_are_kept(fixture: &Fixture, round: &Round) {
    let mut used: BTreeMap<(Arc<str>, Reason), u32> = BTreeMap::new();
    for proposal in &round.proposals {
        for candidate in &proposal.candidates {
            let counts = fixture
                .snapshot
                .node(&candidate.node.name.name)
                .is_some_and(|node| node.meta.label("karpenter.sh/initialized") == Some("true"));
            *used.entry((Arc::clone(&candidate.pool), proposal.reason)).or_default() += u32::from(counts);
        }
    }
    for ((pool, reason), count) in &used {
        assert!(
            Allowance::AtMost(*count) <= round.budgets[&(Arc::clone(pool), *reason)].remaining(),
            "{pool} {reason}"
        );
        let total: u32 = used.iter().filter(|((own, _), _)| own == pool).map(|(_, count)| count).sum();
        let reasons = used.keys().filter(|(own, _)| own == pool);
        let most = reasons.map(|key| round.budgets[key].remaining()).max().unwrap();
        assert!(Allowance::AtMost(total) <= most, "{pool}: {total} in all");
    }
}

fn evictions_are_allowed(fixture: &Fixture, round: &Round) {
    for pdb in fixture.snapshot.disruption_budgets() {
        let guards = |pod: &Arc<Pod>| pdb.selector.as_ref().unwrap().matches(&pod.meta.labels) && pod.is_active();
        let mut used = 0;
        for proposal in round.proposals.iter().filter(|own| own.method != Method::Repair) {
            for candidate in &proposal.candidates {
                let claim = fixture.snapshot.claim(&candidate.claim.name.name).unwrap();
                if claim.node.termination_grace_period.is_none() {
                    let pods = fixture.snapshot.pods_on(&candidate.node.name.name).filter(|pod| guards(pod)).count();
                    used += u32::try_from(pods).unwrap().min(pdb.disruptions_allowed.max(1));
                }
            }
        }
        assert!(used <= pdb.disruptions_allowed, "{}: {used}", pdb.meta.name);
    }
}

fn windows_are_kept(fixture: &Fixture, round: &Round) {
    for proposal in &round.proposals {
        let action = match proposal.method {
            Method::Repair => maintenance::Action::Repair,
            Method::Emptiness => maintenance::Action::EmptyConsolidation,
            Method::StaticDrift | Method::Drift => maintenance::Action::Drift,
            Method::Rebalance => maintenance::Action::Rebalance,
            Method::MultiNode | Method::SingleNode => maintenance::Action::NonEmptyConsolidation,
        };
        for candidate in &proposal.candidates {
            let node = fixture.snapshot.node(&candidate.node.name.name).unwrap();
            for window in fixture.snapshot.maintenance_windows() {
                assert!(!window.denies(action, &node.meta.labels, fixture.now), "{}", window.name);
            }
        }
    }
}

fn consolidation_costs_less_at_worst(round: &Round) {
    for proposal in round.proposals.iter().filter(|own| own.method.is_consolidation()) {
        if let Action::Replace(claims) = &proposal.action {
            let worst = claims.iter().map(|claim| claim.options.iter().map(|option| option.worst_price).max().unwrap());
            let worst = worst.fold(Price::ZERO, |sum, price| sum.checked_add(price).unwrap());
            let now = proposal.candidates.iter().map(|own| own.price.unwrap());
            let now = now.fold(Price::ZERO, |sum, price| sum.checked_add(price).unwrap());
            assert!(worst < now, "{worst} for {now}");
        }
    }
}

fn every_pod_that_moves_has_room(mut fixture: Fixture, round: &Round) {
    fixture.apply(round);
    for node in fixture.snapshot.nodes() {
        let pods = fixture.snapshot.pods_on(node.name()).filter(|pod| !pod.is_terminal());
        let used = pods.fold(ResourceList::new(), |sum, pod| sum.plus(&pod.requests).unwrap());
        assert!(used.fits(&node.allocatable), "{}: {used} of {}", node.name(), node.allocatable);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    #[test]
    fn a_round_breaks_no_promise(text in cluster()) {
        let fixture = Fixture::read(&text);
        let round = fixture.decide();
        let again = fixture.decide();
        prop_assert_eq!(show(&round), show(&again), "the same view gives the same round");
        every_claim_has_one_verdict(&fixture, &round);
        budgets_are_kept(&fixture, &round);
        if !text.contains("compatible") {
            evictions_are_allowed(&fixture, &round);
        }
        windows_are_kept(&fixture, &round);
        consolidation_costs_less_at_worst(&round);
        every_pod_that_moves_has_room(fixture, &round);
    }

    /// Executing rounds until there is nothing to do comes to an end, and costs less each time but for drift and repair.
    #[test]
    fn rounds_come_to_rest(text in cluster()) {
        let text = text.replace("drifted", "").replace("settings repair", "settings");
        let mut fixture = Fixture::read(&text);
        let mut cost = i64::MAX;
        for _ in 0..30 {
            let round = fixture.decide();
            let before = hourly_cost(&fixture);
            prop_assert!(before <= cost);
            cost = before;
            if round.proposals.is_empty() {
                return Ok(());
            }
            fixture.apply(&round);
        }
        prop_assert!(false, "still moving after 30 rounds");
    }
}

fn hourly_cost(fixture: &Fixture) -> i64 {
    let price = |name: &str, spot: bool| match name {
        "small" => {
            if spot {
                70_000
            } else {
                100_000
            }
        }
        "medium" => {
            if spot {
                133_000
            } else {
                190_000
            }
        }
        _ => 410_000,
    };
    let claims = fixture.snapshot.claims();
    claims
        .map(|claim| {
            let spot = claim.meta.label("karpenter.sh/capacity-type") == Some("spot");
            price(claim.meta.label("node.kubernetes.io/instance-type").unwrap(), spot)
        })
        .sum()
}
