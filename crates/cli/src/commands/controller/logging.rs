//! Logs: one JSON object per line, with the reference's keys (sheet 04 §8.3).

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context as _;
use jiff::Timestamp;
use serde_json::{Map, Value, json};
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::{Event, Level, Metadata, Subscriber};
use tracing_subscriber::Layer as _;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::format::{FormatEvent, FormatFields, Writer};
use tracing_subscriber::fmt::{FmtContext, MakeWriter};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::clock;

/// Where lines go. What the logger itself cannot do goes to `errors`; everything else to `output`.
pub struct Paths<'a> {
    pub output: &'a str,
    pub errors: &'a str,
}

/// # Errors
/// A path that cannot be opened.
pub fn start(level: LevelFilter, paths: &Paths<'_>) -> anyhow::Result<()> {
    let sinks = Sinks(Arc::new(open(paths.output)?));
    // Opened, so that a path that cannot be written is told now.
    open(paths.errors)?;
    // What the libraries below tell of every request is no help to anybody here.
    let targets = Targets::new().with_target("kerf", level).with_default(level.min(LevelFilter::WARN));
    let lines = tracing_subscriber::fmt::layer().event_format(Line).with_writer(sinks);
    tracing_subscriber::registry().with(lines.with_filter(targets)).init();
    Ok(())
}

fn open(paths: &str) -> anyhow::Result<Vec<Sink>> {
    let paths = paths.split(',').map(str::trim).filter(|path| !path.is_empty());
    let sink = |path: &str| match path {
        "stdout" => Ok(Sink::Output),
        "stderr" => Ok(Sink::Errors),
        path => {
            let path = PathBuf::from(path.strip_prefix("file://").unwrap_or(path));
            let file = OpenOptions::new().create(true).append(true).open(&path);
            file.map(Sink::File).with_context(|| format!("cannot write the log to {}", path.display()))
        }
    };
    paths.map(sink).collect()
}

enum Sink {
    Output,
    Errors,
    File(File),
}

#[derive(Clone)]
struct Sinks(Arc<Vec<Sink>>);

impl<'a> MakeWriter<'a> for Sinks {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }

    fn make_writer_for(&'a self, _: &Metadata<'_>) -> Self {
        self.clone()
    }
}

impl Write for Sinks {
    /// One line at a time, to each of them.
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        for sink in self.0.iter() {
            match sink {
                Sink::Output => io::stdout().write_all(line)?,
                Sink::Errors => io::stderr().write_all(line)?,
                Sink::File(file) => (&*file).write_all(line)?,
            }
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

struct Line;

impl<S, N> FormatEvent<S, N> for Line
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(&self, _: &FmtContext<'_, S, N>, mut writer: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        writeln!(writer, "{}", line(event, clock::now()))
    }
}

fn line(event: &Event<'_>, now: Timestamp) -> Value {
    let metadata = event.metadata();
    let mut fields = Fields(Map::new());
    event.record(&mut fields);
    let message = fields.0.remove("message").unwrap_or_default();
    let mut line = Map::new();
    line.insert("level".to_owned(), json!(level(*metadata.level())));
    line.insert("time".to_owned(), json!(format!("{now:.3}")));
    line.insert("logger".to_owned(), json!("controller"));
    line.insert("message".to_owned(), message);
    if metadata.target().starts_with("kerf") {
        line.extend(fields.0);
    } else {
        // Of a library that we use.
        line.insert("target".to_owned(), json!(metadata.target()));
        line.extend(fields.0);
    }
    Value::Object(line)
}

fn level(level: Level) -> &'static str {
    match level {
        Level::ERROR => "ERROR",
        Level::WARN => "WARN",
        Level::INFO => "INFO",
        _ => "DEBUG",
    }
}

struct Fields(Map<String, Value>);

impl Fields {
    /// Objects of the cluster are written as the reference writes them, so that what reads its logs reads these.
    fn put(&mut self, field: &Field, value: Value) {
        let (key, value) = match field.name() {
            "nodeclaim" => ("NodeClaim", json!({"name": value})),
            "nodepool" => ("NodePool", json!({"name": value})),
            "node" => ("Node", json!({"name": value})),
            "pod" => {
                let text = value.as_str().unwrap_or_default();
                let (namespace, name) = text.split_once('/').unwrap_or(("", text));
                ("Pod", json!({"name": name, "namespace": namespace}))
            }
            "provider_id" => ("provider-id", value),
            "instance_type" => ("instance-type", value),
            "capacity_type" => ("capacity-type", value),
            other => (other, value),
        };
        self.0.insert(key.to_owned(), value);
    }
}

impl Visit for Fields {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.put(field, json!(value));
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field, json!(value));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field, json!(value));
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.put(field, json!(value));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field, json!(value));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.put(field, json!(format!("{value:?}")));
    }
}
