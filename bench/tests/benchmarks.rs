//! The benchmarks' own parts: workloads that stay the same, a checker that bites, a bound that is one.

#![expect(clippy::unwrap_used, reason = "tests")]

use kerf_bench::bound::bound;
use kerf_bench::check::faults;
use kerf_bench::file::Problem;
use kerf_bench::scheduling::{dollars, measure};
use kerf_bench::settle::settle;
use kerf_bench::workload::Workload;
use kerf_model::cluster::Pod;
use kerf_model::price::Price;
use kerf_model::resources::ResourceList;
use kerf_scheduling::{Policy, Schedule};

fn text(name: &str) -> Vec<u8> {
    let mut text = Vec::new();
    name.parse::<Workload>().unwrap().write(&mut text).unwrap();
    text
}

fn problem(name: &str) -> Problem {
    Problem::from_lines(text(name).as_slice()).unwrap()
}

fn pending(problem: &Problem) -> Vec<&Pod> {
    problem.cluster.pods().map(AsRef::as_ref).filter(|pod| pod.is_provisionable()).collect()
}

const SMALL: [&str; 7] = [
    "diverse-1",
    "diverse-7",
    "diverse-60",
    "preferences-30",
    "preferences-ignored-30",
    "kwok-wide-deployments",
    "kwok-interference",
];

#[test]
fn a_workload_is_the_same_file_every_time() {
    for name in SMALL.into_iter().chain(["real-cluster"]) {
        assert!(text(name) == text(name), "{name}");
    }
    assert!(text("diverse-60") != text("diverse-61"));
}

#[test]
fn a_workload_is_known_by_the_name_that_it_shows() {
    for workload in Workload::all() {
        assert_eq!(workload.to_string().parse(), Ok(workload));
    }
    let error = "divers-5".parse::<Workload>().unwrap_err().to_string();
    assert!(error.starts_with("unknown workload \"divers-5\": it is one of diverse-1,"), "{error}");
}

#[test]
fn the_real_cluster_has_the_size_that_it_is_named_for() {
    let problem = problem("real-cluster");
    let cluster = &problem.cluster;
    assert_eq!((problem.types.len(), cluster.pools().count()), (800, 20));
    assert_eq!((cluster.nodes().count(), cluster.claims().count(), pending(&problem).len()), (2000, 2000, 10_000));
    for node in cluster.nodes() {
        let used = cluster.pods_on(node.name()).fold(ResourceList::new(), |sum, pod| sum.plus(&pod.requests).unwrap());
        assert!(used.fits(&node.allocatable), "{} is too full: {used} of {}", node.name(), node.allocatable);
    }
}

#[test]
fn answers_are_valid_and_cost_no_less_than_the_bound() {
    for name in SMALL {
        let problem = problem(name);
        let (best, _) = measure(&problem, Policy::Best, 1);
        let bound = bound(&problem, Some(best.nodes));
        assert_eq!(bound.impossible_pods, 0, "{name}");
        assert!(bound.cost_per_hour <= bound.cost_per_hour_at_nodes, "{name}: {bound:?}");
        assert!(bound.cost_per_hour_at_nodes <= best.cost_per_hour, "{name}: {bound:?}, {best:?}");
        assert!(bound.cost_per_hour > 0.0, "{name}");
        for policy in [Policy::Best, Policy::Compatible] {
            let (measured, schedule) = measure(&problem, policy, 1);
            assert_eq!(faults(&problem, &schedule), [""; 0], "{name}");
            assert_eq!(measured.unscheduled, 0, "{name}");
            assert!(bound.cost_per_hour <= measured.cost_per_hour, "{name}: {bound:?}, {measured:?}");
        }
    }
}

/// Four pods can be put together in fifteen ways; the best of them is the least that they can cost.
#[test]
fn the_bound_is_below_the_best_of_all_answers_and_not_far_from_it() {
    let problem = problem("diverse-4");
    let pods = pending(&problem);
    assert_eq!(pods.len(), 4);
    let price = |together: &[&Pod]| -> Price {
        let need = together.iter().fold(ResourceList::new(), |sum, pod| sum.plus(&pod.requests).unwrap());
        let fitting = problem.types.iter().filter(|kind| need.fits(&kind.allocatable()));
        fitting.flat_map(|kind| &kind.offerings).map(|offering| offering.price).min().unwrap()
    };
    let least = partitions(&pods).into_iter().map(|parts| parts.iter().map(|part| price(part).micros()).sum());
    let least = dollars(Price::from_micros(least.min().unwrap()));
    let bound = bound(&problem, None).cost_per_hour;
    assert!(bound <= least && bound > 0.5 * least, "{bound} for {least}");
}

fn partitions<'a>(pods: &[&'a Pod]) -> Vec<Vec<Vec<&'a Pod>>> {
    let Some((first, rest)) = pods.split_first() else { return vec![Vec::new()] };
    let mut all = Vec::new();
    for parts in partitions(rest) {
        for at in 0..parts.len() {
            let mut joined = parts.clone();
            joined[at].push(first);
            all.push(joined);
        }
        let mut alone = parts;
        alone.push(vec![first]);
        all.push(alone);
    }
    all
}

#[test]
fn a_cluster_settles_at_less_and_gets_half_way_with_fewer_evictions() {
    let end = settle(problem("nodes-20"), None).unwrap();
    assert!(end.settled && end.cost_after < end.cost_before, "{end:?}");
    let half = (end.cost_before + end.cost_after) / 2.0;
    let on_the_way = settle(problem("nodes-20"), Some(half)).unwrap();
    assert!(!on_the_way.settled && on_the_way.cost_after <= half, "{on_the_way:?}");
    assert!(on_the_way.evictions < end.evictions && on_the_way.settle_s <= end.settle_s, "{on_the_way:?}");
}

#[test]
fn the_checker_finds_out_what_is_wrong() {
    let problem = problem("diverse-60");
    let (_, good) = measure(&problem, Policy::Best, 1);
    let found = |schedule: &Schedule| faults(&problem, schedule).join("\n");

    let mut lost = good.clone();
    lost.new_claims[0].pods.pop();
    assert!(found(&lost).contains("59 pods answered for 60"), "{}", found(&lost));

    let mut crowded = good.clone();
    let moved: Vec<_> = crowded.new_claims.drain(1..).flat_map(|claim| claim.pods).collect();
    crowded.new_claims[0].pods.extend(moved);
    let found = found(&crowded);
    for what in ["too small", "avoid by kubernetes.io/hostname"] {
        assert!(found.contains(what), "{what}: {found}");
    }
}
