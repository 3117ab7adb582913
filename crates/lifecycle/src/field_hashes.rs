//! The hashes that stand beside a pool's hash, one per field, as they are written into an annotation.

use std::collections::BTreeSet;

/// `v1 <hash of the whole> <field>=<hash>,…`
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct FieldHashes<'a> {
    /// Another controller may have written the hash of the whole and known nothing of the fields, which then say nothing.
    pub of: &'a str,
    pub fields: BTreeSet<&'a str>,
}

impl<'a> FieldHashes<'a> {
    /// Fields that one has and the other has not, or has otherwise; in alphabetical order.
    pub fn changed_to(&self, new: &Self) -> Vec<String> {
        let differing = self.fields.symmetric_difference(&new.fields).filter_map(|entry| entry.split_once('='));
        differing.map(|(field, _)| field.to_owned()).collect::<BTreeSet<_>>().into_iter().collect()
    }

    pub fn has(&self, field: &str) -> bool {
        self.fields.iter().any(|entry| entry.split_once('=').is_some_and(|(known, _)| known == field))
    }

    pub fn read(text: &'a str) -> Option<Self> {
        let rest = text.strip_prefix("v1 ")?;
        let (of, fields) = rest.split_once(' ').unwrap_or((rest, ""));
        Some(Self { of, fields: fields.split(',').filter(|entry| !entry.is_empty()).collect() })
    }
}
