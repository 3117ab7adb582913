//! A cloud on virtual time: instances start, boot, join as nodes, and end.

mod made;

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use kerf_api::Provider;
use kerf_api::provider::label_rules;
use kerf_cloud::InstanceTypes;
use kerf_cloud::choice::{Choice, choose};
use kerf_model::change::Input;
use kerf_model::cloud::{
    HookReport, Instance, Interruption, InterruptionCause, LaunchError, Launched, RebootAnswer, TerminateAnswer,
};
use kerf_model::cluster::{InstanceType, NodeClaim, ObjectName, OfferingName, Texts};
use kerf_model::effect::Target;
use kerf_model::label::{self, LabelRules, taint_key};
use kerf_model::resources::ResourceList;
use serde_json::{Map, Value, json};

use self::made::Made;
use super::image::{self, Wanted};
use super::ledger::Ledger;
use super::shortage::{self, Shortage};
use crate::ec2::Account;
use crate::faults::LaunchFate;
use crate::store::{ApiError, Kind, Part, Patch, Store};
use crate::world::{Alarms, LOST, change_status};

const PROVIDER_ID_PREFIX: &str = "sim://";

/// The cloud's one registration hook, how long after its launch it knows where a machine was put, and how often to ask.
const HOOK: &str = "placement";
const PLACED_AFTER: SignedDuration = SignedDuration::from_secs(45);
const ASK_EVERY: SignedDuration = SignedDuration::from_secs(5);

/// On nodes: the rack that their machine was put into. There is one.
const RACK: &str = "sim.kerf.dev/rack";

/// The reason of a node's condition that is over when its machine has booted again. Other reasons are deeper.
pub const CURED_BY_REBOOT: &str = "Hang";

/// Between a warning and the end of a machine that the cloud takes back.
const NOTICE: SignedDuration = SignedDuration::from_mins(2);

/// A claim to launch for, and what its class wants.
type Ordered<'a> = (&'a NodeClaim, Wanted);

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
    /// What there is when nothing is short.
    plenty: InstanceTypes,
    account: Account,
    /// Of AWS: what labels of its types mean.
    rules: LabelRules,
    types: InstanceTypes,
    offers: u64,
    shortages: Vec<Shortage>,
    known_shortages: Vec<Shortage>,
    avoided: Vec<OfferingName>,
    pace: CloudPace,
    instances: BTreeMap<Arc<str>, Machine>,
    joining: Alarms<Arc<str>>,
    /// With the operation, of which the new boot id is made.
    rebooting: Alarms<(Arc<str>, Arc<str>)>,
    ending: Alarms<Arc<str>>,
    /// How often a machine came, was told to end, or went.
    changes: u64,
    /// Answers under way, in the order of the questions.
    answers: BTreeMap<(Timestamp, u64), Input>,
    questions: u64,
    /// By claim uid: what was launched for it and has ended. Asked again, a cloud names the same instance: its clients send
    /// the claim along so that there is never a second.
    ended: BTreeMap<Arc<str>, Launched>,
    ledger: Ledger,
}

