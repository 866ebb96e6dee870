//! A priority queue of small integers, of which the least is taken first, as a tree of bit sets.

/// Bits of a word.
const BITS: usize = u64::BITS as usize;

/// Numbers below a bound. Adding one and taking the least take time logarithmic in the bound, to the base of [`BITS`].
#[derive(Debug, Default)]
pub(crate) struct PriorityQueue {
    /// A bit for each number; then, level by level, a bit for each word of the level below that is not 0. The last level has one
    /// word.
    levels: Vec<Vec<u64>>,
    len: usize,
}

impl PriorityQueue {
    /// No numbers yet, all to be below `bound`.
    pub fn below(bound: usize) -> Self {
        let mut levels = Vec::new();
        let mut words = bound.div_ceil(BITS).max(1);
        loop {
            levels.push(vec![0; words]);
            if words == 1 {
                break;
            }
            words = words.div_ceil(BITS);
        }
        Self { levels, len: 0 }
    }
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }
    /// Adds `number`, which is not there.
    pub fn add(&mut self, number: usize) {
        self.len += 1;
        let mut at = number;
        for level in &mut self.levels {
            let word = &mut level[at / BITS];
            let was_empty = *word == 0;
            *word |= 1 << (at % BITS);
            if !was_empty {
                break;
            }
            at /= BITS;
        }
    }
    /// Takes the least number.
    pub fn take_first(&mut self) -> Option<usize> {
        if self.len == 0 {
            return None;
        }
        self.len -= 1;
        let mut first = 0;
        for level in self.levels.iter().rev() {
            first = first * BITS + level[first].trailing_zeros() as usize;
        }
        let mut at = first;
        for level in &mut self.levels {
            let word = &mut level[at / BITS];
            *word &= !(1 << (at % BITS));
            if *word != 0 {
                break;
            }
            at /= BITS;
        }
        Some(first)
    }
}

#[cfg(test)]
mod tests {
    use super::PriorityQueue;
    use std::collections::BTreeSet;

    #[test]
    fn the_least_is_taken_first() {
        let mut state = 1_u64;
        for bound in [0, 1, 63, 64, 65, 4096, 4097, 300_000] {
            let (mut numbers, mut expected) = (PriorityQueue::below(bound), BTreeSet::new());
            for _ in 0..20_000 {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let number = (state >> 33) as usize;
                if number % 5 < 3 && bound > 0 {
                    if expected.insert(number % bound) {
                        numbers.add(number % bound);
                    }
                } else {
                    assert_eq!(numbers.take_first(), expected.pop_first());
                }
                assert_eq!(numbers.is_empty(), expected.is_empty());
            }
        }
    }
}
