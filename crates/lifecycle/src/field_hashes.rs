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
    pub fn read(text: &'a str) -> Option<Self> {
        let rest = text.strip_prefix("v1 ")?;
        let (of, fields) = rest.split_once(' ').unwrap_or((rest, ""));
        Some(Self { of, fields: fields.split(',').filter(|entry| !entry.is_empty()).collect() })
    }
}
