//! `kerf convert`.

use kerf_api::convert::{self, Content, Options};
use kerf_api::manifest;
use serde_json::Value;

use crate::input::Input;
use crate::output::{self, ObjectFormat, Outcome};

/// Rewrite manifests of Karpenter's older APIs for v1
///
/// Reads v1alpha5 Provisioners and Machines, v1alpha1 AWSNodeTemplates, and v1beta1 NodePools, NodeClaims and
/// EC2NodeClasses. Give everything that belongs together at once: kubelet settings move from pools into the node classes
/// they name. Other documents pass unchanged.
///
/// Notes on what v1 says differently go to standard error; nothing is dropped silently. The exit code is 1 when a
/// document could not be converted, or its result needs a hand before it works.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    input: Input,
    /// IAM role for node classes that name no instance profile
    #[arg(long, value_name = "NAME")]
    role: Option<String>,
    /// Give every pool made from a Provisioner a budget that forbids drift, which used to be off by default
    #[arg(long)]
    freeze_drift: bool,
    /// Leave out the requirements that the old API filled in by itself (linux, amd64, on-demand, categories c, m, r)
    #[arg(long)]
    skip_default_requirements: bool,
    /// Also rename legacy labels and annotations in workloads and nodes, instead of only pointing at them
    #[arg(long)]
    rewrite_workloads: bool,
    /// How to print the result
    #[arg(short, long, value_enum, default_value = "yaml", value_name = "FORMAT")]
    output: ObjectFormat,
}

const EXAMPLES: &str = "\
Examples:
  kerf convert -f legacy/ > v1.yaml
  kerf convert -f provisioner.yaml -f template.yaml --role NodeRole-prod
  kubectl get provisioners,awsnodetemplates -o yaml | kerf convert -f -";

pub fn run(args: &Args) -> anyhow::Result<Outcome> {
    let read = args.input.read()?;
    let options = Options {
        skip_default_requirements: args.skip_default_requirements,
        freeze_drift: args.freeze_drift,
        role: args.role.clone(),
        rewrite_workloads: args.rewrite_workloads,
    };
    let converted = convert::convert(read.documents, &options);
    match args.output {
        ObjectFormat::Yaml => output::print(&converted.to_yaml())?,
        ObjectFormat::Json => {
            let items: Vec<Value> =
                converted.documents.iter().flat_map(|document| objects(&document.content)).collect();
            output::print_json(&serde_json::json!({"apiVersion": "v1", "kind": "List", "items": items}))?;
        }
    }
    for note in &converted.notes {
        output::complain(&format!("{note} [{}]", note.finding.id()));
    }
    Ok(read.outcome.max(if converted.has_errors() { Outcome::Findings } else { Outcome::Fine }))
}

/// Unchanged text was read once without complaint, so reading it again gives the same object.
fn objects(content: &Content) -> Vec<Value> {
    match content {
        Content::Converted(objects) => objects.clone(),
        Content::Unchanged(text) => manifest::read("", text.as_bytes())
            .into_iter()
            .flatten()
            .map(|document| Value::Object(document.object))
            .collect(),
    }
}
