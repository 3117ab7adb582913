//! Behaviour that the table in `tests/e2e/cases` cannot show on our own kinds, on a small kind made for it.

use serde_json::json;

use super::*;

const SPEC: &str = r#"
type: object
properties:
  short: {type: string, maxLength: 3}
  small: {type: integer, x-kubernetes-validations: [{rule: self < 10, message: too big}]}
  count: {type: integer, format: int32}
  nested:
    type: object
    default: {}
    properties:
      inner:
        type: array
        default: [{}]
        items: {type: object, properties: {size: {type: integer, default: 1}}}
  open: {type: object, x-kubernetes-preserve-unknown-fields: true}
  maybe: {type: string, nullable: true, default: x}
  keyed:
    type: array
    x-kubernetes-list-type: map
    x-kubernetes-list-map-keys: [name]
    items:
      type: object
      required: [name]
      properties:
        name: {type: string}
        size: {type: integer, x-kubernetes-validations: [{rule: self >= oldSelf, message: must not shrink}]}
        short: {type: string, maxLength: 3}
  plain:
    type: array
    items:
      type: object
      properties:
        size: {type: integer, x-kubernetes-validations: [{rule: self >= oldSelf, message: must not shrink}]}
        short: {type: string, maxLength: 3}
"#;

fn admission() -> Admission {
    admission_for(serde_saphyr::from_str(SPEC).unwrap()).unwrap()
}

/// Admission for a kind with the given schema of its spec.
fn admission_for(spec: Value) -> Result<Admission, AdmissionError> {
    let status = json!({"type": "object", "properties": {"ok": {"type": "boolean"}}});
    let schema = json!({"type": "object", "properties": {"spec": spec, "status": status}});
    let crd = json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Cluster",
            "names": {"kind": "Thing", "plural": "things"},
            "versions": [{
                "name": "v1",
                "served": true,
                "storage": true,
                "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": schema},
            }],
        },
    });
    Admission::new(&[serde_json::from_value(crd).unwrap()])
}

