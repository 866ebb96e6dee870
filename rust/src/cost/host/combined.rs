//! All-reduces that run as one.
//!
//! XLA combines those of a block that reduce equal elements in the same way among the same devices. The first in post-order that is
//! left begins a set, which takes in the others of its kind until one depends on the set. What was combined counts as a dependence
//! for the sets after it, in the post-order that is then.
//!
//! Source: XLA's `AllReduceCombiner`; that of hosts has no limit in bytes, and takes at most 256.

use crate::index::{BlockId, Id, OpId, StrId};
use crate::ir::{Program, ValueDef};
use rustc_hash::FxHashMap;

/// The most all-reduces that run as one.
const MAX_COUNT: usize = 256;

/// The most visits of ops of a block in search of what sets take in; all-reduces that are left then run alone.
const MAX_VISITS: usize = 1 << 24;

/// The end of a list.
const NONE: u32 = u32::MAX;

/// What has to be equal: element type, reduction, groups of devices.
type Key<'a> = (&'a str, StrId, &'a str);

/// The sets of all-reduces of one block, by op. Those that run alone are in sets of one.
pub fn combined(program: &Program, block: BlockId) -> FxHashMap<OpId, u32> {
    let names = [SUM, SCATTER].map(|name| program.strings().find(name));
    if names == [None, None] {
        return FxHashMap::default();
    }
    let is_named = |op: OpId| names.contains(&Some(program.op_name_id(op)));
    let ops: Vec<OpId> = program.block_ops(block).collect();
    let mut kind_of: Vec<u32> = vec![NONE; ops.len()];
    let mut kinds: FxHashMap<Key<'_>, u32> = FxHashMap::default();
    let mut counts: Vec<usize> = Vec::new();
    for (kind_of, &op) in kind_of.iter_mut().zip(&ops) {
        if !is_named(op) {
            continue;
        }
        if let Some(key) = key(program, op) {
            let next = kinds.len() as u32;
            *kind_of = *kinds.entry(key).or_insert(next);
            counts.resize(kinds.len(), 0);
            counts[*kind_of as usize] += 1;
        }
    }
    if kinds.is_empty() {
        return FxHashMap::default();
    }
    let is_sum = |at: usize| kind_of[at] != NONE;
    let mut sets = Sets::new(program, &ops, is_sum);
    sets.combine(&kind_of, counts);
    let sums = ops.iter().enumerate().filter(|&(at, _)| kind_of[at] != NONE);
    sums.map(|(at, &op)| (op, sets.first[at])).collect()
}

/// The ops of a block, by their places in it, and which of them run as one.
///
/// Walks visit only all-reduces, and ops that need several of what is visited: an op that needs one thing is replaced by that
/// in the needs of others, and one that needs nothing is left out. That changes neither the order of all-reduces nor which of
/// them depend on which.
struct Sets {
    /// The places that walks begin at, one after the other: that of the last op, then all that are visited.
    roots: Vec<u32>,
    /// The places of what each op that is visited needs, one op after the other.
    needs: Vec<u32>,
    starts: Vec<usize>,
    /// The place of the first op that each runs as one with.
    first: Vec<u32>,
    /// The next op that each runs as one with.
    next: Vec<u32>,
}

