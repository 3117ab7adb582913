//! Patterns mean what Go's `regexp` says, because the API server is written in Go.

use regex::Regex;

/// A pattern as a schema states it, ready to search with.
#[derive(Debug)]
pub(super) struct Pattern {
    pub source: String,
    regex: Regex,
}

impl Pattern {
    pub fn compile(source: &str) -> Result<Self, regex::Error> {
        Ok(Self { source: source.to_owned(), regex: Regex::new(&with_ascii_classes(source))? })
    }

    /// Unanchored, as Go's `MatchString`: a pattern that wants the whole text says `^` and `$`.
    pub fn finds(&self, text: &str) -> bool {
        self.regex.is_match(text)
    }
}

/// Go's `\d`, `\s` and `\w` know ASCII only while Rust's know Unicode: `٣` is a digit for one and not for the other.
/// A bracketed class is legal inside another one in Rust, so the same replacement serves in both places.
fn with_ascii_classes(source: &str) -> String {
    let mut rewritten = String::with_capacity(source.len());
    let mut chars = source.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            rewritten.push(c);
            continue;
        }
        match chars.next() {
            Some('d') => rewritten.push_str("[0-9]"),
            Some('D') => rewritten.push_str("[^0-9]"),
            Some('s') => rewritten.push_str(r"[\t\n\x0C\r ]"),
            Some('S') => rewritten.push_str(r"[^\t\n\x0C\r ]"),
            Some('w') => rewritten.push_str("[0-9A-Za-z_]"),
            Some('W') => rewritten.push_str("[^0-9A-Za-z_]"),
            Some('b') => rewritten.push_str(r"(?-u:\b)"),
            Some(other) => rewritten.extend(['\\', other]),
            None => rewritten.push('\\'),
        }
    }
    rewritten
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finds(pattern: &str, text: &str) -> bool {
        Pattern::compile(pattern).unwrap().finds(text)
    }

    #[test]
    fn searches_anywhere_unless_anchored() {
        assert!(finds("subnet-[0-9a-z]+", "x-subnet-1!"));
        assert!(!finds("^subnet-[0-9a-z]+$", "x-subnet-1!"));
    }

    #[test]
    fn a_dollar_does_not_match_before_a_final_newline() {
        assert!(!finds("^a$", "a\n"));
    }

    #[test]
    fn perl_classes_are_ascii_inside_and_outside_brackets() {
        assert!(finds(r"^\d+$", "42") && !finds(r"^\d+$", "٣"));
        assert!(finds(r"^[\d.]+$", "4.2") && !finds(r"^[\d.]+$", "٣"));
        assert!(finds(r"^[^\s]+$", "a\u{a0}b"), "a no-break space is no space for Go");
    }

    #[test]
    fn an_empty_alternative_is_legal() {
        assert!(finds("^([1-9]||58)Ti$", "Ti"));
    }

    #[test]
    fn an_escaped_backslash_is_not_an_escape() {
        assert!(finds(r"^\\d$", r"\d"));
    }
}
