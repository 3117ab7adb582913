//! Steps as text: one line per effect, note and wake.

use std::fmt::Write;

use kerf_lifecycle::{Note, Steps};
use kerf_model::cluster::{Condition, Conditions};
use kerf_model::effect::{ClaimPatch, Effect, EventKind, MetaPatch, NodePatch, PoolPatch};
use kerf_model::snapshot::ClusterSnapshot;

use crate::words::clock;

pub fn steps(steps: &Steps, snapshot: &ClusterSnapshot) -> String {
    let mut lines: Vec<String> = steps.effects.iter().map(|effect| line(effect, snapshot)).collect();
    lines.extend(steps.notes.iter().map(|note| match note {
        Note::Registered { claim } => format!("note {claim} registered"),
        Note::Initialized { claim } => format!("note {claim} initialized"),
        Note::GivenUp { claim, cause } => format!("note {claim} {}", cause.label()),
        Note::Postponed { claim, window } => format!("note {claim} postponed by {window}"),
    }));
    lines.extend(steps.wake.map(|wake| format!("wake {}", clock(wake))));
    lines.join("\n")
}

fn line(effect: &Effect, snapshot: &ClusterSnapshot) -> String {
    match effect {
        Effect::CreateClaim(claim) => {
            // Those of users: ours are the same on every claim.
            let labels = claim.labels.iter().filter(|(key, _)| !key.contains('/'));
            let labels: String = labels.map(|(key, value)| format!(" {key}={value}")).collect();
            format!("create claim {} of {}{labels}", claim.name, claim.owner.as_ref().unwrap().name)
        }
        Effect::PatchClaim(target, patch) => {
            format!(
                "patch claim {target}:{}",
                claim_patch(patch, &snapshot.claim(&target.name.name).unwrap().status.conditions)
            )
        }
        Effect::DeleteClaim(target) => format!("delete claim {target}"),
        Effect::PatchNode(target, patch) => format!("patch node {target}:{}", node_patch(patch)),
        Effect::DeleteNode(target) => format!("delete node {target}"),
        Effect::PatchOverlay(target, _) => format!("patch overlay {target}"),
        Effect::PatchWindow(target, patch) => {
            let status = &patch.status;
            let shown = |value: Option<String>| value.unwrap_or_else(|| "-".to_owned());
            let next = shown(status.next_transition.map(|at| at.strftime("%H:%M").to_string()));
            let nodes = shown(status.matched_nodes.map(|nodes| nodes.to_string()));
            let ready = status.conditions.get("Ready").unwrap();
            let active = status.active.unwrap();
            format!(
                "patch window {target}: active={active} next={next} nodes={nodes} Ready={}/{}",
                ready.status, ready.reason
            )
        }
        Effect::PatchBuffer(target, _) => format!("patch buffer {target}"),
        Effect::PatchPool(target, patch) => {
            format!(
                "patch pool {target}:{}",
                pool_patch(patch, &snapshot.pool(&target.name.name).unwrap().status.conditions)
            )
        }
        Effect::EvictPod(target, _) => format!("evict {}", target.name.name),
        Effect::PatchPod(target, patch) => format!("patch pod {}:{}", target.name.name, meta_patch(patch)),
        Effect::DeletePod(target, grace, _) => format!("delete pod {} grace={}", target.name.name, grace.as_secs()),
        Effect::Publish(event) => {
            let kind = match event.about.kind {
                EventKind::Pod => "pod",
                EventKind::Node => "node",
                EventKind::NodeClaim => "claim",
                EventKind::NodePool => "pool",
                EventKind::MaintenanceWindow => "window",
            };
            format!("event {} on {kind} {}", event.reason, event.about.target.name.name)
        }
        Effect::Launch { claim } => format!("launch {claim}"),
        Effect::Terminate { claim, provider_id } => format!("terminate {provider_id} of {claim}"),
        Effect::TerminateOrphan { provider_id } => format!("terminate orphan {provider_id}"),
        Effect::ListInstances => "list instances".to_owned(),
        Effect::FindInstance { provider_id } => format!("find {provider_id}"),
        Effect::CheckDrift { claim } => format!("check drift of {claim}"),
        Effect::RunHooks { claim } => format!("run the hooks of {claim}"),
        Effect::UpdateInstance { claim } => format!("update the instance of {claim}"),
        Effect::Reboot { claim, operation, .. } => format!("reboot {claim} as {operation}"),
    }
}

