//! Nodes that somebody asked for.

use jiff::SignedDuration;
use kerf_disruption::Policy;
use kerf_model::duration::GoDuration;
use kerf_model::label::annotation;

use super::super::choice::Choice;
use crate::checkers::Broken;
use crate::store::Object;

pub(super) fn check(choice: &Choice<'_>) -> Option<Broken> {
    let node = choice.node.as_ref()?;
    let is_true = |key: &str| node.text(&["metadata", "annotations", key]) == Some("true");
    let binding = match choice.reason {
        "Unhealthy" => [annotation::DO_NOT_REPAIR].into_iter().find(|key| is_true(key)),
        reason => {
            let saves = matches!(reason, "Empty" | "Underutilized");
            let always = [annotation::DO_NOT_DISRUPT, "karpenter.sh/do-not-deprovision"];
            let keys = always.into_iter().chain(saves.then_some("karpenter.sh/do-not-consolidate"));
            keys.into_iter().find(|key| is_true(key)).or_else(|| {
                let is_young = is_for_a_while(node, choice) && choice.settings.disruption.policy == Policy::Best;
                is_young.then_some(annotation::DO_NOT_DISRUPT)
            })
        }
    };
    let annotation = binding?.to_owned();
    Some(Broken::ProtectedNodeChosen { claim: choice.claim_name(), annotation })
}

/// A duration counts from the node's creation.
fn is_for_a_while(node: &Object, choice: &Choice<'_>) -> bool {
    let text = node.text(&["metadata", "annotations", annotation::DO_NOT_DISRUPT]);
    let duration = text.and_then(|text| text.parse::<GoDuration>().ok());
    let end = node.created().zip(duration).map(|(created, duration)| created + SignedDuration::from(duration));
    end.is_some_and(|end| choice.chosen_at < end)
}