impl Sets {
    fn new(program: &Program, ops: &[OpId], is_sum: impl Fn(usize) -> bool) -> Self {
        let count = ops.len() as u32;
        let mut places = vec![NONE; program.num_op_ids()];
        for (&op, place) in ops.iter().zip(0..) {
            places[op.index()] = place;
        }
        let mut visited_as: Vec<u32> = (0..count).collect();
        // The last op that needs each, so that it is listed once.
        let mut needed_by = vec![NONE; ops.len()];
        let mut needs = Vec::new();
        let mut starts = Vec::with_capacity(ops.len() + 1);
        starts.push(0);
        for (at, &op) in (0..count).zip(ops) {
            let first = needs.len();
            let mut add = |inner: OpId| {
                for value in program.operands(inner) {
                    let ValueDef::Result(def) = program.def(value) else { continue };
                    let place = places[def.index()];
                    if def == op || place == NONE {
                        continue;
                    }
                    let need = visited_as[place as usize];
                    if need != NONE && std::mem::replace(&mut needed_by[need as usize], at) != at {
                        needs.push(need);
                    }
                }
            };
            add(op);
            if program.num_regions(op) > 0 {
                program.pre_order(op).skip(1).for_each(add);
            }
            if needs.len() < first + 2 && !is_sum(at as usize) {
                visited_as[at as usize] = needs.get(first).copied().unwrap_or(NONE);
                needs.truncate(first);
            }
            starts.push(needs.len());
        }
        let last = visited_as.last().copied().filter(|&last| last != NONE);
        let all = (0..count).filter(|&at| visited_as[at as usize] == at);
        let roots = last.into_iter().chain(all).collect();
        let (first, next) = ((0..count).collect(), vec![NONE; ops.len()]);
        Self { roots, needs, starts, first, next }
    }
    /// Combines all-reduces of equal kinds.
    fn combine(&mut self, kind_of: &[u32], mut num_left: Vec<usize>) {
        let mut is_left: Vec<bool> = kind_of.iter().map(|&kind| kind != NONE).collect();
        // For each op the last set that it depends on, counted from 1.
        let mut reached = vec![0_u32; self.first.len()];
        let mut done = Walk::new(self.first.len());
        let mut ahead = Walk::new(self.first.len());
        let (mut number, mut visits) = (0, 0);
        let mut total: usize = num_left.iter().sum();
        while total > 0 {
            let Some(first) = done.next(self) else { break };
            let kind = kind_of[first as usize];
            if !std::mem::take(&mut is_left[first as usize]) {
                done.finish();
                continue;
            }
            num_left[kind as usize] -= 1;
            total -= 1;
            if num_left[kind as usize] == 0 || visits > MAX_VISITS {
                done.finish();
                continue;
            }
            number += 1;
            reached[first as usize] = number;
            let mut set: Vec<u32> = vec![first];
            ahead.go_to(&done);
            ahead.finish();
            // Until none of the kind are left.
            while num_left[kind as usize] > 0 {
                let Some(at) = ahead.next(self) else { break };
                visits += 1;
                let mut depends = false;
                self.for_each_need(at, |need| depends |= reached[need as usize] == number);
                if is_left[at as usize] && kind_of[at as usize] == kind {
                    if depends || set.len() == MAX_COUNT {
                        break;
                    }
                    set.push(at);
                    is_left[at as usize] = false;
                    num_left[kind as usize] -= 1;
                    total -= 1;
                    depends = true;
                }
                reached[at as usize] = if depends { number } else { 0 };
                ahead.finish();
            }
            // What the others need comes before the set then.
            for &other in &set[1..] {
                self.for_each_need(other, |need| done.needs.push(need));
            }
            self.join(&set);
        }
    }
    /// Makes the ops at these places run as one.
    fn join(&mut self, set: &[u32]) {
        let Some(&first) = set.first() else { return };
        for pair in set.windows(2) {
            self.next[pair[0] as usize] = pair[1];
            self.first[pair[1] as usize] = first;
        }
    }
    /// Calls `visit` with the first of each set that the set of `first` needs.
    fn for_each_need(&self, first: u32, mut visit: impl FnMut(u32)) {
        let mut at = first;
        while at != NONE {
            for &need in &self.needs[self.starts[at as usize]..self.starts[at as usize + 1]] {
                visit(self.first[need as usize]);
            }
            at = self.next[at as usize];
        }
    }
}

/// A walk over the sets that are visited, each after those that it needs, depth first from the last op.
struct Walk {
    is_seen: Vec<bool>,
    /// The number of roots that the walk has begun at.
    num_roots: usize,
    /// What the ops that are open need, one after the other.
    needs: Vec<u32>,
    /// Each op that is open, where its needs begin, and the next one.
    open: Vec<(u32, usize, usize)>,
}

impl Walk {
    fn new(count: usize) -> Self {
        let (needs, open) = (Vec::new(), Vec::new());
        Self { is_seen: vec![false; count], num_roots: 0, needs, open }
    }
    /// Goes where `other`, a walk over as many, is.
    fn go_to(&mut self, other: &Self) {
        self.is_seen.copy_from_slice(&other.is_seen);
        self.num_roots = other.num_roots;
        self.needs.clone_from(&other.needs);
        self.open.clone_from(&other.open);
    }
    /// The next set, of which all that it needs are finished.
    fn next(&mut self, sets: &Sets) -> Option<u32> {
        loop {
            let Some((at, _, next)) = self.open.last_mut() else {
                let &root = sets.roots.get(self.num_roots)?;
                self.num_roots += 1;
                self.enter(sets, root);
                continue;
            };
            let Some(&need) = self.needs.get(*next) else { return Some(*at) };
            *next += 1;
            self.enter(sets, need);
        }
    }
    fn enter(&mut self, sets: &Sets, at: u32) {
        let at = sets.first[at as usize];
        if !std::mem::replace(&mut self.is_seen[at as usize], true) {
            let begin = self.needs.len();
            sets.for_each_need(at, |need| self.needs.push(need));
            self.open.push((at, begin, begin));
        }
    }
    /// Goes on behind the set that came last.
    fn finish(&mut self) {
        if let Some((_, begin, _)) = self.open.pop() {
            self.needs.truncate(begin);
        }
    }
}

/// The name of all-reduces.
const SUM: &str = "stablehlo.all_reduce";

/// The name of reduce-scatters.
const SCATTER: &str = "stablehlo.reduce_scatter";

/// Whether `op` is a reduce-scatter that partitioning made, which XLA writes as an all-reduce and a slice for hosts.
pub fn is_scatter(program: &Program, op: OpId) -> bool {
    program.op_name(op) == SCATTER && program.cause(op).is_some()
}

/// What has to be equal for `op`, if it is an all-reduce of one operand.
fn key(program: &Program, op: OpId) -> Option<Key<'_>> {
    let is_sum = program.op_name(op) == SUM || is_scatter(program, op);
    if !is_sum || program.num_operands(op) != 1 {
        return None;
    }
    let region = program.op_regions(op).next()?;
    let inner = program.block_ops(program.region_entry(region).get()?).next()?;
    let groups = program.attr(op, "replica_groups").unwrap_or_default();
    let text = program.value_type_text(program.result(op, 0));
    let element = text.rsplit(['x', '<']).next().unwrap_or_default();
    Some((element, program.op_name_id(inner), groups))
}
