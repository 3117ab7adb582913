//! Overlays on what the cloud offers: the catalogue that everything else looks at, and what their status says.

use std::sync::Arc;

use jiff::Timestamp;
use kerf_lifecycle::Steps;
use kerf_lifecycle::conditions::ConditionEditor;
use kerf_model::cluster::{NodeOverlay, Texts, condition_kind as kind};
use kerf_model::effect::{Effect, OverlayPatch, Target};
use kerf_model::label::{LabelRules, annotation};
use kerf_model::snapshot::ClusterSnapshot;
use kerf_scheduling::{Catalogues, Overlaid, OverlayVerdict, TypeOption, overlaid};

#[derive(Debug, Default)]
pub struct Overlays {
    /// What the cloud says.
    heard: Catalogues,
    overlaid: Overlaid,
    is_stale: bool,
}

impl Overlays {
    pub fn hear(&mut self, types: Catalogues) {
        self.heard = types;
        self.is_stale = true;
    }

    /// An overlay or a pool has changed.
    pub fn touch(&mut self) {
        self.is_stale = true;
    }

    /// The catalogue as it counts from now on, if it may be another.
    pub fn refresh(&mut self, snapshot: &ClusterSnapshot, rules: &LabelRules) -> Option<Catalogues> {
        if !std::mem::take(&mut self.is_stale) {
            return None;
        }
        let overlays = snapshot.overlays().map(|overlay| &**overlay).filter(|overlay| !overlay.meta.is_deleting());
        let pools = snapshot.pools().filter_map(|pool| pool.spec.as_ref().ok());
        self.overlaid = overlaid(&self.heard, overlays, pools, rules);
        Some(self.overlaid.types.clone())
    }

    /// What the overlay's status should say. Nothing before it was looked at.
    pub fn steps(&self, overlay: &NodeOverlay, now: Timestamp) -> Steps {
        let Some(verdict) = self.overlaid.verdicts.get(&overlay.meta.name.name) else { return Steps::default() };
        let mut conditions = ConditionEditor::of_overlay(overlay, now);
        match verdict {
            OverlayVerdict::Applied => conditions.set_true(kind::VALIDATION_SUCCEEDED),
            OverlayVerdict::Conflict { with } => {
                let message = format!("conflict with another overlay: {with} has the same weight and changes the same");
                conditions.set_false(kind::VALIDATION_SUCCEEDED, "Conflict", &message);
            }
            OverlayVerdict::Invalid { problems } => {
                conditions.set_false(kind::VALIDATION_SUCCEEDED, "RuntimeValidation", problems);
            }
        }
        let patch = conditions.finish().map(|conditions| {
            let patch = OverlayPatch { resource_version: Arc::clone(&overlay.meta.resource_version), conditions };
            Effect::PatchOverlay(Target::from(&overlay.meta), Box::new(patch))
        });
        Steps { effects: patch.into_iter().collect(), ..Steps::default() }
    }

    /// What a claim says about its options.
    pub fn annotations(&self, pool: &str, options: &[Arc<TypeOption>]) -> Texts {
        let mut annotations = Texts::new();
        for option in options {
            let marks = self.overlaid.marks(pool, &option.instance_type);
            let applied = [
                (marks.price, annotation::PRICE_OVERLAY_APPLIED),
                (marks.capacity, annotation::CAPACITY_OVERLAY_APPLIED),
            ];
            for (_, key) in applied.into_iter().filter(|(is_applied, _)| *is_applied) {
                annotations.insert(Arc::from(key), Arc::from("true"));
            }
        }
        annotations
    }
}
