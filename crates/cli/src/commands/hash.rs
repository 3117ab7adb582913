//! `kerf hash`.

use std::collections::BTreeMap;

use clap::ValueEnum;
use kerf_api::admission::Admission;
use kerf_api::crds;
use kerf_api::hash::ec2_node_class::ec2_node_class_seal;
use kerf_api::hash::node_pool::node_pool_seal;
use kerf_api::hash::{Ec2HashVersion, HashError, Seal, ec2_node_class_hash};
use kerf_api::manifest::Document;
use serde::Serialize;
use serde_json::Value;

use crate::input::Input;
use crate::output::{self, Outcome, ReportFormat};

/// Print the drift hash of NodePools and EC2NodeClasses
///
/// The hash is that of the object as the API server would store it: defaults are filled in first. A dump of a live
/// cluster gives the same hashes as the manifests it was made from. Other kinds have no hash and are passed over. JSON
/// always contains the hash of each field.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    input: Input,
    /// Also print the hash of each field
    #[arg(long)]
    fields: bool,
    /// Version of the EC2NodeClass hash
    #[arg(long, value_enum, default_value = "v6", value_name = "VERSION")]
    ec2_version: Ec2Version,
    /// The cluster's CA bundle in base64, which EC2NodeClass hashes from v5 on contain
    #[arg(long, env = "CLUSTER_CA_BUNDLE", default_value = "", hide_env_values = true, value_name = "BASE64")]
    ca_bundle: String,
    /// How to print the hashes
    #[arg(short, long, value_enum, default_value = "text", value_name = "FORMAT")]
    output: ReportFormat,
}

const EXAMPLES: &str = "\
Examples:
  kerf hash -f nodepool.yaml
  kubectl get nodepools,ec2nodeclasses -o yaml | kerf hash -f - --fields
  kerf hash -f class.yaml --ec2-version v5 -o json";

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Ec2Version {
    /// Karpenter 1.1 to 1.11
    V4,
    /// Karpenter 1.12 to 1.14
    V5,
    /// Karpenter 1.15
    V6,
}

impl From<Ec2Version> for Ec2HashVersion {
    fn from(version: Ec2Version) -> Self {
        match version {
            Ec2Version::V4 => Self::V4,
            Ec2Version::V5 => Self::V5,
            Ec2Version::V6 => Self::V6,
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Row {
    file: String,
    line: usize,
    kind: String,
    name: String,
    /// Text, as in the annotation: it has more digits than a JSON number keeps.
    hash: String,
    hash_version: &'static str,
    fields: BTreeMap<String, String>,
}

pub fn run(args: &Args) -> anyhow::Result<Outcome> {
    let read = args.input.read()?;
    let admission = Admission::new(&crds(None))?;
    let mut outcome = read.outcome;
    let mut rows = Vec::new();
    let mut passed_over = 0;
    for document in read.documents.into_iter().flat_map(Document::flatten) {
        match seal(&document, &admission, args) {
            None => passed_over += 1,
            Some(Ok(seal)) => rows.push(Row::new(&document, &seal)),
            Some(Err(error)) => {
                output::complain(&format!("{}: {error}", output::place(&document)));
                outcome = outcome.max(Outcome::Findings);
            }
        }
    }
    match args.output {
        ReportFormat::Json => output::print_json(&rows)?,
        ReportFormat::Text => output::print(&text(&rows, args.fields))?,
    }
    if passed_over > 0 {
        output::complain(&format!("passed over {} without a drift hash", output::count(passed_over, "object")));
    }
    Ok(outcome)
}

/// `None` for objects that have no hash.
fn seal(document: &Document, admission: &Admission, args: &Args) -> Option<Result<Seal, HashError>> {
    let object = Value::Object(document.object.clone());
    match (document.api_version(), document.kind()) {
        ("karpenter.sh/v1", "NodePool") => Some(node_pool_seal(&admission.stored(&object)?)),
        ("karpenter.k8s.aws/v1", "EC2NodeClass") => Some(ec2_seal(&admission.stored(&object)?, args)),
        _ => None,
    }
}

fn ec2_seal(class: &Value, args: &Args) -> Result<Seal, HashError> {
    let version = Ec2HashVersion::from(args.ec2_version);
    // The map of field hashes has one form; only the hash of the whole has versions.
    let seal = ec2_node_class_seal(class, &args.ca_bundle)?;
    Ok(Seal { hash: ec2_node_class_hash(class, version, &args.ca_bundle)?, version: version.as_str(), ..seal })
}

impl Row {
    fn new(document: &Document, seal: &Seal) -> Self {
        Self {
            file: document.file.to_string(),
            line: document.line,
            kind: document.kind().to_owned(),
            name: document.name().to_owned(),
            hash: seal.hash.to_string(),
            hash_version: seal.version,
            fields: seal.fields.iter().map(|(field, hash)| (field.to_owned(), hash.to_string())).collect(),
        }
    }
}

fn text(rows: &[Row], fields: bool) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let mut lines = Vec::new();
    for row in rows {
        lines.push(vec![row.kind.clone(), row.name.clone(), row.hash.clone(), row.hash_version.to_string()]);
        if fields {
            lines.extend(row.fields.iter().map(|(field, hash)| vec![String::new(), field.clone(), hash.clone()]));
        }
    }
    output::table(&["KIND", "NAME", "HASH", "VERSION"], &lines)
}
