//! The one clock of the program's own.

use jiff::Timestamp;

#[expect(clippy::disallowed_methods, reason = "the shell's clock: decisions get this time as an argument")]
pub fn now() -> Timestamp {
    Timestamp::now()
}
