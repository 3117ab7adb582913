//! A cluster and its pending pods as text, one object per line.
//!
//! ```text
//! type small cpu=2 memory=4Gi pods=10 price=0.10 zone=a,b kind=spot,on-demand label:size=s
//! pool general weight=5 limit:cpu=10 label:team=x require:zone=a,b taint:dedicated=x:NoSchedule
//! node n1 pool=general cpu=2 memory=4Gi label:zone=a          a managed node that is ready
//! node n2 pool=general cpu=2 starting taint:node.kubernetes.io/not-ready:NoExecute
//! claim c1 pool=general cpu=2 label:zone=a                    launched, not joined
//! claim c2 pool=general require:type=small unlaunched
//! daemon logs cpu=100m port:9100
//! type held kind=reserved slots=1 reservation=r1 volumes:csi=2
//! type split override:b:example.com/gpu=2 reserve:b:memory=1Gi in zone b with two GPUs, and less memory for pods
//! pod web cpu=1 memory=1Gi x3 select:zone=a label:app=web     three pods: web-0 web-1 web-2
//! ```
//! Labels `zone type kind arch os host pool` are short for the well-known ones; `size` is well known too.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::sync::Arc;

use jiff::Timestamp;
use kerf_model::budget::BudgetList;
use kerf_model::change::Change;
use kerf_model::cluster::*;
use kerf_model::duration::{GoDuration, NillableDuration};
use kerf_model::label::{self, LabelRules};
use kerf_model::node_pool::*;
use kerf_model::price::Price;
use kerf_model::requirement::{Expression, Operator, Requirement, Requirements};
use kerf_model::resources::{ResourceList, ResourceName};
use kerf_model::selector::Selector;
use kerf_model::snapshot::ClusterSnapshot;
use kerf_model::taint::{Taint, ToleratedValue, Toleration};
use kerf_scheduling::{Host, Options, PlannedClaim, Prepared, Question, ReservedMode, Schedule, Supply, pods_to_place};

pub struct Fixture {
    pub cluster: ClusterSnapshot,
    pub types: BTreeMap<Arc<str>, Arc<[InstanceType]>>,
    pub rules: LabelRules,
    pub options: Options,
    pub reserved: ReservedMode,
    pub excluded: BTreeSet<Arc<str>>,
}

/// Solves the cluster and compares the answer, one line per host, claim and pod left over.
#[track_caller]
pub fn check(text: &str, expected: &str) {
    check_with(Options::default(), text, expected);
}

#[track_caller]
pub fn check_with(options: Options, text: &str, expected: &str) {
    let mut fixture = Fixture::read(text);
    fixture.options = options;
    let expected: Vec<_> = expected.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let shown = show(&fixture.solve());
    assert_eq!(shown.lines().collect::<Vec<_>>(), expected, "\n{shown}");
}

pub fn claims(text: &str) -> Vec<PlannedClaim> {
    Fixture::read(text).solve().new_claims
}

/// `node n: pods`, `claim c: pods`, `new pool [types]: pods`, `none pod: why`.
pub fn show(schedule: &Schedule) -> String {
    let mut out = String::new();
    let names = |pods: &[Arc<Pod>]| {
        let mut names: Vec<_> = pods.iter().map(|pod| pod.meta.name.name.to_string()).collect();
        names.sort();
        names.join(" ")
    };
    for on in &schedule.on_existing {
        let kind = if matches!(on.host, Host::Node(_)) { "node" } else { "claim" };
        writeln!(out, "{kind} {}: {}", on.host.name(), names(&on.pods)).unwrap();
    }
    for claim in &schedule.new_claims {
        let types: Vec<_> = claim.options.iter().map(|option| &*option.instance_type).collect();
        writeln!(out, "new {} [{}]: {}", claim.pool, types.join(" "), names(&claim.pods)).unwrap();
    }
    let mut left: Vec<_> = schedule
        .unplaced
        .iter()
        .map(|(pod, why)| {
            let pools: Vec<_> = why.pools.iter().map(|(pool, refusal)| format!(" {pool}={}", refusal.id())).collect();
            format!("none {}: {}{}", pod.meta.name.name, why.overall.id(), pools.concat())
        })
        .collect();
    left.sort();
    left.iter().for_each(|line| writeln!(out, "{line}").unwrap());
    out
}

