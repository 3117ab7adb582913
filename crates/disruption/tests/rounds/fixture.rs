//! A cluster as text, one object per line, and what a round says about it.
//!
//! ```text
//! now 2026-11-18T12:00:00Z                  a Wednesday; this is the default
//! settings compatible spot-to-spot floor=0.01/5 repair terminate-first waves=10/5m/1 rebalance ledger=6h/2
//! type small cpu=2 memory=4Gi price=0.10 zone=a,b kind=spot,on-demand    spot costs 7/10; price:a=0.2 for one zone
//! pool general after=5m policy=Balanced budget=10% budget=3:Empty,Drifted budget=0@0_9_*_*_1-5/8h limit:nodes=5
//! node n1 pool=general type=small zone=a kind=spot pod-event=1m drifted=2h     a managed node with its claim n1; made-by=other says
//!                                                                         that its claim is of another pool
//!     annotation:do-not-disrupt=true claim-annotation:kerf.sh/x=y             on the node, on the claim
//! pod web on=n1 cpu=1 memory=1Gi x3 label:app=web owner=ReplicaSet            three pods: web-0 web-1 web-2
//! pdb web allowed=1 select:app=web never always-allow
//! window w action=Drift at=0_9_*_*_1-5/8h select:zone=a outside
//! backoff general reason=Drifted                                              replacements failed just now; this is the default
//! ```
//! Nodes are ready, initialised, settled and a day old unless they say otherwise. Times are ago.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use kerf_disruption::*;
use kerf_model::budget::{Budget, BudgetList, BudgetText};
use kerf_model::change::Change;
use kerf_model::cloud::{RepairAction, RepairPolicy};
use kerf_model::cluster::*;
use kerf_model::cron::{Dialect, Schedule};
use kerf_model::duration::{GoDuration, NillableDuration};
use kerf_model::effect::EventKind;
use kerf_model::label::{self, LabelRules, annotation};
use kerf_model::maintenance::{self, MaintenanceWindow};
use kerf_model::node_pool::*;
use kerf_model::price::Price;
use kerf_model::requirement::{Expression, Operator, Requirement, Requirements};
use kerf_model::resources::{ResourceList, ResourceName};
use kerf_model::selector::Selector;
use kerf_model::snapshot::ClusterSnapshot;
use kerf_model::taint::{Taint, ToleratedValue, Toleration};
use kerf_model::window::Window;

pub struct Fixture {
    pub snapshot: ClusterSnapshot,
    pub types: BTreeMap<Arc<str>, Arc<[InstanceType]>>,
    pub rules: LabelRules,
    pub settings: Settings,
    pub memory: Memory,
    pub now: Timestamp,
}

/// Decides, and compares proposals and the reasons of nodes that stay.
///
/// Proposals are `method action nodes`, with ` -> types` for each replacement and ` | on` what they land on if the
/// expectation has a ` | `. Nodes that stay are `node label`.
#[track_caller]
pub fn check(text: &str, expected: &str) -> Round {
    let fixture = Fixture::read(text);
    let round = fixture.decide();
    let expected: Vec<_> = expected.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let shown = show(&round);
    assert_eq!(shown.lines().collect::<Vec<_>>(), expected, "\n{shown}");
    let claims: Vec<_> = fixture.snapshot.claims().map(|claim| Arc::clone(claim.name())).collect();
    assert_eq!(round.verdicts.keys().cloned().collect::<Vec<_>>(), claims, "one verdict for each claim");
    round
}

/// Only how these nodes are judged: `node label` or `node go method`, in the order of the expectation.
#[track_caller]
pub fn check_nodes(text: &str, expected: &str) {
    let round = Fixture::read(text).decide();
    for line in expected.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let (node, _) = line.split_once(' ').unwrap();
        assert_eq!(judged(&round, node), line, "\n{}\n{}", show(&round), round.verdicts[node]);
    }
}

/// The reasons of the events about the node and its claim, with the kind of the object, by name.
pub fn told(round: &Round, node: &str) -> Vec<(EventKind, &'static str)> {
    let own = round.events.iter().filter(|event| &*event.about.target.name.name == node);
    own.map(|event| (event.about.kind, event.reason)).collect()
}

pub fn judged(round: &Round, node: &str) -> String {
    let goes = round.proposals.iter().find(|proposal| proposal.claims().any(|claim| &**claim == node));
    match goes {
        Some(proposal) => format!("{node} go {}", proposal.method.label()),
        None => format!("{node} {}", round.verdicts[node].label()),
    }
}

