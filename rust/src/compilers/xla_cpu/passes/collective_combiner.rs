//! Collectives that XLA combines into one.
//!
//! XLA combines those of a block that reduce equal elements in the same way among the same devices, on GPUs also those that gather
//! among the same devices, up to a number of bytes. The first in post-order that is
//! left begins a set, which takes in the others of its kind until one depends on the set. What was combined counts as a dependence
//! for the sets after it, in the post-order that is then.
//!
//! Source: XLA's `AllReduceCombiner`, `AllGatherCombiner` and `ReduceScatterCombiner`; they take at most 256, that of hosts of any size.

use crate::compilers::target::Compiler;
use crate::compilers::xla_cpu::fusion::op_facts::{Fact, Facts};
use crate::index::{Id, OpId, StrId, ValueId};
use crate::ir::Program;
use crate::work::cached::Works;
use rustc_hash::FxHashMap;

/// The most all-reduces that run as one.
const MAX_COUNT: usize = 256;

/// The most visits of ops of a block in search of what sets take in; all-reduces that are left then run alone.
const MAX_VISITS: usize = 1 << 24;

/// The end of a list.
const NONE: u32 = u32::MAX;

/// What has to be equal: op, element type, reduction, groups of devices.
type Key<'a> = (StrId, &'a str, StrId, &'a str);

/// The sets that `compiler` combines among the ops of a block, by op. Those that run alone are in sets of one.
pub fn combined(
    program: &Program,
    works: &mut Works<'_>,
    (facts, compiler): (&Facts, Compiler),
    ops: &[OpId],
) -> FxHashMap<OpId, u32> {
    let mut sums: Vec<(OpId, u32)> = Vec::new();
    let mut kinds: FxHashMap<Key<'_>, u32> = FxHashMap::default();
    let mut counts: Vec<usize> = Vec::new();
    let mut sizes: Vec<u128> = Vec::new();
    let limit = compiler.combined_bytes();
    let is_sum = |op: &OpId| {
        facts.has(*op, Fact::REDUCES)
            || limit.is_some() && facts.has(*op, Fact::OPAQUE) && program.op_name(*op) == GATHER
    };
    let Some(first) = ops.iter().position(is_sum) else { return FxHashMap::default() };
    // What comes before all of them needs none.
    let ops = &ops[first..];
    for &op in ops.iter().filter(|op| is_sum(op)) {
        let bytes = limit.map_or(0, |_| {
            program.op_results(op).next().map_or(0, |value| works.tensors.bytes(value))
        });
        if limit.is_some_and(|limit| bytes > limit) {
            continue;
        }
        if let Some(key) = key(program, op, compiler) {
            let next = kinds.len() as u32;
            let kind = *kinds.entry(key).or_insert(next);
            counts.resize(kinds.len(), 0);
            counts[kind as usize] += 1;
            sums.push((op, kind));
            sizes.push(bytes);
        }
    }
    if kinds.is_empty() {
        return FxHashMap::default();
    }
    let mut sets = Sets::new(program, facts, ops, (&sums, &sizes));
    sets.combine(counts, limit.unwrap_or(u128::MAX));
    let sums = sets.ops.iter().zip(&sets.kinds).zip(&sets.first);
    sums.filter(|((_, &kind), _)| kind != NONE).map(|((&op, _), &first)| (op, first)).collect()
}

/// The ops of a block that walks visit, numbered in its order, and which of them run as one.
///
/// Walks visit only all-reduces, and ops that need several of what is visited: an op that needs one thing is replaced by that
/// in the needs of others, and one that needs nothing is left out. That changes neither the order of all-reduces nor which of
/// them depend on which.
struct Sets {
    ops: Vec<OpId>,
    /// The kinds of those that are all-reduces; [`NONE`] of others.
    kinds: Vec<u32>,
    /// Their bytes, where these are limited.
    bytes: Vec<u128>,
    /// What the last op of the block is visited as, where walks begin before they go to all in order; [`NONE`] if it needs nothing.
    root: u32,
    /// The ops that each visited op depends on, one op after the other.
    needs: Vec<u32>,
    starts: Vec<u32>,
    /// The first op that each runs as one with.
    first: Vec<u32>,
    /// The next op that each runs as one with.
    next: Vec<u32>,
}

