//! Which of many items (instance types, offerings) meet a limit on a label: one set of bits for every value.

use std::collections::BTreeMap;
use std::sync::Arc;

use kerf_model::requirement::{Operator, Requirement, Requirements};

use crate::bits::Bits;

/// Items by their labels.
#[derive(Debug, Default)]
pub(crate) struct Rows {
    len: usize,
    keys: BTreeMap<Arc<str>, KeyRows>,
}

/// Items by one label.
#[derive(Debug)]
pub(crate) struct KeyRows {
    /// Items that list the value among theirs.
    values: BTreeMap<Arc<str>, Bits>,
    /// Items that say nothing about the label.
    undefined: Bits,
    /// Items that do not list values: compared one by one.
    odd: Vec<(usize, Requirement)>,
}

impl Rows {
    pub(crate) fn of<'r>(items: impl ExactSizeIterator<Item = &'r Requirements>) -> Self {
        let mut rows = Self { len: items.len(), keys: BTreeMap::new() };
        let len = rows.len;
        for (at, item) in items.enumerate() {
            for requirement in item.iter() {
                let new = || KeyRows { values: BTreeMap::new(), undefined: Bits::all(len), odd: Vec::new() };
                // Most items have the keys of the first one.
                let row = match rows.keys.get_mut(requirement.key()) {
                    Some(row) => row,
                    None => rows.keys.entry(Arc::clone(requirement.key())).or_insert_with(new),
                };
                row.undefined.remove(at);
                if requirement.operator() != Operator::In {
                    row.odd.push((at, requirement.clone()));
                    continue;
                }
                for value in requirement.values() {
                    match row.values.get_mut(value) {
                        Some(bits) => bits.insert(at),
                        None => drop(row.values.insert(Arc::clone(value), Bits::of(len, [at]))),
                    }
                }
            }
        }
        rows
    }

    pub(crate) fn key(&self, key: &str) -> Option<&KeyRows> {
        self.keys.get(key)
    }

    /// The items that can meet all of the requirements that concern them; `open` says what becomes of items whose label
    /// is not among the requirements. O(keys × values asked × words).
    pub(crate) fn meeting(&self, asked: &Requirements, open: impl Fn(&str) -> bool) -> Bits {
        let mut all = Bits::all(self.len);
        for (key, row) in &self.keys {
            match asked.get(key) {
                Some(asked) => all.keep(&row.meeting(asked)),
                None if open(key) => {}
                None => all.keep(&row.that_may_lack_it()),
            }
        }
        all
    }
}

impl KeyRows {
    pub(crate) fn values(&self) -> impl Iterator<Item = &Arc<str>> {
        self.values.keys()
    }

    fn meeting(&self, asked: &Requirement) -> Bits {
        let mut found = self.undefined.clone();
        if asked.operator() == Operator::In && asked.values().len() < self.values.len() {
            asked.values().iter().filter_map(|value| self.values.get(value)).for_each(|row| found.add_all(row));
        } else {
            self.values.iter().filter(|(value, _)| asked.has(value)).for_each(|(_, row)| found.add_all(row));
        }
        self.odd.iter().filter(|(_, own)| own.can_meet(asked)).for_each(|(at, _)| found.insert(*at));
        found
    }

    fn that_may_lack_it(&self) -> Bits {
        let mut found = self.undefined.clone();
        self.odd.iter().filter(|(_, own)| own.allows_absence()).for_each(|(at, _)| found.insert(*at));
        found
    }

    /// How many different values the items among `some` list that are asked for.
    pub(crate) fn count_values(&self, some: &Bits, asked: &Requirement) -> usize {
        self.values.iter().filter(|(value, row)| row.meets(some) && asked.has(value)).count()
    }
}
