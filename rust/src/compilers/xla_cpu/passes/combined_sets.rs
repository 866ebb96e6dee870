//! Which collectives of a block are combined: walks over the block in post-order that add to a set what does not depend on it.
//!
//! Source: XLA's `AllReduceCombiner`.

use crate::compilers::xla_cpu::fusion::op_facts::{Fact, Facts};
use crate::index::{Id, OpId};
use crate::ir::Program;
use rustc_hash::FxHashMap;

/// The most all-reduces in a set.
pub(super) const MAX_COUNT: usize = 256;

/// The most visits of ops of a block in search of members of sets; all-reduces that are left then run alone.
pub(super) const MAX_VISITS: usize = 1 << 24;

/// The end of a list.
pub(super) const NONE: u32 = u32::MAX;

/// The collectives of a block that may be combined, in program order.
pub struct Candidates {
    /// Each with its kind: only collectives of equal kind are combined.
    pub ops: Vec<(OpId, u32)>,
    /// Their bytes, if there is a threshold.
    pub bytes: Vec<u128>,
    /// The number of collectives of each kind.
    pub counts: Vec<usize>,
    /// The byte threshold of a set.
    pub limit: u128,
    /// Whether sets are made from the last collective to the first.
    pub from_last: bool,
    /// The position of the first of them among the ops of the block.
    pub first: usize,
}

/// The dependence graph of a block that the walks visit, in program order, and which of its ops are combined.
///
/// It has only the collectives, and ops with several dependences in the graph: an op with one dependence is replaced by that in its
/// users' lists, and an op with none is left out. That changes neither the post-order of collectives nor which of them depend on
/// which.
pub struct Sets {
    pub(super) ops: Vec<OpId>,
    /// The kinds of collectives; [`NONE`] for other ops.
    pub(super) kinds: Vec<u32>,
    /// Their bytes, if there is a threshold.
    pub(super) bytes: Vec<u128>,
    /// The op that stands for the last op of the block, from which walks start before they go to all ops in order; [`NONE`] if that
    /// has no dependences.
    root: u32,
    /// The ops that each op depends on, all lists concatenated.
    needs: Vec<u32>,
    starts: Vec<u32>,
    /// The first member of each op's set.
    pub(super) first: Vec<u32>,
    /// The next member of each op's set.
    pub(super) next: Vec<u32>,
}

