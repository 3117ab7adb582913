//! What the manifests under `deploy` let people do.

use kerf_api::manifest;
use serde_json::Value;

const MANIFEST: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/manifests/kwok.yaml");

/// Roles that the cluster gives to people in their own namespaces take in every role with such a label.
const AGGREGATED: &str = "rbac.authorization.k8s.io/aggregate-to-";

/// Whoever administers a namespace could freeze the nodes of all others.
#[test]
fn only_who_may_do_anything_makes_or_deletes_windows() {
    let mut readers = Vec::new();
    let bytes = std::fs::read(MANIFEST).unwrap();
    for document in manifest::read(MANIFEST, &bytes) {
        let object = Value::Object(document.unwrap().object);
        let labels = object["metadata"]["labels"].as_object();
        let to: Vec<&str> = labels.into_iter().flatten().filter_map(|(key, _)| key.strip_prefix(AGGREGATED)).collect();
        for rule in object["rules"].as_array().into_iter().flatten().filter(|_| !to.is_empty()) {
            let texts =
                |key: &str| -> Vec<&str> { rule[key].as_array().unwrap().iter().filter_map(Value::as_str).collect() };
            if texts("resources").iter().any(|kind| kind.starts_with("maintenancewindows") || *kind == "*") {
                assert_eq!(texts("verbs"), ["get", "list", "watch"], "{rule}");
                readers.extend(to.iter().map(ToString::to_string));
            }
        }
    }
    assert_eq!(readers, ["view"]);
}
