//! `kerf controller` on a real API server: pods get nodes, and nodes go politely, whatever is deleted and whatever is killed.
//!
//! Most cases are run twice: under a controller that runs through, and under one that is killed every few seconds. Those
//! that share a controller run side by side. The rest has the bed to itself.

mod deletion;
mod drain;
mod end;
mod leading;
mod outage;
mod provisioning;
pub mod standalone;
mod surroundings;

cases! { twice: [
    provisioning::a_hundred_pods_get_nodes_and_run,
    provisioning::a_pool_says_what_it_has_and_whether_its_class_is_ready,
    standalone::a_claim_without_a_pool_becomes_a_node,
    standalone::labels_annotations_and_taints_reach_the_node,
    standalone::a_claim_whose_class_is_missing_is_deleted,
    standalone::a_claim_whose_class_is_not_ready_is_deleted,
    standalone::a_claim_that_is_deleted_before_its_node_joins_leaves_no_node,
    standalone::a_node_that_cannot_join_costs_the_claim_its_life,
    deletion::a_deleted_node_is_tainted_drained_and_replaced,
    deletion::a_deleted_claim_takes_its_node_along,
    deletion::a_deleted_pool_takes_everything_along,
    deletion::a_pool_deleted_in_the_foreground_goes_last,
    deletion::an_orphaned_claim_keeps_its_node,
    drain::pods_leave_in_four_groups_one_after_the_other,
    drain::a_budget_holds_a_drain_until_its_deadline,
    drain::a_protected_pod_holds_a_drain_until_its_deadline,
    drain::a_protected_pod_holds_a_drain_until_the_protection_is_taken_away,
    drain::a_pod_that_is_slow_to_stop_is_waited_for,
    end::a_node_expires_and_its_pods_move,
    end::a_node_expires_although_a_budget_protects_its_pods,
    end::a_claim_without_an_instance_is_collected,
    end::an_instance_without_a_claim_is_collected,
]}
