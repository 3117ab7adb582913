use super::*;
use crate::label::{ARCH, HOSTNAME, LabelRules, NODEPOOL, ZONE};

/// `In a,b min=2` or several joined by `&`, all on one key.
fn requirement(key: &str, text: &str) -> Requirement {
    let mut parts = text.split('&').map(|part| {
        let mut words = part.split_whitespace();
        let operator: Operator = words.next().expect("an operator").parse().expect("a known operator");
        let (mut values, mut min_values) = (Vec::new(), None);
        for word in words {
            match word.strip_prefix("min=") {
                Some(min) => min_values = Some(min.parse().expect("a number")),
                None => values.extend(word.split(',')),
            }
        }
        Requirement::new(key, operator, values).expect("a requirement").with_min_values(min_values)
    });
    let first = parts.next().expect("a requirement");
    parts.fold(first, |all, part| all.intersection(&part))
}

fn check_intersection(left: &str, right: &str, expected: &str) {
    let (left, right) = (requirement("k", left), requirement("k", right));
    assert_eq!(left.intersection(&right).to_string(), format!("k {expected}"), "{left} with {right}");
    assert_eq!(right.intersection(&left).to_string(), format!("k {expected}"), "{right} with {left}");
}

/// Sheet 02, case 2; what upstream gives as DoesNotExist is `In []` here (sheet 02 §29, 1).
#[test]
fn intersections_narrow_to_what_meets_both() {
    check_intersection("Exists", "In A", "In [A]");
    check_intersection("NotIn A", "In A,B", "In [B]");
    check_intersection("NotIn A", "NotIn 1,2", "NotIn [1 2 A]");
    check_intersection("Gt 1", "Lt 1", "In []");
    check_intersection("In 1,9", "Lt 9", "In [1]");
    check_intersection("In A", "Gt 1", "In []");
    check_intersection("NotIn 3,x", "Gte 2", "NotIn [3] >=2");
    check_intersection("Gt 2", "Lt 9", "Exists >=3 <=8");
}

#[test]
fn absence_survives_only_where_both_sides_allow_it() {
    check_intersection("NotIn a", "DoesNotExist", "DoesNotExist");
    check_intersection("Exists", "DoesNotExist", "In []");
    check_intersection("Gt 1", "DoesNotExist", "In []");
    check_intersection("In a", "DoesNotExist", "In []");
    check_intersection("Exists", "NotIn a", "NotIn [a] Exists");
}

#[test]
fn comparisons_beyond_the_last_integer_allow_nothing() {
    let max = requirement("k", "Gt 9223372036854775807 min=2");
    assert!(max.is_contradiction());
    assert_eq!(max.min_values(), Some(2));
    assert!(requirement("k", "Lt -9223372036854775808").is_contradiction());
}

#[test]
fn with_bounds_only_integers_are_allowed() {
    let requirement = requirement("k", "Gte 3 & NotIn 5");
    for (value, allowed) in [("3", true), ("04", true), ("5", false), ("2", false), ("x", false), ("", false)] {
        assert_eq!(requirement.has(value), allowed, "{value}");
    }
}

/// Sheet 02, case 3.
#[test]
fn the_larger_min_values_counts() {
    check_intersection("In a,b,c min=2", "Exists min=5", "In [a b c] minValues 5");
}

/// Sheet 02, case 4, and §29, 11: excluded values are not lost next to a bound.
#[test]
fn is_written_back_with_as_many_entries_as_needed() {
    let written = |text: &str| {
        let entries = requirement("k", text).expressions();
        let show = |entry: &Expression| format!("{} {}", entry.operator, entry.values.join(",")).trim().to_owned();
        entries.iter().map(show).collect::<Vec<_>>().join("; ")
    };
    assert_eq!(written("Gt 1"), "Gte 2");
    assert_eq!(written("Gte 8 & Lte 8"), "Gte 8; Lte 8");
    assert_eq!(written("Lt 8 & NotIn 3"), "Lte 7; NotIn 3");
    assert_eq!(written("Exists & NotIn b,a"), "Exists; NotIn a,b");
    assert_eq!(written("In b,a,b"), "In a,b");
    assert_eq!(written("NotIn a"), "NotIn a");
    assert_eq!(written("Exists"), "Exists");
    assert_eq!(written("DoesNotExist"), "DoesNotExist");
}

