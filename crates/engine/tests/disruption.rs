//! Disruption over many looks, in a cluster that carries out what the engine writes: cases 31, 40 and 41 of sheet 03, and
//! what wakes a round.
//!
//! The cluster is written in the language of the rounds of `kerf-disruption`.

#![expect(clippy::unwrap_used, clippy::panic, reason = "in helpers of tests a failure is the failure of the test")]

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use kerf_engine::{DisruptionNote, Engine, Settings};
use kerf_model::change::{Change, Input};
use kerf_model::cluster::{
    ClaimStatus, Condition, ConditionStatus, Node, NodeClaim, ObjectMeta, ObjectName, Texts, condition_kind as kind,
};
use kerf_model::effect::{ClaimPatch, Effect, MetaPatch, NewClaim, NodePatch};
use kerf_model::label::{self, annotation};
use kerf_model::taint::Taint;

#[path = "../../disruption/tests/rounds/fixture.rs"]
#[expect(dead_code, reason = "only the language is used here")]
mod fixture;

use fixture::Fixture;

struct Cluster {
    engine: Engine,
    now: Timestamp,
    /// What became of disruptions.
    told: Vec<DisruptionNote>,
    events: Vec<&'static str>,
    version: u32,
}

impl Cluster {
    /// With what is needed to choose something from the first moment on.
    fn new(text: &str) -> Self {
        let fixture = Fixture::read(text);
        let lifecycle = kerf_lifecycle::Settings::for_classes(fixture.settings.classes.clone());
        let mut settings = Settings::new(lifecycle, fixture.rules.clone());
        settings.disruption = fixture.settings.clone();
        let engine = Engine::new(settings);
        let mut cluster = Self { engine, now: fixture.now, told: Vec::new(), events: Vec::new(), version: 1 };
        let inputs =
            changes(&fixture).map(Input::Change).chain([Input::Catalogue(fixture.types.clone()), Input::Synced]);
        cluster.look(inputs.collect());
        // A new process only looks for a while.
        cluster.pass(SignedDuration::from_secs(16));
        cluster
    }

    /// Objects that are new or other now, with the times that they would have had at first.
    fn change(&mut self, text: &str) {
        self.look(changes(&Fixture::read(text)).map(Input::Change).collect());
    }

    fn pass(&mut self, time: SignedDuration) {
        let end = self.now + time;
        while self.now < end {
            self.now += SignedDuration::from_secs(1);
            self.look(Vec::new());
        }
    }

    /// What is written is seen at once.
    fn look(&mut self, mut inputs: Vec<Input>) {
        loop {
            let output = self.engine.handle(inputs, self.now);
            self.told.extend(output.disruption);
            inputs = Vec::new();
            for effect in output.effects {
                if let Effect::Publish(event) = &effect {
                    self.events.push(event.reason);
                }
                inputs.extend(self.carry_out(effect).map(Input::Change));
            }
            if inputs.is_empty() {
                return;
            }
        }
    }

    fn carry_out(&mut self, effect: Effect) -> Option<Change> {
        self.version += 1;
        let snapshot = self.engine.snapshot();
        match effect {
            Effect::CreateClaim(new) => {
                let claim = self.launched(*new);
                Some(Change::NodeClaim(claim.meta.name.clone(), Some(Arc::new(claim))))
            }
            Effect::DeleteClaim(target) => {
                snapshot.claim(&target.name.name)?;
                Some(Change::NodeClaim(target.name, None))
            }
            Effect::PatchClaim(target, patch) => {
                let mut claim = NodeClaim::clone(snapshot.claim(&target.name.name)?);
                let ClaimPatch { meta, status } = *patch;
                self.edit(&mut claim.meta, meta);
                claim.status.last_pod_event = status.last_pod_event.or(claim.status.last_pod_event);
                claim.status.conditions = status.conditions.unwrap_or(claim.status.conditions);
                Some(Change::NodeClaim(target.name, Some(Arc::new(claim))))
            }
            Effect::PatchNode(target, patch) => {
                let mut node = Node::clone(snapshot.node(&target.name.name)?);
                let NodePatch { meta, taints } = *patch;
                self.edit(&mut node.meta, meta);
                node.taints = taints.unwrap_or(node.taints);
                Some(Change::Node(target.name, Some(Arc::new(node))))
            }
            // Nothing here depends on the rest.
            _ => None,
        }
    }

