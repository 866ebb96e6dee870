//! Live ranges of the buffers of a block, and its peak of live bytes.

use crate::compilers::xla_cpu::buffer_assignment::occupied_spans::{
    is_within, Output, Span, Spans,
};
use crate::compilers::xla_cpu::kernels::graph::{Graph, Item, NONE};
use crate::compilers::xla_cpu::ragged_rows::Rows;
use crate::compilers::xla_tpu::cost_analysis::Needs;
use rustc_hash::FxHashMap;
use std::cmp::Reverse;

/// The position after the last kernel.
const END: u32 = u32::MAX;

/// The most output buffers that are tried for each value.
const MAX_TRIED: usize = 16;

/// The live ranges of the items of a block, and the bytes that they take.
pub struct Liveness {
    /// The kernels in the order in which they run.
    pub order: Vec<u32>,
    /// For each item the first and last position at which its buffer is counted; `None` if it never is.
    pub spans: Vec<Option<(u32, u32)>>,
    /// Outputs of the entry function, whose buffers are not counted among the temporary ones.
    pub is_output: Vec<bool>,
    /// The item whose buffer it takes over at its first position; [`NONE`] if it has its own.
    pub shares: Vec<u32>,
    /// The live bytes at each position, besides arguments and outputs.
    pub taken: Vec<u128>,
    /// What the kernels need, on chips with vector memory.
    pub needs: Needs,
    /// The output buffers of the entry function.
    pub outputs: Vec<Output>,
    /// The output whose buffer each item is in, as a value before the output is written or as the output itself; [`NONE`] for none.
    pub in_output: Vec<u32>,
}

/// The state of the analysis of a block.
struct Run<'g> {
    graph: &'g Graph,
    /// The last position at which each item is read.
    last: Vec<u32>,
    /// For each result the argument whose buffer it may take; [`NONE`] if there is none.
    taking_over: Vec<u32>,
    /// The output buffers, and their indices sorted by size, later ones first.
    outputs: Vec<Output>,
    by_size: Vec<(u128, Reverse<u32>)>,
    /// The positions between which each buffer is free, in the same order.
    free: Vec<(u32, u32)>,
    /// The output whose buffer each item is in.
    in_output: Vec<u32>,
    /// Whether each item is an output in its buffer.
    is_output: Vec<bool>,
    spans: Vec<Option<(u32, u32)>>,
    shares: Vec<u32>,
    /// Kernels whose results are live throughout.
    is_kept: Vec<bool>,
    /// Whether each item is the operand or the result of an in-place update.
    is_updated: Vec<bool>,
}

