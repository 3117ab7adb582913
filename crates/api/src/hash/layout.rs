//! How a JSON object maps onto the Go structs that the reference hashes: tables of fields, and the one function that
//! reads an object by them.
//!
//! The hash sees Go names, declaration order, integer widths and pointers, none of which JSON has; a table supplies
//! them. Reading starts from JSON and not from our own types because "absent" and "present but empty" hash differently.

use std::borrow::Cow;

use jiff::Timestamp;
use kerf_model::duration::{GoDuration, NillableDuration};
use kerf_model::quantity::Quantity;
use serde_json::Value;

use super::error::{Expected, HashError, HashProblem};
use super::go_hash::{GoStruct, GoValue};

#[derive(Debug)]
pub(super) struct StructLayout {
    pub type_name: &'static str,
    pub fields: &'static [FieldLayout],
}

#[derive(Debug)]
pub(super) struct FieldLayout {
    pub json_name: &'static str,
    pub go_name: &'static str,
    pub kind: Kind,
    pub holding: Holding,
}

/// What an absent value looks like in Go, and so when a field is left out of the hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Holding {
    /// A pointer, map or slice: left out when absent. `false`, `0`, `""`, `{}` and `[]` count once written.
    Nillable,
    /// Everything else: left out when zero, because Go cannot tell zero from absent.
    Plain,
}

#[derive(Debug)]
pub(super) enum Kind {
    Text,
    Bool,
    I32,
    I64,
    /// Hashed as its canonical text, so `1024Gi` is `1Ti`.
    Quantity,
    /// `metav1.Time`: a struct around the binary form of the time.
    Time,
    /// `metav1.Duration`: a struct around nanoseconds, which are left out when zero.
    Duration,
    /// A struct around a pointer to nanoseconds: `0s` is present, `Never` is not.
    NillableDuration,
    Map(&'static Kind),
    Set(&'static Kind),
    Struct(&'static StructLayout),
}

pub(super) const fn nillable(json_name: &'static str, go_name: &'static str, kind: Kind) -> FieldLayout {
    FieldLayout { json_name, go_name, kind, holding: Holding::Nillable }
}

pub(super) const fn plain(json_name: &'static str, go_name: &'static str, kind: Kind) -> FieldLayout {
    FieldLayout { json_name, go_name, kind, holding: Holding::Plain }
}

impl StructLayout {
    pub fn read(&self, object: &Value) -> Result<GoStruct, HashError> {
        read_fields(self.type_name, self.fields.iter(), object)
    }

    /// The fields a person would name: those of the struct itself, and of structs embedded in it by value.
    /// `path` is where `object` sits.
    pub fn leaves<'a>(&'static self, object: &'a Value, path: &str) -> Result<Vec<Leaf<'a>>, HashError> {
        let mut leaves = Vec::new();
        self.collect_leaves(object, path, &mut leaves)?;
        Ok(leaves)
    }

    fn collect_leaves<'a>(
        &'static self,
        object: &'a Value,
        path: &str,
        leaves: &mut Vec<Leaf<'a>>,
    ) -> Result<(), HashError> {
        for field in self.fields {
            let field_path = format!("{path}.{}", field.json_name);
            match (&field.kind, field.holding, present(object, field.json_name)) {
                (_, _, None) => {}
                (Kind::Struct(inner), Holding::Plain, Some(json)) => inner.collect_leaves(json, &field_path, leaves)?,
                (_, _, Some(json)) => {
                    if let Some(value) = field.read(object).map_err(|error| error.inside(path))? {
                        leaves.push(Leaf { path: field_path, json: Cow::Borrowed(json), value });
                    }
                }
            }
        }
        Ok(())
    }
}

/// One field as a person would name it, with what it hashes as.
#[derive(Debug)]
pub(super) struct Leaf<'a> {
    pub path: String,
    pub json: Cow<'a, Value>,
    pub value: GoValue,
}

/// Reads the given fields as one struct: an old version of a hash may have another set of them.
pub(super) fn read_fields<'a>(
    type_name: &'static str,
    fields: impl Iterator<Item = &'a FieldLayout>,
    object: &Value,
) -> Result<GoStruct, HashError> {
    if !object.is_object() && !object.is_null() {
        return Err(HashError::wrong_type(Expected::Object));
    }
    let mut counted = Vec::new();
    for field in fields {
        if let Some(value) = field.read(object)? {
            counted.push((field.go_name, value));
        }
    }
    Ok(GoStruct { type_name, fields: counted })
}

impl FieldLayout {
    /// The field's value, or nothing when the hash leaves the field out.
    fn read(&self, object: &Value) -> Result<Option<GoValue>, HashError> {
        let Some(json) = present(object, self.json_name) else {
            return Ok(None);
        };
        let value = self.kind.read(json).map_err(|error| error.inside(self.json_name))?;
        match self.holding {
            Holding::Plain if value.is_zero() => Ok(None),
            Holding::Plain | Holding::Nillable => Ok(Some(value)),
        }
    }
}

/// The API server treats a null as an absent field.
fn present<'a>(object: &'a Value, name: &str) -> Option<&'a Value> {
    object.get(name).filter(|value| !value.is_null())
}

