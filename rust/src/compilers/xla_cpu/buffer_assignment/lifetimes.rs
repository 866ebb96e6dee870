//! Live ranges of values over the whole program.
//!
//! Time is counted in moments: one for each kernel of the entry function, in scheduled order; an op with blocks inside stands for
//! the moments of these, once: for a loop the trip with the largest peak, for a `case` all branches, one after the other. The
//! largest sum of live bytes at a moment is the peak of [`compiled_peak`].

use crate::compilers::compilation::Target;
use crate::compilers::xla_cpu::buffer_assignment::heap::{
    heap_size, heap_size_in_order, Temporary,
};
use crate::compilers::xla_cpu::buffer_assignment::liveness::Liveness;
use crate::compilers::xla_cpu::buffer_assignment::occupied_spans::Span as Taken;
use crate::compilers::xla_cpu::buffer_assignment::output_buffers::{Rooms, Tenant};
use crate::compilers::xla_cpu::buffer_assignment::results::made;
use crate::compilers::xla_cpu::kernels::graph::{Graph, Item, Kernel, NONE};
use crate::compilers::xla_cpu::{Blocks, CompiledPeak, Entry};
use crate::compilers::Live;
use crate::error::Span;
use crate::index::{BlockId, FuncId, OpId, ValueId};
use crate::ir::{OpKind, Program, ValueDef};
use crate::work::cached::Works;
use crate::work::execution::Execution;
use crate::work::spaces::Space;
use rustc_hash::{FxHashMap, FxHashSet};

/// What a buffer is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// An argument, live throughout.
    Argument,
    /// A result, whose buffer the caller keeps throughout.
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
    /// What its buffer is for.
    pub role: Role,
    /// The first and the last moment at which it is live.
    pub span: (u32, u32),
}

/// The live ranges of all buffers of a program.
#[derive(Clone, Debug, Default)]
pub struct Lifetimes {
    /// The op that runs at each moment, and its location.
    pub moments: Vec<(OpId, Span)>,
    /// The values: arguments, outputs, temporaries; each sorted by first moment.
    pub values: Vec<Lifetime>,
}

