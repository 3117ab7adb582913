//! Who of several replicas acts: the holder of a Lease.
//!
//! Another holder's lease is over when it has not changed for its whole duration on *our* clock: the times in it were
//! written by another machine. A holder that cannot renew in time stops before the others may start.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tracing::{info, warn};

use crate::brain::clock;
use crate::cloud::chain;
use crate::probes::Health;

/// The numbers of client-go's users.
const DURATION: Duration = Duration::from_secs(15);
const RENEW_WITHIN: Duration = Duration::from_secs(10);
const TRY_EVERY: Duration = Duration::from_secs(2);

#[derive(Debug, Clone)]
pub struct LeaseOptions {
    pub namespace: String,
    pub name: String,
    /// Unique per process.
    pub identity: String,
}

pub struct Candidate {
    api: Api<Lease>,
    options: LeaseOptions,
    health: Arc<Health>,
    /// The other holder's lease as last seen, and since when it has been like that.
    seen: Option<(String, Instant)>,
}

/// The lease is ours, at this version.
pub struct Held {
    candidate: Candidate,
    version: String,
    /// When it was last asked for with success. Others count from the write, which may be long before its answer.
    renewed: Instant,
}

/// Whose turn it is.
#[derive(Debug, PartialEq, Eq)]
enum Turn {
    Ours { version: String, asked: Instant },
    Others,
    Unanswered,
}

#[derive(Debug, thiserror::Error)]
#[error("the lease {name} was lost: {cause}")]
pub struct Lost {
    name: String,
    cause: String,
}

impl Candidate {
    pub fn new(client: Client, options: LeaseOptions, health: Arc<Health>) -> Self {
        Self { api: Api::namespaced(client, &options.namespace), options, health, seen: None }
    }

    /// Waits for its turn.
    pub async fn acquire(mut self) -> Held {
        let mut is_told = false;
        loop {
            let answer = timeout(RENEW_WITHIN, self.try_acquire()).await.unwrap_or_else(|_| Ok(Turn::Unanswered));
            let is_answered = answer.as_ref().is_ok_and(|answer| *answer != Turn::Unanswered);
            self.health.reaches_lease.store(is_answered, Ordering::Release);
            match answer {
                Ok(Turn::Ours { version, asked }) => {
                    info!(lease = self.options.name, "this replica leads");
                    return Held { candidate: self, version, renewed: asked };
                }
                Ok(Turn::Others) if !is_told => {
                    is_told = true;
                    info!(lease = self.options.name, "another replica leads; waiting");
                }
                Ok(Turn::Others) => {}
                Ok(Turn::Unanswered) => warn!(lease = self.options.name, "the server does not answer about the lease"),
                Err(error) => self.cannot_ask(&error),
            }
            sleep(TRY_EVERY).await;
        }
    }

    fn cannot_ask(&self, error: &kube::Error) {
        let LeaseOptions { name, namespace, .. } = &self.options;
        let advice = match error {
            kube::Error::Api(status) if status.code == 403 => {
                "; its account needs get, create and patch on leases there"
            }
            _ => "",
        };
        warn!(lease = name, namespace, error = chain(error), "the lease cannot be asked for{advice}");
    }

    async fn try_acquire(&mut self) -> kube::Result<Turn> {
        let now = clock();
        let Some(lease) = self.api.get_opt(&self.options.name).await? else {
            let lease = json!({
                "metadata": {"name": self.options.name, "namespace": self.options.namespace},
                "spec": self.spec(now, Some(now), 0),
            });
            let lease: Lease = serde_json::from_value(lease).map_err(kube::Error::SerdeError)?;
            let asked = Instant::now();
            return won(self.api.create(&PostParams::default(), &lease).await, asked);
        };
        let version = lease.metadata.resource_version.unwrap_or_default();
        let spec = lease.spec.unwrap_or_default();
        let holder = spec.holder_identity.unwrap_or_default();
        if !holder.is_empty() && holder != self.options.identity && !self.is_over(&version, spec.lease_duration_seconds)
        {
            return Ok(Turn::Others);
        }
        let transitions = spec.lease_transitions.unwrap_or_default() + 1;
        let body = json!({"metadata": {"resourceVersion": version}, "spec": self.spec(now, Some(now), transitions)});
        let asked = Instant::now();
        won(self.patch(body).await, asked)
    }

    fn is_over(&mut self, version: &str, secs: Option<i32>) -> bool {
        let duration = secs.and_then(|secs| u64::try_from(secs).ok()).map_or(DURATION, Duration::from_secs);
        match &self.seen {
            Some((seen, since)) if seen == version => since.elapsed() >= duration,
            Some(_) | None => {
                self.seen = Some((version.to_owned(), Instant::now()));
                false
            }
        }
    }

    async fn patch(&self, body: Value) -> kube::Result<Lease> {
        self.api.patch(&self.options.name, &PatchParams::default(), &Patch::Merge(body)).await
    }

    fn spec(&self, now: Timestamp, acquired: Option<Timestamp>, transitions: i32) -> Value {
        let mut spec = json!({
            "holderIdentity": self.options.identity,
            "leaseDurationSeconds": DURATION.as_secs(),
            "renewTime": micro_time(now),
        });
        if let Some(acquired) = acquired {
            spec["acquireTime"] = json!(micro_time(acquired));
            spec["leaseTransitions"] = json!(transitions);
        }
        spec
    }
}