impl Fixture {
    pub fn read(text: &str) -> Self {
        let rules = LabelRules::core().with_well_known(["size"]).with_reservation_id("reservation");
        let mut fixture = Self {
            cluster: ClusterSnapshot::default(),
            types: BTreeMap::new(),
            rules,
            options: Options::default(),
            reserved: ReservedMode::Strict,
            excluded: BTreeSet::new(),
        };
        let lines: Vec<_> = text.lines().map(Line::read).filter(|line| !line.kind.is_empty()).collect();
        let types: Vec<_> = lines.iter().filter(|line| line.kind == "type").map(Line::instance_type).collect();
        for line in &lines {
            for change in line.changes() {
                fixture.cluster.apply(change);
            }
            if line.kind == "pool" {
                let named = line.value("types").map(|names| names.split(',').collect::<Vec<_>>());
                let own = types.iter().filter(|kind| named.as_ref().is_none_or(|named| named.contains(&&*kind.name)));
                fixture.types.insert(Arc::from(line.name), own.cloned().collect());
            }
            if line.kind == "exclude" {
                fixture.excluded.insert(Arc::from(line.name));
            }
        }
        fixture
    }

    pub fn pods(&self) -> Vec<Arc<Pod>> {
        pods_to_place(&self.cluster, &self.excluded, Timestamp::UNIX_EPOCH)
    }

    pub fn solve(&self) -> Schedule {
        self.solve_pods(self.pods())
    }

    pub fn solve_pods(&self, pods: Vec<Arc<Pod>>) -> Schedule {
        let question =
            Question { pods, excluded: self.excluded.clone(), reserved: self.reserved, ..Question::default() };
        self.answer(&question)
    }

    pub fn answer(&self, question: &Question) -> Schedule {
        let supply = Supply { types: &self.types, rules: &self.rules, options: self.options };
        Prepared::new(&self.cluster, supply).solve(question)
    }
}

struct Line<'t> {
    kind: &'t str,
    name: &'t str,
    words: Vec<&'t str>,
}

impl<'t> Line<'t> {
    fn read(text: &'t str) -> Self {
        let text = text.split_once('#').map_or(text, |(before, _)| before);
        let mut words = text.split_whitespace();
        Self { kind: words.next().unwrap_or(""), name: words.next().unwrap_or(""), words: words.collect() }
    }

