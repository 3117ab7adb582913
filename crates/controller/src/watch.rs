//! Watches: what is seen in the cluster, as the engine hears it.
//!
//! Each kind has its own watch and its own back-off, so that a kind that cannot be listed does not slow down the others.
//! The engine hears that everything was seen once when the first list of the last kind is in.
//!
//! After any failure the kind is listed anew, and until then nothing is decided: what was seen last may be long past, and
//! a watch that merely goes on does not say when it has caught up.
//!
//! A server that does not have a kind has no objects of it. For kinds that a cluster can do without, that answer is as good
//! as an empty list.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::{StreamExt, pin_mut};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kerf_api::Provider;
use kerf_api::capacity_buffer::CapacityBuffer;
use kerf_api::change::{Features, Reader, Watched, WatchedKind};
use kerf_api::lenient::Lenient;
use kerf_api::maintenance_window::MaintenanceWindow;
use kerf_api::node_claim::NodeClaim;
use kerf_api::node_overlay::NodeOverlay;
use kerf_api::node_pool::NodePool;
use kerf_api::slim::{
    SlimCsiNode, SlimDaemonSet, SlimNamespace, SlimNode, SlimNodeClass, SlimPersistentVolume,
    SlimPersistentVolumeClaim, SlimPod, SlimPodDisruptionBudget, SlimPodTemplateObject, SlimService, SlimStorageClass,
    SlimVolumeAttachment, SlimWorkload,
};
use kerf_model::change::Input;
use kube::core::ApiResource;
use kube::runtime::watcher as watch_api;
use kube::runtime::watcher::{self, Event};
use kube::{Api, Client, Resource};
use serde::de::DeserializeOwned;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tracing::{error, info, warn};

use crate::brain::Heard;
use crate::cloud::chain;

/// Between two tries; the last one again and again. Short, because a server that is back is waited for by everybody.
const PAUSES: [Duration; 4] =
    [Duration::from_millis(200), Duration::from_secs(1), Duration::from_secs(2), Duration::from_secs(5)];

/// Starts a watch for each kind, in tasks of `tasks`.
pub fn start(
    client: &Client,
    (provider, features): (Provider, Features),
    queue: &mpsc::Sender<Heard>,
    tasks: &mut JoinSet<()>,
) {
    let kinds: Vec<WatchedKind> = WatchedKind::all(provider).into_iter().chain(features.kinds()).collect();
    let missing = Arc::new(AtomicUsize::new(kinds.len()));
    for kind in kinds {
        let watch = Watch {
            kind,
            reader: Reader::new(Some(provider)),
            queue: queue.clone(),
            missing: Arc::clone(&missing),
            is_listed: false,
            is_missing: false,
            known: BTreeSet::new(),
            listed: BTreeSet::new(),
        };
        let client = client.clone();
        match kind {
            WatchedKind::Pod => drop(tasks.spawn(watch.run::<Lenient<SlimPod>>(Api::all(client)))),
            WatchedKind::Node => drop(tasks.spawn(watch.run::<Lenient<SlimNode>>(Api::all(client)))),
            WatchedKind::NodeClaim => drop(tasks.spawn(watch.run::<Lenient<NodeClaim>>(Api::all(client)))),
            WatchedKind::NodePool => drop(tasks.spawn(watch.run::<Lenient<NodePool>>(Api::all(client)))),
            WatchedKind::NodeClass(_) => {
                let resource = ApiResource::from(kind.api_kind());
                drop(tasks.spawn(watch.run::<Lenient<SlimNodeClass>>(Api::all_with(client, &resource))));
            }
            WatchedKind::DaemonSet => drop(tasks.spawn(watch.run::<Lenient<SlimDaemonSet>>(Api::all(client)))),
            WatchedKind::DisruptionBudget => {
                drop(tasks.spawn(watch.run::<Lenient<SlimPodDisruptionBudget>>(Api::all(client))));
            }
            WatchedKind::MaintenanceWindow => {
                drop(tasks.spawn(watch.run::<Lenient<MaintenanceWindow>>(Api::all(client))));
            }
            WatchedKind::VolumeAttachment => {
                drop(tasks.spawn(watch.run::<Lenient<SlimVolumeAttachment>>(Api::all(client))));
            }
            WatchedKind::PersistentVolumeClaim => {
                drop(tasks.spawn(watch.run::<Lenient<SlimPersistentVolumeClaim>>(Api::all(client))));
            }
            WatchedKind::PersistentVolume => {
                drop(tasks.spawn(watch.run::<Lenient<SlimPersistentVolume>>(Api::all(client))));
            }
            WatchedKind::StorageClass => drop(tasks.spawn(watch.run::<Lenient<SlimStorageClass>>(Api::all(client)))),
            WatchedKind::CsiNode => drop(tasks.spawn(watch.run::<Lenient<SlimCsiNode>>(Api::all(client)))),
            WatchedKind::Namespace => drop(tasks.spawn(watch.run::<Lenient<SlimNamespace>>(Api::all(client)))),
            WatchedKind::NodeOverlay => drop(tasks.spawn(watch.run::<Lenient<NodeOverlay>>(Api::all(client)))),
            WatchedKind::CapacityBuffer => drop(tasks.spawn(watch.run::<Lenient<CapacityBuffer>>(Api::all(client)))),
            WatchedKind::PodTemplate => {
                drop(tasks.spawn(watch.run::<Lenient<SlimPodTemplateObject>>(Api::all(client))));
            }
            WatchedKind::Workload(_) => {
                let resource = ApiResource::from(kind.api_kind());
                drop(tasks.spawn(watch.run::<Lenient<SlimWorkload>>(Api::all_with(client, &resource))));
            }
            WatchedKind::Service => drop(tasks.spawn(watch.run::<Lenient<SlimService>>(Api::all(client)))),
        }
    }
}