    /// A claim whose instance never joins.
    fn launched(&self, new: NewClaim) -> NodeClaim {
        let condition = |kind: &str| Condition {
            kind: Arc::from(kind),
            status: ConditionStatus::True,
            reason: Arc::from(kind),
            message: Arc::from(""),
            since: self.now,
            observed_generation: 1,
        };
        let meta = ObjectMeta {
            name: ObjectName::of_cluster(new.name.clone()),
            uid: Arc::from(format!("uid-{}", new.name)),
            resource_version: Arc::from(self.version.to_string()),
            generation: 1,
            created: self.now,
            deleting: None,
            labels: new.labels,
            annotations: new.annotations,
            finalizers: vec![Arc::from(label::TERMINATION_FINALIZER)],
            owners: new.owner.into_iter().collect(),
        };
        let mut status = ClaimStatus { provider_id: Some(Arc::from(format!("id-{}", new.name))), ..Default::default() };
        status.conditions.0.push(condition(kind::LAUNCHED));
        NodeClaim { meta, node: new.node, requests: new.requests, status }
    }

    fn edit(&self, meta: &mut ObjectMeta, patch: MetaPatch) {
        let edit = |texts: &mut Texts, patch: BTreeMap<Arc<str>, Option<Arc<str>>>| {
            for (key, value) in patch {
                match value {
                    Some(value) => drop(texts.insert(key, value)),
                    None => drop(texts.remove(&key)),
                }
            }
        };
        edit(&mut meta.labels, patch.labels);
        edit(&mut meta.annotations, patch.annotations);
        meta.finalizers = patch.finalizers.unwrap_or_else(|| meta.finalizers.clone());
        meta.owners = patch.owners.unwrap_or_else(|| meta.owners.clone());
        meta.resource_version = Arc::from(self.version.to_string());
    }

    fn verdict(&self, claim: &str) -> &'static str {
        self.engine.node_verdicts()[claim].label()
    }

    /// Whether taint, condition and record of a disruption are on the node and its claim: all or none.
    fn is_marked(&self, name: &str) -> bool {
        let snapshot = self.engine.snapshot();
        let claim = snapshot.claim(name).unwrap();
        let marks = [
            snapshot.node(name).unwrap().taints.contains(&Taint::disrupted()),
            claim.status.conditions.is_true(kind::DISRUPTION_REASON),
            claim.meta.annotation(annotation::COMMAND).is_some(),
        ];
        assert!(marks == [true; 3] || marks == [false; 3], "{marks:?}");
        marks[0]
    }

    fn replacements(&self) -> Vec<Arc<str>> {
        let made =
            self.engine.snapshot().claims().filter(|claim| claim.meta.annotation(annotation::REPLACES).is_some());
        made.map(|claim| claim.name().clone()).collect()
    }
}

fn changes(fixture: &Fixture) -> impl Iterator<Item = Change> {
    let snapshot = &fixture.snapshot;
    let pools = snapshot.pools().map(|it| Change::NodePool(it.meta.name.clone(), Some(it.clone())));
    let claims = snapshot.claims().map(|it| Change::NodeClaim(it.meta.name.clone(), Some(it.clone())));
    let nodes = snapshot.nodes().map(|it| Change::Node(it.meta.name.clone(), Some(it.clone())));
    let pods = snapshot.pods().map(|it| Change::Pod(it.meta.name.clone(), Some(it.clone())));
    let budgets = snapshot.disruption_budgets();
    let budgets = budgets.map(|it| Change::DisruptionBudget(it.meta.name.clone(), Some(it.clone())));
    pools.chain(claims).chain(nodes).chain(pods).chain(budgets).collect::<Vec<_>>().into_iter()
}

const SECONDS: fn(i64) -> SignedDuration = SignedDuration::from_secs;

