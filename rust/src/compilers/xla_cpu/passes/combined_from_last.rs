//! Which collectives of a block are combined from the last one to the first, as XLA for TPUs does.
//!
//! Source: the sets in its compiled programs, before and after the pass `all-reduce-combiner`, and the numbers of the combined ops.

use super::combined_sets::{Sets, MAX_COUNT, MAX_VISITS, NONE};

impl Sets {
    /// Combines collectives of equal kind, up to `limit` bytes, from the last in post-order to the first; `num_left` has for each kind
    /// the number that is not combined yet. What a set depends on is left out of it, and the search goes on before it.
    pub fn combine_from_last(&mut self, mut num_left: Vec<usize>, limit: u128) {
        let order = self.post_order();
        let mut places = vec![0_u32; self.ops.len()];
        for (&at, place) in order.iter().zip(0..) {
            places[at as usize] = place;
        }
        let mut is_left: Vec<bool> = self.kinds.iter().map(|&kind| kind != NONE).collect();
        // For each op the last set that depends on it, counted from 1.
        let mut needed = vec![0_u32; self.ops.len()];
        let (mut open, mut number, mut visits) = (Vec::new(), 0, 0);
        for (place, &last) in order.iter().enumerate().rev() {
            let kind = self.kinds[last as usize] as usize;
            if !std::mem::take(&mut is_left[last as usize]) {
                continue;
            }
            num_left[kind] -= 1;
            number += 1;
            let mut set = vec![last];
            let mut bytes = self.bytes[last as usize];
            open.push(last);
            for (before, &at) in order[..place].iter().enumerate().rev() {
                // Marks what the set depends on, down to here.
                while let Some(op) = open.pop() {
                    self.for_each_need(op, |need| {
                        let mut member = need;
                        while member != NONE {
                            if std::mem::replace(&mut needed[member as usize], number) != number
                                && places[member as usize] as usize > before
                            {
                                open.push(member);
                            }
                            member = self.next[member as usize];
                        }
                    });
                }
                if num_left[kind] == 0 || visits > MAX_VISITS {
                    break;
                }
                visits += 1;
                if needed[at as usize] == number {
                    open.push(at);
                } else if is_left[at as usize] && self.kinds[at as usize] as usize == kind {
                    let more = bytes.saturating_add(self.bytes[at as usize]);
                    if set.len() == MAX_COUNT || more > limit {
                        break;
                    }
                    bytes = more;
                    is_left[at as usize] = false;
                    num_left[kind] -= 1;
                    set.push(at);
                    open.push(at);
                }
            }
            open.clear();
            set.sort_unstable();
            self.join(&set);
        }
        self.split_cycles();
    }
    /// Takes sets apart that depend on each other.
    fn split_cycles(&mut self) {
        let count = self.ops.len();
        let (mut num_needs, mut users) = (vec![0_u32; count], vec![Vec::new(); count]);
        for first in (0..count as u32).filter(|&at| self.first[at as usize] == at) {
            self.for_each_need(first, |need| {
                num_needs[first as usize] += 1;
                users[need as usize].push(first);
            });
        }
        let is_ready = |&at: &u32| self.first[at as usize] == at && num_needs[at as usize] == 0;
        let mut ready: Vec<u32> = (0..count as u32).filter(is_ready).collect();
        while let Some(at) = ready.pop() {
            for &user in &users[at as usize] {
                num_needs[user as usize] -= 1;
                if num_needs[user as usize] == 0 {
                    ready.push(user);
                }
            }
        }
        for at in 0..count as u32 {
            if num_needs[self.first[at as usize] as usize] > 0 {
                self.first[at as usize] = at;
                self.next[at as usize] = NONE;
            }
        }
    }
}
