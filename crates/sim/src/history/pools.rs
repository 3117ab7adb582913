//! Random pools, and what people change of them: which machines, how many, how freely their nodes may be disrupted.

use serde_json::{Value, json};

use crate::random::Random;

pub(super) const TAINT: &str = "example.com/dedicated";

/// The first takes every pod; the others may be static, limited, tainted, preferred.
pub(super) fn pool(index: i64, random: &mut Random) -> Value {
    let mut pool = json!({
        "metadata": {"name": format!("pool-{index}")},
        "spec": {"template": {"spec": {
            "nodeClassRef": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"},
            "requirements": requirements(random),
            "expireAfter": "Never",
        }}},
    });
    if random.one_in(2) {
        pool["spec"]["disruption"] = disruption(random);
    }
    let template = &mut pool["spec"]["template"]["spec"];
    if random.one_in(4) {
        template["expireAfter"] = json!(format!("{}h", random.between(1, 3)));
    }
    if random.one_in(3) {
        template["terminationGracePeriod"] = grace(random);
    }
    if index > 0 && random.one_in(3) {
        template["taints"] = json!([{"key": TAINT, "value": "yes", "effect": "NoSchedule"}]);
    }
    if index > 0 && random.one_in(3) {
        pool["spec"]["replicas"] = json!(random.between(0, 4));
        if random.one_in(2) {
            pool["spec"]["limits"] = json!({"nodes": random.between(1, 5).to_string()});
        }
        return pool;
    }
    pool["spec"]["weight"] = json!(random.between(1, 50));
    if index > 0 && random.one_in(2) {
        pool["spec"]["limits"] = match random.one_in(2) {
            true => json!({"cpu": random.between(4, 40).to_string()}),
            false => json!({"nodes": random.between(1, 4).to_string()}),
        };
    }
    pool
}

/// Small machines or larger ones; of any kind, or only such as the cloud may take back, or only such as it may not.
pub(super) fn requirements(random: &mut Random) -> Value {
    let mut requirements = vec![
        json!({"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]}),
        json!({"key": "karpenter.kwok.sh/instance-cpu", "operator": "Lt", "values": [random.of(["5", "9", "17"])]}),
    ];
    if random.one_in(2) {
        let capacity = random.of([["spot"], ["on-demand"]]);
        requirements.push(json!({"key": "karpenter.sh/capacity-type", "operator": "In", "values": capacity}));
    }
    json!(requirements)
}

pub(super) fn grace(random: &mut Random) -> Value {
    json!(format!("{}m", random.between(1, 20)))
}

/// How freely nodes may be disrupted: never, quickly or slowly, a few at a time, at certain hours, for certain reasons.
pub(super) fn disruption(random: &mut Random) -> Value {
    let mut disruption = json!({
        "consolidateAfter": random.of(["0s", "30s", "5m", "Never"]),
        "consolidationPolicy": random.of(["WhenEmpty", "WhenEmptyOrUnderutilized", "WhenEmptyOrUnderutilized", "Balanced"]),
        "budgets": (0..random.between(1, 2)).map(|_| budget(random)).collect::<Vec<_>>(),
    });
    if random.one_in(4) {
        disruption["drift"] = json!({"forceEvict": true});
    }
    disruption
}

fn budget(random: &mut Random) -> Value {
    let mut budget = match random.below(3) {
        0 => json!({"nodes": random.between(0, 2).to_string()}),
        1 => json!({"nodes": format!("{}%", random.between(1, 4) * 25)}),
        _ => json!({"nodes": "0", "schedule": "0,30 * * * *", "duration": "15m"}),
    };
    if random.one_in(3) {
        budget["reasons"] = json!([random.of(["Drifted", "Empty", "Underutilized", "Unhealthy"])]);
    }
    budget
}

/// A switch of the pool, set one way or the other.
pub(super) fn switch(random: &mut Random) -> Value {
    let is_on = random.one_in(2);
    let disruption = |what: &str, switch: &str| json!({"spec": {"disruption": {what: {switch: is_on}}}});
    match random.below(6) {
        0 => json!({"spec": {"disabled": is_on}}),
        1 => json!({"spec": {"disableDeprovisioning": is_on}}),
        2 => disruption("consolidation", "enabled"),
        3 => disruption("drift", "enabled"),
        4 => disruption("drift", "forceEvict"),
        _ => disruption("expiration", "enabled"),
    }
}

/// An edit of the template by which its nodes drift; with the gate `InPlaceDrift` some of them are changed as they run.
pub(super) fn edit(random: &mut Random) -> Value {
    let key = "example.com/edit";
    let value = random.between(0, 1_000_000).to_string();
    let template = match random.below(6) {
        0..=1 => json!({"metadata": {"annotations": {key: value}}}),
        // A key that no node has, or one that all have with another value.
        2 => json!({"metadata": {"labels": {random.of(["example.com/a", "example.com/b", "example.com/c"]): "yes"}}}),
        3 => json!({"metadata": {"labels": {key: value}}}),
        4 => json!({"spec": {"terminationGracePeriod": grace(random)}}),
        _ => json!({"spec": {"requirements": requirements(random)}}),
    };
    json!({"spec": {"template": template}})
}

/// Holds some actions back, always or every other quarter of an hour.
pub(super) fn window(index: i64, random: &mut Random) -> Value {
    let all =
        ["Consolidation", "EmptyConsolidation", "NonEmptyConsolidation", "Drift", "Expiration", "Rebalance", "Repair"];
    let mut actions: Vec<&str> = all.into_iter().filter(|_| random.one_in(3)).collect();
    if actions.is_empty() {
        actions.push(random.of(all));
    }
    let mut spec = json!({"actions": actions});
    if random.one_in(2) {
        spec["schedules"] = json!([{"schedule": "15,45 * * * *", "duration": "15m"}]);
        spec["outsideSchedules"] = json!(random.one_in(2));
    }
    if random.one_in(2) {
        spec["selector"] = json!({"matchLabels": {"karpenter.sh/nodepool": "pool-0"}});
    }
    json!({"metadata": {"name": format!("window-{index}")}, "spec": spec})
}