struct Watch {
    kind: WatchedKind,
    reader: Reader,
    queue: mpsc::Sender<Heard>,
    /// How many kinds have not been listed yet; shared by all watches.
    missing: Arc<AtomicUsize>,
    is_listed: bool,
    /// The server has last said that it does not have the kind.
    is_missing: bool,
    /// Namespace and name of what the engine knows to be there.
    known: BTreeSet<(Option<String>, Option<String>)>,
    /// What the list under way has shown.
    listed: BTreeSet<(Option<String>, Option<String>)>,
}

/// Nobody listens any more.
struct Closed;

struct Failed(watcher::Error);

impl Watch {
    async fn run<K>(mut self, api: Api<K>)
    where
        K: Watched + Resource + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
    {
        let mut failures = 0;
        while self.follow_once(&api, &mut failures).await.is_ok() {
            tokio::time::sleep(PAUSES[failures.min(PAUSES.len() - 1)]).await;
            failures += 1;
        }
    }

    /// Until it has failed and that is told.
    async fn follow_once<K>(&mut self, api: &Api<K>, failures: &mut usize) -> Result<(), Closed>
    where
        K: Watched + Resource + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
    {
        match self.follow(api.clone(), failures).await {
            Ok(closed) => Err(closed),
            Err(Failed(error)) => self.failed(&error).await,
        }
    }

    /// Lists and watches until that fails, or nobody listens any more.
    async fn follow<K>(&mut self, api: Api<K>, failures: &mut usize) -> Result<Closed, Failed>
    where
        K: Watched + Resource + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
    {
        let events = watch_api(api, watcher::Config::default());
        pin_mut!(events);
        while let Some(event) = events.next().await {
            let event = event.map_err(Failed)?;
            if matches!(event, Event::InitDone) {
                *failures = 0;
            }
            if self.take(event).await.is_err() {
                break;
            }
        }
        Ok(Closed)
    }

    async fn take<K: Watched + Resource>(&mut self, event: Event<K>) -> Result<(), Closed> {
        match event {
            Event::Apply(object) => {
                self.known.insert(name(object.meta()));
                self.seen(&object).await
            }
            Event::Delete(object) => {
                self.known.remove(&name(object.meta()));
                self.gone(object.meta()).await
            }
            Event::Init => {
                self.listed.clear();
                Ok(())
            }
            Event::InitApply(object) => {
                // Known even if the list is cut off: should the next one not have it, it is gone.
                self.known.insert(name(object.meta()));
                self.listed.insert(name(object.meta()));
                self.seen(&object).await
            }
            Event::InitDone => {
                self.is_missing = false;
                self.list_done().await
            }
        }
    }

    /// What is known and was not in the list is gone.
    async fn list_done(&mut self) -> Result<(), Closed> {
        let listed = std::mem::take(&mut self.listed);
        let known = std::mem::replace(&mut self.known, listed);
        for (namespace, name) in known.difference(&self.known.clone()).cloned() {
            self.gone(&ObjectMeta { namespace, name, ..ObjectMeta::default() }).await?;
        }
        self.tell(Heard::Current(self.kind.api_kind().kind)).await?;
        self.first_list_done().await
    }

