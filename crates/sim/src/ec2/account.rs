//! What there is in the account, and what terms select of it.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use kerf_api::ec2_node_class::{
    Ami, AmiSelectorTerm, Ec2NodeClassSpec, SecurityGroup, SecurityGroupSelectorTerm, Subnet, SubnetSelectorTerm,
};
use kerf_api::requirement::Requirement;
use kerf_model::cluster::InstanceType;
use kerf_model::label::{ARCH, ZONE};

/// The releases of Kubernetes that there are images for: minor, patch, the day of the image.
const RELEASES: [(u32, u32, u32); 10] = [
    (27, 4, 20_230_825),
    (28, 3, 20_231_103),
    (29, 0, 20_240_202),
    (30, 0, 20_240_605),
    (31, 0, 20_241_001),
    (32, 1, 20_250_203),
    (33, 0, 20_250_601),
    (34, 1, 20_251_002),
    (35, 0, 20_251_120),
    (36, 0, 20_251_218),
];

/// The release of the cluster, which aliases mean.
const CLUSTER_RELEASE: u32 = 36;

/// The last release with images of AL2.
const LAST_OF_AL2: u32 = 32;

const GPU_COUNT: &str = "karpenter.k8s.aws/instance-gpu-count";
const ACCELERATOR_COUNT: &str = "karpenter.k8s.aws/instance-accelerator-count";

/// On everything that belongs to the cluster.
const DISCOVERY: (&str, &str) = ("karpenter.sh/discovery", "demo");

pub struct Account {
    images: Vec<Image>,
    subnets: Vec<(Subnet, Tags)>,
    groups: Vec<(SecurityGroup, Tags)>,
}

type Tags = BTreeMap<&'static str, String>;

/// An image of Amazon's: the account has none of its own.
struct Image {
    id: String,
    name: String,
    family: &'static str,
    release: u32,
    arch: &'static str,
    variant: Variant,
    /// The day, and the order within it.
    created: (u32, u32),
    kubelet: String,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Variant {
    Standard,
    Nvidia,
}

impl Account {
    /// Two subnets in each zone of the catalogue, one `private` and one `public` (tag `tier`); security groups `nodes` and
    /// `extra`; images of AL2, AL2023 and Bottlerocket for all releases.
    pub fn in_zones_of(types: &[InstanceType]) -> Self {
        let zones: BTreeSet<String> = types
            .iter()
            .flat_map(|kind| &kind.offerings)
            .filter_map(|offering| Some(offering.requirements.get(ZONE)?.any()?.to_string()))
            .collect();
        let tiers = [("1", "private"), ("2", "public")];
        let subnets = tiers.iter().flat_map(|(number, tier)| {
            zones.iter().map(move |zone| {
                let letter = zone.chars().last().unwrap_or('a');
                let id = format!("subnet-{letter}{number}");
                let subnet = Subnet { id, zone: zone.clone(), zone_id: Some(format!("az-{letter}")) };
                (subnet, tags([DISCOVERY, ("tier", tier)]))
            })
        });
        let group = |name: &str, tags| (SecurityGroup { id: format!("sg-{name}"), name: Some(name.to_owned()) }, tags);
        Self {
            images: RELEASES.into_iter().flat_map(Image::of_release).collect(),
            subnets: subnets.collect(),
            groups: vec![group("nodes", tags([DISCOVERY])), group("extra", tags([("tier", "extra")]))],
        }
    }

    /// The version of the kubelet in an image.
    pub fn kubelet(&self, image: &str) -> Option<&str> {
        self.images.iter().find(|known| known.id == image).map(|known| known.kubelet.as_str())
    }

    /// By id: they all have as many free addresses.
    pub(super) fn subnets(&self, terms: &[SubnetSelectorTerm]) -> Vec<Subnet> {
        let is_selected = |subnet: &Subnet, tags: &Tags| {
            terms.iter().any(|term| match &term.id {
                Some(id) => *id == subnet.id,
                None => has_tags(tags, term.tags.as_ref()),
            })
        };
        let mut found: Vec<_> =
            self.subnets.iter().filter(|(subnet, tags)| is_selected(subnet, tags)).map(|(it, _)| it.clone()).collect();
        found.sort_by(|a, b| a.id.cmp(&b.id));
        found
    }

