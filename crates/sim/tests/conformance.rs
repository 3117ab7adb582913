//! The requests and answers in `cases/`, put to the world's store.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a case that cannot be read is a mistake in its file")]

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use kerf_api::admission::Admission;
use kerf_api::yaml::parse_mapping;
use kerf_model::cluster::ObjectName;
use kerf_sim::store::object::{at, list};
use kerf_sim::store::{ApiError, DeleteOptions, Deleted, Kind, Object, Part, Patch, Propagation, Query, Store};
use serde_json::{Value, json};

#[test]
fn writes_are_answered_as_by_kubernetes() {
    run(include_str!("../cases/writes.yaml"));
}

#[test]
fn deletions_are_answered_as_by_kubernetes() {
    run(include_str!("../cases/deletion.yaml"));
}

#[test]
fn pods_are_treated_as_by_kubernetes() {
    run(include_str!("../cases/pods.yaml"));
}

fn run(text: &str) {
    let document = parse_mapping(text).unwrap().unwrap();
    let document = Value::Object(document.object);
    let admission = Arc::new(Admission::new(&kerf_api::crds(None)).unwrap());
    let mut failures = Vec::new();
    for case in list(&document, &["cases"]) {
        let mut session = Session::new(Arc::clone(&admission));
        for (index, step) in list(case, &["steps"]).iter().enumerate() {
            if let Err(failure) = session.step(step) {
                failures.push(format!("{}, step {}: {failure}", case["name"], index + 1));
                break;
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// One case: a fresh cluster, and what was remembered of its answers.
struct Session {
    store: Store,
    now: Timestamp,
    remembered: BTreeMap<String, String>,
}

enum Answer {
    Nothing,
    Object(Object),
    Names(Vec<String>),
}

impl Session {
    fn new(admission: Arc<Admission>) -> Self {
        let now: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        Self { store: Store::new(admission, 1, now), now, remembered: BTreeMap::new() }
    }

    fn step(&mut self, step: &Value) -> Result<(), String> {
        // Every request comes a second later, so that times tell requests apart.
        self.now += jiff::SignedDuration::from_secs(1);
        let step = self.substitute(step);
        let answer = self.request(&step);
        compare(&step["expect"], &answer)?;
        if let (Ok(Answer::Object(object)), Some(wanted)) = (&answer, step["remember"].as_object()) {
            for (name, path) in wanted {
                let path: Vec<_> = path.as_str().unwrap().split('.').collect();
                let value = object.text(&path).ok_or_else(|| format!("nothing at {path:?} to remember"))?;
                self.remembered.insert(name.clone(), value.to_owned());
            }
        }
        Ok(())
    }

    fn substitute(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => {
                let mut text = text.clone();
                for (name, value) in &self.remembered {
                    text = text.replace(&format!("${name}"), value);
                }
                Value::String(text)
            }
            Value::Array(items) => items.iter().map(|item| self.substitute(item)).collect(),
            Value::Object(fields) => {
                fields.iter().map(|(name, value)| (name.clone(), self.substitute(value))).collect()
            }
            other => other.clone(),
        }
    }

    fn request(&mut self, step: &Value) -> Result<Answer, ApiError> {
        let now = self.now;
        let part = if step["part"] == "status" { Part::Status } else { Part::Main };
        let patch = step["patch"].clone();
        match step["do"].as_str().unwrap() {
            "create" => {
                let (kind, _) = named_by(&step["object"]);
                self.store.create(kind, step["object"].clone(), now).map(Answer::Object)
            }
            "update" => {
                let (kind, name) = named_by(&step["object"]);
                self.store.update(kind, &name, part, step["object"].clone()).map(Answer::Object)
            }
            "merge" => self.patch(step, part, &Patch::Merge(patch)),
            "json" => self.patch(step, part, &Patch::Json(patch)),
            "strategic" => self.patch(step, part, &Patch::Strategic(patch)),
            "get" => {
                let (kind, name) = reference(step);
                self.store.get(kind, &name).cloned().map(Answer::Object)
            }
            "list" => {
                let text = |name: &str| step[name].as_str().unwrap_or_default().to_owned();
                let kind = kind(&text("of"));
                let query = Query::parse(kind, &text("labels"), &text("fields"))?;
                let items = self.store.list(kind, &query).items;
                Ok(Answer::Names(items.iter().map(|object| object.name.name.to_string()).collect()))
            }
            "delete" => {
                let (kind, name) = reference(step);
                self.store.delete(kind, &name, &options(&step["options"]), now).map(gone_or_waiting)
            }
            "evict" => {
                let (_, name) = reference(step);
                self.store.evict(&name, &options(&step["options"]), now).map(gone_or_waiting)
            }
            "bind" => {
                let (_, name) = reference(step);
                self.store.bind(&name, step["node"].as_str().unwrap(), now).map(Answer::Object)
            }
            "settle" => loop {
                let before = self.store.version();
                self.store.collect(now);
                if self.store.version() == before {
                    return Ok(Answer::Nothing);
                }
            },
            other => panic!("unknown request {other}"),
        }
    }

    fn patch(&mut self, step: &Value, part: Part, patch: &Patch) -> Result<Answer, ApiError> {
        let (kind, name) = reference(step);
        self.store.patch(kind, &name, part, patch).map(Answer::Object)
    }
}

fn compare(expected: &Value, answer: &Result<Answer, ApiError>) -> Result<(), String> {
    match answer {
        Ok(_) if at(expected, &["code"]).is_some() => Err(format!("succeeded, not {expected}")),
        Ok(Answer::Object(object)) => match at(expected, &["object"]) {
            Some(expected) => contains(object.body(), expected, ""),
            None => Ok(()),
        },
        Ok(Answer::Names(names)) => match json!(names) == expected["names"] {
            true => Ok(()),
            false => Err(format!("found {names:?}, not {}", expected["names"])),
        },
        Ok(Answer::Nothing) => Ok(()),
        Err(error) => {
            let status = error.status();
            if at(expected, &["code"]).is_none() {
                return Err(format!("refused: {status}"));
            }
            for name in ["code", "reason", "message"] {
                if at(expected, &[name]).is_some_and(|expected| *expected != status[name]) {
                    return Err(format!("{name} is {}, not {}", status[name], expected[name]));
                }
            }
            let causes: Vec<_> = list(&status, &["details", "causes"]).iter().map(|it| it["message"].clone()).collect();
            match at(expected, &["causes"]) {
                Some(expected) if *expected != json!(causes) => Err(format!("causes are {causes:?}, not {expected}")),
                Some(_) | None => Ok(()),
            }
        }
    }
}

/// Objects are compared by the fields that are named, everything else as a whole. A null must be absent.
fn contains(actual: &Value, expected: &Value, path: &str) -> Result<(), String> {
    match expected {
        Value::Object(fields) => fields.iter().try_for_each(|(name, expected)| {
            contains(actual.get(name).unwrap_or(&Value::Null), expected, &format!("{path}.{name}"))
        }),
        _ if actual == expected => Ok(()),
        _ => Err(format!("{path} is {actual}, not {expected}")),
    }
}

fn gone_or_waiting(deleted: Deleted) -> Answer {
    match deleted {
        Deleted::Gone(object) | Deleted::Waiting(object) => Answer::Object(object),
    }
}

fn kind(name: &str) -> Kind {
    Kind::ALL.into_iter().find(|kind| kind.facts().kind == name).unwrap_or_else(|| panic!("unknown kind {name}"))
}

fn named_by(object: &Value) -> (Kind, ObjectName) {
    let text = |path: &[&str]| at(object, path).and_then(Value::as_str).unwrap_or_default().to_owned();
    let kind = Kind::find(&text(&["apiVersion"]), &text(&["kind"])).unwrap();
    (kind, object_name(kind, &text(&["metadata", "name"])))
}

/// `of: Kind/name`, in the namespace `default` if it has one.
fn reference(step: &Value) -> (Kind, ObjectName) {
    let (of_kind, name) = step["of"].as_str().unwrap().split_once('/').unwrap();
    let kind = kind(of_kind);
    (kind, object_name(kind, name))
}

fn object_name(kind: Kind, name: &str) -> ObjectName {
    if kind.is_namespaced() { ObjectName::new("default", name) } else { ObjectName::of_cluster(name) }
}

fn options(value: &Value) -> DeleteOptions {
    let text = |name: &str| at(value, &["preconditions", name]).and_then(Value::as_str).map(str::to_owned);
    DeleteOptions {
        uid: text("uid"),
        resource_version: text("resourceVersion"),
        grace_seconds: value["gracePeriodSeconds"].as_i64(),
        propagation: match value["propagationPolicy"].as_str() {
            Some("Foreground") => Propagation::Foreground,
            Some("Orphan") => Propagation::Orphan,
            _ => Propagation::Background,
        },
    }
}