impl Liveness {
    /// For `graph`, whose kernels run in `order`. Each of `donated` is the index of a result and the argument whose buffer it may
    /// take. Other results of the entry function have buffers of their own. Results of the kernels in `always` are live throughout,
    /// and items in `held` at least until the given position.
    pub(super) fn new(
        graph: &Graph,
        (order, held): (Vec<u32>, &[(u32, u32)]),
        donated: &[(usize, u32)],
        is_entry: bool,
        always: &[bool],
    ) -> Self {
        let mut run = Run::new(graph, &order, donated);
        for &(item, until) in held {
            let last = &mut run.last[item as usize];
            *last = until.max(*last);
        }
        let mut position_of = vec![0_u32; graph.kernels.len()];
        for (&kernel, at) in order.iter().zip(0..) {
            position_of[kernel as usize] = at;
        }
        if is_entry {
            run.reserve_outputs(&position_of);
            run.fill_outputs(&position_of);
        }
        run.keep(always);
        let makes = graph.all_makes();
        for (&kernel, at) in order.iter().zip(0..) {
            run.place_results(kernel, at, makes.row(kernel));
        }
        let taken = taken(graph, &run.spans, order.len());
        let mut is_output = run.is_output;
        for (is_output, &argument) in is_output.iter_mut().zip(&run.taking_over) {
            *is_output &= argument == NONE;
        }
        let Run { spans, shares, outputs, in_output, .. } = run;
        let needs = Needs::default();
        Self { order, spans, is_output, shares, taken, needs, outputs, in_output }
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
        let mut taking_over = vec![NONE; count];
        for &(result, argument) in donated {
            if let Some(&item) = graph.returned.get(result).filter(|&&item| item != NONE) {
                let taken = &mut taking_over[graph.stored_as(item) as usize];
                if *taken == NONE {
                    *taken = argument;
                }
            }
        }
        Self {
            graph,
            last,
            taking_over,
            is_updated: graph.updated_in_place(),
            outputs: Vec::new(),
            by_size: Vec::new(),
            free: Vec::new(),
            in_output: vec![NONE; count],
            is_output: vec![false; count],
            spans: vec![None; count],
            shares: vec![NONE; count],
            is_kept: Vec::new(),
        }
    }
    /// Makes the results of the kernels in `always` live throughout, if other kernels read them.
    fn keep(&mut self, always: &[bool]) {
        let graph = self.graph;
        for (kernel, _) in (0_u32..).zip(always).filter(|(_, &is_kept)| !is_kept) {
            for read in graph.reads(kernel) {
                let item = graph.stored_as(read.item) as usize;
                let by = graph.items[item].made_by;
                if by != NONE && always[by as usize] {
                    self.spans[item] = Some((0, END));
                }
            }
        }
        self.is_kept = always.to_vec();
    }
    /// Reserves buffers for the results: those of donated arguments, or their own.
    fn reserve_outputs(&mut self, position_of: &[u32]) {
        for &item in self.graph.returned.iter().filter(|&&item| item != NONE) {
            let at = self.graph.stored_as(item);
            let item = self.graph.items[at as usize];
            if item.made_by == NONE || self.is_output[at as usize] {
                continue;
            }
            let made = position_of[item.made_by as usize];
            let items = Spans::of(Span { first: made, last: END, item: at });
            let mut output = Output { items, free: (0, made) };
            let argument = self.taking_over[at as usize];
            if argument != NONE {
                let last = self.last[argument as usize];
                if last > made {
                    continue;
                }
                if made > 0 {
                    output.items.insert(Span { first: 0, last, item: argument });
                    output.free.0 = last;
                }
            }
            self.is_output[at as usize] = true;
            self.in_output[at as usize] = self.outputs.len() as u32;
            self.by_size.push((item.bytes, Reverse(self.outputs.len() as u32)));
            self.outputs.push(output);
        }
        self.by_size.sort_unstable();
        let free =
            |&(_, Reverse(output)): &(u128, Reverse<u32>)| self.outputs[output as usize].free;
        self.free = self.by_size.iter().map(free).collect();
    }
    /// Assigns items to output buffers while these are free, the largest items first.
    fn fill_outputs(&mut self, position_of: &[u32]) {
        if self.outputs.is_empty() {
            return;
        }
        let graph = self.graph;
        self.fill_with_updated(position_of);
        // The first of `by_size` that is no smaller than the item.
        let mut from = self.by_size.len();
        for item in self.largest_first() {
            let Item { bytes, made_by, over, .. } = graph.items[item as usize];
            let first = position_of[made_by as usize];
            let last = self.last[item as usize].max(first);
            while from > 0 && self.by_size[from - 1].0 >= bytes {
                from -= 1;
            }
            let own = self.own_output((made_by, over), (item, first, last));
            let output = own.or_else(|| {
                let end = self.by_size.len().min(from + MAX_TRIED);
                for (&free, at) in self.free[from..end].iter().zip(from..) {
                    if is_within(free, (first, last)) {
                        let (_, Reverse(output)) = self.by_size[at];
                        if self.has_gap(&self.outputs[output as usize], item, (first, last)) {
                            return Some(output);
                        }
                    }
                }
                None
            });
            if let Some(output) = output {
                self.outputs[output as usize].items.insert(Span { first, last, item });
                self.in_output[item as usize] = output;
            }
        }
    }
    /// The items that need a buffer and are not in that of an output yet, the largest first, those of equal size in order.
    fn largest_first(&self) -> Vec<u32> {
        let items = &self.graph.items;
        let mut sizes: FxHashMap<u128, u32> = FxHashMap::default();
        let mut found: Vec<(u32, u32)> = Vec::with_capacity(items.len());
        for (what, item) in items.iter().zip(0_u32..) {
            let needs_memory = what.made_by != NONE && what.name_of == NONE && what.bytes > 0;
            let at = item as usize;
            if needs_memory && !self.is_output[at] && self.in_output[at] == NONE {
                let count = sizes.len() as u32;
                found.push((*sizes.entry(what.bytes).or_insert(count), item));
            }
        }
        let mut sorted: Vec<(u128, u32)> = sizes.into_iter().collect();
        sorted.sort_unstable_by_key(|&(bytes, _)| Reverse(bytes));
        let mut ranks = vec![0; sorted.len()];
        for (&(_, size), rank) in sorted.iter().zip(0_u32..) {
            ranks[size as usize] = rank;
        }
        for (size, _) in &mut found {
            *size = ranks[*size as usize];
        }
        Rows::of(sorted.len(), &found).into_all()
    }
    /// The output whose buffer `item` may be in since an operand of its kernel `made_by` is there: one that is read elementwise, or
    /// that it overwrites.
    fn own_output(
        &self,
        (made_by, over): (u32, u32),
        (item, first, last): (u32, u32, u32),
    ) -> Option<u32> {
        let graph = self.graph;
        let fits = |source: u32| {
            let output = self.in_output[graph.stored_as(source) as usize];
            let fits = output != NONE && self.may_be_in(output, item, (first, last));
            fits.then_some(output)
        };
        for read in graph.reads(made_by) {
            if read.is_elementwise {
                if let Some(output) = fits(read.item) {
                    return Some(output);
                }
            }
        }
        Some(over).filter(|&over| over != NONE).and_then(fits)
    }
    /// Puts the operand that an output overwrites (such as a loop's initial value) into its buffer, and in turn the operand that
    /// this overwrites.
    fn fill_with_updated(&mut self, position_of: &[u32]) {
        let graph = self.graph;
        for output in 0..self.outputs.len() as u32 {
            let own = self.outputs[output as usize].items.last();
            let Some(mut item) = own.map(|span| span.item) else { continue };
            loop {
                let over = graph.items[item as usize].over;
                if over == NONE {
                    break;
                }
                let under = graph.stored_as(over);
                let Item { made_by, bytes, .. } = graph.items[under as usize];
                let is_free = !self.is_output[under as usize]
                    && self.in_output[under as usize] == NONE
                    && made_by != NONE
                    && bytes == graph.items[item as usize].bytes;
                if !is_free {
                    break;
                }
                let first = position_of[made_by as usize];
                let last = self.last[under as usize].max(first);
                if !self.may_be_in(output, under, (first, last)) {
                    break;
                }
                self.outputs[output as usize].items.insert(Span { first, last, item: under });
                self.in_output[under as usize] = output;
                item = under;
            }
        }
    }
    /// Assigns buffers to the results `made` of `kernel`, which runs at position `at`.
    fn place_results(&mut self, kernel: u32, at: u32, made: &[u32]) {
        let graph = self.graph;
        for &made in made {
            let item = graph.items[made as usize];
            if item.name_of != NONE
                || item.bytes == 0
                || self.is_output[made as usize]
                || self.in_output[made as usize] != NONE
            {
                continue;
            }
            if self.is_kept.get(kernel as usize) == Some(&true) {
                continue;
            }
            let argument = self.taking_over[made as usize];
            if argument != NONE {
                let last = self.last[argument as usize];
                if last < at || last == at && self.is_over(made, argument) {
                    continue;
                }
            }
            let last = self.last[made as usize].max(at);
            if let Some(old) = self.reusable(kernel, made, (item.bytes, at)) {
                // From here on it is the memory of the result.
                let before = self.spans[old as usize].filter(|span| span.0 < at);
                if before.is_some() {
                    self.shares[made as usize] = old;
                }
                self.spans[old as usize] = before.map(|span| (span.0, at.saturating_sub(1)));
            }
            self.spans[made as usize] = Some((at, last));
        }
    }
    /// Whether the buffer of `output` is free for `item` from `first` to `last`, except for items that may overwrite each other
    /// there.
    #[inline]
    fn may_be_in(&self, output: u32, item: u32, (first, last): (u32, u32)) -> bool {
        let output = &self.outputs[output as usize];
        is_within(output.free, (first, last)) && self.has_gap(output, item, (first, last))
    }
    /// Whether no other item is in `output` from `first` to `last`, except for items that may overwrite each other there.
    fn has_gap(&self, output: &Output, item: u32, (first, last): (u32, u32)) -> bool {
        let (before, after) = output.items.around(first);
        let is_after = before.is_none_or(|old| {
            old.first < first
                && (old.last < first || old.last == first && self.is_over(item, old.item))
        });
        is_after
            && after.is_none_or(|new| {
                last < new.first || last == new.first && self.is_over(new.item, item)
            })
    }
    /// Whether the kernel of `new` may write it over `old` while it reads `old`.
    fn is_over(&self, new: u32, old: u32) -> bool {
        let graph = self.graph;
        let what = graph.items[new as usize];
        let kernel = graph.kernels[what.made_by as usize];
        let mut reads = graph.reads(what.made_by).iter();
        what.over != NONE && graph.stored_as(what.over) == old
            || kernel.is_elementwise
                && what.bytes == graph.items[old as usize].bytes
                && reads.any(|read| read.is_elementwise && graph.stored_as(read.item) == old)
    }
    /// The operand whose buffer of `bytes` the result `made` of `kernel`, which runs at `at`, may take over.
    fn reusable(&self, kernel: u32, made: u32, (bytes, at): (u128, u32)) -> Option<u32> {
        let graph = self.graph;
        let what = graph.kernels[kernel as usize];
        let fits = |item: u32| {
            let item = graph.stored_as(item);
            let has_room = graph.items[item as usize].bytes == bytes
                && self.last[item as usize] == at
                && self.spans[item as usize].is_some_and(|span| span.1 == at);
            has_room.then_some(item)
        };
        if what.is_elementwise {
            // XLA does not look for memory for what is updated in place, nor in that of what is.
            let is_plain = |&item: &u32| !self.is_updated[item as usize];
            let mut reads = graph.reads(kernel).iter().filter(|read| read.is_elementwise);
            let old = reads.find_map(|read| fits(read.item).filter(is_plain));
            return old.filter(|_| is_plain(&made));
        }
        Some(graph.items[made as usize].over).filter(|&item| item != NONE).and_then(fits)
    }
}

/// The live bytes of the items of `graph` with the live ranges `spans`, at each of `count` positions.
pub fn taken(graph: &Graph, spans: &[Option<(u32, u32)>], count: usize) -> Vec<u128> {
    let mut taken = vec![0_u128; count];
    let mut freed = vec![0_u128; count + 1];
    for (span, item) in spans.iter().zip(&graph.items) {
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
