//! Live memory of one device over the program, its peak, and the values that are live at the peak.
//!
//! Ops run in the order of a [`Schedule`]. Arguments are live throughout. A value is live from the op that defines it
//! to its last use, including uses of its aliases and through ops that are fused away; a value that is never written
//! takes no memory. The result of an update, of an all-reduce, or of an elementwise op takes the memory of an operand
//! of its size whose last use it is. A loop carries its values in the memory of their initial values if the loop is
//! their last use; an op with regions needs the largest peak of its regions, in addition to the values live around it.
//! An output takes the memory of the argument that is donated to it if that has no later use.

use super::buffers::{Places, Run};
use crate::compilers::accelerator::fusion::Fusion;
use crate::compilers::accelerator::schedule::Schedule;
use crate::compilers::target::Compiler;
use crate::compilers::xla_tpu::async_copies::AsyncCopies;
use crate::compilers::xla_tpu::entry_layouts::result_bytes;
use crate::compilers::xla_tpu::tiles::stored_bytes;
use crate::compilers::Live;
use crate::error::Span;
use crate::index::{BlockId, FuncId, Id, OpId, ValueId};
use crate::ir::{OpKind, Program, ValueDef};
use crate::work::cached::Works;
use crate::work::execution::Execution;
use crate::work::ops::Movement;
use crate::work::spaces::Space;
use rustc_hash::FxHashMap;

/// The most memory that one device takes at once.
#[derive(Clone, Debug, Default)]
pub struct Peak {
    /// The most bytes that are live at once, by the compiler's buffer assignment ([`crate::compilers::xla_cpu`]), and `holes`.
    pub bytes: u128,
    /// Bytes between buffers that are allocated, too.
    pub holes: u128,
    /// The op at which that many bytes are live.
    pub op: Option<OpId>,
    /// The location of that op, as that of an [`super::OpRow`].
    pub loc: Span,
    /// The values that are live at that op, in the order of their definition.
    pub live: Vec<Live>,
    /// The copies between memories of the compiled program, each once.
    pub copies: AsyncCopies,
}

/// Memory of the arguments and the results on one device, or on its host.
#[derive(Clone, Copy, Debug, Default)]
pub struct Memory {
    /// Bytes of the arguments.
    pub argument_bytes: u128,
    /// Bytes of the results, and, if there are several, of the table of pointers that XLA returns.
    pub output_bytes: u128,
    /// Bytes of results in the buffers of donated arguments.
    pub alias_bytes: u128,
}

impl Memory {
    /// The bytes in `space` of the arguments of `entry`, of its results, and of results in `donated` buffers, in the layouts of
    /// `compiler`.
    pub fn of_ports(
        program: &Program,
        works: &mut Works<'_>,
        entry: FuncId,
        donated: &[(usize, ValueId)],
        (space, compiler): (Space, Compiler),
    ) -> Self {
        let mut memory = Self::default();
        let bytes =
            |works: &mut Works<'_>, value| stored_bytes(&mut works.tensors, value, compiler);
        let Some(body) = program.func_body(entry).get() else { return memory };
        for arg in program.block_args(body) {
            if works.spaces.of_argument(arg) == space {
                memory.argument_bytes += bytes(works, arg);
            }
        }
        let returned = returned(program, body);
        let of_result = |works: &mut Works<'_>, index: usize| {
            result_bytes(program, &mut works.tensors, (index, returned[index]), compiler)
        };
        for (index, &value) in returned.iter().enumerate() {
            if works.spaces.of_result(index, value) == space {
                memory.output_bytes += of_result(works, index);
            }
        }
        if returned.len() > 1 && space == Space::Device {
            memory.output_bytes += POINTER_BYTES * returned.len() as u128;
        }
        for &(index, arg) in donated {
            if works.spaces.of_argument(arg) == space {
                memory.alias_bytes += of_result(works, index);
            }
        }
        memory
    }
}

/// The values that `block` returns.
fn returned(program: &Program, block: BlockId) -> Vec<ValueId> {
    let last = program.last_op(block).get();
    last.map_or_else(Vec::new, |op| program.operands(op).collect())
}

/// Bytes of one entry of the table of results.
const POINTER_BYTES: u128 = 8;

/// The position after the last op.
const END: u32 = u32::MAX;