/// The live ranges of the values of `program`; for the parameters see [`compiled_peak`].
pub fn lifetimes(
    program: &Program,
    works: &mut Works<'_>,
    execution: &Execution,
    entry: FuncId,
    donated: &[(usize, ValueId)],
    target: Target<'_>,
) -> Lifetimes {
    let Some(body) = program.func_body(entry).get() else { return Lifetimes::default() };
    let mut blocks = Blocks::new(program, works, execution, entry, target);
    let Entry { graph, liveness, num_arguments, outputs } = blocks.entry(body, donated);
    let mut walk = Walk::new(program);
    let Open { graph, late, .. } = walk.unroll(&mut blocks, graph, liveness);
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

/// The peak of `program`, whose entry function is `entry`, in the memory space of `target`. `donated` has pairs of the index of a
/// result and the argument whose buffer it takes.
pub fn compiled_peak(
    program: &Program,
    works: &mut Works<'_>,
    execution: &Execution,
    entry: FuncId,
    donated: &[(usize, ValueId)],
    target: Target<'_>,
) -> CompiledPeak {
    let Some(body) = program.func_body(entry).get() else { return CompiledPeak::default() };
    let mut blocks = Blocks::new(program, works, execution, entry, target);
    let (mut peak, entry, _) = blocks.of_entry(body, donated);
    if target.compiler.allocates_holes() && target.space == Some(Space::Device) {
        peak.holes = allocated_for(&mut blocks, entry).saturating_sub(peak.bytes);
    }
    peak
}

/// The bytes that the compiler of `target` allocates besides arguments. For the parameters see
/// [`compiled_peak`].
pub fn allocated(
    program: &Program,
    works: &mut Works<'_>,
    execution: &Execution,
    entry: FuncId,
    donated: &[(usize, ValueId)],
    target: Target<'_>,
) -> u128 {
    let Some(body) = program.func_body(entry).get() else { return 0 };
    let mut blocks = Blocks::new(program, works, execution, entry, target);
    let entry = blocks.entry(body, donated);
    allocated_for(&mut blocks, entry)
}

/// The bytes that are allocated for the entry function and all blocks, besides arguments.
fn allocated_for(blocks: &mut Blocks<'_, '_, '_>, entry: Entry) -> u128 {
    let Entry { graph, liveness, outputs, .. } = entry;
    let program = blocks.builder.program;
    let mut walk = Walk::new(program);
    let open = walk.unroll(blocks, graph, liveness);
    let rooms = open.rooms();
    let given = open.given(program);
    let heap = rooms.fill(walk.heap, walk.num_inside, &given);
    let outputs = outputs.into_iter().map(|item| open.graph.items[item as usize].bytes);
    let compiler = blocks.builder.layouts.compiler();
    let alignment = compiler.alignment();
    let size = if compiler.places_in_order() {
        heap_size_in_order(&heap, alignment, walk.num_tuples)
    } else {
        heap_size(&heap, alignment)
    };
    outputs.fold(size, u128::saturating_add)
}

/// For kernels whose results are written by the blocks inside: the first moment of these, and the one after the last.
type MadeInside = FxHashMap<u32, (u32, u32)>;

/// A block whose moments are being appended.
struct Open {
    graph: Graph,
    liveness: Liveness,
    /// The first moment of each position so far, and of the end of the block.
    starts: Vec<u32>,
    late: MadeInside,
    /// The kernel whose moments are being appended; none before the first.
    kernel: Option<u32>,
    /// The blocks inside its op that are yet to be visited, and whether there are any at all.
    inside: std::vec::IntoIter<BlockId>,
    has_inside: bool,
    /// The results of ops that their branches write, as the kernel of the op, the index of the result, and an index in the heap.
    made_inside: Vec<(u32, u32, u32)>,
}

impl Open {
    fn new(graph: Graph, liveness: Liveness) -> Self {
        let starts = Vec::with_capacity(liveness.order.len() + 1);
        let (late, inside) = (MadeInside::default(), Vec::new().into_iter());
        let (kernel, has_inside, made_inside) = (None, false, Vec::new());
        Self { graph, liveness, starts, late, kernel, inside, has_inside, made_inside }
    }
    /// Whether the current kernel is a loop.
    fn is_in_loop(&self, program: &Program) -> bool {
        let kernel = self.kernel.map(|kernel| self.graph.kernels[kernel as usize]);
        kernel.is_some_and(|kernel| program.kind(kernel.op) == OpKind::While)
    }
    /// Records the values that a branch of the current kernel returns: `graph` is that of the branch, `places` gives the heap index
    /// of each of its items.
    fn add_made_inside(&mut self, graph: &Graph, places: &[Option<u32>]) {
        let Some(kernel) = self.kernel else { return };
        for (&item, index) in graph.returned.iter().zip(0..).filter(|(&item, _)| item != NONE) {
            if let Some(place) = places[graph.stored_as(item) as usize] {
                self.made_inside.push((kernel, index, place));
            }
        }
    }
    /// The output buffers of the entry function, all of whose moments are known.
    fn rooms(&self) -> Rooms {
        let mut rooms = Rooms::default();
        let last = self.liveness.order.len().saturating_sub(1);
        for output in &self.liveness.outputs {
            let own = output.items.last().map_or(NONE, |span| span.item);
            let mut tenants: Vec<Tenant> = Vec::new();
            let mut before = None;
            for Taken { first, last: until, item } in output.items.iter() {
                let Item { bytes, made_by, .. } = self.graph.items[item as usize];
                let made = self.late.get(&made_by).map(|&(_, after)| after);
                let from = made.unwrap_or(self.starts[first as usize]);
                // It is written over what ends there.
                if let Some(old) = tenants.last_mut().filter(|_| before == Some(first)) {
                    old.span.1 = old.span.1.min(from.saturating_sub(1));
                }
                before = Some(until);
                let after = self.starts.get(until as usize + 1).copied();
                let after = after.filter(|_| until as usize <= last).unwrap_or(u32::MAX);
                let is_owner = item == own || made_by == NONE;
                tenants.push(Tenant { bytes, span: (from, after.saturating_sub(1)), is_owner });
            }
            let bytes = self.graph.items.get(own as usize).map_or(0, |item| item.bytes);
            rooms.add(bytes, tenants);
        }
        rooms
    }
    /// The heap indices of branch results that end up in output buffers, each with the output.
    fn given(&self, program: &Program) -> Vec<(u32, u32)> {
        let output_of = |&(kernel, index, place): &(u32, u32, u32)| {
            let op = self.graph.kernels[kernel as usize].op;
            let value = program.op_results(op).nth(index as usize)?;
            let made = self.graph.makes(kernel).iter();
            let item =
                made.copied().find(|&item| self.graph.items[item as usize].value == value)?;
            let output = self.liveness.in_output[self.graph.stored_as(item) as usize];
            (output != NONE).then_some((place, output))
        };
        self.made_inside.iter().filter_map(output_of).collect()
    }
}

/// A walk over a program.
struct Walk<'p> {
    program: &'p Program,
    /// The blocks that were visited.
    entered: FxHashSet<BlockId>,
    found: Lifetimes,
    heap: Vec<Temporary>,
    /// How many entries of the heap belong to blocks inside ops of the entry function.
    num_inside: usize,
    /// The results that are tuples: those of kernels with several, and those of copies between memories.
    num_tuples: u64,
}

