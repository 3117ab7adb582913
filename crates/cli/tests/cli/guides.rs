//! What the guides show is what happens.

use std::fs;

use super::harness::{kerf, repository, scratch, write_files};

/// The content of the fenced blocks of a page, by language.
fn blocks(page: &str, language: &str) -> Vec<String> {
    let page = fs::read_to_string(repository().join(page)).unwrap();
    let fence = format!("\n```{language}\n");
    page.split(&fence).skip(1).map(|rest| rest.split("\n```").next().unwrap().to_owned() + "\n").collect()
}

/// What a guide shows below a command.
fn shown(page: &str, command: &str) -> String {
    let head = format!("$ {command}\n");
    let found =
        blocks(page, "console").into_iter().find_map(|block| block.split_once(&head).map(|(_, rest)| rest.to_owned()));
    let rest = found.unwrap_or_else(|| panic!("{page} does not show {command}"));
    rest.split("\n$ ").next().unwrap().trim_end().to_owned() + "\n"
}

#[test]
fn the_readme_shows_what_validate_says_of_the_examples() {
    let shown = shown("README.md", "cargo run --release -- validate -f examples/");
    assert_eq!(kerf("validate -f examples/").current_dir(&repository()).exits(0).stdout, shown);
}

#[test]
fn the_guide_to_ci_shows_real_findings() {
    const PAGE: &str = "docs/guides/validate-in-ci.md";
    let root = scratch("guide-ci");
    let pool = &blocks(PAGE, "yaml")[0];
    write_files(&root, &[("pools/batch.yaml", pool)]);
    let run = kerf("validate -f pools/").current_dir(&root).exits(1);
    assert_eq!(run.stdout, shown(PAGE, "kerf validate -f pools/"));

    let corrected = pool.replace("instance-families", "instance-family").replace("2 weeks", "336h");
    write_files(&root, &[("pools/batch.yaml", &corrected)]);
    for (command, code) in [("validate -f pools/ --strict", 1), ("validate -f pools/ -o json", 0)] {
        let run = kerf(command).current_dir(&root).exits(code);
        assert_eq!(run.stdout, shown(PAGE, &format!("kerf {command}")));
    }
}

#[test]
fn the_guide_to_moving_shows_a_real_conversion() {
    const PAGE: &str = "docs/guides/moving-from-karpenter.md";
    const POD: &str =
        "apiVersion: v1\nkind: Pod\nmetadata: {name: nightly, annotations: {karpenter.sh/do-not-evict: \"true\"}}\n";
    let root = scratch("guide-moving");
    let legacy = &blocks(PAGE, "yaml")[0];
    let (provisioner, template) = legacy.split_once("---\n").unwrap();
    write_files(
        &root,
        &[("legacy/pod.yaml", POD), ("legacy/provisioner.yaml", provisioner), ("legacy/template.yaml", template)],
    );
    let run = kerf("convert -f legacy/ --rewrite-workloads").current_dir(&root).exits(0);
    assert_eq!(run.stderr, shown(PAGE, "kerf convert -f legacy/ --rewrite-workloads > v1.yaml"));
    assert!(run.stdout.contains("maxPods: 110"), "{}", run.stdout);

    write_files(&root, &[("v1.yaml", &run.stdout)]);
    let run = kerf("validate -f v1.yaml --strict").current_dir(&root).exits(0);
    assert_eq!(run.stdout, shown(PAGE, "kerf validate -f v1.yaml --strict"));

    let run = kerf("hash -f examples/kwok.yaml").current_dir(&repository()).exits(0);
    assert_eq!(run.stdout + &run.stderr, shown(PAGE, "kerf hash -f examples/kwok.yaml"));
}

#[test]
fn the_guide_to_plan_and_why_shows_real_answers() {
    const PAGE: &str = "docs/guides/plan-and-why.md";
    for (command, code) in [
        ("plan -f examples/dumps/underused --at 2026-11-16T20:00:00Z", 0),
        ("why node held -f examples/dumps/underused", 0),
        ("why pod gpu -n shop -f examples/dumps/underused", 0),
        ("budget general -f examples/dumps/underused --at 2026-11-16T00:00:00Z", 0),
    ] {
        let run = kerf(command).current_dir(&repository()).exits(code);
        assert_eq!(run.stdout, shown(PAGE, &format!("kerf {command}")));
    }
}

#[test]
fn the_readme_shows_the_demo_as_it_is() {
    assert_eq!(kerf("demo").exits(0).stdout, shown("README.md", "cargo run --release -- demo"));
}

#[test]
fn the_guide_to_the_demo_shows_real_runs() {
    const PAGE: &str = "docs/guides/demo.md";
    for command in ["demo --list", "simulate -f delete-node"] {
        assert_eq!(kerf(command).exits(0).stdout, shown(PAGE, &format!("kerf {command}")));
    }
    let root = scratch("guide-demo");
    write_files(&root, &[("mine.yaml", &blocks(PAGE, "yaml")[0])]);
    kerf("simulate -f mine.yaml").current_dir(&root).exits(0);
}
