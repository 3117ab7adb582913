//! Disruption on a real API server: nodes that are empty, drifted, too dear or sick are removed or replaced, replacement
//! first, as far as budgets, windows, toggles and annotations allow.

mod agreement;
mod announced;
mod choice;
mod deletion_cost;
mod drift;
mod held_back;
mod interrupted;
mod upkeep;

cases! {
    steady: [
        agreement::what_is_under_way_is_told_by_the_cluster_and_by_a_dump,
        announced::a_node_whose_machine_will_be_taken_away_goes_ahead_of_it,
        announced::a_node_that_should_be_left_stays_unless_asked_otherwise,
        choice::an_empty_node_goes,
        choice::a_node_that_is_too_large_is_replaced_by_a_cheaper_one,
        choice::three_nodes_become_one,
        choice::several_nodes_become_a_new_one,
        drift::labels_roll_the_node,
        drift::annotations_roll_the_node,
        drift::taints_roll_the_node,
        drift::startup_taints_roll_the_node,
        drift::requirements_roll_the_node,
        drift::one_at_a_time_if_the_budget_says_so,
        drift::as_many_at_once_as_the_share_rounded_up,
        drift::a_budget_of_pods_counts_over_all_nodes,
        drift::pods_of_a_node_go_one_by_one_if_their_budget_says_so,
        drift::a_replacement_that_never_joins_is_rolled_back,
        held_back::a_budget_of_none_keeps_an_empty_node,
        held_back::a_budget_with_a_schedule_keeps_an_empty_node_in_its_time,
        held_back::a_disruption_budget_of_the_pods_keeps_the_node,
        held_back::a_protected_pod_keeps_the_node_until_it_is_not_any_more,
        held_back::a_protected_node_stays_until_it_is_not_any_more,
        held_back::a_maintenance_window_keeps_the_node,
        held_back::a_maintenance_window_keeps_those_it_selects_in_its_time,
        held_back::a_maintenance_window_keeps_an_old_node,
        held_back::budgets_of_every_kind_hold_drift_back,
        held_back::a_pool_with_drift_switched_off_keeps_the_node,
        held_back::a_pool_with_consolidation_switched_off_keeps_an_empty_node,
        held_back::a_pool_with_expiration_switched_off_keeps_an_old_node,
        held_back::a_pool_that_gives_up_no_node_still_gets_new_ones,
        held_back::a_disabled_pool_keeps_its_node_and_gets_none,
        upkeep::a_static_pool_has_as_many_nodes_as_it_says,
        upkeep::a_sick_node_is_replaced,
        upkeep::a_node_that_needs_it_is_booted_again,
        upkeep::too_many_sick_nodes_are_left_alone,
    ],
    // Not the choices: a proposal is held for fifteen seconds, which no controller that is killed so often lives.
    killed: [
        drift::labels_roll_the_node,
        drift::one_at_a_time_if_the_budget_says_so,
        upkeep::a_static_pool_has_as_many_nodes_as_it_says,
    ],
}
