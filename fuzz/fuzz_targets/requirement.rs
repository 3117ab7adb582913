//! Any expressions make requirements that agree with their own answers about single values.
#![no_main]

use kerf_model::requirement::{Operator, Requirement};
use libfuzzer_sys::fuzz_target;

/// Values that lie around each other, as text and as numbers.
const VALUES: [&str; 10] = ["", "a", "b", "0", "1", "2", "02", "9223372036854775807", "-1", "9223372036854775808"];

type Written = (u8, Vec<u8>);

fn requirement((operator, values): &Written) -> Option<Requirement> {
    let operator = Operator::ALL[usize::from(*operator) % Operator::ALL.len()];
    let values = values.iter().take(4).map(|index| VALUES[usize::from(*index) % VALUES.len()]);
    Requirement::new("key", operator, values).ok()
}

fuzz_target!(|input: (Written, Written, Written)| {
    let (Some(a), Some(b), Some(c)) = (requirement(&input.0), requirement(&input.1), requirement(&input.2)) else {
        return;
    };
    let both = a.intersection(&b);
    assert_eq!(both, b.intersection(&a));
    assert_eq!(both.intersection(&c), a.intersection(&b.intersection(&c)));
    assert_eq!(a.intersection(&a), a);
    for value in VALUES {
        assert_eq!(both.has(value), a.has(value) && b.has(value), "{a} and {b} on {value:?}");
    }
    assert_eq!(both.allows_absence(), a.allows_absence() && b.allows_absence(), "{a} and {b}");
    assert_eq!(both.is_contradiction(), !a.can_meet(&b), "{a} and {b}");
    if let Some(value) = both.any() {
        assert!(both.has(&value), "{both} picks {value}");
    }
    if !both.is_contradiction() {
        let parts: Vec<Requirement> =
            both.expressions().iter().map(|expression| expression.try_into().expect("what was written is read")).collect();
        let again = parts.into_iter().reduce(|left, right| left.intersection(&right)).expect("at least one expression");
        assert_eq!(again, both);
    }
});
