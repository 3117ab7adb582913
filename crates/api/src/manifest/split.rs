//! Where one document of a stream ends and the next begins.
//!
//! A line that starts with `---` is a document marker wherever it stands (YAML forbids it inside of scalars at the left
//! margin), so a stream can be cut into documents before any of them is parsed.

use serde::de::IgnoredAny;

use crate::yaml::Position;

/// One document's part of a text. Chunks follow each other without a gap and cover the whole text.
#[derive(Debug)]
pub(super) struct Chunk {
    pub start: usize,
    pub end: usize,
    /// Where parsing begins: behind documents that hold only comments, at the last marker or directive.
    pub body: usize,
    pub body_at: Position,
    pub content_line: usize,
}

impl Chunk {
    pub fn position_in_file(&self, in_body: Position) -> Position {
        let column = if in_body.line == 1 { self.body_at.column + in_body.column - 1 } else { in_body.column };
        Position { line: self.body_at.line + in_body.line - 1, column }
    }
}

/// Cuts a text into its documents. Stops behind document number `limit + 1`, so the caller can see that there are more.
pub(super) fn split(text: &str, limit: usize) -> Vec<Chunk> {
    let mut chunks = Vec::new();
    let mut cutter = Cutter::new(0, text.len() - text.trim_start_matches('\u{feff}').len(), 1);
    let mut offset = cutter.body;
    for (index, line) in text[offset..].split_inclusive('\n').enumerate() {
        let line_number = index + 1;
        if chunks.len() > limit {
            return chunks;
        }
        if is_marker(line, "---") {
            if let Some(chunk) = cutter.finish(offset) {
                push(&mut chunks, chunk, text, limit);
                cutter = Cutter::new(offset, offset, line_number);
            }
            cutter.see_marker(line, offset, line_number);
        } else if is_marker(line, "...") {
            if let Some(chunk) = cutter.finish(offset + line.len()) {
                push(&mut chunks, chunk, text, limit);
            }
            // Nothing but comments before the end marker: they stay with what follows.
            let start = if chunks.last().is_some_and(|chunk: &Chunk| chunk.end == offset + line.len()) {
                offset + line.len()
            } else {
                cutter.start
            };
            cutter = Cutter::new(start, offset + line.len(), line_number + 1);
        } else {
            cutter.see_line(line, offset, line_number);
        }
        offset += line.len();
    }
    if let Some(chunk) = cutter.finish(text.len()) {
        push(&mut chunks, chunk, text, limit);
    } else if let Some(last) = chunks.last_mut() {
        // Comments at the end belong to the document above them.
        last.end = text.len();
    }
    chunks
}

struct Cutter {
    start: usize,
    body: usize,
    body_line: usize,
    content_line: Option<usize>,
    in_directives: bool,
}

impl Cutter {
    fn new(start: usize, body: usize, body_line: usize) -> Self {
        Self { start, body, body_line, content_line: None, in_directives: false }
    }

    fn see_marker(&mut self, line: &str, offset: usize, line_number: usize) {
        if !self.in_directives {
            (self.body, self.body_line) = (offset, line_number);
        }
        self.in_directives = false;
        self.see_content(&line[3..], line_number);
    }

    fn see_line(&mut self, line: &str, offset: usize, line_number: usize) {
        if self.content_line.is_none() && line.starts_with('%') {
            if !self.in_directives {
                (self.body, self.body_line) = (offset, line_number);
            }
            self.in_directives = true;
        } else {
            self.see_content(line, line_number);
        }
    }

    fn see_content(&mut self, line: &str, line_number: usize) {
        let line = line.trim_start();
        if self.content_line.is_none() && !line.is_empty() && !line.starts_with('#') {
            self.content_line = Some(line_number);
        }
    }

    /// The chunk up to `end`, or nothing when it holds only comments and blanks.
    fn finish(&self, end: usize) -> Option<Chunk> {
        self.content_line.map(|content_line| Chunk {
            start: self.start,
            end,
            body: self.body,
            body_at: Position { line: self.body_line, column: 1 },
            content_line,
        })
    }
}

fn is_marker(line: &str, marker: &str) -> bool {
    line.strip_prefix(marker).is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '\t', '\r', '\n']))
}

/// Adds a chunk, cut further when it is several JSON values in a row, as `jq` and `kubectl get -w -o json` print them.
fn push(chunks: &mut Vec<Chunk>, chunk: Chunk, text: &str, limit: usize) {
    let body = &text[chunk.body..chunk.end];
    if !body.starts_with('{') && !body.trim_start().starts_with('{') {
        chunks.push(chunk);
        return;
    }
    let mut values = serde_json::Deserializer::from_str(body).into_iter::<IgnoredAny>();
    let mut ends = Vec::new();
    while let Some(value) = values.next() {
        if value.is_err() {
            // Not JSON, or broken: one document, on which the parser will say what is wrong.
            chunks.push(chunk);
            return;
        }
        ends.push(values.byte_offset());
        if ends.len() > limit {
            break;
        }
    }
    let mut start = chunk.start;
    let mut body_start = chunk.body;
    let mut body_at = chunk.body_at;
    for (index, end) in ends.iter().enumerate() {
        let is_last = index + 1 == ends.len();
        // The blanks behind a value go with it, so the next one starts where its text starts.
        let blanks = body[*end..].len() - body[*end..].trim_start().len();
        let end = if is_last { chunk.end } else { chunk.body + end + blanks };
        let leading = text[body_start..end].len() - text[body_start..end].trim_start().len();
        let content_line = advance(body_at, &text[body_start..body_start + leading]).line;
        chunks.push(Chunk { start, end, body: body_start, body_at, content_line });
        body_at = advance(body_at, &text[body_start..end]);
        (start, body_start) = (end, end);
    }
}

fn advance(from: Position, over: &str) -> Position {
    match over.rsplit_once('\n') {
        None => Position { line: from.line, column: from.column + over.chars().count() },
        Some((before, last)) => Position {
            line: from.line + before.bytes().filter(|byte| *byte == b'\n').count() + 1,
            column: last.chars().count() + 1,
        },
    }
}
