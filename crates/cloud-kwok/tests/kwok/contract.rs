//! The contract of all providers, on nodes in memory.

use jiff::Timestamp;
use kerf_cloud::{Catalogue, contract};
use kerf_cloud_kwok::KwokProvider;

use crate::support::{Memory, Ticking, class, now_or_never};

fn check(catalogue: Catalogue, delay_secs: i64) {
    let nodes = Memory::default();
    let provider = KwokProvider::new(nodes.clone(), catalogue);
    let mut world = Ticking { class: class(delay_secs), now: Timestamp::UNIX_EPOCH };
    assert_eq!(now_or_never(contract::check(&provider, &mut world)), []);
    assert_eq!(nodes.names(), Vec::<String>::new(), "all were terminated");
    assert!(nodes.posts() > 5);
}

#[test]
fn nodes_of_the_built_in_types_keep_the_contract() {
    check(Catalogue::kwok(), 0);
}

#[test]
fn nodes_like_those_of_ec2_keep_the_contract() {
    check(Catalogue::ec2_like(), 0);
}

#[test]
fn nodes_that_join_late_keep_the_contract() {
    check(Catalogue::kwok(), 30);
}
