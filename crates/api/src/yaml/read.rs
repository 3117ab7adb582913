//! One YAML document into one JSON value, without recursion and within bounds.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::{Map, Value};
use serde_saphyr::granit_parser::{self, ErrorKind, Event, Parser, ScalarStyle, ScanError, Span, Tag};

use super::scalar;

/// Deepest nesting that is read. Custom resource definitions, the deepest manifests in use, stay below 60.
const MAX_DEPTH: usize = 128;

/// What anchors may be worth together, in bytes of text with 16 for every value, counted once where an anchor is set and
/// once for each alias. Hand-written manifests use a few kilobytes; "billion laughs" needs gigabytes.
const MAX_ANCHOR_WEIGHT: usize = 4 << 20;

/// A place in a text: both count from 1, columns in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    pub line: usize,
    pub column: usize,
}

/// A document that has been read.
#[derive(Debug, Clone, PartialEq)]
pub struct Parsed {
    pub object: Map<String, Value>,
    /// The line of every element of the top-level field `items`, which is how lists are written.
    pub item_lines: Vec<usize>,
}

/// Why a text is not a YAML mapping that Kubernetes could take.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    #[error("{0}")]
    Syntax(String),
    #[error("the document ends too early: {0}")]
    Truncated(String),
    #[error("a tab cannot indent YAML: use spaces")]
    Tab,
    #[error("the key {0:?} is given twice")]
    DuplicateKey(String),
    #[error("{0} cannot be a key")]
    KeyNotText(ValueKind),
    #[error("expected an object with apiVersion and kind, found {0}")]
    NotAnObject(ValueKind),
    #[error("nested more than {MAX_DEPTH} levels deep")]
    TooDeep,
    #[error("an alias stands inside of the value it repeats")]
    AliasOfItself,
    #[error("anchors and aliases repeat too much text")]
    TooManyAliases,
    #[error("the merge key `<<` needs an object or a list of objects, found {0}")]
    MergeNotObject(ValueKind),
    #[error("{0} is not a number that JSON knows")]
    NotFinite(String),
    #[error("{text:?} is not a value of the tag !!{tag}")]
    TagMismatch { tag: String, text: String },
    #[error("the tag !!binary is not supported: write the base64 text as a string")]
    Binary,
}

/// What a value is, in words for people.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueKind {
    Null,
    Bool,
    Number,
    String,
    List,
    Object,
}

impl ValueKind {
    pub fn of(value: &Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(_) => Self::Bool,
            Value::Number(_) => Self::Number,
            Value::String(_) => Self::String,
            Value::Array(_) => Self::List,
            Value::Object(_) => Self::Object,
        }
    }
}

impl fmt::Display for ValueKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Null => "null",
            Self::Bool => "a boolean",
            Self::Number => "a number",
            Self::String => "a string",
            Self::List => "a list",
            Self::Object => "an object",
        })
    }
}

/// Reads a text that holds one document. `None` when it holds nothing but comments and blanks.
pub fn parse_mapping(text: &str) -> Result<Option<Parsed>, (Position, Problem)> {
    let options = granit_parser::options! {
        emit_comments: false,
        flow_nesting_limit: MAX_DEPTH,
        block_nesting_limit: MAX_DEPTH,
    };
    let mut builder = Builder::default();
    for event in Parser::new_from_str_with_options(text, options) {
        let (event, span) = event.map_err(|error| syntax_problem(text, &error))?;
        let position = position_of(span);
        match builder.take(event, position) {
            Ok(Some(done)) => return Ok(done),
            Ok(None) => {}
            Err(problem) => return Err((position, problem)),
        }
    }
    Ok(None)
}

fn position_of(span: Span) -> Position {
    Position { line: span.start.line(), column: span.start.col() + 1 }
}

