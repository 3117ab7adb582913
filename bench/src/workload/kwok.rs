//! The workloads of the reference's end-to-end performance suite, each as one problem: all of its pods wait at once
//! (sheet 02 §28).

use std::io;

use kerf_cloud::catalogue::Catalogue;
use kerf_model::label::{CAPACITY_TYPE, HOSTNAME, OS, ZONE};
use serde_json::{Value, json};

use super::Problem;
use crate::objects::{PodTemplate, Pool, anti_affinity, hard_spread};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Case {
    Basic,
    HostNameSpreading,
    HostNameSpreadingXl,
    WideDeployments,
    Interference,
    DoNotDisrupt,
    Drift,
}

impl Case {
    pub const ALL: [Self; 7] = [
        Self::Basic,
        Self::HostNameSpreading,
        Self::HostNameSpreadingXl,
        Self::WideDeployments,
        Self::Interference,
        Self::DoNotDisrupt,
        Self::Drift,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Basic => "kwok-basic",
            Self::HostNameSpreading => "kwok-hostname-spreading",
            Self::HostNameSpreadingXl => "kwok-hostname-spreading-xl",
            Self::WideDeployments => "kwok-wide-deployments",
            Self::Interference => "kwok-interference",
            Self::DoNotDisrupt => "kwok-do-not-disrupt",
            Self::Drift => "kwok-drift",
        }
    }

    fn deployments(self) -> Vec<Deployment> {
        match self {
            Self::Basic => vec![small(500, Rule::None), large(500, Rule::None)],
            Self::HostNameSpreading => vec![small(500, Rule::HostSpread), large(500, Rule::None)],
            Self::HostNameSpreadingXl => vec![small(1000, Rule::HostSpread), large(1000, Rule::None)],
            Self::WideDeployments => wide(),
            Self::Interference => vec![small(250, Rule::HostAntiAffinity), large(500, Rule::HostAntiAffinity)],
            Self::DoNotDisrupt => {
                let protected = Deployment {
                    name: "protected".into(),
                    replicas: 100,
                    milli_cpu: 900,
                    memory_mib: 450,
                    rules: vec![],
                };
                vec![small(500, Rule::HostSpread), large(500, Rule::None), protected]
            }
            Self::Drift => vec![small(300, Rule::HostSpread), large(300, Rule::None)],
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rule {
    None,
    ZoneSpread,
    HostSpread,
    HostAntiAffinity,
}

struct Deployment {
    name: String,
    replicas: usize,
    milli_cpu: u32,
    memory_mib: u32,
    rules: Vec<Rule>,
}

fn small(replicas: usize, rule: Rule) -> Deployment {
    Deployment { name: "small".into(), replicas, milli_cpu: 900, memory_mib: 3100, rules: vec![rule] }
}

fn large(replicas: usize, rule: Rule) -> Deployment {
    Deployment { name: "large".into(), replicas, milli_cpu: 3500, memory_mib: 28 << 10, rules: vec![rule] }
}

/// Thirty sizes, all spread by zone; a few also by host.
fn wide() -> Vec<Deployment> {
    const MILLI_CPUS: [u32; 30] = [
        240, 450, 650, 900, 1400, 1900, 2400, 2800, 3300, 3700, 2300, 900, 1300, 2800, 1800, 1850, 3300, 3800, 225,
        450, 700, 900, 1300, 1800, 2400, 2800, 3400, 3800, 3300, 2800,
    ];
    const GI: u32 = 1024;
    const MEMORIES_MIB: [u32; 30] = [
        300,
        400,
        700,
        GI,
        2 * GI,
        4 * GI,
        8 * GI,
        4 * GI,
        16 * GI,
        10 * GI,
        64 * GI,
        30 * GI,
        32 * GI,
        32 * GI,
        30 * GI,
        20 * GI,
        30 * GI,
        300,
        500,
        750,
        GI,
        2 * GI,
        4 * GI,
        8 * GI,
        16 * GI,
        32 * GI,
        28 * GI,
        64 * GI,
        13 * GI,
        24 * GI,
    ];
    let deployment = |at: usize| {
        let mut rules = vec![Rule::ZoneSpread];
        match at {
            0..3 => rules.push(Rule::HostAntiAffinity),
            3..6 => rules.push(Rule::HostSpread),
            _ => {}
        }
        Deployment {
            name: format!("wide-{}", at + 1),
            replicas: if at < 20 { 35 } else { 30 },
            milli_cpu: MILLI_CPUS[at],
            memory_mib: MEMORIES_MIB[at],
            rules,
        }
    };
    (0..MILLI_CPUS.len()).map(deployment).collect()
}

impl Deployment {
    fn template(&self) -> PodTemplate {
        let labels = json!({ "app": self.name });
        let spread: Vec<Value> = self
            .rules
            .iter()
            .filter_map(|rule| match rule {
                Rule::ZoneSpread => Some(hard_spread(ZONE, &labels)),
                Rule::HostSpread => Some(hard_spread(HOSTNAME, &labels)),
                Rule::None | Rule::HostAntiAffinity => None,
            })
            .flat_map(|list| list.as_array().cloned().unwrap_or_default())
            .collect();
        let mut template = PodTemplate::new(labels.clone(), self.milli_cpu, self.memory_mib);
        if !spread.is_empty() {
            template = template.with("topologySpreadConstraints", Value::from(spread));
        }
        if self.rules.contains(&Rule::HostAntiAffinity) {
            template = template.with("affinity", anti_affinity(HOSTNAME, &labels));
        }
        template
    }
}

pub(super) fn write(case: Case, name: &str, file: &mut Problem<'_>) -> io::Result<()> {
    file.begin(name, "Respect", Catalogue::kwok().types())?;
    let pool = Pool::new("default")
        .requiring(OS, "In", &["linux"])
        .requiring(CAPACITY_TYPE, "In", &["on-demand"])
        .requiring("karpenter.kwok.sh/instance-size", "Lt", &["32"]);
    file.pool(&pool)?;
    for deployment in case.deployments() {
        let template = deployment.template();
        for at in 0..deployment.replicas {
            file.object("Pod", &template.pending(&format!("{}-{at:04}", deployment.name)))?;
        }
    }
    Ok(())
}
