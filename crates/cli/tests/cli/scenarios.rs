//! `kerf demo` and `kerf simulate`.

use std::fs;

use super::harness::{kerf, repository, scratch, write_files};

#[test]
fn demo_lists_what_there_is() {
    let list = kerf("demo --list").exits(0).stdout;
    for name in ["welcome", "provisioning", "delete-node", "delete-nodeclaim", "delete-nodepool", "expiry"] {
        assert!(list.lines().any(|line| line.starts_with(&format!("{name} "))), "{name}: {list}");
    }
}

#[test]
fn demo_tells_what_happens_and_ends_with_a_summary() {
    let run = kerf("demo").exits(0);
    assert_eq!(run.stderr, "");
    for part in [
        "12 pods wait for a node",
        "launched ",
        "joined the cluster",
        "60 pods run",
        "evicted",
        "Cost: $",
        "consolidation saves $",
    ] {
        assert!(run.stdout.contains(part), "{part}: {}", run.stdout);
    }
    assert!(!run.stdout.contains('\u{1b}'), "no colours when it is not for a terminal");
    assert_eq!(kerf("demo welcome --speed max").exits(0).stdout, run.stdout);
}

#[test]
fn demo_waits_when_asked_for_a_pace() {
    let begin = std::time::Instant::now();
    kerf("demo welcome --speed 720x").exits(0);
    // The last entry comes after 26 minutes.
    assert!(begin.elapsed() >= std::time::Duration::from_millis(700), "{:?}", begin.elapsed());
}

#[test]
fn simulate_gives_figures_expectations_and_timeline_as_json() {
    let report = kerf("simulate -f delete-node --seed 3 -o json").exits(0).json();
    assert_eq!((&report["scenario"], &report["seed"]), (&"delete-node".into(), &3.into()));
    assert_eq!(report["summary"]["nodes"], 2);
    assert_eq!(report["summary"]["podsPending"], 0);
    let expectations = report["expectations"].as_array().unwrap();
    assert!(expectations.len() >= 5 && expectations.iter().all(|one| one["outlook"] == "met"), "{report}");
    let timeline = report["timeline"].as_array().unwrap();
    assert!(timeline.iter().any(|entry| entry["tone"] == "leaving" && entry["elapsedSecs"] == 240), "{report}");
}

#[test]
fn an_expectation_that_fails_is_a_finding() {
    let root = scratch("failing-scenario");
    let text = fs::read_to_string(repository().join("scenarios/provisioning.yaml")).unwrap();
    write_files(&root, &[("wrong.yaml", &text.replace("running: 5}", "running: 6}"))]);
    let run = kerf("simulate -f wrong.yaml").current_dir(&root).exits(1);
    assert!(run.stdout.contains(" 1 failed\nwrong.yaml:"), "{}", run.stdout);
    assert!(run.stdout.ends_with(": by 00:11:00 expected running pods: 6, seen: 5\n"), "{}", run.stdout);
    let run = kerf("demo wrong.yaml").current_dir(&root).exits(1);
    assert!(run.stderr.contains("expected running pods: 6, seen: 5"), "{}", run.stderr);
    // Ended before that.
    let run = kerf("simulate -f wrong.yaml --for 4m").current_dir(&root).exits(0);
    assert!(run.stdout.contains(" not reached\n"), "{}", run.stdout);
}

#[test]
fn an_unknown_scenario_is_answered_with_the_known_ones() {
    for command in ["demo nowhere", "simulate -f nowhere"] {
        let run = kerf(command).exits(2);
        assert!(
            run.stderr.starts_with("kerf: there is no scenario and no file \"nowhere\"; the scenarios are welcome, ")
        );
        assert_eq!(run.stdout, "");
    }
}

#[test]
fn a_mistake_in_a_scenario_is_reported_with_its_line() {
    let root = scratch("broken-scenario");
    write_files(&root, &[("broken.yaml", "name: x\ndescription: x\nduration: soon\nobjects: []\n")]);
    let run = kerf("simulate -f broken.yaml").current_dir(&root).exits(2);
    assert!(run.stderr.starts_with("kerf: broken.yaml:3: "), "{}", run.stderr);
    assert!(run.stderr.ends_with("expected a duration such as 90s, 10m or 30d\n"), "{}", run.stderr);
    assert_eq!(run.stderr.lines().count(), 1, "{}", run.stderr);
    for arguments in ["demo --speed fast", "simulate -f welcome --for soon", "simulate"] {
        kerf(arguments).exits(2);
    }
}