impl Held {
    /// Renews until that fails for too long, or another holds it.
    pub async fn keep(&mut self) -> Lost {
        let mut asked = self.renewed;
        loop {
            sleep_until(asked + TRY_EVERY).await;
            asked = Instant::now();
            let left = RENEW_WITHIN.saturating_sub(self.renewed.elapsed());
            let answer = timeout(left, self.renew()).await;
            self.candidate.health.reaches_lease.store(matches!(answer, Ok(Ok(()))), Ordering::Release);
            let cause = match answer {
                Ok(Ok(())) => continue,
                Ok(Err(kube::Error::Api(status))) if matches!(status.code, 404 | 409) => {
                    return self.lost("somebody else has changed it");
                }
                Ok(Err(error)) => chain(&error),
                Err(_) => "the server does not answer".to_owned(),
            };
            if self.renewed.elapsed() >= RENEW_WITHIN {
                return self.lost(&cause);
            }
            warn!(lease = self.candidate.options.name, cause, "the lease was not renewed; trying again");
        }
    }

    async fn renew(&mut self) -> kube::Result<()> {
        match self.write().await {
            // Our own write may have arrived although its answer did not, or somebody has put a label on it.
            Err(kube::Error::Api(status)) if status.code == 409 => {
                let lease = self.candidate.api.get(&self.candidate.options.name).await?;
                let holder = lease.spec.and_then(|spec| spec.holder_identity);
                if holder.as_deref() != Some(&*self.candidate.options.identity) {
                    return Err(kube::Error::Api(status));
                }
                self.version = lease.metadata.resource_version.unwrap_or_default();
                self.write().await
            }
            other => other,
        }
    }

    async fn write(&mut self) -> kube::Result<()> {
        let asked = Instant::now();
        let spec = self.candidate.spec(clock(), None, 0);
        let body = json!({"metadata": {"resourceVersion": self.version}, "spec": spec});
        let lease = self.candidate.patch(body).await?;
        self.version = lease.metadata.resource_version.unwrap_or_default();
        self.renewed = asked;
        Ok(())
    }

    /// Lets the next one start at once. Nothing may be written any more.
    pub async fn release(self) {
        let body = json!({
            "metadata": {"resourceVersion": self.version},
            "spec": {"holderIdentity": "", "leaseDurationSeconds": 1},
        });
        match timeout(TRY_EVERY, self.candidate.patch(body)).await {
            Ok(Ok(_)) => info!(lease = self.candidate.options.name, "released the lease"),
            Ok(Err(error)) => warn!(error = %error, "the lease was not released and runs out by itself"),
            Err(_) => warn!("the lease was not released and runs out by itself"),
        }
    }

    fn lost(&self, cause: &str) -> Lost {
        Lost { name: self.candidate.options.name.clone(), cause: cause.to_owned() }
    }
}

/// A conflict says that somebody else was faster.
fn won(answer: kube::Result<Lease>, asked: Instant) -> kube::Result<Turn> {
    match answer {
        Ok(lease) => Ok(Turn::Ours { version: lease.metadata.resource_version.unwrap_or_default(), asked }),
        Err(kube::Error::Api(status)) if status.code == 409 => Ok(Turn::Others),
        Err(error) => Err(error),
    }
}

fn micro_time(time: Timestamp) -> String {
    format!("{time:.6}")
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use http::{Method, Request, Response};
    use kube::client::Body;

    use super::*;

    #[derive(Default)]
    struct Server {
        /// So many writes are refused.
        conflicts: usize,
        written: Vec<Instant>,
    }

    /// A server with our lease.
    fn server() -> (Client, Arc<Mutex<Server>>) {
        let state: Arc<Mutex<Server>> = Arc::default();
        let answer = {
            let state = Arc::clone(&state);
            move |request: Request<Body>| {
                let Server { conflicts, written } = &mut *state.lock().unwrap();
                let is_write = *request.method() == Method::PATCH;
                let is_refused = is_write && *conflicts > 0;
                let (code, body) = if is_refused {
                    *conflicts -= 1;
                    (409, json!({"kind": "Status", "status": "Failure", "code": 409}))
                } else {
                    written.extend(is_write.then(Instant::now));
                    let version = written.len().to_string();
                    (200, json!({"metadata": {"resourceVersion": version}, "spec": {"holderIdentity": "we"}}))
                };
                let body = Body::from(body.to_string().into_bytes());
                std::future::ready(Response::builder().status(code).body(body).map_err(Box::new))
            }
        };
        (Client::new(tower::service_fn(answer), "default"), state)
    }

    fn candidate(client: Client) -> Candidate {
        let options = LeaseOptions { namespace: "a".to_owned(), name: "kerf".to_owned(), identity: "we".to_owned() };
        Candidate::new(client, options, Arc::default())
    }

    /// The server wrote, and took eight seconds to say so: the holder went on for ten seconds from then, and another
    /// replica could begin fifteen seconds after the write.
    #[tokio::test]
    async fn a_lease_was_held_for_longer_than_others_waited_for_it() {
        let (client, state) = server();
        let mut held = candidate(client).acquire().await;
        let last_write = || *state.lock().unwrap().written.last().unwrap();
        assert!(held.renewed <= last_write());
        held.renew().await.unwrap();
        assert!(held.renewed <= last_write());
    }

    /// Others count from the last write, whoever's it was.
    #[tokio::test]
    async fn a_lease_that_somebody_else_had_written_to_counted_as_renewed() {
        let (client, state) = server();
        let mut held = candidate(client).acquire().await;
        state.lock().unwrap().conflicts = 1;
        held.renew().await.unwrap();
        assert_eq!(state.lock().unwrap().written.len(), 2, "it was written again");
    }
}
