//! Taints, and which of them a pod tolerates.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::str::FromStr;
use std::sync::Arc;

use jiff::Timestamp;
use thiserror::Error;

use crate::label::{LabelSyntaxError, check_qualified_name, check_value, taint_key};

/// What a taint does to pods that do not tolerate it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Effect {
    NoSchedule,
    PreferNoSchedule,
    NoExecute,
}

/// An empty value is the same as none.
#[derive(Debug, Clone)]
pub struct Taint {
    pub key: Arc<str>,
    pub value: Arc<str>,
    pub effect: Effect,
    /// Since when it is on its node; Kubernetes counts tolerated time from it. It is kept when the list is written, and
    /// does not tell taints apart.
    pub added: Option<Timestamp>,
}

/// A missing key or effect stands for every key or effect.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Toleration {
    pub key: Option<Arc<str>>,
    pub effect: Option<Effect>,
    pub value: ToleratedValue,
}

/// The operator of a toleration, with what it compares to.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ToleratedValue {
    /// Operator `Exists`.
    Any,
    /// Operator `Equal`, and the default.
    Equal(Arc<str>),
    /// Operator `Lt`: the taint's number is smaller than this one. `None` is a value that is no number, which
    /// tolerates nothing.
    Below(Option<i64>),
    /// Operator `Gt`: the taint's number is larger than this one.
    Above(Option<i64>),
}

/// The first taint that no toleration covers.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("the taint {0} is not tolerated")]
pub struct Untolerated(pub Taint);

/// Why a text is no taint.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TaintError {
    #[error("a taint is written key=value:Effect or key:Effect")]
    NoEffect,
    #[error("unknown effect {0:?}: it is NoSchedule, PreferNoSchedule or NoExecute")]
    UnknownEffect(Box<str>),
    #[error("the key is not valid")]
    Key(#[source] LabelSyntaxError),
    #[error("the value is not valid")]
    Value(#[source] LabelSyntaxError),
}

/// Taints that come and go while a node starts; values do not matter (sheet 02 §6).
const KNOWN_EPHEMERAL: [(&str, Effect); 5] = [
    (taint_key::NOT_READY, Effect::NoSchedule),
    (taint_key::NOT_READY, Effect::NoExecute),
    (taint_key::UNREACHABLE, Effect::NoSchedule),
    (taint_key::CLOUD_UNINITIALIZED, Effect::NoSchedule),
    (taint_key::UNREGISTERED, Effect::NoExecute),
];

/// Checks that every taint is tolerated, `PreferNoSchedule` too: that one is softened by relaxing the pod.
///
/// # Errors
/// The first taint that is not.
pub fn tolerates(taints: &[Taint], tolerations: &[Toleration]) -> Result<(), Untolerated> {
    match taints.iter().find(|taint| !tolerations.iter().any(|toleration| toleration.covers(taint))) {
        None => Ok(()),
        Some(taint) => Err(Untolerated(taint.clone())),
    }
}

/// `taints`, and those of `more` whose key and effect are not among them yet.
pub fn merge(taints: &[Taint], more: &[Taint]) -> Vec<Taint> {
    let mut merged = taints.to_vec();
    for taint in more {
        if !merged.iter().any(|known| known.is_same(taint)) {
            merged.push(taint.clone());
        }
    }
    merged
}

/// The first taint whose key and effect came up before. One key with several effects is fine.
pub fn first_duplicate<'a>(taints: impl IntoIterator<Item = &'a Taint>) -> Option<&'a Taint> {
    let mut seen = BTreeSet::new();
    taints.into_iter().find(|taint| !seen.insert((&taint.key, taint.effect)))
}

impl Taint {
    pub fn new(key: &str, value: &str, effect: Effect) -> Self {
        Self { key: Arc::from(key), value: Arc::from(value), effect, added: None }
    }

    /// On a node that is about to go.
    pub fn disrupted() -> Self {
        Self::new(taint_key::DISRUPTED, "", Effect::NoSchedule)
    }