fn syntax_problem(source: &str, error: &ScanError) -> (Position, Problem) {
    let position = Position { line: error.marker().line(), column: error.marker().col() + 1 };
    let kind = error.kind();
    let text = kind.to_string();
    let problem = match kind {
        ErrorKind::RecursionLimitExceeded => Problem::TooDeep,
        ErrorKind::TabNotAllowed | ErrorKind::TabInBlockIndentation | ErrorKind::TabInIndentation => Problem::Tab,
        ErrorKind::UnexpectedEofFlowSequence
        | ErrorKind::UnexpectedEofFlowMapping
        | ErrorKind::UnexpectedEofImplicitFlowMapping
        | ErrorKind::UnexpectedEofBlockSequence
        | ErrorKind::UnexpectedEofBlockMapping
        | ErrorKind::UnexpectedEof
        | ErrorKind::UnclosedFlowCollection { .. }
        | ErrorKind::UnclosedQuotedScalar => Problem::Truncated(text),
        // Whatever the parser missed, it missed it at the end.
        _ if error.marker().byte_offset().is_some_and(|offset| offset >= source.trim_end().len()) => {
            Problem::Truncated(text)
        }
        _ => Problem::Syntax(text),
    };
    (position, problem)
}

#[derive(Default)]
struct Builder {
    open: Vec<Open>,
    anchors: BTreeMap<usize, Value>,
    anchor_weight: usize,
    item_lines: Vec<usize>,
    object: Option<Map<String, Value>>,
}

/// A collection whose end has not been seen.
enum Open {
    List { items: Vec<Value>, anchor: usize },
    Object { entries: Map<String, Value>, merged: Vec<Value>, key: Option<Key>, anchor: usize },
}

enum Key {
    Named(String),
    Merge,
}

impl Builder {
    /// `Ok(Some(..))` ends the document; what follows it in the text is not looked at.
    fn take(&mut self, event: Event<'_>, position: Position) -> Result<Option<Option<Parsed>>, Problem> {
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                if self.expects_key() && style == ScalarStyle::Plain && text == "<<" && tag.is_none() {
                    self.set_key(Key::Merge);
                    return Ok(None);
                }
                let value = scalar_value(&text, style, tag.as_deref())?;
                self.add(value, anchor, position)?;
            }
            Event::Alias(id) => {
                // An alias inside of what it names has no value yet.
                let value = self.anchors.get(&id).ok_or(Problem::AliasOfItself)?.clone();
                self.spend(&value)?;
                self.add(value, 0, position)?;
            }
            Event::SequenceStart(_, anchor, _) => {
                self.note_item(position);
                self.open(Open::List { items: Vec::new(), anchor }, ValueKind::List)?;
            }
            Event::MappingStart(_, anchor, _) => {
                self.note_item(position);
                let entries = Map::new();
                self.open(Open::Object { entries, merged: Vec::new(), key: None, anchor }, ValueKind::Object)?;
            }
            Event::SequenceEnd | Event::MappingEnd => self.close()?,
            Event::DocumentEnd => {
                let item_lines = std::mem::take(&mut self.item_lines);
                return Ok(Some(self.object.take().map(|object| Parsed { object, item_lines })));
            }
            _ => {}
        }
        Ok(None)
    }

    fn expects_key(&self) -> bool {
        matches!(self.open.last(), Some(Open::Object { key: None, .. }))
    }

    fn set_key(&mut self, new: Key) {
        if let Some(Open::Object { key, .. }) = self.open.last_mut() {
            *key = Some(new);
        }
    }

    fn open(&mut self, collection: Open, kind: ValueKind) -> Result<(), Problem> {
        if self.expects_key() {
            return Err(Problem::KeyNotText(kind));
        }
        if self.open.is_empty() && kind != ValueKind::Object {
            return Err(Problem::NotAnObject(kind));
        }
        if self.open.len() >= MAX_DEPTH {
            return Err(Problem::TooDeep);
        }
        self.open.push(collection);
        Ok(())
    }

    fn close(&mut self) -> Result<(), Problem> {
        let (value, anchor) = match self.open.pop() {
            Some(Open::List { items, anchor }) => (Value::Array(items), anchor),
            Some(Open::Object { entries, merged, anchor, .. }) => (Value::Object(merge(entries, merged)?), anchor),
            None => return Ok(()),
        };
        self.place(value, anchor)
    }

    /// A scalar or an alias: the only values that begin and end at once.
    fn add(&mut self, value: Value, anchor: usize, position: Position) -> Result<(), Problem> {
        if self.open.is_empty() {
            // A document of nothing but comments and blanks arrives as one empty scalar.
            return if value.is_null() { Ok(()) } else { Err(Problem::NotAnObject(ValueKind::of(&value))) };
        }
        self.note_item(position);
        self.place(value, anchor)
    }

    fn place(&mut self, value: Value, anchor: usize) -> Result<(), Problem> {
        if anchor != 0 {
            self.spend(&value)?;
            self.anchors.insert(anchor, value.clone());
        }
        match self.open.last_mut() {
            None => {
                if let Value::Object(object) = value {
                    self.object = Some(object);
                }
            }
            Some(Open::List { items, .. }) => items.push(value),
            Some(Open::Object { entries, merged, key, .. }) => match key.take() {
                None => {
                    let name = key_text(value)?;
                    if entries.contains_key(&name) {
                        return Err(Problem::DuplicateKey(name));
                    }
                    *key = Some(Key::Named(name));
                }
                Some(Key::Named(name)) => {
                    entries.insert(name, value);
                }
                Some(Key::Merge) => merged.push(value),
            },
        }
        Ok(())
    }

    /// Remembers the line when the next value is an element of the top-level `items`.
    fn note_item(&mut self, position: Position) {
        if let [Open::Object { key: Some(Key::Named(name)), .. }, Open::List { .. }] = self.open.as_slice()
            && name == "items"
        {
            self.item_lines.push(position.line);
        }
    }

    fn spend(&mut self, value: &Value) -> Result<(), Problem> {
        self.anchor_weight = self.anchor_weight.saturating_add(weight(value));
        if self.anchor_weight > MAX_ANCHOR_WEIGHT { Err(Problem::TooManyAliases) } else { Ok(()) }
    }
}

