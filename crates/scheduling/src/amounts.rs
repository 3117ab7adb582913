//! Resource vectors as arrays of integers, for the comparisons that are made by the million.

use std::collections::BTreeMap;

use kerf_model::quantity::Quantity;
use kerf_model::resources::{ResourceList, ResourceName};

/// The resources that one cluster's pods, daemons and limits name; their position is their id.
///
/// Each is counted in a unit of its own: the largest that leaves every amount seen a whole number. What was not seen and
/// is no whole number is rounded against the one who asks, so that nothing is ever promised twice.
#[derive(Debug, Default)]
pub(crate) struct ResourceIndex {
    names: Vec<ResourceName>,
    /// In nano-units.
    units: Vec<i128>,
}

/// Amounts by resource id, in the units of the index. Sums saturate: what is too large to count fits nowhere.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Amounts(Box<[i64]>);

/// An amount that no limit reaches.
pub(crate) const UNBOUNDED: i64 = i64::MAX;

const UNITS: [i128; 4] = [1_000_000_000, 1_000_000, 1_000, 1];
/// Half of the range stays free for sums.
const MOST: i128 = (i64::MAX / 2) as i128;

impl ResourceIndex {
    /// `asked` are amounts of pods, daemons and limits; only what they name is looked at. `offered` has a say in units.
    pub(crate) fn of<'a>(
        asked: impl Iterator<Item = &'a ResourceList>,
        offered: impl Iterator<Item = &'a ResourceList>,
    ) -> Self {
        let mut scales: BTreeMap<ResourceName, Scale> = BTreeMap::from([(ResourceName::NODES, Scale::default())]);
        for list in asked {
            for (name, amount) in list.iter() {
                match scales.get_mut(name) {
                    Some(scale) => scale.see(amount),
                    None => scales.entry(name.clone()).or_default().see(amount),
                }
            }
        }
        for list in offered {
            for (name, amount) in list.iter() {
                scales.get_mut(name).into_iter().for_each(|scale| scale.see(amount));
            }
        }
        let units = scales.values().map(|scale| scale.unit()).collect();
        Self { names: scales.into_keys().collect(), units }
    }

    /// What a pod asks for. A name that is absent is zero.
    pub(crate) fn asked(&self, list: &ResourceList) -> Amounts {
        self.each(|name, unit| {
            let nanos = list.amount(name.as_str()).nanos();
            nanos.div_euclid(unit) + i128::from(nanos.rem_euclid(unit) != 0)
        })
    }

    /// What there is. A name that is absent is zero.
    pub(crate) fn offered(&self, list: &ResourceList) -> Amounts {
        self.each(|name, unit| list.amount(name.as_str()).nanos().div_euclid(unit))
    }

    /// A name that is absent has no bound.
    pub(crate) fn bounds(&self, list: &ResourceList) -> Amounts {
        let amounts = self.names.iter().zip(&self.units).map(|(name, unit)| match list.get(name.as_str()) {
            None => UNBOUNDED,
            Some(amount) => clamp(amount.nanos().div_euclid(*unit)),
        });
        Amounts(amounts.collect())
    }

    /// Whether every resource that the list asks for is known.
    pub(crate) fn knows(&self, list: &ResourceList) -> bool {
        list.iter().all(|(name, _)| self.names.binary_search(name).is_ok())
    }

    pub(crate) fn id(&self, name: &ResourceName) -> Option<usize> {
        self.names.binary_search(name).ok()
    }

    pub(crate) fn len(&self) -> usize {
        self.names.len()
    }

    pub(crate) fn nothing(&self) -> Amounts {
        Amounts(vec![0; self.names.len()].into())
    }

    /// A room that not even a request for nothing fits.
    pub(crate) fn less_than_nothing(&self) -> Amounts {
        Amounts(vec![-1; self.names.len()].into())
    }

    pub(crate) fn name(&self, id: usize) -> &ResourceName {
        &self.names[id]
    }

    pub(crate) fn quantity(&self, id: usize, amount: i64, like: Quantity) -> Quantity {
        Quantity::from_nanos(i128::from(amount) * self.units[id], like.notation())
    }

    fn each(&self, f: impl Fn(&ResourceName, i128) -> i128) -> Amounts {
        Amounts(self.names.iter().zip(&self.units).map(|(name, unit)| clamp(f(name, *unit))).collect())
    }
}

/// What is known of the amounts of one resource.
#[derive(Debug, Clone, Copy, Default)]
struct Scale {
    /// Which of the units all of them are whole numbers of.
    unit: usize,
    largest: i128,
}

impl Scale {
    fn see(&mut self, amount: Quantity) {
        let nanos = amount.nanos();
        self.largest = self.largest.max(nanos.saturating_abs());
        let is_whole = |unit: i128| match (i64::try_from(nanos), i64::try_from(unit)) {
            (Ok(nanos), Ok(unit)) => nanos % unit == 0,
            _ => nanos % unit == 0,
        };
        while self.unit + 1 < UNITS.len() && !is_whole(UNITS[self.unit]) {
            self.unit += 1;
        }
    }

