//! The bytes that are taken in vector memory at each position of a schedule.

/// The most of what is taken in ranges of positions, which ranges can be added to: a segment tree.
pub struct VectorMemory {
    /// The number of leaves, a power of two; leaf `i` is node `leaves + i`.
    leaves: usize,
    /// The most below each node, without what was added to the nodes above it.
    most: Vec<u128>,
    /// What was added to all below each node.
    added: Vec<u128>,
}

impl VectorMemory {
    /// With nothing taken at each of `count` positions.
    pub fn new(count: usize) -> Self {
        let leaves = count.next_power_of_two();
        Self { leaves, most: vec![0; 2 * leaves], added: vec![0; leaves] }
    }
    /// Takes `bytes` from position `first` to `last`.
    pub fn take(&mut self, (first, last): (u32, u32), bytes: u128) {
        let (mut low, mut high) =
            (first as usize + self.leaves, (last as usize).min(self.leaves - 1) + self.leaves + 1);
        let ends = (low, high - 1);
        while low < high {
            for node in [low & 1, high & 1].into_iter().zip([low, high.wrapping_sub(1)]) {
                if let (1, node) = node {
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
                self.most[node] = self.most[2 * node]
                    .max(self.most[2 * node + 1])
                    .saturating_add(self.added[node]);
                node /= 2;
            }
        }
    }
    /// The most that is taken at a position from `first` to `last`.
    pub fn most(&self, (first, last): (u32, u32)) -> u128 {
        self.most_below(1, (0, self.leaves), (first as usize, last as usize + 1))
    }
    fn most_below(
        &self,
        node: usize,
        (from, to): (usize, usize),
        (low, high): (usize, usize),
    ) -> u128 {
        if high <= from || to <= low {
            return 0;
        }
        if low <= from && to <= high {
            return self.most[node];
        }
        let middle = (from + to) / 2;
        let below = self.most_below(2 * node, (from, middle), (low, high)).max(self.most_below(
            2 * node + 1,
            (middle, to),
            (low, high),
        ));
        below.saturating_add(self.added[node])
    }
}

#[cfg(test)]
mod tests {
    use super::VectorMemory;

    #[test]
    fn the_most_is_that_of_all_positions() {
        let mut state: u64 = 1;
        let mut below = |limit: u32| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) as u32 % limit
        };
        for count in [1, 2, 3, 7, 16, 61] {
            let mut memory = VectorMemory::new(count as usize);
            let mut plain = vec![0_u128; count as usize];
            for _ in 0..200 {
                let first = below(count);
                let last = first + below(count - first);
                let bytes = u128::from(below(1000));
                memory.take((first, last), bytes);
                plain[first as usize..=last as usize].iter_mut().for_each(|it| *it += bytes);
                let first = below(count);
                let last = first + below(count - first);
                let most = plain[first as usize..=last as usize].iter().copied().max();
                assert_eq!(Some(memory.most((first, last))), most);
            }
        }
    }
}