    pub(super) fn groups(&self, terms: &[SecurityGroupSelectorTerm]) -> Vec<SecurityGroup> {
        let is_selected = |group: &SecurityGroup, tags: &Tags| {
            terms.iter().any(|term| match (&term.id, &term.name) {
                (Some(id), _) => *id == group.id,
                (None, Some(name)) => group.name.as_deref().is_some_and(|own| matches(name, own)),
                (None, None) => has_tags(tags, term.tags.as_ref()),
            })
        };
        let mut found: Vec<_> =
            self.groups.iter().filter(|(group, tags)| is_selected(group, tags)).map(|(it, _)| it.clone()).collect();
        found.sort_by(|a, b| a.id.cmp(&b.id));
        found
    }

    /// Newest first. Of images for the same machines one is taken: the newest, then by name (sheet 05 §5).
    pub(super) fn images(&self, spec: &Ec2NodeClassSpec) -> Vec<Ami> {
        let mut found: BTreeMap<String, (&Image, Vec<Requirement>)> = BTreeMap::new();
        for term in &spec.ami_selector_terms {
            for image in self.images.iter().filter(|image| image.is_selected_by(term)) {
                let requirements = image.requirements(term.alias.is_some());
                let key = format!("{requirements:?}");
                let known = found.entry(key).or_insert_with(|| (image, requirements.clone()));
                if (known.0.created, &known.0.name) < (image.created, &image.name) {
                    *known = (image, requirements);
                }
            }
        }
        let mut found: Vec<_> = found.into_values().collect();
        found.sort_by_key(|(image, _)| (Reverse(image.created), image.id.clone()));
        let ami = |(image, requirements): (&Image, _)| Ami {
            deprecated: None,
            id: image.id.clone(),
            name: Some(image.name.clone()),
            requirements,
        };
        found.into_iter().map(ami).collect()
    }
}

impl Image {
    fn of_release((minor, patch, day): (u32, u32, u32)) -> Vec<Self> {
        let image = |family, variant, arch, order, short: &str, name: String| Self {
            id: format!("ami-{family}k1{minor}{short}"),
            name,
            family,
            release: minor,
            arch,
            variant,
            created: (day, order),
            kubelet: format!("v1.{minor}.{patch}"),
        };
        let (standard, nvidia) = (Variant::Standard, Variant::Nvidia);
        let bottle = |arch: &str| format!("bottlerocket-aws-k8s-1.{minor}-{arch}-v1.{minor}.0");
        let al2023 = |kind: &str| format!("amazon-eks-node-al2023-{kind}-1.{minor}-v{day}");
        let mut images = vec![
            image("bottlerocket", standard, "amd64", 0, "amd64", bottle("x86_64")),
            image("bottlerocket", standard, "arm64", 0, "arm64", bottle("aarch64")),
            image("al2023", nvidia, "amd64", 1, "nvidia", al2023("x86_64-nvidia")),
            image("al2023", standard, "amd64", 2, "amd64", al2023("x86_64-standard")),
            image("al2023", standard, "arm64", 2, "arm64", al2023("arm64-standard")),
        ];
        if minor <= LAST_OF_AL2 {
            let al2 = |kind: &str| format!("amazon-eks-{kind}-1.{minor}-v{day}");
            images.push(image("al2", standard, "amd64", 3, "amd64", al2("node")));
            images.push(image("al2", standard, "arm64", 3, "arm64", al2("arm64-node")));
        }
        images
    }

    fn is_selected_by(&self, term: &AmiSelectorTerm) -> bool {
        if let Some(id) = &term.id {
            return *id == self.id;
        }
        if let Some(alias) = &term.alias {
            let Some((family, version)) = alias.split_once('@') else { return false };
            let is_version = version == "latest" || self.name.ends_with(version);
            return family == self.family && self.release == CLUSTER_RELEASE && is_version;
        }
        let is_owner = term.owner.as_deref().is_none_or(|owner| owner == "amazon");
        let is_named = term.name.as_ref().is_none_or(|pattern| matches(pattern, &self.name));
        let own = BTreeMap::from([("Name", self.name.clone())]);
        let selects = term.name.is_some() || term.tags.is_some();
        selects && is_owner && is_named && term.tags.as_ref().is_none_or(|tags| has_tags(&own, Some(tags)))
    }

