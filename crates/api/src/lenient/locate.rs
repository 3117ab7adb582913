//! From a position in a JSON text to the path of the value that stands there.

use std::fmt::Write as _;

/// An object or list that the position is inside of.
enum Open {
    Object { key: Option<String> },
    List { index: usize },
}

/// The path of the value that the first `end` bytes of a valid, compact JSON text end in, such as `spec.taints[0].effect`.
///
/// A decoder reports a wrong value at its last byte, and a missing field at the closing brace of its object. So the brace
/// still belongs to the object, and what came before it does not count.
pub(super) fn path_at(text: &str, end: usize) -> String {
    let bytes = text.as_bytes();
    let mut open: Vec<Open> = Vec::new();
    let mut at = 0;
    while at < end.min(bytes.len()) {
        let is_last = at + 1 == end;
        match bytes[at] {
            b'{' => open.push(Open::Object { key: None }),
            b'[' => open.push(Open::List { index: 0 }),
            b'}' | b']' if is_last => {
                if let Some(Open::Object { key }) = open.last_mut() {
                    *key = None;
                }
            }
            b'}' | b']' => {
                open.pop();
            }
            b',' => match open.last_mut() {
                Some(Open::Object { key }) => *key = None,
                Some(Open::List { index }) => *index += 1,
                None => {}
            },
            b'"' => {
                let length = string_length(&bytes[at..]);
                if let Some(Open::Object { key: key @ None }) = open.last_mut() {
                    *key = serde_json::from_str(&text[at..at + length]).ok();
                }
                at += length - 1;
            }
            _ => {}
        }
        at += 1;
    }
    render(&open)
}

/// The length of the string that the bytes start with, quotes included.
fn string_length(bytes: &[u8]) -> usize {
    let mut escaped = false;
    for (at, &byte) in bytes.iter().enumerate().skip(1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return at + 1,
            _ => {}
        }
    }
    bytes.len()
}

fn render(open: &[Open]) -> String {
    let mut path = String::new();
    for step in open {
        match step {
            Open::Object { key: Some(key) } => {
                if !path.is_empty() {
                    path.push('.');
                }
                path.push_str(key);
            }
            Open::Object { key: None } => {}
            Open::List { index } => {
                let _ = write!(path, "[{index}]");
            }
        }
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_lead_to_the_values_that_end_there() {
        let text = r#"{"a":{"b":[1,{"c":"x"},[2,3]],"d":true},"e":4}"#;
        for (until, path) in [
            (r#"{"a":{"b":[1"#, "a.b[0]"),
            (r#"{"a":{"b":[1,{"c":"x""#, "a.b[1].c"),
            (r#"{"a":{"b":[1,{"c":"x"}"#, "a.b[1]"),
            (r#"{"a":{"b":[1,{"c":"x"},[2,3"#, "a.b[2][1]"),
            (r#"{"a":{"b":[1,{"c":"x"},[2,3]],"d":true"#, "a.d"),
            (r#"{"a":{"b":[1,{"c":"x"},[2,3]],"d":true}"#, "a"),
            (r#"{"a":{"b":[1,{"c":"x"},[2,3]],"d":true},"e":4"#, "e"),
            (text, ""),
        ] {
            assert!(text.starts_with(until));
            assert_eq!(path_at(text, until.len()), path, "{until}");
        }
    }
}
