//! No more requests per second than the operator allows (`--kube-client-qps`, `--kube-client-burst`).

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use http::Request;
use tokio::time::{Instant, sleep_until};
use tower::{Layer, Service};

/// A bucket of tokens that all clones of a client share.
#[derive(Debug, Clone)]
pub struct Throttle(Arc<Mutex<Bucket>>);

#[derive(Debug)]
struct Bucket {
    /// Time that one token takes to come back.
    each: Duration,
    /// How far ahead of its rate the client may be.
    burst: Duration,
    /// When a bucket used so far would be full again.
    full_at: Instant,
}

impl Throttle {
    /// So many per second in the long run, and so many at once.
    pub fn new(per_second: u32, burst: u32) -> Self {
        let each = Duration::from_secs(1) / per_second.max(1);
        Self(Arc::new(Mutex::new(Bucket { each, burst: each * burst.max(1), full_at: Instant::now() })))
    }

    /// When the next request may go out; it counts as sent.
    fn next(&self) -> Instant {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take(Instant::now())
    }
}

impl Bucket {
    fn take(&mut self, now: Instant) -> Instant {
        self.full_at = self.full_at.max(now) + self.each;
        // Tokens that are there are free; the others are waited for.
        self.full_at.checked_sub(self.burst).map_or(now, |at| at.max(now))
    }
}

impl<S> Layer<S> for Throttle {
    type Service = Throttled<S>;

    fn layer(&self, inner: S) -> Throttled<S> {
        Throttled { inner, throttle: self.clone() }
    }
}

#[derive(Debug)]
pub struct Throttled<S> {
    inner: S,
    throttle: Throttle,
}

impl<S, B> Service<Request<B>> for Throttled<S>
where
    S: Service<Request<B>>,
    S::Future: Send + 'static,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<S::Response, S::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let at = self.throttle.next();
        // Nothing is sent before the future is polled.
        let answer = self.inner.call(request);
        Box::pin(async move {
            sleep_until(at).await;
            answer.await
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_burst_is_free_and_the_rest_comes_at_the_rate() {
        let throttle = Throttle::new(10, 3);
        let now = Instant::now();
        let mut bucket = throttle.0.lock().unwrap();
        bucket.full_at = now;
        let waits: Vec<_> = (0..5).map(|_| bucket.take(now).duration_since(now).as_millis()).collect();
        assert_eq!(waits, [0, 0, 0, 100, 200]);
        let later = now + Duration::from_secs(10);
        assert_eq!(bucket.take(later), later, "what was not used comes back");
    }
}
