//! How fast the world is, and what an object costs: `cargo run --release -p kerf-sim --example throughput [NODES] [PODS]`.

use std::sync::Arc;
use std::time::Instant;

use jiff::{SignedDuration, Timestamp};
use kerf_api::admission::Admission;
use kerf_sim::store::Kind;
use kerf_sim::world::{Pace, World};
use serde_json::{Value, json};

type AnyError = Box<dyn std::error::Error>;

fn main() -> Result<(), AnyError> {
    let mut arguments = std::env::args().skip(1).map(|text| text.parse::<usize>());
    let nodes = arguments.next().transpose()?.unwrap_or(200);
    let pods = arguments.next().transpose()?.unwrap_or(5_000);

    let now = Timestamp::from_second(1_767_225_600)?;
    let admission = Arc::new(Admission::new(&kerf_api::crds(None))?);
    let mut world = World::new(admission, 1, Pace::default(), now);
    for index in 0..nodes {
        world.store_mut().create(Kind::Node, node(index), now)?;
    }
    world.run_until(now + SignedDuration::from_secs(60))?;
    let now = world.now();

    let (memory, started) = (resident_kib(), Instant::now());
    for index in 0..pods {
        world.store_mut().create(Kind::Pod, pod(index), now)?;
    }
    let elapsed = started.elapsed().as_secs_f64();
    println!("created   {pods} pods in {elapsed:.2} s: {:.0} per second", pods as f64 / elapsed);
    if let (Some(before), Some(after)) = (memory, resident_kib()) {
        println!("memory    {:.1} KiB per pod, its log entry included", (after - before) as f64 / pods as f64);
    }

    let started = Instant::now();
    world.step(now)?;
    let bound = world.store().all(Kind::Pod).filter(|pod| pod.at(&["spec", "nodeName"]).is_some()).count();
    let elapsed = started.elapsed().as_secs_f64();
    println!("scheduled {bound} pods on {nodes} nodes in {elapsed:.2} s: {:.0} per second", bound as f64 / elapsed);

    let started = Instant::now();
    world.run_until(now + SignedDuration::from_secs(60))?;
    println!("started   them in {:.2} s", started.elapsed().as_secs_f64());

    let started = Instant::now();
    world.run_until(now + SignedDuration::from_hours(30 * 24))?;
    println!("waited    thirty quiet days in {:.3} s", started.elapsed().as_secs_f64());
    Ok(())
}

fn node(index: usize) -> Value {
    let resources = json!({"cpu": "64", "memory": "256Gi", "pods": "250"});
    let zone = ["a", "b", "c"][index % 3];
    json!({
        "metadata": {"name": format!("node-{index:05}"), "labels": {"topology.kubernetes.io/zone": zone}},
        "status": {"allocatable": resources, "capacity": resources},
    })
}

fn pod(index: usize) -> Value {
    let resources = json!({"requests": {"cpu": "500m", "memory": "1Gi"}, "limits": {"memory": "1Gi"}});
    json!({
        "metadata": {"name": format!("pod-{index:06}"), "labels": {"app": format!("app-{}", index % 50)}},
        "spec": {"containers": [{"name": "main", "image": "registry.example/app:1", "resources": resources}]},
    })
}

/// Resident memory, where the system tells it.
fn resident_kib() -> Option<i64> {
    let text = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = text.lines().find(|line| line.starts_with("VmRSS:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}