impl Sets {
    /// For the ops of a block from the first collective on; `found` are those that may be combined.
    pub fn new(program: &Program, facts: &Facts, all: &[OpId], found: &Candidates) -> Self {
        let mut visits = Visits::new(program.num_value_ids(), found);
        let mut needs: Vec<usize> = Vec::new();
        for &op in &all[found.first..] {
            let results = program.op_results(op).map(Id::index);
            if !facts.has(op, Fact::CAPTURES) {
                visits.visit(op, program.operands(op).map(Id::index), results);
                continue;
            }
            needs.clear();
            for inner in program.pre_order(op) {
                needs.extend(program.operands(inner).map(Id::index));
            }
            visits.visit(op, needs.iter().copied(), results);
        }
        visits.sets
    }
    /// The first member of the set of each collective that may be combined.
    pub fn by_op(&self) -> FxHashMap<OpId, u32> {
        let sums = self.ops.iter().zip(&self.kinds).zip(&self.first);
        sums.filter(|((_, &kind), _)| kind != NONE).map(|((&op, _), &first)| (op, first)).collect()
    }
    /// Combines collectives of equal kind, up to `limit` bytes; `num_left` has for each kind the number that is not combined yet. A
    /// set ends where one depends on it.
    pub fn combine(&mut self, mut num_left: Vec<usize>, limit: u128) {
        let count = self.ops.len();
        let mut is_left: Vec<bool> = self.kinds.iter().map(|&kind| kind != NONE).collect();
        // For each op the last set that it depends on, counted from 1, and the last walk that has seen it.
        let (mut reached, mut seen) = (vec![0_u32; count], vec![0_u32; count]);
        let (mut done, mut ahead) = (Walk::default(), Walk::default());
        let (mut number, mut visits) = (0, 0);
        let mut total: usize = num_left.iter().sum();
        while total > 0 {
            let Some(first) = done.next(self, &mut seen, DONE) else { break };
            let kind = self.kinds[first as usize];
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
            let mut bytes = self.bytes[first as usize];
            ahead.go_behind(&done);
            // Until none of the kind are left.
            while num_left[kind as usize] > 0 {
                ahead.go_on(&done);
                let Some(at) = ahead.next(self, &mut seen, number) else { break };
                visits += 1;
                let mut depends = false;
                self.for_each_need(at, |need| depends |= reached[need as usize] == number);
                if is_left[at as usize] && self.kinds[at as usize] == kind {
                    let more = bytes.saturating_add(self.bytes[at as usize]);
                    if depends || set.len() == MAX_COUNT || more > limit {
                        break;
                    }
                    bytes = more;
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
    /// The ops in post-order, before any are combined.
    pub(super) fn post_order(&self) -> Vec<u32> {
        let (mut walk, mut seen) = (Walk::default(), vec![0; self.ops.len()]);
        let mut order = Vec::with_capacity(self.ops.len());
        while let Some(at) = walk.next(self, &mut seen, DONE) {
            order.push(at);
            walk.finish();
        }
        order
    }
    /// Combines these ops into one set.
    pub(super) fn join(&mut self, set: &[u32]) {
        let Some(&first) = set.first() else { return };
        for pair in set.windows(2) {
            self.next[pair[0] as usize] = pair[1];
            self.first[pair[1] as usize] = first;
        }
    }
    /// Calls `visit` with the first member of each set that the set of `first` depends on.
    #[inline]
    pub(super) fn for_each_need(&self, first: u32, mut visit: impl FnMut(u32)) {
        let mut at = first as usize;
        loop {
            for &need in &self.needs[self.starts[at] as usize..self.starts[at + 1] as usize] {
                visit(self.first[need as usize]);
            }
            if self.next[at] == NONE {
                break;
            }
            at = self.next[at] as usize;
        }
    }
}

/// The dependence graph while it is built.
pub struct Visits<'c> {
    /// The graph so far.
    pub sets: Sets,
    /// For each value the op of the graph that stands for its producer; [`NONE`] without dependences.
    visited_as: Vec<u32>,
    /// The last op that listed each op as a dependence, so that it is listed once.
    needed_by: Vec<u32>,
    count: u32,
    /// The collectives that are still to come, with their bytes.
    sums: &'c [(OpId, u32)],
    bytes: std::iter::Copied<std::slice::Iter<'c, u128>>,
}

impl<'c> Visits<'c> {
    /// Before the first op of a block; `count` is the number of values.
    pub fn new(count: usize, found: &'c Candidates) -> Self {
        let sets = Sets {
            ops: Vec::new(),
            kinds: Vec::new(),
            bytes: Vec::new(),
            root: NONE,
            needs: Vec::new(),
            starts: vec![0],
            first: Vec::new(),
            next: Vec::new(),
        };
        let (sums, bytes) = (&*found.ops, found.bytes.iter().copied());
        Self { sets, visited_as: vec![NONE; count], needed_by: Vec::new(), count: 0, sums, bytes }
    }
    /// Adds `op`, which reads and writes these values.
    #[inline]
    pub fn visit(
        &mut self,
        op: OpId,
        needs: impl Iterator<Item = usize>,
        makes: impl Iterator<Item = usize>,
    ) {
        self.count += 1;
        let sets = &mut self.sets;
        let first = sets.needs.len();
        for value in needs {
            let need = self.visited_as[value];
            if need != NONE && self.needed_by[need as usize] != self.count {
                self.needed_by[need as usize] = self.count;
                sets.needs.push(need);
            }
        }
        let mut kind = NONE;
        if let Some((&(_, own), rest)) = self.sums.split_first().filter(|(sum, _)| sum.0 == op) {
            (kind, self.sums) = (own, rest);
        }
        let size = if kind == NONE { 0 } else { self.bytes.next().unwrap_or(0) };
        let mut root = sets.ops.len() as u32;
        if sets.needs.len() < first + 2 && kind == NONE {
            root = sets.needs.get(first).copied().unwrap_or(NONE);
            sets.needs.truncate(first);
        } else {
            sets.ops.push(op);
            sets.kinds.push(kind);
            sets.bytes.push(size);
            sets.first.push(root);
            sets.next.push(NONE);
            sets.starts.push(sets.needs.len() as u32);
            self.needed_by.push(0);
        }
        sets.root = root;
        if root != NONE {
            for value in makes {
                self.visited_as[value] = root;
            }
        }
    }
}

/// The mark of ops that were visited by the walk that begins the sets.
const DONE: u32 = u32::MAX;

/// A depth-first walk in post-order over the sets, from the last op of the block.
#[derive(Default)]
struct Walk {
    /// The number of ops from which the walk has started.
    num_roots: u32,
    /// The dependences of the ops on the walk's stack, all lists concatenated.
    needs: Vec<u32>,
    /// Each op on the stack, where its dependences begin, and the next one to visit.
    open: Vec<(u32, usize, usize)>,
    /// The number of ops on the stack of another walk that follow those on this stack.
    num_behind: usize,
}

impl Walk {
    /// Goes to the position of `other` once that finishes its last set.
    ///
    /// Stacks may be as deep as the block is long, and few of their ops are visited: [`Walk::go_on`] copies them one by one.
    fn go_behind(&mut self, other: &Self) {
        self.num_roots = other.num_roots;
        self.needs.clear();
        self.open.clear();
        self.num_behind = other.open.len().saturating_sub(1);
    }
    /// Continues with the next op on the stack of `other`, which has not moved since, where the own stack is empty.
    fn go_on(&mut self, other: &Self) {
        if self.num_behind > 0 && self.open.is_empty() {
            self.num_behind -= 1;
            let (at, _, next) = other.open[self.num_behind];
            let (_, end, _) = other.open[self.num_behind + 1];
            self.needs.extend_from_slice(&other.needs[next..end]);
            self.open.push((at, 0, 0));
        }
    }
    /// The next set all of whose dependences are finished. The walk writes `mark` into `seen` for the sets that it visits.
    fn next(&mut self, sets: &Sets, seen: &mut [u32], mark: u32) -> Option<u32> {
        loop {
            let Some((at, _, next)) = self.open.last_mut() else {
                let root = match self.num_roots {
                    0 => sets.root,
                    roots => Some(roots - 1).filter(|&at| (at as usize) < sets.ops.len())?,
                };
                self.num_roots += 1;
                if root != NONE {
                    self.enter(sets, (seen, mark), root);
                }
                continue;
            };
            let Some(&need) = self.needs.get(*next) else { return Some(*at) };
            *next += 1;
            self.enter(sets, (seen, mark), need);
        }
    }
    #[inline]
    fn enter(&mut self, sets: &Sets, (seen, mark): (&mut [u32], u32), at: u32) {
        let at = sets.first[at as usize];
        let by = &mut seen[at as usize];
        if *by != DONE && *by != mark {
            *by = mark;
            let begin = self.needs.len();
            sets.for_each_need(at, |need| self.needs.push(need));
            self.open.push((at, begin, begin));
        }
    }
    /// Finishes the set that [`Walk::next`] returned last.
    fn finish(&mut self) {
        if let Some((_, begin, _)) = self.open.pop() {
            self.needs.truncate(begin);
        }
    }
}