    fn value(&self, key: &str) -> Option<&'t str> {
        self.words.iter().find_map(|word| word.strip_prefix(key)?.strip_prefix('='))
    }

    fn all(&self, prefix: &'t str) -> impl Iterator<Item = &'t str> {
        self.words.iter().filter_map(move |word| word.strip_prefix(prefix)?.strip_prefix(':'))
    }

    fn has(&self, word: &str) -> bool {
        self.words.contains(&word)
    }

    fn labels(&self) -> Texts {
        self.all("label")
            .map(|pair| pair.split_once('=').unwrap())
            .map(|(key, value)| (Arc::from(full(key)), Arc::from(value)))
            .collect()
    }

    fn taints(&self, prefix: &'t str) -> Vec<Taint> {
        self.all(prefix).map(|text| text.parse().unwrap()).collect()
    }

    fn requirements(&self) -> Requirements {
        let rules = LabelRules::core();
        let expressions: Vec<_> = self.all("require").map(expression).collect();
        Requirements::parse(&expressions, &rules).unwrap()
    }

    /// Words like `cpu=2` whose name is a resource.
    fn resources(&self) -> ResourceList {
        let known = ["cpu=", "memory=", "pods=", "example.com/", "hugepages-"];
        let words = self.words.iter().filter(|word| known.iter().any(|start| word.starts_with(start)));
        words
            .map(|word| word.split_once('=').unwrap())
            .map(|(name, amount)| (ResourceName::from(name), amount.parse().unwrap()))
            .collect()
    }

    fn with_one_pod(&self) -> ResourceList {
        let mut list = self.resources();
        list.insert(ResourceName::PODS, "1".parse().unwrap());
        list
    }

    fn capacity(&self) -> ResourceList {
        let mut list = self.resources();
        for (name, default) in [("cpu", "4"), ("memory", "4Gi"), ("pods", "5")] {
            if list.get(name).is_none() {
                list.insert(ResourceName::from(name), default.parse().unwrap());
            }
        }
        list
    }

    fn meta(&self, name: &str, namespace: &str) -> ObjectMeta {
        let owner = self.value("owner").map(|owner| {
            let (kind, name) = owner.split_once('/').unwrap_or((owner, "owner"));
            Owner {
                api_version: Arc::from(if kind == "Node" { "v1" } else { "apps/v1" }),
                kind: Arc::from(kind),
                name: Arc::from(name),
                uid: Arc::from(format!("uid-{name}")),
                controller: true,
                blocks_deletion: false,
            }
        });
        let created = self.value("created").map_or(0, |seconds| seconds.parse().unwrap());
        ObjectMeta {
            name: ObjectName::new(namespace, name),
            uid: Arc::from(format!("uid-{name}")),
            resource_version: Arc::from("1"),
            generation: 1,
            created: Timestamp::from_second(created).unwrap(),
            deleting: self.has("deleting").then_some(Timestamp::UNIX_EPOCH),
            labels: self.labels(),
            annotations: Texts::new(),
            finalizers: Vec::new(),
            owners: owner.into_iter().collect(),
        }
    }

    fn instance_type(&self) -> InstanceType {
        let list = |key, default: &'t str| self.value(key).unwrap_or(default).split(',').collect::<Vec<_>>();
        let (zones, kinds) = (list("zone", "a,b,c"), list("kind", "on-demand"));
        let price: Price = self.value("price").unwrap_or("1").parse().unwrap();
        let soldout = list("soldout", "");
        let rules = LabelRules::core();
        let offering = |zone: &str, kind: &str| Offering {
            requirements: {
                let reservation =
                    self.value("reservation").filter(|_| kind == "reserved").map(|id| ("reservation", id));
                let labels = [(label::ZONE, zone), (label::CAPACITY_TYPE, kind)];
                Requirements::from_labels(labels.into_iter().chain(reservation), &rules)
            },
            price: if kind == "spot" { Price::from_micros(price.micros() * 7 / 10) } else { price },
            available: !soldout.contains(&zone),
            reservation_capacity: (kind == "reserved").then(|| self.value("slots").map_or(0, |n| n.parse().unwrap())),
            overrides: self.overrides(zone).map(Arc::new),
        };
        let offerings = zones.iter().flat_map(|zone| kinds.iter().map(move |kind| (*zone, *kind)));
        let mut requirements = Requirements::new();
        requirements.add(Requirement::one_of(label::INSTANCE_TYPE, [self.name]), &rules);
        requirements.add(Requirement::one_of(label::ZONE, &zones), &rules);
        requirements.add(Requirement::one_of(label::CAPACITY_TYPE, &kinds), &rules);
        requirements.add(Requirement::one_of(label::ARCH, [self.value("arch").unwrap_or("amd64")]), &rules);
        requirements.add(Requirement::one_of(label::OS, ["linux"]), &rules);
        // Providers say so when a type does not have a label of theirs: silence would mean that it may have any value.
        if !self.labels().contains_key("size") {
            requirements.add(Requirement::does_not_exist("size"), &rules);
        }
        for (key, value) in self.labels() {
            requirements.add(Requirement::one_of(key, [value]), &rules);
        }
        InstanceType {
            name: Arc::from(self.name),
            requirements,
            offerings: offerings.map(|(zone, kind)| offering(zone, kind)).collect(),
            capacity: self.capacity(),
            overhead: Overhead::default(),
            volume_limits: self
                .all("volumes")
                .map(|limit| limit.split_once('=').unwrap())
                .map(|(driver, count)| (Arc::from(driver), count.parse().unwrap()))
                .collect(),
        }
    }

    fn overrides(&self, zone: &str) -> Option<Overrides> {
        let list = |prefix| -> ResourceList {
            let own = self.all(prefix).filter_map(|word| word.strip_prefix(zone)?.strip_prefix(':'));
            let amounts = own.map(|amount| amount.split_once('=').unwrap());
            amounts.map(|(name, amount)| (ResourceName::from(name), amount.parse().unwrap())).collect()
        };
        let overhead = Overhead { kube_reserved: list("reserve"), ..Overhead::default() };
        let overrides = Overrides { capacity: list("override"), overhead };
        (overrides != Overrides::default()).then_some(overrides)
    }

    fn changes(&self) -> Vec<Change> {
        let cluster_wide = ObjectName::of_cluster(self.name);
        let namespace = self.value("namespace").unwrap_or("default");
        let namespaced = ObjectName::new(namespace, self.name);
        match self.kind {
            "pool" => vec![Change::NodePool(cluster_wide, Some(Arc::new(self.pool())))],
            "node" => self.node(),
            "claim" => vec![Change::NodeClaim(cluster_wide, Some(Arc::new(self.claim(self.name))))],
            "daemon" => vec![Change::DaemonSet(namespaced, Some(Arc::new(self.daemon())))],
            "pod" => self.pods(namespace),
            "budget" => {
                let allowed = self.value("allowed").unwrap().parse().unwrap();
                let budget = DisruptionBudget {
                    meta: self.meta(self.name, namespace),
                    selector: Some(Selector::default()),
                    disruptions_allowed: allowed,
                    never_allows: self.has("never"),
                    always_allows_unhealthy: false,
                };
                vec![Change::DisruptionBudget(namespaced, Some(Arc::new(budget)))]
            }
            "pvc" => {
                let pvc = PersistentVolumeClaim {
                    meta: self.meta(self.name, namespace),
                    volume: self.value("volume").map(Arc::from),
                    storage_class: self.value("class").map(Arc::from),
                    is_bound: self.value("volume").is_some() && !self.has("unbound"),
                    is_lost: self.has("lost"),
                };
                vec![Change::PersistentVolumeClaim(namespaced, Some(Arc::new(pvc)))]
            }
            "volume" => {
                let volume = PersistentVolume {
                    meta: self.meta(self.name, ""),
                    node_terms: self.terms(),
                    driver: self.value("driver").map(Arc::from),
                    is_local: self.has("local"),
                };
                vec![Change::PersistentVolume(cluster_wide, Some(Arc::new(volume)))]
            }
            "class" => {
                let class = StorageClass {
                    meta: self.meta(self.name, ""),
                    provisioner: Arc::from(self.value("driver").unwrap_or("csi")),
                    binds_immediately: self.has("immediate"),
                    topologies: self.terms(),
                };
                vec![Change::StorageClass(cluster_wide, Some(Arc::new(class)))]
            }
            "csinode" => {
                let limits = self.all("limit").map(|pair| pair.split_once('=').unwrap());
                let limits = limits.map(|(driver, count)| (Arc::from(driver), count.parse().unwrap()));
                let node = CsiNode { meta: self.meta(self.name, ""), limits: limits.collect(), drivers: Vec::new() };
                vec![Change::CsiNode(cluster_wide, Some(Arc::new(node)))]
            }
            "type" | "exclude" => Vec::new(),
            other => panic!("unknown kind {other}"),
        }
    }

    /// `term:zone=a&team=x`, each one alternative; all `require:` together are one.
    fn terms(&self) -> Vec<Vec<Expression>> {
        let mut terms: Vec<_> = self.all("term").map(|term| term.split('&').map(expression).collect()).collect();
        let required: Vec<_> = self.all("require").map(expression).collect();
        if !required.is_empty() {
            terms.push(required);
        }
        terms
    }

    fn node_spec(&self) -> NodeSpec {
        NodeSpec {
            class: class(),
            requirements: self.requirements(),
            taints: self.taints("taint"),
            startup_taints: self.taints("startup"),
            expire_after: NillableDuration::Never,
            termination_grace_period: None::<GoDuration>,
        }
    }

    fn pool(&self) -> StoredPool {
        let limits = self.all("limit").map(|pair| pair.split_once('=').unwrap());
        let limits = limits.map(|(name, amount)| (ResourceName::from(name), amount.parse().unwrap()));
        let size = if self.has("static") { PoolSize::Static { replicas: 1 } } else { PoolSize::Dynamic };
        let spec = NodePool {
            name: Arc::from(self.name),
            weight: self.value("weight").map_or(0, |weight| weight.parse().unwrap()),
            size,
            limits: limits.collect(),
            labels: self.labels(),
            annotations: Texts::from([(Arc::from("note"), Arc::from("from the pool"))]),
            node: self.node_spec(),
            disruption: Disruption {
                enabled: !self.has("no-deprovisioning"),
                policy: ConsolidationPolicy::WhenEmpty,
                consolidate_after: NillableDuration::Never,
                consolidation_enabled: true,
                drift_enabled: true,
                drift_force_evict: false,
                expiration_enabled: true,
                budgets: BudgetList::default(),
            },
            disabled: self.has("disabled"),
        };
        let status = if self.has("notready") { ConditionStatus::False } else { ConditionStatus::True };
        let status = PoolStatus { conditions: Conditions(vec![condition("Ready", status)]), ..PoolStatus::default() };
        let mut meta = self.meta(self.name, "");
        meta.labels = Texts::new();
        StoredPool { meta, spec: Ok(spec), class: class(), hash: None, status }
    }

    fn claim(&self, name: &str) -> NodeClaim {
        let mut meta = self.meta(name, "");
        if let Some(pool) = self.value("pool") {
            meta.labels.insert(Arc::from(label::NODEPOOL), Arc::from(pool));
        }
        let launched = !self.has("unlaunched");
        let mut conditions = Vec::new();
        if self.has("rebooting") {
            conditions.push(condition("Rebooting", ConditionStatus::True));
        }
        if self.has("empties-to-reboot") {
            let reason = Arc::from("RebootRequested");
            conditions.push(Condition { reason, ..condition("Rebooting", ConditionStatus::True) });
        }
        if self.has("registered") {
            conditions.push(condition("Registered", ConditionStatus::True));
        }
        let reported = |yes: bool| if yes { self.capacity() } else { ResourceList::new() };
        NodeClaim {
            meta,
            node: self.node_spec(),
            requests: self.resources(),
            status: ClaimStatus {
                provider_id: launched.then(|| Arc::from(format!("id-{name}"))),
                capacity: reported(launched),
                allocatable: reported(launched),
                conditions: Conditions(conditions),
                ..ClaimStatus::default()
            },
        }
    }

    /// With its claim, unless the node is not ours.
    fn node(&self) -> Vec<Change> {
        let claim = (!self.has("unmanaged")).then(|| self.claim(&format!("{}-claim", self.name)));
        let mut meta = self.meta(self.name, "");
        meta.deleting = None;
        let mut mark = |key: &str, value: &str| meta.labels.insert(Arc::from(key), Arc::from(value));
        if let Some(pool) = self.value("pool") {
            mark(label::NODEPOOL, pool);
        }
        if claim.is_some() && !self.has("unregistered") {
            mark(label::REGISTERED, "true");
            if !self.has("starting") {
                mark(label::INITIALIZED, "true");
            }
        }
        let mut allocatable = self.capacity();
        for name in self.all("missing") {
            allocatable.insert(ResourceName::from(name), "0".parse().unwrap());
        }
        let node = Node {
            meta,
            provider_id: claim.as_ref().and_then(|claim| claim.status.provider_id.clone()),
            taints: self.taints("taint"),
            unschedulable: self.has("cordoned"),
            capacity: allocatable.clone(),
            allocatable,
            conditions: Vec::new(),
            boot_id: None,
        };
        let claim = claim.map(|mut claim| {
            // What is tainted on the node only is not part of the claim.
            claim.node.taints = Vec::new();
            Change::NodeClaim(claim.meta.name.clone(), Some(Arc::new(claim)))
        });
        let node = Change::Node(node.meta.name.clone(), Some(Arc::new(node)));
        claim.into_iter().chain([node]).collect()
    }

    fn daemon(&self) -> DaemonSet {
        DaemonSet {
            meta: self.meta(self.name, "kube-system"),
            pod_labels: Texts::new(),
            requests: self.with_one_pod(),
            constraints: Arc::new(self.constraints()),
        }
    }

    fn pods(&self, namespace: &str) -> Vec<Change> {
        let copies = self.words.iter().find_map(|word| word.strip_prefix('x')?.parse::<usize>().ok());
        let names = match copies {
            None => vec![self.name.to_owned()],
            Some(count) => (0..count).map(|at| format!("{}-{at}", self.name)).collect(),
        };
        let constraints = Arc::new(self.constraints());
        let pod = |name: String| {
            let on = self.value("on").map(Arc::from);
            let pod = Pod {
                meta: self.meta(&name, namespace),
                phase: if on.is_some() { PodPhase::Running } else { PodPhase::Pending },
                unschedulable: on.is_none(),
                node_name: on,
                requests: self.with_one_pod(),
                constraints: Arc::clone(&constraints),
                volumes: self.all("volume").map(|claim| PodVolume { claim: Arc::from(claim) }).collect(),
                priority: 0,
                priority_class: None,
                nominated_node: self.value("nominated").map(Arc::from),
                do_not_disrupt: DoNotDisrupt::read(self.has("protected").then_some("true")),
                started: None,
                termination_grace: None,
                is_unready: false,
                uses_resource_claims: self.has("devices"),
            };
            Change::Pod(pod.meta.name.clone(), Some(Arc::new(pod)))
        };
        names.into_iter().map(pod).collect()
    }

    fn constraints(&self) -> PodConstraints {
        let pair = |text: &str| text.split_once('=').map(|(k, v)| (Arc::from(full(k)), Arc::from(v))).unwrap();
        let tolerate = |key: &str| Toleration { key: Some(Arc::from(key)), effect: None, value: ToleratedValue::Any };
        let prefer = |text: &str| {
            let (weight, expressions) = text.split_once(':').unwrap();
            let expressions = expressions.split('&').map(expression).collect();
            PreferredNodeTerm { weight: weight.parse().unwrap(), expressions }
        };
        let port =
            |text: &str| HostPort { ip: [0, 0, 0, 0].into(), protocol: Protocol::Tcp, port: text.parse().unwrap() };
        let weighted = |text: &'t str| {
            let (weight, term) = text.split_once(':').unwrap();
            WeightedPodAffinityTerm { weight: weight.parse().unwrap(), term: affinity(term) }
        };
        PodConstraints {
            node_selector: self.all("select").map(pair).collect(),
            required_node_terms: self.terms(),
            preferred_node_terms: self.all("prefer").map(prefer).collect(),
            tolerations: self.all("tolerate").map(tolerate).collect(),
            spread: self.all("spread").map(spread).collect(),
            required_affinity: self.all("near").map(affinity).collect(),
            preferred_affinity: self.all("rather-near").map(weighted).collect(),
            required_anti_affinity: self.all("apart").map(affinity).collect(),
            preferred_anti_affinity: self.all("rather-apart").map(weighted).collect(),
            host_ports: self.all("port").map(port).collect(),
        }
    }
}

