//! A topological order of kernels that is maintained while kernels are merged.
//!
//! To find whether one of two kernels depends on the other, only those between them in the order are visited (Pearce and Kelly's
//! algorithm).

/// The most kernels between two that are merged. XLA has no such limit.
const MAX_BETWEEN: usize = 4096;

/// A topological order of the groups of merged nodes.
pub struct TopologicalOrder {
    /// The position of each node that represents a group.
    places: Vec<u32>,
    /// The node at each position.
    at: Vec<u32>,
    /// The group of each node, and the nodes of each group.
    group: Vec<u32>,
    members: Vec<Vec<u32>>,
    /// The nodes that depend on each group.
    needed_by: Vec<Vec<u32>>,
}

impl TopologicalOrder {
    /// An order of `count` nodes, each of which depends only on nodes before it: `edges` are pairs of a node and one that depends
    /// on it.
    pub fn new(count: usize, edges: &[(u32, u32)]) -> Self {
        let mut needed_by = vec![Vec::new(); count];
        for &(from, to) in edges {
            needed_by[from as usize].push(to);
        }
        let all: Vec<u32> = (0..count as u32).collect();
        let members = all.iter().map(|&node| vec![node]).collect();
        Self { places: all.clone(), at: all.clone(), group: all, members, needed_by }
    }
    /// Merges the groups `one` and `other` as `one`, unless one depends on the other through a third, or they are too far apart.
    /// Returns whether it did.
    pub fn merge(&mut self, one: u32, other: u32) -> bool {
        let is_first = self.places[one as usize] <= self.places[other as usize];
        let (first, last) = if is_first { (one, other) } else { (other, one) };
        let (from, to) =
            (self.places[first as usize] as usize, self.places[last as usize] as usize);
        if to - from > MAX_BETWEEN {
            return false;
        }
        // Which of those between need the first one.
        let mut needs = vec![false; to - from + 1];
        needs[0] = true;
        for place in from..to {
            if !needs[place - from] {
                continue;
            }
            for &user in &self.needed_by[self.at[place] as usize] {
                let group = self.group[user as usize];
                let at = self.places[group as usize] as usize;
                if group == last {
                    // The last one may read the first one itself.
                    if place > from {
                        return false;
                    }
                } else if at > from && at < to {
                    needs[at - from] = true;
                }
            }
        }
        // Those that do not need it come first, then both as one, then the others.
        let between: Vec<u32> = self.at[from + 1..to].to_vec();
        let is_after = |index: &usize| needs[index + 1];
        let indices = 0..between.len();
        let before = indices.clone().filter(|index| !is_after(index));
        let after = indices.filter(is_after);
        let order: Vec<u32> = (before.map(|index| between[index]))
            .chain([one])
            .chain(after.map(|index| between[index]))
            .collect();
        for (place, group) in (from..).zip(order) {
            self.at[place] = group;
            self.places[group as usize] = place as u32;
        }
        // The last place is free; what is there needs nothing.
        self.at[to] = other;
        self.places[other as usize] = to as u32;
        let moved = std::mem::take(&mut self.needed_by[other as usize]);
        self.needed_by[one as usize].extend(moved);
        let members = std::mem::take(&mut self.members[other as usize]);
        for &node in &members {
            self.group[node as usize] = one;
        }
        self.members[one as usize].extend(members);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::TopologicalOrder;

    #[test]
    fn what_is_needed_through_a_third_is_not_joined() {
        let mut order = TopologicalOrder::new(4, &[(0, 1), (1, 2), (0, 3)]);
        assert!(!order.merge(0, 2));
        assert!(order.merge(1, 3));
        assert!(!order.merge(0, 2));
        assert!(order.merge(1, 2));
    }

    #[test]
    fn the_order_holds_after_joining() {
        // 0 -> 2 -> 4 and 1 -> 3: joining 2 and 3, then 0 and 3's group would be a cycle through none.
        let mut order = TopologicalOrder::new(5, &[(0, 2), (2, 4), (1, 3)]);
        assert!(order.merge(3, 2));
        assert!(!order.merge(0, 4));
        assert!(order.merge(0, 1));
    }
}
