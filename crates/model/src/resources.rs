//! Resource vectors: amounts by resource name, and the arithmetic of "does it fit".

use std::borrow::{Borrow, Cow};
use std::fmt;

use crate::quantity::Quantity;

/// The name of a resource, like `cpu` or `nvidia.com/gpu`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ResourceName(Cow<'static, str>);

/// Amounts by name, in the order of the names.
///
/// A name that is absent differs from one that is zero: [`minus`](Self::minus) and [`min`](Self::min) look at it.
// A sorted vector: lists have three to ten names, and every pod of the cluster has one. The smallest tree map costs
// 700 bytes, a vector of three names 200.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResourceList(Vec<(ResourceName, Quantity)>);

/// An amount that grew beyond what a quantity can hold.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the amount of {name} is too large")]
pub struct ResourceOverflow {
    pub name: ResourceName,
}

impl ResourceName {
    pub const CPU: Self = Self(Cow::Borrowed("cpu"));
    pub const MEMORY: Self = Self(Cow::Borrowed("memory"));
    pub const PODS: Self = Self(Cow::Borrowed("pods"));
    pub const EPHEMERAL_STORAGE: Self = Self(Cow::Borrowed("ephemeral-storage"));
    /// The number of nodes, which pool limits may name.
    pub const NODES: Self = Self(Cow::Borrowed("nodes"));

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The name without an allocation, if it is one of those that nearly every list has.
    fn known(name: &str) -> Option<Self> {
        let known = [Self::CPU, Self::MEMORY, Self::PODS, Self::EPHEMERAL_STORAGE, Self::NODES];
        known.into_iter().find(|known| known.as_str() == name)
    }

    /// Memory in pages of a size of its own; it counts against `memory` as well.
    pub fn is_huge_pages(&self) -> bool {
        self.0.starts_with("hugepages-")
    }
}

impl From<String> for ResourceName {
    fn from(name: String) -> Self {
        Self::known(&name).unwrap_or(Self(Cow::Owned(name)))
    }
}

impl From<&str> for ResourceName {
    fn from(name: &str) -> Self {
        Self::known(name).unwrap_or_else(|| Self(Cow::Owned(name.to_owned())))
    }
}

impl Borrow<str> for ResourceName {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ResourceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl ResourceList {
    pub fn new() -> Self {
        Self::default()
    }

    pub fn get(&self, name: &str) -> Option<Quantity> {
        self.position(name).ok().map(|at| self.0[at].1)
    }

    /// The amount, zero if the name is absent.
    pub fn amount(&self, name: &str) -> Quantity {
        self.get(name).unwrap_or_default()
    }

    pub fn insert(&mut self, name: ResourceName, amount: Quantity) {
        match self.position(name.as_str()) {
            Ok(at) => self.0[at].1 = amount,
            Err(at) => self.0.insert(at, (name, amount)),
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = (&ResourceName, Quantity)> {
        self.0.iter().map(|(name, amount)| (name, *amount))
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The sum by name, over all names.
    pub fn plus(mut self, other: &Self) -> Result<Self, ResourceOverflow> {
        for (name, amount) in &other.0 {
            let sum = self.amount(name.as_str()).checked_add(*amount);
            self.insert(name.clone(), sum.ok_or_else(|| ResourceOverflow { name: name.clone() })?);
        }
        Ok(self)
    }

    /// What is left of each name of `self`. Names that only `other` has are left out.
    pub fn minus(mut self, other: &Self) -> Result<Self, ResourceOverflow> {
        for (name, amount) in &mut self.0 {
            let left = amount.checked_sub(other.amount(name.as_str()));
            *amount = left.ok_or_else(|| ResourceOverflow { name: name.clone() })?;
        }
        Ok(self)
    }

    /// The smaller amounts, over the names that both have.
    pub fn min(mut self, other: &Self) -> Self {
        self.0.retain_mut(|(name, amount)| match other.get(name.as_str()) {
            Some(theirs) => {
                *amount = (*amount).min(theirs);
                true
            }
            None => false,
        });
        self
    }

    /// The larger amounts, over all names.
    pub fn max(mut self, other: &Self) -> Self {
        for (name, amount) in &other.0 {
            let larger = self.get(name.as_str()).map_or(*amount, |own| own.max(*amount));
            self.insert(name.clone(), larger);
        }
        self
    }

    /// Whether this request fits into `total`.
    ///
    /// Nothing fits where any total is negative, be it of a resource that the request does not name. A total that is
    /// absent is zero, so that a request for zero of it fits.
    pub fn fits(&self, total: &Self) -> bool {
        !total.0.iter().any(|(_, amount)| amount.is_negative())
            && self.0.iter().all(|(name, amount)| *amount <= total.amount(name.as_str()))
    }

    fn position(&self, name: &str) -> Result<usize, usize> {
        self.0.binary_search_by(|(known, _)| known.as_str().cmp(name))
    }
}

impl FromIterator<(ResourceName, Quantity)> for ResourceList {
    fn from_iter<I: IntoIterator<Item = (ResourceName, Quantity)>>(amounts: I) -> Self {
        let mut list = Self::new();
        for (name, amount) in amounts {
            list.insert(name, amount);
        }
        list.0.shrink_to_fit();
        list
    }
}

impl fmt::Display for ResourceList {
    /// `cpu=1500m memory=2Gi`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (name, amount)) in self.0.iter().enumerate() {
            let separator = if index == 0 { "" } else { " " };
            write!(f, "{separator}{name}={amount}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(text: &str) -> ResourceList {
        let amounts = text.split_whitespace().map(|item| {
            let (name, amount) = item.split_once('=').unwrap();
            (ResourceName::from(name), amount.parse().unwrap())
        });
        amounts.collect()
    }

    #[test]
    fn sums_over_all_names() {
        let sum = list("cpu=1 memory=1Gi").plus(&list("cpu=500m pods=1")).unwrap();
        assert_eq!(sum.to_string(), "cpu=1500m memory=1Gi pods=1");
    }

    #[test]
    fn subtracts_only_what_the_left_side_names() {
        let left = list("cpu=1 memory=1Gi").minus(&list("cpu=1500m pods=1")).unwrap();
        assert_eq!(left.to_string(), "cpu=-500m memory=1Gi");
    }

    #[test]
    fn takes_the_minimum_of_common_names_and_the_maximum_of_all() {
        let (a, b) = (list("cpu=1 memory=2Gi"), list("cpu=2 pods=5"));
        assert_eq!(a.clone().min(&b).to_string(), "cpu=1");
        assert_eq!(a.max(&b).to_string(), "cpu=2 memory=2Gi pods=5");
        assert_eq!(list("").max(&list("cpu=-1")).to_string(), "cpu=-1");
    }

    #[test]
    fn fits_when_every_request_has_room() {
        let total = list("cpu=2 memory=4Gi");
        assert!(list("cpu=2000m memory=4096Mi").fits(&total));
        assert!(!list("cpu=2001m").fits(&total));
        assert!(!list("nvidia.com/gpu=1").fits(&total), "an absent total is zero");
        assert!(list("nvidia.com/gpu=0").fits(&total));
    }

    #[test]
    fn nothing_fits_where_a_total_is_negative() {
        assert!(!list("cpu=1").fits(&list("cpu=2 memory=-1")));
        assert!(!list("").fits(&list("memory=-1n")));
    }

    #[test]
    fn names_the_resource_that_overflows() {
        let large = list("memory=1e29");
        let error = large.clone().plus(&large).unwrap_err();
        assert_eq!(error.to_string(), "the amount of memory is too large");
    }
}
