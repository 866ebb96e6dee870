//! The kernels of a per-device program, with their work; and for each op those that are attributed to it.

use super::donation::donated_of_entry;
use super::host::inlined;
use super::local::Local;
use crate::compilers::accelerator::fusion::Fusion;
use crate::compilers::compilation::{ChipFacts, Known, Target};
use crate::compilers::target::Compiler;
use crate::compilers::xla_cpu::kernel_rows::kernel_rows;
use crate::compilers::xla_cpu::kernels::kernel_row::KernelRow;
use crate::compilers::xla_gpu::added_products::add_to_products;
use crate::error::Span;
use crate::index::{FuncId, Id, OpId, StrId, ValueId};
use crate::ir::{OpKind, Program};
use crate::work::cached::Works;
use crate::work::execution::Execution;
use crate::work::ops::estimate::Estimates;
use crate::work::ops::unit::Unit;
use crate::work::ops::{Measure, Work};
use crate::work::spaces::Space;
use rustc_hash::{FxHashMap, FxHashSet};
use std::cell::OnceCell;

/// The figures of kernels that take equally long, for one run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct KernelKind {
    /// The element type that it computes in.
    pub element: StrId,
    /// What computes it.
    pub unit: Unit,
    /// The work.
    pub work: Work,
    /// Bytes that it reads.
    pub read: u128,
    /// The part of them that is in the chip's cache.
    pub cached: u128,
    /// Bytes that it writes.
    pub written: u128,
}

impl KernelKind {
    /// Bytes that it reads and writes.
    pub const fn traffic(&self) -> u128 {
        self.read.saturating_add(self.written)
    }
}

/// A kernel.
#[derive(Clone, Debug)]
pub struct Kernel {
    /// The op whose result it writes, then the ops that are fused into it, each with its location.
    pub ops: Vec<(OpId, Span)>,
    /// Whether it copies an operand of that op, and does not compute the op.
    pub is_copy: bool,
    /// Whether it is a collective.
    pub is_collective: bool,
    /// What one run does.
    pub kind: KernelKind,
    /// The bytes that XLA's analysis counts for one run.
    pub accessed: u128,
    /// The number of runs.
    pub runs: u128,
}

/// A compiler, and what it knows of its chip.
pub type Chip = (Compiler, ChipFacts);

/// The kernels of the program of `local` for the compiler of `chip`. Ops are those of the program, or, if calls were inlined, the
/// originals of the clones.
pub fn local_kernels(
    local: Local<'_>,
    estimates: &Estimates,
    chip: Chip,
    known: &Known,
) -> Vec<Kernel> {
    let inlined = inlined(local.program, chip.0);
    let program = &*inlined.program;
    let Some(entry) = program.entry_function() else { return Vec::new() };
    let mut works = Works::with_estimates(program, estimates);
    let execution = Execution::new(program, &mut works);
    let rows = rows(program, &mut works, (&execution, entry), chip, known, true);
    let rotates = may_rotate(program, chip.0);
    let mut kernels = Vec::with_capacity(rows.len());
    for row in rows {
        let family = works.family(row.op);
        let is_collective = family.is_some_and(|it| matches!(it.measure, Measure::Collective));
        let kind = kind_of(program, &mut works, &row, (chip.0, rotates));
        let ops = std::iter::once(row.op).chain(row.fused);
        kernels.push(Kernel {
            kind,
            ops: ops.map(|op| (inlined.originals.op(op), program.loc(op))).collect(),
            accessed: row.accessed,
            is_copy: row.is_copy,
            is_collective: is_collective && !row.is_copy,
            runs: row.runs,
        });
    }
    kernels
}

/// The kernels of `program`, in which calls are inlined, without their kinds.
fn rows(
    program: &Program,
    works: &mut Works<'_>,
    (execution, entry): (&Execution, FuncId),
    (compiler, facts): Chip,
    known: &Known,
    counts_accessed: bool,
) -> Vec<KernelRow> {
    let donated = donated_of_entry(program, works, entry, compiler);
    let target = Target { compiler, facts, space: Some(Space::Device), known };
    let mut rows = kernel_rows(program, works, execution, entry, &donated, target, counts_accessed);
    if compiler.fuses_by_priority() {
        add_to_products(program, works, &mut rows);
    }
    rows
}

