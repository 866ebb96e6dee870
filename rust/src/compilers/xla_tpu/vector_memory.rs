//! The bytes that are taken in vector memory at each position of a schedule.

/// The most that is taken in ranges of positions, in a segment tree: ranges can be added to.
pub struct VectorMemory {
    /// The number of leaves, a power of two; leaf `i` is node `leaves + i`.
    leaves: usize,
    /// The most below each node, without what was added to the nodes above it.
    most: Vec<u64>,
    /// What was added to all below each node.
    added: Vec<u64>,
}

impl VectorMemory {
    /// With nothing taken at each of `count` positions.
    pub fn new(count: usize) -> Self {
        let leaves = count.next_power_of_two();
        Self { leaves, most: vec![0; 2 * leaves], added: vec![0; leaves] }
    }
    /// The most that is taken at a position.
    pub fn most(&self) -> u64 {
        self.most[1]
    }
    /// Takes `bytes` from position `first` to `last`.
    pub fn take(&mut self, (first, last): (u32, u32), bytes: u64) {
        let (mut low, mut high) = (first as usize + self.leaves, last as usize + self.leaves + 1);
        let ends = (low, high - 1);
        while low < high {
            for (is_whole, node) in [(low & 1 == 1, low), (high & 1 == 1, high - 1)] {
                if is_whole {
                    self.most[node] = self.most[node].saturating_add(bytes);
                    if node < self.leaves {
                        self.added[node] = self.added[node].saturating_add(bytes);
                    }
                }
            }
            low = low.div_ceil(2);
            high /= 2;
        }
        for end in [ends.0, ends.1] {
            let mut node = end / 2;
            while node > 0 {
                let below = self.most[2 * node].max(self.most[2 * node + 1]);
                self.most[node] = below.saturating_add(self.added[node]);
                node /= 2;
            }
        }
    }
    /// The last position from `first` to `last` at which more than `limit` is taken.
    pub fn last_over(&self, (first, last): (u32, u32), limit: u64) -> Option<u32> {
        self.last_below(1, (0, self.leaves), (first as usize, last as usize + 1), limit)
    }
    fn last_below(
        &self,
        node: usize,
        (from, to): (usize, usize),
        (low, high): (usize, usize),
        limit: u64,
    ) -> Option<u32> {
        if high <= from || to <= low || self.most[node] <= limit {
            return None;
        }
        if node >= self.leaves {
            return Some(from as u32);
        }
        let Some(limit) = limit.checked_sub(self.added[node]) else {
            return Some(to.min(high) as u32 - 1);
        };
        let middle = (from + to) / 2;
        self.last_below(2 * node + 1, (middle, to), (low, high), limit)
            .or_else(|| self.last_below(2 * node, (from, middle), (low, high), limit))
    }
}

#[cfg(test)]
mod tests {
    use super::VectorMemory;

    #[test]
    fn positions_over_a_limit_are_those_of_a_list() {
        let mut state: u64 = 1;
        let mut below = |limit: u32| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) as u32 % limit
        };
        for count in [1, 2, 3, 7, 16, 61] {
            let mut memory = VectorMemory::new(count as usize);
            let mut plain = vec![0_u64; count as usize];
            for _ in 0..200 {
                let first = below(count);
                let last = first + below(count - first);
                let bytes = u64::from(below(1000));
                memory.take((first, last), bytes);
                plain[first as usize..=last as usize].iter_mut().for_each(|it| *it += bytes);
                let most = plain.iter().copied().max().unwrap_or(0);
                assert_eq!(memory.most(), most);
                let first = below(count);
                let last = first + below(count - first);
                let limit = most.saturating_sub(u64::from(below(2000)));
                let over = (first..=last).rev().find(|&at| plain[at as usize] > limit);
                assert_eq!(memory.last_over((first, last), limit), over);
            }
        }
    }
}