/// `zone:1:app=web` and after that any of `soft`, `min=3`, `taints`, `anywhere`; `-` selects nothing.
fn spread(text: &str) -> SpreadConstraint {
    let mut words = text.split(':');
    let (key, skew, selected) = (words.next().unwrap(), words.next().unwrap(), words.next().unwrap());
    let rest: Vec<_> = words.collect();
    let soft = rest.contains(&"soft");
    SpreadConstraint {
        max_skew: skew.parse().unwrap(),
        topology_key: Arc::from(full(key)),
        when_unsatisfiable: if soft { WhenUnsatisfiable::ScheduleAnyway } else { WhenUnsatisfiable::DoNotSchedule },
        selector: selector(selected),
        min_domains: rest.iter().find_map(|word| word.strip_prefix("min=")?.parse().ok()),
        honors_node_affinity: !rest.contains(&"anywhere"),
        honors_node_taints: rest.contains(&"taints"),
    }
}

/// `zone:app=web`, and after that the namespaces.
fn affinity(text: &str) -> PodAffinityTerm {
    let mut words = text.split(':');
    let (key, selected) = (words.next().unwrap(), words.next().unwrap());
    PodAffinityTerm {
        topology_key: Arc::from(full(key)),
        selector: selector(selected),
        namespaces: words.map(Arc::from).collect(),
        namespace_selector: None,
    }
}

