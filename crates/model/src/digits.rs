//! Shared by the parsers of numbers with a suffix.

/// The leading ASCII digits, and the rest.
pub(crate) fn split_digits(text: &str) -> (&str, &str) {
    text.split_at(text.bytes().take_while(u8::is_ascii_digit).count())
}
