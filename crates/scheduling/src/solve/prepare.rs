//! What stands before the first attempt: pools, hosts, groups and shapes, each compiled once.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use kerf_model::cluster::{ObjectName, Pod, PodConstraints};
use kerf_model::resources::ResourceName;
use kerf_model::snapshot::ClusterSnapshot;
use kerf_model::taint::{Effect, Taint};

use super::{Memo, Queued, Solver};
use crate::amounts::ResourceIndex;
use crate::daemons::Daemon;
use crate::existing::Survey;
use crate::intake::{check_pod, is_usable, opts_out};
use crate::problem::{PreferencePolicy, Problem};
use crate::refusal::{Feature, Overall, Unplaced};
use crate::shape::{Relaxing, Shape, ShapeKey};
use crate::template::Template;
use crate::topology::{Membership, OwnGroups, Topology};
use crate::volumes::VolumeNeeds;

impl<'a> Solver<'a> {
    pub(super) fn prepare(cluster: &'a ClusterSnapshot, problem: &'a Problem<'a>) -> Self {
        let rules = problem.rules;
        let daemons = Daemon::all(cluster, rules);
        let mut pools: Vec<_> = problem
            .types
            .iter()
            .filter_map(|(name, types)| {
                let stored = cluster.pool(name).filter(|pool| is_usable(pool))?;
                Some((stored.as_ref(), stored.spec.as_ref().ok()?, types))
            })
            .collect();
        pools.sort_by_key(|(_, pool, _)| Reverse((pool.weight, Arc::clone(&pool.name))));
        let asked = problem.pods.iter().map(|pod| &pod.requests).chain(daemons.iter().map(Daemon::requests));
        let index = ResourceIndex::of(asked.chain(pools.iter().map(|(_, pool, _)| &pool.limits)));
        let templates: Vec<_> = pools
            .iter()
            .map(|(stored, pool, types)| Template::compile((stored, pool), types, &daemons, &index, rules))
            .collect();
        let survey = Survey {
            cluster,
            excluded: &problem.excluded,
            templates: &templates,
            daemons: &daemons,
            index: &index,
            rules,
            with_volumes: problem.pods.iter().any(|pod| !pod.volumes.is_empty()),
        };
        let (hosts, usages) = survey.hosts();
        let mut left: Vec<_> = templates.iter().map(|template| index.bounds(&template.pool.limits)).collect();
        for usage in usages {
            if let Some(at) = templates.iter().position(|template| template.pool.name == usage.pool) {
                left[at].take_bounded(&usage.capacity);
            }
        }
        Self {
            cluster,
            problem,
            rules,
            options: problem.options,
            index,
            templates,
            left,
            hosts,
            shapes: Vec::new(),
            memos: Vec::new(),
            claims: Vec::new(),
            by_pods: BTreeSet::new(),
            topology: Topology::default(),
            placed: 0,
            unplaced: Vec::new(),
        }
    }

    /// Turns away what cannot be tried, and gives the others their shapes, the largest pod first.
    pub(super) fn admit(&mut self) -> VecDeque<Queued> {
        let mut admitted = Vec::new();
        for pod in &self.problem.pods {
            match self.examine(pod) {
                Ok(volumes) => admitted.push((Arc::clone(pod), volumes)),
                Err(overall) => self.unplaced.push((Arc::clone(pod), Arc::new(Unplaced::overall(overall)))),
            }
        }
        let order = |pod: &Pod| {
            let amount = |name: ResourceName| Reverse(pod.requests.amount(name.as_str()));
            (amount(ResourceName::CPU), amount(ResourceName::MEMORY), pod.meta.created, Arc::clone(&pod.meta.uid))
        };
        admitted.sort_by_cached_key(|(pod, _)| order(pod));
        admitted.dedup_by(|(a, _), (b, _)| a.meta.name == b.meta.name);
        let own = self.build_topology(&admitted);
        self.give_shapes(admitted, &own)
    }

