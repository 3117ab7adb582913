//! Drift that needs no new node: sheet 03 §15.6, case 93.

use kerf_model::change::Input;
use kerf_model::cloud::{CloudDrift, UpdateAnswer};
use kerf_model::effect::{Effect, Target, WriteError};

use crate::world::{World, check};

const LABELS: &str = "spec.template.metadata.labels";
const ANNOTATIONS: &str = "spec.template.metadata.annotations";
const HASHES: &str = "annotation.karpenter.sh/nodepool-hash-version=v3 annotation.karpenter.sh/nodepool-hash";
const FIELDS: &str = "annotation.kerf.sh/nodepool-field-hashes";
const RUNNING: &str = "id=i-1 launched registered initialized cond.ConsistentStateFound=True pool=p";
const NODE: &str = "node n id=i-1 registered initialized owner=a pool=p";

/// Claim `a` was made from a template with the fields `old`; the pool has those of `new` now. More words for the pool and
/// for both claim and node.
fn edited(old: &str, new: &str, pool: &str, both: &str) -> World {
    let mut world = World::new(&format!(
        "class default
         pool p hash=2 fields=v1_2_{new} {HASHES}=2 {FIELDS}=v1_2_{new} {pool}
         claim a {RUNNING} {HASHES}=1 {FIELDS}=v1_1_{old} {both}
         {NODE} {both}"
    ));
    world.settings.in_place_drift = true;
    world
}

/// `spec…labels[team]=01`, with a hash of its own for every value.
fn field(map: &str, key: &str, hash: &str) -> String {
    format!("{map}[{key}]={hash}")
}

/// Sheet 03 case 93.
#[test]
fn a_new_label_that_no_pod_asks_for_is_put_on_the_node_and_then_on_the_claim() {
    let new = field(LABELS, "team", "01");
    let mut world = edited("", &new, "template-label.team=a", "");
    check(&world.claim("a"), "patch node n: team=a");
    world.apply(&format!("{NODE} label.team=a"));
    check(
        &world.claim("a"),
        &format!(
            "patch claim a: team=a @karpenter.sh/nodepool-hash=2 @kerf.sh/nodepool-field-hashes=v1 2 {new} InPlaceUpdated=True"
        ),
    );
}

#[test]
fn annotations_are_added_changed_and_removed() {
    let old = [field(ANNOTATIONS, "note", "01"), field(ANNOTATIONS, "old", "02")].join(",");
    let new = [field(ANNOTATIONS, "more", "04"), field(ANNOTATIONS, "note", "03")].join(",");
    let template = "template-annotation.note=b template-annotation.more=c";
    let mut world = edited(&old, &new, template, "annotation.note=a annotation.old=x");
    check(&world.claim("a"), "patch node n: @more=c @note=b @old=-");
}

/// Sheet 03 case 93: a label removed.
#[test]
fn everything_else_takes_a_new_node_and_says_why() {
    let team = field(LABELS, "team", "01");
    let drifted = "patch claim a: Drifted=True/NodePoolDrifted";
    for (old, new, pool, both) in [
        // Changed, removed, and one that the node has already with another value.
        (team.as_str(), &*field(LABELS, "team", "02"), "template-label.team=b", "label.team=a"),
        (&team, "", "", "label.team=a"),
        ("", &team, "template-label.team=b", "label.team=a"),
        ("", "spec.template.spec.taints=01", "taint=x:NoSchedule", ""),
        // One field that can be changed does not make up for another that cannot.
        ("", &*format!("{team},spec.template.spec.taints=01"), "template-label.team=a taint=x:NoSchedule", ""),
    ] {
        check(&edited(old, new, pool, both).claim("a"), drifted);
    }
    // A claim without the map; the gate off.
    let mut unknown = edited("", &team, "template-label.team=a", "");
    unknown.apply(&format!("claim a {RUNNING} {HASHES}=1"));
    check(&unknown.claim("a"), drifted);
    let mut off = edited("", &team, "template-label.team=a", "");
    off.settings.in_place_drift = false;
    check(&off.claim("a"), drifted);
}

