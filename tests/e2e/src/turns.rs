//! Who shares the bed with whom.
//!
//! A controller acts on the whole cluster, so there is one at a time. Cases that leave it alone share it and run side by
//! side, each in its own namespace and with its own pool; cases that start, stop or starve it have the bed to themselves.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::Result;
use tokio::sync::Notify;

use crate::Kerf;

/// How the controller of a case lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Life {
    /// There is none, for all cases of this life together.
    None,
    /// It runs through, for all cases of this life together.
    Steady,
    /// It is killed again and again, a few seconds after it has come up, for all cases of this life together.
    Killed,
    /// The case brings its own, and nobody else is there.
    Own,
}

/// Waits that are minutes by default, in seconds: nobody but a case waits for them.
pub const SHORT_WAITS: [&str; 4] = ["--garbage-collection-interval", "5s", "--registration-timeout", "60s"];
/// What the reference's own end-to-end suites switch on.
pub const GATES: [&str; 2] = ["--feature-gates", "NodeRepair=true,StaticCapacity=true,CapacityBuffer=true"];

/// How long a controller may work before it is killed; one after the other, so that it is hit at different steps. The
/// longest is long enough to choose a node: nothing is chosen in the first seconds after a start.
const WORK: [Duration; 4] =
    [Duration::from_millis(2500), Duration::from_secs(4), Duration::from_millis(1500), Duration::from_secs(22)];

/// The right to use the bed, until it is dropped.
pub struct Turn(());

#[derive(Default)]
struct State {
    life: Option<Life>,
    users: usize,
    controller: Option<Controller>,
}

enum Controller {
    Steady { _process: Kerf },
    Killed { stop: Arc<AtomicBool>, killer: Option<JoinHandle<()>> },
}

static STATE: Mutex<State> = Mutex::new(State { life: None, users: 0, controller: None });
static CHANGED: Notify = Notify::const_new();

/// Waits until the bed is free for this life, and starts its controller if nobody has.
pub async fn turn(life: Life) -> Result<Turn> {
    loop {
        let changed = CHANGED.notified();
        if enter(life)? {
            return Ok(Turn(()));
        }
        // Another case may have left between the look and the wait.
        tokio::select! {
            () = changed => {}
            () = tokio::time::sleep(Duration::from_millis(200)) => {}
        }
    }
}

fn enter(life: Life) -> Result<bool> {
    let mut state = state();
    let joins = state.life == Some(life) && life != Life::Own;
    if state.users > 0 && !joins {
        return Ok(false);
    }
    if state.users == 0 {
        state.controller = match life {
            Life::None | Life::Own => None,
            Life::Steady => Some(Controller::Steady { _process: start(life)? }),
            Life::Killed => Some(Controller::killed()?),
        };
        state.life = Some(life);
    }
    state.users += 1;
    Ok(true)
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut state = state();
        state.users -= 1;
        if state.users == 0 {
            (state.life, state.controller) = (None, None);
        }
        drop(state);
        CHANGED.notify_waiters();
    }
}

fn state() -> MutexGuard<'static, State> {
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn start(life: Life) -> Result<Kerf> {
    // Without a lease: a process that was killed would leave one behind that the next has to wait for.
    let arguments = ["--disable-leader-election"].iter().chain(&SHORT_WAITS).chain(&GATES).copied().collect::<Vec<_>>();
    Kerf::start(&format!("{life:?}").to_lowercase(), &arguments)
}

impl Controller {
    fn killed() -> Result<Self> {
        // The first one here, so that a program that is missing is told.
        let mut process = start(Life::Killed)?;
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let killer = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let Ok(runtime) = runtime else { return };
            for work in WORK.iter().cycle() {
                // One that does not come up is killed as well; its cases will tell.
                drop(runtime.block_on(process.until_ready()));
                let mut left = *work;
                while !left.is_zero() && !stopped.load(Ordering::Acquire) {
                    let step = left.min(Duration::from_millis(100));
                    std::thread::sleep(step);
                    left -= step;
                }
                if stopped.load(Ordering::Acquire) {
                    return;
                }
                match process.kill().and_then(|()| start(Life::Killed)) {
                    Ok(next) => process = next,
                    Err(_) => return,
                }
            }
        });
        Ok(Self::Killed { stop, killer: Some(killer) })
    }
}

impl Drop for Controller {
    fn drop(&mut self) {
        if let Self::Killed { stop, killer } = self {
            stop.store(true, Ordering::Release);
            if let Some(killer) = killer.take() {
                drop(killer.join());
            }
        }
    }
}
