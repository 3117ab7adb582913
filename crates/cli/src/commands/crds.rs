//! `kerf crds`.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::ValueEnum;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kerf_api::{Provider, crd_yaml, crds};

use crate::output::{self, ObjectFormat, Outcome};

/// Print the custom resource definitions
///
/// They describe Karpenter's API with Kerf's optional additions, and can take the place of Karpenter's own in a cluster.
/// Without --provider, all kinds are printed, with the label rules of every provider.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Only what this provider needs: its node class, and its rules for labels
    #[arg(long, value_enum)]
    provider: Option<ProviderName>,
    /// Write one file per kind into this directory (made if missing) instead of printing
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// How to print them
    #[arg(short, long, value_enum, default_value = "yaml", value_name = "FORMAT")]
    output: ObjectFormat,
}

const EXAMPLES: &str = "\
Examples:
  kerf crds | kubectl apply --server-side --force-conflicts -f -
  kerf crds --provider kwok --dir crds/";

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ProviderName {
    /// Nodes without machines, for tests and demonstrations
    Kwok,
    /// Amazon EC2
    Aws,
}

impl From<ProviderName> for Provider {
    fn from(name: ProviderName) -> Self {
        match name {
            ProviderName::Kwok => Self::Kwok,
            ProviderName::Aws => Self::Aws,
        }
    }
}

pub fn run(args: &Args) -> anyhow::Result<Outcome> {
    let crds = crds(args.provider.map(Provider::from));
    match &args.dir {
        Some(dir) => write_files(&crds, dir, args.output)?,
        None => output::print(&stream(&crds, args.output)?)?,
    }
    Ok(Outcome::Fine)
}

fn write_files(crds: &[CustomResourceDefinition], dir: &Path, format: ObjectFormat) -> anyhow::Result<()> {
    fs::create_dir_all(dir).with_context(|| format!("cannot make the directory {}", dir.display()))?;
    for crd in crds {
        let (extension, text) = match format {
            ObjectFormat::Yaml => ("yaml", crd_yaml(crd)),
            ObjectFormat::Json => ("json", format!("{:#}\n", serde_json::to_value(crd)?)),
        };
        let path = dir.join(format!("{}_{}.{extension}", crd.spec.group, crd.spec.names.plural));
        fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

/// One stream that `kubectl apply -f -` takes: YAML documents, or a JSON list.
fn stream(crds: &[CustomResourceDefinition], format: ObjectFormat) -> anyhow::Result<String> {
    Ok(match format {
        ObjectFormat::Yaml => crds.iter().map(crd_yaml).collect(),
        ObjectFormat::Json => {
            format!("{:#}\n", serde_json::json!({"apiVersion": "v1", "kind": "List", "items": crds}))
        }
    })
}
