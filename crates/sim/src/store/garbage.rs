//! Garbage collection by owner references, as kube-controller-manager does it.
//!
//! Incremental: every write notes what may have become garbage, [`Store::collect`] looks at those only.

use std::collections::BTreeMap;

use jiff::Timestamp;
use kerf_model::cluster::ObjectName;
use serde_json::{Value, json};

use super::delete::{FOREGROUND, ORPHAN};
use super::object::{field, fields};
use super::{DeleteOptions, Kind, Object, OwnerReference, Part, Propagation, Store};
use super::{Key, Keys};

#[derive(Debug, Default)]
pub(super) struct Garbage {
    /// By the uid of the owner, whether it exists or not.
    dependents: BTreeMap<String, Keys>,
    /// Objects whose owners are to be looked at.
    suspects: Keys,
    /// Owners that wait for their dependents.
    waiting: Keys,
}

/// What an owner reference points at.
#[derive(Clone, Copy, PartialEq, Eq)]
enum OwnerState {
    Solid,
    /// Gone, or another object of the same name.
    Dangling,
    /// Being deleted in the foreground: wants its dependents gone.
    WaitsForDependents,
    /// Of a kind that this world does not know: not ours to judge.
    Unknown,
}

impl Garbage {
    pub fn see(&mut self, before: Option<&Object>, object: &Object) {
        let key = (object.kind, object.name.clone());
        let owners_changed = before.is_none_or(|before| {
            before.at(&["metadata", "ownerReferences"]) != object.at(&["metadata", "ownerReferences"])
        });
        if owners_changed {
            before.into_iter().for_each(|before| self.forget_owners(before, &key));
            for owner in object.owners() {
                self.dependents.entry(owner.uid.to_owned()).or_default().insert(key.clone());
            }
            if object.owners().next().is_some() {
                self.suspects.insert(key.clone());
            }
        }
        if object.is_deleting() && object.finalizers().any(|finalizer| matches!(finalizer, FOREGROUND | ORPHAN)) {
            self.suspects.extend(self.dependents_of(object.uid()));
            self.waiting.insert(key);
        }
    }

    pub fn see_removal(&mut self, object: &Object) {
        let key = (object.kind, object.name.clone());
        self.forget_owners(object, &key);
        self.suspects.remove(&key);
        self.waiting.remove(&key);
        self.suspects.extend(self.dependents_of(object.uid()));
    }

    fn forget_owners(&mut self, object: &Object, key: &Key) {
        for owner in object.owners() {
            if let Some(keys) = self.dependents.get_mut(owner.uid) {
                keys.remove(key);
                if keys.is_empty() {
                    self.dependents.remove(owner.uid);
                }
            }
        }
    }

    pub fn dependents(&self, uid: &str) -> impl Iterator<Item = &Key> {
        self.dependents.get(uid).into_iter().flatten()
    }

    fn dependents_of(&self, uid: &str) -> Keys {
        self.dependents.get(uid).cloned().unwrap_or_default()
    }
}

impl Store {
    /// One pass of the garbage collector: deletes what has lost its owners, and lets owners go that waited for theirs.
    /// What it deletes may leave new garbage: call it until [`Store::version`] stays.
    pub fn collect(&mut self, now: Timestamp) {
        // Orphans first: a dependent that is to forget its owner must not be taken for garbage.
        for key in self.garbage.waiting.clone() {
            self.let_owner_go(&key);
        }
        for key in std::mem::take(&mut self.garbage.suspects) {
            self.judge(&key, now);
        }
    }

    fn let_owner_go(&mut self, key: &Key) {
        let Ok(owner) = self.get(key.0, &key.1).cloned() else { return };
        let (finalizer, may_go) = if owner.finalizers().any(|finalizer| finalizer == ORPHAN) {
            for dependent in self.garbage.dependents_of(owner.uid()) {
                self.forget_owner_uids(&dependent, &[owner.uid()]);
            }
            (ORPHAN, true)
        } else {
            let dependents = self.garbage.dependents_of(owner.uid());
            let blocked = dependents.iter().any(|(kind, name)| {
                let dependent = self.get(*kind, name);
                dependent.is_ok_and(|it| it.owners().any(|it| it.uid == owner.uid() && it.block_owner_deletion))
            });
            (FOREGROUND, !blocked)
        };
        if may_go {
            self.garbage.waiting.remove(key);
            let left: Vec<_> = owner.finalizers().filter(|known| *known != finalizer).collect();
            self.write_metadata(key, "finalizers", json!(left));
        }
    }

    fn judge(&mut self, key: &Key, now: Timestamp) {
        let Ok(object) = self.get(key.0, &key.1).cloned() else { return };
        let states: Vec<_> = object.owners().map(|owner| (owner.uid, self.owner_state(&object, owner))).collect();
        let is_leaving = object.is_deleting() && !object.finalizers().any(|finalizer| finalizer == FOREGROUND);
        if states.is_empty() || is_leaving || states.iter().any(|(_, state)| *state == OwnerState::Unknown) {
            return;
        }
        if states.iter().any(|(_, state)| *state == OwnerState::Solid) {
            let lost: Vec<_> =
                states.iter().filter(|(_, state)| *state != OwnerState::Solid).map(|(uid, _)| *uid).collect();
            if !lost.is_empty() {
                self.forget_owner_uids(key, &lost);
            }
            return;
        }
        let has_dependents = !self.garbage.dependents_of(object.uid()).is_empty();
        let is_waited_for = states.iter().any(|(_, state)| *state == OwnerState::WaitsForDependents);
        let propagation =
            if is_waited_for && has_dependents { Propagation::Foreground } else { Propagation::Background };
        let options = DeleteOptions { propagation, ..DeleteOptions::of_uid(object.uid()) };
        self.delete(key.0, &key.1, &options, now).ok();
    }

    fn owner_state(&self, dependent: &Object, owner: OwnerReference<'_>) -> OwnerState {
        let Some(kind) = Kind::find(owner.api_version, owner.kind) else { return OwnerState::Unknown };
        let namespace = if kind.is_namespaced() { dependent.name.namespace.clone() } else { "".into() };
        match self.get(kind, &ObjectName::new(namespace, owner.name)) {
            Ok(found) if found.uid() == owner.uid => {
                let waits = found.is_deleting() && found.finalizers().any(|finalizer| finalizer == FOREGROUND);
                if waits { OwnerState::WaitsForDependents } else { OwnerState::Solid }
            }
            Ok(_) | Err(_) => OwnerState::Dangling,
        }
    }

    fn forget_owner_uids(&mut self, key: &Key, uids: &[&str]) {
        let Ok(object) = self.get(key.0, &key.1) else { return };
        let left: Vec<Value> = object
            .list(&["metadata", "ownerReferences"])
            .iter()
            .filter(|owner| !uids.iter().any(|uid| owner["uid"] == *uid))
            .cloned()
            .collect();
        self.write_metadata(key, "ownerReferences", json!(left));
    }

    fn write_metadata(&mut self, key: &Key, name: &str, value: Value) {
        let Ok(object) = self.get(key.0, &key.1) else { return };
        let mut body = object.body().clone();
        let metadata = field(&mut body, "metadata");
        match value.as_array().is_some_and(Vec::is_empty) {
            true => {
                fields(metadata).remove(name);
            }
            false => *field(metadata, name) = value,
        }
        // The object was valid, and only loses something: a refusal can only mean that it was wrong before.
        self.update(key.0, &key.1, Part::Main, body).ok();
    }
}
