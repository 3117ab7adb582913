//! The clouds that nodes can come from, as far as labels and kinds know them.

use kerf_model::label::{LabelRules, ZONE};

/// Where nodes come from. Each provider reserves a label domain and has a node class kind of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Provider {
    Kwok,
    Aws,
}

/// The label rules of one provider, or of all at once.
pub fn label_rules(provider: Option<Provider>) -> LabelRules {
    Provider::chosen(provider).into_iter().fold(LabelRules::core(), |rules, provider| {
        let names = provider.label_names();
        let keys: Vec<String> = names.iter().map(|name| format!("{}/{name}", provider.label_domain())).collect();
        let rules =
            rules.with_well_known(keys.iter().map(String::as_str)).with_restricted_domain(provider.label_domain());
        match provider {
            Provider::Kwok => rules,
            Provider::Aws => {
                rules.with_well_known(["topology.k8s.aws/zone-id"]).with_alias("topology.ebs.csi.aws.com/zone", ZONE)
            }
        }
    })
}

impl Provider {
    pub const ALL: [Self; 2] = [Self::Kwok, Self::Aws];

    /// The one given, or all.
    pub(crate) fn chosen(provider: Option<Self>) -> Vec<Self> {
        provider.map_or_else(|| Self::ALL.to_vec(), |provider| vec![provider])
    }

    pub fn label_domain(self) -> &'static str {
        match self {
            Self::Kwok => "karpenter.kwok.sh",
            Self::Aws => "karpenter.k8s.aws",
        }
    }

    /// The label that names a node's class. Every claim carries it, so it must pass admission; in a pool it is refused.
    pub(crate) fn class_label_name(self) -> &'static str {
        match self {
            Self::Kwok => "kwoknodeclass",
            Self::Aws => "ec2nodeclass",
        }
    }

    /// Labels in the provider's domain that pools, pods and overlays may use.
    pub(crate) fn label_names(self) -> Vec<&'static str> {
        match self {
            Self::Kwok => KWOK_LABELS.to_vec(),
            Self::Aws => [AWS_INSTANCE_LABELS, AWS_LAUNCH_LABELS].concat(),
        }
    }

    /// Those that an instance type has before anything is launched.
    pub(crate) fn instance_label_names(self) -> &'static [&'static str] {
        match self {
            Self::Kwok => KWOK_LABELS,
            Self::Aws => AWS_INSTANCE_LABELS,
        }
    }
}

const KWOK_LABELS: &[&str] = &["instance-cpu", "instance-memory", "instance-family", "instance-size"];

/// What an instance type is.
const AWS_INSTANCE_LABELS: &[&str] = &[
    "instance-encryption-in-transit-supported",
    "nitro-sandbox",
    "instance-category",
    "instance-hypervisor",
    "instance-family",
    "instance-generation",
    "instance-local-nvme",
    "instance-size",
    "instance-cpu",
    "instance-cpu-manufacturer",
    "instance-cpu-sustained-clock-speed-mhz",
    "instance-memory",
    "instance-ebs-bandwidth",
    "instance-network-bandwidth",
    "instance-gpu-name",
    "instance-gpu-manufacturer",
    "instance-gpu-count",
    "instance-gpu-memory",
    "instance-accelerator-name",
    "instance-accelerator-manufacturer",
    "instance-accelerator-count",
    "instance-capability-flex",
];

/// What only a launch decides.
const AWS_LAUNCH_LABELS: &[&str] = &[
    "instance-tenancy",
    "capacity-reservation-type",
    "capacity-reservation-id",
    "capacity-reservation-interruptible",
    "placement-group-id",
    "placement-group-partition",
];

#[cfg(test)]
mod tests {
    use super::*;

    /// Sheet 01 §6.2.
    #[test]
    fn a_provider_reserves_its_domain_but_for_its_own_labels() {
        let rules = label_rules(Some(Provider::Aws));
        assert!(rules.check_unrestricted("karpenter.k8s.aws/instance-category").is_ok());
        assert!(rules.check_unrestricted("karpenter.k8s.aws/ec2nodeclass").is_err());
        assert!(rules.check_unrestricted("karpenter.k8s.aws/team").is_err());
        assert!(rules.check_unrestricted("karpenter.kwok.sh/team").is_ok());
        assert_eq!(rules.normalise("topology.ebs.csi.aws.com/zone"), ZONE);
        let both = label_rules(None);
        assert!(both.check_unrestricted("karpenter.kwok.sh/team").is_err());
        assert!(both.check_unrestricted("karpenter.kwok.sh/instance-cpu").is_ok());
    }
}
