//! The generated pages. That the committed ones are fresh is checked by `cargo xtask ci`.

use std::fs;

use super::harness::{kerf, scratch};

#[test]
fn every_command_and_rule_has_its_place_in_the_reference() {
    let directory = scratch("reference");
    kerf(&format!("generate-reference --dir {}", directory.display())).exits(0);
    let page = |name: &str| fs::read_to_string(directory.join(name)).unwrap();
    for command in ["crds", "convert", "validate", "hash", "completion", "version"] {
        assert!(page("cli.md").contains(&format!("\n## kerf {command}\n")), "{command}");
    }
    assert!(!page("cli.md").contains("generate-reference"));
    assert!(page("rules.md").contains("\n| `unlimited_outside_window` | "));
    assert!(page("metrics.md").contains("\n| `karpenter_nodeclaims_created_total` | counter | "));
    assert!(page("api.md").contains("\n## EC2NodeClass\n"));
}
