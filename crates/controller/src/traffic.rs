//! What the clients ask of the API server, counted under the names that dashboards of controllers know.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use http::{Request, Response};
use tokio::time::Instant;
use tower::{Layer, Service};

use crate::metrics::{Page, Registry, catalogue as metric};

/// A count that all clones of its clients share.
#[derive(Debug, Clone, Default)]
pub struct Traffic(Arc<Mutex<Registry>>);

/// What a request is about, by its path.
#[derive(Debug, Default, PartialEq, Eq)]
struct Subject<'a> {
    group: &'a str,
    version: &'a str,
    /// As the path has it: in the plural.
    kind: &'a str,
    subresource: &'a str,
}

impl Traffic {
    pub(crate) fn write(&self, page: &mut Page) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).write(page);
    }

    /// `code` is `<error>` if there was no answer.
    fn note(&self, method: &str, path: &str, code: &str, seconds: f64) {
        let Subject { group, version, kind, subresource } = Subject::of(path);
        let mut registry = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        registry.add(&metric::REQUESTS, &[code, method], 1.0);
        registry.observe(&metric::REQUEST_TIME, &[method, group, version, kind, subresource], seconds);
    }
}

impl<'a> Subject<'a> {
    /// Empty for paths that are about no object, like `/version`.
    fn of(path: &'a str) -> Self {
        let words: Vec<&str> = path.trim_matches('/').split('/').collect();
        let (group, version, rest) = match &words[..] {
            ["api", version, rest @ ..] => ("", *version, rest),
            ["apis", group, version, rest @ ..] => (*group, *version, rest),
            _ => return Self::default(),
        };
        let rest = match rest {
            ["namespaces", _, rest @ ..] if !rest.is_empty() => rest,
            all => all,
        };
        let subresource = rest.get(2).copied().unwrap_or_default();
        Self { group, version, kind: rest.first().copied().unwrap_or_default(), subresource }
    }
}

impl<S> Layer<S> for Traffic {
    type Service = Counted<S>;

    fn layer(&self, inner: S) -> Counted<S> {
        Counted { inner, traffic: self.clone() }
    }
}

#[derive(Debug)]
pub struct Counted<S> {
    inner: S,
    traffic: Traffic,
}

impl<S, B, A> Service<Request<B>> for Counted<S>
where
    S: Service<Request<B>, Response = Response<A>>,
    S::Future: Send + 'static,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<S::Response, S::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    /// Until the answer begins: what a watch then tells has no end.
    fn call(&mut self, request: Request<B>) -> Self::Future {
        let (method, path) = (request.method().to_string(), request.uri().path().to_owned());
        let answer = self.inner.call(request);
        let traffic = self.traffic.clone();
        Box::pin(async move {
            let start = Instant::now();
            let answer = answer.await;
            let status = answer.as_ref().map(Response::status);
            let code = status.as_ref().map_or("<error>", |status| status.as_str());
            traffic.note(&method, &path, code, start.elapsed().as_secs_f64());
            answer
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(path: &str) -> [&str; 4] {
        let Subject { group, version, kind, subresource } = Subject::of(path);
        [group, version, kind, subresource]
    }

    #[test]
    fn a_path_tells_what_a_request_is_about() {
        assert_eq!(of("/api/v1/nodes"), ["", "v1", "nodes", ""]);
        assert_eq!(of("/api/v1/namespaces/default"), ["", "v1", "namespaces", ""]);
        assert_eq!(of("/api/v1/namespaces/a/pods/b/eviction"), ["", "v1", "pods", "eviction"]);
        assert_eq!(of("/apis/karpenter.sh/v1/nodeclaims/a/status"), ["karpenter.sh", "v1", "nodeclaims", "status"]);
        assert_eq!(
            of("/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kerf"),
            ["coordination.k8s.io", "v1", "leases", ""]
        );
        assert_eq!(of("/version"), ["", "", "", ""]);
    }

    #[tokio::test]
    async fn answers_are_counted_by_code_and_what_fails_as_an_error() {
        let traffic = Traffic::default();
        let mut service = traffic.layer(tower::service_fn(async |request: Request<()>| match request.uri().path() {
            "/api/v1/nodes/gone" => Ok(Response::builder().status(404).body(())?),
            "/api/v1/nodes" => Ok(Response::new(())),
            _ => Err(http::Error::from(http::status::StatusCode::from_u16(1).unwrap_err())),
        }));
        for path in ["/api/v1/nodes", "/api/v1/nodes", "/api/v1/nodes/gone", "/version"] {
            let request = Request::builder().uri(path).body(()).unwrap();
            let _answer = service.call(request).await;
        }
        let mut page = Page::default();
        traffic.write(&mut page);
        let text = page.text();
        for line in [
            "client_go_request_total{code=\"200\",method=\"GET\"} 2\n",
            "client_go_request_total{code=\"404\",method=\"GET\"} 1\n",
            "client_go_request_total{code=\"<error>\",method=\"GET\"} 1\n",
            "client_go_request_duration_seconds_count{verb=\"GET\",group=\"\",version=\"v1\",kind=\"nodes\",subresource=\"\"} 3\n",
        ] {
            assert!(text.contains(line), "no {line} in {text}");
        }
    }
}