/// Keys written out win over merged ones, and earlier merges over later ones.
fn merge(mut entries: Map<String, Value>, merged: Vec<Value>) -> Result<Map<String, Value>, Problem> {
    for source in merged {
        let sources = match source {
            Value::Array(sources) => sources,
            other => vec![other],
        };
        for source in sources {
            let Value::Object(source) = source else {
                return Err(Problem::MergeNotObject(ValueKind::of(&source)));
            };
            for (key, value) in source {
                entries.entry(key).or_insert(value);
            }
        }
    }
    Ok(entries)
}

/// Keys that are not text become the text that Go prints for them.
fn key_text(key: Value) -> Result<String, Problem> {
    match key {
        Value::String(text) => Ok(text),
        Value::Bool(value) => Ok(value.to_string()),
        Value::Number(value) => Ok(value.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => Err(Problem::KeyNotText(ValueKind::of(&key))),
    }
}

fn scalar_value(text: &str, style: ScalarStyle, tag: Option<&Tag>) -> Result<Value, Problem> {
    let resolve = || scalar::resolve(text).map_err(|_| Problem::NotFinite(text.to_owned()));
    let Some(tag) = tag else {
        return if style == ScalarStyle::Plain { resolve() } else { Ok(Value::String(text.to_owned())) };
    };
    let name = tag.suffix_in_namespace("tag:yaml.org,2002:").unwrap_or_default();
    let value = match &*name {
        "binary" => return Err(Problem::Binary),
        "null" | "bool" | "int" | "float" => resolve()?,
        // `!!str`, and tags of applications, which Kubernetes ignores.
        _ => return Ok(Value::String(text.to_owned())),
    };
    let fits = match &*name {
        "null" => value.is_null(),
        "bool" => value.is_boolean(),
        "int" => value.is_i64() || value.is_u64(),
        _ => value.is_number(),
    };
    if fits { Ok(value) } else { Err(Problem::TagMismatch { tag: name.into_owned(), text: text.to_owned() }) }
}

fn weight(value: &Value) -> usize {
    const PER_VALUE: usize = 16;
    PER_VALUE
        + match value {
            Value::Null | Value::Bool(_) | Value::Number(_) => 0,
            Value::String(text) => text.len(),
            Value::Array(items) => items.iter().map(weight).sum(),
            Value::Object(entries) => entries.iter().map(|(key, value)| key.len() + weight(value)).sum(),
        }
}
