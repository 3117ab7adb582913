//! Instances: that they are there, and that they go.

use std::sync::Arc;

use kerf_model::cloud::{Launched, TerminateAnswer};
use kerf_model::cluster::NodeClaim;

use super::{Findings, PATIENCE, Rule, World, sample};
use crate::provider::{Order, Provider};

pub(super) async fn check<P: Provider>(provider: &P, world: &mut impl World<P::Class>, found: &mut Findings) {
    let class = world.class().as_ref().class.clone();
    let claim = sample::claim("contract-terminate", &class, Default::default());
    let Ok(launched) = provider.launch(Order { claim: &claim, class: Some(world.class()) }).await else {
        return; // Reported with the launches.
    };
    start(provider, world, &claim, &launched, found).await;
    end(provider, world, &launched.provider_id, found).await;

    let id = &launched.provider_id;
    let rule = Rule::TerminationEnds;
    match provider.find(id).await {
        Ok(exists) => found.expect(rule, !exists, || format!("{id} is gone and found")),
        Err(error) => found.broken(rule, error.to_string()),
    }
    let is_listed = running(provider, found).await.contains(id);
    found.expect(rule, !is_listed, || format!("{id} is gone and listed"));
    let once_more = provider.terminate(id).await;
    found.expect(rule, once_more == TerminateAnswer::Gone, || format!("{id} was gone, then {once_more:?}"));

    // Shaped like an id of this cloud, but of no instance.
    let unknown = format!("{id}0");
    let answer = provider.terminate(&unknown).await;
    found.expect(Rule::UnknownIsGone, answer == TerminateAnswer::Gone, || format!("{unknown}: {answer:?}"));
    let exists = provider.find(&unknown).await;
    found.expect(Rule::UnknownIsGone, matches!(exists, Ok(false)), || format!("{unknown} is found: {exists:?}"));
}

/// Writes the launch down and waits until the instance is listed.
pub(super) async fn start<P: Provider>(
    provider: &P,
    world: &mut impl World<P::Class>,
    claim: &NodeClaim,
    launched: &Launched,
    found: &mut Findings,
) {
    let claim = sample::with_launch(claim.clone(), launched, world.now());
    for _ in 0..PATIENCE {
        let order = Order { claim: &claim, class: Some(world.class()) };
        if let Err(error) = provider.tend(order, world.now()).await {
            found.broken(Rule::InstancesAreListed, error.to_string());
        }
        if running(provider, found).await.contains(&launched.provider_id) {
            let exists = provider.find(&launched.provider_id).await;
            return found.expect(Rule::InstancesAreListed, matches!(exists, Ok(true)), || {
                format!("{} is listed and not found: {exists:?}", launched.provider_id)
            });
        }
        world.wait().await;
    }
    found.broken(Rule::InstancesAreListed, format!("{} is never listed", launched.provider_id));
}

pub(super) async fn end<P: Provider>(
    provider: &P,
    world: &mut impl World<P::Class>,
    provider_id: &str,
    found: &mut Findings,
) {
    for _ in 0..PATIENCE {
        match provider.terminate(provider_id).await {
            TerminateAnswer::Gone => return,
            TerminateAnswer::Accepted | TerminateAnswer::Failed { .. } => world.wait().await,
        }
    }
    found.broken(Rule::TerminationEnds, format!("{provider_id} is never gone"));
}

/// The ids of all instances that are not on their way out.
pub(super) async fn running<P: Provider>(provider: &P, found: &mut Findings) -> Vec<Arc<str>> {
    match provider.list().await {
        Ok(instances) => {
            let running = instances.into_iter().filter(|instance| !instance.is_terminating);
            running.map(|instance| instance.provider_id).collect()
        }
        Err(error) => {
            found.broken(Rule::InstancesAreListed, error.to_string());
            Vec::new()
        }
    }
}