fn selector(text: &str) -> Option<Selector> {
    (text != "-").then(|| Selector::new([text.split_once('=').unwrap()], []).unwrap())
}

/// `key=a,b`, `key!=a`, `key`, `!key`, `key>3`, `key<3`; `~2` at the end is minValues.
fn expression(text: &str) -> Expression {
    let (text, min_values) = match text.split_once('~') {
        Some((text, count)) => (text, Some(count.parse().unwrap())),
        None => (text, None),
    };
    let found = [("!=", Operator::NotIn), ("=", Operator::In), (">", Operator::Gt), ("<", Operator::Lt)]
        .into_iter()
        .find_map(|(sign, operator)| Some((text.split_once(sign)?, operator)));
    let expression = match (found, text.strip_prefix('!')) {
        (Some(((key, values), operator)), _) => Expression::new(full(key), operator, values.split(',')),
        (None, Some(key)) => Expression::new(full(key), Operator::DoesNotExist, [""; 0]),
        (None, None) => Expression::new(full(text), Operator::Exists, [""; 0]),
    };
    Expression { min_values, ..expression }
}

pub fn full(key: &str) -> &str {
    match key {
        "zone" => label::ZONE,
        "type" => label::INSTANCE_TYPE,
        "kind" => label::CAPACITY_TYPE,
        "arch" => label::ARCH,
        "os" => label::OS,
        "host" => label::HOSTNAME,
        "pool" => label::NODEPOOL,
        other => other,
    }
}

fn class() -> NodeClassRef {
    NodeClassRef { group: Arc::from("example.com"), kind: Arc::from("TestClass"), name: Arc::from("default") }
}

fn condition(kind: &str, status: ConditionStatus) -> Condition {
    Condition {
        kind: Arc::from(kind),
        status,
        reason: Arc::from("Test"),
        message: Arc::from(""),
        since: Timestamp::UNIX_EPOCH,
        observed_generation: 1,
    }
}
