use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn parse(text: &str) -> Result<Value, Problem> {
    parse_mapping(text)
        .map(|parsed| parsed.map_or(Value::Null, |parsed| Value::Object(parsed.object)))
        .map_err(|(_, problem)| problem)
}

/// The table was computed with `sigs.k8s.io/yaml`, which kubectl uses.
#[test]
fn reads_scalars_as_kubectl_does() {
    let mut wrong = Vec::new();
    for row in include_str!("kubectl_reads.tsv").lines().skip(1) {
        let (yaml, expected) = row.rsplit_once('\t').unwrap();
        let text = yaml.replace("\\n", "\n").replace("\\t", "\t");
        let expected: Option<Value> = (expected != "ERR").then(|| serde_json::from_str(expected).unwrap());
        // What is not an object is an error here: Kubernetes has no use for it.
        let expected = expected.filter(|value| value.is_object() || value.is_null());
        let found = parse(&text);
        if found.clone().ok() != expected {
            wrong.push(format!("{yaml}: expected {expected:?}, found {found:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn keys_written_out_win_over_merged_ones() {
    let merged = parse("a: &x {b: 1, d: 3}\nc:\n  b: 2\n  <<: *x\n").unwrap();
    assert_eq!(merged["c"], json!({"b": 2, "d": 3}));
}

#[test]
fn the_same_key_as_number_and_as_text_is_given_twice() {
    assert_eq!(parse("1: a\n\"1\": b\n"), Err(Problem::DuplicateKey("1".to_owned())));
}

#[test]
fn an_alias_bomb_is_refused() {
    let mut bomb = String::from("a0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol]\n");
    for level in 1..12 {
        let aliases = vec![format!("*a{}", level - 1); 9].join(", ");
        bomb.push_str(&format!("a{level}: &a{level} [{aliases}]\n"));
    }
    assert_eq!(parse(&bomb), Err(Problem::TooManyAliases));
}

#[test]
fn an_alias_of_itself_is_refused() {
    assert_eq!(parse("a: &x [*x]\n"), Err(Problem::AliasOfItself));
}

#[test]
fn writes_manifests_the_way_people_do() {
    let value = json!({
        "spec": {
            "requirements": [{"values": ["1", "a"], "key": "k", "operator": "In"}],
            "userData": "#!/bin/bash\necho hi\n",
            "empty": {}, "none": [], "nothing": null,
        },
        "metadata": {"name": "yes", "annotations": {"example.com/when": "2001-01-01", "schedule": "* * * * *"}},
        "kind": "NodePool",
        "apiVersion": "karpenter.sh/v1",
    });
    let expected = r##"apiVersion: karpenter.sh/v1
kind: NodePool
metadata:
  annotations:
    example.com/when: "2001-01-01"
    schedule: "* * * * *"
  name: "yes"
spec:
  empty: {}
  none: []
  nothing: null
  requirements:
  - key: k
    operator: In
    values:
    - "1"
    - a
  userData: |
    #!/bin/bash
    echo hi
"##;
    assert_eq!(to_yaml(&value), expected);
}

fn tricky_text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[ -~]{0,12}",
        "\\PC{0,8}",
        "[a-z \\n\\t#:-]{0,16}",
        "[-+]?[0-9._eExob:]{1,8}",
        "(yes|no|on|off|y|n|~|null|true|<<|=|---|\\.\\.\\.)",
        any::<String>(),
    ]
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        tricky_text().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::btree_map(tricky_text(), inner, 0..5)
                .prop_map(|entries| Value::Object(entries.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn what_is_written_is_read_back_unchanged(value in any_json()) {
        let value = json!({ "value": value });
        let text = to_yaml(&value);
        prop_assert_eq!(parse(&text), Ok(value), "{}", text);
    }

    #[test]
    fn no_text_makes_the_reader_panic(text in "[-a:{}\\[\\]\"'&*!|>%@`#?, \\n\\t~.0]{0,40}") {
        let _ = parse(&text);
    }
}