fn claim_patch(patch: &ClaimPatch, before: &Conditions) -> String {
    let mut text = meta_patch(&patch.meta);
    let status = &patch.status;
    assert!(status.conditions.is_none() || patch.meta.resource_version.is_some(), "a list is written blindly");
    for (name, value) in [("id", &status.provider_id), ("node", &status.node_name)] {
        if let Some(value) = value {
            write!(text, " {name}={value}").unwrap();
        }
    }
    if let Some(at) = status.last_pod_event {
        write!(text, " pod-event={}", clock(at)).unwrap();
    }
    text + &changed(status.conditions.as_ref(), before)
}

fn pool_patch(patch: &PoolPatch, before: &Conditions) -> String {
    let mut text = meta_patch(&patch.meta);
    assert!(patch.meta.resource_version.is_some(), "a list is written blindly");
    if let Some(resources) = &patch.resources {
        write!(text, " [{resources}]").unwrap();
    }
    if let Some(generation) = patch.class_observed_generation {
        write!(text, " class-generation={generation}").unwrap();
    }
    text + &changed(patch.conditions.as_ref(), before)
}

fn node_patch(patch: &NodePatch) -> String {
    let mut text = meta_patch(&patch.meta);
    if let Some(taints) = &patch.taints {
        assert!(patch.meta.resource_version.is_some(), "a list is written blindly");
        let taints: Vec<_> = taints.iter().map(ToString::to_string).collect();
        write!(text, " taints=[{}]", taints.join(" ")).unwrap();
    }
    text
}

fn meta_patch(patch: &MetaPatch) -> String {
    let mut text = String::new();
    for (prefix, entries) in [("", &patch.labels), ("@", &patch.annotations)] {
        for (key, value) in entries {
            write!(text, " {prefix}{key}={}", value.as_deref().unwrap_or("-")).unwrap();
        }
    }
    let lists = patch.finalizers.is_some() || patch.owners.is_some();
    assert!(!lists || patch.resource_version.is_some(), "a list is written blindly");
    if let Some(finalizers) = &patch.finalizers {
        write!(text, " finalizers=[{}]", finalizers.join(" ")).unwrap();
    }
    if let Some(owners) = &patch.owners {
        let owners: Vec<_> = owners.iter().map(|owner| &*owner.name).collect();
        write!(text, " owners=[{}]", owners.join(" ")).unwrap();
    }
    text
}

/// What is new, without conditions that only come into being, and without their sum: `Kind=Status/Reason`, or `Kind~` for
/// another message, or `Kind#2` for another generation, or `Kind-` for one taken back.
fn changed(after: Option<&Conditions>, before: &Conditions) -> String {
    let mut text = String::new();
    if let Some(after) = after {
        for gone in before.0.iter().filter(|known| after.get(&known.kind).is_none()) {
            write!(text, " {}-", gone.kind).unwrap();
        }
    }
    for condition in after.into_iter().flat_map(|conditions| &conditions.0) {
        let Condition { kind, status, reason, message, observed_generation, .. } = condition;
        let known = before.get(kind);
        if &**kind == "Ready" || (known.is_none() && &**reason == "AwaitingReconciliation") {
            continue;
        }
        match known {
            Some(known) if known == condition => {}
            Some(known) if (known.status, &known.reason) == (*status, reason) && known.message != *message => {
                write!(text, " {kind}~").unwrap();
            }
            Some(known) if (known.status, &known.reason) == (*status, reason) => {
                write!(text, " {kind}#{observed_generation}").unwrap();
            }
            Some(_) | None if reason == kind => write!(text, " {kind}={status}").unwrap(),
            Some(_) | None => write!(text, " {kind}={status}/{reason}").unwrap(),
        }
    }
    text
}