    async fn seen(&mut self, object: &impl Watched) -> Result<(), Closed> {
        let kind = self.kind.api_kind().kind;
        match self.reader.seen(self.kind, object) {
            Ok(seen) => {
                for problem in &seen.warnings {
                    warn!(kind, field = %problem.field, problem = ?problem.violation, "an object has a problem");
                }
                self.say(Input::Change(seen.change)).await
            }
            Err(error) => {
                warn!(kind, error = %error, "an object cannot be read; its last state counts");
                Ok(())
            }
        }
    }

    async fn gone(&self, meta: &ObjectMeta) -> Result<(), Closed> {
        self.say(Input::Change(self.kind.gone(meta))).await
    }

    async fn failed(&mut self, error: &watcher::Error) -> Result<(), Closed> {
        let kind = self.kind.api_kind().kind;
        if !is_unknown_kind(error) {
            warn!(kind, error = chain(error), "the watch failed; listing anew");
            return self.tell(Heard::Outdated(kind)).await;
        }
        let is_news = !std::mem::replace(&mut self.is_missing, true);
        if can_be_missing(self.kind) {
            if is_news {
                info!(kind, "this kind is not served; taken for a kind without objects");
            }
            self.listed.clear();
            return self.list_done().await;
        }
        if is_news {
            error!(kind, "this kind is not served: install it with `kerf crds | kubectl apply --server-side -f -`");
        }
        self.tell(Heard::Outdated(kind)).await
    }

    async fn first_list_done(&mut self) -> Result<(), Closed> {
        if std::mem::replace(&mut self.is_listed, true) {
            return Ok(());
        }
        // Every watch says so after its own list is in the queue, hence the last one after all lists.
        if self.missing.fetch_sub(1, Ordering::AcqRel) > 1 {
            return Ok(());
        }
        info!("every kind has been listed");
        self.say(Input::Synced).await
    }

    async fn say(&self, input: Input) -> Result<(), Closed> {
        self.tell(Heard::Input(input)).await
    }

    async fn tell(&self, heard: Heard) -> Result<(), Closed> {
        self.queue.send(heard).await.map_err(|_| Closed)
    }
}

fn name(meta: &ObjectMeta) -> (Option<String>, Option<String>) {
    (meta.namespace.clone(), meta.name.clone())
}

/// Kinds that may be installed later, or taken away while the controller runs. Karpenter's own definitions lack windows;
/// overlays and buffers are extras that somebody else may own. Without the others nothing can be decided.
const fn can_be_missing(kind: WatchedKind) -> bool {
    match kind {
        WatchedKind::MaintenanceWindow | WatchedKind::NodeOverlay | WatchedKind::CapacityBuffer => true,
        WatchedKind::Pod
        | WatchedKind::Node
        | WatchedKind::NodeClaim
        | WatchedKind::NodePool
        | WatchedKind::NodeClass(_)
        | WatchedKind::DaemonSet
        | WatchedKind::DisruptionBudget
        | WatchedKind::VolumeAttachment
        | WatchedKind::PersistentVolumeClaim
        | WatchedKind::PersistentVolume
        | WatchedKind::StorageClass
        | WatchedKind::CsiNode
        | WatchedKind::Namespace
        | WatchedKind::PodTemplate
        | WatchedKind::Workload(_)
        | WatchedKind::Service => false,
    }
}

