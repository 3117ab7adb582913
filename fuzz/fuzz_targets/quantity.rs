//! Any text is an error or a quantity that survives print and arithmetic.
#![no_main]

use kerf_model::quantity::Quantity;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|texts: (&str, &str)| {
    let (Ok(a), Ok(b)) = (texts.0.parse::<Quantity>(), texts.1.parse::<Quantity>()) else { return };
    for quantity in [a, b] {
        let printed = quantity.to_string();
        let back: Quantity = printed.parse().expect("canonical text is a quantity");
        assert_eq!(back, quantity);
        assert_eq!(back.to_string(), printed);
        // Rounded away from zero, and by less than one.
        if let Some(value) = quantity.value() {
            let distance = i128::from(value) * 1_000_000_000 - quantity.nanos();
            assert!(distance.abs() < 1_000_000_000 && distance.signum() * quantity.nanos().signum() >= 0);
        }
    }
    if let Some(sum) = a.checked_add(b) {
        assert_eq!(sum.checked_sub(b), Some(a));
        assert_eq!(b.checked_add(a), Some(sum));
    }
});
