//! A cluster to look at: a dump in files, or a live one that is only read.
//!
//! A dump is what `kubectl get -o yaml` prints, or manifests that were never applied. Manifests lack what a cluster adds;
//! the little that decisions need of it is assumed, and every assumption is told.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, ensure};
use kerf_api::Provider;
use kerf_api::admission::Admission;
use kerf_api::change::{Features, Reader, WatchedKind};
use kerf_api::convert;
use kerf_api::crds;
use kerf_api::manifest::Document;
use kerf_api::provider::label_rules;
use kerf_cloud::Catalogue;
use kerf_cloud_aws::Ec2Class;
use kerf_model::label::{self, LabelRules};
use kerf_model::node_pool::ClassKind;
use kerf_model::snapshot::ClusterSnapshot;
use kerf_scheduling::{Catalogues, overlaid};
use serde_json::{Value, json};

use crate::commands::validate;
use crate::input::{Documents, Input};
use crate::output::{self, Outcome};

/// Where the cluster comes from, and what its pools can launch.
#[derive(clap::Args)]
pub struct ClusterArgs {
    /// File or directory with a dump of the cluster in YAML or JSON, or - for standard input
    ///
    /// May be given several times. Without it the live cluster that KUBECONFIG names is read; nothing is written to it.
    #[arg(short = 'f', long = "filename", num_args = 1.., value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Look into directories below the given ones too
    #[arg(short = 'R', long, requires = "files")]
    recursive: bool,
    /// What pools can launch: kwok, ec2-like, or a file with instance types as JSON
    #[arg(long, default_value = "kwok", value_name = "CATALOGUE")]
    catalogue: String,
}

const NOTHING_READ: &str = "nothing of the input could be read";

/// What commands look at that take no feature gates.
pub const OVERLAYS: Features = Features { node_overlays: true, capacity_buffers: false, default_spread: false };

/// A cluster as far as it could be read.
#[derive(Clone)]
pub struct Cluster {
    pub snapshot: ClusterSnapshot,
    /// What each pool may launch, with overlays on it.
    pub types: Catalogues,
    pub rules: LabelRules,
    /// Of EC2: what else there is to them than every class has.
    pub ec2_classes: BTreeMap<Arc<str>, Ec2Class>,
    /// What was assumed because the input does not say it.
    pub assumptions: Vec<String>,
    pub outcome: Outcome,
}

impl ClusterArgs {
    /// A live cluster is asked for no more than these features look at.
    pub fn read(&self, features: Features) -> anyhow::Result<Cluster> {
        let catalogue = self.catalogue()?;
        if self.files.is_empty() {
            return Ok(Cluster::of(live_objects(features)?, &catalogue, Outcome::Fine));
        }
        let read = Input::of(self.files.clone(), self.recursive).read()?;
        ensure!(!read.documents.is_empty(), NOTHING_READ);
        let (objects, outcome) = of_a_cluster(read);
        let mut cluster = Cluster::of(objects, &catalogue, outcome);
        // A plan of nothing reads as if nothing had to be done.
        let is_empty = is_empty(&cluster.snapshot);
        ensure!(!is_empty || cluster.outcome == Outcome::Fine, NOTHING_READ);
        ensure!(!is_empty, "the input has no node, pod, NodeClaim or NodePool to look at");
        cluster.assumptions.extend(missing(&cluster.snapshot).map(str::to_owned));
        Ok(cluster)
    }

    fn catalogue(&self) -> anyhow::Result<Catalogue> {
        match self.catalogue.as_str() {
            "kwok" => Ok(Catalogue::kwok()),
            "ec2-like" => Ok(Catalogue::ec2_like()),
            path => {
                let text = std::fs::read_to_string(path)
                    .with_context(|| format!("the catalogue is neither kwok nor ec2-like, and cannot read {path}"))?;
                Catalogue::from_json(&text).with_context(|| format!("cannot use the instance types of {path}"))
            }
        }
    }
}

/// The objects that decisions look at. What cannot be one is told and left out; other kinds are no concern of ours.
fn of_a_cluster(read: Documents) -> (Vec<Value>, Outcome) {
    let mut outcome = read.outcome;
    let mut objects = Vec::new();
    for document in read.documents.into_iter().flat_map(Document::flatten) {
        let is_known = WatchedKind::of(document.api_version(), document.kind()).is_some();
        match problem_of(&document, is_known) {
            Some(problem) => {
                outcome = outcome.max(Outcome::Unreadable);
                output::complain(&format!("{}: {problem}", output::place(&document)));
            }
            None if is_known => objects.push(Value::Object(document.object)),
            None => {}
        }
    }
    (objects, outcome)
}

fn problem_of(document: &Document, is_known: bool) -> Option<String> {
    if convert::is_legacy(document) {
        return Some(validate::not_served(document));
    }
    if document.api_version().is_empty() || document.kind().is_empty() {
        return Some("every object needs apiVersion and kind".to_owned());
    }
    let name = document.object.get("metadata").and_then(|metadata| metadata.get("name"));
    (is_known && name.is_none_or(|name| name == "")).then(|| "every object needs a name".to_owned())
}

