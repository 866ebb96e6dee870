//! A topological order of kernels that is maintained while kernels are merged.
//!
//! To find whether one of two kernels depends on the other, only those between them in the order are visited (Pearce and Kelly's
//! algorithm).

use crate::inline_list::InlineList;

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
    members: Vec<InlineList<u32, 4>>,
    /// The nodes that depend on each group.
    needed_by: Vec<InlineList<u32, 4>>,
    /// The last search that visited each place, and the number of searches.
    visited: Vec<u32>,
    num_searches: u32,
}

impl TopologicalOrder {
    /// An order of `count` nodes, each of which depends only on nodes before it: `edges` are pairs of a node and one that depends
    /// on it.
    pub fn new(count: usize, edges: &[(u32, u32)]) -> Self {
        let mut needed_by = vec![InlineList::new(); count];
        for &(from, to) in edges {
            needed_by[from as usize].push(to);
        }
        let all: Vec<u32> = (0..count as u32).collect();
        let members = all.iter().map(|&node| InlineList::of(&[node])).collect();
        let visited = vec![0; count];
        Self {
            places: all.clone(),
            at: all.clone(),
            group: all,
            members,
            needed_by,
            visited,
            num_searches: 0,
        }
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
        let Some(num_after) = self.visit_between(from, to) else { return false };
        if num_after == 0 {
            // Those between stay; both come behind them.
            self.put(one, to);
            self.put(other, from);
        } else {
            // Those that do not need the first one come first, then both as one, then the others.
            let between: Vec<u32> = self.at[from + 1..to].to_vec();
            let is_after: Vec<bool> =
                (from + 1..to).map(|place| self.visited[place] == self.num_searches).collect();
            let part = |wanted: bool| {
                let all = between.iter().zip(&is_after);
                all.filter(move |(_, &is_after)| is_after == wanted).map(|(&group, _)| group)
            };
            let order: Vec<u32> = part(false).chain([one]).chain(part(true)).collect();
            for (place, group) in (from..).zip(order) {
                self.put(group, place);
            }
            // The last place is free; what is there needs nothing.
            self.put(other, to);
        }
        let moved = std::mem::take(&mut self.needed_by[other as usize]);
        self.needed_by[one as usize].extend(moved.iter().copied());
        let members = std::mem::take(&mut self.members[other as usize]);
        for &node in &members {
            self.group[node as usize] = one;
        }
        self.members[one as usize].extend(members.iter().copied());
        true
    }
    /// Visits what lies between two places and needs the group at the first of them, and returns how many groups that are; `None`
    /// if one of them is needed by the group at the last place.
    fn visit_between(&mut self, from: usize, to: usize) -> Option<usize> {
        self.num_searches += 1;
        let last = self.at[to];
        let (mut left, mut count) = (vec![from], 0);
        while let Some(place) = left.pop() {
            for &user in &self.needed_by[self.at[place] as usize] {
                let group = self.group[user as usize];
                let at = self.places[group as usize] as usize;
                if group == last {
                    // The last one may read the first one itself.
                    if place > from {
                        return None;
                    }
                } else if at > from && at < to && self.visited[at] != self.num_searches {
                    self.visited[at] = self.num_searches;
                    count += 1;
                    left.push(at);
                }
            }
        }
        Some(count)
    }
    fn put(&mut self, group: u32, place: usize) {
        self.at[place] = group;
        self.places[group as usize] = place as u32;
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
