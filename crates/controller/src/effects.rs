//! The only writer: effects on one object in order, those on different objects at the same time.

use std::collections::{BTreeMap, VecDeque};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use jiff::Timestamp;
use kerf_api::write::{ApiWrite, Request, api_writes};
use kerf_cloud::Provider;
use kerf_model::change::Input;
use kerf_model::cluster::{NodeClaim, NodeClass, ObjectName};
use kerf_model::effect::{Effect, Event, Target, WriteError};
use kerf_model::label::{NODEPOOL, annotation};
use kerf_model::taint::Taint;
use kube::Client;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tracing::{debug, info, warn};

use crate::brain::{Heard, Question, Work, clock};
use crate::cloud::{ClassReader, Cloud};
use crate::metrics::Metrics;
use crate::requests::{self, Done, Refused};
use crate::said::Said;

/// Requests under way at the same time. The server's own fairness queues the rest.
pub const AT_ONCE: usize = 64;
/// Of them, events: what is only told must not hold up what is done, however slow the server is.
const EVENTS_AT_ONCE: usize = 8;

pub struct Writer<P, R> {
    pub client: Client,
    pub cloud: Arc<Cloud<P, R>>,
    pub queue: mpsc::Sender<Heard>,
    pub metrics: Arc<Metrics>,
    pub said: Said,
}

/// What has to be done one after the other: everything about one object. The cloud is slower than the API, so what is
/// asked of it about a claim does not hold up writes to the claim.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Lane {
    Claim(ObjectName),
    Node(ObjectName),
    Pool(ObjectName),
    Overlay(ObjectName),
    Buffer(ObjectName),
    Window(ObjectName),
    Pod(ObjectName),
    Event(Arc<str>),
    Instance(ObjectName),
    Tending(ObjectName),
    Id(Arc<str>),
    Instances,
    Catalogue,
}

#[derive(Debug, Default)]
struct Lanes {
    /// Work that waits, of every lane in which something is under way or ready.
    waiting: BTreeMap<Lane, VecDeque<Work>>,
    ready: VecDeque<Lane>,
    /// Lanes of events that are ready. They come after all others.
    to_tell: VecDeque<Lane>,
    /// How many events are under way.
    telling: usize,
}

impl Lanes {
    fn push(&mut self, work: Work) {
        let lane = lane(&work);
        if !self.waiting.contains_key(&lane) {
            self.make_ready(lane.clone());
        }
        let waiting = self.waiting.entry(lane).or_default();
        // A server that takes events more slowly than they come up is told of each once.
        if let Work::Effect(Effect::Publish(event)) = &work {
            waiting.retain(|other| !matches!(other, Work::Effect(Effect::Publish(other)) if is_same(other, event)));
        }
        // A claim is tended as it is now, and the catalogue is that of the pools as they are: older looks that still wait are
        // no use. What is to be avoided waits in the lane of the catalogue, and is said only once.
        if matches!(work, Work::Tend { .. } | Work::Catalogue(_)) {
            waiting.retain(|other| matches!(other, Work::Avoid(_)));
        }
        // The engine asks again for what it does not see done. Who is slow is not asked twice for the same.
        if waiting.iter().any(|other| is_asked_again(other, &work)) {
            return;
        }
        match waiting.iter_mut().find(|other| is_overtaken(other, &work)) {
            Some(older) => *older = work,
            None => waiting.push_back(work),
        }
    }

    /// How many lanes have something to do.
    fn len(&self) -> usize {
        self.waiting.len()
    }

    fn next(&mut self) -> Option<(Lane, Work)> {
        let lane = match self.ready.pop_front() {
            Some(lane) => lane,
            None if self.telling < EVENTS_AT_ONCE => self.to_tell.pop_front()?,
            None => return None,
        };
        let work = self.waiting.get_mut(&lane)?.pop_front()?;
        self.telling += usize::from(lane.is_events());
        Some((lane, work))
    }

    fn done(&mut self, lane: Lane) {
        self.telling -= usize::from(lane.is_events());
        if self.waiting.get(&lane).is_some_and(|waiting| !waiting.is_empty()) {
            self.make_ready(lane);
        } else {
            self.waiting.remove(&lane);
        }
    }

