//! Sets of small numbers as words of bits: which types, offerings, domains, hosts or claims.

/// A set of numbers below a length that was fixed when it was made.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Bits(Vec<u64>);

/// A set that says of 64 words at once which have members and which are full, so that few of them are looked at.
#[derive(Debug, Clone, Default)]
pub(crate) struct Layered {
    members: Bits,
    /// Words with a member.
    some: Bits,
    /// Words of nothing but members.
    full: Bits,
}

const WORD: usize = 64;

impl Bits {
    pub(crate) const fn empty() -> Self {
        Self(Vec::new())
    }

    pub(crate) fn none(len: usize) -> Self {
        Self(vec![0; len.div_ceil(WORD)])
    }

    pub(crate) fn all(len: usize) -> Self {
        let mut bits = Self(vec![u64::MAX; len.div_ceil(WORD)]);
        if let (Some(last), rest @ 1..) = (bits.0.last_mut(), len % WORD) {
            *last = (1 << rest) - 1;
        }
        bits
    }

    pub(crate) fn of(len: usize, members: impl IntoIterator<Item = usize>) -> Self {
        let mut bits = Self::none(len);
        members.into_iter().for_each(|at| bits.insert(at));
        bits
    }

    /// Grows as needed.
    pub(crate) fn insert(&mut self, at: usize) {
        if at / WORD >= self.0.len() {
            self.0.resize(at / WORD + 1, 0);
        }
        self.0[at / WORD] |= 1 << (at % WORD);
    }

    pub(crate) fn remove(&mut self, at: usize) {
        if let Some(word) = self.0.get_mut(at / WORD) {
            *word &= !(1 << (at % WORD));
        }
    }

    pub(crate) fn contains(&self, at: usize) -> bool {
        self.word(at / WORD) >> (at % WORD) & 1 == 1
    }

    /// Words beyond the end are empty.
    pub(crate) fn word(&self, at: usize) -> u64 {
        self.0.get(at).copied().unwrap_or_default()
    }

    pub(crate) fn words(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.iter().all(|word| *word == 0)
    }

    /// The only member, if there is exactly one.
    pub(crate) fn single(&self) -> Option<usize> {
        let mut members = self.iter();
        members.next().filter(|_| members.next().is_none())
    }

    pub(crate) fn keep(&mut self, other: &Self) {
        for (at, word) in self.0.iter_mut().enumerate() {
            *word &= other.word(at);
        }
    }

    pub(crate) fn drop_all(&mut self, other: &Self) {
        for (word, other) in self.0.iter_mut().zip(&other.0) {
            *word &= !other;
        }
    }

    pub(crate) fn add_all(&mut self, other: &Self) {
        if self.0.len() < other.0.len() {
            self.0.resize(other.0.len(), 0);
        }
        for (word, other) in self.0.iter_mut().zip(&other.0) {
            *word |= other;
        }
    }

    pub(crate) fn meets(&self, other: &Self) -> bool {
        self.0.iter().zip(&other.0).any(|(a, b)| a & b != 0)
    }

    pub(crate) fn is_within(&self, other: &Self) -> bool {
        self.0.iter().enumerate().all(|(at, word)| word & !other.word(at) == 0)
    }

    /// In order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = usize> {
        self.0.iter().enumerate().flat_map(|(at, word)| {
            let mut rest = *word;
            std::iter::from_fn(move || {
                let bit = (rest != 0).then(|| rest.trailing_zeros() as usize)?;
                rest &= rest - 1;
                Some(at * WORD + bit)
            })
        })
    }
}

impl Layered {
    /// Grows as needed.
    pub(crate) fn insert(&mut self, at: usize) {
        self.members.insert(at);
        self.some.insert(at / WORD);
        if self.members.word(at / WORD) == u64::MAX {
            self.full.insert(at / WORD);
        }
    }

    pub(crate) fn remove(&mut self, at: usize) {
        self.members.remove(at);
        self.full.remove(at / WORD);
        if self.members.word(at / WORD) == 0 {
            self.some.remove(at / WORD);
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.some.is_empty()
    }

    /// The first member not before `from` that is in neither of the others and that `open` lets through, which is asked
    /// for whole words.
    ///
    /// O(length / 4096 + words with members in which neither of the others is full).
    pub(crate) fn next(&self, from: usize, without: [&Self; 2], open: impl Fn(usize) -> u64) -> Option<usize> {
        let [one, other] = without;
        let mut at = from;
        while at / WORD < self.members.words() {
            let (word, upper) = (at / WORD, at / WORD / WORD);
            let later = u64::MAX << (word % WORD);
            let worth = self.some.word(upper) & !one.full.word(upper) & !other.full.word(upper) & later;
            if worth == 0 {
                at = (upper + 1) * WORD * WORD;
                continue;
            }
            let next = upper * WORD + worth.trailing_zeros() as usize;
            if next != word {
                at = next * WORD;
                continue;
            }
            let mut live = self.members.word(word) & !one.members.word(word) & !other.members.word(word);
            live &= u64::MAX << (at % WORD);
            if live != 0 {
                live &= open(word);
            }
            if live != 0 {
                return Some(word * WORD + live.trailing_zeros() as usize);
            }
            at = (word + 1) * WORD;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_come_in_order_and_sets_meet_where_they_share_one() {
        let mut some = Bits::of(130, [129, 3, 64]);
        assert_eq!(some.iter().collect::<Vec<_>>(), [3, 64, 129]);
        assert_eq!(some.single(), None);
        assert!(some.meets(&Bits::of(130, [64])) && !some.meets(&Bits::of(130, [65])));
        assert!(some.is_within(&Bits::all(130)) && !Bits::all(130).is_within(&some));
        some.keep(&Bits::of(130, [64, 5]));
        assert_eq!(some.single(), Some(64));
        some.remove(64);
        assert!(some.is_empty() && !some.contains(500));
    }

    #[test]
    fn all_of_a_length_are_that_many() {
        for len in [0, 1, 63, 64, 65, 400] {
            assert_eq!(Bits::all(len).iter().count(), len);
        }
    }
    #[test]
    fn the_next_member_is_found_past_words_that_are_empty_full_or_closed() {
        let of = |members: &mut dyn Iterator<Item = usize>| {
            let mut own = Layered::default();
            members.for_each(|at| own.insert(at));
            own
        };
        let all = of(&mut (0..9000).filter(|at| at % 3 == 0));
        let (full, some) = (of(&mut (0..8200)), of(&mut (8200..9000).filter(|at| at % 2 == 0)));
        let next = |from, open: fn(usize) -> u64| all.next(from, [&full, &some], open);
        let naive = |from: usize| (from..9000).find(|at| at % 3 == 0 && *at >= 8200 && at % 2 == 1);
        for from in [0, 1, 4095, 4096, 8200, 8201, 8999, 9000] {
            assert_eq!(next(from, |_| u64::MAX), naive(from), "{from}");
        }
        assert_eq!(next(0, |word| if word < 130 { 0 } else { u64::MAX }), naive(130 * 64));
        let mut emptied = of(&mut [70, 5000].into_iter());
        emptied.remove(70);
        assert_eq!(emptied.next(0, [&some, &some], |_| u64::MAX), Some(5000));
        emptied.remove(5000);
        assert!(emptied.is_empty() && emptied.next(0, [&some, &some], |_| u64::MAX).is_none());
        let mut holed = of(&mut (0..64));
        holed.remove(9);
        assert_eq!(all.next(0, [&holed, &some], |_| u64::MAX), Some(9));
    }
}