#[test]
fn only_some_values_of_a_long_list_are_shown() {
    let shown = requirement("k", "NotIn 1,2,3,4,5,6,7 & Gte 0 min=3").to_string();
    assert_eq!(shown, "k NotIn [1 2 3 4 5 and 2 others] >=0 minValues 3");
}

/// Sheet 02 §29, 11: never an excluded value, and no panic where no number is a label value.
#[test]
fn any_is_the_smallest_value_that_a_node_could_carry() {
    let any = |text: &str| requirement("k", text).any();
    assert_eq!(any("In b,a").as_deref(), Some("a"));
    assert_eq!(any("Exists").as_deref(), Some("0"));
    assert_eq!(any("NotIn 0,1").as_deref(), Some("2"));
    assert_eq!(any("Gte 4 & Lte 5 & NotIn 4").as_deref(), Some("5"));
    assert_eq!(any("Gte 4 & Lte 4 & NotIn 4"), None);
    assert_eq!(any("Lt 0"), None);
    assert_eq!(any("Gte -5").as_deref(), Some("0"));
    assert_eq!(any("Gte 9223372036854775807").as_deref(), Some("9223372036854775807"));
    assert_eq!(any("DoesNotExist"), None);
    assert_eq!(any("In a & In b"), None);
}

#[test]
fn says_why_an_expression_means_nothing() {
    let refused = |operator, values: &[&str]| Requirement::new("k", operator, values).expect_err("wrong").to_string();
    assert_eq!(refused(Operator::In, &[]), "k: operator In needs at least one value");
    assert_eq!(refused(Operator::Gt, &[]), "k: operator Gt needs exactly one value, not 0");
    assert_eq!(refused(Operator::Lte, &["1", "2"]), "k: operator Lte needs exactly one value, not 2");
    assert_eq!(refused(Operator::Gte, &["1.5"]), "k: operator Gte needs an integer, not \"1.5\"");
    assert!(Requirement::new("k", Operator::NotIn, [""; 0]).expect("legal").allows_absence());
    assert_eq!("in".parse::<Operator>(), Err(UnknownOperator("in".into())));
}

/// One requirement per line: `key operator values`.
fn set(text: &str) -> Requirements {
    let rules = LabelRules::core();
    let mut all = Requirements::new();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let (key, rest) = line.split_once(' ').expect("key and rest");
        all.add(requirement(key, rest), &rules);
    }
    all
}

fn launchable(node: &str, incoming: &str) -> Result<(), Incompatible> {
    set(node).compatible(&set(incoming), UndefinedKeys::OpenIfWellKnown(&LabelRules::core()))
}

fn existing(node: &str, incoming: &str) -> Result<(), Incompatible> {
    set(node).compatible(&set(incoming), UndefinedKeys::Absent)
}

/// Sheet 02, case 1.
#[test]
fn an_alias_and_its_label_share_an_entry() {
    let both = set("beta.kubernetes.io/arch In x,y\nkubernetes.io/arch In y,z");
    assert_eq!(both.len(), 1);
    assert_eq!(both.get(ARCH).map(ToString::to_string).as_deref(), Some("kubernetes.io/arch In [y]"));
}

/// Sheet 02, case 5.
#[test]
fn a_custom_label_that_nothing_defines_can_only_be_avoided() {
    for asked in ["team In a", "team Exists", "team Gt 1"] {
        let undefined = Incompatible::Undefined { key: "team".into(), hint: None };
        assert_eq!(launchable("", asked), Err(undefined), "{asked}");
    }
    for avoided in ["team NotIn a", "team DoesNotExist"] {
        assert_eq!(launchable("", avoided), Ok(()), "{avoided}");
    }
    assert!(launchable("", "team NotIn a\nteam Exists").is_err(), "the label must still exist");
}