impl Kind {
    fn read(&self, json: &Value) -> Result<GoValue, HashError> {
        match self {
            Self::Text => Ok(GoValue::Text(text(json)?.to_owned())),
            Self::Bool => json.as_bool().map(GoValue::Bool).ok_or(HashError::wrong_type(Expected::Bool)),
            Self::I32 => json
                .as_i64()
                .and_then(|number| i32::try_from(number).ok())
                .map(GoValue::I32)
                .ok_or(HashError::wrong_type(Expected::I32)),
            Self::I64 => json.as_i64().map(GoValue::I64).ok_or(HashError::wrong_type(Expected::I64)),
            Self::Quantity => quantity(text(json)?),
            Self::Time => time(text(json)?),
            Self::Duration => duration(text(json)?),
            Self::NillableDuration => nillable_duration(text(json)?),
            Self::Map(kind) => map(kind, json),
            Self::Set(kind) => set(kind, json),
            Self::Struct(layout) => layout.read(json).map(GoValue::Struct),
        }
    }
}

fn text(json: &Value) -> Result<&str, HashError> {
    json.as_str().ok_or(HashError::wrong_type(Expected::Text))
}

fn map(kind: &Kind, json: &Value) -> Result<GoValue, HashError> {
    let entries = json.as_object().ok_or(HashError::wrong_type(Expected::Object))?;
    entries
        .iter()
        .map(|(key, value)| {
            let value = kind.read(value).map_err(|error| error.inside(&format!("[{key:?}]")))?;
            Ok((key.clone(), value))
        })
        .collect::<Result<_, _>>()
        .map(GoValue::Map)
}

fn set(kind: &Kind, json: &Value) -> Result<GoValue, HashError> {
    let elements = json.as_array().ok_or(HashError::wrong_type(Expected::List))?;
    elements
        .iter()
        .enumerate()
        .map(|(index, element)| kind.read(element).map_err(|error| error.inside(&format!("[{index}]"))))
        .collect::<Result<_, _>>()
        .map(GoValue::Set)
}

fn quantity(text: &str) -> Result<GoValue, HashError> {
    // The schema of `volumeSize` lets these two through, and Go reads a suffix without digits as zero.
    if matches!(text, "T" | "Ti") {
        return Ok(GoValue::Text("0".to_owned()));
    }
    let quantity: Quantity = text.parse().map_err(|error| HashError::here(HashProblem::Quantity(error)))?;
    Ok(GoValue::Text(quantity.to_string()))
}

/// Also an element of a map, where no zero is left out; inside the struct it is.
fn duration(text: &str) -> Result<GoValue, HashError> {
    let parsed: GoDuration = text.parse().map_err(|error| HashError::here(HashProblem::Duration(error)))?;
    let nanoseconds = GoValue::I64(parsed.as_nanos());
    let fields = if nanoseconds.is_zero() { vec![] } else { vec![("Duration", nanoseconds)] };
    Ok(GoValue::Struct(GoStruct { type_name: "Duration", fields }))
}

fn nillable_duration(text: &str) -> Result<GoValue, HashError> {
    let parsed: NillableDuration = text.parse().map_err(|error| HashError::here(HashProblem::Duration(error)))?;
    let fields = match parsed {
        NillableDuration::Never => vec![],
        NillableDuration::After(duration) => vec![("Duration", GoValue::I64(duration.as_nanos()))],
    };
    Ok(GoValue::Struct(GoStruct { type_name: "NillableDuration", fields }))
}

/// Go's binary time ends with the zone of the process that decoded it. The reference's container runs in UTC; a
/// controller started with another `TZ` writes other hashes for a taint with `timeAdded`, and nobody can reproduce them.
fn time(text: &str) -> Result<GoValue, HashError> {
    const VERSION: u8 = 1;
    /// From 0001-01-01, where Go starts to count, to 1970-01-01.
    const YEAR_ONE_TO_UNIX_EPOCH_SECS: i128 = 62_135_596_800;
    const NANOS_PER_SEC: i128 = 1_000_000_000;

    let not_a_time = || HashError::here(HashProblem::NotATime(text.to_owned()));
    let timestamp: Timestamp = text.parse().map_err(|_| not_a_time())?;
    let nanos = timestamp.as_nanosecond();
    let seconds =
        i64::try_from(nanos.div_euclid(NANOS_PER_SEC) + YEAR_ONE_TO_UNIX_EPOCH_SECS).map_err(|_| not_a_time())?;
    let nanos = u32::try_from(nanos.rem_euclid(NANOS_PER_SEC)).map_err(|_| not_a_time())?;

    // The last two bytes, the zone in minutes, stay 0.
    let mut bytes = [0; 15];
    bytes[0] = VERSION;
    bytes[1..9].copy_from_slice(&seconds.to_be_bytes());
    bytes[9..13].copy_from_slice(&nanos.to_be_bytes());
    Ok(GoValue::Struct(GoStruct { type_name: "Time", fields: vec![("Time", GoValue::Time(bytes))] }))
}
