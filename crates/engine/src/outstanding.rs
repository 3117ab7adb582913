//! Effects that were asked for and whose result is not seen yet.
//!
//! An object that is looked at again before its last patch has come back wants the same patch again, or one that differs in
//! a second of its time, on the same version of the object: sending it would only give a conflict. What is lost is asked
//! for again after a while.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use kerf_model::effect::{Effect, MetaPatch, Target, WriteError};
use kerf_model::time::{doubled, later};

use crate::agenda::Item;

/// Longer than a write and its way back through the watch take on a busy server.
const LOST_AFTER: SignedDuration = SignedDuration::from_secs(10);
/// A write that failed is tried again when the object changes, or after this.
const RETRY_AFTER: SignedDuration = SignedDuration::from_secs(1);

/// When a deletion that failed is tried again. One that is refused for what it is will hardly be let through a second later:
/// it is a right that is missing, or a webhook.
pub fn retry_after(error: &WriteError) -> SignedDuration {
    match error {
        WriteError::Invalid { .. } => LOST_AFTER,
        WriteError::Conflict
        | WriteError::NotFound
        | WriteError::BudgetRefused { .. }
        | WriteError::Unavailable { .. } => RETRY_AFTER,
    }
}

/// A patch that is refused for what it says is tried again after twice the time each time, up to this, until the object
/// changes: a policy may be lifted, but not by being asked every second.
const REFUSED_AT_MOST: SignedDuration = SignedDuration::from_secs(64);
/// So many patches are remembered before it is asked which of them are long done.
const MANY: usize = 256;

#[derive(Debug, Default)]
pub struct Outstanding {
    asked: BTreeMap<Item, Asked>,
    /// Deletions under way, by whomever they were asked for.
    deletions: BTreeMap<Object, Timestamp>,
    /// The last patch of an object that insists on a version, by whomever it was asked for.
    patches: BTreeMap<Object, Patch>,
    /// How many patches there may be before those that are done are forgotten.
    most_patches: usize,
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Object {
    Claim(Target),
    Node(Target),
    Pool(Target),
    Overlay(Target),
    Buffer(Target),
    Window(Target),
}

/// A write that others of the object wait for.
enum Write<'e> {
    Delete(Object),
    /// With the version that it insists on.
    Patch(Object, &'e Arc<str>),
}

#[derive(Debug)]
struct Patch {
    version: Arc<str>,
    repeat_at: Timestamp,
    /// What was last refused on this version for what it says.
    refused: Option<Refused>,
}

/// Other patches of the object go on: what is wrong with this one need not be wrong with them.
#[derive(Debug, Clone)]
struct Refused {
    effect: Effect,
    failures: u32,
    until: Timestamp,
}

#[derive(Debug)]
struct Asked {
    effects: Vec<Effect>,
    repeat_at: Timestamp,
}

impl Outstanding {
    /// Whether exactly this was asked for and may still come; then when to ask again.
    pub fn pending(&self, item: &Item, effects: &[Effect], now: Timestamp) -> Option<Timestamp> {
        let asked = self.asked.get(item)?;
        (asked.effects == effects && now < asked.repeat_at).then_some(asked.repeat_at)
    }

    /// When to look at the item again if nothing is heard of it: an effect may be lost without a word.
    pub fn asked(&mut self, item: Item, effects: Vec<Effect>, now: Timestamp) -> Option<Timestamp> {
        let repeat_at = later(now, LOST_AFTER);
        // What only tells something may be lost.
        let matters = effects.iter().any(|effect| !matches!(effect, Effect::Publish(_)));
        match effects.is_empty() {
            true => drop(self.asked.remove(&item)),
            false => drop(self.asked.insert(item, Asked { effects, repeat_at })),
        }
        matters.then_some(repeat_at)
    }

    /// Whether the effect is to be sent. A deletion is not while the same one is on its way: several objects may want one
    /// object gone, each for its reason. Nor is a second patch on one version: the first makes another version of it.
    pub fn is_new(&mut self, effect: &Effect, now: Timestamp) -> bool {
        match Write::of(effect) {
            None => true,
            Some(Write::Patch(object, version)) => self.is_first_patch(object, version, effect, now),
            Some(Write::Delete(object)) => self.is_first_deletion(object, now),
        }
    }

    fn is_first_deletion(&mut self, object: Object, now: Timestamp) -> bool {
        if self.deletions.get(&object).is_some_and(|repeat_at| now < *repeat_at) {
            return false;
        }
        self.deletions.retain(|_, repeat_at| now < *repeat_at);
        self.deletions.insert(object, later(now, LOST_AFTER));
        true
    }

