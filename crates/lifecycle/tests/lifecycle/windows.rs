//! The status of maintenance windows: sheet 03 §15.1, case 88.

use crate::world::{World, check};

const NODES: &str = "node a id=i-1 label.zone=a\nnode b id=i-2 label.zone=b";

#[test]
fn a_window_says_whether_it_is_active_until_when_and_on_how_many_nodes() {
    let mut world = World::new(&format!("{NODES}\nwindow w daily=11 for=2h\nwindow one daily=14 for=1h covers=a"));
    check(
        &world.window("w"),
        "patch window w: active=true next=13:00 nodes=2 Ready=True/Ready
         wake 13:00:00",
    );
    check(
        &world.window("one"),
        "patch window one: active=false next=14:00 nodes=1 Ready=True/Ready
         wake 14:00:00",
    );
    world.apply("now 13:00");
    check(
        &world.window("w"),
        "patch window w: active=false next=11:00 nodes=2 Ready=True/Ready
         wake 2026-11-17T11:00:00Z",
    );
    check(&World::new(&format!("{NODES}\nwindow gone deleting=11:00")).window("gone"), "");
}

#[test]
fn what_a_window_says_already_is_not_written_again() {
    let mut world = World::new(&format!("{NODES}\nwindow w daily=11 for=2h"));
    world.write_window("w");
    check(&world.window("w"), "wake 13:00:00");
    world.apply("node c id=i-3");
    check(
        &world.window("w"),
        "patch window w: active=true next=13:00 nodes=3 Ready=True/Ready
         wake 13:00:00",
    );
}

/// Case 88: closed, and it says so.
#[test]
fn a_window_that_cannot_be_read_counts_as_active_and_says_why() {
    check(
        &World::new("window w invalid=bad").window("w"),
        "event WindowUnreadable on window w
         patch window w: active=true next=- nodes=0 Ready=False/Unreadable",
    );
}