    fn unit(self) -> i128 {
        if self.largest / UNITS[self.unit] < MOST { UNITS[self.unit] } else { UNITS[0] }
    }
}

/// Lists of amounts, each kept once: pods of a workload ask for the same.
#[derive(Debug, Default)]
pub(crate) struct Lists<'a> {
    pub(crate) lists: Vec<&'a ResourceList>,
    by_fingerprint: BTreeMap<u64, Vec<usize>>,
}

impl<'a> Lists<'a> {
    /// O(log n) and one comparison.
    pub(crate) fn intern(&mut self, list: &'a ResourceList) -> usize {
        let known = self.by_fingerprint.entry(fingerprint(list)).or_default();
        if let Some(at) = known.iter().find(|at| self.lists[**at] == list) {
            return *at;
        }
        known.push(self.lists.len());
        self.lists.push(list);
        self.lists.len() - 1
    }
}

/// Equal lists have equal ones; different lists mostly not.
fn fingerprint(list: &ResourceList) -> u64 {
    list.iter().fold(0xcbf2_9ce4_8422_2325, |mix: u64, (name, amount)| {
        let nanos = amount.nanos();
        let amount = (nanos as u64) ^ ((nanos >> 64) as u64);
        (mix ^ amount ^ (name.as_str().len() as u64) << 56).wrapping_mul(0x0100_0000_01b3).rotate_left(23)
    })
}

impl From<Vec<i64>> for Amounts {
    /// In the order of the index.
    fn from(amounts: Vec<i64>) -> Self {
        Self(amounts.into())
    }
}

fn clamp(amount: i128) -> i64 {
    i64::try_from(amount.clamp(-MOST, MOST)).unwrap_or(i64::MAX)
}

impl Amounts {
    pub(crate) fn as_slice(&self) -> &[i64] {
        &self.0
    }

    pub(crate) fn fits(&self, total: &Self) -> bool {
        fits(&self.0, &total.0)
    }

    /// The first resource of which `total` has too little.
    pub(crate) fn first_short(&self, total: &Self) -> Option<usize> {
        self.0.iter().zip(&total.0).position(|(own, total)| own > total)
    }

    /// Of how many resources `total` has too little.
    pub(crate) fn shortages(&self, total: &Self) -> usize {
        self.0.iter().zip(&total.0).filter(|(own, total)| own > total).count()
    }

    /// How often it can be taken from `total`.
    pub(crate) fn times_within(&self, total: &Self) -> usize {
        let times = |(own, total): (&i64, &i64)| match own {
            _ if own > total => 0,
            0 => usize::MAX,
            own => usize::try_from(total / own).unwrap_or_default(),
        };
        self.0.iter().zip(&total.0).map(times).min().unwrap_or(usize::MAX)
    }

    pub(crate) fn set(&mut self, id: usize, amount: i64) {
        self.0[id] = amount;
    }

    pub(crate) fn of(&self, id: usize) -> i64 {
        self.0[id]
    }

    pub(crate) fn add(&mut self, other: &Self) {
        self.each(other, i64::saturating_add);
    }

    pub(crate) fn take(&mut self, other: &Self) {
        self.each(other, i64::saturating_sub);
    }

    pub(crate) fn raise_to(&mut self, other: &Self) {
        self.each(other, i64::max);
    }

    pub(crate) fn lower_to(&mut self, other: &Self) {
        self.each(other, i64::min);
    }

    /// Unlimited stays unlimited, however much is taken.
    pub(crate) fn take_bounded(&mut self, other: &Self) {
        self.each(other, |own, other| if own == UNBOUNDED { own } else { own.saturating_sub(other) });
    }

    /// The other way round.
    pub(crate) fn give_back(&mut self, other: &Self) {
        self.each(other, |own, other| if own == UNBOUNDED { own } else { own.saturating_add(other) });
    }

    fn each(&mut self, other: &Self, f: impl Fn(i64, i64) -> i64) {
        for (own, other) in self.0.iter_mut().zip(&other.0) {
            *own = f(*own, *other);
        }
    }
}

pub(crate) fn fits(asked: &[i64], total: &[i64]) -> bool {
    asked.iter().zip(total).all(|(asked, total)| asked <= total)
}

/// The sum as a list. What overflows is left out: such a sum fits nowhere, so that it is never asked for.
pub(crate) fn sum<'a>(lists: impl IntoIterator<Item = &'a ResourceList>) -> ResourceList {
    let mut sum = ResourceList::new();
    for (name, amount) in lists.into_iter().flat_map(ResourceList::iter) {
        if let Some(total) = sum.amount(name.as_str()).checked_add(amount) {
            sum.insert(name.clone(), total);
        }
    }
    sum
}
