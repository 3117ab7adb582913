//! Field paths as the API server prints them: `spec.template.spec.requirements[0].key`.

/// A property, or an entry of a map (schema errors write both with a dot).
pub(super) fn child(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

pub(super) fn item(path: &str, index: usize) -> String {
    format!("{path}[{index}]")
}

/// An entry of a map, as rule and list-type errors write it: `spec.limits[cpu]`.
pub(super) fn entry(path: &str, key: &str) -> String {
    format!("{path}[{key}]")
}
