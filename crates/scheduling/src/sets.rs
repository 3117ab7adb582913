//! Requirement sets as small numbers.
//!
//! What a claim, a term of a pod or a class of hosts asks of labels is kept once, and narrowing one by another is done
//! once: pods alike find the answer in a table. The algebra itself stays where it is, in `kerf-model`.

use std::collections::BTreeMap;
use std::sync::Arc;

use kerf_model::label::LabelRules;
use kerf_model::requirement::{Requirement, Requirements, UndefinedKeys};

/// A requirement set of one [`Sets`] or of the one below it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SetId(u32);

/// All sets of one solve. It stands on those of the cluster, which are shared and do not change.
pub(crate) struct Sets<'b> {
    below: Option<&'b Sets<'b>>,
    from: usize,
    sets: Vec<Arc<Requirements>>,
    ids: BTreeMap<Arc<Requirements>, SetId>,
    /// By set: what it becomes when it is narrowed by another. Claims are narrowed by few sets.
    narrowed: Vec<Vec<(SetId, Option<SetId>)>>,
    /// By set, label and value: what it becomes when it is committed to the value.
    committed: Vec<Vec<(u32, u32, SetId)>>,
}

impl SetId {
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

impl<'b> Sets<'b> {
    pub(crate) fn new() -> Self {
        Self {
            below: None,
            from: 0,
            sets: Vec::new(),
            ids: BTreeMap::new(),
            narrowed: Vec::new(),
            committed: Vec::new(),
        }
    }

    pub(crate) fn above(below: &'b Sets<'b>) -> Self {
        let from = below.sets.len();
        Self {
            below: Some(below),
            from,
            narrowed: vec![Vec::new(); from],
            committed: vec![Vec::new(); from],
            ..Self::new()
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.from + self.sets.len()
    }

    pub(crate) fn get(&self, id: SetId) -> &Arc<Requirements> {
        match (id.index().checked_sub(self.from), self.below) {
            (None, Some(below)) => below.get(id),
            (Some(at), _) => &self.sets[at],
            (None, None) => &self.sets[id.index()],
        }
    }

    /// O(log n) comparisons of sets.
    pub(crate) fn intern(&mut self, set: Requirements) -> SetId {
        let known = self.below.and_then(|below| below.ids.get(&set)).or_else(|| self.ids.get(&set));
        if let Some(id) = known {
            return *id;
        }
        let id = SetId(u32::try_from(self.len()).unwrap_or(u32::MAX));
        let set = Arc::new(set);
        self.sets.push(Arc::clone(&set));
        self.ids.insert(set, id);
        self.narrowed.push(Vec::new());
        self.committed.push(Vec::new());
        id
    }

    /// What a node to be launched must be that has to meet both; `None` if nothing can. O(1) once it is known.
    pub(crate) fn narrow(&mut self, set: SetId, by: SetId, rules: &LabelRules) -> Option<SetId> {
        if let Some((_, known)) = self.narrowed[set.index()].iter().find(|(asked, _)| *asked == by) {
            return *known;
        }
        let (own, other) = (self.get(set), self.get(by));
        let both = own.compatible(other, UndefinedKeys::OpenIfWellKnown(rules)).is_ok().then(|| {
            let mut both = Requirements::clone(own);
            both.merge(other);
            both
        });
        let id = both.map(|both| self.intern(both));
        self.narrowed[set.index()].push((by, id));
        id
    }

    /// The set with one label pinned to a value, of which it allows several. `key` and `value` are any numbers that
    /// stand for `requirement`.
    pub(crate) fn commit(&mut self, set: SetId, (key, value): (u32, u32), requirement: &Requirement) -> SetId {
        let known = self.committed[set.index()].iter().find(|(k, v, _)| (*k, *v) == (key, value));
        if let Some((_, _, known)) = known {
            return *known;
        }
        let mut pinned = Requirements::clone(self.get(set));
        pinned.narrow(requirement.clone());
        let id = self.intern(pinned);
        self.committed[set.index()].push((key, value, id));
        id
    }
}