    fn make_ready(&mut self, lane: Lane) {
        let queue = if lane.is_events() { &mut self.to_tell } else { &mut self.ready };
        queue.push_back(lane);
    }
}

impl Lane {
    fn is_events(&self) -> bool {
        matches!(self, Self::Event(_))
    }
}

/// Whether what waits is just what is asked for.
fn is_asked_again(waiting: &Work, asked: &Work) -> bool {
    matches!((waiting, asked), (Work::Effect(waiting), Work::Effect(asked)) if waiting == asked)
}

/// Whether what waits is no use beside what is asked for now. Of several patches that insist on a version only the first
/// can succeed, and the last knows best; so does a question with the latest look at its claim.
fn is_overtaken(waiting: &Work, asked: &Work) -> bool {
    match (waiting, asked) {
        (Work::Effect(waiting), Work::Effect(asked)) => waiting.insists_on().is_some() && asked.insists_on().is_some(),
        (Work::Ask { question: waiting, .. }, Work::Ask { question: asked, .. }) => waiting == asked,
        (Work::Effect(_) | Work::Ask { .. } | Work::Tend { .. } | Work::Catalogue(_) | Work::Avoid(_), _) => false,
    }
}

/// Whether two events about an object tell the same.
fn is_same(one: &Event, other: &Event) -> bool {
    (one.reason, &one.dedupe) == (other.reason, &other.dedupe)
}

fn lane(work: &Work) -> Lane {
    match work {
        Work::Ask { target, .. } => Lane::Instance(target.name.clone()),
        Work::Tend { claim, .. } => Lane::Tending(claim.meta.name.clone()),
        Work::Catalogue(_) | Work::Avoid(_) => Lane::Catalogue,
        Work::Effect(effect) => match effect {
            Effect::CreateClaim(claim) => Lane::Claim(ObjectName::of_cluster(Arc::clone(&claim.name))),
            Effect::PatchClaim(target, _) | Effect::DeleteClaim(target) => Lane::Claim(target.name.clone()),
            Effect::PatchNode(target, _) | Effect::DeleteNode(target) => Lane::Node(target.name.clone()),
            Effect::PatchPool(target, _) => Lane::Pool(target.name.clone()),
            Effect::PatchOverlay(target, _) => Lane::Overlay(target.name.clone()),
            Effect::PatchBuffer(target, _) => Lane::Buffer(target.name.clone()),
            Effect::PatchWindow(target, _) => Lane::Window(target.name.clone()),
            Effect::EvictPod(target, _) | Effect::DeletePod(target, ..) | Effect::PatchPod(target, _) => {
                Lane::Pod(target.name.clone())
            }
            Effect::Publish(event) => Lane::Event(Arc::clone(&event.about.target.uid)),
            Effect::Launch { claim }
            | Effect::Terminate { claim, .. }
            | Effect::CheckDrift { claim }
            | Effect::RunHooks { claim }
            | Effect::UpdateInstance { claim }
            | Effect::Reboot { claim, .. } => Lane::Instance(claim.name.clone()),
            Effect::TerminateOrphan { provider_id } | Effect::FindInstance { provider_id } => {
                Lane::Id(Arc::clone(provider_id))
            }
            Effect::ListInstances => Lane::Instances,
        },
    }
}

