use super::*;

fn with_class(mode: &str) -> Bench {
    let mut bench = Bench::new();
    let class = json!({"metadata": {"name": "fast"}, "provisioner": "ebs.csi.aws.com", "volumeBindingMode": mode});
    bench.create(Kind::StorageClass, class, json!({}));
    bench.node("a", zone("x"));
    bench.node("b", zone("y"));
    bench.run(15);
    bench
}

fn stateful(bench: &mut Bench) {
    let claim = json!({"metadata": {"name": "data"}, "spec": {"storageClassName": "fast"}});
    bench.workload(Kind::StatefulSet, "db", json!({"spec": {"volumeClaimTemplates": [claim]}}));
    bench.run(5);
}

fn attachments(bench: &Bench) -> Vec<String> {
    let all = bench.0.store().all(Kind::VolumeAttachment);
    all.map(|attachment| attachment.text(&["spec", "nodeName"]).unwrap().to_owned()).collect()
}

#[test]
fn a_volume_is_made_where_its_pod_goes_and_keeps_it_there() {
    let mut bench = with_class("WaitForFirstConsumer");
    stateful(&mut bench);
    assert_eq!(bench.pods(), ["db-0 a Running"]);
    assert_eq!(bench.get(Kind::PersistentVolumeClaim, "data-db-0").unwrap().text(&["status", "phase"]), Some("Bound"));
    assert_eq!(attachments(&bench), ["a"]);

    bench.patch(Kind::Node, "a", json!({"spec": {"unschedulable": true}}));
    bench.delete(Kind::Pod, "db-0");
    bench.run(10);
    assert_eq!(bench.pods(), ["db-0 - Pending"]);
    assert_eq!(
        bench.why("db-0"),
        "0/2 nodes are available: 1 node(s) had volume node affinity conflict, 1 node(s) were unschedulable."
    );
    assert!(attachments(&bench).is_empty(), "detached when its pod is gone");
}

#[test]
fn an_immediate_claim_is_bound_before_its_pod_is_placed() {
    let mut bench = with_class("Immediate");
    stateful(&mut bench);
    assert_eq!(bench.pods(), ["db-0 a Running"]);
    bench.pod("p", json!({"spec": {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "none"}}]}}));
    bench.run(5);
    assert_eq!(bench.why("p"), "0/2 nodes are available: persistentvolumeclaim \"none\" not found.");
}

#[test]
fn a_generic_ephemeral_volume_lives_as_long_as_its_pod() {
    let mut bench = with_class("WaitForFirstConsumer");
    let template = json!({"spec": {"storageClassName": "fast"}});
    bench.pod("p", json!({"spec": {"volumes": [{"name": "v", "ephemeral": {"volumeClaimTemplate": template}}]}}));
    bench.run(5);
    assert_eq!(bench.pods(), ["p a Running"]);
    assert!(bench.get(Kind::PersistentVolumeClaim, "p-v").is_some());
    bench.delete(Kind::Pod, "p");
    bench.run(5);
    assert!(bench.get(Kind::PersistentVolumeClaim, "p-v").is_none());
}
