//! A cloud on virtual time: instances start, boot, join as nodes, and end.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use kerf_cloud::InstanceTypes;
use kerf_cloud::choice::{Choice, choose};
use kerf_model::change::Input;
use kerf_model::cloud::{Instance, LaunchError, Launched, TerminateAnswer};
use kerf_model::cluster::{NodeClaim, ObjectName, Texts};
use kerf_model::effect::Target;
use kerf_model::label::{self, taint_key};
use kerf_model::resources::ResourceList;
use serde_json::{Map, Value, json};

use super::ledger::Ledger;
use crate::faults::LaunchFate;
use crate::store::{ApiError, Kind, Part, Patch, Store};
use crate::world::LOST;

const PROVIDER_ID_PREFIX: &str = "sim://";

/// How long the cloud takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CloudPace {
    /// From the request until it answers.
    pub answer: SignedDuration,
    /// From the launch until the kubelet joins.
    pub boot: SignedDuration,
    /// From the request to end until the instance is gone.
    pub shutdown: SignedDuration,
}

impl Default for CloudPace {
    fn default() -> Self {
        Self {
            answer: SignedDuration::from_secs(2),
            boot: SignedDuration::from_secs(25),
            shutdown: SignedDuration::from_secs(10),
        }
    }
}

pub struct Cloud {
    types: InstanceTypes,
    pace: CloudPace,
    instances: BTreeMap<Arc<str>, Machine>,
    /// Answers under way, in the order of the questions.
    answers: BTreeMap<(Timestamp, u64), Input>,
    questions: u64,
    ledger: Ledger,
}

struct Machine {
    claim_uid: Arc<str>,
    /// The cloud does not know any more whom it was made for.
    is_forgotten: bool,
    launched: Timestamp,
    answer: Launched,
    node_name: String,
    /// The Node that its kubelet will post.
    node: Value,
    joins_at: Option<Timestamp>,
    ends_at: Option<Timestamp>,
}

impl Machine {
    fn is_for(&self, claim_uid: &str) -> bool {
        !self.is_forgotten && *self.claim_uid == *claim_uid
    }
}

/// A machine, as who checks the books sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MachineView<'a> {
    pub provider_id: &'a str,
    pub claim_uid: &'a str,
    pub is_ending: bool,
}