fn is_empty(snapshot: &ClusterSnapshot) -> bool {
    let has_machines = snapshot.nodes().next().is_some() || snapshot.claims().next().is_some();
    !has_machines && snapshot.pods().next().is_none() && snapshot.pools().next().is_none()
}

/// Kinds that a dump must have been made without: nothing of a cluster with claims looks like this.
fn missing(snapshot: &ClusterSnapshot) -> impl Iterator<Item = &'static str> {
    let has_claims = snapshot.claims().next().is_some();
    let has_nodes_of_pools = snapshot.nodes().any(|node| node.meta.label(label::NODEPOOL).is_some());
    [
        (has_claims && snapshot.pods().next().is_none(), "the input has no pods: every node counts as empty"),
        (has_claims && snapshot.nodes().next().is_none(), "the input has no nodes: no claim counts as joined"),
        (has_claims && snapshot.pools().next().is_none(), "the input has no NodePools: every claim stays"),
        (!has_claims && has_nodes_of_pools, "the input has no NodeClaims: every node stays"),
    ]
    .into_iter()
    .filter_map(|(is_missing, note)| is_missing.then_some(note))
}

/// The node classes of every provider: a dump may come from anywhere.
pub fn class_kinds() -> Vec<ClassKind> {
    let kinds = Provider::ALL.into_iter().map(|provider| WatchedKind::NodeClass(provider).api_kind());
    kinds.map(|api| ClassKind { group: api.group.into(), kind: api.kind.into() }).collect()
}

impl Cluster {
    fn of(objects: Vec<Value>, catalogue: &Catalogue, mut outcome: Outcome) -> Self {
        let mut reader = Reader::new(None);
        let mut snapshot = ClusterSnapshot::default();
        let mut assumed = Assumed::default();
        let mut ec2_classes = BTreeMap::new();
        let mut names = BTreeSet::new();
        for mut object in objects {
            let text = |field: &str| object.get(field).and_then(Value::as_str).unwrap_or_default();
            let Some(kind) = WatchedKind::of(text("apiVersion"), text("kind")) else { continue };
            assumed.complete(kind, &mut object);
            let part = |part: &str| object.pointer(part).and_then(Value::as_str).unwrap_or_default().to_owned();
            if !names.insert((kind, part("/metadata/namespace"), part("/metadata/name"))) {
                assumed.tell(TWICE);
            }
            if kind == WatchedKind::NodeClass(Provider::Aws)
                && let Ok(class) = Ec2Class::read(&object)
            {
                ec2_classes.insert(Arc::clone(&class.common.class.name), class);
            }
            match reader.seen_json(kind, &object) {
                Ok(seen) => snapshot.apply(seen.change),
                Err(error) => {
                    outcome = outcome.max(Outcome::Unreadable);
                    output::complain(&format!("{:#}", anyhow::Error::from(error)));
                }
            }
        }
        let rules = label_rules(None);
        let pool_names = snapshot.pools().map(|pool| Arc::clone(&pool.meta.name.name));
        let heard: Catalogues = pool_names.map(|pool| (pool, Arc::clone(catalogue.types()))).collect();
        let overlays = snapshot.overlays().map(|overlay| &**overlay);
        let pools = snapshot.pools().filter_map(|pool| pool.spec.as_ref().ok());
        let types = overlaid(&heard, overlays, pools, &rules).types;
        let mut assumptions = assumed.texts();
        if outcome == Outcome::Unreadable {
            assumptions.push("what could not be read is not there".to_owned());
        }
        Self { snapshot, types, rules, ec2_classes, assumptions, outcome }
    }
}

/// What was filled in.
#[derive(Default)]
struct Assumed {
    /// What decides something, and how often.
    told: BTreeMap<&'static str, usize>,
    /// Made for the first manifest that needs it: it takes its time.
    admission: OnceCell<Option<Admission>>,
}

const POD_WAITS: &str = "which no scheduler has looked at: taken as unschedulable";
const POOL_READY: &str = "without a status: taken as ready";
const TWICE: &str = "there more than once: the last one counts";