    fn is_first_patch(&mut self, object: Object, version: &Arc<str>, effect: &Effect, now: Timestamp) -> bool {
        let last = self.patches.get(&object).filter(|last| last.version == *version);
        if last.is_some_and(|last| now < last.repeat_at || last.refuses(effect, now)) {
            return false;
        }
        let refused = last.and_then(|last| last.refused.clone());
        if self.patches.len() >= self.most_patches.max(MANY) {
            self.patches.retain(|_, patch| !patch.is_done(now));
            self.most_patches = self.patches.len() * 2;
        }
        self.patches.insert(object, Patch { version: Arc::clone(version), repeat_at: later(now, LOST_AFTER), refused });
        true
    }

    /// Claims whose deletion was asked for and may not be seen yet.
    pub fn deleted_claims(&self, now: Timestamp) -> impl Iterator<Item = Arc<str>> {
        let under_way = self.deletions.iter().filter(move |(_, repeat_at)| now < **repeat_at);
        under_way.filter_map(|(object, _)| match object {
            Object::Claim(target) => Some(target.name.name.clone()),
            Object::Node(_) | Object::Pool(_) | Object::Overlay(_) | Object::Buffer(_) | Object::Window(_) => None,
        })
    }

    /// A write did not happen: it need not be waited for. One on a version that is past is left until the object changes,
    /// which it has already: the same write again could only come too early. A server that is behind with its watches
    /// would have one per object and second to refuse. Nor is one that is refused for what it says sent every second.
    pub fn failed(&mut self, effect: &Effect, error: &WriteError, now: Timestamp) {
        if let Some(Write::Delete(object)) = Write::of(effect)
            && let Some(repeat_at) = self.deletions.get_mut(&object)
        {
            *repeat_at = later(now, retry_after(error));
        }
        if *error == WriteError::Conflict {
            return;
        }
        let soon = later(now, RETRY_AFTER);
        let mut retry_at = match error {
            WriteError::Invalid { .. } => later(now, LOST_AFTER),
            WriteError::Conflict
            | WriteError::NotFound
            | WriteError::BudgetRefused { .. }
            | WriteError::Unavailable { .. } => soon,
        };
        let object = patched(effect);
        if let Some(last) = object.as_ref().and_then(|object| self.patches.get_mut(object)) {
            last.repeat_at = last.repeat_at.min(soon);
            if let (WriteError::Invalid { .. }, Some(Write::Patch(_, version))) = (error, Write::of(effect))
                && last.version == *version
            {
                retry_at = last.refused(effect, now);
            }
        }
        for asked in self.asked.values_mut() {
            if asked.effects.contains(effect) {
                asked.repeat_at = asked.repeat_at.min(retry_at);
            } else if object.is_some() && asked.effects.iter().any(|other| patched(other) == object) {
                // Another patch of the object may have waited for this one.
                asked.repeat_at = asked.repeat_at.min(soon);
            }
        }
    }
}

impl Patch {
    fn refuses(&self, effect: &Effect, now: Timestamp) -> bool {
        self.refused.as_ref().is_some_and(|refused| now < refused.until && wants_the_same(&refused.effect, effect))
    }

    /// When to try it again.
    fn refused(&mut self, effect: &Effect, now: Timestamp) -> Timestamp {
        let before = self.refused.take().filter(|refused| wants_the_same(&refused.effect, effect));
        let failures = before.map_or(0, |refused| refused.failures).saturating_add(1);
        let until = later(now, doubled(failures, RETRY_AFTER, REFUSED_AT_MOST));
        self.refused = Some(Refused { effect: effect.clone(), failures, until });
        until
    }