    /// On a node from its boot until it is registered.
    pub fn unregistered() -> Self {
        Self::new(taint_key::UNREGISTERED, "", Effect::NoExecute)
    }

    /// On a node that is being rebooted.
    pub fn rebooting() -> Self {
        Self::new(taint_key::REBOOTING, "", Effect::NoSchedule)
    }

    /// On a node that the cloud advises to leave.
    pub fn rebalance_recommended() -> Self {
        Self::new(taint_key::REBALANCE_RECOMMENDED, "", Effect::NoSchedule)
    }

    #[must_use]
    pub fn with_added(self, added: Option<Timestamp>) -> Self {
        Self { added, ..self }
    }

    /// All that two equal taints agree on.
    fn identity(&self) -> (&Arc<str>, &Arc<str>, Effect) {
        (&self.key, &self.value, self.effect)
    }

    /// Whether both are the same taint to Kubernetes, which tells taints apart by key and effect only.
    pub fn is_same(&self, other: &Self) -> bool {
        self.effect == other.effect && self.key == other.key
    }

    /// Whether the taint is expected on a node that starts, and to go by itself.
    pub fn is_known_ephemeral(&self) -> bool {
        KNOWN_EPHEMERAL.contains(&(&*self.key, self.effect)) || self.key.starts_with(taint_key::READINESS_PREFIX)
    }
}

impl PartialEq for Taint {
    fn eq(&self, other: &Self) -> bool {
        self.identity() == other.identity()
    }
}

impl Eq for Taint {}

impl PartialOrd for Taint {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Taint {
    fn cmp(&self, other: &Self) -> Ordering {
        self.identity().cmp(&other.identity())
    }
}

impl Hash for Taint {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.identity().hash(state);
    }
}

impl Toleration {
    /// Whether the taint is tolerated.
    pub fn covers(&self, taint: &Taint) -> bool {
        self.effect.is_none_or(|effect| effect == taint.effect)
            && self.key.as_ref().is_none_or(|key| *key == taint.key)
            && self.value.covers(&taint.value)
    }
}

impl ToleratedValue {
    /// Operator `Lt`, from its value as written.
    pub fn below(bound: &str) -> Self {
        Self::Below(decimal_integer(bound))
    }

    /// Operator `Gt`, from its value as written.
    pub fn above(bound: &str) -> Self {
        Self::Above(decimal_integer(bound))
    }

    fn covers(&self, value: &str) -> bool {
        match self {
            Self::Any => true,
            Self::Equal(expected) => **expected == *value,
            Self::Below(bound) => decimal_integer(value).zip(*bound).is_some_and(|(number, bound)| number < bound),
            Self::Above(bound) => decimal_integer(value).zip(*bound).is_some_and(|(number, bound)| number > bound),
        }
    }
}

/// The API machinery takes one spelling per number here: no plus sign, no leading zeros, no minus zero.
fn decimal_integer(text: &str) -> Option<i64> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let canonical = text == "0" || digits.starts_with(|first: char| matches!(first, '1'..='9'));
    if canonical { text.parse().ok() } else { None }
}

impl Effect {
    pub const ALL: [Self; 3] = [Self::NoSchedule, Self::PreferNoSchedule, Self::NoExecute];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::NoSchedule => "NoSchedule",
            Self::PreferNoSchedule => "PreferNoSchedule",
            Self::NoExecute => "NoExecute",
        }
    }
}

impl fmt::Display for Effect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for Effect {
    type Err = TaintError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|effect| effect.as_str() == text)
            .ok_or_else(|| TaintError::UnknownEffect(text.into()))
    }
}

impl fmt::Display for Taint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let equals = if self.value.is_empty() { "" } else { "=" };
        write!(f, "{}{equals}{}:{}", self.key, self.value, self.effect)
    }
}

