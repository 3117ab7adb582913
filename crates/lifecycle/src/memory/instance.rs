//! Calls to the cloud.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use kerf_model::cloud::{CloudDrift, HookReport, LaunchError, Launched, TerminateAnswer, UpdateAnswer};
use kerf_model::cluster::Texts;
use kerf_model::time::{doubled, later};

use super::ANSWER_WITHIN;

/// Of the reference: 1 s to 60 s per claim.
const FIRST_RETRY: SignedDuration = SignedDuration::from_secs(1);
const LAST_RETRY: SignedDuration = SignedDuration::from_secs(60);
/// No launch takes longer: by then the answer is lost. Asking again is safe, it finds what the first call made.
pub(crate) const LAUNCH_WITHIN: SignedDuration = SignedDuration::from_mins(2);
/// How often the cloud is asked whether an instance is gone yet.
const ASK_AGAIN: SignedDuration = SignedDuration::from_secs(5);
/// How old an "it exists" may be.
pub(crate) const LOOKUP_VALID: SignedDuration = SignedDuration::from_secs(10);

#[derive(Debug, Clone)]
pub(crate) enum Launch {
    UnderWay {
        since: Timestamp,
        failures: u32,
    },
    /// Kept until the claim shows it: a status write that fails must not launch twice.
    Answered(Launched),
    Failed {
        error: LaunchError,
        failures: u32,
        retry_at: Timestamp,
    },
}

#[derive(Debug, Clone)]
pub(crate) enum Termination {
    Asked { at: Timestamp, failures: u32 },
    Accepted { at: Timestamp },
    Failed { failures: u32, retry_at: Timestamp },
    Gone,
}

/// Whether an instance exists.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Lookup {
    Asked { at: Timestamp },
    Answered { at: Timestamp, exists: bool },
}

/// The call for a reboot.
#[derive(Debug, Clone)]
pub(crate) struct RebootCall {
    pub first_asked: Timestamp,
    /// The question that is not answered yet.
    pub asked: Option<Timestamp>,
    pub accepted: Option<Timestamp>,
}

/// What the provider says about a claim's drift.
#[derive(Debug, Clone, Default)]
pub(crate) struct DriftCheck {
    /// The question that is not answered yet.
    pub asked: Option<Timestamp>,
    /// The last answer. It is kept while it is asked again, and loses its time when something changes that it rests on.
    pub answer: Option<(Timestamp, Option<CloudDrift>)>,
}

/// What the provider's registration hooks say of a claim.
#[derive(Debug, Clone, Default)]
pub(crate) struct HookCheck {
    /// The question that is not answered yet.
    pub asked: Option<Timestamp>,
    pub answer: Option<(Timestamp, HookReport)>,
}

/// Changes of a running instance or its node, in place of a new one.
#[derive(Debug, Clone, Default)]
pub(crate) struct InPlaceCall {
    /// The question that is not answered yet.
    pub asked: Option<Timestamp>,
    /// The provider said that it is done, and what the claim is to carry from then on.
    pub done: Option<Texts>,
    pub failures: u32,
    pub failure: Option<Arc<str>>,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Listing {
    asked: Option<Timestamp>,
    /// The first question since the last answer: a provider that is slow answers that one, however often it is asked.
    first_asked: Option<Timestamp>,
    pub heard: Option<Timestamp>,
}

impl Launch {
    pub fn asked(before: Option<Self>, now: Timestamp) -> Self {
        let failures = match before {
            Some(Self::UnderWay { failures, .. } | Self::Failed { failures, .. }) => failures,
            Some(Self::Answered(_)) | None => 0,
        };
        Self::UnderWay { since: now, failures }
    }

    pub fn answered(before: Option<Self>, answer: Result<Launched, LaunchError>, now: Timestamp) -> Self {
        let failures = match before {
            Some(Self::UnderWay { failures, .. } | Self::Failed { failures, .. }) => failures.saturating_add(1),
            Some(Self::Answered(_)) | None => 1,
        };
        match answer {
            Ok(launched) => Self::Answered(launched),
            Err(error) => {
                Self::Failed { error, failures, retry_at: later(now, doubled(failures, FIRST_RETRY, LAST_RETRY)) }
            }
        }
    }
}

impl Termination {
    pub fn asked(before: Option<Self>, now: Timestamp) -> Self {
        match before {
            Some(Self::Failed { failures, .. } | Self::Asked { failures, .. }) => Self::Asked { at: now, failures },
            Some(Self::Accepted { .. } | Self::Gone) | None => Self::Asked { at: now, failures: 0 },
        }
    }

    pub fn answered(before: Option<Self>, answer: &TerminateAnswer, now: Timestamp) -> Self {
        match answer {
            TerminateAnswer::Accepted => Self::Accepted { at: now },
            TerminateAnswer::Gone => Self::Gone,
            TerminateAnswer::Failed { .. } => {
                let failures = match before {
                    Some(Self::Asked { failures, .. } | Self::Failed { failures, .. }) => failures.saturating_add(1),
                    Some(Self::Accepted { .. } | Self::Gone) | None => 1,
                };
                Self::Failed { failures, retry_at: later(now, doubled(failures, FIRST_RETRY, LAST_RETRY)) }
            }
        }
    }

    /// When to ask (again); `None` once the instance is gone.
    pub fn ask_at(&self) -> Option<Timestamp> {
        match self {
            Self::Asked { at, .. } => Some(later(*at, ANSWER_WITHIN)),
            Self::Accepted { at } => Some(later(*at, ASK_AGAIN)),
            Self::Failed { retry_at, .. } => Some(*retry_at),
            Self::Gone => None,
        }
    }
}

impl InPlaceCall {
    /// Then the node is replaced after all.
    const TRIES: u32 = 3;

    pub fn answered(&mut self, answer: &UpdateAnswer) {
        self.asked = None;
        match answer {
            // Asked again whether it is as it should be: see `DriftCheck`.
            UpdateAnswer::Done { annotations } => *self = Self { done: Some(annotations.clone()), ..Self::default() },
            UpdateAnswer::Failed { message } => {
                self.failures = self.failures.saturating_add(1);
                self.failure = Some(message.clone());
            }
            UpdateAnswer::Impossible { message } => {
                self.failures = Self::TRIES;
                self.failure = Some(message.clone());
            }
        }
    }

    /// What went wrong, once that is final.
    pub fn given_up(&self) -> Option<&Arc<str>> {
        self.failure.as_ref().filter(|_| self.failures >= Self::TRIES)
    }
}

impl DriftCheck {
    /// The answer still stands, and is asked for again at the next look.
    pub fn expire(&mut self) {
        if let Some((at, _)) = &mut self.answer {
            *at = Timestamp::MIN;
        }
    }
}

impl Listing {
    pub fn ask(&mut self, now: Timestamp) {
        if self.unanswered().is_none() {
            self.first_asked = Some(now);
        }
        self.asked = Some(now);
    }

    /// The question that is not answered yet.
    pub fn unanswered(&self) -> Option<Timestamp> {
        self.asked.filter(|asked| self.heard.is_none_or(|heard| heard < *asked))
    }

    /// What the last answer shows was so at this time or later.
    pub fn shows(&self) -> Option<Timestamp> {
        self.first_asked
    }
}

impl Lookup {
    pub fn at(&self) -> Timestamp {
        match self {
            Self::Asked { at } | Self::Answered { at, .. } => *at,
        }
    }

    /// When to ask again.
    pub fn ask_at(&self) -> Timestamp {
        later(self.at(), LOOKUP_VALID)
    }
}
