//! Conditions in a status, and writing a status.

use jiff::Timestamp;
use kerf_model::cluster::ObjectName;
use serde_json::{Value, json};

use crate::store::object::{field, time_text};
use crate::store::{ApiError, Kind, Part, Store};

pub struct Condition<'a> {
    pub type_: &'a str,
    pub is_true: Truth,
    pub reason: &'a str,
    pub message: &'a str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
pub enum Truth {
    True,
    False,
    Unknown,
}

impl Truth {
    fn label(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        }
    }
}

/// Writes a condition into a status. The time of its last transition moves only with its status.
pub fn set_condition(status: &mut Value, condition: &Condition<'_>, now: Timestamp) {
    let conditions = field(status, "conditions");
    if !conditions.is_array() {
        *conditions = json!([]);
    }
    let Value::Array(conditions) = conditions else { return };
    let position = conditions.iter().position(|known| known["type"] == condition.type_);
    let since = position
        .map(|position| &conditions[position])
        .filter(|known| known["status"] == condition.is_true.label())
        .map_or_else(|| json!(time_text(now)), |known| known["lastTransitionTime"].clone());
    let mut written = json!({
        "type": condition.type_, "status": condition.is_true.label(), "lastTransitionTime": since,
    });
    for (name, text) in [("reason", condition.reason), ("message", condition.message)] {
        if !text.is_empty() {
            written[name] = json!(text);
        }
    }
    match position {
        Some(position) => conditions[position] = written,
        None => conditions.push(written),
    }
}

/// Changes an object's status; nothing is written if nothing changes.
pub(crate) fn change_status(
    store: &mut Store,
    kind: Kind,
    name: &ObjectName,
    change: impl FnOnce(&mut Value),
) -> Result<(), ApiError> {
    let mut body = store.get(kind, name)?.body().clone();
    change(field(&mut body, "status"));
    store.update(kind, name, Part::Status, body)?;
    Ok(())
}