impl<'p> Walk<'p> {
    fn new(program: &'p Program) -> Self {
        let (entered, found) = (FxHashSet::default(), Lifetimes::default());
        Self { program, entered, found, heap: Vec::new(), num_inside: 0, num_tuples: 0 }
    }
    /// Appends the moments of the entry function and of the blocks inside its ops, and their temporary values; returns the state of
    /// the entry function. Iterative, since calls may be deep.
    fn unroll(
        &mut self,
        blocks: &mut Blocks<'_, '_, '_>,
        graph: Graph,
        liveness: Liveness,
    ) -> Open {
        let mut around: Vec<Open> = Vec::new();
        let mut open = Open::new(graph, liveness);
        loop {
            if let Some(block) = open.inside.next() {
                if self.entered.insert(block) {
                    let (graph, liveness) = blocks.liveness_of(block);
                    around.push(std::mem::replace(&mut open, Open::new(graph, liveness)));
                } else if let Some(kernel) = open.kernel {
                    self.add_again(blocks, open.graph.kernels[kernel as usize].op, block);
                }
                continue;
            }
            self.leave(&mut open);
            if let Some(&kernel) = open.liveness.order.get(open.starts.len()) {
                open.starts.push(self.found.moments.len() as u32);
                self.enter(blocks, &mut open, kernel);
                continue;
            }
            if around.is_empty() {
                self.num_inside = self.heap.len();
            }
            let places = self.close(&mut open);
            let Some(outer) = around.pop() else { return open };
            let inner = std::mem::replace(&mut open, outer);
            if around.is_empty() && !open.is_in_loop(self.program) {
                open.add_made_inside(&inner.graph, &places);
            }
        }
    }
    /// Begins the moments of `kernel`: those of the blocks inside its op, unless these need less memory than its results.
    fn enter(&self, blocks: &mut Blocks<'_, '_, '_>, open: &mut Open, kernel: u32) {
        let what = open.graph.kernels[kernel as usize];
        (open.kernel, open.has_inside) = (Some(kernel), false);
        if !what.is_op {
            return;
        }
        let is_loop = self.program.kind(what.op) == OpKind::While;
        let made = if is_loop { 0 } else { made(&open.graph, &open.liveness, kernel) };
        let peak = blocks.peak_inside(what.op);
        if peak.inner.is_some() && peak.bytes > made {
            open.inside = blocks.blocks_inside(what.op).into_iter();
            open.has_inside = true;
        }
    }
    /// Ends the moments of the current kernel; it has at least one, unless it is an alias.
    fn leave(&mut self, open: &mut Open) {
        let (Some(kernel), Some(&first)) = (open.kernel.take(), open.starts.last()) else { return };
        let Kernel { op, is_name, .. } = open.graph.kernels[kernel as usize];
        let now = self.found.moments.len() as u32;
        if open.has_inside && self.program.kind(op) != OpKind::While {
            open.late.insert(kernel, (first, now));
        }
        if now == first && !is_name {
            self.found.moments.push((op, self.program.loc(op)));
        }
    }
    /// Appends the values of a block that was visited; returns the heap indices of its items.
    fn close(&mut self, open: &mut Open) -> Vec<Option<u32>> {
        let Open { graph, liveness, starts, late, .. } = open;
        starts.push(self.found.moments.len() as u32);
        let several = |&&kernel: &&u32| graph.makes(kernel).len() > 1;
        self.num_tuples +=
            liveness.needs.copies.count + liveness.order.iter().filter(several).count() as u64;
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
        places
    }
    /// Appends one moment for `block`, the body of a function that was already visited for another call than `op`.
    fn add_again(&mut self, blocks: &mut Blocks<'_, '_, '_>, op: OpId, block: BlockId) {
        let at = self.found.moments.len() as u32;
        let loc = self.program.loc(op);
        self.found.moments.push((op, loc));
        let bytes = blocks.peak_of(block).bytes;
        let live = self.program.op_results(op).next().map(|value| Live { value, bytes });
        let row = |live| Lifetime { live, loc, role: Role::Temporary, span: (at, at) };
        self.found.values.extend(live.map(row));
        self.heap.push(Temporary { bytes, span: (at, at), shares: None });
    }
    /// Appends `item` from the first of `moments` to the one before the second, unless that is empty.
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
