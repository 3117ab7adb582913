//! `/metrics`, `/healthz` and `/readyz`.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::Router;
use axum::http::StatusCode;
use axum::routing::get;
use tokio::net::TcpListener;

use crate::metrics::Metrics;

/// What the probes say.
#[derive(Debug)]
pub struct Health {
    pub metrics: Arc<Metrics>,
    /// A replica that waits for its turn is ready, or a rolling update would never end.
    pub is_leader: AtomicBool,
}

impl Health {
    fn readiness(&self) -> (StatusCode, &'static str) {
        if self.is_leader.load(Ordering::Acquire) && !self.metrics.is_synced() {
            return (StatusCode::SERVICE_UNAVAILABLE, "not every kind has been listed yet\n");
        }
        (StatusCode::OK, "ok\n")
    }
}

pub async fn bind(address: SocketAddr) -> std::io::Result<TcpListener> {
    TcpListener::bind(address).await
}

pub async fn serve_metrics(listener: TcpListener, metrics: Arc<Metrics>) -> std::io::Result<()> {
    let text = move || async move { ([("content-type", "text/plain; version=0.0.4")], metrics.text()) };
    axum::serve(listener, Router::new().route("/metrics", get(text))).await
}

pub async fn serve_probes(listener: TcpListener, health: Arc<Health>) -> std::io::Result<()> {
    let readiness = move || async move { health.readiness() };
    let routes = Router::new().route("/healthz", get(|| async { "ok\n" })).route("/readyz", get(readiness));
    axum::serve(listener, routes).await
}