    fn examine(&self, pod: &Pod) -> Result<VolumeNeeds, Overall> {
        // A pod that runs was found fit once; only what waits is examined.
        if pod.node_name.is_none() {
            if opts_out(pod) {
                return Err(Overall::OptedOut);
            }
            check_pod(pod, self.rules).map_err(Overall::Invalid)?;
        }
        if pod.uses_resource_claims {
            return Err(Overall::NotSupportedYet(Feature::ResourceClaims));
        }
        VolumeNeeds::of(pod, self.cluster, self.rules).map_err(Overall::Invalid)
    }

    fn build_topology(
        &mut self,
        pods: &[(Arc<Pod>, VolumeNeeds)],
    ) -> BTreeMap<(Arc<PodConstraints>, Arc<str>), OwnGroups> {
        let with_preferences = self.options.preferences == PreferencePolicy::Respect;
        let mut own = BTreeMap::new();
        for (pod, _) in pods.iter().filter(|(pod, _)| has_rules(&pod.constraints)) {
            let namespace = &pod.meta.name.namespace;
            let topology = &mut self.topology;
            own.entry((Arc::clone(&pod.constraints), Arc::clone(namespace)))
                .or_insert_with(|| topology.register(&pod.constraints, namespace, self.rules, with_preferences));
        }
        let batch: BTreeSet<&ObjectName> = self.problem.pods.iter().map(|pod| &pod.meta.name).collect();
        self.topology.count_running(self.cluster, &batch, self.rules);
        self.topology.open_domains(&self.templates, &self.hosts);
        own
    }

    fn give_shapes(
        &mut self,
        pods: Vec<(Arc<Pod>, VolumeNeeds)>,
        own: &BTreeMap<(Arc<PodConstraints>, Arc<str>), OwnGroups>,
    ) -> VecDeque<Queued> {
        let is_soft = |taint: &Taint| taint.effect == Effect::PreferNoSchedule;
        let relaxing = Relaxing {
            with_preferences: self.options.preferences == PreferencePolicy::Respect,
            with_soft_taints: self.templates.iter().any(|template| template.pool.node.taints.iter().any(is_soft))
                || self.hosts.iter().any(|host| host.taints.iter().any(is_soft)),
        };
        let none = OwnGroups::default();
        let mut known: BTreeMap<ShapeKey, usize> = BTreeMap::new();
        let mut queue = VecDeque::with_capacity(pods.len());
        for (pod, volumes) in pods {
            let membership = match self.topology.is_empty() {
                true => Membership::default(),
                false => self.topology.membership(&pod, self.cluster),
            };
            let namespace = has_rules(&pod.constraints).then(|| Arc::clone(&pod.meta.name.namespace));
            let key = ShapeKey {
                requests: self.index.amounts(&pod.requests),
                constraints: Arc::clone(&pod.constraints),
                namespace: namespace.clone(),
                membership,
                volumes,
            };
            let shapes = &mut self.shapes;
            let at = *known.entry(key).or_insert_with_key(|key| {
                let own = namespace.and_then(|namespace| own.get(&(Arc::clone(&pod.constraints), namespace)));
                let own = own.unwrap_or(&none);
                shapes.push(Shape::compile(key.clone(), pod.requests.clone(), own, relaxing, self.rules));
                shapes.len() - 1
            });
            queue.push_back((pod, at));
        }
        self.memos = self.shapes.iter().map(|shape| shape.levels.iter().map(|_| Memo::default()).collect()).collect();
        queue
    }
}

fn has_rules(constraints: &PodConstraints) -> bool {
    let PodConstraints { spread, required_affinity, preferred_affinity, .. } = constraints;
    let PodConstraints { required_anti_affinity, preferred_anti_affinity, .. } = constraints;
    !(spread.is_empty()
        && required_affinity.is_empty()
        && preferred_affinity.is_empty()
        && required_anti_affinity.is_empty()
        && preferred_anti_affinity.is_empty())
}