impl Cloud {
    pub fn machines(&self) -> impl Iterator<Item = MachineView<'_>> {
        self.instances.iter().map(|(id, machine)| MachineView {
            provider_id: id,
            claim_uid: &machine.claim_uid,
            is_ending: machine.ends_at.is_some(),
        })
    }

    /// The machine is gone at once and without notice, as spot capacity goes.
    pub fn lose(&mut self, provider_id: &str, now: Timestamp) {
        if let Some(machine) = self.instances.get_mut(provider_id) {
            machine.ends_at = Some(now);
        }
    }

    /// Breaks the promise of one instance per claim.
    pub(super) fn forget_claim(&mut self, claim_uid: &str) {
        self.instances.values_mut().filter(|it| *it.claim_uid == *claim_uid).for_each(|it| it.is_forgotten = true);
    }

    /// How many questions were asked so far.
    pub(super) fn questions(&self) -> u64 {
        self.questions
    }

    pub(super) fn forget_answers(&mut self) {
        self.answers.clear();
    }

    pub(super) fn forget_answers_after(&mut self, questions: u64) {
        self.answers.retain(|(_, question), _| *question <= questions);
    }

    pub fn new(types: InstanceTypes, pace: CloudPace) -> Self {
        Self {
            types,
            pace,
            instances: BTreeMap::new(),
            answers: BTreeMap::new(),
            questions: 0,
            ledger: Ledger::default(),
        }
    }

    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    pub fn types(&self) -> &InstanceTypes {
        &self.types
    }

    /// One instance per claim, however often it is asked for.
    pub fn launch(&mut self, target: Target, claim: Option<&NodeClaim>, fate: LaunchFate, now: Timestamp) {
        let made = self.instances.values().find(|machine| machine.is_for(&target.uid));
        let mut delay = SignedDuration::ZERO;
        let answer = match (made, claim, fate) {
            (Some(machine), ..) => Ok(machine.answer.clone()),
            (None, _, LaunchFate::Refused(error)) => Err(error),
            // Asked for by name and uid: what was seen under the name may be another claim by now.
            (None, Some(claim), fate) if claim.meta.uid == target.uid => {
                if let LaunchFate::Slow(wait) = fate {
                    delay = wait;
                }
                self.start(claim, fate != LaunchFate::NeverJoins, now)
            }
            (None, Some(_) | None, _) => {
                Err(LaunchError::Failed { reason: "ClaimGone".into(), message: "no such claim".into() })
            }
        };
        self.answer(Input::Launched { claim: target, answer }, now + delay);
    }

    fn start(&mut self, claim: &NodeClaim, joins: bool, now: Timestamp) -> Result<Launched, LaunchError> {
        let choice = choose(&self.types, claim)?;
        let node_name = format!("node-{}", claim.name());
        let made_before = self.instances.values().filter(|machine| machine.claim_uid == claim.meta.uid).count();
        let mut provider_id = format!("{PROVIDER_ID_PREFIX}{}", claim.meta.uid);
        if made_before > 0 {
            provider_id = format!("{provider_id}-{made_before}");
        }
        let provider_id: Arc<str> = provider_id.into();
        let labels = choice.labels();
        let answer = Launched {
            provider_id: provider_id.clone(),
            image_id: None,
            capacity: choice.instance_type.capacity.clone(),
            allocatable: choice.instance_type.allocatable(),
            labels: labels.clone(),
            annotations: Texts::new(),
        };
        let node = node(&node_name, &provider_id, &labels, &choice);
        let machine = Machine {
            claim_uid: claim.meta.uid.clone(),
            launched: now,
            answer: answer.clone(),
            node_name,
            node,
            is_forgotten: false,
            joins_at: joins.then(|| now + self.pace.boot),
            ends_at: None,
        };
        self.ledger.launched(provider_id.clone(), choice.offering.price, now);
        self.instances.insert(provider_id, machine);
        Ok(answer)
    }

    pub fn terminate(&mut self, claim: Option<Target>, provider_id: &str, now: Timestamp) {
        let answer = match self.instances.get_mut(provider_id) {
            None => TerminateAnswer::Gone,
            Some(machine) => {
                machine.ends_at.get_or_insert(now + self.pace.shutdown);
                TerminateAnswer::Accepted
            }
        };
        if let Some(claim) = claim {
            self.answer(Input::Terminated { claim, answer }, now);
        }
    }

    pub fn list(&mut self, now: Timestamp) {
        let instances = self.instances.iter().map(|(id, machine)| Instance {
            provider_id: id.clone(),
            launched: machine.launched,
            is_terminating: machine.ends_at.is_some(),
        });
        let instances = instances.collect();
        self.answer(Input::Instances(instances), now);
    }

    pub fn find(&mut self, provider_id: &str, now: Timestamp) {
        let exists = self.instances.get(provider_id).is_some_and(|machine| machine.ends_at.is_none());
        self.answer(Input::InstanceFound { provider_id: provider_id.into(), exists }, now);
    }

    /// What machines do by themselves: join, and fall silent when they end.
    pub fn step(&mut self, store: &mut Store, now: Timestamp) -> Result<(), ApiError> {
        for machine in self.instances.values_mut() {
            if machine.joins_at.is_some_and(|at| at <= now) {
                machine.joins_at = None;
                match store.create(Kind::Node, machine.node.clone(), now) {
                    Ok(_) | Err(ApiError::AlreadyExists { .. }) => {}
                    Err(error) => return Err(error),
                }
                let status = json!({"status": machine.node["status"]});
                let name = ObjectName::of_cluster(machine.node_name.as_str());
                store.patch(Kind::Node, &name, Part::Status, &Patch::Merge(status))?;
            }
        }
        let ended: Vec<Arc<str>> = self
            .instances
            .iter()
            .filter(|(_, machine)| machine.ends_at.is_some_and(|at| at <= now))
            .map(|(id, _)| id.clone())
            .collect();
        for id in ended {
            let Some(machine) = self.instances.remove(&id) else { continue };
            self.ledger.ended(&id, now);
            let name = ObjectName::of_cluster(machine.node_name.as_str());
            let lost = json!({"metadata": {"annotations": {LOST: "true"}}});
            match store.patch(Kind::Node, &name, Part::Main, &Patch::Merge(lost)) {
                Ok(_) | Err(ApiError::NotFound { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// The answers that have arrived.
    pub fn answers(&mut self, now: Timestamp) -> Vec<Input> {
        let later = self.answers.split_off(&(now + SignedDuration::from_nanos(1), 0));
        std::mem::replace(&mut self.answers, later).into_values().collect()
    }

    pub fn next_due(&self) -> Option<Timestamp> {
        let answers = self.answers.keys().next().map(|(at, _)| *at);
        let machines = self.instances.values().flat_map(|machine| [machine.joins_at, machine.ends_at]).flatten();
        machines.chain(answers).min()
    }

    fn answer(&mut self, answer: Input, now: Timestamp) {
        self.questions += 1;
        self.answers.insert((now + self.pace.answer, self.questions), answer);
    }
}

fn node(name: &str, provider_id: &str, labels: &Texts, choice: &Choice) -> Value {
    let mut all = texts(labels);
    all.insert(label::HOSTNAME.to_owned(), Value::from(name));
    json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": name, "labels": all},
        "spec": {"providerID": provider_id, "taints": [{"key": taint_key::UNREGISTERED, "effect": "NoExecute"}]},
        "status": {
            "capacity": amounts(&choice.instance_type.capacity),
            "allocatable": amounts(&choice.instance_type.allocatable()),
        },
    })
}

fn texts(texts: &Texts) -> Map<String, Value> {
    texts.iter().map(|(key, value)| (key.to_string(), Value::from(&**value))).collect()
}

fn amounts(resources: &ResourceList) -> Map<String, Value> {
    resources.iter().map(|(name, amount)| (name.to_string(), Value::from(amount.to_string()))).collect()
}
