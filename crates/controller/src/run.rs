//! All of it together, from the lease to the last write.

use std::future::pending;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use kerf_cloud::Provider;
use kerf_engine::Settings;
use kube::Client;
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use tracing::info;

use crate::brain::{Brain, QUEUE_LENGTH};
use crate::cloud::{ClassReader, Cloud};
use crate::effects::{Said, Writer};
use crate::lease::{Candidate, Held, LeaseOptions, Lost};
use crate::metrics::Metrics;
use crate::probes::{self, Health};
use crate::watch;

pub struct Options {
    pub settings: Settings,
    /// The provider whose kinds are watched.
    pub kinds: kerf_api::Provider,
    /// `None` acts without asking, which is right only if nobody else does.
    pub lease: Option<LeaseOptions>,
    pub addresses: Addresses,
    /// For the metric that tells what runs.
    pub version: &'static str,
}

#[derive(Debug, Clone, Copy)]
pub struct Addresses {
    pub metrics: SocketAddr,
    pub probes: SocketAddr,
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
    #[error(transparent)]
    LeaseLost(#[from] Lost),
    #[error("a part of the controller has ended")]
    PartEnded,
}

/// Acts until `stop` is done, then hands over.
///
/// A lost lease ends the process: what was known may be old by the time the lease comes back, and a new process starts
/// with a fresh look.
pub async fn run<P, R>(
    options: Options,
    client: Client,
    (provider, classes): (P, R),
    stop: impl Future<Output = ()>,
) -> Result<(), RunError>
where
    P: Provider + 'static,
    R: ClassReader<P::Class> + 'static,
{
    let metrics = Arc::new(Metrics::new(options.version));
    let health = Arc::new(Health { metrics: Arc::clone(&metrics), is_leader: AtomicBool::new(false) });
    // Dropped with everything in it when this function returns.
    let mut servers = JoinSet::new();
    serve(options.addresses, &metrics, &health, &mut servers).await?;
    tokio::pin!(stop);
    let mut held = match options.lease {
        None => None,
        Some(lease) => tokio::select! {
            held = Candidate::new(client.clone(), lease).acquire() => Some(held),
            () = &mut stop => return Ok(()),
        },
    };
    health.is_leader.store(true, Ordering::Release);

    let (queue, heard) = mpsc::channel(QUEUE_LENGTH);
    let (work, orders) = mpsc::unbounded_channel();
    let brain = Brain::new(options.settings, work, Arc::clone(&metrics));
    let (alive, mut brain_ended) = oneshot::channel::<()>();
    let runtime = Handle::current();
    let thread = std::thread::Builder::new().name("engine".to_owned()).spawn(move || {
        // Dropped when the thread ends, also by a panic.
        let _alive = alive;
        brain.run(heard, &runtime);
    });
    drop(thread.map_err(RunError::Thread)?);
    let mut tasks = JoinSet::new();
    watch::start(&client, options.kinds, &queue, &mut tasks);
    let cloud = Cloud::new(provider, classes);
    let writer = Writer { client, cloud, queue, metrics, said: Said::default() };
    tasks.spawn(writer.run(orders));

    let outcome = tokio::select! {
        () = stop => Ok(()),
        lost = keep(held.as_mut()) => Err(lost.into()),
        _ = &mut brain_ended => Err(RunError::PartEnded),
        _ = tasks.join_next() => Err(RunError::PartEnded),
    };
    // Nothing is written after this. What was under way is asked for again by whoever comes next.
    tasks.shutdown().await;
    if let (Ok(()), Some(held)) = (&outcome, held) {
        held.release().await;
    }
    info!("stopped");
    outcome
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
