//! Which pods and pools a solve is about.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;
use kerf_model::cluster::{
    ClaimStatus, DisruptionBudget, DisruptionBudgets, Node, NodeClaim, ObjectName, Pod, StoredPool,
};
use kerf_model::label::{self, LabelRules, LabelSyntaxError, Restricted, capacity_type};
use kerf_model::node_pool::PoolSize;
use kerf_model::requirement::{Expression, ExpressionError, Operator, Requirement};
use kerf_model::snapshot::ClusterSnapshot;
use thiserror::Error;

/// What is wrong with a pod itself, whatever the cluster has.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum InvalidPod {
    #[error("a node requirement of the pod means nothing: {0}")]
    Expression(ExpressionError),
    #[error("the pod may not ask for the label {key}: {reason}")]
    Restricted { key: Arc<str>, reason: Restricted },
    #[error("the pod asks for the label {key}: {error}")]
    Syntax { key: Arc<str>, error: LabelSyntaxError },
    #[error("the pod compares the label {key} with a negative number")]
    Negative { key: Arc<str> },
    #[error("the pod asks for none of the capacity types that there are")]
    UnknownCapacityType,
    #[error("the volume claim {claim} cannot be used: {problem}")]
    Volume { claim: ObjectName, problem: VolumeProblem },
}

#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum VolumeProblem {
    #[error("it does not exist")]
    NoClaim,
    #[error("it is being deleted")]
    ClaimDeleting,
    #[error("its volume is lost")]
    Lost,
    #[error("its volume {0} does not exist or is being deleted")]
    NoVolume(Arc<str>),
    #[error("it is not bound to its volume yet")]
    NotBound,
    #[error("it has no volume, and no storage class that exists to make one")]
    NoStorageClass,
    #[error("its storage class makes volumes before there is a node, and this one has none yet")]
    BindsImmediately,
    #[error("its volume's place means nothing: {0}")]
    Place(ExpressionError),
}

/// The pods that need a place: those that wait for one, and those on nodes that are leaving and may be moved.
///
/// `leaving` names nodes that are to go although the snapshot does not show it yet.
pub fn pods_to_place(cluster: &ClusterSnapshot, leaving: &BTreeSet<Arc<str>>, now: Timestamp) -> Vec<Arc<Pod>> {
    let pending = cluster.pods().filter(|pod| pod.is_provisionable()).cloned();
    let going = cluster.nodes().filter(|node| leaving.contains(node.name()) || is_leaving(cluster, node));
    let displaced = going.flat_map(|node| cluster.pods_on(node.name()));
    let budgets = DisruptionBudgets::of(cluster);
    let displaced = displaced.filter(|pod| pod.is_reschedulable() && may_be_moved(&budgets, pod, now)).cloned();
    pending.chain(displaced).collect()
}

/// Whether a node is on its way out, so that nothing may be placed on it.
pub fn is_leaving(cluster: &ClusterSnapshot, node: &Node) -> bool {
    node.meta.is_deleting() || cluster.claims_of(node).any(|claim| claim_is_leaving(claim))
}

pub(crate) fn claim_is_leaving(claim: &NodeClaim) -> bool {
    let ClaimStatus { conditions, .. } = &claim.status;
    claim.meta.is_deleting() || conditions.is_true("InstanceTerminating")
}

/// Whether nodes may be launched for a pool as pods need them.
pub fn is_usable(pool: &StoredPool) -> bool {
    let dynamic = pool.spec.as_ref().is_ok_and(|spec| spec.size == PoolSize::Dynamic && !spec.disabled);
    dynamic && !pool.meta.is_deleting() && pool.status.conditions.is_true("Ready")
}

/// Protected pods, and those whose budget never lets one go, stay until their owners let them go: a node made for them now
/// would wait for nothing. One whose budget is only spent for now will follow, and has its place planned with the others.
fn may_be_moved(budgets: &DisruptionBudgets<'_>, pod: &Pod, now: Timestamp) -> bool {
    !DisruptionBudget::block_for_ever(&budgets.selecting(pod), pod) && !pod.is_protected(now)
}

/// Whether the pod wants no node of any pool.
pub(crate) fn opts_out(pod: &Pod) -> bool {
    let mut expressions = pod.constraints.required_node_terms.iter().flatten();
    expressions.any(|asked| &*asked.key == label::NODEPOOL && asked.operator == Operator::DoesNotExist)
}

/// Checks what a pod asks of nodes (upstream's pod validation). Preferences are not checked: they can only be dropped.
///
/// # Errors
/// The first thing that can never be met.
pub fn check_pod(pod: &Pod, rules: &LabelRules) -> Result<(), InvalidPod> {
    for (key, value) in &pod.constraints.node_selector {
        check_expression(&Expression::new(key, Operator::In, [value]), rules)?;
    }
    pod.constraints.required_node_terms.iter().flatten().try_for_each(|expression| check_expression(expression, rules))
}

fn check_expression(expression: &Expression, rules: &LabelRules) -> Result<(), InvalidPod> {
    let Expression { key, operator, values, .. } = expression;
    let syntax = |error| InvalidPod::Syntax { key: Arc::clone(key), error };
    label::check_qualified_name(key).map_err(syntax)?;
    values.iter().try_for_each(|value| label::check_value(value)).map_err(syntax)?;
    let normal = rules.normalise(key);
    rules.check_unrestricted(normal).map_err(|reason| InvalidPod::Restricted { key: Arc::clone(key), reason })?;
    let requirement = Requirement::try_from(expression).map_err(InvalidPod::Expression)?;
    let compares = matches!(operator, Operator::Gt | Operator::Lt | Operator::Gte | Operator::Lte);
    if compares && values.iter().any(|value| value.starts_with('-')) {
        return Err(InvalidPod::Negative { key: Arc::clone(key) });
    }
    let known = [capacity_type::ON_DEMAND, capacity_type::SPOT, capacity_type::RESERVED];
    if normal == label::CAPACITY_TYPE
        && *operator == Operator::In
        && !known.into_iter().any(|kind| requirement.has(kind))
    {
        return Err(InvalidPod::UnknownCapacityType);
    }
    Ok(())
}
