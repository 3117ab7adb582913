//! A cluster and what can be launched, compiled once for many questions.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use kerf_model::cluster::{Pod, PodConstraints};
use kerf_model::requirement::Requirements;
use kerf_model::snapshot::ClusterSnapshot;
use kerf_model::taint::{Effect, Taint};

use crate::amounts::{Amounts, Lists, ResourceIndex};
use crate::bits::Bits;
use crate::daemons::Daemon;
use crate::departure::{Departed, Departure};
use crate::existing::{Hosts, Survey};
use crate::intake::is_usable;
use crate::known::{Compiling, Known};
use crate::problem::{PreferencePolicy, Question, Supply};
use crate::reservation::Reservations;
use crate::schedule::Schedule;
use crate::sets::Sets;
use crate::shape::Relaxing;
use crate::solve::answer;
use crate::template::{Compiler, Template};
use crate::topology::{Memberships, Topology, origin};

/// Many what-ifs share one of these, also from several threads. None of them changes it: each works on small arrays of
/// its own and on differences.
pub struct Prepared<'a> {
    base: Base<'a>,
    departures: Vec<Departure>,
    departed: Departed,
    /// The last set of closed hosts that was asked with, as numbers: it is the same for every what-if of a round.
    closed: Mutex<Option<(Names, Arc<Bits>)>>,
}

type Names = Arc<BTreeSet<Arc<str>>>;

/// What is the same for every question.
pub(crate) struct Base<'a> {
    pub(crate) cluster: &'a ClusterSnapshot,
    pub(crate) supply: Supply<'a>,
    pub(crate) index: ResourceIndex,
    pub(crate) sets: Sets<'static>,
    /// In the order in which pools are tried.
    pub(crate) templates: Vec<Template<'a>>,
    pub(crate) reservations: Reservations,
    /// What each pool's limits leave.
    pub(crate) left: Vec<Amounts>,
    pub(crate) hosts: Hosts<'a>,
    /// The most that any of the hosts of a block has left, block by block, resource by resource.
    pub(crate) blocks: Vec<i64>,
    pub(crate) topology: Topology,
    pub(crate) known: Known<'a>,
    pub(crate) relaxing: Relaxing,
    /// Whether more than one question is asked of it.
    pub(crate) is_shared: bool,
}

/// Hosts of a block are passed over together when none has room: as many as a word has bits.
pub(crate) const BLOCK: usize = 64;

/// With so many pods to compile, those that run are counted by another thread meanwhile: that is some milliseconds of
/// work, and starting a thread a hundredth of that.
const WORTH_A_THREAD: usize = 10_000;

impl<'a> Prepared<'a> {
    /// Ready for questions about any pods of the cluster. O(pods + nodes + types), with logarithms.
    pub fn new(cluster: &'a ClusterSnapshot, supply: Supply<'a>) -> Self {
        let asked = cluster.pods().filter(|pod| !pod.is_terminal() && !pod.is_of_daemon_set() && !pod.is_mirror());
        let base = Base { is_shared: true, ..Base::build(cluster, supply, &asked.collect::<Vec<_>>()) };
        Self { base, departures: Vec::new(), departed: Departed::default(), closed: Mutex::new(None) }
    }

    /// From now on questions are about the cluster as it will be once these hosts have gone.
    ///
    /// O(hosts + pods that move), with logarithms; no question pays for it.
    pub fn depart(&mut self, departure: Departure) {
        self.departed.add(&departure, &self.base);
        self.departures.push(departure);
    }

    /// Finds a place for every pod of the question, or the reason why there is none.
    pub fn solve(&self, question: &Question) -> Schedule {
        if question.pods.iter().all(|pod| self.base.knows(pod)) {
            return answer(&self.base, &self.departed, question, &self.closed_hosts(question));
        }
        // Pods that the cluster does not have, with rules or resources of their own.
        for_question(self.base.cluster, self.base.supply, &self.departures, question)
    }

    fn closed_hosts(&self, question: &Question) -> Arc<Bits> {
        let mut last = self.closed.lock().unwrap_or_else(PoisonError::into_inner);
        match &*last {
            Some((names, closed)) if Arc::ptr_eq(names, &question.closed_to_moves) => Arc::clone(closed),
            Some(_) | None => {
                let closed = Arc::new(self.base.numbers(&question.closed_to_moves));
                *last = Some((Arc::clone(&question.closed_to_moves), Arc::clone(&closed)));
                closed
            }
        }
    }
}