#[test]
fn a_label_that_some_pod_chooses_nodes_by_takes_a_new_node() {
    let new = field(LABELS, "team", "01");
    for rule in ["selects=team:a", "needs=team:Exists", "prefers=team:In:a", "spreads=team", "avoids=team"] {
        let mut world = edited("", &new, "template-label.team=a", "");
        world.apply(&format!("pod x node=other {rule}"));
        check(&world.claim("a"), "patch claim a: Drifted=True/NodePoolDrifted");
        world.apply(&format!("pod x node=other phase=Succeeded {rule}"));
        check(&world.claim("a"), "patch node n: team=a");
    }
}

#[test]
fn a_window_and_the_pools_switches_hold_it_back_without_calling_the_claim_drifted() {
    let new = field(LABELS, "team", "01");
    let mut world = edited("", &new, "template-label.team=a", "");
    world.apply("window w daily=11 for=2h actions=Drift");
    check(
        &world.claim("a"),
        "patch claim a: InPlaceUpdated=False/Held
         wake 13:00:00",
    );
    world.apply("now 13:00");
    check(&world.claim("a"), "patch node n: team=a");
    for off in ["disabled", "disruption-off", "drift-off"] {
        let mut world = edited("", &new, &format!("template-label.team=a {off}"), "");
        check(&world.claim("a"), "patch claim a: InPlaceUpdated=False/Held");
    }
}

#[test]
fn after_three_refusals_it_takes_a_new_node_until_the_pool_is_edited_again() {
    let new = field(LABELS, "team", "01");
    let mut world = edited("", &new, "template-label.team=a", "");
    for _ in 0..3 {
        check(&world.claim("a"), "patch node n: team=a");
        let steps = world.claim_steps("a");
        let error = WriteError::Invalid { message: "no".to_owned() };
        world.hear(Input::WriteFailed { effect: Box::new(steps.effects[0].clone()), error });
    }
    check(&world.claim("a"), "patch claim a: Drifted=True/NodePoolDrifted");
    world.apply(&format!(
        "pool p generation=2 hash=2 fields=v1_2_{new} {HASHES}=2 {FIELDS}=v1_2_{new} template-label.team=a"
    ));
    check(&world.claim("a"), "patch node n: team=a");
}

fn target() -> Target {
    Target { name: kerf_model::cluster::ObjectName::of_cluster("a"), uid: "uid-a".into() }
}

fn tagged(world: &mut World) {
    let drift = CloudDrift { reason: "NodeClassDrift".into(), message: "tags".into(), in_place: true };
    world.hear(Input::DriftFound { claim: target(), drift: Some(drift) });
}

/// Sheet 03 case 93: tags and detailed monitoring; and the limit of tags.
#[test]
fn the_provider_changes_what_it_can_of_the_running_instance() {
    let mut world = World::new(&format!("class default\npool p\nclaim a {RUNNING}\n{NODE}"));
    (world.settings.in_place_drift, world.settings.provider_drift) = (true, true);
    tagged(&mut world);
    check(
        &world.claim("a"),
        "update the instance of a
         wake 12:01:00",
    );
    check(&world.claim("a"), "wake 12:01:00");
    let done = UpdateAnswer::Done { annotations: [("example.com/hash".into(), "2".into())].into() };
    world.hear(Input::InstanceUpdated { claim: target(), answer: done });
    check(&world.claim("a"), "patch claim a: @example.com/hash=2");
    world.apply(&format!("claim a {RUNNING} annotation.example.com/hash=2"));
    check(
        &world.claim("a"),
        "check drift of a
         patch claim a: InPlaceUpdated=True
         wake 12:01:00",
    );
    world.hear(Input::DriftFound { claim: target(), drift: None });
    check(&world.claim("a"), "wake 12:05:00");

    tagged(&mut world);
    let answer = UpdateAnswer::Impossible { message: "50 tags".into() };
    world.hear(Input::InstanceUpdated { claim: target(), answer });
    let steps = world.claim("a");
    assert!(steps.contains("event InPlaceUpdateFailed on claim a"), "{steps}");
    assert!(steps.contains("Drifted=True/NodeClassDrift"), "{steps}");

    world.settings.in_place_drift = false;
    world.drift_found("a", None);
    tagged(&mut world);
    assert!(world.claim("a").contains("Drifted=True/NodeClassDrift"));
    assert!(!world.claim_steps("a").effects.iter().any(|effect| matches!(effect, Effect::UpdateInstance { .. })));
}
