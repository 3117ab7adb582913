//! Capacity buffers in the loop: their pods go into every round after all real ones, and their status says whether the
//! room is there.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use kerf_lifecycle::Steps;
use kerf_lifecycle::conditions::ConditionEditor;
use kerf_model::cluster::{
    BufferShape, BufferStatus, CapacityBuffer, ObjectName, Pod, WorkloadKind, condition_kind as kind,
};
use kerf_model::effect::{BufferPatch, Effect, Target};
use kerf_model::snapshot::ClusterSnapshot;
use kerf_scheduling::{BufferProblem, ResolvedBuffer, Schedule, count_by_buffer, resolve};

/// Buffers are looked at again this often, though nothing was heard of them.
pub const LOOK_AGAIN: SignedDuration = SignedDuration::from_secs(30);

#[derive(Debug, Default)]
pub struct Buffers {
    resolved: BTreeMap<ObjectName, Result<ResolvedBuffer, BufferProblem>>,
    /// What the last round found, for buffers that were in it.
    rooms: BTreeMap<ObjectName, Room>,
}

/// Whether a buffer's room exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Room {
    /// On hosts that exist.
    Exists,
    /// Something has to be launched for it, or nothing can be.
    Missing,
}

impl Buffers {
    /// Makes the pods of every buffer anew. Whether they are others now.
    #[must_use]
    pub fn resolve(&mut self, snapshot: &ClusterSnapshot) -> bool {
        let buffers = snapshot.buffers().filter(|buffer| !buffer.meta.is_deleting());
        let resolved = buffers.map(|buffer| (buffer.meta.name.clone(), resolve(buffer, snapshot))).collect();
        let before = std::mem::replace(&mut self.resolved, resolved);
        self.rooms.retain(|buffer, _| self.resolved.contains_key(buffer));
        self.resolved != before
    }

    pub fn is_empty(&self) -> bool {
        self.resolved.is_empty()
    }

    /// All virtual pods.
    pub fn pods(&self) -> impl Iterator<Item = &Arc<Pod>> {
        self.resolved.values().filter_map(|buffer| buffer.as_ref().ok()).flat_map(|buffer| &buffer.pods)
    }

    /// Takes in where a round put them. Pods that were in no round wait for a node that is coming.
    pub fn observe(&mut self, schedule: &Schedule) {
        let mut placed: BTreeMap<ObjectName, u32> = BTreeMap::new();
        for on in &schedule.on_existing {
            for (buffer, count) in count_by_buffer(&on.pods) {
                *placed.entry(buffer).or_default() += count;
            }
        }
        for (name, buffer) in &self.resolved {
            let Ok(buffer) = buffer else { continue };
            let is_there = placed.get(name).copied().unwrap_or_default() == buffer.replicas;
            self.rooms.insert(name.clone(), if is_there { Room::Exists } else { Room::Missing });
        }
    }

    /// Whether a buffer takes its shape from this workload.
    pub fn refers_to(snapshot: &ClusterSnapshot, workload: WorkloadKind, name: &ObjectName) -> bool {
        let is_of = |shape: &BufferShape| match shape {
            BufferShape::Workload { kind, name: own } => *kind == workload && *own == name.name,
            BufferShape::Template(_) | BufferShape::Unsupported { .. } | BufferShape::Missing => false,
        };
        snapshot.buffers().any(|buffer| buffer.meta.name.namespace == name.namespace && is_of(&buffer.spec.shape))
    }

    /// What the buffer's status should say.
    pub fn steps(&self, buffer: &CapacityBuffer, now: Timestamp) -> Steps {
        let Some(resolved) = self.resolved.get(&buffer.meta.name) else { return Steps::default() };
        let mut conditions = ConditionEditor::of_buffer(buffer, now);
        let mut status = BufferStatus { strategy: Some(Arc::clone(&buffer.spec.strategy)), ..BufferStatus::default() };
        match resolved {
            Err(problem) => {
                conditions.set_false(kind::READY_FOR_PROVISIONING, problem.id(), &problem.to_string());
                let message = "the buffer is not ready for provisioning";
                conditions.set_false(kind::PROVISIONING, "NotReadyForProvisioning", message);
            }
            Ok(resolved) => {
                status.replicas = Some(resolved.replicas);
                if let Some((template, generation)) = &resolved.template {
                    status.template = Some(Arc::clone(template));
                    status.template_generation = Some(*generation);
                }
                conditions.set_true_because(kind::READY_FOR_PROVISIONING, "Resolved", "");
                match (resolved.replicas, self.rooms.get(&buffer.meta.name)) {
                    (0, _) => conditions.set_false(kind::PROVISIONING, "BufferEmpty", "the buffer asks for no pods"),
                    (_, Some(Room::Exists)) => {
                        conditions.set_true_because(kind::PROVISIONING, "FitsExistingCapacity", "");
                    }
                    (_, Some(Room::Missing)) => {
                        let message = "some of its pods need a node that is not there yet";
                        conditions.set_false(kind::PROVISIONING, "RequiresNewCapacity", message);
                    }
                    // Not looked at yet: what it says stays.
                    (_, None) => {}
                }
            }
        }
        status.conditions = conditions.finish().unwrap_or_else(|| buffer.status.conditions.clone());
        if status == buffer.status {
            return Steps::default();
        }
        let patch = BufferPatch { resource_version: Arc::clone(&buffer.meta.resource_version), status };
        let effect = Effect::PatchBuffer(Target::from(&buffer.meta), Box::new(patch));
        Steps { effects: vec![effect], ..Steps::default() }
    }
}
