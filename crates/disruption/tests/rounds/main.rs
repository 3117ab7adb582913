//! Cases of sheet 03 and sheet 08 §3, as text.

#![expect(clippy::unwrap_used, clippy::panic, reason = "all of this is tests, also what stands outside of #[test]")]

mod budgets;
mod candidates;
mod churn;
mod consolidation;
mod deletion_cost;
mod drift;
mod emptiness;
mod fixture;
mod memo;
mod property;
mod repair;
mod spot;
mod statics;
mod surroundings;
mod telling;
mod validation;
mod windows;
