//! Small edits of JSON objects, written as `path: value`.
//!
//! Paths look like those of the API server: `spec.template.spec.requirements[0].key`, and `labels[example.com/team]`
//! for keys with dots. A value may be made on the spot: `{$text: a, $times: 64}` is a text of 64 letters,
//! `{$item: {...}, $times: 101}` a list of 101 equal items, `{$entry: x, $times: 101}` a map with the keys k0 to k100.

use anyhow::{Context, Result, bail};
use serde_json::{Map, Value};

/// Merges as a merge patch does: objects by key, `null` removes, everything else replaces.
pub fn merge(object: &mut Value, over: Value) {
    match (object, over) {
        (Value::Object(object), Value::Object(over)) => {
            for (key, value) in over {
                match value {
                    Value::Null => drop(object.remove(&key)),
                    value => merge(object.entry(key).or_insert(Value::Null), value),
                }
            }
        }
        (object, over) => *object = over,
    }
}

/// Sets the value at a path. Objects on the way are made if missing; an index may be one past the end.
pub fn set(object: &mut Value, path: &str, value: &Value) -> Result<()> {
    let mut place = object;
    for step in steps(path)? {
        place = match step {
            Step::Name(name) => {
                if place.is_null() {
                    *place = Value::Object(Map::new());
                }
                let fields =
                    place.as_object_mut().with_context(|| format!("`{name}` of {path} is not in an object"))?;
                fields.entry(name).or_insert(Value::Null)
            }
            Step::Index(index) => {
                if place.is_null() {
                    *place = Value::Array(Vec::new());
                }
                let items = place.as_array_mut().with_context(|| format!("[{index}] of {path} is not in a list"))?;
                if index == items.len() {
                    items.push(Value::Null);
                }
                items.get_mut(index).with_context(|| format!("[{index}] of {path} is past the end"))?
            }
        };
    }
    *place = made(value)?;
    Ok(())
}

/// Removes the field or item at a path, which must exist.
pub fn remove(object: &mut Value, path: &str) -> Result<()> {
    let mut steps = steps(path)?;
    let last = steps.pop().with_context(|| format!("`{path}` is no path"))?;
    let parent = steps.into_iter().try_fold(object, |place, step| match step {
        Step::Name(name) => place.get_mut(name),
        Step::Index(index) => place.get_mut(index),
    });
    let removed = match (parent, last) {
        (Some(Value::Object(fields)), Step::Name(name)) => fields.remove(&name).is_some(),
        (Some(Value::Array(items)), Step::Index(index)) if index < items.len() => {
            items.remove(index);
            true
        }
        _ => false,
    };
    if removed { Ok(()) } else { bail!("nothing at {path} to remove") }
}

/// The value at a path, if there is one.
pub fn get<'a>(object: &'a Value, path: &str) -> Result<Option<&'a Value>> {
    Ok(steps(path)?.into_iter().try_fold(object, |place, step| match step {
        Step::Name(name) => place.get(name),
        Step::Index(index) => place.get(index),
    }))
}

enum Step {
    Name(String),
    Index(usize),
}

fn steps(path: &str) -> Result<Vec<Step>> {
    let mut steps = Vec::new();
    let mut rest = path;
    while !rest.is_empty() {
        if let Some(bracketed) = rest.strip_prefix('[') {
            let (key, after) = bracketed.split_once(']').with_context(|| format!("`{path}` lacks a `]`"))?;
            steps.push(match key.parse() {
                Ok(index) => Step::Index(index),
                Err(_) => Step::Name(key.to_owned()),
            });
            rest = after.strip_prefix('.').unwrap_or(after);
        } else {
            let end = rest.find(['.', '[']).unwrap_or(rest.len());
            let (name, after) = rest.split_at(end);
            if name.is_empty() {
                bail!("`{path}` has an empty name");
            }
            steps.push(Step::Name(name.to_owned()));
            rest = after.strip_prefix('.').unwrap_or(after);
        }
    }
    Ok(steps)
}

/// The value itself, or what its `$…` form describes.
pub fn made(value: &Value) -> Result<Value> {
    let Some(times) = value.get("$times") else { return Ok(value.clone()) };
    let times = times.as_u64().with_context(|| format!("$times is not a count in {value}"))?;
    let times = usize::try_from(times)?;
    if let Some(text) = value.get("$text").and_then(Value::as_str) {
        let tail = value.get("$then").and_then(Value::as_str).unwrap_or_default();
        return Ok(Value::String(text.repeat(times) + tail));
    }
    if let Some(item) = value.get("$item") {
        return Ok(Value::Array(vec![item.clone(); times]));
    }
    if let Some(entry) = value.get("$entry") {
        return Ok(Value::Object((0..times).map(|number| (format!("k{number}"), entry.clone())).collect()));
    }
    bail!("$times needs $text, $item or $entry in {value}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn sets_nested_fields_and_appends_items() {
        let mut object = json!({"spec": {"list": [1]}});
        set(&mut object, "spec.list[1].labels[example.com/team]", &json!("a")).unwrap();
        assert_eq!(object, json!({"spec": {"list": [1, {"labels": {"example.com/team": "a"}}]}}));
        assert!(set(&mut object, "spec.list[5]", &json!(0)).is_err());
        assert!(set(&mut object, "spec.list[0].x", &json!(0)).is_err());
    }

    #[test]
    fn removes_only_what_is_there() {
        let mut object = json!({"a": [{"b": 1}]});
        remove(&mut object, "a[0].b").unwrap();
        assert_eq!(object, json!({"a": [{}]}));
        assert!(remove(&mut object, "a[0].b").is_err());
    }

    #[test]
    fn makes_long_values() {
        assert_eq!(made(&json!({"$text": "ab", "$times": 2, "$then": "!"})).unwrap(), json!("abab!"));
        assert_eq!(made(&json!({"$item": {"x": 1}, "$times": 2})).unwrap(), json!([{"x": 1}, {"x": 1}]));
        assert_eq!(made(&json!({"$entry": "v", "$times": 2})).unwrap(), json!({"k0": "v", "k1": "v"}));
        assert!(made(&json!({"$times": 2})).is_err());
    }
}
