//! All of it together, from the lease to the last write.

use std::future::pending;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use kerf_api::change::Features;
use kerf_cloud::Provider;
use kerf_engine::Settings;
use kube::Client;
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use tracing::{info, warn};

use crate::brain::{Brain, QUEUE_LENGTH};
use crate::cloud::{ClassReader, Cloud};
use crate::effects::Writer;
use crate::interruptions;
use crate::lease::{Candidate, Held, LeaseOptions, Lost};
use crate::metrics::{Build, Metrics};
use crate::probes::{self, Health};
use crate::said::Said;
use crate::traffic::Traffic;
use crate::watch;

pub struct Options {
    pub settings: Settings,
    /// The provider whose kinds are watched.
    pub kinds: kerf_api::Provider,
    /// What is switched on that watches further kinds.
    pub features: Features,
    /// `None` acts without asking, which is right only if nobody else does.
    pub lease: Option<LeaseOptions>,
    pub addresses: Addresses,
    /// For the metric that tells what runs.
    pub build: Build,
    /// Whether pods, nodes and pools are metrics too, and not only what is done with them.
    pub observes_state: bool,
}

#[derive(Debug, Clone, Copy)]
pub struct Addresses {
    pub metrics: SocketAddr,
    pub probes: SocketAddr,
}

/// Two, so that a flood of work does not cost the lease.
#[derive(Clone)]
pub struct Clients {
    pub work: Client,
    pub lease: Client,
    /// What both ask of the server.
    pub traffic: Traffic,
}

/// Why it ended although nobody asked it to.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    #[error("cannot listen on {address}")]
    Listen {
        address: SocketAddr,
        #[source]
        source: std::io::Error,
    },
    #[error("cannot start the engine's thread")]
    Thread(#[source] std::io::Error),
    #[error("a part of the controller has ended")]
    PartEnded,
}

/// Why this replica does not act any more.
enum Ended {
    Asked,
    Lost(Lost),
    Failed(RunError),
}

/// Acts until `stop` is done, then hands over.
///
/// A replica that loses its lease stops acting at once and waits for its next turn, which it begins with a fresh look:
/// what it knew may be old by then.
pub async fn run<P, R>(
    options: Options,
    clients: Clients,
    (provider, classes): (P, R),
    stop: impl Future<Output = ()>,
) -> Result<(), RunError>
where
    P: Provider + 'static,
    R: ClassReader<P::Class> + 'static,
{
    let lease_name = options.lease.as_ref().map(|lease| lease.name.as_str());
    let metrics = Arc::new(Metrics::new(&options.build, options.observes_state, lease_name, clients.traffic.clone()));
    let health = Arc::new(Health::default());
    // Dropped with everything in it when this function returns.
    let mut servers = JoinSet::new();
    serve(options.addresses, &metrics, &health, &mut servers).await?;
    let looking = Arc::clone(&health).look(clients.lease.clone());
    servers.spawn(async {
        looking.await;
        Ok(())
    });
    let cloud = Arc::new(Cloud::new(provider, classes, Arc::clone(&metrics)));
    tokio::pin!(stop);
    loop {
        let mut held = match &options.lease {
            None => None,
            Some(lease) => {
                let candidate = Candidate::new(clients.lease.clone(), lease.clone(), Arc::clone(&health));
                tokio::select! {
                    held = candidate.acquire() => Some(held),
                    () = &mut stop => return Ok(()),
                }
            }
        };
        health.sees.store(false, Ordering::Release);
        health.leads.store(true, Ordering::Release);
        // Nobody is asked about it without a lease.
        health.reaches_lease.fetch_or(held.is_none(), Ordering::AcqRel);
        metrics.set_leading(true);
        let part = Part { options: &options, client: &clients.work, cloud: &cloud, metrics: &metrics, health: &health };
        let ended = part.act(held.as_mut(), &mut stop).await;
        health.leads.store(false, Ordering::Release);
        metrics.set_leading(false);
        match ended {
            Ended::Asked => {
                if let Some(held) = held {
                    held.release().await;
                }
                info!("stopped");
                return Ok(());
            }
            Ended::Lost(lost) => warn!(error = %lost, "this replica stops acting and waits for its turn"),
            Ended::Failed(error) => return Err(error),
        }
    }
}

/// What a replica acts with.
struct Part<'a, P, R> {
    options: &'a Options,
    client: &'a Client,
    cloud: &'a Arc<Cloud<P, R>>,
    metrics: &'a Arc<Metrics>,
    health: &'a Arc<Health>,
}

impl<P, R> Part<'_, P, R>
where
    P: Provider + 'static,
    R: ClassReader<P::Class> + 'static,
{
    /// Until asked to stop, the lease is lost, or something breaks. Nothing is written after that: what was under way is
    /// asked for again by whoever comes next.
    async fn act(&self, held: Option<&mut Held>, stop: &mut (impl Future<Output = ()> + Unpin)) -> Ended {
        let (queue, heard) = mpsc::channel(QUEUE_LENGTH);
        let (work, orders) = mpsc::unbounded_channel();
        self.metrics.ask(queue.clone());
        let settings = self.options.settings.clone();
        let brain = Brain::new(settings, work, Arc::clone(self.metrics), Arc::clone(self.health));
        let (alive, mut brain_ended) = oneshot::channel::<()>();
        let runtime = Handle::current();
        let thread = std::thread::Builder::new().name("engine".to_owned()).spawn(move || {
            // Dropped when the thread ends, also by a panic.
            let _alive = alive;
            brain.run(heard, &runtime);
        });
        if let Err(error) = thread {
            return Ended::Failed(RunError::Thread(error));
        }
        let mut tasks = JoinSet::new();
        watch::start(self.client, (self.options.kinds, self.options.features), &queue, &mut tasks);
        if self.cloud.has_interruptions() {
            tasks.spawn(interruptions::poll(Arc::clone(self.cloud), queue.clone(), Arc::clone(self.metrics)));
        }
        let writer = Writer {
            client: self.client.clone(),
            cloud: Arc::clone(self.cloud),
            queue,
            metrics: Arc::clone(self.metrics),
            said: Said::default(),
        };
        tasks.spawn(writer.run(orders));
        let ended = tokio::select! {
            () = stop => Ended::Asked,
            lost = keep(held) => Ended::Lost(lost),
            _ = &mut brain_ended => Ended::Failed(RunError::PartEnded),
            _ = tasks.join_next() => Ended::Failed(RunError::PartEnded),
        };
        tasks.shutdown().await;
        self.metrics.ask_nobody();
        ended
    }
}

async fn keep(held: Option<&mut Held>) -> Lost {
    match held {
        Some(held) => held.keep().await,
        None => pending().await,
    }
}

async fn serve(
    addresses: Addresses,
    metrics: &Arc<Metrics>,
    health: &Arc<Health>,
    servers: &mut JoinSet<std::io::Result<()>>,
) -> Result<(), RunError> {
    let listen = async |address| probes::bind(address).await.map_err(|source| RunError::Listen { address, source });
    servers.spawn(probes::serve_metrics(listen(addresses.metrics).await?, Arc::clone(metrics)));
    servers.spawn(probes::serve_probes(listen(addresses.probes).await?, Arc::clone(health)));
    Ok(())
}
