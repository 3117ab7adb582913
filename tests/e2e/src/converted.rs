//! What `kerf convert` makes of the legacy manifests in `crates/api/tests/convert`: objects that a real server must take.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use kerf_api::admission::Admission;
use kerf_api::manifest::{self, Document};
use serde_json::Value;

/// Every converted object of a kind that the definitions describe, with the file it is from.
pub fn objects(admission: &Admission) -> Result<Vec<(String, Value)>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../crates/api/tests/convert");
    let mut names: Vec<String> = fs::read_dir(&folder)
        .with_context(|| format!("no examples in {}", folder.display()))?
        .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
        .collect::<Result<_>>()?;
    names.retain(|name| name.ends_with(".expected.yaml"));
    names.sort();
    let mut objects = Vec::new();
    for name in names {
        for document in manifest::read(&name, &fs::read(folder.join(&name))?) {
            let objects_of = document?.flatten().into_iter().map(|Document { object, .. }| Value::Object(object));
            objects.extend(objects_of.filter(|object| admission.knows(object)).map(|object| (name.clone(), object)));
        }
    }
    ensure!(!objects.is_empty(), "the examples of conversion hold no object of ours");
    Ok(objects)
}
