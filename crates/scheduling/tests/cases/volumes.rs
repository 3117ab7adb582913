use crate::fixture::{check, claims, full};

const WORLD: &str = "type small pods=20\npool general\n";

/// Sheet 02, case 41, on a node that exists.
#[test]
fn a_node_takes_no_more_volumes_than_its_driver_attaches() {
    check(
        &format!(
            "{WORLD}
             class fast
             pvc v1 class=fast
             pvc v2 class=fast
             pvc v3 class=fast
             node n1 pool=general
             csinode n1 limit:csi=2
             pod old on=n1 volume:v1
             pod a cpu=1 volume:v2
             pod b cpu=500m volume:v3"
        ),
        "node n1: a\nnew general [small]: b",
    );
}

/// Sheet 08, S3.
#[test]
fn new_nodes_attach_no_more_volumes_than_their_type_does() {
    let storage = "class fast\npvc v1 class=fast\npvc v2 class=fast\npvc v3 class=fast\n";
    let pods = "pod a cpu=10m volume:v1\npod b cpu=9m volume:v2\npod c cpu=8m volume:v3";
    check(
        &format!("type small pods=20 volumes:csi=2\npool general\n{storage}{pods}"),
        "new general [small]: a b\nnew general [small]: c",
    );
    check(
        &format!("type small volumes:csi=1\npool general\n{storage}pod p cpu=1 volume:v1 volume:v2"),
        "none p: no_place general=volume_limit",
    );
    // What the node publishes wins over what its type says.
    let node = "node n1 pool=general pods=9 label:type=small\n";
    let world = format!("type small pods=20 volumes:csi=2\npool general\n{storage}{node}");
    check(&format!("{world}{pods}"), "node n1: a b\nnew general [small]: c");
    check(&format!("{world}csinode n1 limit:csi=5\n{pods}"), "node n1: a b c");
}

/// Sheet 02, case 42.
#[test]
fn a_shared_volume_counts_once() {
    check(
        &format!(
            "{WORLD} class fast\n pvc v class=fast\n node n1 unmanaged pods=9\n csinode n1 limit:csi=1\n pod a cpu=10m volume:v x5"
        ),
        "node n1: a-0 a-1 a-2 a-3 a-4",
    );
}

/// Sheet 02, cases 43 and 44.
#[test]
fn a_volume_that_may_be_in_two_zones_goes_with_its_pods() {
    for storage in
        ["volume pv term:zone=a term:zone=b\npvc v volume=pv", "class c term:zone=a term:zone=b\npvc v class=c"]
    {
        let planned = claims(&format!("{WORLD} {storage}\n pod p cpu=1 x2 volume:v label:app=p apart:zone:app=p"));
        let zones: Vec<_> =
            planned.iter().map(|claim| claim.requirements().get(full("zone")).unwrap().to_string()).collect();
        assert_eq!(zones, ["topology.kubernetes.io/zone In [a]", "topology.kubernetes.io/zone In [b]"]);
    }
}

/// Sheet 02, case 45.
#[test]
fn a_local_volume_does_not_tie_a_pod_to_a_host_that_is_gone() {
    check(
        &format!("{WORLD} volume pv local term:host=gone term:zone=x\n pvc v volume=pv\n pod p cpu=1 volume:v"),
        "new general [small]: p",
    );
}

/// Sheet 02, case 46.
#[test]
fn volumes_that_cannot_be_used_yet_keep_their_pods_waiting() {
    for broken in [
        "class now immediate\npvc v class=now",
        "pvc v volume=pv deleting\nvolume pv",
        "pvc v volume=pv lost\nvolume pv",
        "pvc v volume=pv\nvolume pv deleting",
        "pvc v volume=pv unbound\nvolume pv",
        "pvc v class=none",
        "pvc v",
        "",
    ] {
        check(&format!("{WORLD} {broken}\n pod p cpu=1 volume:v"), "none p: invalid_pod");
    }
    check(&format!("{WORLD} volume pv\n pvc v volume=pv\n pod p cpu=1 volume:v"), "new general [small]: p");
}

/// Sheet 02, case 47.
#[test]
fn a_volume_wins_over_the_zone_that_spreading_would_choose() {
    let text = format!(
        "{WORLD}
         volume pv term:zone=a
         pvc v volume=pv
         node n1 unmanaged label:zone=a cpu=0
         node n2 unmanaged label:zone=b cpu=0
         node n3 unmanaged label:zone=c cpu=0
         pod w1 on=n1 label:app=w
         pod w2 on=n2 label:app=w
         pod w3 on=n3 label:app=w
         pod p cpu=1 label:app=w volume:v spread:zone:1:app=w:min=3"
    );
    let planned = claims(&text);
    assert_eq!(planned[0].requirements().get(full("zone")).unwrap().to_string(), "topology.kubernetes.io/zone In [a]");
}
