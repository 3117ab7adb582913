use std::sync::Arc;

use kerf_model::cluster::Texts;
use kerf_model::effect::NewClaim;

use crate::fixture::{check, claims};

fn claim(text: &str) -> NewClaim {
    let hash = Texts::from([(Arc::from("karpenter.sh/nodepool-hash"), Arc::from("1"))]);
    claims(text)[0].to_new_claim("general-x".into(), hash)
}

fn show(texts: &Texts) -> Vec<String> {
    texts.iter().map(|(key, value)| format!("{key}={value}")).collect()
}

/// Sheet 02, case 80, and §17.
#[test]
fn labels_are_the_pools_and_one_value_for_every_label_of_the_users_own() {
    let made = claim(
        "type small
         pool general label:team=x require:zone=a,b require:tier=gold,silver require:rank>3
         pod p cpu=1",
    );
    assert_eq!(
        show(&made.labels),
        ["example.com/testclass=default", "karpenter.sh/nodepool=general", "rank=4", "team=x", "tier=gold"]
    );
}

/// Sheet 02 §17.
#[test]
fn requirements_name_the_options_and_how_they_are_bought() {
    let made = claim(
        "type small kind=spot,on-demand
         type large kind=on-demand cpu=9
         type other arch=arm64
         pool general require:zone=a,b
         pod p cpu=1 select:arch=amd64 require:zone=b,c",
    );
    let shown: Vec<_> = made.node.requirements.iter().map(ToString::to_string).collect();
    assert_eq!(
        shown,
        [
            "example.com/testclass In [default]",
            "karpenter.sh/capacity-type In [on-demand spot]",
            "karpenter.sh/nodepool In [general]",
            "kubernetes.io/arch In [amd64]",
            "node.kubernetes.io/instance-type In [large small]",
            "topology.kubernetes.io/zone In [b]",
        ]
    );
}

#[test]
fn the_rest_comes_from_the_template_and_the_caller() {
    let made = claim("type small\npool general taint:a:NoSchedule startup:b:NoSchedule\npod p cpu=1 tolerate:a");
    assert_eq!(
        show(&made.annotations),
        ["karpenter.sh/nodeclaim-min-values-relaxed=false", "karpenter.sh/nodepool-hash=1", "note=from the pool"]
    );
    let owner = made.owner.unwrap();
    assert_eq!((&*owner.kind, &*owner.name, &*owner.uid), ("NodePool", "general", "uid-general"));
    assert_eq!((made.node.taints.len(), made.node.startup_taints.len()), (1, 1));
    assert_eq!((&*made.name, made.requests.to_string()), ("general-x", "cpu=1 pods=1".to_owned()));
}

/// No single pod could leave the large node for less; two of them can.
#[test]
fn claims_alike_are_packed_anew_if_that_is_cheaper() {
    check(
        "type tiny cpu=1 memory=4Gi pods=9 price=0.03
         type half cpu=8 memory=64Gi pods=9 price=0.27
         type full cpu=16 memory=128Gi pods=9 price=0.54
         pool general
         pod big cpu=3500m memory=28Gi x4
         pod apart cpu=900m memory=3Gi x2 label:app=a apart:host:app=a",
        "new general [half full]: apart-0 big-0 big-1
         new general [half full]: apart-1 big-2 big-3",
    );
}