/// Positions of ops and of last uses, computed once for all blocks.
pub struct Liveness<'p, 'w, 'a> {
    program: &'p Program,
    works: &'w mut Works<'a>,
    fusion: &'w mut Fusion,
    execution: &'w Execution,
    schedule: &'w Schedule,
    /// The position of each op in its block.
    places: Vec<u32>,
    /// The position of the last use of a value, in the block that defines it.
    last: Vec<u32>,
    peaks: FxHashMap<BlockId, u128>,
    buffers: Places,
}

impl<'p, 'w, 'a> Liveness<'p, 'w, 'a> {
    /// Computes the last uses of the values of `program`.
    pub fn new(
        program: &'p Program,
        works: &'w mut Works<'a>,
        fusion: &'w mut Fusion,
        execution: &'w Execution,
        schedule: &'w Schedule,
    ) -> Self {
        let mut this = Self {
            program,
            works,
            fusion,
            execution,
            schedule,
            places: vec![0; program.num_op_ids()],
            last: vec![0; program.num_value_ids()],
            peaks: FxHashMap::default(),
            buffers: Places::new(program.num_value_ids()),
        };
        for &func in &execution.functions {
            this.note_last_uses(program.func_op(func));
        }
        this
    }
    fn note_last_uses(&mut self, func: OpId) {
        let program = self.program;
        let ops: Vec<OpId> = program.pre_order(func).collect();
        for &op in &ops {
            for region in program.op_regions(op) {
                for block in program.region_blocks(region) {
                    // Positions start at 1: 0 means no use.
                    for (&op, place) in self.schedule.ops(program, block).iter().zip(1..) {
                        self.places[op.index()] = place;
                    }
                }
            }
        }
        for &op in ops[1..].iter().rev() {
            for (index, value) in program.operands(op).enumerate() {
                let home = match program.def(value) {
                    ValueDef::Result(def) => program.parent_block(def),
                    ValueDef::Arg(block) => block,
                };
                let mut place = self.places[op.index()];
                if program.parent_block(op) != home {
                    place = self.place_in(home, op);
                } else if program.next_op(op).is_none() {
                    // Values that a block returns are used at its end.
                    place = END;
                } else if let Some(result) = self.forwarded_result(op, index) {
                    place = place.max(self.last[result.index()]);
                }
                let last = &mut self.last[value.index()];
                *last = place.max(*last);
            }
        }
    }
    /// The result of `op` that is an alias of its operand `index`, so that uses of it are uses of that.
    fn forwarded_result(&mut self, op: OpId, index: usize) -> Option<ValueId> {
        let program = self.program;
        let is_one_to_one =
            program.kind(op) == OpKind::While || self.works.movement(op) == Movement::Alias;
        let results = program.num_results(op);
        let at = if is_one_to_one && index < results { index } else { 0 };
        let result = (at < results).then(|| program.result(op, at))?;
        self.fusion.is_virtual(result).then_some(result)
    }
    /// The position in block `home` of `op`, or of the op that encloses it.
    fn place_in(&self, home: BlockId, mut op: OpId) -> u32 {
        while let Some(parent) = self.program.parent_op(op) {
            op = parent;
            if self.program.parent_block(op) == home {
                break;
            }
        }
        self.places[op.index()]
    }
    /// The peak of live bytes, besides the arguments of the program, whose entry function is `entry`, in the order of the schedule.
    /// `donated` has pairs of the index of a result and the argument whose buffer it takes.
    pub fn peak(&mut self, entry: FuncId, donated: &[(usize, ValueId)]) -> u128 {
        let program = self.program;
        for func in self.execution.functions.clone() {
            let body = program.func_body(func);
            if func != entry && body.is_some() {
                let _ = self.peak_of(body, &[]);
            }
        }
        program.func_body(entry).get().map_or(0, |body| self.simulate(body, donated))
    }
    /// Pairs of a result of a loop's body and the argument whose buffer it takes.
    fn carried(&self, block: BlockId) -> Vec<(usize, ValueId)> {
        let owner = self.program.block_parent_op(block);
        if self.program.kind(owner) != OpKind::While {
            return Vec::new();
        }
        self.program.block_args(block).enumerate().collect()
    }
    fn peak_of(&mut self, block: BlockId, donated: &[(usize, ValueId)]) -> u128 {
        if let Some(&known) = self.peaks.get(&block) {
            return known;
        }
        let carried = self.carried(block);
        let donated = if carried.is_empty() { donated } else { &carried };
        let peak = self.simulate(block, donated);
        self.peaks.insert(block, peak);
        peak
    }
    /// The largest peak among the blocks inside `op`, or that of its callee.
    fn peak_inside(&mut self, op: OpId) -> u128 {
        let program = self.program;
        let mut most = 0;
        let is_call = matches!(program.kind(op), OpKind::Call | OpKind::Composite);
        if !is_call && program.num_regions(op) == 0 {
            return most;
        }
        let mut blocks: Vec<BlockId> = Vec::new();
        if let Some(callee) = self.execution.callee(program, op) {
            blocks.push(program.func_body(callee));
        }
        let is_inside = !matches!(
            self.works.movement(op),
            Movement::Reduce | Movement::Update | Movement::Pointwise
        ) && !matches!(program.kind(op), OpKind::Sort | OpKind::SelectAndScatter);
        for region in program.op_regions(op).filter(|_| is_inside) {
            blocks.extend(program.region_blocks(region));
        }
        for block in blocks {
            most = self.peak_of(block, &[]).max(most);
        }
        most
    }
    /// Simulates `block`.
    fn simulate(&mut self, block: BlockId, donated: &[(usize, ValueId)]) -> u128 {
        let program = self.program;
        let schedule = self.schedule;
        let ops = schedule.ops(program, block);
        let returned = returned(program, block);
        let mut run = Run::new(ops.len());
        for &(output, arg) in donated {
            if let Some(&value) = returned.get(output) {
                run.taking_over.insert(self.fusion.stored_as(value), arg);
            }
        }
        let mut peak = 0;
        for &op in ops.iter() {
            let place = self.places[op.index()];
            let inside = self.peak_inside(op);
            self.make_results(&mut run, op, place);
            // A callee and the branches of a case allocate the results themselves: where their peak is larger
            // than the results, it counts instead of these.
            let are_inside = program.kind(op) != OpKind::While;
            let (made, inner) = match (are_inside, inside > run.made) {
                (true, true) => (run.made, inside),
                (true, false) => (0, 0),
                (false, _) => (0, inside),
            };
            let now = run.now.saturating_add(inner).saturating_sub(made);
            peak = peak.max(now);
            run.free(&mut self.buffers, place);
        }
        run.finish(&mut self.buffers);
        peak
    }
    /// Allocates buffers for the results of `op`.
    fn make_results(&mut self, run: &mut Run, op: OpId, place: u32) {
        let program = self.program;
        run.made = 0;
        for (index, result) in program.op_results(op).enumerate() {
            let bytes = self.works.bytes_in(Space::Device, result);
            let last = self.last[result.index()];
            if self.fusion.is_virtual(result) || bytes == 0 {
                continue;
            }
            // An output takes the memory of the argument that is donated to it, where possible.
            if let Some(&arg) = run.taking_over.get(&result) {
                if self.last[arg.index()] <= place {
                    continue;
                }
            }
            let reused = self.reusable(run, op, (index, bytes, place));
            let buffers = &mut self.buffers;
            match reused {
                Some(stored) => run.rename(buffers, stored, result, last),
                None => run.make(buffers, result, bytes, (last, place)),
            }
        }
    }
    /// The operand whose buffer of `bytes` the result `index` of `op`, at `place`, takes over.
    fn reusable(
        &mut self,
        run: &Run,
        op: OpId,
        (index, bytes, place): (usize, u128, u32),
    ) -> Option<ValueId> {
        let program = self.program;
        let fits =
            |buffers: &Places, stored: &ValueId| run.can_reuse(buffers, *stored, bytes, place);
        let own = match self.works.movement(op) {
            Movement::Update => program.operands(op).next(),
            Movement::Pointwise => {
                // What is read is never an alias.
                let reads = self.fusion.reads(program, self.works, op).iter();
                return reads.map(|read| read.value).find(|value| fits(&self.buffers, value));
            }
            _ if program.kind(op) == OpKind::While => program.operands(op).nth(index),
            _ if program.op_name(op) == "stablehlo.all_reduce" => {
                let mut stored = program.operands(op).map(|value| self.fusion.stored_as(value));
                return stored.find(|value| fits(&self.buffers, value));
            }
            _ => None,
        };
        let stored = self.fusion.stored_as(own?);
        fits(&self.buffers, &stored).then_some(stored)
    }
}
