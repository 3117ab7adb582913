//! A claim while it is filled, and what it becomes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kerf_model::cluster::{HostPort, Owner, Pod, Texts};
use kerf_model::label::{self, LabelRules, annotation};
use kerf_model::node_pool::NodeSpec;
use kerf_model::requirement::{Requirement, Requirements};
use kerf_model::resources::ResourceList;

use crate::amounts::{Amounts, sum};
use crate::problem::MinValuesPolicy;
use crate::refusal::Refusal;
use crate::schedule::{PlannedClaim, TypeOption};
use crate::template::{Template, class_label};
use crate::topology::GroupId;

/// Labels that stand in requirements only so that daemons and pods can be compared with them.
const NOT_WRITTEN: [&str; 3] = [label::HOSTNAME, label::REGISTERED, label::INITIALIZED];

/// A node to be launched, with room left.
pub(crate) struct OpenClaim {
    pub(crate) template: usize,
    /// Stands for the name that its node will have.
    pub(crate) hostname: Arc<str>,
    pub(crate) requirements: Requirements,
    /// Types that do for all its pods. Never empty.
    pub(crate) options: Vec<u32>,
    pub(crate) requests: Amounts,
    /// No option has more of anything.
    pub(crate) most_room: Amounts,
    pub(crate) ports: Vec<HostPort>,
    pub(crate) pods: Vec<Arc<Pod>>,
    /// Terms of shapes that the requirements include already: for the next pod alike there is nothing to merge.
    pub(crate) includes: BTreeSet<(usize, usize, usize)>,
    /// Pods to be counted in their groups once the claim is committed to a domain.
    pub(crate) uncommitted: BTreeMap<GroupId, u32>,
    pub(crate) min_values_relaxed: bool,
}

/// Proof that a pod can be added to a claim, and what the claim is then.
pub(crate) struct ClaimFit {
    /// `None` if they stay.
    pub(crate) requirements: Option<Requirements>,
    pub(crate) options: Vec<u32>,
    pub(crate) requests: Amounts,
}

/// A claim that came to nothing in the end.
pub(crate) struct NotMade {
    pub(crate) pods: Vec<Arc<Pod>>,
    pub(crate) refusal: Refusal,
}

impl OpenClaim {
    pub(crate) fn place(&mut self, pod: Arc<Pod>, ports: &[HostPort], fit: ClaimFit, template: &Template<'_>) {
        let ClaimFit { requirements, options, requests } = fit;
        if let Some(requirements) = requirements {
            self.requirements = requirements;
        }
        if options.len() != self.options.len() {
            self.options = options;
            self.most_room = most_room(template, &self.options).unwrap_or_else(|| self.most_room.clone());
        }
        self.requests = requests;
        self.ports.extend_from_slice(ports);
        self.pods.push(pod);
    }

    /// The claim as it is to be made, or why it cannot be.
    pub(crate) fn finish(
        self,
        template: &Template<'_>,
        max_types: usize,
        min_values: MinValuesPolicy,
        rules: &LabelRules,
    ) -> Result<PlannedClaim, Box<NotMade>> {
        let mut priced: Vec<_> = self
            .options
            .iter()
            .filter_map(|at| Some((template.price(template.types[*at as usize].kind, &self.requirements)?, *at)))
            .collect();
        priced.sort_by_key(|(price, at)| (*price, &template.types[*at as usize].kind.name));
        priced.truncate(max_types);
        let options: Vec<u32> = priced.iter().map(|(_, at)| *at).collect();
        if let (MinValuesPolicy::Strict, Some((key, wanted, found))) =
            (min_values, template.too_few_values(&options, &self.requirements))
        {
            return Err(Box::new(NotMade { pods: self.pods, refusal: Refusal::Truncated { key, wanted, found } }));
        }
        let requirements = self.written_requirements(template, &options, rules);
        let overhead = least_overhead(template, &options);
        let pool = template.pool;
        let node = NodeSpec { requirements, ..pool.node.clone() };
        let relaxed = if self.min_values_relaxed { "true" } else { "false" };
        let mut annotations = pool.annotations.clone();
        annotations.insert(Arc::from(annotation::MIN_VALUES_RELAXED), Arc::from(relaxed));
        Ok(PlannedClaim {
            pool: Arc::clone(&pool.name),
            owner: Owner {
                api_version: Arc::from("karpenter.sh/v1"),
                kind: Arc::from("NodePool"),
                name: Arc::clone(&pool.name),
                uid: Arc::clone(&template.stored.meta.uid),
                controller: false,
                blocks_deletion: true,
            },
            labels: self.labels(template, rules),
            annotations,
            node,
            options: priced
                .into_iter()
                .map(|(price, at)| TypeOption {
                    instance_type: Arc::clone(&template.types[at as usize].kind.name),
                    price,
                })
                .collect(),
            requests: sum(self.pods.iter().map(|pod| &pod.requests).chain([&overhead])),
            pods: self.pods,
            min_values_relaxed: self.min_values_relaxed,
        })
    }

