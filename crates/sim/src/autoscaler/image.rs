//! The image that machines boot from, and their tags. A node class names both by annotations; editing the first is an
//! upgrade, the second can be changed on a machine that runs.

use std::sync::Arc;

use kerf_cloud_aws::{CLASS_KIND, Ec2Class};
use kerf_model::cluster::ObjectName;

use crate::ec2;
use crate::store::{Kind, Store};

/// On a node class: the image of machines that are launched from now on, by the version of its kubelet.
pub const IMAGE: &str = "sim.kerf.dev/image";

/// On a node class: the tags of its machines, as `key=value` with commas between them.
pub const TAGS: &str = "sim.kerf.dev/tags";

/// As many as a machine can have.
pub(super) const MOST_TAGS: usize = 50;

/// What every image of a class that names none is.
pub(super) const PLAIN: &str = "v1.36.0";

/// What a class wants machines to be made of.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Wanted {
    /// By annotations, as far as it names it.
    Plain { image: Option<Arc<str>>, tags: Option<Arc<str>> },
    /// `None` without the class.
    Ec2(Option<Box<Ec2Class>>),
}

impl Wanted {
    pub fn by(store: &Store, kind: &str, class: &str) -> Self {
        match kind == CLASS_KIND.kind {
            true => Self::Ec2(ec2::class(store, class).map(Box::new)),
            false => Self::Plain { image: image(store, class), tags: tags(store, class) },
        }
    }

    /// Of a claim as it is stored. Without the claim nothing is wanted.
    pub fn of_claim(store: &Store, claim: &ObjectName) -> Self {
        let claim = store.get(Kind::NodeClaim, claim).ok();
        let text = |name| claim.and_then(|claim| claim.text(&["spec", "nodeClassRef", name])).unwrap_or_default();
        Self::by(store, text("kind"), text("name"))
    }
}

/// The image that the class wants now, if it names one.
fn image(store: &Store, class: &str) -> Option<Arc<str>> {
    let class = store.get(Kind::KwokNodeClass, &ObjectName::of_cluster(class)).ok()?;
    class.text(&["metadata", "annotations", IMAGE]).map(Arc::from)
}

/// The tags that the class wants now, if it names any.
fn tags(store: &Store, class: &str) -> Option<Arc<str>> {
    let class = store.get(Kind::KwokNodeClass, &ObjectName::of_cluster(class)).ok()?;
    class.text(&["metadata", "annotations", TAGS]).map(Arc::from)
}