    fn is_done(&self, now: Timestamp) -> bool {
        self.repeat_at <= now && self.refused.as_ref().is_none_or(|refused| refused.until <= now)
    }
}

/// Whether two patches of one object change the same of it. Times in them differ with every look.
fn wants_the_same(one: &Effect, other: &Effect) -> bool {
    let keys =
        |meta: &MetaPatch| -> Vec<Arc<str>> { meta.labels.keys().chain(meta.annotations.keys()).cloned().collect() };
    let meta = |meta: &MetaPatch| (keys(meta), meta.finalizers.is_some(), meta.owners.is_some());
    match (one, other) {
        (Effect::PatchClaim(_, one), Effect::PatchClaim(_, other)) => {
            (meta(&one.meta), one.status.is_empty()) == (meta(&other.meta), other.status.is_empty())
        }
        (Effect::PatchNode(_, one), Effect::PatchNode(_, other)) => {
            (meta(&one.meta), one.taints.is_some()) == (meta(&other.meta), other.taints.is_some())
        }
        (Effect::PatchPool(_, one), Effect::PatchPool(_, other)) => {
            (meta(&one.meta), one.conditions.is_some()) == (meta(&other.meta), other.conditions.is_some())
        }
        // Of the others only the status is written.
        (one, other) => std::mem::discriminant(one) == std::mem::discriminant(other),
    }
}

impl<'e> Write<'e> {
    fn of(effect: &'e Effect) -> Option<Self> {
        let patch = |object: Object| effect.insists_on().map(|version| Self::Patch(object, version));
        match effect {
            Effect::DeleteClaim(target) => Some(Self::Delete(Object::Claim(target.clone()))),
            Effect::DeleteNode(target) => Some(Self::Delete(Object::Node(target.clone()))),
            Effect::PatchClaim(target, _) => patch(Object::Claim(target.clone())),
            Effect::PatchNode(target, _) => patch(Object::Node(target.clone())),
            Effect::PatchPool(target, _) => patch(Object::Pool(target.clone())),
            Effect::PatchOverlay(target, _) => patch(Object::Overlay(target.clone())),
            Effect::PatchBuffer(target, _) => patch(Object::Buffer(target.clone())),
            Effect::PatchWindow(target, _) => patch(Object::Window(target.clone())),
            // Nobody else writes what we write to a pod, and nothing waits for it.
            Effect::PatchPod(..)
            | Effect::CreateClaim(_)
            | Effect::EvictPod(..)
            | Effect::DeletePod(..)
            | Effect::Publish(_)
            | Effect::Launch { .. }
            | Effect::Terminate { .. }
            | Effect::TerminateOrphan { .. }
            | Effect::ListInstances
            | Effect::FindInstance { .. }
            | Effect::CheckDrift { .. }
            | Effect::RunHooks { .. }
            | Effect::UpdateInstance { .. }
            | Effect::Reboot { .. } => None,
        }
    }
}

/// The object that a patch insists on a version of.
fn patched(effect: &Effect) -> Option<Object> {
    match Write::of(effect)? {
        Write::Patch(object, _) => Some(object),
        Write::Delete(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kerf_model::cluster::ObjectName;
    use kerf_model::effect::NodePatch;

    /// A claim that its node and the expiry both wanted gone was deleted twice within a tenth of a second.
    #[test]
    fn an_object_is_deleted_once_by_whomever_it_is_wanted_and_again_when_that_failed_or_was_lost() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let target = |uid: &str| Target { name: ObjectName::of_cluster("a"), uid: Arc::from(uid) };
        let mut outstanding = Outstanding::default();
        assert!(outstanding.is_new(&Effect::DeleteClaim(target("1")), at(0)));
        assert!(!outstanding.is_new(&Effect::DeleteClaim(target("1")), at(1)));
        assert!(outstanding.is_new(&Effect::DeleteClaim(target("2")), at(1)), "another claim of that name");
        assert!(outstanding.is_new(&Effect::DeleteNode(target("1")), at(1)));
        outstanding.failed(&Effect::DeleteClaim(target("1")), &WriteError::NotFound, at(2));
        assert!(!outstanding.is_new(&Effect::DeleteClaim(target("1")), at(2)), "whoever wants it asks again at once");
        assert!(outstanding.is_new(&Effect::DeleteClaim(target("1")), at(3)));
        assert!(outstanding.is_new(&Effect::DeleteClaim(target("1")), at(13)));
        let forbidden = WriteError::Invalid { message: "forbidden".to_owned() };
        outstanding.failed(&Effect::DeleteClaim(target("1")), &forbidden, at(13));
        assert!(!outstanding.is_new(&Effect::DeleteClaim(target("1")), at(22)));
        assert!(outstanding.is_new(&Effect::DeleteClaim(target("1")), at(23)));
    }

    /// Found with five hundred nodes that came at once: every second patch of a claim's status differed from the one under
    /// way in a second of its time, and was refused.
    #[test]
    fn a_second_patch_on_one_version_waits_until_the_object_changes_or_the_first_has_failed() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let patch = |version: &str, label: &str| {
            let target = Target { name: ObjectName::of_cluster("a"), uid: Arc::from("1") };
            let labels = BTreeMap::from([(Arc::from(label), None)]);
            let meta = MetaPatch { resource_version: Some(Arc::from(version)), labels, ..MetaPatch::default() };
            Effect::PatchNode(target, Box::new(NodePatch { meta, ..NodePatch::default() }))
        };
        let mut outstanding = Outstanding::default();
        assert!(outstanding.is_new(&patch("7", "x"), at(0)));
        assert!(!outstanding.is_new(&patch("7", "y"), at(1)));
        assert!(outstanding.is_new(&patch("8", "y"), at(1)), "it has changed");
        outstanding.asked(Item::Garbage, vec![patch("8", "z")], at(2));
        outstanding.failed(&patch("8", "y"), &WriteError::Conflict, at(3));
        assert!(!outstanding.is_new(&patch("8", "z"), at(4)), "it has changed, and that is not seen yet");
        outstanding.failed(&patch("8", "y"), &WriteError::NotFound, at(4));
        assert_eq!(outstanding.pending(&Item::Garbage, &[patch("8", "z")], at(4)), Some(at(5)));
        assert!(outstanding.is_new(&patch("8", "z"), at(5)));
        assert!(!outstanding.is_new(&patch("8", "z"), at(14)));
        assert!(outstanding.is_new(&patch("8", "z"), at(15)), "it may be lost");
    }

    /// A patch that an admission policy refuses was sent again every second for as long as the object was there.
    #[test]
    fn a_patch_that_is_refused_for_what_it_says_is_tried_less_and_less_often_until_the_object_changes() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let patch = |version: &str, label: &str, value: &str| {
            let target = Target { name: ObjectName::of_cluster("a"), uid: Arc::from("1") };
            let labels = BTreeMap::from([(Arc::from(label), Some(Arc::from(value)))]);
            let meta = MetaPatch { resource_version: Some(Arc::from(version)), labels, ..MetaPatch::default() };
            Effect::PatchNode(target, Box::new(NodePatch { meta, ..NodePatch::default() }))
        };
        let refused = WriteError::Invalid { message: "denied by a policy".to_owned() };
        let mut outstanding = Outstanding::default();
        let mut sent = Vec::new();
        for second in 0..300 {
            // The time of the look stands in it.
            let effect = patch("7", "x", &second.to_string());
            if outstanding.is_new(&effect, at(second)) {
                sent.push(second);
                outstanding.failed(&effect, &refused, at(second));
            }
        }
        assert_eq!(sent, [0, 1, 3, 7, 15, 31, 63, 127, 191, 255]);
        assert!(outstanding.is_new(&patch("7", "y", ""), at(300)), "something else may be taken");
        outstanding.failed(&patch("7", "y", ""), &WriteError::NotFound, at(300));
        let effect = patch("8", "x", "");
        assert!(outstanding.is_new(&effect, at(301)), "it has changed");
        outstanding.failed(&effect, &refused, at(301));
        assert!(outstanding.is_new(&effect, at(302)), "and so it begins anew");
    }

