//! The contract holds for a small honest cloud, and each way of cheating it is caught by its rule.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use jiff::{SignedDuration, Timestamp};
use kerf_cloud::choice::{Choice, choose};
use kerf_cloud::contract::{self, Rule, World};
use kerf_cloud::{Catalogue, ClassKind, CloudError, InstanceTypes, Order, Provider};
use kerf_model::cloud::{
    HookAnswer, Instance, Interruption, LaunchError, Launched, RepairAction, RepairPolicy, TerminateAnswer,
};
use kerf_model::cluster::{ClassReadiness, ConditionStatus, InstanceType, NodeClass, ObjectMeta, ObjectName, Texts};
use kerf_model::label::{LabelRules, ZONE};
use kerf_model::node_pool::{NodeClassRef, NodePool};
use kerf_model::requirement::Requirements;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cheat {
    None,
    ChangesItsTypes,
    ForgetsAWellKnownLabel,
    OffersNowhere,
    ReservesEverything,
    IgnoresRequirements,
    TakesTheLast,
    IgnoresRequests,
    NeedsNoClass,
    LaunchesTwice,
    SharesOneInstance,
    ForgetsInstances,
    NeverEnds,
    KeepsListing,
    DoubtsUnknownIds,
    RebootsAsFallback,
    NamesAHookItHasNot,
    NeverPassesAHook,
}

struct SmallCloud {
    cheat: Cheat,
    rules: LabelRules,
    types: InstanceTypes,
    /// By provider id: the uid of the claim, and how often the end was asked for.
    instances: Mutex<BTreeMap<String, (String, u32)>>,
    questions: Mutex<u32>,
    /// By uid of the claim: how often it was asked where its instance is.
    placed: Mutex<BTreeMap<String, u32>>,
}

struct SmallWorld {
    class: Class,
    now: Timestamp,
}

struct Class(NodeClass);

impl AsRef<NodeClass> for Class {
    fn as_ref(&self) -> &NodeClass {
        &self.0
    }
}

impl World<Class> for SmallWorld {
    fn class(&self) -> &Class {
        &self.class
    }

    fn now(&self) -> Timestamp {
        self.now
    }

    async fn wait(&mut self) {
        self.now += SignedDuration::from_secs(1);
    }
}

impl SmallCloud {
    fn new(cheat: Cheat) -> Self {
        let catalogue = Catalogue::kwok();
        let keys = catalogue.label_keys();
        let known = keys.iter().filter(|key| cheat != Cheat::ForgetsAWellKnownLabel || !key.ends_with("cpu"));
        let rules = LabelRules::core().with_well_known(known.map(|key| &***key));
        let types = catalogue.types().iter().take(40).map(|kind| cheat.spoil(kind.clone())).collect();
        Self { cheat, rules, types, instances: Mutex::default(), questions: Mutex::default(), placed: Mutex::default() }
    }

    fn choose(&self, order: &Order<'_, Class>) -> Result<Choice<'_>, LaunchError> {
        let mut claim = order.claim.clone();
        match self.cheat {
            Cheat::IgnoresRequirements => claim.node.requirements = Requirements::new(),
            Cheat::IgnoresRequests => claim.requests = Default::default(),
            Cheat::TakesTheLast => {
                let mut last_first = self.types.iter().rev();
                let fitting = last_first.find_map(|kind| choose(std::slice::from_ref(kind), &claim).ok());
                return fitting.map_or_else(|| choose(&self.types, &claim), Ok);
            }
            _ => {}
        }
        choose(&self.types, &claim)
    }
}

impl Cheat {
    fn spoil(self, mut kind: InstanceType) -> InstanceType {
        match self {
            Self::OffersNowhere => {
                for offering in &mut kind.offerings {
                    let kept = offering.requirements.iter().filter(|requirement| &**requirement.key() != ZONE).cloned();
                    let rules = LabelRules::core();
                    offering.requirements = kept.fold(Requirements::new(), |mut all, requirement| {
                        all.add(requirement, &rules);
                        all
                    });
                }
            }
            Self::ReservesEverything => kind.overhead.kube_reserved = kind.capacity.clone(),
            _ => {}
        }
        kind
    }
}

impl Provider for SmallCloud {
    type Class = Class;

    fn name(&self) -> &'static str {
        "small"
    }

    fn class_kind(&self) -> ClassKind {
        ClassKind { group: "test.kerf", kind: "SmallClass" }
    }

