//! The words of one line: `kind name key=value flag …`.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use kerf_model::duration::GoDuration;
use kerf_model::resources::{ResourceList, ResourceName};
use kerf_model::taint::Taint;

pub struct Words<'a>(pub Vec<&'a str>);

impl<'a> Words<'a> {
    pub fn flag(&self, name: &str) -> bool {
        self.0.contains(&name)
    }

    pub fn get(&self, key: &str) -> Option<&'a str> {
        self.all(key).next()
    }

    /// The values of a key that may come several times.
    pub fn all(&self, key: &str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter_map(move |word| word.strip_prefix(key)?.strip_prefix('='))
    }

    /// `prefix.key=value`
    pub fn under(&self, prefix: &str) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.0.iter().filter_map(move |word| word.strip_prefix(prefix)?.strip_prefix('.')?.split_once('='))
    }

    pub fn text(&self, key: &str) -> Option<Arc<str>> {
        self.get(key).map(Arc::from)
    }

    pub fn time(&self, key: &str) -> Option<Timestamp> {
        self.get(key).map(time)
    }

    pub fn duration(&self, key: &str) -> Option<GoDuration> {
        self.get(key).map(|text| text.parse().unwrap())
    }

    pub fn span(&self, key: &str) -> Option<SignedDuration> {
        self.duration(key).map(SignedDuration::from)
    }

    pub fn taints(&self, key: &str) -> Vec<Taint> {
        self.all(key).map(|text| text.parse().unwrap()).collect()
    }

    /// `cpu:1,memory:2Gi`
    pub fn resources(&self, key: &str) -> ResourceList {
        let items = self.get(key).into_iter().flat_map(|list| list.split(','));
        items
            .map(|item| item.split_once(':').unwrap())
            .map(|(name, amount)| (ResourceName::from(name), amount.parse().unwrap()))
            .collect()
    }
}

/// `12:00` or `12:00:05`, always on the same Monday.
pub fn time(text: &str) -> Timestamp {
    let seconds = if text.matches(':').count() == 2 { "" } else { ":00" };
    format!("2026-11-16T{text}{seconds}Z").parse().unwrap()
}

/// The inverse of [`time`]; other days are written whole.
pub fn clock(time: Timestamp) -> String {
    let text = time.to_string();
    text.strip_prefix("2026-11-16T").and_then(|text| text.strip_suffix('Z')).unwrap_or(&text).to_owned()
}
