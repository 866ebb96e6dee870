//! From when to when each value is in memory, over the whole program.
//!
//! The kernels of the entry function are moments, in the order in which they run; an op with blocks inside stands for the
//! moments of these, once: of a loop the trip that needs most, of a `case` all branches, one after the other. The largest
//! sum of what is in memory at one moment is the peak of [`super::host_peak`].

use super::graph::{Graph, Item, NONE};
use super::heap::{heap_size, Temporary};
use super::liveness::Liveness;
use super::{made, Blocks, Entry};
use crate::cost::execution::Execution;
use crate::cost::memory::Live;
use crate::cost::works::Works;
use crate::error::Span;
use crate::index::{BlockId, FuncId, OpId, ValueId};
use crate::ir::{OpKind, Program, ValueDef};
use rustc_hash::{FxHashMap, FxHashSet};

/// What memory is taken for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// An argument, in memory throughout.
    Argument,
    /// A result, whose memory the caller keeps throughout.
    Output,
    /// Anything else.
    Temporary,
}

impl Role {
    /// Its name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Argument => "argument",
            Self::Output => "output",
            Self::Temporary => "temporary",
        }
    }
}

/// A value in memory.
#[derive(Clone, Copy, Debug)]
pub struct Lifetime {
    /// The value, and its bytes on one device.
    pub live: Live,
    /// The location of the op that makes it; empty for an argument.
    pub loc: Span,
    /// What its memory is taken for.
    pub role: Role,
    /// The first and the last moment at which it is in memory.
    pub span: (u32, u32),
}

/// What is in memory at each moment of a program.
#[derive(Clone, Debug, Default)]
pub struct Lifetimes {
    /// The op that runs at each moment, and its location.
    pub moments: Vec<(OpId, Span)>,
    /// The values: arguments, outputs, others; of these the first to be there first.
    pub values: Vec<Lifetime>,
}

/// The lifetimes of the values of `program`; see [`super::host_peak`] for the arguments.
pub fn lifetimes(
    program: &Program,
    works: &mut Works<'_>,
    execution: &Execution,
    entry: FuncId,
    donated: &[(usize, ValueId)],
) -> Lifetimes {
    let Some(body) = program.func_body(entry).get() else { return Lifetimes::default() };
    let mut blocks = Blocks::new(program, works, execution, entry, false);
    let Entry { graph, liveness, num_arguments, outputs } = blocks.entry(body, donated);
    let mut walk = Walk::new(program);
    let late = walk.unroll(&mut blocks, &graph, &liveness);
    if walk.found.moments.is_empty() {
        walk.found.moments.extend(program.last_op(body).get().map(|op| (op, program.loc(op))));
    }
    let end = (walk.found.moments.len() as u32).saturating_sub(1);
    for item in &graph.items[..num_arguments] {
        walk.add(item, Role::Argument, (0, end));
    }
    for item in outputs.into_iter().map(|item| &graph.items[item as usize]) {
        // While the blocks inside an op make an output, they say what memory it takes.
        match late.get(&item.made_by) {
            Some(&(from, until)) => {
                walk.add_between(item, Role::Output, (0, from));
                walk.add_between(item, Role::Output, (until, end + 1));
            }
            None => walk.add(item, Role::Output, (0, end)),
        }
    }
    let values = &mut walk.found.values;
    values.retain(|row| row.live.bytes > 0);
    values.sort_by_key(|row| (row.role, row.span));
    walk.found
}

/// The bytes that XLA allocates on hosts besides arguments, where it computes `bf16` as `f32`; see [`super::host_peak`] for the
/// arguments.
pub fn allocated(
    program: &Program,
    works: &mut Works<'_>,
    execution: &Execution,
    entry: FuncId,
    donated: &[(usize, ValueId)],
) -> u128 {
    let Some(body) = program.func_body(entry).get() else { return 0 };
    let mut blocks = Blocks::new(program, works, execution, entry, true);
    let Entry { graph, liveness, outputs, .. } = blocks.entry(body, donated);
    let mut walk = Walk::new(program);
    let _ = walk.unroll(&mut blocks, &graph, &liveness);
    let outputs = outputs.into_iter().map(|item| graph.items[item as usize].bytes);
    outputs.fold(heap_size(&walk.heap), u128::saturating_add)
}

