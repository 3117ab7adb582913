//! Resource vectors as arrays, for the comparisons that are made by the million.

use std::collections::BTreeSet;

use kerf_model::quantity::Quantity;
use kerf_model::resources::{ResourceList, ResourceName};

/// The resources that one solve looks at; their position is their id.
#[derive(Debug, Default)]
pub(crate) struct ResourceIndex(Vec<ResourceName>);

/// Nano-units by resource id. Sums saturate: what is too large to count fits nowhere.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Amounts(Box<[i128]>);

impl ResourceIndex {
    pub(crate) fn of<'a>(lists: impl Iterator<Item = &'a ResourceList>) -> Self {
        let names: BTreeSet<ResourceName> =
            lists.flat_map(ResourceList::iter).map(|(name, _)| name.clone()).chain([ResourceName::NODES]).collect();
        Self(names.into_iter().collect())
    }

    /// A name that is absent is zero.
    pub(crate) fn amounts(&self, list: &ResourceList) -> Amounts {
        Amounts(self.0.iter().map(|name| list.amount(name.as_str()).nanos()).collect())
    }

    /// A name that is absent has no bound.
    pub(crate) fn bounds(&self, list: &ResourceList) -> Amounts {
        Amounts(self.0.iter().map(|name| list.get(name.as_str()).map_or(i128::MAX, Quantity::nanos)).collect())
    }

    pub(crate) fn nothing(&self) -> Amounts {
        Amounts(vec![0; self.0.len()].into())
    }

    /// A room that not even a request for nothing fits.
    pub(crate) fn less_than_nothing(&self) -> Amounts {
        Amounts(vec![-1; self.0.len()].into())
    }

    pub(crate) fn name(&self, id: usize) -> &ResourceName {
        &self.0[id]
    }
}

impl Amounts {
    pub(crate) fn fits(&self, total: &Self) -> bool {
        self.first_short(total).is_none()
    }

    /// The first resource of which `total` has too little.
    pub(crate) fn first_short(&self, total: &Self) -> Option<usize> {
        self.0.iter().zip(&total.0).position(|(own, total)| own > total)
    }

    /// Of how many resources `total` has too little.
    pub(crate) fn shortages(&self, total: &Self) -> usize {
        self.0.iter().zip(&total.0).filter(|(own, total)| own > total).count()
    }

    pub(crate) fn of(&self, id: usize) -> i128 {
        self.0[id]
    }

    pub(crate) fn add(&mut self, other: &Self) {
        self.each(other, i128::saturating_add);
    }

    pub(crate) fn take(&mut self, other: &Self) {
        self.each(other, i128::saturating_sub);
    }

    pub(crate) fn raise_to(&mut self, other: &Self) {
        self.each(other, i128::max);
    }

    pub(crate) fn lower_to(&mut self, other: &Self) {
        self.each(other, i128::min);
    }

    #[must_use]
    pub(crate) fn plus(&self, other: &Self) -> Self {
        let mut sum = self.clone();
        sum.add(other);
        sum
    }

    /// Unlimited stays unlimited, however much is taken.
    pub(crate) fn take_bounded(&mut self, other: &Self) {
        self.each(other, |own, other| if own == i128::MAX { own } else { own.saturating_sub(other) });
    }

    fn each(&mut self, other: &Self, f: impl Fn(i128, i128) -> i128) {
        for (own, other) in self.0.iter_mut().zip(&other.0) {
            *own = f(*own, *other);
        }
    }
}

/// The sum as a list. What overflows is left out: such a sum fits nowhere, so that it is never asked for.
pub(crate) fn sum<'a>(lists: impl IntoIterator<Item = &'a ResourceList>) -> ResourceList {
    lists.into_iter().fold(ResourceList::new(), |sum, list| sum.clone().plus(list).unwrap_or(sum))
}
