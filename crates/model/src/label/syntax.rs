//! How Kubernetes spells label keys and values.

use thiserror::Error;

const MAX_PREFIX: usize = 253;
const MAX_NAME: usize = 63;

/// What is wrong with a key or value; the offending text is known to the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum LabelSyntaxError {
    #[error("the prefix before '/' is empty")]
    EmptyPrefix,
    #[error("the prefix before '/' is longer than {MAX_PREFIX} characters")]
    LongPrefix,
    #[error(
        "the prefix before '/' is not a DNS subdomain: lower-case letters, digits, '-' and '.', with a letter or digit at both ends of each part"
    )]
    BadPrefix,
    #[error("there is more than one '/'")]
    ManySlashes,
    #[error("the name is empty")]
    EmptyName,
    #[error("the name is longer than {MAX_NAME} characters")]
    LongName,
    #[error("the name may hold letters, digits, '-', '_' and '.', and must start and end with a letter or digit")]
    BadName,
    #[error("the value is longer than {MAX_NAME} characters")]
    LongValue,
    #[error("the value may hold letters, digits, '-', '_' and '.', and must start and end with a letter or digit")]
    BadValue,
}

/// Checks a label, annotation or taint key: `name` or `dns.prefix/name`.
///
/// # Errors
/// The first rule that the key breaks.
pub fn check_qualified_name(key: &str) -> Result<(), LabelSyntaxError> {
    let name = match key.split_once('/') {
        None => key,
        Some((_, name)) if name.contains('/') => return Err(LabelSyntaxError::ManySlashes),
        Some((prefix, name)) => {
            check_prefix(prefix)?;
            name
        }
    };
    if name.is_empty() {
        Err(LabelSyntaxError::EmptyName)
    } else if name.len() > MAX_NAME {
        Err(LabelSyntaxError::LongName)
    } else if !is_name(name) {
        Err(LabelSyntaxError::BadName)
    } else {
        Ok(())
    }
}

/// Checks a label value; the empty value is one.
///
/// # Errors
/// The first rule that the value breaks.
pub fn check_value(value: &str) -> Result<(), LabelSyntaxError> {
    if value.len() > MAX_NAME {
        Err(LabelSyntaxError::LongValue)
    } else if !value.is_empty() && !is_name(value) {
        Err(LabelSyntaxError::BadValue)
    } else {
        Ok(())
    }
}

fn check_prefix(prefix: &str) -> Result<(), LabelSyntaxError> {
    if prefix.is_empty() {
        Err(LabelSyntaxError::EmptyPrefix)
    } else if prefix.len() > MAX_PREFIX {
        Err(LabelSyntaxError::LongPrefix)
    } else if !prefix.split('.').all(is_dns_part) {
        Err(LabelSyntaxError::BadPrefix)
    } else {
        Ok(())
    }
}

// Kubernetes limits the whole prefix, not its parts: a part may be longer than the 63 characters of DNS.
fn is_dns_part(part: &str) -> bool {
    let alphanumeric = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    bounded_by(part, alphanumeric) && part.bytes().all(|byte| alphanumeric(byte) || byte == b'-')
}

fn is_name(name: &str) -> bool {
    bounded_by(name, |byte| byte.is_ascii_alphanumeric())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'))
}

fn bounded_by(text: &str, allowed: impl Fn(u8) -> bool) -> bool {
    match text.as_bytes() {
        [] => false,
        [only] => allowed(*only),
        [first, .., last] => allowed(*first) && allowed(*last),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_what_is_wrong_with_a_key() {
        let long = "a".repeat(64);
        let cases = [
            ("/a", LabelSyntaxError::EmptyPrefix),
            ("a/b/c", LabelSyntaxError::ManySlashes),
            ("A.com/x", LabelSyntaxError::BadPrefix),
            ("a..b/x", LabelSyntaxError::BadPrefix),
            ("a-/x", LabelSyntaxError::BadPrefix),
            ("", LabelSyntaxError::EmptyName),
            ("a/", LabelSyntaxError::EmptyName),
            (long.as_str(), LabelSyntaxError::LongName),
            ("-a", LabelSyntaxError::BadName),
            ("a b", LabelSyntaxError::BadName),
            ("é", LabelSyntaxError::BadName),
        ];
        for (key, wrong) in cases {
            assert_eq!(check_qualified_name(key), Err(wrong), "{key:?}");
        }
        assert_eq!(check_qualified_name(&format!("{}/x", "a".repeat(254))), Err(LabelSyntaxError::LongPrefix));
        assert_eq!(check_qualified_name(&format!("{}/x", "a".repeat(253))), Ok(()));
    }

    #[test]
    fn accepts_an_empty_value_and_says_what_is_wrong_with_others() {
        assert_eq!(check_value(""), Ok(()));
        assert_eq!(check_value("m5.large"), Ok(()));
        assert_eq!(check_value(&"a".repeat(64)), Err(LabelSyntaxError::LongValue));
        assert_eq!(check_value("-1"), Err(LabelSyntaxError::BadValue));
        assert_eq!(check_value("a/b"), Err(LabelSyntaxError::BadValue));
    }
}
