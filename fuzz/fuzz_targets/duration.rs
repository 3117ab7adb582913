//! Any text is an error or a duration that survives print.
#![no_main]

use kerf_model::duration::{GoDuration, NillableDuration};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Ok(duration) = text.parse::<GoDuration>() {
        let printed = duration.to_string();
        assert_eq!(printed.parse(), Ok(duration));
        assert_eq!(text.parse(), Ok(NillableDuration::After(duration)));
    }
});
