//! Quantities against the reference's answers, and their algebra.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use kerf_model::quantity::{Notation, ParseQuantityError, Quantity};
use proptest::prelude::*;

/// The table was answered by k8s.io/apimachinery; its head says how to read it, and which lines are deliberately ours.
#[test]
fn reads_and_prints_like_the_reference() {
    let table = include_str!("vectors/quantities.txt");
    let mut checked = 0;
    for line in table.lines().filter(|line| !line.starts_with('#')) {
        let (input, expected) = line.split_once('\t').expect("input and answer");
        let actual = match input.parse::<Quantity>() {
            Ok(quantity) => format!("{}\t{}\t{quantity}", quantity.nanos(), notation_name(quantity.notation())),
            Err(ParseQuantityError::Overflow { .. }) => "overflow".to_owned(),
            Err(_) => "error".to_owned(),
        };
        assert_eq!(actual, expected, "for {input:?}");
        checked += 1;
    }
    assert!(checked > 900, "only {checked} lines");
}

fn notation_name(notation: Notation) -> &'static str {
    match notation {
        Notation::DecimalSi => "DecimalSI",
        Notation::BinarySi => "BinarySI",
        Notation::DecimalExponent => "DecimalExponent",
    }
}

#[test]
fn keeps_the_notation_of_the_left_operand_unless_it_is_zero() {
    let add = |left: &str, right: &str| parse(left).checked_add(parse(right)).unwrap().to_string();
    assert_eq!(add("1Gi", "1M"), "1074741824");
    assert_eq!(add("0", "1Gi"), "1Gi");
    assert_eq!(add("0Ki", "1500m"), "1500m");
    assert_eq!(add("1M", "1Ki"), "1001024");
}

#[test]
fn rounds_away_from_zero_when_asked_for_whole_units() {
    assert_eq!(parse("1.5").value(), Some(2));
    assert_eq!(parse("-1.5").value(), Some(-2));
    assert_eq!(parse("1u").milli(), Some(1));
    assert_eq!(parse("250m").milli(), Some(250));
    assert_eq!(parse("9223372036854775807").value(), Some(i64::MAX));
    assert_eq!(parse("9223372036854775807").milli(), None);
    assert_eq!(parse("10E").value(), None);
}

#[test]
fn says_what_is_wrong_and_where() {
    let error = |text: &str| text.parse::<Quantity>().unwrap_err().to_string();
    assert_eq!(error("1.5GB"), r#"quantity "1.5GB" has an unknown suffix "GB" at byte 3"#);
    assert_eq!(error("Ki"), r#"quantity "Ki" has no digits"#);
    assert_eq!(error("8Ei"), r#"quantity "8Ei" is too large"#);
    assert_eq!(error("1e99999999999"), r#"quantity "1e99999999999" has an exponent out of range at byte 1"#);
}

#[test]
fn refuses_sums_and_products_that_do_not_fit() {
    let large = parse("1e29");
    assert_eq!(large.checked_add(large), None);
    assert_eq!(large.checked_mul(2), None);
    assert_eq!(parse("-1e29").checked_sub(large), None);
}

fn parse(text: &str) -> Quantity {
    text.parse().unwrap()
}

/// Any amount of up to 30 digits in any notation.
fn any_quantity() -> impl Strategy<Value = Quantity> {
    let suffix = prop::sample::select(vec!["n", "u", "m", "", "k", "M", "G", "Ki", "Mi", "Gi", "e3", "e-3"]);
    ("-?[0-9]{1,9}(\\.[0-9]{0,12})?", suffix).prop_map(|(number, suffix)| parse(&format!("{number}{suffix}")))
}

proptest! {
    #[test]
    fn printing_loses_nothing_and_is_stable(quantity in any_quantity()) {
        let printed = quantity.to_string();
        let back = parse(&printed);
        prop_assert_eq!(back, quantity);
        prop_assert_eq!(back.to_string(), printed);
    }

    #[test]
    fn addition_is_an_abelian_group(a in any_quantity(), b in any_quantity(), c in any_quantity()) {
        let add = |a: Quantity, b: Quantity| a.checked_add(b).unwrap();
        prop_assert_eq!(add(a, b), add(b, a));
        prop_assert_eq!(add(add(a, b), c), add(a, add(b, c)));
        prop_assert_eq!(add(a, b).checked_sub(b).unwrap(), a);
        prop_assert_eq!(add(a, Quantity::ZERO), a);
    }

    /// `left * 10^x` against `right * 10^y`, compared by cross-multiplication.
    #[test]
    fn order_is_that_of_the_rational_numbers(
        left in -1_000_000_i64..1_000_000, x in -9_i32..9, right in -1_000_000_i64..1_000_000, y in -9_i32..9,
    ) {
        let least = x.min(y);
        let power = |exponent: i32| 10_i128.pow(exponent.unsigned_abs());
        let expected = (i128::from(left) * power(x - least)).cmp(&(i128::from(right) * power(y - least)));
        prop_assert_eq!(parse(&format!("{left}e{x}")).cmp(&parse(&format!("{right}e{y}"))), expected);
    }

    #[test]
    fn any_text_gives_a_quantity_or_an_error(text in "\\PC{0,24}", near in "[-+]?[0-9.]{0,40}[eEinumkKMGTP]{0,2}[-+]?[0-9]{0,12}") {
        for text in [text, near] {
            match text.parse::<Quantity>() {
                Ok(quantity) => prop_assert_eq!(parse(&quantity.to_string()), quantity),
                Err(error) => prop_assert!(!error.to_string().is_empty()),
            }
        }
    }
}