struct Machine {
    claim_uid: Arc<str>,
    /// The cloud does not know any more whom it was made for.
    is_forgotten: bool,
    launched: Timestamp,
    answer: Launched,
    made: Made,
    node_name: String,
    /// The Node that its kubelet will post.
    node: Value,
    is_ending: bool,
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
            is_ending: machine.is_ending,
        })
    }

    /// Unchanged as long as [`Cloud::machines`] shows the same.
    pub fn changes(&self) -> u64 {
        self.changes
    }

    /// The machine is gone at once and without notice, as spot capacity goes.
    pub fn lose(&mut self, provider_id: &str, now: Timestamp) {
        self.end(provider_id, now);
    }

    /// The machine goes at this time, if there is one. An earlier time counts.
    fn end(&mut self, provider_id: &str, at: Timestamp) -> bool {
        let Some((id, machine)) = self.instances.get_key_value(provider_id) else { return false };
        let (id, is_ending) = (id.clone(), machine.is_ending);
        if !is_ending {
            self.changes += 1;
        }
        self.ending.set_if_earlier(&id, at);
        self.ledger.ending(id.clone());
        self.instances.entry(id).and_modify(|machine| machine.is_ending = true);
        true
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
            plenty: types.clone(),
            account: Account::in_zones_of(&types),
            rules: label_rules(Some(Provider::Aws)),
            types,
            offers: 0,
            shortages: Vec::new(),
            known_shortages: Vec::new(),
            avoided: Vec::new(),
            pace,
            instances: BTreeMap::new(),
            joining: Alarms::new(),
            rebooting: Alarms::new(),
            ending: Alarms::new(),
            changes: 0,
            answers: BTreeMap::new(),
            questions: 0,
            ended: BTreeMap::new(),
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
    pub(super) fn launch(&mut self, target: Target, order: Option<Ordered<'_>>, fate: LaunchFate, now: Timestamp) {
        let made = self.instances.values().find(|machine| machine.is_for(&target.uid));
        let made = made.map(|machine| &machine.answer).or_else(|| self.ended.get(&target.uid));
        let mut delay = SignedDuration::ZERO;
        let answer = match (made, order, fate) {
            (Some(answer), ..) => Ok(answer.clone()),
            (None, _, LaunchFate::Refused(error)) => Err(error),
            // Asked for by name and uid: what was seen under the name may be another claim by now.
            (None, Some((claim, wanted)), fate) if claim.meta.uid == target.uid => {
                if let LaunchFate::Slow(wait) = fate {
                    delay = wait;
                }
                self.start((claim, &wanted), fate != LaunchFate::NeverJoins, now)
            }
            (None, Some(_) | None, _) => {
                Err(LaunchError::Failed { reason: "ClaimGone".into(), message: "no such claim".into() })
            }
        };
        self.answer(Input::Launched { claim: target, answer }, now + delay);
    }

    fn start(
        &mut self,
        (claim, wanted): (&NodeClaim, &Wanted),
        joins: bool,
        now: Timestamp,
    ) -> Result<Launched, LaunchError> {
        let types = match self.avoided.is_empty() {
            true => self.types.clone(),
            false => self.types.iter().map(|kind| kind.without(&self.avoided)).collect(),
        };
        let types = self.offered_by(wanted, claim, types)?;
        let choice = choose(&types, claim)?;
        self.check_stock(&choice)?;
        let node_name = self.free_host_name(claim.name());
        let made_before = self.instances.values().filter(|machine| machine.claim_uid == claim.meta.uid).count();
        let mut provider_id = format!("{PROVIDER_ID_PREFIX}{}", claim.meta.uid);
        if made_before > 0 {
            provider_id = format!("{provider_id}-{made_before}");
        }
        let provider_id: Arc<str> = provider_id.into();
        let mut answer = Launched {
            provider_id: provider_id.clone(),
            image_id: None,
            capacity: choice.capacity(),
            allocatable: choice.allocatable(),
            labels: choice.labels(),
            annotations: Texts::new(),
        };
        let made = self.make(wanted, &choice, &mut answer)?;
        let kubelet = match &made {
            Made::Plain { .. } => answer.image_id.as_deref(),
            Made::Ec2(_) => answer.image_id.as_deref().and_then(|image| self.account.kubelet(image)),
        };
        let node = node(&node_name, &answer, &choice, kubelet.unwrap_or(image::PLAIN));
        let machine = Machine {
            claim_uid: claim.meta.uid.clone(),
            launched: now,
            answer: answer.clone(),
            made,
            node_name,
            node,
            is_forgotten: false,
            is_ending: false,
        };
        if joins {
            self.joining.set(provider_id.clone(), now + self.pace.boot);
        }
        self.changes += 1;
        self.ledger.launched(provider_id.clone(), choice.offering.price, now);
        self.instances.insert(provider_id, machine);
        Ok(answer)
    }

    /// No two machines share a host name, as in a real cloud, though a claim may bear the name of one that has gone and
    /// left its machine behind.
    fn free_host_name(&self, claim: &str) -> String {
        let name = format!("node-{claim}");
        match self.instances.values().any(|machine| machine.node_name == name) {
            true => format!("{name}-{}", self.changes),
            false => name,
        }
    }

    pub fn terminate(&mut self, claim: Option<Target>, provider_id: &str, now: Timestamp) {
        let answer = match self.end(provider_id, now + self.pace.shutdown) {
            true => TerminateAnswer::Accepted,
            false => TerminateAnswer::Gone,
        };
        if let Some(claim) = claim {
            self.answer(Input::Terminated { claim, answer }, now);
        }
    }

    pub fn list(&mut self, now: Timestamp) {
        let instances = self.instances.iter().map(|(id, machine)| Instance {
            provider_id: id.clone(),
            launched: machine.launched,
            is_terminating: machine.is_ending,
        });
        let instances = instances.collect();
        self.answer(Input::Instances(instances), now);
    }

    pub fn find(&mut self, provider_id: &str, now: Timestamp) {
        let exists = self.instances.get(provider_id).is_some_and(|machine| !machine.is_ending);
        self.answer(Input::InstanceFound { provider_id: provider_id.into(), exists }, now);
    }

    /// Where the machine of a claim was put, once that is known.
    pub fn run_hooks(&mut self, claim: Target, now: Timestamp) {
        let machine = self.instances.values().find(|machine| machine.is_for(&claim.uid));
        let is_placed = machine.is_none_or(|machine| now >= machine.launched + PLACED_AFTER);
        let report = match is_placed {
            true => {
                let labels = Texts::from_iter([(Arc::from(RACK), Arc::from("rack-1"))]);
                HookReport { labels, ..HookReport::default() }
            }
            false => HookReport { pending: vec![HOOK.into()], again: ASK_EVERY, labels: Texts::new() },
        };
        self.answer(Input::HooksRan { claim, report }, now);
    }

    /// The cloud takes the machine back: it says so, and does it when the notice is over.
    pub fn interrupt(&mut self, provider_id: &str, cause: InterruptionCause, now: Timestamp) {
        if !self.end(provider_id, now + NOTICE) {
            return;
        }
        let interruption = Interruption { provider_id: provider_id.into(), cause, notice: NOTICE };
        self.answer(Input::Interrupted(interruption), now);
    }

    /// Launches nothing there until it is told otherwise.
    pub fn avoid(&mut self, offerings: Vec<OfferingName>) {
        self.avoided = offerings;
    }

    /// A recommendation: the machine stays for now.
    pub fn recommend(&mut self, provider_id: &str, now: Timestamp) {
        let cause = InterruptionCause::RebalanceRecommended;
        let interruption = Interruption { provider_id: provider_id.into(), cause, notice: SignedDuration::ZERO };
        self.answer(Input::Interrupted(interruption), now);
    }

    /// From now on nothing can be had that a shortage is about. That is found out by who wants to launch it.
    pub fn set_shortages(&mut self, shortages: Vec<Shortage>) {
        self.shortages = shortages;
        self.show(Vec::new());
    }

    /// Offers what is not known to be sold out.
    fn show(&mut self, known: Vec<Shortage>) {
        let types: Vec<InstanceType> = self.plenty.iter().map(|it| shortage::without(it, &known)).collect();
        self.types = types.into();
        self.known_shortages = known;
        self.offers += 1;
    }

    /// Finds out whether the choice is sold out.
    fn check_stock(&mut self, choice: &Choice) -> Result<(), LaunchError> {
        let labels = choice.labels();
        let of = |key: &str| labels.get(key).map(ToString::to_string);
        let this = Shortage {
            instance_type: of(label::INSTANCE_TYPE),
            zone: of(label::ZONE),
            capacity_type: of(label::CAPACITY_TYPE),
        };
        if !self.shortages.iter().any(|shortage| shortage.covers(&this)) {
            return Ok(());
        }
        let message = format!("{this} is sold out").into();
        let known = self.known_shortages.iter().cloned().chain([this]).collect();
        self.show(known);
        Err(LaunchError::InsufficientCapacity { message })
    }

    /// Counts how often [`Cloud::types`] became another.
    pub fn offers(&self) -> u64 {
        self.offers
    }

    /// One operation is carried out once: the machine is back, with a new boot id, as soon as a new one would be.
    pub fn reboot(&mut self, claim: Target, provider_id: &str, operation: Arc<str>, now: Timestamp) {
        let answer = match self.instances.get(provider_id).filter(|machine| !machine.is_ending) {
            Some(_) => {
                self.rebooting.set_if_absent(&(Arc::from(provider_id), operation), now + self.pace.boot);
                RebootAnswer::Accepted
            }
            None => RebootAnswer::Failed { message: Arc::from("there is no such instance") },
        };
        self.answer(Input::Rebooted { claim, answer }, now);
    }

    /// What machines do by themselves: join, and fall silent when they end.
    pub fn step(&mut self, store: &mut Store, now: Timestamp) -> Result<(), ApiError> {
        for id in self.joining.ring(now) {
            let Some(machine) = self.instances.get(&id) else { continue };
            match store.create(Kind::Node, machine.node.clone(), now) {
                Ok(_) | Err(ApiError::AlreadyExists { .. }) => {}
                Err(error) => return Err(error),
            }
            let status = json!({"status": machine.node["status"]});
            let name = ObjectName::of_cluster(machine.node_name.as_str());
            store.patch(Kind::Node, &name, Part::Status, &Patch::Merge(status))?;
        }
        for (id, operation) in self.rebooting.ring(now) {
            let Some(machine) = self.instances.get(&id) else { continue };
            let name = ObjectName::of_cluster(machine.node_name.as_str());
            // A kubelet that was silent though its machine was there speaks again.
            let awake = json!({"metadata": {"annotations": {LOST: null}}});
            let awake = store.patch(Kind::Node, &name, Part::Main, &Patch::Merge(awake));
            let booted = |status: &mut Value| {
                status["nodeInfo"]["bootID"] = json!(&*operation);
                if let Some(conditions) = status["conditions"].as_array_mut() {
                    conditions.retain(|condition| condition["reason"] != CURED_BY_REBOOT);
                }
            };
            match awake.and_then(|_| change_status(store, Kind::Node, &name, booted)) {
                Ok(_) | Err(ApiError::NotFound { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        for id in self.ending.ring(now) {
            let Some(machine) = self.instances.remove(&id) else { continue };
            self.joining.clear(&id);
            self.changes += 1;
            self.ledger.ended(&id, now);
            if !machine.is_forgotten {
                self.ended.insert(machine.claim_uid.clone(), machine.answer.clone());
            }
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
        [self.joining.next(), self.rebooting.next(), self.ending.next(), answers].into_iter().flatten().min()
    }

    fn answer(&mut self, answer: Input, now: Timestamp) {
        self.questions += 1;
        self.answers.insert((now + self.pace.answer, self.questions), answer);
    }
}

fn node(name: &str, made: &Launched, choice: &Choice, kubelet: &str) -> Value {
    let mut all = texts(&made.labels);
    all.insert(label::HOSTNAME.to_owned(), Value::from(name));
    json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": name, "labels": all},
        "spec": {
            "providerID": &*made.provider_id,
            "taints": [{"key": taint_key::UNREGISTERED, "effect": "NoExecute"}],
        },
        "status": {
            "capacity": amounts(&choice.capacity()),
            "allocatable": amounts(&choice.allocatable()),
            "nodeInfo": {"kubeletVersion": kubelet},
        },
    })
}

fn texts(texts: &Texts) -> Map<String, Value> {
    texts.iter().map(|(key, value)| (key.to_string(), Value::from(&**value))).collect()
}

fn amounts(resources: &ResourceList) -> Map<String, Value> {
    resources.iter().map(|(name, amount)| (name.to_string(), Value::from(amount.to_string()))).collect()
}
