//! What goes wrong around the autoscaler, from a seed: crashes, writes and replies that are lost, late or repeated, views
//! that lag, a cloud that refuses, hangs or loses machines.
//!
//! [`Faults::none`] is the plain path. [`Mutation`]s are not faults: they make the autoscaler itself wrong, to prove that
//! the checkers notice.

use jiff::SignedDuration;
use kerf_model::cloud::LaunchError;
use kerf_model::effect::{Effect, WriteError};

use crate::random::Random;

/// How often, each as "once in so many"; 0 is never.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Rates {
    /// Per effect: the process dies before it.
    pub crash: u64,
    /// Per effect: it is refused with a conflict, or the server is busy.
    pub refused: u64,
    /// Per effect: it is not done, and nobody says so.
    pub dropped: u64,
    /// Per effect: it is done, and the answer says otherwise or is lost.
    pub reply_lost: u64,
    pub late: u64,
    pub repeated: u64,
    /// Per kind and news: the watch falls silent for a while.
    pub lag: u64,
    pub launch_refused: u64,
    pub launch_failed: u64,
    pub launch_slow: u64,
    pub never_joins: u64,
}

impl Rates {
    /// A bad day: most histories meet every fault several times.
    pub const ROUGH: Self = Self {
        crash: 60,
        refused: 25,
        dropped: 40,
        reply_lost: 40,
        late: 30,
        repeated: 30,
        lag: 20,
        launch_refused: 10,
        launch_failed: 10,
        launch_slow: 8,
        never_joins: 12,
    };
}

/// A rule that the autoscaler breaks on purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mutation {
    /// Pods are deleted where they should be evicted.
    SkipBudgets,
    /// The finalizer goes before the instance.
    ForgetFinalizer,
    /// The cloud makes an instance each time it is asked.
    LaunchTwice,
}

/// What becomes of an effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fate {
    Done,
    Refused(WriteError),
    /// Not done, and not heard of.
    Dropped,
    /// Done, and heard of as if it were not.
    ReplyLost,
    Late(SignedDuration),
    /// Done now and again later.
    Repeated(SignedDuration),
}

/// What becomes of a launch that reaches the cloud.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LaunchFate {
    Made,
    Refused(LaunchError),
    /// The machine is made at once, and the answer comes after this.
    Slow(SignedDuration),
    NeverJoins,
}

#[derive(Debug, Clone)]
pub struct Faults {
    random: Random,
    rates: Rates,
    crash_at: Option<u64>,
    mutation: Option<Mutation>,
    effects: u64,
    crashes: u64,
}

/// Shorter than what the engine takes for lost (10 s): a view that is older than that is another fault.
const LONGEST_DELAY_SECS: i64 = 8;
/// The next process waits for the lease of the last one, which outlasts the last one's requests.
const SHORTEST_OUTAGE_SECS: i64 = 15;
const LONGEST_OUTAGE_SECS: i64 = 90;
const LONGEST_LAUNCH_SECS: i64 = 240;

impl Faults {
    pub fn none() -> Self {
        Self::seeded(0, Rates::default())
    }

    pub fn seeded(seed: u64, rates: Rates) -> Self {
        Self { random: Random::new(seed), rates, crash_at: None, mutation: None, effects: 0, crashes: 0 }
    }

    /// Dies once, after this many effects.
    pub fn crash_at(effects: u64) -> Self {
        Self { crash_at: Some(effects), ..Self::none() }
    }

    #[must_use]
    pub fn with(self, mutation: Option<Mutation>) -> Self {
        Self { mutation, ..self }
    }

    /// From now on nothing goes wrong.
    pub fn stop(&mut self) {
        self.rates = Rates::default();
        self.crash_at = None;
    }

    /// How many effects there were that change something: a crash can be before each of them.
    pub fn effects(&self) -> u64 {
        self.effects
    }

    pub fn crashes(&self) -> u64 {
        self.crashes
    }

    pub fn has(&self, mutation: Mutation) -> bool {
        self.mutation == Some(mutation)
    }

    /// Asked before every effect: how long the process is away, if it dies here.
    pub(crate) fn crash(&mut self, effect: &Effect) -> Option<SignedDuration> {
        // Before and after what only tells something is the same.
        if matches!(effect, Effect::Publish(_)) {
            return None;
        }
        let dies = self.crash_at == Some(self.effects) || self.random.one_in(self.rates.crash);
        if !dies {
            self.effects += 1;
            return None;
        }
        self.crash_at = None;
        self.crashes += 1;
        Some(SignedDuration::from_secs(self.random.between(SHORTEST_OUTAGE_SECS, LONGEST_OUTAGE_SECS)))
    }

    pub(crate) fn fate(&mut self, effect: &Effect) -> Fate {
        // What people read decides nothing.
        if matches!(effect, Effect::Publish(_)) {
            return Fate::Done;
        }
        if self.random.one_in(self.rates.refused) {
            return Fate::Refused(match self.random.one_in(2) {
                true => WriteError::Conflict,
                false => WriteError::Unavailable { message: "the server is busy".to_owned() },
            });
        }
        if self.random.one_in(self.rates.dropped) {
            return Fate::Dropped;
        }
        if self.random.one_in(self.rates.reply_lost) {
            return Fate::ReplyLost;
        }
        if self.random.one_in(self.rates.late) {
            return Fate::Late(self.delay());
        }
        if self.random.one_in(self.rates.repeated) {
            return Fate::Repeated(self.delay());
        }
        Fate::Done
    }

    /// Asked when a watch has news: how long it stays silent about them.
    pub(crate) fn lag(&mut self) -> Option<SignedDuration> {
        self.random.one_in(self.rates.lag).then(|| self.delay())
    }

    pub(crate) fn launch(&mut self) -> LaunchFate {
        if self.random.one_in(self.rates.launch_refused) {
            return LaunchFate::Refused(LaunchError::InsufficientCapacity { message: "none left today".into() });
        }
        if self.random.one_in(self.rates.launch_failed) {
            let (reason, message) = ("CloudDown".into(), "the cloud did not answer".into());
            return LaunchFate::Refused(LaunchError::Failed { reason, message });
        }
        if self.random.one_in(self.rates.launch_slow) {
            return LaunchFate::Slow(SignedDuration::from_secs(self.random.between(5, LONGEST_LAUNCH_SECS)));
        }
        if self.random.one_in(self.rates.never_joins) {
            return LaunchFate::NeverJoins;
        }
        LaunchFate::Made
    }

    fn delay(&mut self) -> SignedDuration {
        SignedDuration::from_secs(self.random.between(1, LONGEST_DELAY_SECS))
    }
}