impl<P, R> Writer<P, R>
where
    P: Provider,
    R: ClassReader<P::Class>,
{
    /// Until no more work comes.
    pub async fn run(self, mut work: mpsc::UnboundedReceiver<Work>) {
        let writer = &self;
        let mut lanes = Lanes::default();
        let mut running: FuturesUnordered<Pin<Box<dyn Future<Output = Lane> + Send + '_>>> = FuturesUnordered::new();
        loop {
            while running.len() < AT_ONCE
                && let Some((lane, work)) = lanes.next()
            {
                running.push(Box::pin(async move {
                    writer.perform(work).await;
                    lane
                }));
            }
            tokio::select! {
                Some(lane) = running.next(), if !running.is_empty() => {
                    lanes.done(lane);
                    writer.metrics.effects_pending(lanes.len(), running.len());
                }
                more = work.recv() => match more {
                    Some(more) => {
                        lanes.push(more);
                        writer.metrics.effects_pending(lanes.len(), running.len());
                    }
                    None => return,
                },
            }
        }
    }

    async fn perform(&self, work: Work) {
        let start = Instant::now();
        let heard = match work {
            Work::Effect(effect) => self.execute(effect).await,
            Work::Ask { question, target, claim, class } => {
                self.ask(question, target, &claim, class.as_deref()).await.map(Heard::Input)
            }
            Work::Tend { claim, class, now } => {
                let at = self.cloud.tend(&claim, class.as_deref(), now).await;
                at.map(|at| Heard::TendAt(Arc::clone(claim.name()), at))
            }
            Work::Avoid(offerings) => {
                self.cloud.avoid(offerings);
                None
            }
            Work::Catalogue(pools) => Some(Heard::Input(Input::Catalogue(self.cloud.catalogue(&pools).await))),
        };
        let is_failed = matches!(heard, Some(Heard::Input(Input::WriteFailed { .. })));
        self.metrics.effect_done(is_failed, start.elapsed());
        if let Some(heard) = heard {
            // Fails when the engine has ended, and then so does everything.
            drop(self.queue.send(heard).await);
        }
    }

    /// `None` if there is no answer: it is asked again.
    async fn ask(
        &self,
        question: Question,
        target: Target,
        claim: &NodeClaim,
        class: Option<&NodeClass>,
    ) -> Option<Input> {
        Some(match question {
            Question::Launch => Input::Launched { claim: target, answer: self.cloud.launch(claim, class).await },
            Question::Drift => Input::DriftFound { claim: target, drift: self.cloud.drift(claim, class).await? },
            Question::Hooks => Input::HooksRan { claim: target, report: self.cloud.run_hooks(claim, class).await? },
            Question::Update => Input::InstanceUpdated { claim: target, answer: self.cloud.update(claim, class).await },
        })
    }

    async fn execute(&self, effect: Effect) -> Option<Heard> {
        let now = clock();
        if let Effect::Publish(event) = &effect {
            self.publish(event, now).await;
            return None;
        }
        let Some(writes) = api_writes(&effect, now) else {
            return self.cloud.execute(effect).await.map(Heard::Input);
        };
        let mut previous = None;
        for write in &writes {
            match requests::send(&self.client, write, previous.as_deref()).await {
                Ok(Done::Written { version }) => previous = version,
                Ok(Done::Already) => return None,
                Err(Refused { code, error }) => {
                    if matches!(effect, Effect::EvictPod(..)) {
                        self.metrics.eviction_answered(code);
                    }
                    if matches!(effect, Effect::PatchPod(..)) {
                        self.metrics.pod_cost_written(Some(&error));
                    }
                    tell(write, &error);
                    return Some(Heard::Input(Input::WriteFailed { effect: Box::new(effect), error }));
                }
            }
        }
        self.written(&effect);
        if let Some(event) = effect.told_when_done() {
            self.publish(&event, now).await;
        }
        None
    }

    /// Nobody waits for an event.
    async fn publish(&self, event: &Event, now: Timestamp) {
        let Some(mut write) = self.said.say(event, now) else { return };
        let mut answer = requests::send(&self.client, &write, None).await;
        if matches!(&answer, Err(refused) if refused.error == WriteError::NotFound)
            && !matches!(write.request, Request::Create(_))
        {
            self.said.forget(event);
            let Some(anew) = self.said.say(event, now) else { return };
            write = anew;
            answer = requests::send(&self.client, &write, None).await;
        }
        match answer {
            Ok(_) => debug!(reason = event.reason, event = %write.name, "published an event"),
            Err(refused) => tell(&write, &refused.error),
        }
    }

    /// Tells what has changed in the cluster.
    fn written(&self, effect: &Effect) {
        match effect {
            Effect::CreateClaim(claim) => {
                self.metrics.claim_created(claim);
                let pool = claim.labels.get(NODEPOOL).map(AsRef::as_ref).unwrap_or_default();
                info!(nodeclaim = &*claim.name, nodepool = pool, requests = %claim.requests, "created nodeclaim");
            }
            Effect::DeleteClaim(claim) => info!(nodeclaim = %claim, "asked for the end of a nodeclaim"),
            Effect::DeleteNode(node) => info!(node = %node, "asked for the end of a node"),
            Effect::EvictPod(pod, why) => {
                self.metrics.eviction_answered(200);
                self.metrics.pod_drained(why);
                info!(pod = %pod, "evicted pod");
            }
            Effect::DeletePod(pod, grace, why) => {
                self.metrics.pod_drained(why);
                info!(pod = %pod, grace_seconds = grace.as_secs(), "deleted pod, for its node's time is up");
            }
            Effect::PatchClaim(target, patch) => {
                if patch.meta.annotations.contains_key(annotation::TERMINATION_TIMESTAMP) {
                    info!(nodeclaim = %target, "annotated nodeclaim");
                } else {
                    debug!(nodeclaim = %target, "patched nodeclaim");
                }
            }
            Effect::PatchNode(target, patch) => {
                let disrupted = Taint::disrupted();
                if patch.taints.iter().flatten().any(|taint| taint.is_same(&disrupted)) {
                    info!(node = %target, "tainted node");
                } else {
                    debug!(node = %target, "patched node");
                }
            }
            Effect::PatchPod(target, _) => {
                self.metrics.pod_cost_written(None);
                debug!(pod = %target, "patched pod");
            }
            Effect::PatchPool(target, _) => debug!(nodepool = %target, "patched nodepool"),
            Effect::PatchOverlay(target, _) => debug!(overlay = %target, "patched nodeoverlay"),
            Effect::PatchBuffer(target, _) => debug!(buffer = %target, "patched capacitybuffer"),
            Effect::PatchWindow(target, _) => debug!(window = %target, "patched maintenancewindow"),
            Effect::Publish(_)
            | Effect::Launch { .. }
            | Effect::Terminate { .. }
            | Effect::TerminateOrphan { .. }
            | Effect::ListInstances
            | Effect::FindInstance { .. }
            | Effect::CheckDrift { .. }
            | Effect::RunHooks { .. }
            | Effect::UpdateInstance { .. }
            | Effect::Reboot { .. } => {}
        }
    }
}