/// Whether `program` may have rotations that `compiler` makes one instruction of.
fn may_rotate(program: &Program, compiler: Compiler) -> bool {
    let has = |name| program.strings().find(name).is_some();
    let has_shifts = has("stablehlo.shift_left") || has("stablehlo.shift_right_logical");
    compiler.fuses_by_priority() && has_shifts
}

/// The figures of the kernel `row`; `rotates`: whether ops may be parts of rotations.
fn kind_of(
    program: &Program,
    works: &mut Works<'_>,
    row: &KernelRow,
    (compiler, rotates): (Compiler, bool),
) -> KernelKind {
    let (transposes, by_priority) = (compiler.transposes_in_loops(), compiler.fuses_by_priority());
    let mut work = Work::default();
    // What is copied for a product gets another layout.
    let is_strided = row.is_copy && transposes && works.unit(row.op).product().is_some();
    let mut unit = if is_strided { Unit::Scattered } else { Unit::default() };
    let computed: &[OpId] = if row.is_copy { &[] } else { &[row.op] };
    let holds_rows = by_priority && !row.is_copy && holds_rows(program, works, row);
    for (at, &op) in computed.iter().chain(&row.fused).enumerate() {
        let (own, other) = works.work_and_unit(op);
        if !rotates || !is_part_of_rotation(program, op) {
            work = work.plus(own);
        }
        if at > 0 && other == Unit::Vector {
            continue;
        }
        // A product takes in what it reads, or what is done to its result.
        let is_hardest = unit.product().is_none() && unit != Unit::Kernel;
        if is_hardest && (at == 0 || other != Unit::Scattered) {
            unit = other;
        }
        if transposes && unit == Unit::Vector && other == Unit::Scattered {
            unit = other;
        }
    }
    if holds_rows && unit == Unit::Vector {
        unit = Unit::Rows;
    }
    KernelKind {
        element: works.element_of(row.op),
        unit,
        work,
        read: row.read,
        cached: row.cached,
        written: row.written,
    }
}

/// Whether a kernel that computes `root` and `fused` holds rows between a reduction and what reads its result, together with an
/// operand that is smaller than these rows and is the same for several of them. Such a kernel holds as many rows at a time as fit into
/// the registers, so that it computes while it does not read.
///
/// Source: tiles that XLA for GPUs chooses: 16,384 elements for such a kernel or a reduction of one, else a row.
fn holds_rows(program: &Program, works: &mut Works<'_>, row: &KernelRow) -> bool {
    let (root, fused) = (row.op, &row.fused);
    let is_reduce = |op: OpId| program.kind(op) == OpKind::Reduce;
    let whole = if is_reduce(root) {
        program.operands(root).next()
    } else {
        program.op_results(root).next()
    };
    let largest = whole.map_or(0, |it| works.tensors.of(it).elements);
    // What computes an operand, but for reshapes.
    let maker = |mut value: ValueId| loop {
        match program.defining_op(value) {
            Some(op) if program.op_name(op) == "stablehlo.reshape" => {
                value = program.operand(op, 0);
            }
            found => return found,
        }
    };
    let find_read = || -> FxHashSet<OpId> {
        let inside = std::iter::once(root).chain(fused.iter().copied());
        inside.flat_map(|op| program.operands(op)).filter_map(maker).collect()
    };
    // Most kernels have no reduction for which it is asked.
    let read = OnceCell::new();
    let is_read = |made: OpId| read.get_or_init(find_read).contains(&made);
    let mut elements = |value: Option<ValueId>| value.map_or(0, |it| works.tensors.of(it).elements);
    let mut reductions = fused.iter().copied().filter(|&op| is_reduce(op));
    let held =
        reductions.find(|&op| elements(program.operands(op).next()) == largest && is_read(op));
    let Some(held) = held else { return false };
    let rows = elements(program.op_results(held).next());
    // A mask or a scale, which is read, or computed of where it is.
    let mut is_shared = |op: OpId| {
        let size = elements(program.operands(op).next());
        let is_broadcast = program.op_name(op) == "stablehlo.broadcast_in_dim";
        is_broadcast && size != rows && (2..largest).contains(&size)
    };
    is_reduce(root) || (1..largest).contains(&row.smallest) || fused.iter().any(|&op| is_shared(op))
}

