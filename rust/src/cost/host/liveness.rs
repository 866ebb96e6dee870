//! From when to when each item of a block is in memory, and how much is at once.

use super::graph::{Graph, NONE};
use super::order::breadth_first;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// The position after the last kernel.
const END: u32 = u32::MAX;

/// The most outputs that are tried for each item that needs memory.
const MAX_TRIED: usize = 16;

/// What the items of a block take.
pub struct Liveness {
    /// The kernels in the order in which they run.
    pub order: Vec<u32>,
    /// For each item the positions from which and until which memory is taken for it; `None` where none is.
    pub spans: Vec<Option<(u32, u32)>>,
    /// The item in whose memory each is from its first position on; [`NONE`] if that is its own.
    pub shares: Vec<u32>,
    /// The bytes that are taken at each position, besides arguments and outputs.
    pub taken: Vec<u128>,
}

/// The memory of an output, which others may take before the output is made.
struct Output {
    item: u32,
    made: u32,
    /// The last position at which another item is in it; before the first if there is none.
    busy_until: Option<u32>,
}

/// A run through a block.
struct Run<'g> {
    graph: &'g Graph,
    /// The last position at which each item is read.
    last: Vec<u32>,
    /// Results, and the arguments whose memory they may take.
    taking_over: FxHashMap<u32, u32>,
    /// The memory of outputs, and their places by size.
    outputs: Vec<Output>,
    by_size: BTreeMap<u128, Vec<u32>>,
    /// The output whose memory each item is in before that is made.
    in_output: Vec<u32>,
    /// Items that are in the memory of outputs.
    is_output: Vec<bool>,
    spans: Vec<Option<(u32, u32)>>,
    shares: Vec<u32>,
}

impl Liveness {
    /// Of `graph`, where the result of each of `donated` may take the memory of an argument. `has_outputs` says whether other
    /// results have memory of their own, outside of what is counted.
    pub fn new(graph: &Graph, donated: &[(usize, u32)], has_outputs: bool) -> Self {
        let order = breadth_first(graph);
        let mut run = Run::new(graph, &order, donated);
        let mut position_of = vec![0_u32; graph.kernels.len()];
        for (&kernel, at) in order.iter().zip(0..) {
            position_of[kernel as usize] = at;
        }
        if has_outputs {
            run.reserve_outputs(&position_of);
        }
        for (&kernel, at) in order.iter().zip(0..) {
            run.place_results(kernel, at);
        }
        let taken = run.taken(order.len());
        Self { order, spans: run.spans, shares: run.shares, taken }
    }
}