    fn label_rules(&self) -> &LabelRules {
        &self.rules
    }

    fn repair_policies(&self) -> Vec<RepairPolicy> {
        let fallback = self.cheat == Cheat::RebootsAsFallback;
        vec![RepairPolicy {
            condition: Arc::from("Ready"),
            status: ConditionStatus::False,
            reason: None,
            toleration: SignedDuration::from_mins(10),
            termination_grace_period: None,
            priority: 0,
            action: if fallback { RepairAction::RebootNode } else { RepairAction::ReplaceNode },
        }]
    }

    async fn instance_types(&self, _: &NodePool, _: &Class) -> Result<InstanceTypes, CloudError> {
        let mut questions = locked(&self.questions);
        *questions += 1;
        let skipped = if self.cheat == Cheat::ChangesItsTypes { *questions as usize % 2 } else { 0 };
        Ok(self.types.iter().skip(skipped).cloned().collect())
    }

    async fn launch(&self, order: Order<'_, Class>) -> Result<Launched, LaunchError> {
        if self.cheat != Cheat::NeedsNoClass {
            order.usable_class()?;
        }
        let choice = self.choose(&order)?;
        let uid = order.claim.meta.uid.to_string();
        let mut instances = locked(&self.instances);
        let before = instances.iter().find(|(_, (of, _))| *of == uid && self.cheat != Cheat::LaunchesTwice);
        let id = match before {
            Some((id, _)) => id.clone(),
            None if self.cheat == Cheat::SharesOneInstance => "small://one".to_owned(),
            None if self.cheat == Cheat::LaunchesTwice => format!("small://{uid}/{}", instances.len()),
            None => format!("small://{uid}"),
        };
        if self.cheat != Cheat::ForgetsInstances {
            instances.entry(id.clone()).or_insert((uid, 0));
        }
        Ok(Launched {
            provider_id: id.into(),
            image_id: None,
            capacity: choice.instance_type.capacity.clone(),
            allocatable: choice.instance_type.allocatable(),
            labels: choice.labels(),
            annotations: Texts::new(),
        })
    }

    async fn terminate(&self, provider_id: &str) -> TerminateAnswer {
        let mut instances = locked(&self.instances);
        let Some((_, asked)) = instances.get_mut(provider_id) else {
            let doubts = self.cheat == Cheat::DoubtsUnknownIds;
            return if doubts { TerminateAnswer::Failed { message: "who?".into() } } else { TerminateAnswer::Gone };
        };
        *asked += 1;
        if *asked < 3 || self.cheat == Cheat::NeverEnds {
            return TerminateAnswer::Accepted;
        }
        if self.cheat != Cheat::KeepsListing {
            instances.remove(provider_id);
        }
        TerminateAnswer::Gone
    }

    async fn find(&self, provider_id: &str) -> Result<bool, CloudError> {
        Ok(locked(&self.instances).contains_key(provider_id))
    }

    async fn list(&self) -> Result<Vec<Instance>, CloudError> {
        let instances = locked(&self.instances);
        let listed = instances.iter().map(|(id, (_, asked))| Instance {
            provider_id: id.as_str().into(),
            launched: Timestamp::UNIX_EPOCH,
            is_terminating: *asked > 0 && self.cheat != Cheat::KeepsListing,
        });
        Ok(listed.collect())
    }

    fn registration_hooks(&self) -> &'static [&'static str] {
        if self.cheat == Cheat::NamesAHookItHasNot { &["placement", "other"] } else { &["placement"] }
    }

    async fn run_hook(&self, hook: &str, order: Order<'_, Class>) -> Result<HookAnswer, CloudError> {
        let mut placed = locked(&self.placed);
        let asked = placed.entry(order.claim.meta.uid.to_string()).or_default();
        *asked += 1;
        match hook {
            "placement" if self.cheat == Cheat::NeverPassesAHook || *asked < 3 => {
                Ok(HookAnswer::Pending { again: SignedDuration::from_secs(1) })
            }
            "placement" => Ok(HookAnswer::Done { labels: Texts::new() }),
            _ => Err(CloudError { attempt: "run a hook", source: format!("no hook {hook}").into() }),
        }
    }

    async fn interruptions(&self) -> Result<Vec<Interruption>, CloudError> {
        Ok(Vec::new())
    }

    async fn tend(&self, _: Order<'_, Class>, _: Timestamp) -> Result<Option<Timestamp>, CloudError> {
        Ok(None)
    }
}

