use super::*;
use crate::store::ApiError;

fn web_with_budget(budget: Value) -> Bench {
    let mut bench = Bench::new();
    bench.node("a", json!({}));
    bench.run(15);
    bench.workload(Kind::Deployment, "web", json!({"spec": {"replicas": 4}}));
    let base = json!({"metadata": {"name": "b"}, "spec": {"selector": {"matchLabels": {"app": "web"}}}});
    bench.create(Kind::PodDisruptionBudget, base, json!({"spec": budget}));
    bench.run(10);
    bench
}

fn allowed(bench: &Bench) -> i64 {
    bench.get(Kind::PodDisruptionBudget, "b").unwrap().number(&["status", "disruptionsAllowed"]).unwrap()
}

fn evict(bench: &mut Bench, index: usize) -> Result<(), ApiError> {
    let name = bench.0.store().all(Kind::Pod).nth(index).unwrap().name.clone();
    let now = bench.0.now();
    bench.0.store_mut().evict(&name, &DeleteOptions::default(), now).map(|_| ())
}

#[test]
fn budgets_count_in_numbers_and_shares() {
    for (budget, expected) in [
        (json!({"minAvailable": 3}), 1),
        (json!({"minAvailable": 5}), 0),
        (json!({"minAvailable": "50%"}), 2),
        (json!({"minAvailable": "60%"}), 1),
        (json!({"maxUnavailable": 1}), 1),
        (json!({"maxUnavailable": "30%"}), 2),
        (json!({"maxUnavailable": 0}), 0),
    ] {
        assert_eq!(allowed(&web_with_budget(budget.clone())), expected, "{budget}");
    }
}

#[test]
fn evictions_are_allowed_again_when_the_replacement_runs() {
    let mut bench = web_with_budget(json!({"maxUnavailable": 1}));
    evict(&mut bench, 0).unwrap();
    assert_eq!(evict(&mut bench, 1).unwrap_err().code(), 429);
    bench.run(1);
    assert_eq!((allowed(&bench), evict(&mut bench, 2).is_err()), (0, true));
    bench.run(10);
    assert_eq!(allowed(&bench), 1);
    evict(&mut bench, 1).unwrap();
}

#[test]
fn pending_pods_count_as_missing() {
    let mut bench = web_with_budget(json!({"maxUnavailable": 1}));
    bench.patch(Kind::Deployment, "web", json!({"spec": {"replicas": 5}}));
    bench.run(10);
    assert_eq!(bench.nodes_of_pods(), ["-", "a", "a", "a", "a"]);
    assert_eq!(allowed(&bench), 0);
}
