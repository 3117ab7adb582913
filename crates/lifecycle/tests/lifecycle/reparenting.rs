//! Moving a node to another pool by its label: sheet 03 §15.4.

use crate::world::{World, check};

const CLAIM: &str = "claim a id=i-1 launched registered initialized cond.ConsistentStateFound=True owner=old";
const NODE: &str = "node n id=i-1 registered initialized";

fn world(claim_pool: &str, node_pool: &str, pools: &str) -> World {
    World::new(&format!("{CLAIM} pool={claim_pool}\n{NODE} pool={node_pool}\npool old\n{pools}"))
}

/// Sheet 03 case 92.
#[test]
fn a_relabelled_node_takes_its_claim_along_and_nothing_rolls_if_the_pools_agree() {
    check(
        &world("old", "new", "pool new hash=9").claim("a"),
        "event Reparented on claim a
         patch claim a: karpenter.sh/nodepool=new @karpenter.sh/nodepool-hash=9 @karpenter.sh/nodepool-hash-version=v3 owners=[new]",
    );
    check(
        &world("old", "new", "pool new hash=9 taint=gpu:NoSchedule").claim("a"),
        "event Reparented on claim a
         patch claim a: karpenter.sh/nodepool=new owners=[new]",
    );
}

/// A label that only the first pool gives was forgotten, and stayed on the node for ever.
#[test]
fn what_only_the_first_pools_template_has_is_a_difference_too() {
    for (word, value) in [("label", "template-label.team=a"), ("annotation", "template-annotation.team=a")] {
        let moves = |old: &str, new: &str| {
            let mut world = world("old", "new", &format!("pool new hash=9 {new}"));
            world.apply(&format!("pool old {old}\n{CLAIM} pool=old {word}.team=a"));
            world.claim("a")
        };
        assert!(!moves(value, "").contains("nodepool-hash=9"), "{word}");
        assert!(moves(value, value).contains("nodepool-hash=9"), "{word}");
        // Somebody's own stays what it is.
        assert!(moves("", "").contains("nodepool-hash=9"), "{word}");
    }
}

#[test]
fn a_relabelled_claim_moves_its_node_first() {
    let mut world = world("new", "old", "pool new");
    check(&world.claim("a"), "patch node n: karpenter.sh/nodepool=new");
    world.apply(&format!("{NODE} pool=new"));
    check(
        &world.claim("a"),
        "event Reparented on claim a
         patch claim a: owners=[new]",
    );
}

/// The command of the older guides: `kubectl label node … karpenter.sh/provisioner-name=new --overwrite`.
#[test]
fn a_node_relabelled_by_the_old_name_of_pools_moves_too_and_not_back() {
    let legacy = "label.karpenter.sh/provisioner-name";
    let mut world = world("old", "old", "pool new hash=9\npool third");
    world.apply(&format!("{NODE} pool=old {legacy}=old"));
    check(&world.claim("a"), "");
    world.apply(&format!("{NODE} pool=old {legacy}=new"));
    check(&world.claim("a"), "patch node n: karpenter.sh/nodepool=new");
    world.apply(&format!("{NODE} pool=new {legacy}=new"));
    check(
        &world.claim("a"),
        "event Reparented on claim a
         patch claim a: karpenter.sh/nodepool=new @karpenter.sh/nodepool-hash=9 @karpenter.sh/nodepool-hash-version=v3 owners=[new]",
    );
    // Later it is moved by the label of today: the old one follows.
    world.apply(&format!("{} pool=new\n{NODE} pool=third {legacy}=new", CLAIM.replace("owner=old", "owner=new")));
    check(&world.claim("a"), "patch node n: karpenter.sh/provisioner-name=third");
    check(
        &self::world("old", "old", &format!("{NODE} pool=old {legacy}=nowhere")).claim("a"),
        "event ReparentBlocked on claim a",
    );
}

/// Sheet 03 case 92: it lives on without its first pool, and what differs drifts under the budgets of the second.
#[test]
fn a_node_that_has_moved_does_not_miss_its_first_pool() {
    let moved = |more: &str| {
        let hashes = "annotation.karpenter.sh/nodepool-hash-version=v3 annotation.karpenter.sh/nodepool-hash=1";
        let claim = CLAIM.replace("owner=old", "owner=new");
        World::new(&format!("class default\n{claim} pool=new {hashes}\n{NODE} pool=new\npool new {more}"))
    };
    check(&moved("").claim("a"), "");
    let version = "annotation.karpenter.sh/nodepool-hash-version=v3";
    let target = format!("hash=9 taint=gpu:NoSchedule {version} annotation.karpenter.sh/nodepool-hash=9");
    check(&moved(&target).claim("a"), "patch claim a: Drifted=True/NodePoolDrifted");
}

/// Sheet 03 case 92, end.
#[test]
fn a_move_that_makes_no_sense_is_refused() {
    let blocked = "event ReparentBlocked on claim a";
    check(&world("old", "nowhere", "").claim("a"), blocked);
    check(&world("old", "new", "pool new deleting=11:00").claim("a"), blocked);
    check(&world("old", "new", "pool new class-kind=EC2NodeClass").claim("a"), blocked);
    check(&world("old", "new", "pool new replicas=3").claim("a"), blocked);
    check(&world("old", "new", "pool new invalid=bad").claim("a"), blocked);
    check(&world("old", "old", "pool new").claim("a"), "");
}

#[test]
fn a_claim_that_its_pool_left_behind_is_not_moved() {
    let mut world =
        World::new(&format!("{} pool=old orphan\n{NODE} pool=new\npool new", CLAIM.replace("owner=old", "")));
    check(&world.claim("a"), "");
}
