//! Manifests as people keep them: YAML streams, JSON, lists, comments, and mistakes.
//!
//! [`read`] gives one result per document, so one bad document does not hide the others. Every document remembers where it
//! stood and its original text, `---` line and comments included: the texts of a stream, put together again, are the
//! stream, byte for byte. What nobody has to change is therefore never reformatted.

mod split;

use std::sync::Arc;

use serde_json::{Map, Value};

use crate::yaml::{self, Position};
use split::Chunk;

/// Largest file that is read. An API server takes objects up to 3 MiB; this is room for a dump of some ten thousand.
pub const MAX_BYTES: usize = 64 << 20;

/// Bad documents that are reported for one file before reading stops: beyond that it is not a manifest.
const MAX_BAD_DOCUMENTS: usize = 100;

/// Documents that are read from one file. A cluster of 5,000 nodes and 100,000 pods fits as one list.
const MAX_DOCUMENTS: usize = 100_000;

/// One document of a file, or one item of a list.
#[derive(Debug, Clone, PartialEq)]
pub struct Document {
    /// The name of the file as the caller gave it.
    pub file: Arc<str>,
    /// The line where its content begins, counted from 1.
    pub line: usize,
    /// The original text with its `---` line and the comments around it. For an item of a list, the item as YAML.
    pub text: String,
    pub object: Map<String, Value>,
    item_lines: Vec<usize>,
}

/// Why a document cannot be read, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{}:{}: {problem}", .position.line, .position.column)]
pub struct ReadError {
    pub file: Arc<str>,
    pub position: Position,
    pub problem: Problem,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    #[error(transparent)]
    Yaml(#[from] yaml::Problem),
    #[error("not UTF-8 text: byte {byte:#04x} at offset {offset}")]
    NotUtf8 { byte: u8, offset: usize },
    #[error("the file has {bytes} bytes, more than the {MAX_BYTES} that are read")]
    TooLarge { bytes: usize },
    #[error("{MAX_BAD_DOCUMENTS} documents are bad; the rest is not read")]
    GaveUp,
    #[error("the file holds more than {MAX_DOCUMENTS} documents; the rest is not read")]
    TooManyDocuments,
}

/// Reads every document of a file. Documents that hold only comments and blanks count as part of their neighbour.
pub fn read(file: &str, bytes: &[u8]) -> Vec<Result<Document, ReadError>> {
    let file: Arc<str> = Arc::from(file);
    let text = match text_of(bytes) {
        Ok(text) => text,
        Err((position, problem)) => return vec![Err(ReadError { file, position, problem })],
    };
    let mut results = Vec::new();
    let mut bad_documents = 0;
    for (index, chunk) in split::split(text, MAX_DOCUMENTS).into_iter().enumerate() {
        if index == MAX_DOCUMENTS {
            results.push(Err(ReadError { file, position: chunk.body_at, problem: Problem::TooManyDocuments }));
            return results;
        }
        match read_chunk(&file, text, &chunk) {
            Ok(None) => {}
            Ok(Some(document)) => results.push(Ok(document)),
            Err(error) => {
                let position = error.position;
                results.push(Err(error));
                bad_documents += 1;
                if bad_documents == MAX_BAD_DOCUMENTS {
                    results.push(Err(ReadError { file, position, problem: Problem::GaveUp }));
                    return results;
                }
            }
        }
    }
    results
}

fn text_of(bytes: &[u8]) -> Result<&str, (Position, Problem)> {
    if bytes.len() > MAX_BYTES {
        return Err((Position { line: 1, column: 1 }, Problem::TooLarge { bytes: bytes.len() }));
    }
    std::str::from_utf8(bytes).map_err(|error| {
        let (good, bad) = bytes.split_at(error.valid_up_to());
        let good = String::from_utf8_lossy(good);
        let line = good.bytes().filter(|byte| *byte == b'\n').count() + 1;
        let column = good.chars().rev().take_while(|character| *character != '\n').count() + 1;
        let byte = bad.first().copied().unwrap_or_default();
        (Position { line, column }, Problem::NotUtf8 { byte, offset: error.valid_up_to() })
    })
}

fn read_chunk(file: &Arc<str>, text: &str, chunk: &Chunk) -> Result<Option<Document>, ReadError> {
    let parsed = yaml::parse_mapping(&text[chunk.body..chunk.end]).map_err(|(position, problem)| ReadError {
        file: file.clone(),
        position: chunk.position_in_file(position),
        problem: problem.into(),
    })?;
    Ok(parsed.map(|parsed| Document {
        file: file.clone(),
        line: chunk.content_line,
        text: text[chunk.start..chunk.end].to_owned(),
        object: parsed.object,
        item_lines: parsed.item_lines.into_iter().map(|line| chunk.body_at.line + line - 1).collect(),
    }))
}

impl Document {
    /// A document that stood in no file of its own, such as an item of a list.
    pub fn new(file: Arc<str>, line: usize, object: Map<String, Value>) -> Self {
        Self { file, line, text: yaml::object_to_yaml(&object), object, item_lines: Vec::new() }
    }

    pub fn api_version(&self) -> &str {
        self.object.get("apiVersion").and_then(Value::as_str).unwrap_or_default()
    }

    pub fn kind(&self) -> &str {
        self.object.get("kind").and_then(Value::as_str).unwrap_or_default()
    }

    pub fn name(&self) -> &str {
        self.object
            .get("metadata")
            .and_then(|metadata| metadata.get("name"))
            .and_then(Value::as_str)
            .unwrap_or_default()
    }

    /// Whether this is `kind: List`, or a typed list such as `NodePoolList`.
    pub fn is_list(&self) -> bool {
        self.kind().ends_with("List") && self.object.get("items").is_some_and(Value::is_array)
    }

    /// The items of a list, each with its own line; of anything else the document itself. Items of a typed list that do
    /// not name their kind get it from the list. Items that are not objects are left out.
    pub fn flatten(mut self) -> Vec<Self> {
        if !self.is_list() {
            return vec![self];
        }
        let item_kind = match self.kind().strip_suffix("List") {
            None | Some("") => None,
            Some(kind) => Some((self.api_version().to_owned(), kind.to_owned())),
        };
        let Some(Value::Array(items)) = self.object.remove("items") else { return Vec::new() };
        let mut documents = Vec::new();
        for (index, item) in items.into_iter().enumerate() {
            let line = self.item_lines.get(index).copied().unwrap_or(self.line);
            let Value::Object(mut object) = item else { continue };
            if let Some((api_version, kind)) = &item_kind {
                object.entry("apiVersion").or_insert_with(|| Value::from(api_version.as_str()));
                object.entry("kind").or_insert_with(|| Value::from(kind.as_str()));
            }
            // A list may hold lists; the nesting limit of the reader bounds the recursion.
            documents.extend(Self::new(self.file.clone(), line, object).flatten());
        }
        documents
    }
}

#[cfg(test)]
mod tests;
