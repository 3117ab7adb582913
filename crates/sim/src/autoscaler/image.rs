//! The image that machines boot from. A node class names it by an annotation; editing that is an upgrade.

use std::sync::Arc;

use kerf_model::cluster::ObjectName;

use crate::store::{Kind, Store};

/// On a node class: the image of machines that are launched from now on, by the version of its kubelet.
pub const IMAGE: &str = "sim.kerf.dev/image";

/// What every image of a class that names none is.
pub(super) const PLAIN: &str = "v1.36.0";

/// The image that the class wants now, if it names one.
pub(super) fn wanted(store: &Store, class: &str) -> Option<Arc<str>> {
    let class = store.get(Kind::KwokNodeClass, &ObjectName::of_cluster(class)).ok()?;
    class.text(&["metadata", "annotations", IMAGE]).map(Arc::from)
}
