//! What each command prints and how it ends.

use std::fs;

use serde_json::{Value, json};

use super::harness::{class, kerf, pool, repository, scratch};

const LEGACY: &str = "apiVersion: karpenter.sh/v1alpha5\nkind: Provisioner\nmetadata: {name: old}\nspec: {weight: 3, providerRef: {name: a}}\n";

#[test]
fn exit_codes_are_0_for_well_1_for_findings_2_for_what_cannot_be_read() {
    let good = pool("a", "");
    let bad = pool("a", "  weight: 0\n");
    let warned = pool("a", "  wieght: 1\n");
    let cases: &[(&str, &str, i32)] = &[
        ("version", "", 0),
        ("version -o json", "", 0),
        ("--version", "", 0),
        ("--help", "", 0),
        ("completion bash", "", 0),
        ("crds", "", 0),
        ("validate -f -", &good, 0),
        ("validate -f -", &bad, 1),
        ("validate -f -", &warned, 0),
        ("validate -f - --strict", &warned, 1),
        ("validate -f -", LEGACY, 1),
        ("validate -f -", "a: [", 2),
        ("hash -f -", &good, 0),
        ("hash -f -", "apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {name: a}\nspec: 7\n", 1),
        ("hash -f -", "a: [", 2),
        ("convert -f -", LEGACY, 0),
        ("convert -f -", "apiVersion: karpenter.sh/v1alpha5\nkind: Provisioner\nmetadata: {name: a}\nspec: 7\n", 1),
        ("convert -f -", "a: [", 2),
        ("", "", 2),
        ("fly", "", 2),
        ("crds --provider azure", "", 2),
        ("crds --dir", "", 2),
        ("completion tcl", "", 2),
        ("version -o xml", "", 2),
        ("validate", "", 2),
        ("convert", "", 2),
        ("hash -f - --ec2-version v3", &good, 2),
    ];
    for (arguments, stdin, code) in cases {
        kerf(arguments).stdin(stdin).exits(*code);
    }
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let input = scratch("closed-pipe").join("pool.yaml");
    fs::write(&input, pool("a", "")).unwrap();
    let file = input.display();
    for arguments in [
        "crds".to_string(),
        "crds -o json".to_string(),
        "completion zsh".to_string(),
        "version".to_string(),
        "--help".to_string(),
        format!("validate -f {file}"),
        format!("convert -f {file}"),
        format!("hash -f {file} -o json"),
    ] {
        let run = kerf(&arguments).run_into_closed_pipe();
        assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{arguments}");
    }
}

#[test]
fn crds_writes_the_same_definitions_into_files_as_it_prints() {
    for (provider, node_classes) in [
        ("", vec!["EC2NodeClass", "KWOKNodeClass"]),
        ("--provider kwok", vec!["KWOKNodeClass"]),
        ("--provider aws", vec!["EC2NodeClass"]),
    ] {
        let directory = scratch(&format!("crds{}", provider.replace(' ', "-"))).join("made/by/kerf");
        let run = kerf(&format!("crds {provider} --dir {}", directory.display())).exits(0);
        assert_eq!(run.stdout, "");
        let mut written: Vec<String> =
            fs::read_dir(&directory).unwrap().map(|entry| fs::read_to_string(entry.unwrap().path()).unwrap()).collect();
        let printed = kerf(&format!("crds {provider}")).exits(0).stdout;
        let mut documents: Vec<String> =
            printed.split("---\n").skip(1).map(|document| format!("---\n{document}")).collect();
        written.sort();
        documents.sort();
        assert!(written == documents, "files and standard output differ for {provider:?}");

        let list = kerf(&format!("crds {provider} -o json")).exits(0).json();
        let kinds = list["items"].as_array().unwrap().iter().map(|crd| crd["spec"]["names"]["kind"].as_str().unwrap());
        let mut found: Vec<&str> = kinds.filter(|kind| kind.ends_with("NodeClass")).collect();
        found.sort_unstable();
        assert_eq!(found, node_classes);
        assert_eq!(list["items"].as_array().unwrap().len(), documents.len());
    }
}

#[test]
fn crds_says_which_directory_it_cannot_make() {
    let file = scratch("crds-into-a-file").join("file");
    fs::write(&file, "").unwrap();
    let run = kerf(&format!("crds --dir {}/x", file.display())).exits(2);
    assert!(run.stderr.starts_with("kerf: cannot make the directory "), "{}", run.stderr);
}

#[test]
fn validate_reports_every_finding_as_data() {
    let input = format!("{}---\n{}", class("default"), pool("a", "  weight: 0\n  limits: {cpu: x}\n"));
    let report = kerf("validate -f - -o json").stdin(input).exits(1).json();
    let [class, pool] = report["objects"].as_array().unwrap().as_slice() else { panic!("{report}") };
    assert_eq!(
        *class,
        json!({"file": "<stdin>", "line": 1, "kind": "KWOKNodeClass", "name": "default", "valid": true, "findings": []})
    );
    assert_eq!((&pool["line"], &pool["valid"]), (&json!(5), &json!(false)));
    let findings: Vec<String> = pool["findings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|finding| {
            assert!(finding["message"].as_str().is_some_and(|message| !message.is_empty()));
            format!("{} {} {}", finding["severity"], finding["rule"], finding["field"]).replace('"', "")
        })
        .collect();
    assert_eq!(findings, ["error pattern spec.limits.cpu", "error minimum spec.weight"]);
    assert_eq!(report["notChecked"], 0);
}

