//! The image that machines boot from, and their tags. A node class names both by annotations; editing the first is an
//! upgrade, the second can be changed on a machine that runs.

use std::sync::Arc;

use kerf_model::cluster::ObjectName;

use crate::store::{Kind, Store};

/// On a node class: the image of machines that are launched from now on, by the version of its kubelet.
pub const IMAGE: &str = "sim.kerf.dev/image";

/// On a node class: the tags of its machines, as `key=value` with commas between them.
pub const TAGS: &str = "sim.kerf.dev/tags";

/// As many as a machine can have.
pub(super) const MOST_TAGS: usize = 50;

/// What every image of a class that names none is.
pub(super) const PLAIN: &str = "v1.36.0";

/// The image that the class wants now, if it names one.
pub(super) fn wanted(store: &Store, class: &str) -> Option<Arc<str>> {
    let class = store.get(Kind::KwokNodeClass, &ObjectName::of_cluster(class)).ok()?;
    class.text(&["metadata", "annotations", IMAGE]).map(Arc::from)
}

/// The tags that the class wants now, if it names any.
pub(super) fn wanted_tags(store: &Store, class: &str) -> Option<Arc<str>> {
    let class = store.get(Kind::KwokNodeClass, &ObjectName::of_cluster(class)).ok()?;
    class.text(&["metadata", "annotations", TAGS]).map(Arc::from)
}
