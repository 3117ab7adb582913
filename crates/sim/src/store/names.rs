//! Uids and generated names, from a seed.

/// Kubernetes' alphabet for generated names: no vowels, so no words.
const ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";
const SUFFIX_LENGTH: usize = 5;
/// A generated name is cut to leave room for its suffix.
const MAX_GENERATED_PREFIX: usize = 63 - SUFFIX_LENGTH;

/// The splitmix64 sequence: every state is met once, so no uid comes twice.
#[derive(Debug)]
pub(super) struct Names {
    state: u64,
}

impl Names {
    pub fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    fn draw(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// In the form of a random UUID.
    pub fn uid(&mut self) -> String {
        let (high, low) = (self.draw(), self.draw());
        let (first, second, third) = (high >> 32, (high >> 16) & 0xffff, high & 0xfff);
        let (fourth, fifth) = ((low >> 48) & 0x3fff | 0x8000, low & 0xffff_ffff_ffff);
        format!("{first:08x}-{second:04x}-4{third:03x}-{fourth:04x}-{fifth:012x}")
    }

    pub fn generate(&mut self, prefix: &str) -> String {
        let mut number = self.draw();
        let mut name: String = prefix.chars().take(MAX_GENERATED_PREFIX).collect();
        for _ in 0..SUFFIX_LENGTH {
            name.push(char::from(ALPHABET[(number % 27) as usize]));
            number /= 27;
        }
        name
    }
}
