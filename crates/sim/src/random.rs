//! Random numbers from a seed: one seed, one history.

/// The splitmix64 sequence.
#[derive(Debug, Clone)]
pub struct Random {
    state: u64,
}

impl Random {
    pub fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    pub fn draw(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// From 0 to `below`, which is left out; 0 if there is nothing below it.
    pub fn below(&mut self, below: u64) -> u64 {
        if below == 0 { 0 } else { self.draw() % below }
    }

    /// From `least` to `most`, both included.
    pub fn between(&mut self, least: i64, most: i64) -> i64 {
        let span = u64::try_from(most - least + 1).unwrap_or(1);
        least + i64::try_from(self.below(span)).unwrap_or(0)
    }

    /// True once in so many times on average; never for 0.
    pub fn one_in(&mut self, times: u64) -> bool {
        times > 0 && self.below(times) == 0
    }

    /// One of these.
    pub fn of<T: Copy, const N: usize>(&mut self, from: [T; N]) -> T {
        const { assert!(N > 0) }
        from[usize::try_from(self.below(N as u64)).unwrap_or(0)]
    }

    pub fn pick<T>(&mut self, mut from: Vec<T>) -> Option<T> {
        let index = usize::try_from(self.below(from.len() as u64)).unwrap_or(0);
        if from.is_empty() { None } else { Some(from.swap_remove(index)) }
    }
}
