use serde_json::{Value, json};

use super::*;

fn check(patch: Patch, before: Value, after: Value) {
    assert_eq!(patch.apply(Kind::Node, &before).unwrap(), after);
}

fn refused(patch: Patch, before: Value) -> String {
    patch.apply(Kind::Node, &before).unwrap_err().to_string()
}

#[test]
fn a_merge_patch_merges_objects_replaces_lists_and_removes_nulls() {
    check(
        Patch::Merge(json!({"a": {"x": null, "y": 2}, "list": [3], "new": {"deep": {"gone": null}}})),
        json!({"a": {"x": 1, "z": 3}, "list": [1, 2]}),
        json!({"a": {"y": 2, "z": 3}, "list": [3], "new": {"deep": {}}}),
    );
}

#[test]
fn a_json_patch_does_its_operations_in_order() {
    check(
        Patch::Json(json!([
            {"op": "test", "path": "/a/b~1c", "value": 1},
            {"op": "add", "path": "/list/-", "value": "end"},
            {"op": "add", "path": "/list/0", "value": "start"},
            {"op": "replace", "path": "/a/b~1c", "value": 2},
            {"op": "copy", "from": "/a", "path": "/copy"},
            {"op": "move", "from": "/old", "path": "/new"},
            {"op": "remove", "path": "/list/1"},
        ])),
        json!({"a": {"b/c": 1}, "list": ["middle"], "old": true}),
        json!({"a": {"b/c": 2}, "copy": {"b/c": 2}, "list": ["start", "end"], "new": true}),
    );
}

#[test]
fn a_json_patch_may_test_that_nothing_is_there() {
    check(
        Patch::Json(json!([
            {"op": "test", "path": "/metadata/finalizers", "value": null},
            {"op": "add", "path": "/metadata/finalizers", "value": ["a"]},
        ])),
        json!({"metadata": {}}),
        json!({"metadata": {"finalizers": ["a"]}}),
    );
}

#[test]
fn a_json_patch_that_does_not_apply_says_where() {
    let test = json!([{"op": "test", "path": "/a", "value": 2}]);
    assert_eq!(
        refused(Patch::Json(test), json!({"a": 1})),
        "the patch does not apply: operation 0: the test of \"/a\" failed"
    );
    for operation in [
        json!({"op": "remove", "path": "/b"}),
        json!({"op": "replace", "path": "/b", "value": 1}),
        json!({"op": "add", "path": "/b/c", "value": 1}),
        json!({"op": "add", "path": "/list/3", "value": 1}),
        json!({"op": "explode", "path": "/a"}),
    ] {
        refused(Patch::Json(json!([operation])), json!({"a": 1, "list": []}));
    }
    refused(Patch::Json(json!({})), json!({}));
}

#[test]
fn a_strategic_patch_merges_conditions_by_type() {
    check(
        Patch::Strategic(json!({"status": {"conditions": [
            {"type": "Ready", "status": "False"}, {"type": "New", "status": "True"},
        ]}})),
        json!({"status": {"conditions": [{"type": "Ready", "status": "True", "reason": "x"}, {"type": "Other"}]}}),
        json!({"status": {"conditions": [
            {"type": "Ready", "status": "False", "reason": "x"}, {"type": "Other"}, {"type": "New", "status": "True"},
        ]}}),
    );
}

#[test]
fn a_strategic_patch_adds_and_removes_single_finalizers() {
    let before = json!({"metadata": {"finalizers": ["a", "b"]}});
    check(
        Patch::Strategic(json!({"metadata": {"finalizers": ["b", "c"]}})),
        before.clone(),
        json!({"metadata": {"finalizers": ["a", "b", "c"]}}),
    );
    let removal = json!({"metadata": {
        "$deleteFromPrimitiveList/finalizers": ["a"], "$setElementOrder/finalizers": ["b"],
    }});
    check(Patch::Strategic(removal), before, json!({"metadata": {"finalizers": ["b"]}}));
}

#[test]
fn a_strategic_patch_replaces_taints_as_a_whole() {
    check(
        Patch::Strategic(json!({"spec": {"taints": [{"key": "b", "effect": "NoSchedule"}]}})),
        json!({"spec": {"taints": [{"key": "a", "effect": "NoExecute"}]}}),
        json!({"spec": {"taints": [{"key": "b", "effect": "NoSchedule"}]}}),
    );
}

#[test]
fn a_strategic_patch_deletes_owners_by_uid_and_replaces_on_demand() {
    let before = json!({"metadata": {"ownerReferences": [{"uid": "1"}, {"uid": "2"}], "labels": {"a": "b"}}});
    let patch = json!({"metadata": {
        "ownerReferences": [{"uid": "1", "$patch": "delete"}], "labels": {"$patch": "replace", "c": "d"},
    }});
    check(
        Patch::Strategic(patch),
        before,
        json!({"metadata": {"ownerReferences": [{"uid": "2"}], "labels": {"c": "d"}}}),
    );
}

#[test]
fn custom_resources_take_no_strategic_patch() {
    let error = Patch::Strategic(json!({})).apply(Kind::NodePool, &json!({})).unwrap_err();
    assert_eq!((error.code(), error.reason()), (415, "UnsupportedMediaType"));
}
