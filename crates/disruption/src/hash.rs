//! Ids that the same decision always gets.

const FNV_OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
const FNV_PRIME: u64 = 0x0100_0000_01b3;

/// FNV-1a over the parts, with a separator that no name contains.
pub(crate) fn fnv<'p>(parts: impl IntoIterator<Item = &'p str>) -> u64 {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(FNV_PRIME);
    parts.into_iter().fold(FNV_OFFSET, |hash, part| part.bytes().chain([0]).fold(hash, step))
}