impl Assumed {
    /// What a cluster would have added.
    fn complete(&mut self, kind: WatchedKind, object: &mut Value) {
        // What else these are does not decode, and that is reported.
        let is_object = |field: &str| object.get(field).is_none_or(|value| value.is_object() || value.is_null());
        if !is_object("metadata") || !is_object("status") {
            return;
        }
        let has_conditions =
            object.pointer("/status/conditions").and_then(Value::as_array).is_some_and(|list| !list.is_empty());
        let is_manifest = object.pointer("/metadata/uid").is_none();
        if is_manifest {
            let name = |part: &str| object.pointer(part).and_then(Value::as_str).unwrap_or_default().to_owned();
            let uid = format!("{}/{}", name("/metadata/namespace"), name("/metadata/name"));
            object["metadata"]["uid"] = json!(format!("{}:{uid}", kind.api_kind().kind));
        }
        if kind.api_kind().namespaced && object.pointer("/metadata/namespace").is_none() {
            object["metadata"]["namespace"] = json!("default");
        }
        if is_manifest && matches!(kind, WatchedKind::NodePool | WatchedKind::NodeClass(Provider::Aws)) {
            self.put_defaults(object);
        }
        if has_conditions {
            return;
        }
        match kind {
            // In a cluster, a pod that its scheduler has not looked at is one that the controller leaves alone: it may still
            // find a place, or belong to a scheduler that never tells.
            WatchedKind::Pod if is_manifest => {
                let is_bound =
                    object.pointer("/spec/nodeName").and_then(Value::as_str).is_some_and(|name| !name.is_empty());
                let phase = object.pointer("/status/phase").and_then(Value::as_str).unwrap_or("Pending");
                if !is_bound && phase == "Pending" {
                    object["status"]["conditions"] =
                        json!([{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]);
                    self.tell(POD_WAITS);
                }
            }
            WatchedKind::NodePool => {
                object["status"]["conditions"] = json!([{
                    "type": "Ready", "status": "True", "reason": "Ready", "message": "",
                    "lastTransitionTime": "1970-01-01T00:00:00Z",
                }]);
                self.tell(POOL_READY);
            }
            _ => {}
        }
    }

    fn tell(&mut self, what: &'static str) {
        *self.told.entry(what).or_default() += 1;
    }

    /// As the API server stores it: the drift hash is taken of that.
    fn put_defaults(&self, object: &mut Value) {
        let admission = self.admission.get_or_init(|| Admission::new(&crds(None)).ok());
        if let Some(stored) = admission.as_ref().and_then(|admission| admission.stored(object)) {
            *object = stored;
        }
    }

    fn texts(&self) -> Vec<String> {
        let noun = |what: &str| match what {
            POD_WAITS => "pod",
            POOL_READY => "pool",
            _ => "object",
        };
        self.told.iter().map(|(what, count)| format!("{} {what}", output::count(*count, noun(what)))).collect()
    }
}

#[cfg(not(feature = "controller"))]
fn live_objects(_: Features) -> anyhow::Result<Vec<Value>> {
    anyhow::bail!("this build knows no live clusters: give it a dump with -f")
}

#[cfg(feature = "controller")]
fn live_objects(features: Features) -> anyhow::Result<Vec<Value>> {
    live::block_on(live::list(live::kinds(features)))
}

#[cfg(feature = "controller")]
pub mod live {
    //! The cluster that KUBECONFIG names, or the one that the process runs in.

    use kube::api::{Api, DynamicObject, ListParams};
    use kube::core::ApiResource;
    use kube::{Client, Config};

    use super::*;

    /// As many objects as one answer may have.
    const PAGE: u32 = 500;

    pub fn kinds(features: Features) -> Vec<WatchedKind> {
        let mut kinds: Vec<WatchedKind> = Provider::ALL.into_iter().flat_map(WatchedKind::all).collect();
        kinds.extend(features.kinds());
        kinds.sort();
        kinds.dedup();
        kinds
    }

    pub fn block_on<T>(future: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().build().context("cannot start the runtime")?;
        runtime.block_on(future)
    }

    pub async fn client() -> anyhow::Result<Client> {
        let config = Config::infer().await.context("cannot find a cluster: set KUBECONFIG, or give a dump with -f")?;
        Client::try_from(config).context("cannot make a client for the cluster")
    }

    /// Lists every kind. Only the right to list is needed.
    pub async fn list(kinds: Vec<WatchedKind>) -> anyhow::Result<Vec<Value>> {
        let client = client().await?;
        let mut objects = Vec::new();
        for kind in kinds {
            let api_kind = kind.api_kind();
            let api: Api<DynamicObject> = Api::all_with(client.clone(), &ApiResource::from(api_kind));
            let mut page = ListParams::default().limit(PAGE);
            loop {
                let list = match api.list(&page).await {
                    Ok(list) => list,
                    // The definition is not installed: the cluster has no such objects.
                    Err(kube::Error::Api(status)) if status.code == 404 => break,
                    Err(error) => return Err(error).with_context(|| format!("cannot list {}", api_kind.plural)),
                };
                for object in list.items {
                    let mut object = serde_json::to_value(object)?;
                    object["apiVersion"] = json!(api_kind.api_version());
                    object["kind"] = json!(api_kind.kind);
                    objects.push(object);
                }
                match list.metadata.continue_.filter(|token| !token.is_empty()) {
                    Some(token) => page = ListParams::default().limit(PAGE).continue_token(&token),
                    None => break,
                }
            }
        }
        Ok(objects)
    }
}