/// Whether `op` is one of the shifts of a rotation, `or` of one to the left and one to the right, which GPUs compute in one
/// instruction.
fn is_part_of_rotation(program: &Program, op: OpId) -> bool {
    let is_shift = |op: OpId| {
        let name = program.op_name(op);
        matches!(name, "stablehlo.shift_left" | "stablehlo.shift_right_logical")
    };
    let is_rotation = |user: OpId| {
        let mut made_by = program.operands(user).map(|value| program.defining_op(value));
        program.op_name(user) == "stablehlo.or" && made_by.all(|it| it.is_some_and(is_shift))
    };
    is_shift(op) && program.op_results(op).all(|it| program.users(it).all(is_rotation))
}

/// What reads and writes memory.
pub enum Kernels {
    /// The kernels of ops, as the compiler makes them.
    Modelled(KernelsOfOps),
    /// Ops, with those that are fused into them.
    Fused(Fusion),
}

/// The kernels that are attributed to each op of a program: its own, and copies of its operands; none if it is fused into other
/// kernels.
#[derive(Default)]
pub struct KernelsOfOps {
    /// Distinct sets of kernels; the first is empty.
    pub sets: Vec<Box<[KernelKind]>>,
    /// The bytes that the kernels of each set read and write.
    traffic: Vec<u128>,
    /// For each op the index of its set.
    of_op: Vec<u32>,
}

impl KernelsOfOps {
    /// The kernels of the ops of `program`, in which calls are inlined.
    pub fn new(
        program: &Program,
        works: &mut Works<'_>,
        (execution, entry): (&Execution, FuncId),
        chip: Chip,
        known: &Known,
    ) -> Self {
        let rows = rows(program, works, (execution, entry), chip, known, false);
        let rotates = may_rotate(program, chip.0);
        let mut kinds = Vec::with_capacity(rows.len());
        // The op that each kernel is attributed to, with the index of the kernel's kind.
        let mut attributed = Vec::with_capacity(rows.len());
        for row in rows.iter().filter(|row| row.runs > 0) {
            let kind = kind_of(program, works, row, (chip.0, rotates));
            let mut op = row.op;
            if kind.unit.product().is_some() && !row.is_copy {
                // A product that is computed in the kernel of its user is what takes the time.
                let mut ops = std::iter::once(row.op).chain(row.fused.iter().copied());
                op = ops.find(|&op| kind.unit == works.unit(op)).unwrap_or(op);
            }
            attributed.push((op, kinds.len() as u32));
            kinds.push(kind);
        }
        attributed.sort_unstable();
        let mut places: FxHashMap<Box<[KernelKind]>, u32> = FxHashMap::default();
        let of_op = vec![0; program.num_op_ids()];
        let mut this = Self { sets: vec![Box::default()], traffic: vec![0], of_op };
        let mut set: Vec<KernelKind> = Vec::new();
        for of_op in attributed.chunk_by(|one, other| one.0 == other.0) {
            set.clear();
            set.extend(of_op.iter().map(|&(_, kind)| kinds[kind as usize]));
            let known = places.get(&set[..]).copied();
            this.of_op[of_op[0].0.index()] = known.unwrap_or_else(|| {
                let place = this.sets.len() as u32;
                this.sets.push(set[..].into());
                let traffic = set.iter().map(KernelKind::traffic);
                this.traffic.push(traffic.fold(0, u128::saturating_add));
                places.insert(set[..].into(), place);
                place
            });
        }
        this
    }
    /// The index of the set of `op`.
    pub fn of(&self, op: OpId) -> u32 {
        self.of_op[op.index()]
    }
    /// The bytes that the kernels of the set at `place` read and write.
    pub fn traffic(&self, place: u32) -> u128 {
        self.traffic[place as usize]
    }
}
