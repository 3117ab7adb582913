//! A month of a cluster that replaces every node each week, on virtual time:
//! `cargo run --release -p kerf-sim --example month [NODES] [DAYS]`.

use std::sync::Arc;
use std::time::Instant;

use jiff::{SignedDuration, Timestamp};
use kerf_api::admission::Admission;
use kerf_cloud::Catalogue;
use kerf_sim::autoscaler::{Autoscaler, CloudPace};
use kerf_sim::store::Kind;
use kerf_sim::world::{Pace, World};
use serde_json::{Value, json};

type AnyError = Box<dyn std::error::Error>;

/// Per node, by what a pod asks for.
const PODS_PER_NODE: usize = 5;

fn main() -> Result<(), AnyError> {
    let mut arguments = std::env::args().skip(1).map(|text| text.parse::<usize>());
    let nodes = arguments.next().transpose()?.unwrap_or(200);
    let days = arguments.next().transpose()?.unwrap_or(30);

    let start = Timestamp::from_second(1_767_225_600)?;
    let admission = Arc::new(Admission::new(&kerf_api::crds(None))?);
    let mut world = World::new(admission, 1, Pace::default(), start);
    let autoscaler = Autoscaler::new(Catalogue::kwok().types().clone(), CloudPace::default());
    let ledger = autoscaler.ledger();
    world.add(autoscaler);
    for (kind, object) in [(Kind::KwokNodeClass, json!({"metadata": {"name": "default"}})), (Kind::NodePool, pool())] {
        world.store_mut().create(kind, object, start)?;
    }
    world.step(start)?;
    world.store_mut().create(Kind::Deployment, deployment(nodes * PODS_PER_NODE), start)?;

    let started = Instant::now();
    world.run_until(start + SignedDuration::from_mins(10))?;
    println!("{} nodes after ten minutes, in {:.2} s", ledger.instances(), started.elapsed().as_secs_f64());
    world.run_until(start + SignedDuration::from_hours(24 * i64::try_from(days)?))?;
    let running = world.store().all(Kind::Pod).filter(|pod| pod.text(&["status", "phase"]) == Some("Running")).count();
    println!(
        "{days} days in {:.2} s: {} launches, {} evictions; {running} pods run on {} nodes at ${} per hour",
        started.elapsed().as_secs_f64(),
        ledger.launches(),
        ledger.evictions(),
        ledger.instances(),
        kerf_sim::timeline::dollars(ledger.hourly().micros(), 2),
    );
    Ok(())
}

fn pool() -> Value {
    json!({
        "metadata": {"name": "general"},
        "spec": {"template": {"spec": {
            "nodeClassRef": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"},
            "requirements": [
                {"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]},
                {"key": "karpenter.kwok.sh/instance-cpu", "operator": "Lt", "values": ["9"]},
            ],
            "expireAfter": "168h",
        }}},
    })
}

fn deployment(replicas: usize) -> Value {
    json!({
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {
            "replicas": replicas, "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [
                {"name": "c", "image": "web", "resources": {"requests": {"cpu": "1400m", "memory": "1Gi"}}},
            ]}},
        },
    })
}
