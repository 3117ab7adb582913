//! A random small cluster: pools, workloads, budgets.

use serde_json::{Value, json};

use crate::random::Random;
use crate::store::{ApiError, Kind};
use crate::world::World;

const TAINT: &str = "example.com/dedicated";

pub(super) fn make(world: &mut World, random: &mut Random) -> Result<(), ApiError> {
    let class = json!({"metadata": {"name": "default"}});
    create(world, Kind::KwokNodeClass, class)?;
    for index in 0..random.between(1, 3) {
        create(world, Kind::NodePool, pool(index, random))?;
    }
    for index in 0..random.between(1, 4) {
        let name = format!("web-{index}");
        let replicas = random.between(0, 12);
        create(world, Kind::Deployment, workload(&name, Some(replicas), random))?;
        if random.one_in(2) {
            create(world, Kind::PodDisruptionBudget, budget(&name, random))?;
        }
    }
    if random.one_in(2) {
        let replicas = random.between(1, 4);
        create(world, Kind::StatefulSet, workload("db", Some(replicas), random))?;
        create(world, Kind::PodDisruptionBudget, budget("db", random))?;
    }
    if random.one_in(2) {
        create(world, Kind::DaemonSet, agent())?;
    }
    Ok(())
}

fn create(world: &mut World, kind: Kind, body: Value) -> Result<(), ApiError> {
    let now = world.now();
    world.store_mut().create(kind, body, now).map(|_| ())
}

/// The first takes every pod; the others may be limited, tainted, preferred.
pub(super) fn pool(index: i64, random: &mut Random) -> Value {
    let cpu = ["5", "9", "17"][usize::try_from(random.below(3)).unwrap_or(0)];
    let mut pool = json!({
        "metadata": {"name": format!("pool-{index}")},
        "spec": {
            "weight": random.between(1, 50),
            "template": {"spec": {
                "nodeClassRef": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"},
                "requirements": [
                    {"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]},
                    {"key": "karpenter.kwok.sh/instance-cpu", "operator": "Lt", "values": [cpu]},
                ],
                "expireAfter": "Never",
            }},
        },
    });
    if random.one_in(2) {
        pool["spec"]["disruption"] = disruption_block(random);
    }
    let template = &mut pool["spec"]["template"]["spec"];
    if random.one_in(4) {
        template["expireAfter"] = json!(format!("{}h", random.between(1, 3)));
    }
    if random.one_in(3) {
        template["terminationGracePeriod"] = json!(format!("{}m", random.between(1, 20)));
    }
    if index > 0 && random.one_in(3) {
        template["taints"] = json!([{"key": TAINT, "value": "yes", "effect": "NoSchedule"}]);
    }
    if index > 0 && random.one_in(2) {
        pool["spec"]["limits"] = match random.one_in(2) {
            true => json!({"cpu": random.between(4, 40).to_string()}),
            false => json!({"nodes": random.between(1, 4).to_string()}),
        };
    }
    pool
}

/// How freely nodes may be disrupted: never, quickly or slowly, a few at a time, at certain hours, for certain reasons.
fn disruption_block(random: &mut Random) -> Value {
    let after = ["0s", "30s", "5m", "Never"][usize::try_from(random.below(4)).unwrap_or(0)];
    let policy = ["WhenEmpty", "WhenEmptyOrUnderutilized"][usize::try_from(random.below(2)).unwrap_or(0)];
    let mut budgets = Vec::new();
    for _ in 0..random.between(1, 2) {
        let mut budget = match random.below(3) {
            0 => json!({"nodes": random.between(0, 2).to_string()}),
            1 => json!({"nodes": format!("{}%", random.between(1, 4) * 25)}),
            _ => json!({"nodes": "0", "schedule": "0,30 * * * *", "duration": "15m"}),
        };
        if random.one_in(3) {
            let reason = ["Drifted", "Empty", "Underutilized"][usize::try_from(random.below(3)).unwrap_or(0)];
            budget["reasons"] = json!([reason]);
        }
        budgets.push(budget);
    }
    json!({"consolidateAfter": after, "consolidationPolicy": policy, "budgets": budgets})
}

/// Holds some actions back, always or every other quarter of an hour.
pub(super) fn window(index: i64, random: &mut Random) -> Value {
    let actions = [json!(["Drift"]), json!(["Consolidation"]), json!(["Drift", "Consolidation", "Expiration"])];
    let mut spec = json!({"actions": actions[usize::try_from(random.below(3)).unwrap_or(0)]});
    if random.one_in(2) {
        spec["schedules"] = json!([{"schedule": "15,45 * * * *", "duration": "15m"}]);
    }
    if random.one_in(2) {
        spec["selector"] = json!({"matchLabels": {"karpenter.sh/nodepool": "pool-0"}});
    }
    json!({"metadata": {"name": format!("window-{index}")}, "spec": spec})
}

fn workload(name: &str, replicas: Option<i64>, random: &mut Random) -> Value {
    let cpu = format!("{}m", random.between(1, 12) * 250);
    let mut template = json!({
        "metadata": {"labels": {"app": name}},
        "spec": {"containers": [
            {"name": "main", "image": "main", "resources": {"requests": {"cpu": cpu, "memory": "512Mi"}}},
        ]},
    });
    if random.one_in(3) {
        template["spec"]["tolerations"] = json!([{"key": TAINT, "operator": "Exists"}]);
    }
    if random.one_in(6) {
        template["metadata"]["annotations"] = json!({"karpenter.sh/do-not-disrupt": "true"});
    }
    json!({
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": template},
    })
}

fn agent() -> Value {
    json!({
        "metadata": {"name": "agent", "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": "agent"}}, "template": {
            "metadata": {"labels": {"app": "agent"}},
            "spec": {
                "tolerations": [{"operator": "Exists"}],
                "containers": [{"name": "main", "image": "main", "resources": {"requests": {"cpu": "100m"}}}],
            },
        }},
    })
}

fn budget(app: &str, random: &mut Random) -> Value {
    let mut spec = json!({"selector": {"matchLabels": {"app": app}}});
    match random.below(3) {
        0 => spec["maxUnavailable"] = json!(1),
        1 => spec["minAvailable"] = json!("50%"),
        _ => spec["maxUnavailable"] = json!("30%"),
    }
    json!({"metadata": {"name": app, "namespace": "default"}, "spec": spec})
}
