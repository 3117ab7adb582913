//! The hash itself: what the Go library `hashstructure` (v2.0.2, format 2) computes with the options slices-as-sets,
//! ignore-zero-value and zero-nil.
//!
//! Everything rests on FNV-1 with 64 bits. Strings and numbers hash their bytes; a map is the xor of its entries, hashed
//! once more; a list is the bare xor of its elements, so order does not matter and two equal elements cancel each other.
//! A struct starts with the hash of its type name and is hashed again after every field, so the order of the
//! declaration matters.

const FNV_OFFSET: u64 = 14_695_981_039_346_656_037;
const FNV_PRIME: u64 = 1_099_511_628_211;

/// A Go value as the library sees it. A field that Go would skip (ignored, nil, or the zero of a plain type) is simply
/// not there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum GoValue {
    Bool(bool),
    I32(i32),
    I64(i64),
    Text(String),
    /// The binary form of a `time.Time`.
    Time([u8; 15]),
    Map(Vec<(String, GoValue)>),
    Set(Vec<GoValue>),
    Struct(GoStruct),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct GoStruct {
    pub type_name: &'static str,
    /// In the order of the Go declaration.
    pub fields: Vec<(&'static str, GoValue)>,
}

impl GoValue {
    pub fn hash(&self) -> u64 {
        match self {
            Self::Bool(value) => fnv1(&[u8::from(*value)]),
            Self::I32(value) => fnv1(&value.to_le_bytes()),
            Self::I64(value) => fnv1(&value.to_le_bytes()),
            Self::Text(value) => fnv1(value.as_bytes()),
            Self::Time(value) => fnv1(value),
            Self::Map(entries) => {
                harden(entries.iter().fold(0, |hash, (key, value)| hash ^ pair(fnv1(key.as_bytes()), value.hash())))
            }
            Self::Set(elements) => hash_set(elements),
            Self::Struct(value) => value.hash(),
        }
    }

    /// The zero of its Go type. Maps, lists and times are never zero once they are present.
    pub fn is_zero(&self) -> bool {
        match self {
            Self::Bool(value) => !value,
            Self::I32(value) => *value == 0,
            Self::I64(value) => *value == 0,
            Self::Text(value) => value.is_empty(),
            Self::Struct(value) => value.fields.is_empty(),
            Self::Time(_) | Self::Map(_) | Self::Set(_) => false,
        }
    }
}

impl GoStruct {
    pub fn hash(&self) -> u64 {
        self.fields.iter().fold(fnv1(self.type_name.as_bytes()), |hash, (name, value)| {
            harden(hash ^ pair(fnv1(name.as_bytes()), value.hash()))
        })
    }
}

pub(super) fn hash_set(elements: &[GoValue]) -> u64 {
    elements.iter().fold(0, |hash, element| hash ^ element.hash())
}

/// Two hashes whose order matters.
fn pair(first: u64, second: u64) -> u64 {
    fnv1_continue(fnv1(&first.to_le_bytes()), &second.to_le_bytes())
}

/// Hashes a hash, so that equal parts of two neighbours cannot cancel out.
fn harden(hash: u64) -> u64 {
    fnv1(&hash.to_le_bytes())
}

fn fnv1(bytes: &[u8]) -> u64 {
    fnv1_continue(FNV_OFFSET, bytes)
}

/// FNV-1, not the better known FNV-1a: it multiplies first.
fn fnv1_continue(state: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(state, |hash, byte| hash.wrapping_mul(FNV_PRIME) ^ u64::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(value: &str) -> GoValue {
        GoValue::Text(value.to_owned())
    }

    #[test]
    fn fnv_1_matches_its_published_vectors() {
        assert_eq!(fnv1(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv1(b"a"), 0xaf63_bd4c_8601_b7be);
        assert_eq!(fnv1(b"foobar"), 0x340d_8765_a4dd_a9c2);
    }

    #[test]
    fn a_list_is_a_set_in_which_equal_elements_cancel() {
        let set = |elements: &[&str]| GoValue::Set(elements.iter().map(|element| text(element)).collect()).hash();
        assert_eq!(set(&["a", "b"]), set(&["b", "a"]));
        assert_eq!(set(&["a", "a"]), set(&[]));
        assert_eq!(set(&[]), 0);
        assert_eq!(set(&["a"]), text("a").hash());
    }

    #[test]
    fn an_empty_map_is_the_hash_of_zero() {
        assert_eq!(GoValue::Map(vec![]).hash(), fnv1(&0u64.to_le_bytes()));
    }

    #[test]
    fn the_order_of_struct_fields_matters() {
        let with = |fields| GoStruct { type_name: "T", fields }.hash();
        assert_ne!(with(vec![("A", text("x")), ("B", text("y"))]), with(vec![("B", text("y")), ("A", text("x"))]));
        assert_eq!(with(vec![]), fnv1(b"T"));
    }

    #[test]
    fn the_width_of_a_number_is_part_of_its_hash() {
        assert_ne!(GoValue::I32(1).hash(), GoValue::I64(1).hash());
        assert_ne!(GoValue::Bool(true).hash(), GoValue::I32(1).hash());
    }
}