fn class() -> Class {
    let meta = ObjectMeta {
        name: ObjectName::of_cluster("default"),
        uid: Arc::from("u"),
        resource_version: Arc::from("1"),
        generation: 1,
        created: Timestamp::UNIX_EPOCH,
        deleting: None,
        labels: Texts::new(),
        annotations: Texts::new(),
        finalizers: Vec::new(),
        owners: Vec::new(),
    };
    let class =
        NodeClassRef { group: Arc::from("test.kerf"), kind: Arc::from("SmallClass"), name: Arc::from("default") };
    Class(NodeClass { meta, class, readiness: ClassReadiness::Ready })
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The small cloud never waits.
fn now_or_never<T>(future: impl Future<Output = T>) -> T {
    let Poll::Ready(value) = pin!(future).poll(&mut Context::from_waker(Waker::noop())) else {
        unreachable!("the small cloud waited")
    };
    value
}

fn broken_rules(cheat: Cheat) -> Vec<Rule> {
    let mut world = SmallWorld { class: class(), now: Timestamp::UNIX_EPOCH };
    let mut rules: Vec<_> = now_or_never(contract::check(&SmallCloud::new(cheat), &mut world))
        .into_iter()
        .map(|broken| broken.rule)
        .collect();
    rules.sort();
    rules.dedup();
    rules
}

#[test]
fn an_honest_cloud_keeps_the_contract() {
    let mut world = SmallWorld { class: class(), now: Timestamp::UNIX_EPOCH };
    assert_eq!(now_or_never(contract::check(&SmallCloud::new(Cheat::None), &mut world)), []);
}

#[test]
fn every_cheat_is_caught_by_its_rule() {
    let cases = [
        (Cheat::ChangesItsTypes, Rule::TypesAreListed),
        (Cheat::ForgetsAWellKnownLabel, Rule::TypesAreLabelled),
        (Cheat::OffersNowhere, Rule::OfferingsArePlaced),
        (Cheat::ReservesEverything, Rule::TypesHaveRoom),
        (Cheat::IgnoresRequirements, Rule::LaunchMeetsTheClaim),
        (Cheat::TakesTheLast, Rule::LaunchIsCheap),
        (Cheat::IgnoresRequests, Rule::LaunchRefusesTheImpossible),
        (Cheat::NeedsNoClass, Rule::LaunchRefusesTheImpossible),
        (Cheat::LaunchesTwice, Rule::OneInstancePerClaim),
        (Cheat::SharesOneInstance, Rule::OneInstancePerClaim),
        (Cheat::ForgetsInstances, Rule::InstancesAreListed),
        (Cheat::NeverEnds, Rule::TerminationEnds),
        (Cheat::KeepsListing, Rule::TerminationEnds),
        (Cheat::DoubtsUnknownIds, Rule::UnknownIsGone),
        (Cheat::RebootsAsFallback, Rule::RepairPoliciesAreValid),
        (Cheat::NamesAHookItHasNot, Rule::HooksComeToAnEnd),
        (Cheat::NeverPassesAHook, Rule::HooksComeToAnEnd),
    ];
    for (cheat, rule) in cases {
        let broken = broken_rules(cheat);
        assert!(broken.contains(&rule), "{cheat:?} broke {broken:?}");
    }
}

#[test]
fn an_unusable_class_is_refused_alike_by_all_providers() {
    let cloud = SmallCloud::new(Cheat::None);
    let claim = contract::claim("a", &class().0.class, Requirements::new());
    let launch = |class: Option<&Class>| now_or_never(cloud.launch(Order { claim: &claim, class })).unwrap_err();
    let shown = |class: Option<&Class>| launch(class).to_string();
    assert_eq!(shown(None), "no capacity: the node class default does not exist");
    let mut going = class();
    going.0.meta.deleting = Some(Timestamp::UNIX_EPOCH);
    assert_eq!(shown(Some(&going)), "no capacity: the node class default is being deleted");
    let mut broken = class();
    broken.0.readiness = ClassReadiness::NotReady { reason: Arc::from("Broken"), message: Arc::from("no subnets") };
    assert_eq!(launch(Some(&broken)), LaunchError::ClassNotReady { message: Arc::from("no subnets") });
}
