//! Which instance type and offering a claim gets, where that is the provider's choice.
//!
//! The cheapest offering that can be had, meets the claim and has room for its requests. Types of the same price:
//! the first of the catalogue. Offerings of the same price (zones, mostly): spread over claims, but always the same for
//! one claim, so that a launch repeated after a crash chooses what it chose before.

use std::sync::Arc;

use kerf_model::cloud::LaunchError;
use kerf_model::cluster::{InstanceType, NodeClaim, Offering, Texts};
use kerf_model::label::{ARCH, CAPACITY_TYPE, INSTANCE_TYPE, LabelRules, OS, ZONE};
use kerf_model::requirement::{Operator, Requirement, Requirements};
use kerf_model::resources::ResourceList;

use crate::fingerprint::fingerprint;

/// What to launch for a claim.
#[derive(Debug, Clone)]
pub struct Choice<'a> {
    pub instance_type: &'a InstanceType,
    pub offering: &'a Offering,
    /// What claim, type and offering ask together.
    pub requirements: Requirements,
}

/// Labels of a claim that has been launched before; the same instance has them again.
const CHOSEN_BEFORE: [&str; 3] = [INSTANCE_TYPE, ZONE, CAPACITY_TYPE];

/// # Errors
/// Nothing in the catalogue meets the claim now.
pub fn choose<'a>(types: &'a [InstanceType], claim: &NodeClaim) -> Result<Choice<'a>, LaunchError> {
    let wanted = wanted(claim);
    let mut obstacle = Obstacle::Requirements;
    let mut best: Option<(&InstanceType, Vec<&Offering>)> = None;
    for instance_type in types {
        if instance_type.requirements.intersects(&wanted).is_err() {
            continue;
        }
        let has_room = claim.requests.fits(&instance_type.allocatable());
        let is_roomy = |offering: &Offering| match offering.overrides.as_deref() {
            None => has_room,
            Some(own) => claim.requests.fits(&instance_type.allocatable_with(Some(own))),
        };
        if !has_room && !instance_type.offerings.iter().any(is_roomy) {
            obstacle = obstacle.max(Obstacle::Size);
            continue;
        }
        obstacle = Obstacle::Offerings;
        let cheapest = cheapest_offerings(instance_type, &wanted, is_roomy);
        let price = |offerings: &[&Offering]| offerings.first().map(|offering| offering.price);
        let cheaper = match (price(&cheapest), best.as_ref().and_then(|(_, offerings)| price(offerings))) {
            (None, _) => false,
            (Some(_), None) => true,
            (Some(price), Some(best)) => price < best,
        };
        if cheaper {
            best = Some((instance_type, cheapest));
        }
    }
    let chosen = best.and_then(|(kind, offerings)| Some((kind, spread(&offerings, claim)?)));
    let (instance_type, offering) = chosen.ok_or_else(|| obstacle.into_error(claim))?;
    let mut requirements = wanted;
    requirements.merge(&instance_type.requirements);
    requirements.merge(&offering.requirements);
    settle(&mut requirements);
    Ok(Choice { instance_type, offering, requirements })
}

impl Choice<'_> {
    /// Of the instance.
    pub fn capacity(&self) -> ResourceList {
        self.instance_type.capacity_with(self.offering.overrides.as_deref())
    }

    /// What pods can use of it.
    pub fn allocatable(&self) -> ResourceList {
        self.instance_type.allocatable_with(self.offering.overrides.as_deref())
    }

    /// The labels that are settled: those with exactly one possible value.
    pub fn labels(&self) -> Texts {
        let settled = self.requirements.iter().filter(|requirement| requirement.operator() == Operator::In);
        let single = settled.filter_map(|requirement| match requirement.values() {
            [value] => Some((requirement.key().clone(), value.clone())),
            _ => None,
        });
        single.collect()
    }
}

fn wanted(claim: &NodeClaim) -> Requirements {
    let mut wanted = claim.node.requirements.clone();
    let rules = LabelRules::core();
    for key in CHOSEN_BEFORE {
        if let Some(value) = claim.meta.label(key) {
            wanted.add(Requirement::one_of(key, [value]), &rules);
        }
    }
    wanted
}

/// A machine that can run several systems runs one.
fn settle(requirements: &mut Requirements) {
    for (key, usual) in [(ARCH, "amd64"), (OS, "linux")] {
        let open = requirements.get(key).filter(|requirement| requirement.count().is_some_and(|count| count > 1));
        if let Some(open) = open {
            let value = if open.has(usual) { Some(Arc::from(usual)) } else { open.any() };
            requirements.add(Requirement::one_of(key, value), &LabelRules::core());
        }
    }
}