pub fn show(round: &Round) -> String {
    let mut out = String::new();
    for proposal in &round.proposals {
        writeln!(out, "{}", show_proposal(proposal)).unwrap();
    }
    for (name, verdict) in &round.verdicts {
        if !matches!(verdict, Verdict::Go { held_until: None, .. }) {
            writeln!(out, "{name} {}", verdict.label()).unwrap();
        }
    }
    out
}

pub fn show_proposal(proposal: &Proposal) -> String {
    let mut names: Vec<_> = proposal.claims().map(|claim| &**claim).collect();
    names.sort_unstable();
    let mut out = format!("{} {} {}", proposal.method.label(), proposal.action.label(), names.join(" "));
    for claim in proposal.replacements() {
        let types: Vec<_> = claim.options.iter().map(|option| &*option.instance_type).collect();
        write!(out, " -> {}", types.join(",")).unwrap();
    }
    out
}

impl Fixture {
    pub fn read(text: &str) -> Self {
        let lines: Vec<_> = text.lines().map(Line::read).filter(|line| !line.kind.is_empty()).collect();
        let classes = vec![ClassKind { group: Arc::from("karpenter.test"), kind: Arc::from("TestClass") }];
        let settings = lines.iter().find(|line| line.kind == "settings");
        let now = lines.iter().find(|line| line.kind == "now").map_or("2026-11-18T12:00:00Z", |line| line.name);
        let mut fixture = Self {
            snapshot: ClusterSnapshot::default(),
            types: BTreeMap::new(),
            rules: LabelRules::core().with_well_known(["size"]).with_reservation_id(label::RESERVATION_ID),
            settings: settings
                .map_or_else(|| Settings::for_classes(classes.clone()), |line| line.settings(classes.clone())),
            memory: Memory::default(),
            now: now.parse().unwrap(),
        };
        let types: Vec<_> = lines.iter().filter(|line| line.kind == "type").map(Line::instance_type).collect();
        for line in &lines {
            for change in line.changes(fixture.now) {
                fixture.snapshot.apply(change);
            }
            line.remember(&mut fixture);
            if line.kind == "pool" && !line.has("unlisted") {
                let named = line.value("types").map(|names| names.split(',').collect::<Vec<_>>());
                let own = types.iter().filter(|kind| named.as_ref().is_none_or(|named| named.contains(&&*kind.name)));
                fixture.types.insert(Arc::from(line.name), own.cloned().collect());
            }
        }
        fixture
    }

