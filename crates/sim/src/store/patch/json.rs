//! JSON patch (RFC 6902), with the one liberty that Kubernetes' library takes.

use serde_json::Value;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JsonPatchError {
    #[error("it is not a list of operations")]
    NotAList,
    #[error("operation {index} is not one of add, remove, replace, move, copy, test, or lacks a part")]
    Malformed { index: usize },
    #[error("operation {index}: there is nothing at {path:?}")]
    Missing { index: usize, path: String },
    #[error("operation {index}: the test of {path:?} failed")]
    TestFailed { index: usize, path: String },
}

/// Applies all operations in order. On an error the target is half patched: the caller throws it away.
pub fn apply(target: &mut Value, operations: &Value) -> Result<(), JsonPatchError> {
    for (index, operation) in operations.as_array().ok_or(JsonPatchError::NotAList)?.iter().enumerate() {
        let text = |name: &str| operation.get(name).and_then(Value::as_str);
        let malformed = || JsonPatchError::Malformed { index };
        let path = text("path").ok_or_else(malformed)?;
        let from = || text("from").ok_or_else(malformed);
        let value = || operation.get("value").cloned().ok_or_else(malformed);
        let missing = |path: &str| JsonPatchError::Missing { index, path: path.to_owned() };
        match text("op") {
            Some("add") => add(target, path, value()?).ok_or_else(|| missing(path))?,
            Some("replace") => {
                *target.pointer_mut(path).ok_or_else(|| missing(path))? = value()?;
            }
            Some("remove") => {
                remove(target, path).ok_or_else(|| missing(path))?;
            }
            Some("move") => {
                let moved = remove(target, from()?).ok_or_else(|| missing(path))?;
                add(target, path, moved).ok_or_else(|| missing(path))?;
            }
            Some("copy") => {
                let copied = target.pointer(from()?).cloned().ok_or_else(|| missing(path))?;
                add(target, path, copied).ok_or_else(|| missing(path))?;
            }
            Some("test") => {
                // Kubernetes' library takes an absent value for null, and clients rely on it: "test that there are no
                // finalizers, then add ours".
                let expected = operation.get("value").unwrap_or(&Value::Null);
                if target.pointer(path).unwrap_or(&Value::Null) != expected {
                    return Err(JsonPatchError::TestFailed { index, path: path.to_owned() });
                }
            }
            _ => return Err(malformed()),
        }
    }
    Ok(())
}

fn add(target: &mut Value, path: &str, value: Value) -> Option<()> {
    let Some((parent, last)) = path.rsplit_once('/') else {
        *target = value;
        return Some(());
    };
    match target.pointer_mut(parent)? {
        Value::Object(fields) => {
            fields.insert(unescape(last), value);
        }
        Value::Array(items) => {
            let position = if last == "-" { items.len() } else { last.parse().ok()? };
            if position > items.len() {
                return None;
            }
            items.insert(position, value);
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => return None,
    }
    Some(())
}

fn remove(target: &mut Value, path: &str) -> Option<Value> {
    let (parent, last) = path.rsplit_once('/')?;
    match target.pointer_mut(parent)? {
        Value::Object(fields) => fields.remove(&unescape(last)),
        Value::Array(items) => {
            let position: usize = last.parse().ok()?;
            (position < items.len()).then(|| items.remove(position))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }
}

fn unescape(token: &str) -> String {
    token.replace("~1", "/").replace("~0", "~")
}
