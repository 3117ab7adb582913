//! Every scenario that comes with Kerf does what it says, and does it again.
#![expect(clippy::unwrap_used, reason = "in helpers of tests a failure is the failure of the test")]

use kerf_sim::scenario::{Outlook, Run, Scenario};
use kerf_sim::timeline::Entry;

const POOL: &str = include_str!("../../../scenarios/provisioning.yaml");

fn play(scenario: &Scenario, seed: u64) -> (Vec<Entry>, Run) {
    let mut run = Run::new(scenario, seed, scenario.duration).unwrap();
    let entries = run.finish().unwrap();
    (entries, run)
}

/// Too large for a build without optimisation: `cargo test --release -p kerf-sim --test scenarios` plays them.
const LARGE: [&str; 1] = ["disruption/drift-storm"];

#[test]
fn every_scenario_meets_its_expectations() {
    let mut unmet = Vec::new();
    for name in Scenario::built_in_names().filter(|name| !cfg!(debug_assertions) || !LARGE.contains(name)) {
        let scenario = Scenario::built_in(name).unwrap().unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(scenario.name, name);
        let (entries, run) = play(&scenario, scenario.seed);
        assert!(!entries.is_empty() && !run.findings().is_empty(), "{name} shows nothing");
        for finding in run.findings().iter().filter(|finding| finding.outlook != Outlook::Met) {
            unmet.push(format!("{}:{}: {finding:?}", scenario.file, finding.line));
        }
    }
    assert!(unmet.is_empty(), "{}", unmet.join("\n"));
}

#[test]
fn every_file_in_the_folder_is_built_in() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let mut files = Vec::new();
    for group in ["", "disruption", "mission"] {
        for entry in std::fs::read_dir(folder.join(group)).unwrap() {
            let file = entry.unwrap().file_name().into_string().unwrap();
            let name = file.strip_suffix(".yaml").map(|name| std::path::Path::new(group).join(name));
            files.extend(name.map(|name| name.to_str().unwrap().to_owned()));
        }
    }
    files.sort();
    let mut names: Vec<&str> = Scenario::built_in_names().collect();
    names.sort_unstable();
    assert_eq!(files, names);
}

#[test]
fn the_same_seed_gives_the_same_timeline() {
    let scenario = Scenario::built_in("welcome").unwrap().unwrap();
    let (first, run) = play(&scenario, 7);
    let (second, again) = play(&scenario, 7);
    assert_eq!(first, second);
    assert_eq!(run.summary(), again.summary());
}

#[test]
fn an_expectation_that_does_not_hold_says_what_was_seen() {
    let wrong = POOL.replace("running: 5}", "running: 6}");
    assert_ne!(wrong, POOL);
    let (_, run) = play(&Scenario::read("wrong.yaml", &wrong).unwrap(), 1);
    let findings = run.findings();
    let failed: Vec<_> = findings.iter().filter(|finding| finding.outlook == Outlook::Failed).collect();
    assert_eq!(failed.len(), 1, "{failed:?}");
    assert_eq!((failed[0].expected.as_str(), failed[0].seen.as_str()), ("running pods: 6", "5"));
    assert_eq!(failed[0].when, "by 00:11:00");
}

/// A rule that holds at the beginning and at the end, and is broken for seconds in between.
#[test]
fn a_rule_for_all_times_sees_a_short_breach() {
    let rule = "  - from: 2m\n    expect: {pods: {ready: \">= 20\"}}\n";
    let text = include_str!("../../../scenarios/delete-node.yaml");
    let (_, run) = play(&Scenario::read("rule.yaml", &format!("{text}{rule}")).unwrap(), 1);
    let last = run.findings().pop().unwrap();
    assert_eq!(last.outlook, Outlook::Failed, "{last:?}");
    assert!(last.settled_secs.is_some_and(|at| (240..420).contains(&at)), "{last:?}");
}

#[test]
fn the_summary_agrees_with_the_timeline() {
    let scenario = Scenario::built_in("delete-node").unwrap().unwrap();
    let (entries, run) = play(&scenario, 1);
    let summary = run.summary();
    let told = |text: &str| entries.iter().filter(|entry| entry.text.contains(text)).count();
    assert_eq!(summary.claims_made, told("claim created"));
    assert_eq!((summary.nodes, summary.instances), (2, 2));
    let evicted: usize = entries
        .iter()
        .filter_map(|entry| entry.text.split_once(" evicted")?.0.split(' ').next()?.parse::<usize>().ok())
        .sum();
    assert_eq!(summary.evictions, evicted);
    assert!(summary.hourly.micros() > 0 && summary.spent < summary.hourly, "{summary:?}");
}

#[test]
fn mistakes_are_reported_with_file_line_and_field() {
    let head = "name: x\ndescription: x\nduration: 10m\nobjects: []\nscript:\n";
    for (step, expected) in [
        ("  - at: soon\n    delete: {kind: Node, pick: oldest}\n", "x.yaml:6: "),
        ("  - at: 1m\n    delete: {kind: Noode, pick: oldest}\n", "x.yaml:6: script[0]: there is no kind `Noode`"),
        ("  - at: 1m\n    delete: {kind: Node}\n", "x.yaml:6: script[0]: needs either `name` or `pick: oldest|newest`"),
        ("  - at: 1m\n    explode: {}\n", "x.yaml:7: "),
        ("  - by: 1m\n    expect: {gone: ghost}\n", "x.yaml:6: script[0]: nothing before it is named \"ghost\""),
        ("  - by: 1m\n    expect: {}\n", "x.yaml:6: script[0]: expect is empty"),
        ("  - at: 11m\n    expect: {nodes: 1}\n", "x.yaml:6: script[0]: is later than the duration"),
        ("  - at: 1m\n    scale: {kind: Node, name: a, replicas: 1}\n", "x.yaml:6: script[0]: scale: a Node has no"),
        ("  - at: 1m\n    apply: [{kind: Pod}]\n", "x.yaml:6: script[0]: every object needs apiVersion and kind"),
    ] {
        let error = Scenario::read("x.yaml", &format!("{head}{step}")).unwrap_err().to_string();
        assert!(error.starts_with(expected), "expected {expected}\nfound    {error}");
    }
}

#[test]
fn an_object_that_the_cluster_refuses_is_named_by_its_line() {
    let bad = POOL.replace("expireAfter: Never", "expireAfter: soon");
    let scenario = Scenario::read("bad.yaml", &bad).unwrap();
    let error = Run::new(&scenario, 1, scenario.duration).err().unwrap().to_string();
    assert!(error.starts_with("bad.yaml:9: the cluster refuses it: "), "{error}");
}