/// All of the lowest price, in order; none if nothing of the type can be had.
fn cheapest_offerings<'a>(
    instance_type: &'a InstanceType,
    wanted: &Requirements,
    is_roomy: impl Fn(&Offering) -> bool,
) -> Vec<&'a Offering> {
    let possible = |offering: &&Offering| {
        offering.is_launchable() && is_roomy(offering) && offering.requirements.intersects(wanted).is_ok()
    };
    let possible = || instance_type.offerings.iter().filter(possible);
    let lowest = possible().map(|offering| offering.price).min();
    possible().filter(|offering| Some(offering.price) == lowest).collect()
}

fn spread<'a>(offerings: &[&'a Offering], claim: &NodeClaim) -> Option<&'a Offering> {
    let count = u64::try_from(offerings.len()).ok()?;
    let index = fingerprint(&claim.meta.uid).checked_rem(count)?;
    offerings.get(usize::try_from(index).ok()?).copied()
}

/// How far the best candidate came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Obstacle {
    Requirements,
    Size,
    Offerings,
}

impl Obstacle {
    fn into_error(self, claim: &NodeClaim) -> LaunchError {
        let message = match self {
            Self::Requirements => format!("no instance type meets {}", claim.node.requirements),
            Self::Size => format!("no instance type that meets the requirements has room for {}", claim.requests),
            Self::Offerings => format!("nothing on offer meets {}", claim.node.requirements),
        };
        LaunchError::InsufficientCapacity { message: message.into() }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use kerf_model::cluster::Overrides;
    use kerf_model::node_pool::NodeClassRef;
    use kerf_model::requirement::Expression;
    use kerf_model::resources::ResourceName;

    use super::*;
    use crate::catalogue::Catalogue;
    use crate::contract;

    /// Each word of `wanted` is `key=value,value`, with the keys of these tests shortened.
    fn claim(name: &str, wanted: &str) -> NodeClaim {
        let class = NodeClassRef { group: Arc::from("g"), kind: Arc::from("K"), name: Arc::from("default") };
        let expressions: Vec<_> = wanted
            .split_whitespace()
            .map(|word| {
                let (key, values) = word.split_once('=').unwrap();
                let key = match key {
                    "type" => INSTANCE_TYPE,
                    "zone" => ZONE,
                    "capacity" => CAPACITY_TYPE,
                    "os" => OS,
                    other => other,
                };
                Expression::new(key, Operator::In, values.split(','))
            })
            .collect();
        let requirements = Requirements::parse(&expressions, &LabelRules::core()).unwrap();
        contract::claim(name, &class, requirements)
    }

    fn shown(choice: &Choice<'_>) -> String {
        let labels = choice.labels();
        format!("{} {} {}", labels[INSTANCE_TYPE], labels[CAPACITY_TYPE], choice.offering.price)
    }

    fn check(wanted: &str, expected: &str) {
        let catalogue = Catalogue::kwok();
        let answer = choose(catalogue.types(), &claim("a", wanted));
        assert_eq!(answer.map_or_else(|error| error.to_string(), |choice| shown(&choice)), expected, "{wanted}");
    }

    /// Sheet 04, case 70.
    #[test]
    fn of_types_of_one_price_the_first_is_taken() {
        check("type=c-16x-arm64-linux,c-16x-amd64-linux capacity=on-demand", "c-16x-amd64-linux on-demand 0.43436");
    }

    #[test]
    fn the_cheapest_offering_that_meets_the_claim_is_taken() {
        check("", "c-1x-amd64-linux spot 0.019003");
        check("capacity=on-demand", "c-1x-amd64-linux on-demand 0.027147");
        check("type=s-4x-amd64-linux,c-8x-amd64-linux zone=test-zone-c", "s-4x-amd64-linux spot 0.082026");
    }

    /// Sheet 04, "Where to do better" 15: upstream looks at zone and capacity type only.
    #[test]
    fn architecture_system_and_size_count_too() {
        check("kubernetes.io/arch=arm64 os=windows capacity=on-demand", "c-1x-arm64-windows on-demand 0.027147");
        check("karpenter.kwok.sh/instance-size=4 capacity=on-demand", "c-4x-amd64-linux on-demand 0.10859");
    }

    #[test]
    fn the_type_has_room_for_the_requests() {
        let mut claim = claim("a", "capacity=on-demand");
        claim.requests = [(ResourceName::CPU, "2".parse().unwrap())].into_iter().collect();
        assert_eq!(shown(&choose(Catalogue::kwok().types(), &claim).unwrap()), "c-4x-amd64-linux on-demand 0.10859");
    }

    /// Upstream dereferences nothing here.
    #[test]
    fn a_claim_that_nothing_meets_is_short_of_capacity() {
        check("type=no-such", "no capacity: no instance type meets node.kubernetes.io/instance-type In [no-such]");
        check("zone=moon", "no capacity: no instance type meets topology.kubernetes.io/zone In [moon]");
        let mut big = claim("a", "type=c-1x-amd64-linux");
        big.requests = [(ResourceName::CPU, "1".parse().unwrap())].into_iter().collect();
        let error = choose(Catalogue::kwok().types(), &big).unwrap_err();
        assert_eq!(error.to_string(), "no capacity: no instance type that meets the requirements has room for cpu=1");
    }

    #[test]
    fn an_offering_that_is_sold_out_is_not_taken() {
        let mut kind = Catalogue::kwok().get("c-1x-amd64-linux").unwrap().clone();
        for offering in &mut kind.offerings {
            offering.available = offering.requirements.get(CAPACITY_TYPE).unwrap().has("on-demand");
        }
        let types = [kind];
        assert_eq!(shown(&choose(&types, &claim("a", "")).unwrap()), "c-1x-amd64-linux on-demand 0.027147");
        let error = choose(&types, &claim("a", "capacity=spot")).unwrap_err();
        assert_eq!(error.to_string(), "no capacity: nothing on offer meets karpenter.sh/capacity-type In [spot]");
    }

    /// Sheet 02, case 22.
    #[test]
    fn an_offering_with_more_than_its_type_is_taken_for_what_only_it_has() {
        let mut kind = Catalogue::kwok().get("c-1x-amd64-linux").unwrap().clone();
        let list = |amount: &str| [(ResourceName::from("example.com/slice"), amount.parse().unwrap())].into_iter();
        let dear = kind.offerings.iter_mut().rfind(|own| own.requirements.get(CAPACITY_TYPE).unwrap().has("on-demand"));
        let own = Overrides { capacity: list("2").collect(), ..Overrides::default() };
        dear.unwrap().overrides = Some(Arc::new(own));
        let types = [kind];
        let mut claim = claim("a", "");
        assert_eq!(shown(&choose(&types, &claim).unwrap()), "c-1x-amd64-linux spot 0.019003");
        claim.requests = list("2").collect();
        let choice = choose(&types, &claim).unwrap();
        assert_eq!(shown(&choice), "c-1x-amd64-linux on-demand 0.027147");
        assert!(claim.requests.fits(&choice.allocatable()) && choice.allocatable().fits(&choice.capacity()));
        claim.requests = list("3").collect();
        assert!(choose(&types, &claim).is_err());
    }

    #[test]
    fn claims_are_spread_over_zones_and_each_keeps_its_own() {
        let catalogue = Catalogue::kwok();
        let zone = |claim: &NodeClaim| choose(catalogue.types(), claim).unwrap().labels()[ZONE].clone();
        let claims: Vec<_> = (0..40).map(|index| claim(&format!("claim-{index}"), "")).collect();
        let zones: BTreeSet<_> = claims.iter().map(zone).collect();
        assert_eq!(zones.len(), 4);
        assert_eq!(zone(&claims[0]), zone(&claims[0]));
        // Launched before, perhaps with another catalogue: its labels say where.
        for wanted in &zones {
            let mut claim = claims[0].clone();
            claim.meta.labels.insert(Arc::from(ZONE), wanted.clone());
            assert_eq!(zone(&claim), *wanted);
        }
    }

    #[test]
    fn a_machine_for_several_systems_runs_the_one_asked_for_or_the_usual() {
        let mut kind = Catalogue::kwok().get("c-1x-amd64-linux").unwrap().clone();
        let (rules, mut requirements) = (LabelRules::core(), Requirements::new());
        for requirement in kind.requirements.iter().filter(|requirement| &**requirement.key() != OS) {
            requirements.add(requirement.clone(), &rules);
        }
        requirements.add(Requirement::one_of(OS, ["beos", "linux", "windows"]), &rules);
        kind.requirements = requirements;
        let types = [kind];
        for (wanted, expected) in [("", "linux"), ("os=windows", "windows"), ("os=windows,beos", "beos")] {
            assert_eq!(&*choose(&types, &claim("a", wanted)).unwrap().labels()[OS], expected);
        }
    }

    #[test]
    fn labels_that_the_claim_settles_are_kept() {
        let catalogue = Catalogue::kwok();
        let choice = choose(catalogue.types(), &claim("a", "team=blue stage=a,b")).unwrap();
        let labels = choice.labels();
        assert_eq!(&*labels["team"], "blue");
        assert!(!labels.contains_key("stage"));
        assert_eq!(&*labels[OS], "linux");
    }
}
