//! What an operator can set.

use jiff::SignedDuration;
use kerf_model::label::LabelRules;

#[derive(Debug, Clone)]
pub struct Settings {
    pub lifecycle: kerf_lifecycle::Settings,
    pub scheduling: kerf_scheduling::Options,
    pub labels: LabelRules,
    /// A batch closes when no new pod has come for this long (`--batch-idle-duration`).
    pub batch_idle: SignedDuration,
    /// A batch closes this long after its first pod, whatever comes (`--batch-max-duration`).
    pub batch_max: SignedDuration,
}

impl Settings {
    /// The reference's numbers.
    pub fn new(lifecycle: kerf_lifecycle::Settings, labels: LabelRules) -> Self {
        Self {
            lifecycle,
            scheduling: kerf_scheduling::Options::default(),
            labels,
            batch_idle: SignedDuration::from_secs(1),
            batch_max: SignedDuration::from_secs(10),
        }
    }
}