#[test]
fn validate_prints_one_line_for_each_finding_and_a_sum() {
    let run = kerf("validate -f -").stdin(pool("a", "  wieght: 1\n")).exits(0);
    assert_eq!(
        run.stdout,
        "<stdin>:1: NodePool/a: warning: spec.wieght: the schema has no such field: the API server drops it [unknown_field]\n\
         1 object checked, 0 errors, 1 warning\n"
    );
}

#[test]
fn validate_looks_at_other_kinds_only_for_legacy_names() {
    let pod = |annotation: &str| {
        format!("apiVersion: v1\nkind: Pod\nmetadata: {{name: p, annotations: {{{annotation}: \"true\"}}}}\n---\n")
    };
    let input = pod("karpenter.sh/do-not-evict") + &pod("karpenter.sh/do-not-disrupt");
    let run = kerf("validate -f -").stdin(input).exits(0);
    assert!(
        run.stdout.contains("<stdin>:1: Pod/p: warning:") && run.stdout.contains("[legacy_name]"),
        "{}",
        run.stdout
    );
    assert!(
        run.stdout.ends_with("1 object checked, 0 errors, 1 warning; 1 of other kinds passed over\n"),
        "{}",
        run.stdout
    );
}

#[test]
fn validate_knows_the_kinds_and_labels_of_each_provider() {
    let aws = "apiVersion: karpenter.k8s.aws/v1\nkind: EC2NodeClass\nmetadata: {name: a}\nspec: {}\n";
    let run = kerf("validate -f - --provider kwok").stdin(aws).exits(1);
    assert!(run.stdout.contains("[unknown_kind]"), "{}", run.stdout);
    let label = "apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {name: a}\nspec:\n  template:\n    spec:\n      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: a}\n      requirements: [{key: karpenter.k8s.aws/instance-made-up, operator: Exists}]\n";
    let run = kerf("validate -f - --provider aws").stdin(label).exits(1);
    assert!(run.stdout.contains("[cel]"), "{}", run.stdout);
}

#[test]
fn hash_prints_a_table_or_data() {
    let input = format!("{}---\n{}", pool("a", "  weight: 3\n"), class("default"));
    let run = kerf("hash -f -").stdin(&input).exits(0);
    let lines: Vec<Vec<&str>> = run.stdout.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(lines[0], ["KIND", "NAME", "HASH", "VERSION"]);
    let [kind, name, hash, version] = lines[1].as_slice() else { panic!("{}", run.stdout) };
    assert_eq!((*kind, *name, *version), ("NodePool", "a", "v3"));
    assert_eq!(run.stderr, "kerf: passed over 1 object without a drift hash\n");

    let rows = kerf("hash -f - -o json").stdin(&input).exits(0).json();
    let row = &rows.as_array().unwrap()[0];
    assert_eq!(row["hash"], *hash);
    assert_eq!(row["hashVersion"], "v3");
    assert!(row["fields"].as_object().is_some_and(|fields| !fields.is_empty()));

    // What is not part of the template changes nothing.
    let other = kerf("hash -f - -o json").stdin(pool("a", "  weight: 4\n  limits: {cpu: 7}\n")).exits(0).json();
    assert_eq!(other[0]["hash"], *hash);
}

#[test]
fn the_ca_bundle_may_come_from_the_environment() {
    let input = "apiVersion: karpenter.k8s.aws/v1\nkind: EC2NodeClass\nmetadata: {name: a}\nspec: {role: r}\n";
    let hash = |run: Value| run[0]["hash"].clone();
    let flag = hash(kerf("hash -f - -o json --ca-bundle Q0E=").stdin(input).exits(0).json());
    let environment = hash(kerf("hash -f - -o json").env("CLUSTER_CA_BUNDLE", "Q0E=").stdin(input).exits(0).json());
    let without = hash(kerf("hash -f - -o json").stdin(input).exits(0).json());
    assert_eq!(flag, environment);
    assert_ne!(flag, without);
}

#[test]
fn convert_prints_objects_and_tells_the_rest_on_standard_error() {
    let run = kerf("convert -f -").stdin(LEGACY).exits(0);
    assert!(run.stdout.starts_with("apiVersion: karpenter.sh/v1\nkind: NodePool\n"), "{}", run.stdout);
    assert!(
        run.stderr.lines().all(|line| line.starts_with("kerf: <stdin>:1: warning: Provisioner/old ")),
        "{}",
        run.stderr
    );
    let list = kerf("convert -f - -o json").stdin(LEGACY).exits(0).json();
    assert_eq!((&list["kind"], &list["items"][0]["spec"]["weight"]), (&json!("List"), &json!(3)));
}

#[test]
fn what_converts_is_valid() {
    let folder = repository().join("crates/api/tests/convert");
    let mut converted = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if !path.to_string_lossy().ends_with(".input.yaml") {
            continue;
        }
        let run = kerf(&format!("convert --role NodeRole -f {}", path.display())).run();
        // A note of severity error stands for a result that needs a hand first.
        if run.code == 0 {
            let report = kerf("validate -f - -o json").stdin(&run.stdout).run();
            let invalid: Vec<Value> = report.json()["objects"]
                .as_array()
                .unwrap()
                .iter()
                .filter(|object| object["valid"] == false)
                .cloned()
                .collect();
            assert!(invalid.is_empty(), "{}: {invalid:#?}", path.display());
            converted += 1;
        }
    }
    assert!(converted >= 10, "only {converted} examples convert without an error");
}

#[test]
fn version_names_the_api_it_speaks() {
    let version = kerf("version -o json").exits(0).json();
    for field in ["version", "karpenterApi", "nodePoolHash", "ec2NodeClassHash", "platform"] {
        assert!(version[field].as_str().is_some_and(|text| !text.is_empty()), "{field}: {version}");
    }
}
