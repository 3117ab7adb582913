//! The definitions under `deploy/crds` are those that the code makes.
//!
//! After a change to a type: `KERF_UPDATE=1 cargo test -p kerf-api --test deployed_crds`.

use std::collections::BTreeMap;
use std::path::Path;
use std::{env, fs};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;

const DIRECTORY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/crds");

fn made() -> BTreeMap<String, String> {
    let file_name = |crd: &CustomResourceDefinition| format!("{}_{}.yaml", crd.spec.group, crd.spec.names.plural);
    kerf_api::crds(None).iter().map(|crd| (file_name(crd), kerf_api::crd_yaml(crd))).collect()
}

fn deployed(directory: &Path) -> BTreeMap<String, String> {
    let entries = fs::read_dir(directory).expect("deploy/crds can be listed");
    entries
        .map(|entry| {
            let entry = entry.expect("deploy/crds can be listed");
            let text = fs::read_to_string(entry.path()).expect("deploy/crds holds text files");
            (entry.file_name().to_string_lossy().into_owned(), text)
        })
        .collect()
}

#[test]
fn the_deployed_definitions_are_fresh() {
    let directory = Path::new(DIRECTORY);
    let made = made();
    if env::var_os("KERF_UPDATE").is_some() {
        for (name, text) in &made {
            fs::write(directory.join(name), text).unwrap();
        }
    }
    let deployed = deployed(directory);
    assert_eq!(deployed.keys().collect::<Vec<_>>(), made.keys().collect::<Vec<_>>());
    for (name, text) in &made {
        assert!(deployed[name] == *text, "{name} is stale: run this test with KERF_UPDATE=1");
    }
}

#[test]
fn the_deployed_definitions_read_back_as_they_were_made() {
    for crd in kerf_api::crds(None) {
        let read: CustomResourceDefinition = serde_saphyr::from_str(&kerf_api::crd_yaml(&crd)).unwrap();
        assert_eq!(read, crd);
    }
}
