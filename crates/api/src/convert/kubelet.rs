//! Kubelet settings: in v1 they belong to the node class, so pools that share a class must share them.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::Slot;
use super::fields::Fields;
use super::node_class;
use super::note::{Finding, Note, Recorder};

/// The class that a converted pool names, and the settings it wants there.
pub(super) struct PoolKubelet {
    pub class: String,
    pub kubelet: Option<Map<String, Value>>,
    pub field: &'static str,
}

/// Takes the settings out of a pool's fields. Empty ones count as absent.
pub(super) fn take(old: &mut Fields, key: &str, recorder: &mut Recorder<'_>) -> Option<Map<String, Value>> {
    let mut kubelet = old.object(key, recorder)?;
    if kubelet.remove("containerRuntime").is_some() {
        recorder.add(format!("{}.containerRuntime", old.path_of(key)), Finding::ContainerRuntime);
    }
    Some(kubelet).filter(|kubelet| !kubelet.is_empty())
}

/// Gives every class the settings of its pools. A class whose pools differ is copied, once for each setting beyond the
/// first; the pools without settings keep the original, as pools outside of this input may use it too.
pub(super) fn place(slots: &mut [Slot], notes: &mut Vec<Note>) {
    let classes: BTreeSet<String> =
        slots.iter().filter_map(|slot| slot.pool_kubelet.as_ref()).map(|pool| pool.class.clone()).collect();
    for class in classes {
        place_for_class(slots, &class, notes);
    }
}

fn place_for_class(slots: &mut [Slot], class: &str, notes: &mut Vec<Note>) {
    let pools: Vec<usize> = (0..slots.len())
        .filter(|index| slots[*index].pool_kubelet.as_ref().is_some_and(|pool| pool.class == class))
        .collect();
    let kubelet_of =
        |slots: &[Slot], index: usize| slots[index].pool_kubelet.as_ref().and_then(|pool| pool.kubelet.clone());
    let owner = slots.iter().position(|slot| {
        slot.objects
            .iter()
            .flatten()
            .any(|object| object["kind"] == "EC2NodeClass" && object["metadata"]["name"] == class)
    });
    let Some(owner) = owner else {
        for index in pools {
            if let Some(kubelet) = kubelet_of(slots, index)
                && !already_has(slots, class, &kubelet)
            {
                let finding =
                    Finding::KubeletLeftOut { class: class.to_owned(), kubelet: Value::Object(kubelet).to_string() };
                record(slots, index, notes, finding);
            }
        }
        return;
    };

    let mut settings: Vec<Option<Map<String, Value>>> = Vec::new();
    for index in &pools {
        let kubelet = kubelet_of(slots, *index);
        if !settings.contains(&kubelet) {
            settings.push(kubelet);
        }
    }
    let original = settings.iter().position(Option::is_none).unwrap_or(0);
    let first = settings.remove(original);
    let template = find_class(slots, owner, class).cloned();
    if let (Some(kubelet), Some(object)) = (first, find_class(slots, owner, class)) {
        object["spec"]["kubelet"] = Value::Object(kubelet);
    }
    for kubelet in settings.into_iter().flatten() {
        let users: Vec<usize> =
            pools.iter().copied().filter(|index| kubelet_of(slots, *index).as_ref() == Some(&kubelet)).collect();
        let Some(first_user) = users.first() else { continue };
        let copy = unused_name(slots, &format!("{class}-{}", slots[*first_user].document.name()));
        if let Some(mut object) = template.clone() {
            object["metadata"]["name"] = Value::from(copy.as_str());
            object["spec"]["kubelet"] = Value::Object(kubelet);
            if let Some(objects) = &mut slots[owner].objects {
                objects.push(object);
            }
        }
        for index in users {
            let pool = slots[index].objects.iter_mut().flatten().find(|object| object["kind"] == "NodePool");
            if let Some(pool) = pool {
                pool["spec"]["template"]["spec"]["nodeClassRef"] = node_class::reference(&copy);
            }
            record(slots, index, notes, Finding::NodeClassCopied { class: class.to_owned(), copy: copy.clone() });
        }
    }
}

fn find_class<'a>(slots: &'a mut [Slot], owner: usize, class: &str) -> Option<&'a mut Value> {
    slots[owner]
        .objects
        .iter_mut()
        .flatten()
        .find(|object| object["kind"] == "EC2NodeClass" && object["metadata"]["name"] == class)
}

/// Whether the class is in the input, already v1, and already says the same.
fn already_has(slots: &[Slot], class: &str, kubelet: &Map<String, Value>) -> bool {
    slots.iter().any(|slot| {
        slot.document.api_version() == "karpenter.k8s.aws/v1"
            && slot.document.kind() == "EC2NodeClass"
            && slot.document.name() == class
            && slot.document.object.get("spec").and_then(|spec| spec.get("kubelet")?.as_object()) == Some(kubelet)
    })
}

/// A class name that nothing in the input or in the result so far uses.
pub(super) fn unused_name(slots: &[Slot], wanted: &str) -> String {
    let is_taken = |name: &str| {
        slots.iter().any(|slot| {
            (matches!(slot.document.kind(), "EC2NodeClass" | "AWSNodeTemplate") && slot.document.name() == name)
                || slot
                    .objects
                    .iter()
                    .flatten()
                    .any(|object| object["kind"] == "EC2NodeClass" && object["metadata"]["name"] == name)
        })
    };
    let mut name = wanted.to_owned();
    let mut number = 2;
    while is_taken(&name) {
        name = format!("{wanted}-{number}");
        number += 1;
    }
    name
}

fn record(slots: &[Slot], index: usize, notes: &mut Vec<Note>, finding: Finding) {
    let field = slots[index].pool_kubelet.as_ref().map_or("spec", |pool| pool.field);
    Recorder::new(notes, &slots[index].document).add(field, finding);
}
