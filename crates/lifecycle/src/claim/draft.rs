//! Everything that one look wants written about a claim.

use std::sync::Arc;

use jiff::Timestamp;
use kerf_model::cluster::NodeClaim;
use kerf_model::effect::{ClaimPatch, ClaimStatusPatch, Effect, MetaPatch, Target};

use crate::conditions::ConditionEditor;

#[derive(Debug)]
pub(crate) struct ClaimDraft<'a> {
    pub claim: &'a NodeClaim,
    pub meta: MetaPatch,
    pub status: ClaimStatusPatch,
    pub conditions: ConditionEditor<'a>,
}

impl<'a> ClaimDraft<'a> {
    pub fn new(claim: &'a NodeClaim, now: Timestamp) -> Self {
        let conditions = ConditionEditor::of_claim(claim, now);
        Self { claim, meta: MetaPatch::default(), status: ClaimStatusPatch::default(), conditions }
    }

    pub fn set_label(&mut self, key: &str, value: &Arc<str>) {
        if self.claim.meta.label(key) != Some(value) {
            self.meta.labels.insert(Arc::from(key), Some(value.clone()));
        }
    }

    pub fn set_annotation(&mut self, key: &str, value: &Arc<str>) {
        if self.claim.meta.annotation(key) != Some(value) {
            self.meta.annotations.insert(Arc::from(key), Some(value.clone()));
        }
    }

    pub fn remove_annotation(&mut self, key: &str) {
        if self.claim.meta.annotations.contains_key(key) {
            self.meta.annotations.insert(Arc::from(key), None);
        }
    }

    pub fn add_finalizer(&mut self, name: &str) {
        let more = [Arc::from(name)];
        self.meta.finalizers = Some(self.claim.meta.finalizers.iter().cloned().chain(more).collect());
    }

    pub fn remove_finalizer(&mut self, name: &str) {
        let others = self.claim.meta.finalizers.iter().filter(|finalizer| &***finalizer != name);
        self.meta.finalizers = Some(others.cloned().collect());
    }

    /// `None` if the claim is already as wanted.
    pub fn finish(mut self) -> Option<Effect> {
        self.status.conditions = self.conditions.finish();
        if self.meta.is_empty() && self.status.is_empty() {
            return None;
        }
        self.meta.resource_version = Some(self.claim.meta.resource_version.clone());
        let patch = ClaimPatch { meta: self.meta, status: self.status };
        Some(Effect::PatchClaim(Target::from(&self.claim.meta), Box::new(patch)))
    }
}
