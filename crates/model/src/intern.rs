//! Names as small numbers: dense ids that index arrays and bitset rows.

use std::collections::BTreeMap;
use std::sync::Arc;

/// An id that counts up from zero. Make one with [`dense_id!`](crate::dense_id).
pub trait DenseId: Copy {
    fn from_index(index: u32) -> Self;
    fn index(self) -> usize;
}

/// Declares a [`DenseId`] of its own type, so that a key is never taken for a value.
#[macro_export]
macro_rules! dense_id {
    ($(#[$meta:meta])* $visibility:vis struct $name:ident;) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        $visibility struct $name(u32);

        impl $crate::intern::DenseId for $name {
            fn from_index(index: u32) -> Self {
                Self(index)
            }

            fn index(self) -> usize {
                self.0 as usize
            }
        }
    };
}

/// Gives every name an id, in order of first use: the same history of calls gives the same ids.
#[derive(Debug, Clone)]
pub struct Interner<I> {
    names: Vec<Arc<str>>,
    ids: BTreeMap<Arc<str>, I>,
}

// Not derived: that would ask for a default id.
impl<I> Default for Interner<I> {
    fn default() -> Self {
        Self { names: Vec::new(), ids: BTreeMap::new() }
    }
}

impl<I: DenseId> Interner<I> {
    pub fn new() -> Self {
        Self::default()
    }

    /// The id of the name; a new one if it was not seen before. O(log n).
    pub fn intern(&mut self, name: &str) -> I {
        if let Some(id) = self.ids.get(name) {
            return *id;
        }
        let index = u32::try_from(self.names.len()).expect("four billion names do not fit into memory");
        let (id, name) = (I::from_index(index), Arc::<str>::from(name));
        self.names.push(Arc::clone(&name));
        self.ids.insert(name, id);
        id
    }

    /// The id of a name that was interned before.
    pub fn get(&self, name: &str) -> Option<I> {
        self.ids.get(name).copied()
    }

    /// The name behind an id of this interner; `None` for an id of another one that has seen more names.
    pub fn name(&self, id: I) -> Option<&Arc<str>> {
        self.names.get(id.index())
    }

    /// How many ids there are: every one is below.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    dense_id! {
        /// For these tests.
        struct ColourId;
    }

    #[test]
    fn ids_count_up_in_order_of_first_use() {
        let mut colours = Interner::<ColourId>::new();
        let ids = ["red", "blue", "red", "amber"].map(|name| colours.intern(name).index());
        assert_eq!(ids, [0, 1, 0, 2]);
        assert_eq!(colours.len(), 3);
    }

    #[test]
    fn a_name_and_its_id_lead_to_each_other() {
        let mut colours = Interner::<ColourId>::new();
        let blue = colours.intern("blue");
        assert_eq!(colours.name(blue).map(|name| &**name), Some("blue"));
        assert_eq!(colours.get("blue"), Some(blue));
        assert_eq!(colours.get("red"), None);
        assert_eq!(colours.name(ColourId::from_index(1)), None);
    }
}
