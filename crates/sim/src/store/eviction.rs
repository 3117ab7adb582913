//! `pods/eviction`: a deletion that asks the pod's disruption budget first.

use jiff::Timestamp;
use kerf_model::cluster::ObjectName;
use serde_json::{Value, json};

use super::object::{at, field, time_text};
use super::{ApiError, DeleteOptions, Deleted, EvictionRefusal, Kind, Object, Query, Store, query};

/// What the budget says about a pod.
enum Allowance {
    /// No budget has a say, or the pod does not count for it.
    Free,
    /// One of the disruptions that this budget allows is used up.
    Counted(Object),
}

impl Store {
    pub fn evict(&mut self, name: &ObjectName, options: &DeleteOptions, now: Timestamp) -> Result<Deleted, ApiError> {
        let pod = self.get(Kind::Pod, name)?.clone();
        // The uid is checked before the budget is touched: a refusal must not cost a disruption.
        if let Some(wanted) = options.uid.as_ref().filter(|wanted| **wanted != pod.uid()) {
            let cause = super::Conflict::DeleteUid { wanted: wanted.clone(), actual: pod.uid().to_owned() };
            return Err(ApiError::Conflict { kind: Kind::Pod, name: name.clone(), cause });
        }
        match self.ask_budgets(&pod)? {
            Allowance::Free => {}
            Allowance::Counted(budget) => self.spend(&budget, name, now),
        }
        self.delete(Kind::Pod, name, options, now)
    }

    fn ask_budgets(&self, pod: &Object) -> Result<Allowance, EvictionRefusal> {
        let phase = pod.text(&["status", "phase"]).unwrap_or_default();
        if pod.is_deleting() || matches!(phase, "Succeeded" | "Failed" | "Pending") {
            return Ok(Allowance::Free);
        }
        let budgets = self.list(Kind::PodDisruptionBudget, &Query::in_namespace(pod.name.namespace.clone()));
        let mut budgets = budgets.items.into_iter().filter(|budget| {
            query::selector(budget.at(&["spec", "selector"])).is_some_and(|selector| selector.matches(&pod.labels()))
        });
        let Some(budget) = budgets.next() else { return Ok(Allowance::Free) };
        if budgets.next().is_some() {
            return Err(EvictionRefusal::SeveralBudgets);
        }
        let status = |name: &str| budget.number(&["status", name]).unwrap_or(0);
        let (healthy, needed) = (status("currentHealthy"), status("desiredHealthy"));
        if !pod.is_condition_true("Ready") {
            // A pod that does not serve takes nothing away; the policy says whether that is enough.
            let policy = budget.text(&["spec", "unhealthyPodEvictionPolicy"]).unwrap_or("IfHealthyBudget");
            if policy == "AlwaysAllow" || (needed > 0 && healthy >= needed) {
                return Ok(Allowance::Free);
            }
        }
        let name = budget.name.name.to_string();
        if status("observedGeneration") < budget.generation() {
            return Err(EvictionRefusal::BudgetNotObserved { budget: name });
        }
        if status("disruptionsAllowed") <= 0 {
            return Err(EvictionRefusal::BudgetSpent { budget: name, needs: needed, has: healthy });
        }
        Ok(Allowance::Counted(budget))
    }

    /// Takes one disruption off, and notes the pod so that the budget's controller does not count it as healthy.
    fn spend(&mut self, budget: &Object, pod: &ObjectName, now: Timestamp) {
        let mut body = budget.body().clone();
        let allowed = at(&body, &["status", "disruptionsAllowed"]).and_then(Value::as_i64).unwrap_or(0);
        let status = field(&mut body, "status");
        *field(status, "disruptionsAllowed") = json!(allowed - 1);
        *field(field(status, "disruptedPods"), &pod.name) = json!(time_text(now));
        self.store(Kind::PodDisruptionBudget, budget.name.clone(), body);
    }
}