    pub fn view(&self) -> View<'_> {
        View {
            snapshot: &self.snapshot,
            types: &self.types,
            labels: &self.rules,
            scheduling: kerf_scheduling::Options::default(),
            default_spread: &kerf_scheduling::NO_DEFAULT_SPREAD,
            virtual_pods: &[],
            settings: &self.settings,
            memory: &self.memory,
            now: self.now,
        }
    }

    pub fn decide(&self) -> Round {
        decide(&self.view())
    }

    /// Adds or changes objects: a later moment of the same cluster.
    pub fn change(&mut self, text: &str) {
        for line in text.lines().map(Line::read).filter(|line| !line.kind.is_empty()) {
            for change in line.changes(self.now) {
                self.snapshot.apply(change);
            }
            line.remember(self);
        }
    }

    /// Executes a round at once: pods run where they were expected, new nodes are of their cheapest type.
    pub fn apply(&mut self, round: &Round) {
        let mut made = 0;
        for proposal in &round.proposals {
            let places = proposal.lands_on.iter().map(|lands| (Arc::clone(lands.host.name()), lands.pods.clone()));
            let mut places: Vec<(Arc<str>, Vec<Arc<Pod>>)> = places.collect();
            for planned in proposal.replacements() {
                made += 1;
                let option = &planned.options[0];
                let offering = option.offerings.iter().find(|own| own.price == option.price).unwrap();
                let (zone, kind) = (offering.zone.as_ref().unwrap(), offering.capacity_type.as_ref().unwrap());
                let capacity = &option.kind().capacity;
                let (cpu, memory) = (capacity.amount("cpu"), capacity.amount("memory"));
                let name = format!("new-{made}-{}", self.snapshot.claims().count());
                let line = format!(
                    "node {name} pool={} type={} zone={zone} kind={kind} cpu={cpu} memory={memory}",
                    planned.pool, option.instance_type
                );
                self.change(&line);
                places.push((Arc::from(name), planned.pods.clone()));
            }
            for (host, pods) in places {
                for pod in pods {
                    let moved = Pod { node_name: Some(Arc::clone(&host)), ..(*pod).clone() };
                    self.snapshot.apply(Change::Pod(moved.meta.name.clone(), Some(Arc::new(moved))));
                }
            }
            for name in proposal.claims() {
                let left: Vec<_> = self.snapshot.pods_on(name).map(|pod| pod.meta.name.clone()).collect();
                left.into_iter().for_each(|pod| self.snapshot.apply(Change::Pod(pod, None)));
                self.snapshot.apply(Change::Node(ObjectName::of_cluster(Arc::clone(name)), None));
                self.snapshot.apply(Change::NodeClaim(ObjectName::of_cluster(Arc::clone(name)), None));
            }
        }
    }

    pub fn hold(&mut self, proposal: &Proposal) {
        let until = self.now + proposal.hold;
        self.memory.held.push(Held { proposal: proposal.clone(), until });
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
        let kind = words.next().unwrap_or("");
        match kind {
            "settings" => Self { kind, name: "", words: words.collect() },
            _ => Self { kind, name: words.next().unwrap_or(""), words: words.collect() },
        }
    }

    fn value(&self, key: &str) -> Option<&'t str> {
        self.words.iter().find_map(|word| word.strip_prefix(key)?.strip_prefix('='))
    }

    fn values(&self, key: &'t str) -> impl Iterator<Item = &'t str> {
        self.words.iter().filter_map(move |word| word.strip_prefix(key)?.strip_prefix('='))
    }

    fn all(&self, prefix: &'t str) -> impl Iterator<Item = &'t str> {
        self.words.iter().filter_map(move |word| word.strip_prefix(prefix)?.strip_prefix(':'))
    }

    fn pairs(&self, prefix: &'t str) -> impl Iterator<Item = (&'t str, &'t str)> {
        self.all(prefix).map(|pair| pair.split_once('=').unwrap())
    }

    fn texts(&self, prefix: &'t str) -> Texts {
        self.pairs(prefix).map(|(key, value)| (Arc::from(full(key)), Arc::from(value))).collect()
    }

    fn has(&self, word: &str) -> bool {
        self.words.contains(&word)
    }

    /// A word, or the word with a duration.
    fn ago(&self, key: &str, now: Timestamp) -> Option<Timestamp> {
        if self.has(key) {
            return Some(now - SignedDuration::from_hours(1));
        }
        self.value(key).map(|text| now - duration(text))
    }

    fn settings(&self, classes: Vec<ClassKind>) -> Settings {
        let mut settings = match self.has("compatible") {
            true => Settings::compatible(classes),
            false => Settings::for_classes(classes),
        };
        settings.gates.spot_to_spot_consolidation = self.has("spot-to-spot");
        settings.gates.node_repair = self.has("repair");
        settings.gates.legacy_node_repair = self.has("legacy-repair");
        settings.gates.terminate_first_drift = self.has("terminate-first");
        settings.gates.terminate_first_repair = self.has("terminate-first");
        settings.gates.pod_deletion_cost_management = self.has("deletion-cost");
        settings.gates.drift = !self.has("no-drift");
        if self.has("repair") {
            settings.repair_policies = repair_policies();
        }
        if let Some((absolute, percent)) = self.value("floor").map(|text| text.split_once('/').unwrap()) {
            settings.floor = Floor { absolute: absolute.parse().unwrap(), percent: percent.parse().unwrap() };
        }
        if let Some(text) = self.value("waves") {
            let parts: Vec<_> = text.split('/').collect();
            let (percent, failures) = (parts[0].parse().unwrap(), parts[2].parse().unwrap());
            settings.waves = Some(Waves { percent, bake: duration(parts[1]), failures });
        }
        if self.has("rebalance") {
            settings.rebalance = RebalanceAction::Replace;
        }
        settings
    }

    fn remember(&self, fixture: &mut Fixture) {
        let name: Arc<str> = Arc::from(self.name);
        let soon = fixture.now + SignedDuration::from_secs(20);
        match self.kind {
            "node" => {
                if self.has("nominated") {
                    fixture.memory.nominations.insert(Arc::clone(&name), soon);
                }
                if self.has("marked") {
                    fixture.memory.marked.insert(Arc::clone(&name));
                }
                if self.has("rebalance") {
                    fixture.memory.rebalance.insert(Arc::clone(&name));
                }
                if let Some(times) = self.value("reboots") {
                    let times = times.split(',').map(|text| fixture.now - duration(text)).collect();
                    fixture.memory.reboots.insert(Arc::from(format!("uid-{name}")), times);
                }
                let replacement = self.value("under-way");
                if self.has("under-way") || replacement.is_some() {
                    fixture.memory.running.push(Running {
                        id: ProposalId::from("running"),
                        method: Method::Drift,
                        reason: Reason::Drifted,
                        candidates: BTreeSet::from([Arc::clone(&name)]),
                        pools: self.value("pool").into_iter().map(Arc::from).collect(),
                        replacements: replacement.into_iter().map(Arc::from).collect(),
                    });
                }
            }
            "backoff" => {
                let reason = self.value("reason").map_or(Reason::Drifted, |text| text.parse().unwrap());
                fixture.memory.failed(&name, reason, fixture.now);
            }
            _ => {}
        }
    }

    fn changes(&self, now: Timestamp) -> Vec<Change> {
        let cluster_wide = ObjectName::of_cluster(self.name);
        let namespace = self.value("namespace").unwrap_or("default");
        match self.kind {
            "pool" => vec![Change::NodePool(cluster_wide, Some(Arc::new(self.pool(now))))],
            "node" => self.node(now),
            "pod" => self.pods(namespace, now),
            "pdb" => {
                let name = ObjectName::new(namespace, self.name);
                vec![Change::DisruptionBudget(name, Some(Arc::new(self.pdb(namespace, now))))]
            }
            "window" => vec![Change::MaintenanceWindow(cluster_wide, Some(Arc::new(self.stored_window(now))))],
            "type" | "now" | "settings" | "backoff" => Vec::new(),
            other => panic!("unknown kind {other}"),
        }
    }

    fn meta(&self, name: &str, namespace: &str, now: Timestamp) -> ObjectMeta {
        let owner = self.value("owner").map(|kind| Owner {
            api_version: Arc::from(if kind == "Node" { "v1" } else { "apps/v1" }),
            kind: Arc::from(kind),
            name: Arc::from("owner"),
            uid: Arc::from("owner"),
            controller: true,
            blocks_deletion: false,
        });
        ObjectMeta {
            name: ObjectName::new(namespace, name),
            uid: Arc::from(format!("uid-{name}")),
            resource_version: Arc::from("1"),
            generation: 1,
            created: now - self.value("age").map_or(SignedDuration::from_hours(24), duration),
            deleting: self.has("deleting").then_some(now),
            labels: self.texts("label"),
            annotations: self.texts("annotation"),
            finalizers: Vec::new(),
            owners: owner.into_iter().collect(),
        }
    }

    fn resources(&self) -> ResourceList {
        let known = ["cpu=", "memory=", "pods="];
        let words = self.words.iter().filter(|word| known.iter().any(|start| word.starts_with(start)));
        words
            .map(|word| word.split_once('=').unwrap())
            .map(|(name, amount)| (ResourceName::from(name), amount.parse().unwrap()))
            .collect()
    }

    fn capacity(&self) -> ResourceList {
        let mut list = self.resources();
        for (name, default) in [("cpu", "4"), ("memory", "16Gi"), ("pods", "110")] {
            if list.get(name).is_none() {
                list.insert(ResourceName::from(name), default.parse().unwrap());
            }
        }
        list
    }

    fn instance_type(&self) -> InstanceType {
        let list = |key, default: &'t str| self.value(key).unwrap_or(default).split(',').collect::<Vec<_>>();
        let (zones, kinds) = (list("zone", "a,b"), list("kind", "on-demand"));
        let price: Price = self.value("price").unwrap_or("1").parse().unwrap();
        let in_zone: BTreeMap<&str, Price> =
            self.pairs("price").map(|(zone, price)| (zone, price.parse().unwrap())).collect();
        let rules = LabelRules::core();
        let offering = |zone: &str, kind: &str| {
            let base = in_zone.get(zone).copied().unwrap_or(price);
            let mut labels = vec![(label::ZONE, zone), (label::CAPACITY_TYPE, kind)];
            if kind == "reserved" {
                labels.push((label::RESERVATION_ID, "r1"));
            }
            Offering {
                requirements: Requirements::from_labels(labels, &rules),
                price: match kind {
                    "spot" if in_zone.is_empty() => Price::from_micros(base.micros() * 7 / 10),
                    "reserved" => Price::from_micros(base.micros() / 1_000),
                    _ => base,
                },
                available: !self.has("soldout") && !self.all("soldout").any(|out| out == zone),
                reservation_capacity: (kind == "reserved")
                    .then(|| self.value("slots").map_or(0, |n| n.parse().unwrap())),
                overrides: None,
            }
        };
        let offerings = zones.iter().flat_map(|zone| kinds.iter().map(move |kind| (*zone, *kind)));
        let mut requirements = Requirements::new();
        requirements.add(Requirement::one_of(label::INSTANCE_TYPE, [self.name]), &rules);
        requirements.add(Requirement::one_of(label::ZONE, &zones), &rules);
        requirements.add(Requirement::one_of(label::CAPACITY_TYPE, &kinds), &rules);
        requirements.add(Requirement::one_of(label::ARCH, ["amd64"]), &rules);
        requirements.add(Requirement::one_of(label::OS, ["linux"]), &rules);
        InstanceType {
            name: Arc::from(self.name),
            requirements,
            offerings: offerings.map(|(zone, kind)| offering(zone, kind)).collect(),
            capacity: self.capacity(),
            overhead: Overhead::default(),
            volume_limits: BTreeMap::new(),
        }
    }

    fn pool(&self, now: Timestamp) -> StoredPool {
        let limits = self.pairs("limit").map(|(name, amount)| (ResourceName::from(name), amount.parse().unwrap()));
        let expressions: Vec<_> = self.all("require").map(expression).collect();
        let size = match self.value("replicas") {
            Some(replicas) => PoolSize::Static { replicas: replicas.parse().unwrap() },
            None => PoolSize::Dynamic,
        };
        let budgets = self.values("budget").filter(|text| *text != "-").map(budget);
        let budgets: BudgetList = match self.values("budget").next() {
            // Most cases are not about budgets.
            None => [budget("100%")].into_iter().collect(),
            Some(_) => budgets.collect(),
        };
        let spec = NodePool {
            name: Arc::from(self.name),
            weight: 0,
            size,
            limits: limits.collect(),
            labels: self.texts("label"),
            annotations: Texts::new(),
            node: NodeSpec {
                class: class(),
                requirements: Requirements::parse(&expressions, &LabelRules::core()).unwrap(),
                taints: self.all("taint").map(|text| text.parse::<Taint>().unwrap()).collect(),
                startup_taints: Vec::new(),
                expire_after: NillableDuration::Never,
                termination_grace_period: None,
            },
            disruption: Disruption {
                enabled: !self.has("no-deprovisioning"),
                policy: self
                    .value("policy")
                    .map_or(ConsolidationPolicy::WhenEmptyOrUnderutilized, |text| text.parse().unwrap()),
                consolidate_after: self.value("after").unwrap_or("0s").parse().unwrap(),
                consolidation_enabled: !self.has("no-consolidation"),
                drift_enabled: !self.has("no-drift"),
                drift_force_evict: self.has("force-evict"),
                expiration_enabled: true,
                budgets,
            },
            disabled: self.has("disabled"),
        };
        let ready = if self.has("notready") { ConditionStatus::False } else { ConditionStatus::True };
        let status =
            PoolStatus { conditions: Conditions(vec![condition("Ready", ready, now)]), ..PoolStatus::default() };
        let mut meta = self.meta(self.name, "", now);
        meta.labels = Texts::new();
        StoredPool { meta, spec: Ok(spec), class: class(), hash: None, status }
    }

    fn labels(&self) -> Texts {
        let mut labels = self.texts("label");
        let named = [
            ("pool", label::NODEPOOL),
            ("type", label::INSTANCE_TYPE),
            ("zone", label::ZONE),
            ("kind", label::CAPACITY_TYPE),
        ];
        let defaults = [("type", "small"), ("zone", "a"), ("kind", "on-demand")];
        for (word, key) in named {
            let default = defaults.iter().find(|(name, _)| *name == word).map(|(_, value)| *value);
            match self.value(word).or(default) {
                Some("-") | None => {}
                Some(value) => drop(labels.insert(Arc::from(key), Arc::from(value))),
            }
        }
        if self.value("kind") == Some("reserved") {
            labels.insert(Arc::from(label::RESERVATION_ID), Arc::from("r1"));
        }
        labels.insert(Arc::from(label::HOSTNAME), Arc::from(self.name));
        labels
    }

    fn node(&self, now: Timestamp) -> Vec<Change> {
        let mut conditions = vec![condition("Launched", ConditionStatus::True, now)];
        let initialized_at = now - self.value("age").map_or(SignedDuration::from_hours(24), duration);
        if !self.has("uninitialized") {
            conditions.push(condition("Initialized", ConditionStatus::True, initialized_at));
        }
        if !self.has("unsettled") && self.value("pod-event").is_none() {
            let status = self.value("consolidatable").map_or(ConditionStatus::True, |text| text.parse().unwrap());
            conditions.push(condition("Consolidatable", status, initialized_at));
        }
        if let Some(since) = self.ago("drifted", now) {
            conditions.push(condition("Drifted", ConditionStatus::True, since));
        }
        if self.has("left-over-marks") {
            conditions.push(condition("DisruptionReason", ConditionStatus::True, now));
        }
        if self.has("terminating") {
            conditions.push(condition("InstanceTerminating", ConditionStatus::True, now));
        }
        match self.value("rebooting") {
            Some(ended) => conditions.push(condition("Rebooting", ConditionStatus::False, now - duration(ended))),
            None if self.has("rebooting") => conditions.push(condition("Rebooting", ConditionStatus::True, now)),
            None => {}
        }
        let mut meta = self.meta(self.name, "", now);
        meta.annotations = self.texts("claim-annotation");
        meta.labels = self.labels();
        // A pool other than the labels': somebody has relabelled them, and nothing was moved.
        meta.owners.extend(self.value("made-by").map(|pool| Owner {
            api_version: Arc::from("karpenter.sh/v1"),
            kind: Arc::from("NodePool"),
            name: Arc::from(pool),
            uid: Arc::from(pool),
            controller: false,
            blocks_deletion: true,
        }));
        let claim = NodeClaim {
            meta: meta.clone(),
            node: NodeSpec {
                class: if self.has("foreign") { foreign_class() } else { class() },
                requirements: Requirements::new(),
                taints: Vec::new(),
                startup_taints: Vec::new(),
                expire_after: self.value("expire").unwrap_or("Never").parse().unwrap(),
                termination_grace_period: self.value("tgp").map(|text| text.parse().unwrap()),
            },
            requests: ResourceList::new(),
            status: ClaimStatus {
                provider_id: (!self.has("unlaunched")).then(|| Arc::from(format!("id-{}", self.name))),
                capacity: self.capacity(),
                allocatable: self.capacity(),
                last_pod_event: self.value("pod-event").map(|text| now - duration(text)),
                conditions: Conditions(conditions),
                ..ClaimStatus::default()
            },
        };
        meta.annotations = self.texts("annotation");
        meta.deleting = None;
        if !self.has("unregistered") {
            meta.labels.insert(Arc::from(label::REGISTERED), Arc::from("true"));
            if !self.has("uninitialized") {
                meta.labels.insert(Arc::from(label::INITIALIZED), Arc::from("true"));
            }
        }
        let node = Node {
            provider_id: claim.status.provider_id.clone(),
            taints: self.all("taint").map(|text| text.parse().unwrap()).collect(),
            unschedulable: false,
            capacity: self.capacity(),
            allocatable: self.capacity(),
            conditions: self.node_conditions(now),
            boot_id: None,
            meta,
        };
        let claim = Change::NodeClaim(claim.meta.name.clone(), Some(Arc::new(claim)));
        let node = Change::Node(node.meta.name.clone(), Some(Arc::new(node)));
        match (self.has("claim-only") || self.has("unlaunched"), self.has("node-only")) {
            (true, _) => vec![claim],
            (false, true) => vec![node],
            (false, false) => vec![claim, node],
        }
    }

    /// `sick:GPU=False/Xid79/20m`: a condition with status, reason and since when.
    fn node_conditions(&self, now: Timestamp) -> Vec<NodeCondition> {
        let sick: Vec<_> = self
            .pairs("sick")
            .map(|(kind, rest)| {
                let parts: Vec<_> = rest.split('/').collect();
                NodeCondition {
                    kind: Arc::from(kind),
                    status: parts[0].parse().unwrap(),
                    reason: Arc::from(parts[1]),
                    since: now - duration(parts[2]),
                }
            })
            .collect();
        let has_ready = sick.iter().any(|condition| &*condition.kind == "Ready");
        let status = if self.has("unready") { ConditionStatus::False } else { ConditionStatus::True };
        let ready = NodeCondition { kind: Arc::from("Ready"), status, reason: Arc::from("Kubelet"), since: now };
        sick.into_iter().chain((!has_ready).then_some(ready)).collect()
    }

    fn pods(&self, namespace: &str, now: Timestamp) -> Vec<Change> {
        let copies = self.words.iter().find_map(|word| word.strip_prefix('x')?.parse::<usize>().ok());
        let names = match copies {
            None => vec![self.name.to_owned()],
            Some(count) => (0..count).map(|at| format!("{}-{at}", self.name)).collect(),
        };
        let mut requests = self.resources();
        requests.insert(ResourceName::PODS, "1".parse().unwrap());
        let constraints = Arc::new(self.constraints());
        let pod = |name: String| {
            let on = self.value("on").map(Arc::from);
            let meta = self.meta(&name, namespace, now);
            let phase = match on {
                _ if self.has("succeeded") => PodPhase::Succeeded,
                Some(_) => PodPhase::Running,
                None => PodPhase::Pending,
            };
            let pod = Pod {
                do_not_disrupt: DoNotDisrupt::read(self.value("protected").or(self.has("protected").then_some("true"))),
                meta,
                phase,
                unschedulable: on.is_none(),
                node_name: on,
                requests: requests.clone(),
                constraints: Arc::clone(&constraints),
                volumes: Vec::new(),
                priority: self.value("priority").map_or(0, |text| text.parse().unwrap()),
                priority_class: None,
                nominated_node: None,
                started: (!self.has("not-started"))
                    .then(|| now - self.value("age").map_or(SignedDuration::from_hours(24), duration)),
                termination_grace: None,
                is_unready: self.has("unready"),
                uses_resource_claims: false,
            };
            Change::Pod(pod.meta.name.clone(), Some(Arc::new(pod)))
        };
        names.into_iter().map(pod).collect()
    }

    fn constraints(&self) -> PodConstraints {
        let tolerate = |key: &str| Toleration { key: Some(Arc::from(key)), effect: None, value: ToleratedValue::Any };
        PodConstraints {
            node_selector: self.pairs("select").map(|(key, value)| (Arc::from(full(key)), Arc::from(value))).collect(),
            tolerations: self.all("tolerate").map(tolerate).collect(),
            spread: self.all("spread").map(spread).collect(),
            required_anti_affinity: self.all("apart").map(affinity).collect(),
            ..PodConstraints::default()
        }
    }

    fn pdb(&self, namespace: &str, now: Timestamp) -> DisruptionBudget {
        DisruptionBudget {
            meta: self.meta(self.name, namespace, now),
            selector: Some(Selector::new(self.pairs("select"), []).unwrap()),
            disruptions_allowed: self.value("allowed").unwrap_or("0").parse().unwrap(),
            never_allows: self.has("never"),
            always_allows_unhealthy: self.has("always-allow"),
        }
    }

    fn stored_window(&self, now: Timestamp) -> StoredWindow {
        let (meta, status) = (self.meta(self.name, "", now), WindowStatus::default());
        StoredWindow { meta, spec: self.window(), problem: self.value("problem").map(Arc::from), status }
    }

    fn window(&self) -> MaintenanceWindow {
        let selected: Vec<_> = self.pairs("select").map(|(key, value)| (full(key), value)).collect();
        MaintenanceWindow {
            name: Arc::from(self.name),
            schedules: self.values("at").map(|text| window(text, Dialect::MaintenanceWindow)).collect(),
            outside_schedules: self.has("outside"),
            actions: self.values("action").flat_map(|name| maintenance::Action::named(name).unwrap()).collect(),
            selector: (!selected.is_empty()).then(|| Selector::new(selected, []).unwrap()),
            until: None,
        }
    }
}

/// `3`, `10%:Drifted,Empty`, `0@0_9_*_*_1-5/8h`.
fn budget(text: &str) -> Result<Budget, kerf_model::budget::BrokenBudget> {
    let (text, at) = text.split_once('@').map_or((text, None), |(text, at)| (text, Some(at)));
    let (nodes, reasons) = text
        .split_once(':')
        .map_or((text, Vec::new()), |(nodes, reasons)| (nodes, reasons.split(',').collect::<Vec<_>>()));
    let at = at.map(|at| at.rsplit_once('/').unwrap()).map(|(cron, duration)| (cron.replace('_', " "), duration));
    let schedule = at.as_ref().map(|(cron, _)| cron.as_str());
    let duration = at.as_ref().map(|(_, duration)| *duration);
    Budget::parse(BudgetText { nodes, reasons: &reasons, schedule, duration, time_zone: None })
}

fn window(text: &str, dialect: Dialect) -> Window {
    let (cron, duration) = text.rsplit_once('/').unwrap();
    let schedule = Schedule::parse_as(&cron.replace('_', " "), dialect).unwrap();
    Window { schedule, duration: duration.parse().unwrap() }
}

/// Sheet 08 D4's set of policies.
pub fn repair_policies() -> Vec<RepairPolicy> {
    let minutes = SignedDuration::from_mins;
    let policy = |condition: &str, status, reason: Option<&str>, toleration, grace, priority, action| RepairPolicy {
        condition: Arc::from(condition),
        status,
        reason: reason.map(Arc::from),
        toleration: minutes(toleration),
        termination_grace_period: grace,
        priority,
        action,
    };
    let (replace, reboot) = (RepairAction::ReplaceNode, RepairAction::RebootNode);
    vec![
        policy("Ready", ConditionStatus::False, None, 10, None, 0, replace),
        policy("GPU", ConditionStatus::False, Some("Xid"), 5, Some(minutes(1)), 70, reboot),
        policy("Kernel", ConditionStatus::True, Some("^Panic$"), 0, Some(SignedDuration::ZERO), 40, replace),
    ]
}

/// `zone:1:app=web`.
fn spread(text: &str) -> SpreadConstraint {
    let parts: Vec<_> = text.split(':').collect();
    SpreadConstraint {
        max_skew: parts[1].parse().unwrap(),
        topology_key: Arc::from(full(parts[0])),
        when_unsatisfiable: WhenUnsatisfiable::DoNotSchedule,
        selector: Some(Selector::new([parts[2].split_once('=').unwrap()], []).unwrap()),
        min_domains: None,
        honors_node_affinity: true,
        honors_node_taints: false,
    }
}

/// `host:app=web`.
fn affinity(text: &str) -> PodAffinityTerm {
    let (key, selected) = text.split_once(':').unwrap();
    PodAffinityTerm {
        topology_key: Arc::from(full(key)),
        selector: Some(Selector::new([selected.split_once('=').unwrap()], []).unwrap()),
        namespaces: Vec::new(),
        namespace_selector: None,
    }
}

/// `key=a,b`; `~2` at the end is minValues.
fn expression(text: &str) -> Expression {
    let (text, min_values) = match text.split_once('~') {
        Some((text, count)) => (text, Some(count.parse().unwrap())),
        None => (text, None),
    };
    let mut expression = match text.split_once('=') {
        Some((key, values)) => Expression::new(full(key), Operator::In, values.split(',')),
        None => Expression::new(full(text), Operator::Exists, [""; 0]),
    };
    expression.min_values = min_values;
    expression
}

fn full(key: &str) -> &str {
    match key {
        "zone" => label::ZONE,
        "type" => label::INSTANCE_TYPE,
        "kind" => label::CAPACITY_TYPE,
        "host" => label::HOSTNAME,
        "pool" => label::NODEPOOL,
        "do-not-disrupt" => annotation::DO_NOT_DISRUPT,
        "disruption-cost" => annotation::DISRUPTION_COST,
        "deletion-cost" => annotation::POD_DELETION_COST,
        other => other,
    }
}

fn duration(text: &str) -> SignedDuration {
    SignedDuration::from(text.parse::<GoDuration>().unwrap())
}

fn condition(kind: &str, status: ConditionStatus, since: Timestamp) -> Condition {
    let (reason, message) = (Arc::from(kind), Arc::from(""));
    Condition { kind: Arc::from(kind), status, reason, message, since, observed_generation: 1 }
}

/// Of another autoscaler in the same cluster.
fn foreign_class() -> NodeClassRef {
    NodeClassRef { group: Arc::from("elsewhere.test"), ..class() }
}

fn class() -> NodeClassRef {
    NodeClassRef { group: Arc::from("karpenter.test"), kind: Arc::from("TestClass"), name: Arc::from("default") }
}
