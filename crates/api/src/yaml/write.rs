//! A JSON value as block-style YAML, the way people write manifests.

use std::fmt::Write;

use serde_json::{Map, Value};

use super::scalar::is_plain_string;

/// The fields that every reader looks for first.
const LEADING_FIELDS: [&str; 6] = ["apiVersion", "kind", "metadata", "spec", "data", "status"];

/// Writes one document, without a `---` line and ending in a newline.
///
/// Objects are written with their keys sorted (at the top level the well-known fields come first), so the text depends on
/// the value alone. A text is quoted whenever a reader of YAML 1.1 would take it for something else.
pub fn to_yaml(value: &Value) -> String {
    let mut out = String::new();
    match value {
        Value::Object(entries) => return object_to_yaml(entries),
        Value::Array(items) if !items.is_empty() => write_list(&mut out, items, 0),
        _ => {
            write_inline(&mut out, value);
            out.push('\n');
        }
    }
    out
}

/// [`to_yaml`] for an object that is not wrapped in a value.
pub fn object_to_yaml(entries: &Map<String, Value>) -> String {
    if entries.is_empty() {
        return "{}\n".to_owned();
    }
    let mut out = String::new();
    write_object(&mut out, entries, 0, leading_order);
    out
}

fn leading_order(key: &str) -> usize {
    LEADING_FIELDS.iter().position(|field| *field == key).unwrap_or(LEADING_FIELDS.len())
}

fn write_object(out: &mut String, entries: &Map<String, Value>, indent: usize, order: fn(&str) -> usize) {
    let mut entries: Vec<_> = entries.iter().collect();
    entries.sort_by_key(|(key, _)| (order(key), *key));
    for (index, (key, value)) in entries.into_iter().enumerate() {
        // The first key of an object inside of a list stands on the line of the dash.
        if index > 0 || !out.ends_with("- ") {
            push_indent(out, indent);
        }
        write_text(out, key);
        out.push(':');
        write_field(out, value, indent);
    }
}

fn write_field(out: &mut String, value: &Value, indent: usize) {
    match value {
        Value::Object(entries) if !entries.is_empty() => {
            out.push('\n');
            write_object(out, entries, indent + 2, |_| 0);
        }
        // As kubectl does: dashes stand under the key.
        Value::Array(items) if !items.is_empty() => {
            out.push('\n');
            write_list(out, items, indent);
        }
        Value::String(text) if is_block_text(text) => write_block_text(out, text, indent + 2),
        _ => {
            out.push(' ');
            write_inline(out, value);
            out.push('\n');
        }
    }
}

fn write_list(out: &mut String, items: &[Value], indent: usize) {
    for (index, item) in items.iter().enumerate() {
        if index > 0 || !out.ends_with("- ") {
            push_indent(out, indent);
        }
        out.push_str("- ");
        match item {
            Value::Object(entries) if !entries.is_empty() => write_object(out, entries, indent + 2, |_| 0),
            Value::Array(items) if !items.is_empty() => write_list(out, items, indent + 2),
            Value::String(text) if is_block_text(text) => {
                out.pop();
                write_block_text(out, text, indent + 2);
            }
            _ => {
                write_inline(out, item);
                out.push('\n');
            }
        }
    }
}

fn write_inline(out: &mut String, value: &Value) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
        Value::Number(number) => {
            // Writing to a String cannot fail.
            let _ = write!(out, "{number}");
        }
        Value::String(text) => write_text(out, text),
        Value::Array(_) => out.push_str("[]"),
        Value::Object(_) => out.push_str("{}"),
    }
}

fn write_text(out: &mut String, text: &str) {
    if can_stand_plain(text) {
        out.push_str(text);
    } else {
        write_quoted(out, text);
    }
}

fn can_stand_plain(text: &str) -> bool {
    let Some(first) = text.chars().next() else { return false };
    let starts_safely = match first {
        '-' | '?' | ':' => text.chars().nth(1).is_some_and(|second| !second.is_whitespace()),
        '<' | '=' => text.len() > 2,
        _ => !"!&*,[]{}#|>@`\"'%".contains(first) && !first.is_whitespace(),
    };
    starts_safely
        && !text.ends_with([' ', ':'])
        && !text.contains(": ")
        && !text.contains(" #")
        && !text.starts_with("---")
        && !text.starts_with("...")
        && text.chars().all(is_plain_character)
        && is_plain_string(text)
        && !is_other_schema_value(text)
}

/// Printable, and no character that a parser may take for a line break or a byte order mark.
fn is_plain_character(character: char) -> bool {
    !character.is_control() && !matches!(character, '\u{85}' | '\u{2028}' | '\u{2029}' | '\u{feff}')
}

/// Texts that are strings for kubectl and something else for other readers of YAML 1.1: dates and base-60 numbers.
fn is_other_schema_value(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_digit() || matches!(first, '+' | '-' | '.'))
        && text.bytes().skip(1).any(|byte| byte == b':' || byte == b'-')
        && text.bytes().all(|byte| byte.is_ascii_digit() || b"-+:.TtZz _".contains(&byte))
}

fn write_quoted(out: &mut String, text: &str) {
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            _ if is_plain_character(character) => out.push(character),
            // Every character that is not plain lies below U+FFFF.
            _ => {
                let _ = write!(out, "\\u{:04x}", u32::from(character));
            }
        }
    }
    out.push('"');
}

/// User data and scripts: text of several lines that a literal block reproduces exactly.
fn is_block_text(text: &str) -> bool {
    let Some(body) = text.strip_suffix('\n') else { return is_block_body(text) };
    is_block_body(body)
}

fn is_block_body(body: &str) -> bool {
    body.contains('\n')
        && !body.starts_with([' ', '\t', '\n'])
        && !body.ends_with(['\n', ' '])
        && body.chars().all(|character| character == '\n' || character == '\t' || is_plain_character(character))
}

fn write_block_text(out: &mut String, text: &str, indent: usize) {
    out.push_str(if text.ends_with('\n') { " |\n" } else { " |-\n" });
    for line in text.strip_suffix('\n').unwrap_or(text).split('\n') {
        if !line.is_empty() {
            push_indent(out, indent);
            out.push_str(line);
        }
        out.push('\n');
    }
}

fn push_indent(out: &mut String, indent: usize) {
    out.extend(std::iter::repeat_n(' ', indent));
}
