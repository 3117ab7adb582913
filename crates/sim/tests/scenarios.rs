//! Every scenario that comes with Kerf does what it says, and does it again.
#![expect(clippy::unwrap_used, reason = "in helpers of tests a failure is the failure of the test")]

use jiff::SignedDuration;
use kerf_api::convert::{Content, Options, convert};
use kerf_api::manifest;
use kerf_sim::faults::{Faults, Mutation};
use kerf_sim::scenario::{Finding, Outlook, Run, Scenario};
use kerf_sim::timeline::Entry;
use serde_json::json;

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

/// What must hold until something else does, and that must come.
#[test]
fn the_end_of_a_rule_must_come() {
    let text = include_str!("../../../scenarios/delete-node.yaml");
    let outlook = |until: &str, expect: &str| {
        let rule = format!("  - from: 2m\n    until: {until}\n    expect: {expect}\n");
        let (_, run) = play(&Scenario::read("rule.yaml", &format!("{text}{rule}")).unwrap(), 1);
        run.findings().pop().unwrap().outlook
    };
    assert_eq!(outlook("{evictions: \">= 1\"}", "{pods: {ready: 20}}"), Outlook::Met);
    assert_eq!(outlook("{claims: 1}", "{pods: {ready: 20}}"), Outlook::Failed, "it is broken before");
    assert_eq!(outlook("{nodes: 99}", "{pods: {ready: \">= 0\"}}"), Outlook::Failed, "the end does not come");
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
        (
            "  - at: 1m\n    patch: {target: {kind: Node, pick: all}, merge: {}}\n",
            "x.yaml:6: script[0]: `pick: all` is only",
        ),
        ("  - at: 1m\n    cause: Stopping\n", "x.yaml:6: script[0]: cause is of an interrupt"),
        (
            "  - by: 1m\n    until: {nodes: 1}\n    expect: {nodes: 1}\n",
            "x.yaml:6: script[0]: expect needs `at`, `by`, or",
        ),
        (
            "  - from: 1m\n    until: {gone: ghost}\n    expect: {nodes: 1}\n",
            "x.yaml:6: script[0]: nothing before it is named",
        ),
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

/// What a scenario shows, the change that takes its cause away, and the beginning of what then fails. `*` before a text
/// means that every place with it is changed.
const CAUSES: &[(&str, &str, &str, &str)] = &[
    ("mission/001-upgrade", "minAvailable: 2", "minAvailable: 0", "evictions: at most 1"),
    ("mission/001-upgrade", "minAvailable: 2", "minAvailable: 0", "claims made: at most 4"),
    ("mission/002-toggles", "expiration: {enabled: false}", "expiration: {enabled: true}", "expiration-off is there"),
    (
        "mission/002-toggles",
        "drift: {forceEvict: true}",
        "drift: {forceEvict: false}",
        "nodes disrupted so far: 1 of pool forced",
    ),
    (
        "mission/002-toggles",
        "consolidation: {enabled: false}",
        "consolidation: {enabled: true}",
        "nodes disrupted so far: 0 of pool consolidation-off",
    ),
    (
        "mission/002-truth-table",
        "*disableDeprovisioning: true",
        "disableDeprovisioning: false",
        "nodes disrupted so far: 0 of pool off-allow-free",
    ),
    (
        "mission/002-truth-table",
        "actions: [Drift], schedules",
        "actions: [Rebalance], schedules",
        "nodes disrupted so far: 0 of pool on-any-deny",
    ),
    ("mission/002-window-actions", "actions: [Expiration]", "actions: [Drift]", "expiration-held is there"),
    (
        "mission/002-window-actions",
        "actions: [Rebalance]",
        "actions: [Drift]",
        "nodes disrupted so far: 0 of pool rebalance-held",
    ),
    (
        "mission/002-window-actions",
        "duration: 1h",
        "duration: 30m",
        "nodes disrupted so far: 0 of pool consolidation-held",
    ),
    (
        "mission/003-budgets",
        "disruption: {consolidateAfter: Never}",
        "disruption: {consolidateAfter: Never, budgets: [{nodes: 40%}]}",
        "nodes disrupted now: at most 2 of pool default",
    ),
    ("mission/003-budgets", "duration: 1h}", "duration: 1m}", "nodes disrupted so far: 0 of pool scheduled"),
    (
        "mission/003-budgets",
        "reasons: [Empty, Underutilized]",
        "reasons: [Unhealthy]",
        "nodes disrupted so far: 0 of pool reasons",
    ),
    (
        "mission/003-consolidation-order",
        "disruptionPolicy: compatible",
        "disruptionPolicy: best",
        "nodes disrupted so far: 0 of pool single",
    ),
    (
        "mission/003-consolidation-policies",
        "consolidationPolicy: WhenEmpty, ",
        "",
        "nodes disrupted so far: 0 of pool when-empty because Underutilized",
    ),
    (
        "mission/003-consolidation-policies",
        "consolidateAfter: 10m",
        "consolidateAfter: 1m",
        "nodes disrupted so far: 0 of pool cautious",
    ),
    ("mission/003-drift-and-expiration", "expireAfter: 168h", "expireAfter: 2h", "week is there"),
    (
        "mission/003-excluded",
        "*, annotations: {karpenter.sh/do-not-disrupt: \"true\"}}\n",
        "}\n",
        "nodes disrupted so far: 0",
    ),
    ("mission/003-interruption", "cause: Stopping", "cause: Maintenance", "events InstanceStopping"),
    ("mission/003-manual-deletion", "metadata: {finalizers: null}", "metadata: {}", "bare is gone"),
    (
        "mission/003-spot-consolidation",
        "catalogue: kwok",
        "catalogue: kwok\nsettings: {spotToSpotConsolidation: true}",
        "nodes disrupted so far: 0 by replace",
    ),
    (
        "mission/003-termination-grace-period",
        "terminationGracePeriod: 10m",
        "terminationGracePeriod: 20m",
        "graceful is gone",
    ),
    ("mission/004-automated", ", annotations: {karpenter.sh/do-not-evict: \"true\"}", "", "kept is there"),
    (
        "mission/004-automated",
        "consolidateAfter: 5m",
        "consolidateAfter: 1m",
        "nodes disrupted so far: 0 of pool emptied",
    ),
    (
        "mission/004-node-deletion",
        "pick: all, labels: {karpenter.sh/nodepool: blue}",
        "pick: all",
        "nodes of karpenter.sh/nodepool=green",
    ),
    ("mission/004-preferences", "replicas: 2", "replicas: 1", "many is there"),
    ("mission/004-preferences", "expireAfter: 2h", "expireAfter: Never", "old is gone"),
    ("mission/004-preferences", "value: 1000000000", "value: 0", "low is gone"),
    ("mission/004-provisioner-deletion", "{labels: {karpenter.sh/nodepool: destination}}", "{}", "moved is there"),
    ("disruption/balanced", "consolidationPolicy: Balanced, ", "", "nodes disrupted so far: 0 of pool balanced"),
    ("disruption/blocked", "metadata: {name: by-pdbs-too}", "metadata: {name: by-pdbs}", "verdicts several_pdbs"),
    (
        "disruption/blocked-for-now",
        "startupTaints: [{key: example.com/agent, effect: NoSchedule}]",
        "startupTaints: []",
        "nodes disrupted so far: 0",
    ),
    ("disruption/budgets", "nodes: \"2\"", "nodes: \"1\"", "nodes disrupted now: 2 of pool count"),
    (
        "disruption/churn",
        "catalogue: kwok",
        "catalogue: kwok\nsettings: {disruptionPolicy: compatible}",
        "evictions: at most 40",
    ),
    ("disruption/failing-pool", "shortage: [{zone: test-zone-a}]", "shortage: []", "events DisruptionFailed"),
    (
        "disruption/interruption",
        "as: victim}",
        "as: victim}\n    cause: Stopping",
        "nodes of node.kubernetes.io/instance-type",
    ),
    ("disruption/rebalance", "nodes: \"1\"", "nodes: \"2\"", "nodes disrupted now: at most 1"),
    ("disruption/repair", "nodes: \"1\"", "nodes: \"2\"", "nodes disrupted now: at most 1"),
    ("disruption/repair-breaker", "replicas: 5", "replicas: 10", "nodes disrupted so far: 0"),
    ("disruption/static-drift", "nodes: 5}", "nodes: 8}", "nodeclaims: at most 6"),
    (
        "disruption/terminate-first",
        "TerminateFirstDrift: true",
        "TerminateFirstDrift: false",
        "nodes disrupted so far: 2 because Drifted by terminate-first",
    ),
    (
        "disruption/three-into-one",
        "cpu, operator: Lt, values: [\"5\"]",
        "cpu, operator: Lt, values: [\"3\"]",
        "nodes disrupted so far: 3",
    ),
    ("disruption/waves-halt", "33%:10m\"", "33%:10m:9\"", "verdicts rollout_halted"),
];

fn failed(findings: Vec<Finding>, beginning: &str) -> bool {
    findings.iter().any(|finding| finding.outlook == Outlook::Failed && finding.expected.starts_with(beginning))
}

#[test]
fn a_scenario_notices_that_its_cause_is_gone() {
    let mut blind = Vec::new();
    for (name, cause, instead, beginning) in CAUSES {
        let scenario = Scenario::built_in(name).unwrap().unwrap();
        let text = std::fs::read_to_string(root().join(&scenario.file)).unwrap();
        let changed = match cause.strip_prefix('*') {
            Some(cause) => text.replace(cause, instead),
            None => text.replacen(cause, instead, 1),
        };
        assert_ne!(changed, text, "{name} has no {cause}");
        let scenario = Scenario::read(name, &changed).unwrap_or_else(|error| panic!("{error}"));
        if !fails(&scenario, beginning) {
            blind.push(format!("{name} without {cause}: nothing fails that begins with {beginning:?}"));
        }
    }
    assert!(blind.is_empty(), "{}", blind.join("\n"));
}

/// Plays until it does, or to the end. That a later step has nothing to act upon any more is no wonder.
fn fails(scenario: &Scenario, beginning: &str) -> bool {
    let mut run = Run::new(scenario, scenario.seed, scenario.duration).unwrap();
    let mut looked = run.now();
    while let Ok(Some(_)) = run.advance() {
        if run.now().duration_since(looked) >= SignedDuration::from_mins(1) {
            looked = run.now();
            if failed(run.findings(), beginning) {
                return true;
            }
        }
    }
    failed(run.findings(), beginning)
}

fn root() -> std::path::PathBuf {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[test]
fn a_node_that_goes_before_its_replacement_is_noticed() {
    for name in ["mission/001-upgrade", "disruption/repair", "disruption/rebalance", "disruption/static-drift"] {
        let scenario = Scenario::built_in(name).unwrap().unwrap();
        let faults = Faults::none().with(Some(Mutation::DeleteAtOnce));
        let mut run = Run::with_faults(&scenario, scenario.seed, scenario.duration, faults).unwrap();
        run.finish().unwrap();
        assert!(failed(run.findings(), "nodes disrupted before their replacements were ready"), "{name}");
    }
}

/// The fields that the deprovisioning guide names, in the API that it names them in. What `kerf convert` makes of them does
/// what the guide says.
const PROVISIONERS: &str = "
apiVersion: karpenter.sh/v1alpha5
kind: Provisioner
metadata: {name: emptied}
spec: {ttlSecondsAfterEmpty: 300, providerRef: {name: default}, labels: {team: emptied}}
---
apiVersion: karpenter.sh/v1alpha5
kind: Provisioner
metadata: {name: expired}
spec: {ttlSecondsUntilExpired: 3600, providerRef: {name: default}, labels: {team: expired}}
---
apiVersion: karpenter.sh/v1alpha5
kind: Provisioner
metadata: {name: consolidated}
spec: {consolidation: {enabled: true}, providerRef: {name: default}, labels: {team: consolidated}}
---
apiVersion: karpenter.sh/v1alpha5
kind: Provisioner
metadata: {name: neither}
spec: {providerRef: {name: default}, labels: {team: neither}}
";

const CONVERTED: &str = "
  - by: 3m
    expect: {pods: {running: 16}, nodes: 4}
  - at: 4m
    patch: {target: {kind: NodeClaim, pick: oldest, labels: {team: expired}, as: expired}, merge: {metadata: {labels: {a: b}}}}
  - at: 10m
    scale: {kind: Deployment, name: emptied, replicas: 0}
  - at: 10m
    scale: {kind: Deployment, name: expired, replicas: 1}
  - at: 10m
    scale: {kind: Deployment, name: consolidated, replicas: 1}
  - at: 10m
    scale: {kind: Deployment, name: neither, replicas: 0}
  - from: 0s
    to: 15m
    expect: {disruptions: {pool: emptied, ever: 0}}
  - by: 13m
    expect: {disruptions: {pool: consolidated, reason: Underutilized, ever: 1}}
  - by: 17m
    expect: {disruptions: {pool: emptied, reason: Empty, ever: 1}}
  - from: 4m
    to: 1h
    expect: {there: expired}
  - by: 1h5m
    expect: {gone: expired}
  - from: 0s
    expect: {disruptions: {pool: neither, ever: 0}}
  - from: 0s
    expect: {disruptions: {pool: expired, ever: 0}}
  - at: 90m
    expect: {nodesWith: {labels: {team: neither}, count: 1}}
";

#[test]
fn what_provisioners_said_of_deprovisioning_holds_after_their_conversion() {
    let documents = manifest::read("old.yaml", PROVISIONERS.as_bytes()).into_iter().map(Result::unwrap).collect();
    let options = Options { skip_default_requirements: true, ..Options::default() };
    let converted = convert(documents, &options).documents.into_iter().flat_map(|document| match document.content {
        Content::Converted(objects) => objects,
        Content::Unchanged(text) => panic!("not converted: {text}"),
    });
    let mut text = String::from("name: x\ndescription: x\nduration: 90m\nobjects:\n");
    text += "  - {apiVersion: karpenter.kwok.sh/v1alpha1, kind: KWOKNodeClass, metadata: {name: default}}\n";
    for mut pool in converted {
        // The guide's machines are of AWS; these are not, and of one size that all four pods fit on.
        let spec = &mut pool["spec"]["template"]["spec"];
        spec["nodeClassRef"] = json!({"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"});
        spec["requirements"] = json!([
            {"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]},
            {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]},
            {"key": "karpenter.kwok.sh/instance-cpu", "operator": "Lt", "values": ["9"]}
        ]);
        let name = &pool["metadata"]["name"];
        let workload = json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
            "spec": {
                "replicas": 4, "selector": {"matchLabels": {"app": name}},
                "template": {"metadata": {"labels": {"app": name}}, "spec": {
                    "nodeSelector": {"team": name},
                    "containers": [{"name": "main", "image": "app", "resources": {"requests": {"cpu": "1500m"}}}],
                }},
            },
        });
        text += &format!("  - {pool}\n  - {workload}\n");
    }
    let scenario = Scenario::read("converted.yaml", &format!("{text}script:{CONVERTED}")).unwrap();
    let (_, run) = play(&scenario, 1);
    let unmet: Vec<_> = run.findings().into_iter().filter(|finding| finding.outlook != Outlook::Met).collect();
    assert!(unmet.is_empty(), "{unmet:#?}");
}
