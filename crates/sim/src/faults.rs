//! What goes wrong around the autoscaler, from a seed: crashes, writes and replies that are lost, late or repeated, views
//! that lag, a cloud that refuses, hangs or loses machines.
//!
//! [`Faults::none`] is the plain path. [`Mutation`]s are not faults: they make the autoscaler itself wrong, to prove that
//! the checkers notice.

use jiff::SignedDuration;
use kerf_model::cloud::LaunchError;
use kerf_model::effect::{Effect, WriteError};

use crate::random::Random;

mod mutation;

pub use mutation::Mutation;
pub(crate) use mutation::turned_round;

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
    /// Of those that are late: so late that their sender takes them for lost, or is gone.
    pub very_late: u64,
    pub repeated: u64,
    /// Per kind and news: the watch falls silent for a while.
    pub lag: u64,
    /// Per kind and news: the watch has expired (410), and everything is listed again.
    pub expired: u64,
    /// Per kind, when a process starts: it is shown what was there some seconds ago.
    pub stale_list: u64,
    /// Per look: what is heard comes in another order.
    pub reordered: u64,
    /// Per look: the clock is set to something else.
    pub clock_jump: u64,
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
        very_late: 4,
        repeated: 30,
        lag: 20,
        expired: 60,
        stale_list: 8,
        reordered: 3,
        clock_jump: 400,
        launch_refused: 10,
        launch_failed: 10,
        launch_slow: 8,
        never_joins: 12,
    };
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
    clock_is_to_be_right: bool,
}

/// Shorter than what the engine takes for lost (10 s): a view that is older than that is another fault.
const LONGEST_DELAY_SECS: i64 = 8;
/// A request that hung somewhere, and arrives after its sender has given it up.
const LATEST_ARRIVAL_SECS: i64 = 45;
/// A process that goes in order hands its lease over at once; its last requests may still be under way.
const SHORTEST_OUTAGE_SECS: i64 = 1;
const LONGEST_OUTAGE_SECS: i64 = 90;
const LONGEST_LAUNCH_SECS: i64 = 240;
const OLDEST_LIST_SECS: i64 = 6;
const WORST_CLOCK_SECS: i64 = 120;

impl Faults {
    pub fn none() -> Self {
        Self::seeded(0, Rates::default())
    }

    pub fn seeded(seed: u64, rates: Rates) -> Self {
        Self {
            random: Random::new(seed),
            rates,
            crash_at: None,
            mutation: None,
            effects: 0,
            crashes: 0,
            clock_is_to_be_right: false,
        }
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
        self.clock_is_to_be_right = true;
    }

    /// How many effects there were that change something: a crash can be before each of them.
    pub fn effects(&self) -> u64 {
        self.effects
    }

    pub fn crashes(&self) -> u64 {
        self.crashes
    }

    pub fn mutation(&self) -> Option<Mutation> {
        self.mutation
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
            return Fate::Refused(self.refusal(effect));
        }
        if self.random.one_in(self.rates.dropped) {
            return Fate::Dropped;
        }
        if self.random.one_in(self.rates.reply_lost) {
            return Fate::ReplyLost;
        }
        if self.random.one_in(self.rates.late) {
            let is_very_late = self.random.one_in(self.rates.very_late);
            return Fate::Late(match is_very_late {
                true => SignedDuration::from_secs(self.random.between(LONGEST_DELAY_SECS, LATEST_ARRIVAL_SECS)),
                false => self.delay(),
            });
        }
        if self.random.one_in(self.rates.repeated) {
            return Fate::Repeated(self.delay());
        }
        Fate::Done
    }

    /// 409, 429 or 5xx. To an eviction a busy server says the same as a budget.
    fn refusal(&mut self, effect: &Effect) -> WriteError {
        let busy = || "the server is busy".to_owned();
        match self.random.below(3) {
            0 => WriteError::Conflict,
            1 if matches!(effect, Effect::EvictPod(..)) => WriteError::BudgetRefused { message: busy() },
            _ => WriteError::Unavailable { message: busy() },
        }
    }

    pub(crate) fn expires_watch(&mut self) -> bool {
        self.random.one_in(self.rates.expired)
    }

    /// Asked for the first list of a kind: how old it is.
    pub(crate) fn stale_list(&mut self) -> Option<SignedDuration> {
        let is_stale = self.random.one_in(self.rates.stale_list);
        is_stale.then(|| SignedDuration::from_secs(self.random.between(1, OLDEST_LIST_SECS)))
    }

    /// Each is about another object, so any order could be seen.
    pub(crate) fn reorder<T>(&mut self, news: &mut [T]) {
        if news.len() < 2 || !self.random.one_in(self.rates.reordered) {
            return;
        }
        for last in (1..news.len()).rev() {
            let other = usize::try_from(self.random.below(last as u64 + 1)).unwrap_or(0);
            news.swap(last, other);
        }
    }

    /// By how much the clock is wrong from now on, if it is set now.
    pub(crate) fn clock_jump(&mut self) -> Option<SignedDuration> {
        if std::mem::take(&mut self.clock_is_to_be_right) {
            return Some(SignedDuration::ZERO);
        }
        let jumps = self.random.one_in(self.rates.clock_jump);
        jumps.then(|| SignedDuration::from_secs(self.random.between(-WORST_CLOCK_SECS, WORST_CLOCK_SECS)))
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
