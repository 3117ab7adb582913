//! One request to the API, and what its refusal means.

use std::time::Duration;

use http::Request as HttpRequest;
use http::header::{ACCEPT, CONTENT_TYPE};
use kerf_api::write::{ApiWrite, Request};
use kerf_model::effect::WriteError;
use kube::Client;
use serde_json::Value;
use tokio::time::timeout;

/// What has become of a write.
#[derive(Debug)]
pub enum Done {
    /// With the version that the object has now, where it still has one.
    Written { version: Option<String> },
    /// It was so already.
    Already,
}

/// A server that takes longer has lost the request, or does not know any more who asked.
const ANSWER_WITHIN: Duration = Duration::from_secs(30);

/// A write that did not happen.
#[derive(Debug)]
pub struct Refused {
    /// The server's answer; 0 if there was none.
    pub code: u16,
    pub error: WriteError,
}

/// Sends one write. `previous` is the version that the write before it was answered with.
pub async fn send(client: &Client, write: &ApiWrite, previous: Option<&str>) -> Result<Done, Refused> {
    let (method, content_type) = match &write.request {
        Request::Create(_) | Request::Evict { .. } => ("POST", "application/json"),
        Request::MergePatch { .. } => ("PATCH", "application/merge-patch+json"),
        Request::Delete { .. } => ("DELETE", "application/json"),
    };
    let request = HttpRequest::builder()
        .method(method)
        .uri(write.path())
        .header(CONTENT_TYPE, content_type)
        .header(ACCEPT, "application/json")
        .body(write.body(previous).to_string().into_bytes())
        .map_err(|error| Refused { code: 0, error: WriteError::Invalid { message: error.to_string() } })?;
    let Ok(answer) = timeout(ANSWER_WITHIN, client.request::<Value>(request)).await else {
        let error = WriteError::Unavailable { message: "the server does not answer".to_owned() };
        return Err(Refused { code: 0, error });
    };
    match answer {
        Ok(answer) => {
            let version = answer.pointer("/metadata/resourceVersion").and_then(Value::as_str).map(str::to_owned);
            Ok(Done::Written { version })
        }
        Err(error) => match (&write.request, refusal(error)) {
            (Request::Create(_), Refusal { code: 409, .. }) => Ok(Done::Already),
            // Gone, or another object has taken the name.
            (Request::Delete { .. }, Refusal { code: 404 | 409, .. }) => Ok(Done::Already),
            (Request::Evict { .. }, refusal) => Err(Refused { code: refusal.code, error: refusal.of_eviction() }),
            (_, refusal) => Err(Refused { code: refusal.code, error: refusal.into() }),
        },
    }
}

pub fn write_error(error: kube::Error) -> WriteError {
    refusal(error).into()
}

struct Refusal {
    /// 0 if there was no answer.
    code: u16,
    message: String,
}

fn refusal(error: kube::Error) -> Refusal {
    match error {
        kube::Error::Api(status) => Refusal { code: status.code, message: status.message.clone() },
        other => Refusal { code: 0, message: other.to_string() },
    }
}

impl Refusal {
    fn of_eviction(self) -> WriteError {
        // Two budgets over one pod are answered as the server's own fault, though no later try will help.
        let several_budgets = self.code == 500 && self.message.contains("more than one PodDisruptionBudget");
        if self.code == 429 || several_budgets {
            return WriteError::BudgetRefused { message: self.message };
        }
        self.into()
    }
}

impl From<Refusal> for WriteError {
    fn from(refusal: Refusal) -> Self {
        let Refusal { code, message } = refusal;
        match code {
            409 => Self::Conflict,
            404 => Self::NotFound,
            400 | 403 | 405 | 413 | 415 | 422 => Self::Invalid { message },
            _ => Self::Unavailable { message },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(code: u16, message: &str) -> Refusal {
        Refusal { code, message: message.to_owned() }
    }

    #[test]
    fn only_an_eviction_can_be_refused_by_a_budget() {
        let several =
            "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.";
        for (code, message) in [(429, "Cannot evict pod"), (500, several)] {
            let refused = || refused(code, message);
            assert!(matches!(refused().of_eviction(), WriteError::BudgetRefused { .. }));
            assert!(matches!(WriteError::from(refused()), WriteError::Unavailable { .. }));
        }
        assert!(matches!(refused(500, "etcd is away").of_eviction(), WriteError::Unavailable { .. }));
        assert_eq!(refused(404, "").of_eviction(), WriteError::NotFound);
    }

    #[test]
    fn what_the_server_says_decides_what_to_do_next() {
        assert_eq!(WriteError::from(refused(409, "")), WriteError::Conflict);
        assert!(matches!(WriteError::from(refused(422, "bad")), WriteError::Invalid { .. }));
        assert!(matches!(WriteError::from(refused(0, "connection refused")), WriteError::Unavailable { .. }));
        assert!(matches!(WriteError::from(refused(503, "busy")), WriteError::Unavailable { .. }));
    }
}
