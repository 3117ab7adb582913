//! Which labels are well known, which are reserved, and which are other names for the same thing.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use thiserror::Error;

use super::{ARCH, CAPACITY_TYPE, HOSTNAME, INSTANCE_TYPE, NODEPOOL, OS, REGION, RESERVATION_ID, WINDOWS_BUILD, ZONE};

const CORE_WELL_KNOWN: [&str; 8] = [NODEPOOL, CAPACITY_TYPE, ZONE, REGION, INSTANCE_TYPE, ARCH, OS, WINDOWS_BUILD];

const CORE_ALIASES: [(&str, &str); 5] = [
    ("failure-domain.beta.kubernetes.io/zone", ZONE),
    ("failure-domain.beta.kubernetes.io/region", REGION),
    ("beta.kubernetes.io/arch", ARCH),
    ("beta.kubernetes.io/os", OS),
    ("beta.kubernetes.io/instance-type", INSTANCE_TYPE),
];

/// What the core and the provider in use know about labels. A value handed around, because two
/// providers can live in one process (a simulation next to a plan).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabelRules {
    well_known: BTreeSet<Arc<str>>,
    restricted_domains: BTreeSet<Arc<str>>,
    aliases: BTreeMap<Arc<str>, Arc<str>>,
    reservation_id: Arc<str>,
}

/// Why users may not put a label on a node.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Restricted {
    #[error("labels of the domain {domain} are reserved, except those that are well known")]
    Domain { domain: Arc<str> },
    #[error("the label {HOSTNAME} belongs to the node itself")]
    Hostname,
}

impl LabelRules {
    /// The rules that hold with every provider (sheet 01 §6).
    pub fn core() -> Self {
        Self {
            well_known: CORE_WELL_KNOWN.into_iter().map(Arc::from).collect(),
            restricted_domains: BTreeSet::from([Arc::from("karpenter.sh")]),
            aliases: CORE_ALIASES.into_iter().map(|(alias, key)| (Arc::from(alias), Arc::from(key))).collect(),
            reservation_id: Arc::from(RESERVATION_ID),
        }
    }

    /// Sets the label by which the provider's offerings name the reservation that they come from.
    #[must_use]
    pub fn with_reservation_id(mut self, key: &str) -> Self {
        self.reservation_id = Arc::from(key);
        self.well_known.insert(Arc::from(key));
        self
    }

    /// The label by which offerings name the reservation that they come from.
    pub fn reservation_id(&self) -> &Arc<str> {
        &self.reservation_id
    }

    /// Adds labels that instance types of the provider define.
    #[must_use]
    pub fn with_well_known<'a>(mut self, keys: impl IntoIterator<Item = &'a str>) -> Self {
        self.well_known.extend(keys.into_iter().map(Arc::from));
        self
    }

    /// Adds a domain in which only well-known labels may be used.
    #[must_use]
    pub fn with_restricted_domain(mut self, domain: &str) -> Self {
        self.restricted_domains.insert(Arc::from(domain));
        self
    }

    /// Adds another name for a label.
    #[must_use]
    pub fn with_alias(mut self, alias: &str, key: &str) -> Self {
        self.aliases.insert(Arc::from(alias), Arc::from(key));
        self
    }

    /// The name to use for a key: the one that an alias stands for, or the key itself.
    pub fn normalise<'a>(&'a self, key: &'a str) -> &'a str {
        self.alias_of(key).map_or(key, |canonical| canonical)
    }

    /// The label that a key is another name for.
    pub fn alias_of(&self, key: &str) -> Option<&Arc<str>> {
        self.aliases.get(key)
    }

    pub fn is_well_known(&self, key: &str) -> bool {
        self.well_known.contains(key)
    }

    /// In order of their names.
    pub fn well_known(&self) -> impl Iterator<Item = &Arc<str>> {
        self.well_known.iter()
    }

    /// The runtime rule (`IsRestrictedLabel` upstream). Admission is stricter: there any prefix that merely
    /// *ends with* the domain is refused (sheet 01 §6.2).
    ///
    /// # Errors
    /// Why the key may not be used.
    pub fn check_unrestricted(&self, key: &str) -> Result<(), Restricted> {
        if self.is_well_known(key) {
            return Ok(());
        }
        if key == HOSTNAME {
            return Err(Restricted::Hostname);
        }
        let Some((prefix, _)) = key.split_once('/') else {
            return Ok(());
        };
        match self.restricted_domains.iter().find(|domain| is_within(prefix, domain)) {
            None => Ok(()),
            Some(domain) => Err(Restricted::Domain { domain: Arc::clone(domain) }),
        }
    }
}

fn is_within(prefix: &str, domain: &str) -> bool {
    prefix.strip_suffix(domain).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sheet 02, case 1.
    #[test]
    fn an_alias_stands_for_its_label() {
        let rules = LabelRules::core().with_alias("topology.ebs.csi.aws.com/zone", ZONE);
        for (alias, key) in CORE_ALIASES {
            assert_eq!(rules.normalise(alias), key);
        }
        assert_eq!(rules.normalise("topology.ebs.csi.aws.com/zone"), ZONE);
        assert_eq!(rules.normalise("team"), "team");
    }

    /// Sheet 01 §6.2.
    #[test]
    fn a_reserved_domain_admits_only_well_known_labels() {
        let rules = LabelRules::core()
            .with_restricted_domain("karpenter.k8s.aws")
            .with_well_known(["karpenter.k8s.aws/instance-cpu"]);
        let domain = |name: &str| Err(Restricted::Domain { domain: Arc::from(name) });
        let cases = [
            (NODEPOOL, Ok(())),
            ("karpenter.sh/x", domain("karpenter.sh")),
            ("sub.karpenter.sh/x", domain("karpenter.sh")),
            ("notkarpenter.sh/x", Ok(())),
            ("karpenter.sh", Ok(())),
            ("karpenter.k8s.aws/instance-cpu", Ok(())),
            ("karpenter.k8s.aws/ec2nodeclass", domain("karpenter.k8s.aws")),
            ("kubernetes.io/x", Ok(())),
            ("node-role.k8s.io/x", Ok(())),
            (HOSTNAME, Err(Restricted::Hostname)),
        ];
        for (key, expected) in cases {
            assert_eq!(rules.check_unrestricted(key), expected, "{key}");
        }
        assert_eq!(LabelRules::core().check_unrestricted("karpenter.k8s.aws/ec2nodeclass"), Ok(()));
    }
}