/// Compiles only what the question needs, and answers it.
pub(crate) fn for_question<'q>(
    cluster: &'q ClusterSnapshot,
    supply: Supply<'q>,
    departures: &[Departure],
    question: &'q Question,
) -> Schedule {
    let base = Base::build(cluster, supply, &question.pods.iter().collect::<Vec<_>>());
    let mut departed = Departed::default();
    departures.iter().for_each(|departure| departed.add(departure, &base));
    let closed = base.numbers(&question.closed_to_moves);
    answer(&base, &departed, question, &closed)
}

impl<'a> Base<'a> {
    /// For questions about the pods `asked`.
    fn build(cluster: &'a ClusterSnapshot, supply: Supply<'a>, asked: &[&'a Arc<Pod>]) -> Self {
        let Supply { types, rules, options } = supply;
        let daemons = Daemon::all(cluster, rules);
        let mut pools: Vec<_> = types
            .iter()
            .filter_map(|(name, types)| {
                let stored = cluster.pool(name).filter(|pool| is_usable(pool))?;
                Some((stored.as_ref(), stored.spec.as_ref().ok()?, types))
            })
            .collect();
        pools.sort_by_key(|(_, pool, _)| Reverse((pool.weight, Arc::clone(&pool.name))));

        let mut running = Lists::default();
        let mut requests: BTreeMap<&Arc<str>, Vec<usize>> = BTreeMap::new();
        for node in cluster.nodes() {
            let pods = cluster.pods_on(node.name()).filter(|pod| !pod.is_terminal());
            let own: Vec<_> = pods.map(|pod| running.intern(&pod.requests)).collect();
            if !own.is_empty() {
                requests.insert(node.name(), own);
            }
        }
        let mut lists = Lists::default();
        for pod in asked {
            lists.intern(&pod.requests);
        }
        let named = lists.lists.iter().copied().chain(running.lists.iter().copied());
        let named =
            named.chain(daemons.iter().map(Daemon::requests)).chain(pools.iter().map(|(_, pool, _)| &pool.limits));
        let kinds = || pools.iter().flat_map(|(_, _, types)| types.iter());
        let overrides = kinds().flat_map(|kind| &kind.offerings).filter_map(|offering| offering.overrides.as_deref());
        let capacities = kinds().map(|kind| &kind.capacity).chain(overrides.map(|own| &own.capacity));
        let offered = capacities.chain(cluster.nodes().flat_map(|node| [&node.allocatable, &node.capacity]));
        let index = ResourceIndex::of(named, offered);
        let amounts: Vec<_> = running.lists.iter().map(|list| index.asked(list)).collect();

        let (mut sets, mut reservations) = (Sets::new(), Reservations::default());
        let mut compiler =
            Compiler { daemons: &daemons, index: &index, sets: &mut sets, reservations: &mut reservations, rules };
        let mut templates: Vec<_> =
            pools.iter().map(|(stored, pool, types)| compiler.compile((stored, pool), types)).collect();
        templates.iter_mut().for_each(Template::link_offers);

        let survey = Survey {
            cluster,
            templates: &templates,
            daemons: &daemons,
            index: &index,
            requests: &requests,
            amounts: &amounts,
            rules,
        };
        let hosts = survey.hosts();
        let mut left: Vec<_> = templates.iter().map(|template| index.bounds(&template.pool.limits)).collect();
        for (template, capacity) in hosts.all.iter().filter_map(|host| host.usage.as_ref()) {
            left[*template].take_bounded(capacity);
        }
        let is_soft = |taint: &Taint| taint.effect == Effect::PreferNoSchedule;
        let has_soft_taints = templates.iter().any(|template| template.pool.node.taints.iter().any(is_soft))
            || hosts.classes.iter().any(|class| class.taints.iter().any(is_soft));
        let with_preferences = options.preferences == PreferencePolicy::Respect;
        let relaxing = Relaxing { with_preferences, with_soft_taints: has_soft_taints };
        let mut topology = build_topology(cluster, supply, asked, (&templates, &hosts, &mut sets), with_preferences);
        let blocks = block_maxima(&hosts.rooms, index.len());
        let mut memberships = Memberships::default();
        let count = |memberships: &mut Memberships<'a>| topology.running(cluster, &hosts, memberships, rules);
        let mut compile = |memberships: &mut Memberships<'a>| {
            let (topology, hosts, sets) = (&topology, &hosts, &mut sets);
            let mut compiling = Compiling { cluster, topology, hosts, memberships, sets, relaxing, rules };
            Known::of(asked, &mut lists, &mut compiling)
        };
        let (running, mut known) = if asked.len() < WORTH_A_THREAD || topology.is_empty() {
            (count(&mut memberships), compile(&mut memberships))
        } else {
            thread::scope(|scope| {
                let running = scope.spawn(|| count(&mut Memberships::default()));
                let known = compile(&mut memberships);
                // A panic there is a panic here.
                (running.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)), known)
            })
        };
        topology.set_running(running);
        known.requests = lists.lists.iter().map(|list| index.asked(list)).collect();
        known.lists = lists.lists;
        let is_shared = false;
        Self {
            cluster,
            supply,
            index,
            sets,
            templates,
            reservations,
            left,
            hosts,
            blocks,
            topology,
            known,
            relaxing,
            is_shared,
        }
    }

    /// Whether a pod can be asked about: its rules about other pods and its resources were seen.
    fn knows(&self, pod: &Arc<Pod>) -> bool {
        self.known.pod(pod).is_some()
            || self.index.knows(&pod.requests)
                && (!has_rules(&pod.constraints)
                    || self.topology.own_groups(&pod.constraints, &pod.meta.name.namespace).is_some())
    }

    /// What is left on a host.
    pub(crate) fn room(&self, at: usize) -> &[i64] {
        let resources = self.index.len();
        &self.hosts.rooms[at * resources..(at + 1) * resources]
    }

    fn numbers(&self, names: &BTreeSet<Arc<str>>) -> Bits {
        Bits::of(self.hosts.len(), names.iter().filter_map(|name| self.hosts.find(name)))
    }
}