impl<'g> Run<'g> {
    fn new(graph: &'g Graph, order: &[u32], donated: &[(usize, u32)]) -> Self {
        let count = graph.items.len();
        let mut last = vec![0; count];
        for (&kernel, at) in order.iter().zip(0..) {
            for read in graph.reads(kernel) {
                last[graph.stored_as(read.item) as usize] = at;
            }
        }
        for &item in graph.returned.iter().filter(|&&item| item != NONE) {
            last[graph.stored_as(item) as usize] = END;
        }
        let mut taking_over = FxHashMap::default();
        for &(result, argument) in donated {
            if let Some(&item) = graph.returned.get(result).filter(|&&item| item != NONE) {
                taking_over.entry(graph.stored_as(item)).or_insert(argument);
            }
        }
        Self {
            graph,
            last,
            taking_over,
            outputs: Vec::new(),
            by_size: BTreeMap::new(),
            in_output: vec![NONE; count],
            is_output: vec![false; count],
            spans: vec![None; count],
            shares: vec![NONE; count],
        }
    }
    /// Keeps memory for the results that take no argument's.
    fn reserve_outputs(&mut self, position_of: &[u32]) {
        for &item in self.graph.returned.iter().filter(|&&item| item != NONE) {
            let at = self.graph.stored_as(item) as usize;
            let item = self.graph.items[at];
            if item.made_by == NONE
                || self.is_output[at]
                || self.taking_over.contains_key(&(at as u32))
            {
                continue;
            }
            self.is_output[at] = true;
            let made = position_of[item.made_by as usize];
            self.by_size.entry(item.bytes).or_default().push(self.outputs.len() as u32);
            self.outputs.push(Output { item: at as u32, made, busy_until: None });
        }
    }
    /// Finds memory for what `kernel`, at position `at`, makes.
    fn place_results(&mut self, kernel: u32, at: u32) {
        let graph = self.graph;
        for &made in graph.makes(kernel) {
            let item = graph.items[made as usize];
            if item.name_of != NONE || item.bytes == 0 || self.is_output[made as usize] {
                continue;
            }
            if let Some(&argument) = self.taking_over.get(&made) {
                if self.last[argument as usize] <= at {
                    continue;
                }
            }
            let last = self.last[made as usize].max(at);
            if let Some(old) = self.reusable(kernel, made, (item.bytes, at)) {
                let output = self.in_output[old as usize];
                if output == NONE {
                    // From here on it is the memory of the result.
                    let before = self.spans[old as usize].filter(|span| span.0 < at);
                    if before.is_some() {
                        self.shares[made as usize] = old;
                    }
                    self.spans[old as usize] = before.map(|span| (span.0, at.saturating_sub(1)));
                    self.spans[made as usize] = Some((at, last));
                    continue;
                }
                if self.may_be_in(output, made, last) {
                    self.put_in(output, made, last);
                    continue;
                }
            }
            if !self.takes_output(made, item.bytes, (at, last)) {
                self.spans[made as usize] = Some((at, last));
            }
        }
    }
    /// Whether `output` is made after `last`, the last use of `item`, or over it.
    fn may_be_in(&self, output: u32, item: u32, last: u32) -> bool {
        let graph = self.graph;
        let Output { item: result, made, .. } = self.outputs[output as usize];
        let is_over = || {
            let what = graph.items[result as usize];
            let kernel = graph.kernels[what.made_by as usize];
            let mut reads = graph.reads(what.made_by).iter();
            what.over != NONE && graph.stored_as(what.over) == item
                || kernel.is_elementwise
                    && what.bytes == graph.items[item as usize].bytes
                    && reads.any(|read| read.is_elementwise && graph.stored_as(read.item) == item)
        };
        last < made || last == made && is_over()
    }
    fn put_in(&mut self, output: u32, item: u32, last: u32) {
        self.outputs[output as usize].busy_until = Some(last);
        self.in_output[item as usize] = output;
    }
    /// The item in whose memory of `bytes` the item `made` by `kernel`, which runs at `at`, may be.
    fn reusable(&self, kernel: u32, made: u32, (bytes, at): (u128, u32)) -> Option<u32> {
        let graph = self.graph;
        let what = graph.kernels[kernel as usize];
        let fits = |item: u32| {
            let item = graph.stored_as(item);
            let has_room = graph.items[item as usize].bytes == bytes
                && self.last[item as usize] == at
                && (self.in_output[item as usize] != NONE
                    || self.spans[item as usize].is_some_and(|span| span.1 == at));
            has_room.then_some(item)
        };
        if what.is_elementwise {
            let reads = graph.reads(kernel).iter().filter(|read| read.is_elementwise);
            return reads.copied().find_map(|read| fits(read.item));
        }
        Some(graph.items[made as usize].over).filter(|&item| item != NONE).and_then(fits)
    }
    /// Whether `item` of `bytes` is in the memory of an output from the first to the last of the positions.
    fn takes_output(&mut self, item: u32, bytes: u128, (first, last): (u32, u32)) -> bool {
        let larger = self.by_size.range(bytes..).flat_map(|(_, outputs)| outputs);
        let free = larger.take(MAX_TRIED).copied().find(|&output| {
            let busy_until = self.outputs[output as usize].busy_until;
            busy_until.is_none_or(|busy| busy < first) && self.may_be_in(output, item, last)
        });
        if let Some(output) = free {
            self.put_in(output, item, last);
        }
        free.is_some()
    }
    /// The bytes at each of `count` positions.
    fn taken(&self, count: usize) -> Vec<u128> {
        let mut taken = vec![0_u128; count];
        let mut freed = vec![0_u128; count + 1];
        for (span, item) in self.spans.iter().zip(&self.graph.items) {
            if let Some((first, last)) = *span {
                taken[first as usize] = taken[first as usize].saturating_add(item.bytes);
                let after = (last as usize).saturating_add(1).min(count);
                freed[after] = freed[after].saturating_add(item.bytes);
            }
        }
        let mut now: u128 = 0;
        for (taken, freed) in taken.iter_mut().zip(freed) {
            now = now.saturating_add(*taken).saturating_sub(freed);
            *taken = now;
        }
        taken
    }
}