impl Sets {
    /// Of the ops of a block from the first all-reduce on; those that may be combined are `sums`, with
    /// their kinds and in order.
    fn new(
        program: &Program,
        facts: &Facts,
        all: &[OpId],
        (mut sums, sizes): (&[(OpId, u32)], &[u128]),
    ) -> Self {
        let mut sizes = sizes.iter().copied();
        let mut bytes: Vec<u128> = Vec::new();
        // What makes each value so far is visited as; values that come before need nothing.
        let mut visited_as = vec![NONE; program.num_value_ids()];
        let mut root = NONE;
        let (mut ops, mut kinds): (Vec<OpId>, Vec<u32>) = (Vec::new(), Vec::new());
        // The last op that needs each, so that it is listed once.
        let mut needed_by: Vec<OpId> = Vec::new();
        let (mut needs, mut starts): (Vec<u32>, Vec<u32>) = (Vec::new(), vec![0]);
        for &op in all {
            let first = needs.len();
            let mut add = |value: ValueId| {
                let need = visited_as[value.index()];
                if need != NONE && needed_by[need as usize] != op {
                    needed_by[need as usize] = op;
                    needs.push(need);
                }
            };
            for value in program.operands(op) {
                add(value);
            }
            if facts.has(op, Fact::CAPTURES) {
                for inner in program.pre_order(op).skip(1) {
                    program.operands(inner).for_each(&mut add);
                }
            }
            let mut kind = NONE;
            if let Some((&(_, own), rest)) = sums.split_first().filter(|(sum, _)| sum.0 == op) {
                (kind, sums) = (own, rest);
            }
            let size = if kind == NONE { 0 } else { sizes.next().unwrap_or(0) };
            root = ops.len() as u32;
            if needs.len() < first + 2 && kind == NONE {
                root = needs.get(first).copied().unwrap_or(NONE);
                needs.truncate(first);
            } else {
                ops.push(op);
                kinds.push(kind);
                bytes.push(size);
                needed_by.push(OpId::NONE);
                starts.push(needs.len() as u32);
            }
            if root != NONE {
                for value in program.op_results(op) {
                    visited_as[value.index()] = root;
                }
            }
        }
        let (first, next) = ((0..ops.len() as u32).collect(), vec![NONE; ops.len()]);
        Self { ops, kinds, bytes, root, needs, starts, first, next }
    }
    /// Combines those of equal kinds, up to `limit` bytes; `num_left` has the number of those of each kind that are not combined yet.
    fn combine(&mut self, mut num_left: Vec<usize>, limit: u128) {
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
            ahead.go_to(&done);
            ahead.finish();
            // Until none of the kind are left.
            while num_left[kind as usize] > 0 {
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
    /// Makes these ops run as one.
    fn join(&mut self, set: &[u32]) {
        let Some(&first) = set.first() else { return };
        for pair in set.windows(2) {
            self.next[pair[0] as usize] = pair[1];
            self.first[pair[1] as usize] = first;
        }
    }
    /// Calls `visit` with the first of each set that the set of `first` needs.
    #[inline]
    fn for_each_need(&self, first: u32, mut visit: impl FnMut(u32)) {
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

/// The mark of ops that the walk without look-ahead has seen.
const DONE: u32 = u32::MAX;

/// A walk over the sets that are visited, each after those that it needs, depth first from the last op.
#[derive(Default)]
struct Walk {
    /// The number of ops that the walk has begun at.
    num_roots: u32,
    /// The dependences of the ops that are on the stack of the walk, one op after the other.
    needs: Vec<u32>,
    /// Each op that is open, where its needs begin, and the next one.
    open: Vec<(u32, usize, usize)>,
}

impl Walk {
    /// Goes where `other` is.
    fn go_to(&mut self, other: &Self) {
        self.num_roots = other.num_roots;
        self.needs.clone_from(&other.needs);
        self.open.clone_from(&other.open);
    }
    /// The next set, of which all that it needs are finished. What this walk sees gets its `mark` in `seen`.
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
    /// Goes on behind the set that came last.
    fn finish(&mut self) {
        if let Some((_, begin, _)) = self.open.pop() {
            self.needs.truncate(begin);
        }
    }
}

/// The name of all-reduces.
const SUM: &str = "stablehlo.all_reduce";

/// The name of all-gathers.
const GATHER: &str = "stablehlo.all_gather";

/// The name of reduce-scatters.
const SCATTER: &str = "stablehlo.reduce_scatter";

/// Whether `op` is a reduce-scatter that partitioning made, which `compiler` leaves as an all-reduce and a slice.
pub fn is_expanded_scatter(program: &Program, compiler: Compiler, op: OpId) -> bool {
    !compiler.creates_reduce_scatters()
        && program.op_name(op) == SCATTER
        && program.cause(op).is_some()
}

/// What has to be equal for `op`, if it is a collective of one operand that `compiler` combines. Hosts reduce `bf16` as `f32`.
fn key(program: &Program, op: OpId, compiler: Compiler) -> Option<Key<'_>> {
    let has_limit = compiler.combined_bytes().is_some();
    let name = program.op_name(op);
    let is_scatter = has_limit && name == SCATTER || is_expanded_scatter(program, compiler, op);
    let groups = program.attr(op, "replica_groups").unwrap_or_default();
    if has_limit && name == GATHER && program.num_operands(op) == 1 {
        return Some((program.op_name_id(op), "", StrId::NONE, groups));
    }
    if !(name == SUM || is_scatter) || program.num_operands(op) != 1 {
        return None;
    }
    // What is expanded is an all-reduce like others.
    let kind = if has_limit { program.op_name_id(op) } else { StrId::NONE };
    let region = program.op_regions(op).next()?;
    let inner = program.block_ops(program.region_entry(region).get()?).next()?;
    let text = program.value_type_text(program.result(op, 0));
    let element = text.rsplit(['x', '<']).next().unwrap_or_default();
    let element = element.strip_suffix('>').unwrap_or(element);
    let element = if compiler.is_for_hosts() && element == "bf16" { "f32" } else { element };
    Some((kind, element, program.op_name_id(inner), groups))
}