    /// Only an alias tells what kind of machine an image is for.
    fn requirements(&self, by_alias: bool) -> Vec<Requirement> {
        let requirement = |key: &str, operator: &str, values: Option<&str>| Requirement {
            key: key.to_owned(),
            min_values: None,
            operator: operator.to_owned(),
            values: values.map(|value| vec![value.to_owned()]),
        };
        let mut requirements = vec![requirement(ARCH, "In", Some(self.arch))];
        match (by_alias, self.variant) {
            (false, _) => {}
            (true, Variant::Standard) => {
                requirements.push(requirement(GPU_COUNT, "DoesNotExist", None));
                requirements.push(requirement(ACCELERATOR_COUNT, "DoesNotExist", None));
            }
            (true, Variant::Nvidia) => requirements.push(requirement(GPU_COUNT, "Exists", None)),
        }
        requirements
    }
}

fn tags<'a>(tags: impl IntoIterator<Item = (&'static str, &'a str)>) -> Tags {
    tags.into_iter().map(|(key, value)| (key, value.to_owned())).collect()
}

/// All that are asked for; none are asked for by a term without tags, which selects nothing.
fn has_tags(own: &Tags, wanted: Option<&BTreeMap<String, String>>) -> bool {
    let Some(wanted) = wanted else { return false };
    wanted.iter().all(|(key, pattern)| own.get(key.as_str()).is_some_and(|value| matches(pattern, value)))
}

/// EC2's wildcards: `*` for any text, `?` for a letter.
fn matches(pattern: &str, text: &str) -> bool {
    let mut rest = pattern.chars();
    match rest.next() {
        None => text.is_empty(),
        Some('*') => {
            let tails = text.char_indices().map(|(at, _)| &text[at..]).chain([""]);
            tails.into_iter().any(|tail| matches(rest.as_str(), tail))
        }
        Some(letter) => {
            let mut letters = text.chars();
            letters.next().is_some_and(|own| letter == '?' || letter == own) && matches(rest.as_str(), letters.as_str())
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn images(terms: &Value) -> Vec<String> {
        let account = Account::in_zones_of(&[]);
        let spec = json!({
            "amiSelectorTerms": terms, "role": "r", "subnetSelectorTerms": [], "securityGroupSelectorTerms": [],
        });
        let spec = Ec2NodeClassSpec {
            ami_selector_terms: serde_json::from_value(spec["amiSelectorTerms"].clone()).unwrap(),
            ..Ec2NodeClassSpec::default()
        };
        account.images(&spec).into_iter().map(|image| image.id).collect()
    }

    #[test]
    fn terms_select_images_as_on_ec2() {
        let of_1_27 = ["ami-al2k127amd64", "ami-al2k127arm64"];
        assert_eq!(images(&json!([{"name": "*-1.27-*"}])), of_1_27);
        assert_eq!(
            images(&json!([{"name": "*-1.27-*", "owner": "self"}, {"name": "*-1.27-*", "owner": "amazon"}])),
            of_1_27
        );
        assert_eq!(images(&json!([{"name": "*-1.27-*", "owner": "self"}])), Vec::<String>::new());
        assert_eq!(images(&json!([{"id": "ami-al2023k130arm64"}])), ["ami-al2023k130arm64"]);
        assert_eq!(
            images(&json!([{"alias": "al2023@latest"}])),
            ["ami-al2023k136amd64", "ami-al2023k136arm64", "ami-al2023k136nvidia"],
        );
        assert_eq!(images(&json!([{"alias": "al2023@v20200101"}])), Vec::<String>::new());
        assert_eq!(images(&json!([{"alias": "al2@latest"}])), Vec::<String>::new());
    }

    #[test]
    fn wildcards_stand_for_any_text() {
        for (pattern, text, expected) in [
            ("*-1.27-*", "amazon-eks-node-1.27-v2023", true),
            ("*-1.27-*", "amazon-eks-node-1.28-v2023", false),
            ("*", "", true),
            ("a?c", "abc", true),
            ("a?c", "ac", false),
            ("a*c*", "abcd", true),
            ("nodes", "nodes-2", false),
        ] {
            assert_eq!(matches(pattern, text), expected, "{pattern} {text}");
        }
    }
}
