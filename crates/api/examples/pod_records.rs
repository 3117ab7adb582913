//! What it costs to read a large cluster's pods: time from JSON to records, and memory per record.
//!
//! `cargo run --release -p kerf-api --example pod_records [PODS] [WORKLOADS]`, by default 100,000 pods of 500 workloads,
//! each about 4 KB of JSON as an API server sends it, managed fields included.

use std::sync::Arc;
use std::time::{Duration, Instant};

use kerf_api::Provider;
use kerf_api::change::{Reader, WatchedKind};
use kerf_api::slim::SlimPod;
use kerf_model::change::Change;
use kerf_model::cluster::Pod;
use serde_json::json;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let pods: usize = arguments.next().map_or(Ok(100_000), |text| text.parse())?;
    let workloads: usize = arguments.next().map_or(Ok(500), |text| text.parse())?;

    let mut reader = Reader::new(Some(Provider::Kwok));
    let mut records: Vec<Arc<Pod>> = Vec::with_capacity(pods);
    let (mut decoding, mut reading) = (Duration::ZERO, Duration::ZERO);
    let mut json_bytes = 0;
    // Made beforehand: the garbage of making them is no part of what is measured.
    let templates: Vec<String> = (0..workloads.max(1)).map(template).collect();
    let before = resident_bytes();
    for index in 0..pods {
        let text = templates[index % templates.len()].replace(INDEX, &format!("{index:07}"));
        json_bytes += text.len();
        let start = Instant::now();
        let object: SlimPod = serde_json::from_str(&text)?;
        let decoded = Instant::now();
        let seen = reader.seen(WatchedKind::Pod, &object)?;
        reading += decoded.elapsed();
        decoding += decoded - start;
        if let Change::Pod(_, Some(record)) = seen.change {
            records.push(record);
        }
    }
    let after = resident_bytes();

    let shapes =
        records.iter().map(|record| Arc::as_ptr(&record.constraints)).collect::<std::collections::BTreeSet<_>>();
    // Texts that no two pods share, each with its two counters.
    let own = |record: &Pod| {
        let texts = [&record.meta.name.name, &record.meta.uid, &record.meta.resource_version];
        texts.into_iter().map(|text| text.len() + 2 * size_of::<usize>()).sum::<usize>()
    };
    let names: usize = records.iter().map(|record| own(record)).sum();
    println!("{} pods of {} bytes, {} shapes", records.len(), json_bytes / pods.max(1), shapes.len());
    println!("decode {decoding:.2?}, read {reading:.2?}, together {:.2?}", decoding + reading);
    println!("a record is {} bytes, not counting what it points at", size_of::<Pod>());
    match after.zip(before) {
        Some((after, before)) => {
            let each = (after - before) / pods.max(1);
            let names = names / pods.max(1);
            println!("memory per pod {each} bytes: {names} for its own names, {} for the rest", each - names);
        }
        None => println!("memory per pod is only measured on Linux"),
    }
    Ok(())
}

fn resident_bytes() -> Option<usize> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.split_whitespace().next()?.parse::<usize>().ok().map(|kib| kib * 1024)
}

/// Where a pod's own number goes.
const INDEX: &str = "@INDEX@";

/// One pod of a Deployment, as the API server sends it.
fn template(workload: usize) -> String {
    let app = format!("app-{workload}");
    let hash = format!("{:x}", 0x5f3a_9000 + workload);
    let name = format!("{app}-{hash}-{INDEX}");
    let namespace = format!("team-{}", workload % 40);
    let filler: Vec<_> = (0..30).map(|field| json!({format!("f:field-{field}"): {".": {}, "f:name": {}}})).collect();
    let constraint = json!({
        "maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": {"app": app}}, "matchLabelKeys": ["pod-template-hash"],
    });
    json!({
        "metadata": {
            "name": name, "namespace": namespace, "generateName": format!("{app}-{hash}-"),
            "uid": format!("00000000-0000-4000-8000-00000{INDEX}"),
            "resourceVersion": format!("1{INDEX}"),
            "creationTimestamp": "2026-11-17T10:00:00Z",
            "labels": {
                "app": app, "pod-template-hash": hash, "app.kubernetes.io/part-of": namespace,
                "app.kubernetes.io/version": "1.2.3", "team": namespace,
            },
            "annotations": {"cni.example.com/state": format!("address of {INDEX}")},
            "ownerReferences": [{
                "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": format!("{app}-{hash}"),
                "uid": format!("10000000-0000-4000-8000-{workload:012x}"), "controller": true, "blockOwnerDeletion": true,
            }],
            "managedFields": [{"manager": "kube-controller-manager", "operation": "Update", "fieldsV1": {"f:spec": filler}}],
        },
        "spec": {
            "containers": [{
                "name": "main", "image": "registry.local/team/app:1.2.3", "imagePullPolicy": "IfNotPresent",
                "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}, {"name": "C", "value": "3"}],
                "ports": [{"containerPort": 8080, "protocol": "TCP"}],
                "resources": {"requests": {"cpu": "250m", "memory": "512Mi"}, "limits": {"memory": "512Mi"}},
                "volumeMounts": [{"name": "token", "mountPath": "/var/run/secrets/token", "readOnly": true}],
                "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File",
            }],
            "volumes": [{"name": "token", "projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]}}],
            "nodeSelector": {"kubernetes.io/arch": "arm64"},
            "tolerations": [
                {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300},
                {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300},
            ],
            "topologySpreadConstraints": [constraint],
            "nodeName": format!("node-{}", workload * 10), "serviceAccountName": "default", "schedulerName": "default-scheduler",
            "priority": 0, "restartPolicy": "Always", "terminationGracePeriodSeconds": 30, "dnsPolicy": "ClusterFirst",
        },
        "status": {
            "phase": "Running", "startTime": "2026-11-17T10:00:05Z", "podIP": "10.1.2.3", "hostIP": "10.0.0.1", "qosClass": "Burstable",
            "conditions": [
                {"type": "PodScheduled", "status": "True", "lastTransitionTime": "2026-11-17T10:00:01Z"},
                {"type": "Ready", "status": "True", "lastTransitionTime": "2026-11-17T10:00:09Z"},
            ],
            "containerStatuses": [{
                "name": "main", "ready": true, "restartCount": 0, "state": {"running": {"startedAt": "2026-11-17T10:00:08Z"}},
                "allocatedResources": {"cpu": "250m", "memory": "512Mi"},
                "resources": {"requests": {"cpu": "250m", "memory": "512Mi"}, "limits": {"memory": "512Mi"}},
            }],
        },
    })
    .to_string()
}
