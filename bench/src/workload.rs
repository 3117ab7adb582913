//! The workloads, by name. Each is made from a fixed seed: the same name is the same file, byte for byte, everywhere.

mod diverse;
mod kwok;
pub(crate) mod nodes;
mod preferences;
mod real_cluster;

use std::fmt;
use std::io::{self, Write};
use std::str::FromStr;

use kerf_cloud::catalogue::Catalogue;
use kerf_model::cluster::InstanceType;
use kerf_model::resources::ResourceList;
use serde_json::Value;

use crate::file::{self, Header, WireType};
use crate::objects::Pool;

/// A cluster with pods that wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Workload {
    /// The mix of the reference's own benchmark: generic, spread by zone, spread by host, together in a zone, alone on a
    /// host, a fifth each; one pool, 400 types.
    Diverse { pods: usize },
    /// Identical pods with preferences that cannot all be met, respected or ignored.
    Preferences { pods: usize, respected: bool },
    /// The reference's end-to-end suite as one problem each.
    Kwok(kwok::Case),
    /// 300 Deployments on 2,000 nodes of 20 pools, 800 types with prices as on EC2, and 10,000 pods that wait.
    RealCluster,
    /// Nodes with twenty pods each, in five pools, with the rules of the diverse mix and room to consolidate.
    Nodes { nodes: usize },
}

/// Nobody knows the workload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownWorkload(String);

impl fmt::Display for UnknownWorkload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known: Vec<_> = Workload::all().iter().chain(&Workload::to_disrupt()).map(ToString::to_string).collect();
        write!(f, "unknown workload {:?}: it is one of {}, or diverse-N with another N", self.0, known.join(", "))
    }
}

impl std::error::Error for UnknownWorkload {}

impl Workload {
    /// What `cargo xtask bench scheduling` runs, in this order.
    pub fn all() -> Vec<Self> {
        let diverse = [1, 50, 100, 500, 1000, 2000, 5000, 10_000, 20_000, 100_000].map(|pods| Self::Diverse { pods });
        let preferences = [true, false].map(|respected| Self::Preferences { pods: 4000, respected });
        let kwok = kwok::Case::ALL.map(Self::Kwok);
        diverse.into_iter().chain(preferences).chain(kwok).chain([Self::RealCluster]).collect()
    }

    /// What `cargo xtask bench disruption` runs, in this order.
    pub fn to_disrupt() -> Vec<Self> {
        [200, 1000, 5000].map(|nodes| Self::Nodes { nodes }).to_vec()
    }

    /// Writes the problem file.
    pub fn write(self, to: &mut dyn Write) -> io::Result<()> {
        let mut file = Problem { to };
        match self {
            Self::Diverse { pods } => diverse::write(pods, &self.to_string(), &mut file),
            Self::Preferences { pods, respected } => preferences::write(pods, respected, &self.to_string(), &mut file),
            Self::Kwok(case) => kwok::write(case, &self.to_string(), &mut file),
            Self::RealCluster => real_cluster::write(&self.to_string(), &mut file),
            Self::Nodes { nodes } => nodes::write(nodes, &self.to_string(), &mut file),
        }
    }
}

impl fmt::Display for Workload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Diverse { pods } => write!(f, "diverse-{pods}"),
            Self::Preferences { pods, respected: true } => write!(f, "preferences-{pods}"),
            Self::Preferences { pods, respected: false } => write!(f, "preferences-ignored-{pods}"),
            Self::Kwok(case) => f.write_str(case.name()),
            Self::RealCluster => f.write_str("real-cluster"),
            Self::Nodes { nodes } => write!(f, "nodes-{nodes}"),
        }
    }
}

impl FromStr for Workload {
    type Err = UnknownWorkload;

    fn from_str(name: &str) -> Result<Self, UnknownWorkload> {
        if let Some(known) = Self::all().into_iter().find(|workload| workload.to_string() == name) {
            return Ok(known);
        }
        let pods = |prefix: &str| name.strip_prefix(prefix).and_then(|count| count.parse().ok());
        let sized = pods("diverse-").map(|pods| Self::Diverse { pods });
        let sized =
            sized.or_else(|| pods("preferences-ignored-").map(|pods| Self::Preferences { pods, respected: false }));
        let sized = sized.or_else(|| pods("nodes-").map(|nodes| Self::Nodes { nodes }));
        let sized = sized.or_else(|| pods("preferences-").map(|pods| Self::Preferences { pods, respected: true }));
        sized.ok_or_else(|| UnknownWorkload(name.to_owned()))
    }
}

/// The file that is being written.
struct Problem<'a> {
    to: &'a mut dyn Write,
}

impl Problem<'_> {
    /// The header and the types, which come first.
    fn begin(&mut self, name: &str, preferences: &str, types: &[InstanceType]) -> io::Result<()> {
        let catalogue: Catalogue = types.iter().cloned().collect();
        let header = Header {
            kind: "Problem".into(),
            name: name.to_owned(),
            well_known_labels: catalogue.label_keys().into_iter().map(ToString::to_string).collect(),
            preferences: preferences.to_owned(),
        };
        writeln!(self.to, "{}", serde_json::to_string(&header)?)?;
        for instance_type in types {
            writeln!(self.to, "{}", serde_json::to_string(&WireType::of(instance_type))?)?;
        }
        Ok(())
    }

    fn object(&mut self, kind: &str, object: &Value) -> io::Result<()> {
        writeln!(self.to, "{}", file::line(kind, object))
    }

    fn pool(&mut self, pool: &Pool) -> io::Result<()> {
        self.object("NodePool", &pool.object())
    }
}

/// Resources as Kubernetes objects write them.
pub(crate) fn amounts(list: &ResourceList) -> Value {
    let amounts = list.iter().map(|(name, amount)| (name.to_string(), Value::from(amount.to_string())));
    amounts.collect::<serde_json::Map<_, _>>().into()
}
