//! The provider's interruption queue: polled, and what it says is heard like everything else.

use std::sync::Arc;
use std::time::Duration;

use kerf_cloud::Provider;
use kerf_model::change::Input;
use tokio::sync::mpsc;
use tokio::time::sleep;

use crate::brain::Heard;
use crate::cloud::{ClassReader, Cloud};
use crate::metrics::Metrics;

/// A spot instance goes two minutes after its notice; this much of it may pass unused.
const POLL_EVERY: Duration = Duration::from_secs(5);
/// A provider that does not answer is not pressed.
const RETRY_AT_MOST: Duration = Duration::from_secs(60);

/// Until the engine ends. Asking again tells the provider that what it said before was taken in, so that it is asked only
/// when the engine has it.
pub async fn poll<P, R>(cloud: Arc<Cloud<P, R>>, queue: mpsc::Sender<Heard>, metrics: Arc<Metrics>)
where
    P: Provider,
    R: ClassReader<P::Class>,
{
    let mut wait = POLL_EVERY;
    loop {
        sleep(wait).await;
        let Some(announced) = cloud.interruptions().await else {
            wait = (wait * 2).min(RETRY_AT_MOST);
            continue;
        };
        wait = POLL_EVERY;
        for interruption in announced {
            metrics.interruption_received(&interruption);
            if queue.send(Heard::Input(Input::Interrupted(interruption))).await.is_err() {
                return;
            }
        }
    }
}
