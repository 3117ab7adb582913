//! Names of claims: the same decision made again, after a crash or a lost reply, names the same claim.

use std::sync::Arc;

/// Lower-case letters and digits that cannot be taken for each other, as in Kubernetes' generated names.
const ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";
const LENGTH: usize = 6;

/// A name for a claim of this pool for these pods. `is_taken` says whether the cluster has it; then the next one of the
/// same sequence is tried.
pub fn claim_name(pool: &str, pool_uid: &str, pod_uids: &[Arc<str>], is_taken: impl Fn(&str) -> bool) -> Arc<str> {
    let mut sorted: Vec<&Arc<str>> = pod_uids.iter().collect();
    sorted.sort();
    let mut seed = fnv(FNV_OFFSET, pool_uid.as_bytes());
    for uid in sorted {
        seed = fnv(fnv(seed, b"/"), uid.as_bytes());
    }
    let mut attempt: u64 = 0;
    loop {
        let name = format!("{pool}-{}", suffix(fnv(seed, &attempt.to_le_bytes())));
        if !is_taken(&name) {
            return Arc::from(name);
        }
        attempt += 1;
    }
}

const FNV_OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
const FNV_PRIME: u64 = 0x0100_0000_01b3;

fn fnv(seed: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(seed, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(FNV_PRIME))
}

fn suffix(mut hash: u64) -> String {
    // The low bits of FNV are weak; fold the high ones in.
    hash ^= hash >> 32;
    let letters = ALPHABET.len() as u64;
    (0..LENGTH)
        .map(|_| {
            let letter = ALPHABET[usize::try_from(hash % letters).unwrap_or_default()];
            hash /= letters;
            char::from(letter)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_pods_give_the_same_name_in_any_order_and_a_taken_name_gives_the_next() {
        let uids: Vec<Arc<str>> = ["a", "b"].map(Arc::from).into();
        let reversed: Vec<Arc<str>> = uids.iter().rev().cloned().collect();
        let name = claim_name("default", "u", &uids, |_| false);
        assert_eq!(name, claim_name("default", "u", &reversed, |_| false));
        assert!(name.starts_with("default-") && name.len() == "default-".len() + LENGTH);
        let next = claim_name("default", "u", &uids, |taken| taken == &*name);
        assert_ne!(name, next);
        assert_eq!(next, claim_name("default", "u", &uids, |taken| taken == &*name));
        assert_ne!(name, claim_name("default", "other", &uids, |_| false));
    }
}
