//! Taking an object apart field by field, so that what is left over can be named.

use serde_json::{Map, Value};

use super::note::{Finding, Recorder};

/// The fields of one object that have not been used yet.
pub(super) struct Fields {
    path: &'static str,
    map: Map<String, Value>,
    /// A field that decides something had the wrong type: the object cannot be converted.
    pub is_broken: bool,
}

impl Fields {
    pub fn new(path: &'static str, map: Map<String, Value>) -> Self {
        Self { path, map, is_broken: false }
    }

    /// The object at `key` of `parent`; absent and null count as empty.
    pub fn of(parent: &mut Self, key: &str, path: &'static str, recorder: &mut Recorder<'_>) -> Self {
        Self::new(path, parent.object(key, recorder).unwrap_or_default())
    }

    pub fn path_of(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }

    /// Any value; null counts as absent.
    pub fn take(&mut self, key: &str) -> Option<Value> {
        self.map.remove(key).filter(|value| !value.is_null())
    }

    pub fn object(&mut self, key: &str, recorder: &mut Recorder<'_>) -> Option<Map<String, Value>> {
        match self.take(key)? {
            Value::Object(map) => Some(map),
            _ => self.wrong(key, "an object", recorder),
        }
    }

    pub fn list(&mut self, key: &str, recorder: &mut Recorder<'_>) -> Option<Vec<Value>> {
        match self.take(key)? {
            Value::Array(items) => Some(items),
            _ => self.wrong(key, "a list", recorder),
        }
    }

    pub fn text(&mut self, key: &str, recorder: &mut Recorder<'_>) -> Option<String> {
        match self.take(key)? {
            Value::String(text) => Some(text),
            _ => self.wrong(key, "a string", recorder),
        }
    }

    pub fn bool(&mut self, key: &str, recorder: &mut Recorder<'_>) -> Option<bool> {
        match self.take(key)? {
            Value::Bool(value) => Some(value),
            _ => self.wrong(key, "a boolean", recorder),
        }
    }

    /// A number of seconds: a whole number that is not negative.
    pub fn seconds(&mut self, key: &str, recorder: &mut Recorder<'_>) -> Option<u64> {
        match self.take(key)?.as_u64() {
            Some(seconds) => Some(seconds),
            None => self.wrong(key, "a whole number of seconds, 0 or more", recorder),
        }
    }

    /// Moves fields whose meaning did not change.
    pub fn move_to(&mut self, target: &mut Map<String, Value>, keys: &[&str]) {
        for key in keys {
            if let Some(value) = self.take(key) {
                target.insert((*key).to_owned(), value);
            }
        }
    }

    /// Names every field that nobody took. Returns whether the object was sound.
    pub fn finish(self, recorder: &mut Recorder<'_>) -> bool {
        for key in self.map.keys() {
            recorder.add(self.path_of(key), Finding::UnknownField);
        }
        !self.is_broken
    }

    fn wrong<T>(&mut self, key: &str, expected: &'static str, recorder: &mut Recorder<'_>) -> Option<T> {
        recorder.add(self.path_of(key), Finding::WrongType { expected });
        self.is_broken = true;
        None
    }
}
