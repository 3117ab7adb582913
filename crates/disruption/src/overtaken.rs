//! A second look at nodes that were chosen by a process that is gone.

use std::collections::BTreeMap;
use std::sync::Arc;

use kerf_model::budget::Allowance;
use kerf_model::maintenance::Action as WindowAction;

use crate::budgets::Budgets;
use crate::context::Context;
use crate::gates::{self, Class};
use crate::methods::emptiness;
use crate::subject::Subject;
use crate::{KeepReason, Method, View};

/// What holds back nodes that a command of this method was to remove, by claim: what stands before every method, windows,
/// and a budget that allows nothing. It is not asked whether they would be chosen again, nor whether the budget has room:
/// what has been started is finished, and they are counted in it.
pub fn overtaken<'c>(
    claims: impl IntoIterator<Item = &'c Arc<str>>,
    method: Method,
    view: &View<'_>,
) -> BTreeMap<Arc<str>, KeepReason> {
    let context = Context::new(view);
    let budgets = Budgets::of(view, &context.subjects);
    let objection = |claim: &Arc<str>| {
        let subject = context.subject(claim)?;
        let allowed = may_go(subject, method, &context).and_then(|()| is_budgeted(subject, method, &budgets));
        allowed.err().map(|reason| (Arc::clone(claim), reason))
    };
    claims.into_iter().filter_map(objection).collect()
}

fn may_go(subject: &Subject<'_>, method: Method, context: &Context<'_>) -> Result<(), KeepReason> {
    let (class, action) = match method {
        Method::Repair => (Class::Repair, WindowAction::Repair),
        Method::Drift | Method::StaticDrift => (Class::Eventual, WindowAction::Drift),
        Method::Rebalance => (Class::Graceful, WindowAction::Rebalance),
        Method::Emptiness => (Class::Graceful, WindowAction::EmptyConsolidation),
        Method::MultiNode | Method::SingleNode => (Class::Graceful, WindowAction::NonEmptyConsolidation),
    };
    gates::first(subject, class, &context.view)?;
    if method.is_consolidation() {
        emptiness::takes_part(subject)?;
    }
    if method == Method::Emptiness && !subject.is_empty() {
        return Err(KeepReason::NotSettled { until: None });
    }
    context.windows.hold(action, subject.labels()).map_or(Ok(()), Err)
}

fn is_budgeted(subject: &Subject<'_>, method: Method, budgets: &Budgets) -> Result<(), KeepReason> {
    let Some(pool) = &subject.pool_name else { return Err(KeepReason::NoPool) };
    // Repair does not ask for one that never became ready.
    let is_asked = method != Method::Repair || subject.is_initialized();
    match is_asked && budgets.allowance(pool, method.reason()) == Allowance::AtMost(0) {
        true => Err(budgets.spent(pool, method.reason(), 0)),
        false => Ok(()),
    }
}
