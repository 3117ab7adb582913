//! `kerf version`.

use kerf_api::hash::{Ec2HashVersion, NODE_POOL_HASH_VERSION};
use serde::Serialize;

use crate::output::{self, Outcome, ReportFormat};

/// Print the version, and which API it speaks
#[derive(clap::Args)]
pub struct Args {
    /// How to print it
    #[arg(short, long, value_enum, default_value = "text", value_name = "FORMAT")]
    output: ReportFormat,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Version {
    version: &'static str,
    /// The release of Karpenter whose API the CRDs describe.
    karpenter_api: &'static str,
    node_pool_hash: &'static str,
    ec2_node_class_hash: &'static str,
    platform: String,
}

pub fn run(args: &Args) -> anyhow::Result<Outcome> {
    let version = Version {
        version: env!("CARGO_PKG_VERSION"),
        karpenter_api: kerf_api::KARPENTER_RELEASE,
        node_pool_hash: NODE_POOL_HASH_VERSION,
        ec2_node_class_hash: Ec2HashVersion::CURRENT.as_str(),
        platform: format!("{}/{}", std::env::consts::OS, std::env::consts::ARCH),
    };
    match args.output {
        ReportFormat::Json => output::print_json(&version)?,
        ReportFormat::Text => output::print(&format!(
            "kerf {} ({})\nKarpenter API {}, hashes NodePool {}, EC2NodeClass {}\n",
            version.version,
            version.platform,
            version.karpenter_api,
            version.node_pool_hash,
            version.ec2_node_class_hash
        ))?,
    }
    Ok(Outcome::Fine)
}
