//! The table of objects that the API must accept or reject: one file per kind in `cases/`.
//!
//! The fast suite asks offline admission, `cargo xtask e2e api` asks kube-apiserver as well, and all must agree.
//!
//! A file has a `base` object, which is itself a case, and two lists. `values` tries many values at one place;
//! `cases` has everything else: several edits at once, defaults, updates, writes to the status subresource.

use std::collections::BTreeMap;
use std::path::Path;
use std::{fmt, fs};

use anyhow::{Context, Result, ensure};
use kerf_api::Provider;
use kerf_api::admission::{Admission, Outcome};
use serde::Deserialize;
use serde_json::Value;

use crate::patch;

/// One question to the API, with the answer it must give.
#[derive(Debug, Clone)]
pub struct Row {
    /// File, sentence, and the value tried.
    pub name: String,
    pub sheet: String,
    /// The CRD sets on which the answer holds.
    pub sets: Vec<CrdSet>,
    pub request: Request,
    pub expected: Expected,
}

#[derive(Debug, Clone)]
pub enum Request {
    Create(Value),
    Update { old: Value, new: Value },
    UpdateStatus { old: Value, new: Value },
}

#[derive(Debug, Clone)]
pub enum Expected {
    /// With the values that some paths must have afterwards (null: absent).
    Accept { after: BTreeMap<String, Value> },
    /// With a field and the label of the rule that it breaks.
    Reject { field: String, rule: String },
}

/// The sets of definitions that `kerf crds` prints.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CrdSet {
    Kwok,
    Aws,
    /// Both providers' kinds and rules.
    All,
}

impl CrdSet {
    pub const EVERY: [Self; 3] = [Self::Kwok, Self::Aws, Self::All];

    pub fn provider(self) -> Option<Provider> {
        match self {
            Self::Kwok => Some(Provider::Kwok),
            Self::Aws => Some(Provider::Aws),
            Self::All => None,
        }
    }
}

impl fmt::Display for CrdSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Kwok => "kwok",
            Self::Aws => "aws",
            Self::All => "all",
        })
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    base: Value,
    /// The CRD sets that have the kind; all of them if absent.
    #[serde(default)]
    sets: Option<Vec<CrdSet>>,
    #[serde(default)]
    values: Vec<ValuesAt>,
    #[serde(default)]
    cases: Vec<Edited>,
}

