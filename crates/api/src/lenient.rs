//! Lists and watches that one bad object cannot break.
//!
//! An object that does not decode (it was written under an older or newer schema, say) would otherwise fail the whole list
//! it is in, and with it the controller. `Api<Lenient<NodePool>>` yields it as [`Undecodable`] among the good ones, to be
//! reported and skipped.

mod locate;

use std::borrow::Cow;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// An object, or what is known of one that does not decode.
#[derive(Clone, Debug, PartialEq)]
pub enum Lenient<T> {
    Decoded(T),
    Undecodable(Box<Undecodable>),
}

/// An object that does not decode: which one it is, and why.
#[derive(Clone, Debug, PartialEq)]
pub struct Undecodable {
    /// Empty in a list, whose items do not repeat it.
    pub api_version: String,
    /// Empty in a list, whose items do not repeat it.
    pub kind: String,
    /// Name, namespace, uid, resourceVersion and generation; nothing else is trusted.
    pub metadata: ObjectMeta,
    pub error: DecodeError,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {problem}")]
pub struct DecodeError {
    /// Where, such as `spec.template.spec.requirements[2].minValues`.
    pub path: String,
    pub problem: String,
}

impl<T: DeserializeOwned> Lenient<T> {
    pub fn from_value(value: &Value) -> Self {
        match T::deserialize(value) {
            Ok(object) => Self::Decoded(object),
            Err(error) => Self::Undecodable(Box::new(Undecodable::new::<T>(value, &error))),
        }
    }
}

impl<T> Lenient<T> {
    pub fn into_result(self) -> Result<T, Box<Undecodable>> {
        match self {
            Self::Decoded(object) => Ok(object),
            Self::Undecodable(object) => Err(object),
        }
    }
}

impl<'de, T: DeserializeOwned> Deserialize<'de> for Lenient<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Value::deserialize(deserializer).map(|value| Self::from_value(&value))
    }
}

impl Undecodable {
    fn new<T: DeserializeOwned>(value: &Value, error: &serde_json::Error) -> Self {
        let text = |pointer: &str| value.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
        // The value has no positions, its text does: decoding again from there tells where it fails.
        let document = value.to_string();
        let error = match serde_json::from_str::<T>(&document) {
            Err(error) => {
                DecodeError { path: locate::path_at(&document, error.column()), problem: without_position(&error) }
            }
            Ok(_) => DecodeError { path: String::new(), problem: error.to_string() },
        };
        Self {
            api_version: text("/apiVersion").unwrap_or_default(),
            kind: text("/kind").unwrap_or_default(),
            metadata: ObjectMeta {
                name: text("/metadata/name"),
                namespace: text("/metadata/namespace"),
                uid: text("/metadata/uid"),
                resource_version: text("/metadata/resourceVersion"),
                generation: value.pointer("/metadata/generation").and_then(Value::as_i64),
                ..Default::default()
            },
            error,
        }
    }
}

/// The message without the line and column that serde_json appends: they are those of a text nobody has seen.
fn without_position(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let position = format!(" at line {} column {}", error.line(), error.column());
    text.strip_suffix(&position).map(str::to_owned).unwrap_or(text)
}

impl<T: Resource> Resource for Lenient<T> {
    type DynamicType = T::DynamicType;
    type Scope = T::Scope;

    fn kind(dt: &Self::DynamicType) -> Cow<'_, str> {
        T::kind(dt)
    }

    fn group(dt: &Self::DynamicType) -> Cow<'_, str> {
        T::group(dt)
    }

    fn version(dt: &Self::DynamicType) -> Cow<'_, str> {
        T::version(dt)
    }

    fn plural(dt: &Self::DynamicType) -> Cow<'_, str> {
        T::plural(dt)
    }

    fn meta(&self) -> &ObjectMeta {
        match self {
            Self::Decoded(object) => object.meta(),
            Self::Undecodable(object) => &object.metadata,
        }
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        match self {
            Self::Decoded(object) => object.meta_mut(),
            Self::Undecodable(object) => &mut object.metadata,
        }
    }
}

#[cfg(test)]
mod tests {
    use kube::ResourceExt;
    use kube::core::{ObjectList, WatchEvent};
    use serde_json::json;

    use super::*;
    use crate::node_pool::NodePool;

    fn pool(name: &str, min_values: Value) -> Value {
        json!({
            "metadata": { "name": name, "uid": format!("uid-{name}"), "resourceVersion": "7", "generation": 3 },
            "spec": { "template": { "spec": {
                "nodeClassRef": { "group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default" },
                "requirements": [
                    { "key": "a\"b\\c", "operator": "Exists" },
                    { "key": "zone", "operator": "In", "values": ["x"], "minValues": min_values },
                ],
            } } },
        })
    }

    #[test]
    fn one_bad_object_leaves_the_rest_of_the_list_readable() {
        let list = json!({
            "apiVersion": "karpenter.sh/v1",
            "kind": "NodePoolList",
            "metadata": { "resourceVersion": "9" },
            "items": [pool("first", json!(1)), pool("bad", json!("many")), pool("last", json!(2))],
        });
        let list: ObjectList<Lenient<NodePool>> = serde_json::from_str(&list.to_string()).unwrap();

        let names: Vec<String> = list.items.iter().map(ResourceExt::name_any).collect();
        assert_eq!(names, ["first", "bad", "last"]);
        let bad = list.items.into_iter().find_map(|item| item.into_result().err()).unwrap();
        assert_eq!(bad.metadata.uid.as_deref(), Some("uid-bad"));
        assert_eq!(bad.metadata.resource_version.as_deref(), Some("7"));
        assert_eq!(bad.metadata.generation, Some(3));
        assert_eq!(bad.error.path, "spec.template.spec.requirements[1].minValues");
        assert_eq!(bad.error.problem, "invalid type: string \"many\", expected u8");
    }

    #[test]
    fn a_watch_event_with_a_bad_object_is_still_an_event() {
        let mut object = pool("bad", json!(1));
        object["apiVersion"] = json!("karpenter.sh/v1");
        object["kind"] = json!("NodePool");
        object["spec"]["template"]["spec"]["nodeClassRef"] = json!({ "group": "g", "kind": "k" });
        let event = json!({ "type": "MODIFIED", "object": object });

        let event: WatchEvent<Lenient<NodePool>> = serde_json::from_str(&event.to_string()).unwrap();
        let WatchEvent::Modified(object) = event else { panic!("{event:?}") };
        let bad = object.into_result().unwrap_err();
        assert_eq!((bad.api_version.as_str(), bad.kind.as_str()), ("karpenter.sh/v1", "NodePool"));
        assert_eq!(bad.error.to_string(), "spec.template.spec.nodeClassRef: missing field `name`");
    }

    #[test]
    fn an_object_without_a_spec_says_so() {
        let bad = serde_json::from_value::<Lenient<NodePool>>(json!({ "metadata": { "name": "x" } })).unwrap();
        let bad = bad.into_result().unwrap_err();
        assert_eq!((bad.error.path.as_str(), bad.error.problem.as_str()), ("", "missing field `spec`"));
    }
}
