//! Waiting for a cluster to get there.

use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};

/// Controllers on two busy cores answer within a second or two; a bed under load may take ten times that.
const PATIENCE: Duration = Duration::from_secs(30);
const BETWEEN_LOOKS: Duration = Duration::from_millis(100);

/// Looks again and again until there is something to see. An error counts as "not yet" (an API server may restart under
/// a test) and is told when patience runs out.
pub async fn eventually<T>(what: &str, look: impl AsyncFnMut() -> Result<Option<T>>) -> Result<T> {
    within(PATIENCE, what, look).await
}

/// With another patience: for what takes its time by design.
pub async fn within<T>(limit: Duration, what: &str, mut look: impl AsyncFnMut() -> Result<Option<T>>) -> Result<T> {
    let start = Instant::now();
    loop {
        let last = match look().await {
            Ok(Some(seen)) => return Ok(seen),
            Ok(None) => String::new(),
            Err(error) => format!(": {error:#}"),
        };
        if start.elapsed() > limit {
            bail!("waited {} s in vain until {what}{last}", limit.as_secs());
        }
        tokio::time::sleep(BETWEEN_LOOKS).await;
    }
}

/// Looks again and again, and fails as soon as it is not so, or cannot be told.
pub async fn throughout(time: Duration, what: &str, mut look: impl AsyncFnMut() -> Result<bool>) -> Result<()> {
    let start = Instant::now();
    while start.elapsed() < time {
        ensure!(look().await?, "after {} s it was not so any more that {what}", start.elapsed().as_secs());
        tokio::time::sleep(BETWEEN_LOOKS).await;
    }
    Ok(())
}