    #[test]
    fn patches_that_are_done_are_forgotten() {
        let mut outstanding = Outstanding::default();
        for second in 0..10_000 {
            let target = Target { name: ObjectName::of_cluster(format!("n{second}")), uid: Arc::from("1") };
            let meta = MetaPatch { resource_version: Some(Arc::from("1")), ..MetaPatch::default() };
            let patch = Effect::PatchNode(target, Box::new(NodePatch { meta, ..NodePatch::default() }));
            assert!(outstanding.is_new(&patch, Timestamp::from_second(second).unwrap()));
        }
        assert!(outstanding.patches.len() <= MANY, "{}", outstanding.patches.len());
    }

    /// A claim whose first patch was dropped on its way was never looked at again.
    #[test]
    fn what_was_asked_for_is_looked_at_again_though_nothing_is_heard_of_it() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let mut outstanding = Outstanding::default();
        assert_eq!(outstanding.asked(Item::Garbage, vec![Effect::ListInstances], at(0)), Some(at(10)));
        assert_eq!(outstanding.pending(&Item::Garbage, &[Effect::ListInstances], at(9)), Some(at(10)));
        assert_eq!(outstanding.pending(&Item::Garbage, &[Effect::ListInstances], at(10)), None);
        assert_eq!(outstanding.asked(Item::Garbage, vec![], at(10)), None);
    }

    #[test]
    fn a_write_on_a_version_that_is_past_was_sent_again_every_second_until_the_watch_came() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let asks = vec![Effect::ListInstances];
        let retried = |error: &WriteError| {
            let mut outstanding = Outstanding::default();
            outstanding.asked(Item::Garbage, asks.clone(), at(0));
            outstanding.failed(&asks[0], error, at(1));
            outstanding.pending(&Item::Garbage, &asks, at(1))
        };
        assert_eq!(retried(&WriteError::Conflict), Some(at(10)));
        assert_eq!(retried(&WriteError::NotFound), Some(at(2)));
    }
}
