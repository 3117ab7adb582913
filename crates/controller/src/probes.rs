//! `/metrics`, `/healthz` and `/readyz`.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::Router;
use axum::http::StatusCode;
use axum::routing::get;
use kube::Client;
use tokio::net::TcpListener;
use tokio::time::{sleep, timeout};

use crate::metrics::Metrics;

/// How often the kinds are asked for, once they were found.
const LOOK_EVERY: Duration = Duration::from_secs(5);
const LOOK_WITHIN: Duration = Duration::from_secs(3);

/// What the probes say.
#[derive(Debug, Default)]
pub struct Health {
    /// The server answers, and knows NodePool and NodeClaim.
    pub serves_kinds: AtomicBool,
    /// The last question about the lease was answered. True without one.
    pub reaches_lease: AtomicBool,
    /// A replica that waits for its turn is ready without seeing anything, or a rolling update would never end.
    pub leads: AtomicBool,
    /// Every kind has been listed, and no watch is broken.
    pub sees: AtomicBool,
}

impl Health {
    fn readiness(&self) -> (StatusCode, &'static str) {
        let is = |flag: &AtomicBool| flag.load(Ordering::Acquire);
        let missing = if !is(&self.serves_kinds) {
            "the server does not answer, or does not serve NodePool and NodeClaim of karpenter.sh/v1: \
             install them with `kerf crds | kubectl apply --server-side -f -`\n"
        } else if !is(&self.reaches_lease) {
            "the lease cannot be asked for\n"
        } else if is(&self.leads) && !is(&self.sees) {
            "not every kind has been listed\n"
        } else {
            return (StatusCode::OK, "ok\n");
        };
        (StatusCode::SERVICE_UNAVAILABLE, missing)
    }

    /// Asks for the kinds, for ever.
    pub async fn look(self: Arc<Self>, client: Client) {
        loop {
            let answer = timeout(LOOK_WITHIN, client.list_api_group_resources("karpenter.sh/v1")).await;
            let kinds = answer.ok().and_then(Result::ok).map(|found| found.resources).unwrap_or_default();
            let is_served = |kind| kinds.iter().any(|resource| resource.kind == kind);
            let serves = is_served("NodePool") && is_served("NodeClaim");
            self.serves_kinds.store(serves, Ordering::Release);
            sleep(if serves { LOOK_EVERY } else { LOOK_EVERY / 5 }).await;
        }
    }
}

pub async fn bind(address: SocketAddr) -> std::io::Result<TcpListener> {
    TcpListener::bind(address).await
}

pub async fn serve_metrics(listener: TcpListener, metrics: Arc<Metrics>) -> std::io::Result<()> {
    let text = move || async move { ([("content-type", "text/plain; version=0.0.4")], metrics.text().await) };
    axum::serve(listener, Router::new().route("/metrics", get(text))).await
}

pub async fn serve_probes(listener: TcpListener, health: Arc<Health>) -> std::io::Result<()> {
    let readiness = move || async move { health.readiness() };
    let routes = Router::new().route("/healthz", get(|| async { "ok\n" })).route("/readyz", get(readiness));
    axum::serve(listener, routes).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readiness_follows_what_can_be_seen() {
        let health = Health::default();
        let set = |flag: &AtomicBool, to| flag.store(to, Ordering::Release);
        let is_ready = || health.readiness().0 == StatusCode::OK;
        assert!(!is_ready(), "nothing is known yet");
        set(&health.serves_kinds, true);
        assert!(!is_ready(), "nobody has answered about the lease");
        set(&health.reaches_lease, true);
        assert!(is_ready(), "a replica that waits");
        set(&health.leads, true);
        assert!(!is_ready(), "it leads, and sees nothing yet");
        set(&health.sees, true);
        assert!(is_ready());
        set(&health.sees, false);
        assert!(!is_ready(), "a watch is broken");
    }
}
