//! What every provider must keep to, so that the engine can rely on it.
//!
//! [`check`] launches, lists and terminates with a provider and answers with the rules that it broke. A provider's tests
//! call it with a [`World`] of their own and expect none:
//!
//! ```text
//! assert_eq!(contract::check(&provider, &mut world).await, []);
//! ```

mod catalogue;
mod launch;
mod repair;
mod sample;
mod terminate;

use std::fmt;

use jiff::Timestamp;

use crate::provider::Provider;

pub use sample::{claim, pool};

/// How often something is asked before it counts as never happening.
const PATIENCE: u32 = 60;

/// What a provider's test must lend.
pub trait World<C> {
    /// A class that is ready.
    fn class(&self) -> &C;

    fn now(&self) -> Timestamp;

    /// Lets time pass, at least a second of it: a virtual clock ticks, a real one is waited for.
    fn wait(&mut self) -> impl Future<Output = ()> + Send;
}

/// A rule, and how it was broken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Broken {
    pub rule: Rule,
    pub detail: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rule {
    /// There are instance types; names are unique; the answer is the same when asked again.
    TypesAreListed,
    /// A type says its name, architecture and system; every label it defines is well known.
    TypesAreLabelled,
    /// An offering has one zone, one capacity type, a price, and is one of its type's.
    OfferingsArePlaced,
    /// Pods can use some CPU, memory and pods of each type, and no more than there is.
    TypesHaveRoom,
    /// A launch answers with labels and resources that meet the claim.
    LaunchMeetsTheClaim,
    /// Of the on-demand offerings that meet the claim, the cheapest is taken.
    LaunchIsCheap,
    /// A claim that nothing can meet, or whose class is missing, is refused for lack of capacity.
    LaunchRefusesTheImpossible,
    /// A claim launched again gets the same instance; another claim gets another.
    OneInstancePerClaim,
    /// An instance that was launched is found and listed, once.
    InstancesAreListed,
    /// Asking for the end of an instance again and again ends it, and it is found and listed no more.
    TerminationEnds,
    /// The end of an instance that never was has come already.
    UnknownIsGone,
    /// Every registration hook is done with an instance that runs, sooner or later, and stays done.
    HooksComeToAnEnd,
    /// The repair policies are a valid set.
    RepairPoliciesAreValid,
}

/// All rules, on the world as it is. Instances that it makes are terminated again.
pub async fn check<P: Provider>(provider: &P, world: &mut impl World<P::Class>) -> Vec<Broken> {
    let mut found = Findings::default();
    repair::check(&provider.repair_policies(), &mut found);
    let types = catalogue::check(provider, world, &mut found).await;
    launch::check(provider, world, &types, &mut found).await;
    terminate::check(provider, world, &mut found).await;
    found.0
}

#[derive(Default)]
struct Findings(Vec<Broken>);

impl Findings {
    fn broken(&mut self, rule: Rule, detail: impl Into<String>) {
        self.0.push(Broken { rule, detail: detail.into() });
    }

    fn expect(&mut self, rule: Rule, holds: bool, detail: impl FnOnce() -> String) {
        if !holds {
            self.broken(rule, detail());
        }
    }
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.rule, self.detail)
    }
}