/// Sheet 02, case 6.
#[test]
fn a_well_known_label_is_open_on_a_claim_and_absent_on_a_node() {
    for operator in ["In a", "NotIn a", "Exists", "DoesNotExist", "Gt 1", "Lt 1"] {
        let incoming = format!("topology.kubernetes.io/zone {operator}");
        assert_eq!(launchable("", &incoming), Ok(()), "{operator}");
        let avoids = matches!(operator, "NotIn a" | "DoesNotExist");
        assert_eq!(existing("", &incoming).is_ok(), avoids, "{operator}");
    }
}

/// Sheet 02, case 7.
#[test]
fn absence_meets_exclusion_and_nothing_else() {
    assert_eq!(existing("team DoesNotExist", "team NotIn a"), Ok(()));
    assert_eq!(existing("team NotIn a", "team DoesNotExist"), Ok(()));
    for asked in ["team Exists", "team In a", "team Gt 1"] {
        assert!(existing("team DoesNotExist", asked).is_err(), "{asked}");
        assert!(existing(asked, "team DoesNotExist").is_err(), "{asked}");
    }
}

/// Sheet 02, case 8.
#[test]
fn a_mistyped_label_comes_with_a_hint() {
    let hint = |key: &str| match launchable("", &format!("{key} In x")) {
        Err(Incompatible::Undefined { hint, .. }) => hint,
        other => panic!("{key}: {other:?}"),
    };
    assert_eq!(hint("zone").as_deref(), Some(ZONE));
    assert_eq!(hint("node.io/zone").as_deref(), Some(ZONE));
    assert_eq!(hint("node.io/nodepool").as_deref(), Some(NODEPOOL));
    assert_eq!(hint("deployment"), None);
    let message = existing("example.com/team In a", "team In a").expect_err("undefined").to_string();
    assert_eq!(message, "nothing defines the label team (is example.com/team meant?)");
}

/// Sheet 02, case 9.
#[test]
fn a_pod_that_contradicts_itself_fits_nowhere() {
    let contradiction = Err(Incompatible::Contradiction { key: "foo".into() });
    assert_eq!(launchable("", "foo In a\nfoo In b"), contradiction);
    assert_eq!(existing("foo In a", "foo In a\nfoo In b"), contradiction);
    assert_eq!(existing("foo DoesNotExist", "foo In a\nfoo In b"), contradiction);
    assert!(launchable("", "topology.kubernetes.io/zone In a\ntopology.kubernetes.io/zone In b").is_err());
    let empty = set("foo In a\nfoo In b");
    assert_eq!(set("").intersects(&empty), contradiction);
}

#[test]
fn says_what_was_asked_for_and_what_is_offered() {
    let message = existing("team In a,b", "team In c").expect_err("disjoint").to_string();
    assert_eq!(message, "team In [c] is asked for, team In [a b] is offered");
    let message = existing("", "team In c\nteam In d").expect_err("contradiction").to_string();
    assert_eq!(message, "no value of team meets all that is asked of it");
}

#[test]
fn labels_the_other_side_does_not_mention_do_not_matter_to_intersects() {
    assert_eq!(set("a In 1\nc In 3").intersects(&set("b In 2\nc Exists")), Ok(()));
    assert!(set("a In 1\nc In 3").intersects(&set("b In 2\nc In 4")).is_err());
}

#[test]
fn merging_sets_narrows_each_label() {
    let mut left = set("a In 1,2\nb Exists");
    left.merge(&set("a In 2,3\nc DoesNotExist"));
    assert_eq!(left, set("a In 2\nb Exists\nc DoesNotExist"));
}

#[test]
fn the_host_name_is_not_shown() {
    let shown = set(&format!("b In 1\n{HOSTNAME} In n1\na Exists")).to_string();
    assert_eq!(shown, "a Exists, b In [1]");
}

#[test]
fn node_labels_allow_exactly_their_values() {
    let labels = [("beta.kubernetes.io/arch", "arm64"), ("team", "a")];
    let node = Requirements::from_labels(labels, &LabelRules::core());
    assert_eq!(node, set("kubernetes.io/arch In arm64\nteam In a"));
}