fn is_unknown_kind(error: &watcher::Error) -> bool {
    matches!(error, watcher::Error::InitialListFailed(kube::Error::Api(status)) if status.code == 404)
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::sync::Mutex;

    use http::{Request, Response};
    use kerf_model::change::Change;
    use kube::client::Body;
    use serde_json::{Value, json};

    use super::*;

    /// What the server answers to the next list or watch. When nothing is left, it stays silent.
    #[derive(Debug, Clone)]
    enum Answer {
        Windows(&'static [&'static str]),
        /// A page of a list that goes on.
        Page(&'static [&'static str]),
        /// A watch that the server has closed, and what it said before.
        Watched(Value),
        Code(u16),
    }
    use Answer::{Code, Page, Watched, Windows};

    fn respond(answer: Answer) -> Response<Body> {
        let window = |name: &&str| {
            json!({
                "apiVersion": "karpenter.sh/v1alpha1",
                "kind": "MaintenanceWindow",
                "metadata": {"name": name, "uid": name, "resourceVersion": "1"},
                "spec": {"schedule": "0 0 * * *", "duration": "1h", "actions": ["Drift"]},
            })
        };
        let (code, body) = match answer {
            Windows(names) | Page(names) => {
                let items: Vec<Value> = names.iter().map(window).collect();
                let (api, kind) = ("karpenter.sh/v1alpha1", "MaintenanceWindowList");
                let more = matches!(answer, Page(_)).then_some("more");
                let metadata = json!({"resourceVersion": "1", "continue": more});
                (200, json!({"apiVersion": api, "kind": kind, "metadata": metadata, "items": items}))
            }
            Watched(event) => (200, event),
            Code(code) => {
                let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code});
                (code, status)
            }
        };
        let body = Body::from(format!("{body}\n").into_bytes());
        Response::builder().status(code).body(body).unwrap()
    }

    /// What is heard of windows from a server with these answers, in short.
    async fn heard(answers: impl IntoIterator<Item = Answer>) -> Vec<String> {
        let answers: Arc<Mutex<VecDeque<Answer>>> = Arc::new(Mutex::new(answers.into_iter().collect()));
        let (is_over, mut over) = mpsc::channel::<()>(1);
        let service = tower::service_fn(move |_: Request<Body>| {
            let next = answers.lock().unwrap().pop_front();
            let is_over = is_over.clone();
            async move {
                match next {
                    Some(answer) => Ok::<_, std::convert::Infallible>(respond(answer)),
                    None => {
                        let _ = is_over.send(()).await;
                        std::future::pending().await
                    }
                }
            }
        });
        let api: Api<Lenient<MaintenanceWindow>> = Api::all(Client::new(service, "default"));
        let (queue, mut heard) = mpsc::channel(100);
        let mut watch = Watch {
            kind: WatchedKind::MaintenanceWindow,
            reader: Reader::new(None),
            queue,
            missing: Arc::new(AtomicUsize::new(1)),
            is_listed: false,
            is_missing: false,
            known: BTreeSet::new(),
            listed: BTreeSet::new(),
        };
        // Without the pauses.
        let follow = async { while watch.follow_once(&api, &mut 0).await.is_ok() {} };
        tokio::select! {
            () = follow => panic!("nobody has stopped listening"),
            _ = over.recv() => {}
        }
        let mut told = Vec::new();
        while let Ok(one) = heard.try_recv() {
            told.push(match one {
                Heard::Outdated(_) => "outdated".to_owned(),
                Heard::Current(_) => "current".to_owned(),
                Heard::Input(Input::Synced) => "synced".to_owned(),
                Heard::Input(Input::Change(Change::MaintenanceWindow(name, window))) => {
                    format!("{} {}", name.name, if window.is_some() { "seen" } else { "gone" })
                }
                other => panic!("{other:?}"),
            });
        }
        told
    }

    /// The controller stood still for good where the definition of windows is not installed: the hiccup had made them
    /// unknown, and no list ever came that made them known again.
    #[tokio::test]
    async fn a_hiccup_of_the_server_froze_a_cluster_without_the_definition_of_windows() {
        let told = heard([Code(404), Code(503), Code(404), Code(404)]).await;
        assert_eq!(told, ["current", "synced", "outdated", "current", "current"]);
        let told = heard([Code(503), Code(404)]).await;
        assert_eq!(told, ["outdated", "current", "synced"]);
    }

    /// Its windows held back nodes that nobody could free any more, and nothing was decided until the next start.
    #[tokio::test]
    async fn the_definition_of_windows_was_deleted_under_a_running_controller() {
        let expected = ["freeze seen", "current", "synced", "outdated", "freeze gone", "current"];
        assert_eq!(heard([Windows(&["freeze"]), Code(404), Code(404)]).await, expected);
        let broken = json!({"type": "ERROR", "object": {"kind": "Status", "code": 500, "status": "Failure"}});
        assert_eq!(heard([Windows(&["freeze"]), Watched(broken), Code(404)]).await, expected);
    }

    /// It had come and gone while a long list was cut off between two pages, and counted until the next start.
    #[tokio::test]
    async fn what_only_a_list_that_was_cut_off_had_shown_stayed_for_ever() {
        let told = heard([Page(&["gone"]), Code(503), Windows(&["freeze"])]).await;
        assert_eq!(told, ["gone seen", "outdated", "freeze seen", "gone gone", "current", "synced"]);
    }

    #[tokio::test]
    async fn windows_that_are_installed_later_are_seen() {
        let told = heard([Code(404), Windows(&["freeze"])]).await;
        assert_eq!(told, ["current", "synced", "freeze seen", "current"]);
    }
}
