//! The KWOKNodeClass, and when the Node of a claim is due.

use jiff::{SignedDuration, Timestamp};
use kerf_cloud::ClassKind;
use kerf_model::cluster::{ConditionStatus, NodeClaim, NodeClass, condition_kind};
use kerf_model::duration::{GoDuration, ParseDurationError};

pub const CLASS_KIND: ClassKind = ClassKind { group: "karpenter.kwok.sh", kind: "KWOKNodeClass" };

#[derive(Debug, Clone, PartialEq)]
pub struct KwokClass {
    pub common: NodeClass,
    /// How long after the launch the Node appears.
    pub registration_delay: GoDuration,
}

impl KwokClass {
    /// From the common part and the text of `spec.nodeRegistrationDelay`.
    ///
    /// # Errors
    /// A text that the schema would have refused.
    pub fn new(common: NodeClass, registration_delay: Option<&str>) -> Result<Self, ParseDurationError> {
        let registration_delay = registration_delay.map_or(Ok(GoDuration::ZERO), str::parse)?;
        Ok(Self { common, registration_delay })
    }
}

impl AsRef<NodeClass> for KwokClass {
    fn as_ref(&self) -> &NodeClass {
        &self.common
    }
}

/// When the Node of a claim has to be there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Due {
    /// Not launched yet, joined already, or not wanted any more.
    Never,
    At(Timestamp),
}

/// Upstream counts in a task of its own and posts whatever has become of the claim, which leaks a Node for ever. Here the
/// claim itself says since when it is launched, so a restart does not forget the Node either.
///
/// Without its class the claim is about to go; until then its node starts without delay.
pub(crate) fn due(claim: &NodeClaim, class: Option<&KwokClass>) -> Due {
    let conditions = &claim.status.conditions;
    if claim.meta.is_deleting() || conditions.is_true(condition_kind::REGISTERED) {
        return Due::Never;
    }
    let launched = conditions.get(condition_kind::LAUNCHED);
    let Some(launched) = launched.filter(|launched| launched.status == ConditionStatus::True) else {
        return Due::Never;
    };
    let delay = class.map_or(SignedDuration::ZERO, |class| class.registration_delay.into());
    Due::At(launched.since.saturating_add(delay).unwrap_or(Timestamp::MAX))
}