fn thing(spec: Value) -> Value {
    json!({"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "a"}, "spec": spec})
}

fn accepted(outcome: Outcome) -> Accepted {
    match outcome {
        Outcome::Accepted(accepted) => accepted,
        Outcome::Rejected(rejections) => panic!("rejected: {rejections:?}"),
    }
}

fn rejected(outcome: Outcome) -> Vec<(String, Rule)> {
    match outcome {
        Outcome::Accepted(accepted) => panic!("accepted: {}", accepted.object),
        Outcome::Rejected(found) => found.into_iter().map(|found| (found.field, found.rule)).collect(),
    }
}

fn at(field: &str, rule: Rule) -> Vec<(String, Rule)> {
    vec![(field.to_owned(), rule)]
}

#[test]
fn a_default_is_filled_into_a_default() {
    let created = accepted(admission().create(&thing(json!({}))));
    assert_eq!(created.object["spec"], json!({"nested": {"inner": [{"size": 1}]}, "maybe": "x"}));
}

#[test]
fn a_null_stays_only_where_null_is_allowed() {
    let created = accepted(admission().create(&thing(json!({"maybe": null, "short": null, "nested": null}))));
    assert_eq!(created.object["spec"], json!({"nested": {"inner": [{"size": 1}]}, "maybe": null}));
}

#[test]
fn unknown_fields_are_dropped_and_named_unless_the_schema_is_open() {
    let mut object = thing(json!({"open": {"a": {"b": null}}, "typo": 1, "plain": [{"size": 1, "typo": 2}]}));
    object["metadata"]["typo"] = json!(3);
    let created = accepted(admission().create(&object));
    assert_eq!(created.pruned, ["metadata.typo", "spec.plain[0].typo", "spec.typo"]);
    assert_eq!(created.object["spec"]["open"], json!({"a": {"b": null}}));
    assert_eq!(created.object["spec"]["plain"], json!([{"size": 1}]));
}

#[test]
fn rules_are_not_evaluated_on_an_object_of_the_wrong_shape() {
    let admission = admission();
    assert_eq!(rejected(admission.create(&thing(json!({"small": 10})))), at("spec.small", Rule::Cel));
    let both = thing(json!({"small": 10, "short": "long"}));
    assert_eq!(rejected(admission.create(&both)), at("spec.short", Rule::MaxLength));
}

#[test]
fn length_is_counted_in_characters() {
    accepted(admission().create(&thing(json!({"short": "äöü"}))));
}

#[test]
fn a_number_fits_its_format() {
    let admission = admission();
    accepted(admission.create(&thing(json!({"count": i32::MAX}))));
    let beyond = thing(json!({"count": i64::from(i32::MAX) + 1}));
    assert_eq!(rejected(admission.create(&beyond)), at("spec.count", Rule::Range));
}

#[test]
fn items_are_compared_with_their_past_by_key_and_never_by_place() {
    let admission = admission();
    let old = thing(json!({"keyed": [{"name": "a", "size": 5}, {"name": "b", "size": 1}], "plain": [{"size": 5}]}));
    let moved = thing(json!({"keyed": [{"name": "b", "size": 1}, {"name": "a", "size": 5}], "plain": [{"size": 1}]}));
    accepted(admission.update(&old, &moved));
    let shrunk = thing(json!({"keyed": [{"name": "b", "size": 1}, {"name": "a", "size": 4}]}));
    assert_eq!(rejected(admission.update(&old, &shrunk)), at("spec.keyed[1].size", Rule::Cel));
}

#[test]
fn a_wrong_value_is_tolerated_while_it_does_not_change() {
    let admission = admission();
    let old = thing(json!({"short": "long", "small": 10}));
    let elsewhere = thing(json!({"short": "long", "small": 10, "count": 1}));
    accepted(admission.update(&old, &elsewhere));
    let other = thing(json!({"short": "longer", "small": 10}));
    assert_eq!(rejected(admission.update(&old, &other)), at("spec.short", Rule::MaxLength));
    let bigger = thing(json!({"short": "long", "small": 11}));
    assert_eq!(rejected(admission.update(&old, &bigger)), at("spec.small", Rule::Cel));
}

#[test]
fn a_wrong_item_is_tolerated_by_key_or_while_its_whole_list_stays() {
    let admission = admission();
    let old = thing(json!({"keyed": [{"name": "a", "short": "long"}], "plain": [{"short": "long"}]}));
    let keyed = thing(json!({"keyed": [{"name": "b"}, {"name": "a", "short": "long"}], "plain": [{"short": "long"}]}));
    accepted(admission.update(&old, &keyed));
    let plain = thing(json!({"plain": [{"short": "long"}, {"short": "ok"}]}));
    assert_eq!(rejected(admission.update(&old, &plain)), at("spec.plain[0].short", Rule::MaxLength));
}

#[test]
fn duplicates_are_tolerated_in_an_object_that_already_had_some() {
    let admission = admission();
    let double = thing(json!({"keyed": [{"name": "a"}, {"name": "a"}, {"name": "a"}]}));
    assert_eq!(rejected(admission.create(&double)), at("spec.keyed[1]", Rule::Duplicate));
    let fresh = thing(json!({"keyed": [{"name": "a"}]}));
    assert_eq!(rejected(admission.update(&fresh, &double)), at("spec.keyed[1]", Rule::Duplicate));
    let other = thing(json!({"keyed": [{"name": "b"}, {"name": "b"}]}));
    accepted(admission.update(&double, &other));
}

#[test]
fn status_and_spec_are_written_apart() {
    let admission = admission();
    let with_status = |spec: Value, ok: Value| {
        let mut object = thing(spec);
        object["status"] = json!({"ok": ok});
        object
    };
    assert_eq!(accepted(admission.create(&with_status(json!({}), json!("no bool")))).object.get("status"), None);
    let old = with_status(json!({"count": 1}), json!(true));
    let new = with_status(json!({"count": 2}), json!(false));
    assert_eq!(accepted(admission.update(&old, &new)).object["status"]["ok"], json!(true));
    let written = accepted(admission.update_status(&old, &new)).object;
    assert_eq!((&written["status"]["ok"], &written["spec"]["count"]), (&json!(false), &json!(1)));
    let wrong = with_status(json!({}), json!("no bool"));
    assert_eq!(rejected(admission.update_status(&old, &wrong)), at("status.ok", Rule::Type));
}

#[test]
fn an_unknown_kind_or_version_is_no_resource() {
    let mut object = thing(json!({}));
    object["apiVersion"] = json!("example.com/v2");
    assert_eq!(rejected(admission().create(&object)), at("", Rule::UnknownKind));
    assert_eq!(rejected(admission().create(&json!(["not an object"]))), at("", Rule::UnknownKind));
}

#[test]
fn a_name_cannot_be_changed() {
    let mut renamed = thing(json!({}));
    renamed["metadata"]["name"] = json!("b");
    assert_eq!(rejected(admission().update(&thing(json!({})), &renamed)), at("metadata.name", Rule::Metadata));
}

#[test]
fn a_definition_that_cannot_be_checked_is_refused() {
    let unknown_format = json!({"type": "string", "format": "made-up"});
    assert!(admission_for(unknown_format).is_ok(), "the server ignores formats it does not know");
    for property in [
        json!({"type": "string", "format": "ipv4"}),
        json!({"type": "string", "pattern": "("}),
        json!({"type": "object", "x-kubernetes-embedded-resource": true}),
        json!({"type": "string", "x-kubernetes-validations": [{"rule": "self =="}]}),
        json!({"type": "string", "x-kubernetes-validations": [{"rule": "oldSelf.hasValue()", "optionalOldSelf": true}]}),
    ] {
        assert!(admission_for(property.clone()).is_err(), "{property}");
    }
}