/// Many values at one place.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ValuesAt {
    name: String,
    sheet: String,
    at: String,
    /// Other edits that every value needs around it.
    #[serde(default)]
    with: BTreeMap<String, Value>,
    #[serde(default)]
    sets: Option<Vec<CrdSet>>,
    /// Where a rejection shows, if not at `at`.
    #[serde(default)]
    field: Option<String>,
    #[serde(default)]
    accept: Vec<Value>,
    /// By the rule they break.
    #[serde(default)]
    reject: BTreeMap<String, Vec<Value>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Edited {
    name: String,
    sheet: String,
    #[serde(default)]
    sets: Option<Vec<CrdSet>>,
    #[serde(default)]
    set: BTreeMap<String, Value>,
    #[serde(default)]
    remove: Vec<String>,
    /// Makes the case an update of this object; without it the object is created.
    #[serde(default)]
    from: Option<Edit>,
    /// The update goes to the status subresource.
    #[serde(default)]
    status: bool,
    /// Field and rule. Absent means accepted.
    #[serde(default)]
    reject: Option<BTreeMap<String, String>>,
    /// Values after acceptance, by path; null for "absent".
    #[serde(default)]
    after: BTreeMap<String, Value>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct Edit {
    #[serde(default)]
    set: BTreeMap<String, Value>,
    #[serde(default)]
    remove: Vec<String>,
}

/// Reads every file of a directory, in the order of their names.
fn load(directory: &Path) -> Result<Vec<Row>> {
    let mut files: Vec<_> = fs::read_dir(directory)
        .with_context(|| format!("cannot list {}", directory.display()))?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<_, _>>()?;
    files.sort();
    let mut rows = Vec::new();
    for file in files {
        let text = fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
        let stem = file.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
        let parsed = parse(stem, &text).with_context(|| format!("bad table {}", file.display()))?;
        rows.extend(parsed);
    }
    Ok(rows)
}

/// The table of this crate.
pub fn rows() -> Result<Vec<Row>> {
    load(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/cases")))
}

fn parse(stem: &str, text: &str) -> Result<Vec<Row>> {
    let file: File = serde_saphyr::from_str(text)?;
    let sets = file.sets.unwrap_or_else(|| CrdSet::EVERY.to_vec());
    let mut rows = vec![Row {
        name: format!("{stem}: the base object is accepted"),
        sheet: "base".to_owned(),
        sets: sets.clone(),
        request: Request::Create(file.base.clone()),
        expected: Expected::Accept { after: BTreeMap::new() },
    }];
    for group in file.values {
        let name = group.name.clone();
        rows.extend(group.expand(stem, &file.base, &sets).with_context(|| name)?);
    }
    for edited in file.cases {
        let name = edited.name.clone();
        rows.push(edited.into_row(stem, &file.base, &sets).with_context(|| name)?);
    }
    Ok(rows)
}

impl ValuesAt {
    fn expand(self, stem: &str, base: &Value, sets: &[CrdSet]) -> Result<Vec<Row>> {
        let accepted = self.accept.iter().map(|value| (value, Expected::Accept { after: BTreeMap::new() }));
        let field = self.field.as_ref().unwrap_or(&self.at);
        let rejected = self.reject.iter().flat_map(|(rule, values)| {
            values.iter().map(move |value| (value, Expected::Reject { field: field.clone(), rule: rule.clone() }))
        });
        accepted
            .chain(rejected)
            .map(|(value, expected)| {
                let mut object = edited(base, &self.with, &[])?;
                patch::set(&mut object, &self.at, value)?;
                Ok(Row {
                    name: format!("{stem}: {} ({value})", self.name),
                    sheet: self.sheet.clone(),
                    sets: self.sets.clone().unwrap_or_else(|| sets.to_vec()),
                    request: Request::Create(object),
                    expected,
                })
            })
            .collect()
    }
}

impl Edited {
    fn into_row(self, stem: &str, base: &Value, sets: &[CrdSet]) -> Result<Row> {
        let request = match &self.from {
            None => Request::Create(edited(base, &self.set, &self.remove)?),
            Some(from) => {
                let old = edited(base, &from.set, &from.remove)?;
                let new = edited(&old, &self.set, &self.remove)?;
                if self.status { Request::UpdateStatus { old, new } } else { Request::Update { old, new } }
            }
        };
        ensure!(!self.status || self.from.is_some(), "a status write needs `from`");
        let expected = match self.reject {
            None => Expected::Accept { after: self.after },
            Some(reject) => {
                ensure!(reject.len() == 1 && self.after.is_empty(), "a rejection names one field and nothing after");
                let (field, rule) = reject.into_iter().next().context("a rejection names a field")?;
                Expected::Reject { field, rule }
            }
        };
        let name = format!("{stem}: {}", self.name);
        Ok(Row { name, sheet: self.sheet, sets: self.sets.unwrap_or_else(|| sets.to_vec()), request, expected })
    }
}

fn edited(base: &Value, set: &BTreeMap<String, Value>, remove: &[String]) -> Result<Value> {
    let mut object = base.clone();
    for path in remove {
        patch::remove(&mut object, path)?;
    }
    for (path, value) in set {
        patch::set(&mut object, path, value)?;
    }
    Ok(object)
}

impl Row {
    pub fn ask(&self, admission: &Admission) -> Outcome {
        match &self.request {
            Request::Create(object) => admission.create(object),
            Request::Update { old, new } => admission.update(old, new),
            Request::UpdateStatus { old, new } => admission.update_status(old, new),
        }
    }

    /// What is wrong with an answer of offline admission, if anything.
    pub fn objection(&self, outcome: &Outcome) -> Result<Option<String>> {
        match (&self.expected, outcome) {
            (Expected::Accept { after }, Outcome::Accepted(accepted)) => self.objection_after(after, &accepted.object),
            (Expected::Accept { .. }, Outcome::Rejected(rejections)) => {
                let reasons: Vec<String> = rejections.iter().map(ToString::to_string).collect();
                Ok(Some(format!("rejected: {}", reasons.join("; "))))
            }
            (Expected::Reject { field, rule }, Outcome::Accepted(_)) => {
                Ok(Some(format!("accepted, although {field} breaks its {rule} rule")))
            }
            (Expected::Reject { field, rule }, Outcome::Rejected(rejections)) => {
                let found = rejections.iter().any(|found| found.field == *field && found.rule.id().as_str() == rule);
                let seen = rejections.iter().map(|found| format!("{} {}", found.rule.id(), found)).collect::<Vec<_>>();
                Ok((!found).then(|| format!("rejected, but not for {rule} at {field}: {}", seen.join("; "))))
            }
        }
    }

    /// What is wrong with an accepted object, if anything.
    pub fn objection_after(&self, after: &BTreeMap<String, Value>, object: &Value) -> Result<Option<String>> {
        for (path, wanted) in after {
            let found = patch::get(object, path)?.unwrap_or(&Value::Null);
            if found != wanted {
                return Ok(Some(format!("{path} is {found} afterwards, not {wanted}")));
            }
        }
        Ok(None)
    }
}