/// Case 31.
#[test]
fn an_empty_node_that_a_waiting_pod_fits_on_is_kept_for_it() {
    let text = "type small cpu=4
         pool p
         node a pool=p cpu=4";
    let mut nobody_waits = Cluster::new(text);
    nobody_waits.pass(SECONDS(30));
    assert!(nobody_waits.engine.snapshot().claim("a").is_none());

    let mut waited_for = Cluster::new(&format!("{text}\npod web cpu=3"));
    waited_for.pass(SECONDS(60));
    assert_eq!(waited_for.verdict("a"), "nominated");
    assert!(waited_for.told.iter().all(|note| matches!(note, DisruptionNote::Looked)), "{:?}", waited_for.told);

    // It came while the node was waiting for its end.
    let mut late = Cluster::new(text);
    late.pass(SECONDS(5));
    assert_eq!((late.verdict("a"), late.engine.held().len()), ("go", 1));
    late.change("pod web cpu=3");
    late.pass(SECONDS(60));
    assert_eq!(late.verdict("a"), "nominated");
    assert!(late.told.iter().any(|note| matches!(note, DisruptionNote::Withdrawn { .. })), "{:?}", late.told);

    let mut too_large = Cluster::new(&format!("{text}\npod web cpu=5"));
    too_large.pass(SECONDS(30));
    assert!(too_large.engine.snapshot().claim("a").is_none(), "it would not help");
}

const DRIFTED: &str = "type small cpu=4
     pool p no-consolidation require:zone=b
     node a pool=p cpu=4 zone=a
     pod web on=a cpu=3";

/// Case 40: at eleven minutes nothing tells of the attempt, and the next begins as soon as the pool may try again.
#[test]
fn a_node_whose_replacement_never_becomes_ready_is_a_candidate_again() {
    let mut cluster = Cluster::new(DRIFTED);
    cluster.pass(SECONDS(5));
    assert_eq!((cluster.verdict("a"), cluster.replacements().len(), cluster.is_marked("a")), ("under_way", 1, true));
    cluster.pass(SECONDS(9 * 60));
    assert!(cluster.is_marked("a"));
    cluster.pass(SECONDS(61));
    let failed = cluster.told.iter().filter(|note| matches!(note, DisruptionNote::Failed { .. })).count();
    assert_eq!((failed, cluster.is_marked("a"), cluster.replacements().len()), (1, false, 0));
    assert_eq!(cluster.verdict("a"), "backed_off");
    cluster.pass(SECONDS(60));
    assert_eq!((cluster.verdict("a"), cluster.replacements().len(), cluster.is_marked("a")), ("under_way", 1, true));
}

/// Case 41.
#[test]
fn a_node_whose_replacement_vanishes_is_a_candidate_again() {
    let mut cluster = Cluster::new(DRIFTED);
    cluster.pass(SECONDS(5));
    let name = cluster.replacements().remove(0);
    cluster.look(vec![Input::Change(Change::NodeClaim(ObjectName::of_cluster(name), None))]);
    assert!(!cluster.is_marked("a"));
    assert_eq!(cluster.engine.commands().len(), 0);
    cluster.pass(SECONDS(60));
    assert!(cluster.is_marked("a"));
}

/// Nobody looked: a change of these kinds alone was not seen as one that matters.
#[test]
fn a_change_of_a_pod_that_lets_its_node_go_is_seen_at_once() {
    let free = "type small cpu=4
         pool p
         node free pool=p cpu=4 annotation:do-not-disrupt=true
         node a pool=p cpu=4";
    let check = |objects: &str, stays: &str, change: &str| {
        let mut cluster = Cluster::new(&format!("{free}\n{objects}"));
        assert_eq!(cluster.verdict("a"), stays, "{objects}");
        cluster.pass(SECONDS(120));
        cluster.change(change);
        cluster.pass(SECONDS(6));
        assert_eq!(cluster.verdict("a"), "go", "{change}");
    };
    // Sheet 03, case 19.
    let pod = "pod web on=a cpu=1 label:app=web";
    check(&format!("{pod}\npdb web select:app=web always-allow"), "pdb_blocks", &format!("{pod} unready"));
    // Resized as it runs.
    check("pod web on=a cpu=4\npod busy on=free cpu=1", "no_cheaper", "pod web on=a cpu=2");
}