type Compiled<'s, 'a> = (&'s [Template<'a>], &'s Hosts<'a>, &'s mut Sets<'static>);

fn build_topology<'a>(
    cluster: &'a ClusterSnapshot,
    supply: Supply<'a>,
    asked: &[&Arc<Pod>],
    (templates, hosts, sets): Compiled<'_, 'a>,
    with_preferences: bool,
) -> Topology {
    let rules = supply.rules;
    let mut topology = Topology::default();
    let mut seen = BTreeSet::new();
    for pod in asked.iter().filter(|pod| has_rules(&pod.constraints) && seen.insert(origin(pod))) {
        topology.register(&pod.constraints, &pod.meta.name.namespace, rules, with_preferences);
    }
    topology.announce_running(cluster, rules);
    if topology.is_empty() {
        return topology;
    }
    let own: Vec<_> = templates.iter().map(|template| Arc::clone(sets.get(template.set))).collect();
    let reaches = |at: usize, term: &Requirements, pin: &kerf_model::requirement::Requirement| {
        let template = &templates[at];
        let term = sets.intern(term.clone());
        let Some(narrowed) = sets.narrow(template.set, term, rules) else { return false };
        let mut pinned = Requirements::clone(sets.get(narrowed));
        pinned.narrow(pin.clone());
        !template.select(&pinned, |_| 1).types.is_empty()
    };
    let named = |at: usize, key: &str| templates[at].named_values(key, &own[at]).into_iter().cloned().collect();
    topology.open_domains(cluster, hosts, templates, reaches, named);
    topology
}

fn block_maxima(rooms: &[i64], resources: usize) -> Vec<i64> {
    let mut blocks = Vec::new();
    for block in rooms.chunks(BLOCK * resources.max(1)) {
        let most = |id: usize| block.iter().skip(id).step_by(resources).copied().max().unwrap_or(i64::MIN);
        blocks.extend((0..resources).map(most));
    }
    blocks
}

pub(crate) fn has_rules(constraints: &PodConstraints) -> bool {
    let PodConstraints { spread, required_affinity, preferred_affinity, .. } = constraints;
    let PodConstraints { required_anti_affinity, preferred_anti_affinity, .. } = constraints;
    !(spread.is_empty()
        && required_affinity.is_empty()
        && preferred_affinity.is_empty()
        && required_anti_affinity.is_empty()
        && preferred_anti_affinity.is_empty())
}