impl FromStr for Taint {
    type Err = TaintError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (pair, effect) = text.rsplit_once(':').ok_or(TaintError::NoEffect)?;
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        check_qualified_name(key).map_err(TaintError::Key)?;
        check_value(value).map_err(TaintError::Value)?;
        Ok(Self::new(key, value, effect.parse()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taint(text: &str) -> Taint {
        text.parse().expect("a taint")
    }

    fn exists(key: &str) -> Toleration {
        Toleration { key: Some(Arc::from(key)), effect: None, value: ToleratedValue::Any }
    }

    #[test]
    fn names_the_first_taint_that_is_not_tolerated() {
        let taints = [taint("a=1:NoSchedule"), taint("b:PreferNoSchedule"), taint("c:NoExecute")];
        assert_eq!(tolerates(&taints, &[exists("a")]), Err(Untolerated(taint("b:PreferNoSchedule"))));
        assert_eq!(tolerates(&taints, &[exists("c"), exists("b"), exists("a")]), Ok(()));
        assert_eq!(tolerates(&[], &[]), Ok(()));
        let message = tolerates(&taints, &[]).expect_err("not tolerated").to_string();
        assert_eq!(message, "the taint a=1:NoSchedule is not tolerated");
    }

    #[test]
    fn a_toleration_without_key_and_effect_covers_all() {
        let all = Toleration { key: None, effect: None, value: ToleratedValue::Any };
        assert!(all.covers(&Taint::disrupted()) && all.covers(&taint("x=y:NoExecute")));
    }

    #[test]
    fn known_ephemeral_taints_are_told_by_key_and_effect() {
        let ephemeral = [
            "node.kubernetes.io/not-ready:NoSchedule",
            "node.kubernetes.io/not-ready:NoExecute",
            "node.kubernetes.io/unreachable:NoSchedule",
            "node.cloudprovider.kubernetes.io/uninitialized=true:NoSchedule",
            "node.cloudprovider.kubernetes.io/uninitialized=other:NoSchedule",
            "karpenter.sh/unregistered:NoExecute",
            "readiness.k8s.io/network:NoSchedule",
        ];
        let lasting = [
            "node.kubernetes.io/unreachable:NoExecute",
            "node.kubernetes.io/not-ready:PreferNoSchedule",
            "karpenter.sh/disrupted:NoSchedule",
            "karpenter.sh/rebooting:NoSchedule",
        ];
        assert!(ephemeral.iter().all(|text| taint(text).is_known_ephemeral()));
        assert!(!lasting.iter().any(|text| taint(text).is_known_ephemeral()));
    }

    #[test]
    fn the_time_of_a_taint_is_kept_and_does_not_tell_taints_apart() {
        let added = Some(Timestamp::UNIX_EPOCH);
        let old = taint("a=1:NoExecute").with_added(added);
        assert_eq!(old, taint("a=1:NoExecute"));
        assert_eq!(merge(&[old], &[taint("a=2:NoExecute")])[0].added, added);
    }

    #[test]
    fn merging_keeps_what_is_there_and_adds_other_effects() {
        let merged = merge(&[taint("a=1:NoSchedule")], &[taint("a=2:NoSchedule"), taint("a:NoExecute")]);
        assert_eq!(merged, [taint("a=1:NoSchedule"), taint("a:NoExecute")]);
    }

    #[test]
    fn only_the_same_key_and_effect_is_a_duplicate() {
        let taints = [taint("a=1:NoSchedule"), taint("a=1:NoExecute"), taint("a=2:NoSchedule")];
        assert_eq!(first_duplicate(&taints), Some(&taints[2]));
        assert_eq!(first_duplicate(&taints[..2]), None);
    }

    #[test]
    fn says_why_a_text_is_no_taint() {
        let wrong = |text: &str| text.parse::<Taint>().expect_err("not a taint");
        assert_eq!(wrong("a=b"), TaintError::NoEffect);
        assert_eq!(wrong("a:Never"), TaintError::UnknownEffect("Never".into()));
        assert_eq!(wrong(":NoSchedule"), TaintError::Key(LabelSyntaxError::EmptyName));
        assert_eq!(wrong("a=b=c:NoSchedule"), TaintError::Value(LabelSyntaxError::BadValue));
    }
}
