//! YAML as Kubernetes tools read and write it: the YAML 1.1 scalars of Go's parser (`yes` is a boolean, `0644` is octal),
//! JSON values as the result, and a writer whose output such a reader takes back unchanged.
//!
//! The syntax itself is granit-parser's, which comes with serde-saphyr. Building the values is done here because
//! serde-saphyr reads some scalars differently from kubectl (`017`, `1:30`, keys that are not strings) and cannot
//! tell where a value stood in the file.

mod read;
mod scalar;
mod write;

pub use read::{Parsed, Position, Problem, ValueKind, parse_mapping};
pub use scalar::is_plain_string;
pub use write::{object_to_yaml, to_yaml};

#[cfg(test)]
mod tests;