/// Kernels whose results the blocks inside their ops make: the first of the moments of these, and the one after the last.
type MadeInside = FxHashMap<u32, (u32, u32)>;

/// A walk over a program.
struct Walk<'p> {
    program: &'p Program,
    /// The blocks whose moments are there.
    entered: FxHashSet<BlockId>,
    found: Lifetimes,
    heap: Vec<Temporary>,
}

impl<'p> Walk<'p> {
    fn new(program: &'p Program) -> Self {
        let (entered, found) = (FxHashSet::default(), Lifetimes::default());
        Self { program, entered, found, heap: Vec::new() }
    }
    /// Adds the moments of a block and the values in its memory, besides arguments and outputs.
    fn unroll(
        &mut self,
        blocks: &mut Blocks<'_, '_, '_>,
        graph: &Graph,
        liveness: &Liveness,
    ) -> MadeInside {
        let mut late = MadeInside::default();
        // The first moment of each position, and the end.
        let mut starts = Vec::with_capacity(liveness.order.len() + 1);
        for &kernel in &liveness.order {
            let first = self.found.moments.len() as u32;
            starts.push(first);
            let what = graph.kernels[kernel as usize];
            let is_loop = self.program.kind(what.op) == OpKind::While;
            let made = if is_loop { 0 } else { made(graph, liveness, kernel) };
            if what.is_op && self.enter(blocks, what.op, made) && !is_loop {
                late.insert(kernel, (first, self.found.moments.len() as u32));
            }
            if self.found.moments.len() as u32 == first {
                self.found.moments.push((what.op, self.program.loc(what.op)));
            }
        }
        starts.push(self.found.moments.len() as u32);
        let last = liveness.order.len().saturating_sub(1);
        let mut places = vec![None; graph.items.len()];
        for (at, (item, span)) in graph.items.iter().zip(&liveness.spans).enumerate() {
            let Some((from, until)) = *span else { continue };
            let until = (until as usize).min(last);
            let made = late.get(&item.made_by);
            let from = made.map_or(starts[from as usize], |&(_, after)| after);
            self.add_between(item, Role::Temporary, (from, starts[until + 1]));
            if from < starts[until + 1] && item.bytes > 0 {
                places[at] = Some(self.heap.len() as u32);
                let shares = Some(liveness.shares[at]).filter(|&old| old != NONE);
                let shares = shares.and_then(|old| places[old as usize]);
                let span = (from, starts[until + 1] - 1);
                self.heap.push(Temporary { bytes: item.bytes, span, shares });
            }
        }
        late
    }
    /// Adds the moments of the blocks inside `op`, unless they need less than the `made` bytes of its results; whether it did.
    fn enter(&mut self, blocks: &mut Blocks<'_, '_, '_>, op: OpId, made: u128) -> bool {
        let inside = blocks.peak_inside(op);
        if inside.inner.is_none() || inside.bytes <= made {
            return false;
        }
        for block in blocks.blocks_inside(op) {
            if self.entered.insert(block) {
                let (graph, liveness) = blocks.liveness_of(block);
                let _ = self.unroll(blocks, &graph, &liveness);
                continue;
            }
            // A function whose body stands at another call.
            let at = self.found.moments.len() as u32;
            let loc = self.program.loc(op);
            self.found.moments.push((op, loc));
            let bytes = blocks.peak_of(block).bytes;
            let live = self.program.op_results(op).next().map(|value| Live { value, bytes });
            let row = |live| Lifetime { live, loc, role: Role::Temporary, span: (at, at) };
            self.found.values.extend(live.map(row));
            self.heap.push(Temporary { bytes, span: (at, at), shares: None });
        }
        true
    }
    /// Adds `item` from the first of `moments` to the one before the second, if there is one.
    fn add_between(&mut self, item: &Item, role: Role, moments: (u32, u32)) {
        if moments.0 < moments.1 {
            self.add(item, role, (moments.0, moments.1 - 1));
        }
    }
    fn add(&mut self, item: &Item, role: Role, span: (u32, u32)) {
        let loc = match self.program.def(item.value) {
            ValueDef::Result(op) => self.program.loc(op),
            ValueDef::Arg(_) => Span::EMPTY,
        };
        let live = Live { value: item.value, bytes: item.bytes };
        self.found.values.push(Lifetime { live, loc, role, span });
    }
}
