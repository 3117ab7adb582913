//! Where pods go: on nodes that exist, on nodes that are coming, on nodes to launch, or nowhere, and why.
//!
//! [`solve`] takes a snapshot of the cluster and a [`Problem`] (pods, pools with their instance types, options) and gives
//! a [`Schedule`]. It changes nothing and remembers nothing: provisioning, every what-if of a disruption, `plan` and
//! `why` ask the same function. The same input gives the same answer, to the byte.
//!
//! Must never know: Kubernetes objects, a cloud, a clock, randomness, IO, a logger.
//!
//! Start with [`solve`], which is the order of attempts. What a pod asks for is compiled once per shape, what a pool
//! can launch once per solve; both are met on an existing host or an open claim.
//!
//! Not done yet, and never guessed at: pods with resource claims are refused with
//! [`NotSupportedYet`](Overall::NotSupportedYet).

mod amounts;
mod bits;
mod buffer;
mod counts;
mod daemons;
mod default_spread;
mod departure;
mod existing;
mod intake;
mod known;
mod overlay;
mod place;
mod prepared;
mod problem;
mod refusal;
mod reservation;
mod rows;
mod schedule;
mod sets;
mod shape;
mod solve;
mod template;
mod topology;
mod volumes;

pub use buffer::{BufferProblem, ResolvedBuffer, count_by_buffer, is_virtual, resolve, virtual_pods_on_hosts};
pub use default_spread::{DefaultSpread, NO_DEFAULT_SPREAD};
pub use departure::Departure;
pub use intake::{InvalidPod, VolumeProblem, check_pod, is_leaving, is_usable, pods_to_place};
pub use overlay::{Catalogues, Marks, Overlaid, OverlayVerdict, overlaid};
pub use place::{Waiting, place};
pub use prepared::Prepared;
pub use problem::{Aim, MinValuesPolicy, Options, Policy, PreferencePolicy, Problem, Question, ReservedMode, Supply};
pub use refusal::{Feature, Overall, Refusal, TopologyRule, Unplaced};
pub use schedule::{Host, OnHost, OptionOffering, PlannedClaim, Schedule, TypeOption};
pub use solve::solve;