/// What the server says to whatever is created in a namespace that is being deleted.
const NAMESPACE_ENDS: &str = "because it is being terminated";

fn tell(write: &ApiWrite, error: &WriteError) {
    let path = write.path();
    match error {
        // Its pods go with the namespace, and nobody reads its events.
        WriteError::Invalid { message } if message.contains(NAMESPACE_ENDS) => {
            debug!(path, error = %error, "a write did not happen");
        }
        // Normal life: the next look decides anew.
        WriteError::Conflict | WriteError::NotFound | WriteError::BudgetRefused { .. } => {
            debug!(path, error = %error, "a write did not happen");
        }
        WriteError::Invalid { .. } | WriteError::Unavailable { .. } => {
            warn!(path, error = %error, "a write did not happen");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Mutex, PoisonError};

    use jiff::SignedDuration;
    use kerf_cloud::Catalogue;
    use kerf_cloud_kwok::KwokProvider;
    use kerf_model::effect::{ClaimPatch, EventKind, EventSeverity, EventTarget, MetaPatch, Target};
    use kube::client::Body;
    use serde_json::{Value, json};

    use super::*;
    use crate::kwok::{KubeClasses, KubeNodes};

    fn evict(name: &str) -> Work {
        let name = ObjectName::new("shop", name);
        Work::Effect(Effect::EvictPod(Target { name, uid: Arc::from("1") }, Arc::from("Drifted")))
    }

    /// A server that takes what it is asked for, but for evictions of pods called `held`. It keeps the reasons of events.
    fn server(told: &Arc<Mutex<Vec<String>>>) -> Client {
        let told = Arc::clone(told);
        let answer = move |request: http::Request<Body>| {
            let told = Arc::clone(&told);
            async move {
                let is_held = request.uri().path().contains("/held/");
                let is_event = request.uri().path().ends_with("/events");
                let body = request.into_body().collect_bytes().await.unwrap_or_default();
                if is_event {
                    let event: Value = serde_json::from_slice(&body).unwrap_or_default();
                    let about = event.pointer("/involvedObject/name").and_then(Value::as_str).unwrap_or_default();
                    let reason = event["reason"].as_str().unwrap_or_default();
                    told.lock().unwrap_or_else(PoisonError::into_inner).push(format!("{reason} {about}"));
                }
                let (code, body) = match is_held {
                    true => (429, json!({"kind": "Status", "status": "Failure", "code": 429, "message": "a budget"})),
                    false => (201, json!({})),
                };
                let answer = http::Response::builder().status(code).body(Body::from(body.to_string().into_bytes()));
                answer.map_err(Box::new)
            }
        };
        Client::new(tower::service_fn(answer), "default")
    }

    /// The event came only if a look saw the pod on its way out, and the count grew with whatever went from a node that
    /// is deleted.
    #[tokio::test]
    async fn a_pod_that_leaves_is_told_of_and_counted_when_the_server_has_accepted_it() {
        let told = Arc::default();
        let client = server(&told);
        let build = crate::metrics::Build { version: "1", commit: "" };
        let metrics = Arc::new(Metrics::new(&build, true, None, crate::traffic::Traffic::default()));
        let provider = KwokProvider::new(KubeNodes::new(client.clone()), Catalogue::kwok());
        let cloud = Cloud::new(provider, KubeClasses::new(client.clone()), Arc::clone(&metrics));
        let (queue, _heard) = mpsc::channel(8);
        let writer =
            Writer { client, cloud: Arc::new(cloud), queue, metrics: Arc::clone(&metrics), said: Said::default() };
        let pod = |name: &str| Target { name: ObjectName::new("shop", name), uid: Arc::from(name) };
        let why = || Arc::from("Drifted");
        assert!(writer.execute(Effect::EvictPod(pod("web"), why())).await.is_none());
        assert!(matches!(
            writer.execute(Effect::EvictPod(pod("held"), why())).await,
            Some(Heard::Input(Input::WriteFailed { error: WriteError::BudgetRefused { .. }, .. }))
        ));
        let grace = SignedDuration::from_secs(5);
        assert!(writer.execute(Effect::DeletePod(pod("late"), grace, why())).await.is_none());
        assert_eq!(*told.lock().unwrap_or_else(PoisonError::into_inner), ["Evicted web", "Disrupted late"]);
        let text = metrics.text().await;
        assert!(text.contains("karpenter_pods_drained_total{reason=\"Drifted\"} 2\n"), "{text}");
        assert!(text.contains("karpenter_pods_eviction_requests_total{code=\"429\"} 1\n"), "{text}");
    }

    #[test]
    fn one_object_is_written_in_order_and_others_meanwhile() {
        let mut lanes = Lanes::default();
        lanes.push(evict("a"));
        lanes.push(evict("b"));
        let (first, _) = lanes.next().unwrap();
        lanes.push(evict("a"));
        let (other, _) = lanes.next().unwrap();
        assert_ne!(first, other);
        assert!(lanes.next().is_none(), "the second write to a waits for the first");
        lanes.done(first.clone());
        assert_eq!(lanes.next().unwrap().0, first);
        lanes.done(other);
        lanes.done(first);
        assert!(lanes.waiting.is_empty() && lanes.ready.is_empty());
    }

    /// Found under a server that answered slowly: the same requests piled up by the hundred thousand.
    #[test]
    fn what_waits_already_is_not_asked_for_twice() {
        let mut lanes = Lanes::default();
        (0..1_000).for_each(|_| lanes.push(evict("a")));
        let (lane, _) = lanes.next().unwrap();
        (0..1_000).for_each(|_| lanes.push(evict("a")));
        assert_eq!(lanes.waiting[&lane].len(), 1, "one is under way, and may have been lost; one more is enough");
    }

    /// On a server that took half a minute for each request a further patch came up every ten seconds, with another second
    /// of its time; and a provider that hung was asked again every minute.
    #[test]
    fn patches_and_questions_that_waited_piled_up() {
        let target = || Target { name: ObjectName::of_cluster("a"), uid: Arc::from("1") };
        let patch = |version: Option<&str>, label: &str, value: usize| {
            let labels = [(Arc::from(label), Some(Arc::from(value.to_string())))].into();
            let meta = MetaPatch { resource_version: version.map(Arc::from), labels, ..MetaPatch::default() };
            Work::Effect(Effect::PatchClaim(target(), Box::new(ClaimPatch { meta, ..ClaimPatch::default() })))
        };
        let ask = |question: Question| {
            let claim = Arc::new(kerf_testkit::claim("a"));
            Work::Ask { question, target: target(), claim, class: None }
        };
        let mut lanes = Lanes::default();
        for look in 0..1_000 {
            lanes.push(patch(Some("7"), "look", look));
            lanes.push(Work::Effect(Effect::DeleteClaim(target())));
            lanes.push(patch(None, "whatever the version", 0));
            lanes.push(ask(Question::Drift));
            lanes.push(ask(Question::Update));
        }
        let of_claim = &lanes.waiting[&Lane::Claim(target().name)];
        assert_eq!(of_claim.len(), 3, "in the order in which they came up");
        let Work::Effect(Effect::PatchClaim(_, last)) = &of_claim[0] else { panic!("{of_claim:?}") };
        assert_eq!(last.meta.labels["look"].as_deref(), Some("999"));
        assert_eq!(lanes.waiting[&Lane::Instance(target().name)].len(), 2);
    }

    /// Two catalogues in a row while the first was under way: the provider never heard what not to launch from.
    #[test]
    fn what_is_to_be_avoided_was_lost_behind_a_slow_catalogue() {
        let mut lanes = Lanes::default();
        lanes.push(Work::Catalogue(Vec::new()));
        let (lane, _) = lanes.next().unwrap();
        lanes.push(Work::Catalogue(Vec::new()));
        lanes.push(Work::Avoid(Vec::new()));
        lanes.push(Work::Catalogue(Vec::new()));
        let waiting: Vec<_> = lanes.waiting[&lane].iter().collect();
        assert!(matches!(waiting[..], [Work::Avoid(_), Work::Catalogue(_)]), "{waiting:?}");
    }

    fn tell(uid: &str, message: &str) -> Work {
        let target = Target { name: ObjectName::of_cluster("claim"), uid: Arc::from(uid) };
        Work::Effect(Effect::Publish(Box::new(Event {
            about: EventTarget { kind: EventKind::NodeClaim, target },
            severity: EventSeverity::Normal,
            reason: "DisruptionWaitingReadiness",
            message: message.to_owned(),
            dedupe: message.to_owned(),
            interval: SignedDuration::from_mins(2),
        })))
    }

    /// Seen with three hundred nodes that drifted on an API server that was slow to answer: two gigabytes of them.
    #[test]
    fn events_that_waited_for_a_slow_server_piled_up() {
        let mut lanes = Lanes::default();
        for _ in 0..1_000 {
            lanes.push(tell("1", "not ready yet"));
        }
        lanes.push(tell("1", "ready"));
        assert_eq!(lanes.waiting.values().map(VecDeque::len).sum::<usize>(), 2);
    }

    #[test]
    fn events_took_the_places_of_writes() {
        let mut lanes = Lanes::default();
        for uid in 0..100 {
            lanes.push(tell(&uid.to_string(), "not ready yet"));
        }
        lanes.push(evict("a"));
        let (first, _) = lanes.next().unwrap();
        assert!(matches!(first, Lane::Pod(_)));
        let told: Vec<Lane> = std::iter::from_fn(|| lanes.next()).map(|(lane, _)| lane).collect();
        assert_eq!(told.len(), EVENTS_AT_ONCE);
        lanes.push(evict("b"));
        assert!(matches!(lanes.next().unwrap().0, Lane::Pod(_)), "there is room for what is done");
        lanes.done(told[0].clone());
        assert!(lanes.next().is_some() && lanes.next().is_none(), "and the next event has its turn");
    }
}
