//! Which nodes stay, which go, and why.
//!
//! [`decide`] looks at the cluster once and gives a [`Round`]: exactly one [`Verdict`] for every claim that is ours, and
//! [`Proposal`]s for those that should go: sick nodes repaired, empty ones deleted, drifted ones replaced, underused
//! ones deleted or replaced by something cheaper. Whoever executes a proposal holds it for [`Proposal::hold`], asks
//! [`validate`] what the cluster says then, and does what the [`Approved`] proposal says: replacement first.
//!
//! Everything is an argument: what the cluster shows ([`View::snapshot`]), what an operator set ([`Settings`]), what the
//! executor remembers ([`Memory`]), the time. The same view gives the same round, to the byte.
//!
//! Must never know: Kubernetes objects, a cloud, a clock, randomness, IO, a logger; and how a proposal is executed.
//!
//! Start with [`decide`], which is the order of the methods; what stands before every method is in `gates.rs`.

mod budgets;
mod context;
mod decide;
mod deletion_cost;
mod events;
mod gates;
mod hash;
mod ledger;
mod limits;
mod memory;
mod methods;
mod overtaken;
mod parallel;
mod pdb;
mod plan;
mod prices;
mod proposal;
mod reason;
mod rollout;
mod round;
mod settings;
mod statics;
mod subject;
mod unmarked;
mod validate;
mod verdict;
mod view;
mod what_if;
mod windows;

pub use decide::decide;
pub use deletion_cost::{Cost, NodeCost, deletion_costs, is_of_replica_set};
pub use ledger::entry as ledger_entry;
pub use memory::{BackOff, Held, Memory, Running};
pub use methods::repair::{InvalidPolicies, Policies as RepairPolicies};
pub use overtaken::overtaken;
pub use proposal::{Action, Candidate, LandsOn, Method, Proposal, ProposalId, TerminateFirst};
pub use reason::{KeepReason, ReasonText};
pub use rollout::Rollout;
pub use round::{BudgetUse, Round, ScoredMove, Work};
pub use settings::{Floor, Gates, InvalidWaves, Ledger, Policy, RebalanceAction, Settings, Waves};
pub use subject::counts_in_budget;
pub use unmarked::Unmarked;
pub use validate::{Approved, Objection, ObjectionKind, Withdrawn, validate, validate_all};
pub use verdict::Verdict;
pub use view::View;

/// Why nodes are disrupted, as budgets and metrics know it.
pub use kerf_model::budget::DisruptionReason as Reason;