    fn written_requirements(&self, template: &Template<'_>, options: &[u32], rules: &LabelRules) -> Requirements {
        let mut written = Requirements::new();
        for requirement in self.requirements.iter().filter(|own| !NOT_WRITTEN.contains(&&**own.key())) {
            written.add(requirement.clone(), rules);
        }
        let names = template.rows(options).map(|row| &row.kind.name);
        written.add(Requirement::one_of(label::INSTANCE_TYPE, names), rules);
        let offered = template.rows(options).flat_map(|row| template.launchable(row.kind, &self.requirements));
        let kinds = offered.filter_map(|offering| offering.requirements.get(label::CAPACITY_TYPE));
        let kinds: BTreeSet<_> = kinds.flat_map(Requirement::values).collect();
        if !kinds.is_empty() {
            written.add(Requirement::one_of(label::CAPACITY_TYPE, kinds), rules);
        }
        written
    }

    /// Those of the template, and a value for every label of the user's own that only a requirement names.
    fn labels(&self, template: &Template<'_>, rules: &LabelRules) -> Texts {
        let pool = template.pool;
        let mut labels = Texts::new();
        for requirement in self.requirements.iter() {
            let key = requirement.key();
            if !rules.is_well_known(key) && !NOT_WRITTEN.contains(&&**key) {
                labels.extend(requirement.any().map(|value| (Arc::clone(key), value)));
            }
        }
        labels.extend(pool.labels.clone());
        labels.insert(Arc::from(label::NODEPOOL), Arc::clone(&pool.name));
        labels.insert(Arc::from(class_label(&pool.node.class)), Arc::clone(&pool.node.class.name));
        labels
    }
}

/// What daemons take whichever of the options it will be.
fn least_overhead(template: &Template<'_>, options: &[u32]) -> ResourceList {
    let groups: BTreeSet<usize> = template.rows(options).map(|row| row.group).collect();
    let overheads = groups.into_iter().map(|group| template.groups[group].overhead.clone());
    overheads.reduce(|least, other| least.min(&other)).unwrap_or_default()
}

pub(crate) fn most_room(template: &Template<'_>, options: &[u32]) -> Option<Amounts> {
    let mut rooms = template.rows(options).map(|row| &row.room);
    let first = rooms.next()?.clone();
    Some(rooms.fold(first, |mut most, room| {
        most.raise_to(room);
        most
    }))
}

/// The requirements with only as many different values asked for as there are.
pub(crate) fn with_values_left(
    requirements: &Requirements,
    template: &Template<'_>,
    options: &[u32],
    rules: &LabelRules,
) -> Requirements {
    let mut relaxed = Requirements::new();
    for requirement in requirements.iter() {
        let left = requirement.min_values().map(|wanted| wanted.min(template.count_values(options, requirement)));
        relaxed.add(requirement.clone().with_min_values(left), rules);
    }
    relaxed
}
