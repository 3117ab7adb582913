//! Volumes that hold a node (sheet 04 §4.8). They are detached by Kubernetes; we only wait.

use std::collections::BTreeSet;
use std::sync::Arc;

use kerf_model::cluster::{Node, ObjectName};

use crate::drain;
use crate::view::View;

/// The attachments that must go before the instance may: all with a volume, except those of pods that stay to the end.
pub(crate) fn attached(node: &Node, view: View<'_>) -> Vec<Arc<str>> {
    let staying = view.snapshot.pods_on(node.name()).filter(|pod| !drain::is_drainable(pod, view.now));
    let kept: BTreeSet<_> = staying
        .flat_map(|pod| pod.volumes.iter().map(|volume| (pod.meta.name.namespace.clone(), volume.claim.clone())))
        .filter_map(|(namespace, claim)| view.snapshot.volume_claim(&ObjectName::new(namespace, claim))?.volume.clone())
        .collect();
    let blocking = view
        .snapshot
        .attachments_on(node.name())
        .filter(|attachment| attachment.volume.as_ref().is_some_and(|volume| !kept.contains(volume)));
    blocking.map(|attachment| attachment.name.name.clone()).collect()
}
