//! A random small cluster: pools, workloads, budgets, room that is kept free.

use serde_json::{Value, json};

use super::pools;
use crate::random::Random;
use crate::store::{ApiError, Kind};
use crate::world::World;

pub(super) fn make(world: &mut World, random: &mut Random) -> Result<(), ApiError> {
    let class = json!({"metadata": {"name": "default"}});
    create(world, Kind::KwokNodeClass, class)?;
    for index in 0..random.between(1, 3) {
        create(world, Kind::NodePool, pools::pool(index, random))?;
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
    if random.one_in(3) {
        create(world, Kind::CapacityBuffer, buffer(random))?;
    }
    Ok(())
}

fn create(world: &mut World, kind: Kind, body: Value) -> Result<(), ApiError> {
    let now = world.now();
    world.store_mut().create(kind, body, now).map(|_| ())
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
        template["spec"]["tolerations"] = json!([{"key": pools::TAINT, "operator": "Exists"}]);
    }
    if random.one_in(6) {
        let value = if random.one_in(2) { "true" } else { "20m" };
        template["metadata"]["annotations"] = json!({"karpenter.sh/do-not-disrupt": value});
    }
    if random.one_in(3) {
        apart(&mut template["spec"], name, random);
    }
    json!({
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": template},
    })
}

/// Its pods keep away from each other, more or less.
fn apart(pod: &mut Value, app: &str, random: &mut Random) {
    let own = json!({"matchLabels": {"app": app}});
    let key = random.of(["kubernetes.io/hostname", "topology.kubernetes.io/zone"]);
    match random.below(3) {
        0 => {
            let term = json!({"topologyKey": "kubernetes.io/hostname", "labelSelector": own});
            let kind = "requiredDuringSchedulingIgnoredDuringExecution";
            pod["affinity"] = json!({"podAntiAffinity": {kind: [term]}});
        }
        kind => {
            let when = if kind == 1 { "DoNotSchedule" } else { "ScheduleAnyway" };
            let spread = json!({"topologyKey": key, "maxSkew": 1, "whenUnsatisfiable": when, "labelSelector": own});
            pod["topologySpreadConstraints"] = json!([spread]);
        }
    }
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
    let mut spec = allowance(random);
    spec["selector"] = json!({"matchLabels": {"app": app}});
    json!({"metadata": {"name": app, "namespace": "default"}, "spec": spec})
}

/// What a PodDisruptionBudget allows: some pods, and now and then none.
pub(super) fn allowance(random: &mut Random) -> Value {
    match random.below(4) {
        0 => json!({"maxUnavailable": 1, "minAvailable": null}),
        1 => json!({"maxUnavailable": null, "minAvailable": "50%"}),
        2 => json!({"maxUnavailable": "30%", "minAvailable": null}),
        _ => json!({"maxUnavailable": random.of([0, 2]), "minAvailable": null}),
    }
}

/// Room for more pods of the first workload.
pub(super) fn buffer(random: &mut Random) -> Value {
    let mut spec = json!({"scalableRef": {"apiGroup": "apps", "kind": "Deployment", "name": "web-0"}});
    match random.one_in(2) {
        true => spec["percentage"] = json!(random.of([20, 50, 100])),
        false => spec["replicas"] = json!(random.between(1, 3)),
    }
    json!({"metadata": {"name": "room", "namespace": "default"}, "spec": spec})
}
