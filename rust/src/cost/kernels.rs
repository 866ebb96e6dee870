//! The kernels of a per-device program, with their work; and for each op those that are attributed to it.

use super::donation::donated_of_entry;
use super::host::inlined;
use super::local::Local;
use crate::compilers::accelerator::fusion::Fusion;
use crate::compilers::compilation::{ChipFacts, Known, Target};
use crate::compilers::target::Compiler;
use crate::compilers::xla_cpu::kernel_rows::{kernel_rows, KernelRow};
use crate::compilers::xla_gpu::added_products::add_to_products;
use crate::error::Span;
use crate::index::{FuncId, Id, OpId, StrId, ValueId};
use crate::ir::Program;
use crate::work::cached::{Outcome, Works};
use crate::work::execution::Execution;
use crate::work::ops::estimate::Estimates;
use crate::work::ops::unit::Unit;
use crate::work::ops::{Measure, Work};
use crate::work::spaces::Space;
use rustc_hash::{FxHashMap, FxHashSet};

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
    let mut kernels = kernels(program, &mut works, (&execution, entry), chip, known, true);
    for (op, _) in kernels.iter_mut().flat_map(|kernel| &mut kernel.ops) {
        *op = inlined.originals.op(*op);
    }
    kernels
}

/// The kernels of `program`, in which calls are inlined.
fn kernels(
    program: &Program,
    works: &mut Works<'_>,
    (execution, entry): (&Execution, FuncId),
    (compiler, facts): Chip,
    known: &Known,
    counts_accessed: bool,
) -> Vec<Kernel> {
    let donated = donated_of_entry(program, works, entry, compiler);
    let target = Target { compiler, facts, space: Some(Space::Device), known };
    let mut rows = kernel_rows(program, works, execution, entry, &donated, target, counts_accessed);
    if compiler.fuses_by_priority() {
        add_to_products(program, works, &mut rows);
    }
    let mut kernels = Vec::with_capacity(rows.len());
    for row in rows {
        let family = works.family(row.op);
        let is_collective = family.is_some_and(|it| matches!(it.measure, Measure::Collective));
        let mut work = Work::default();
        // What is copied for a product gets another layout.
        let is_strided =
            row.is_copy && compiler.transposes_in_loops() && works.unit(row.op).product().is_some();
        let mut unit = if is_strided { Unit::Scattered } else { Unit::default() };
        let computed: &[OpId] = if row.is_copy { &[] } else { &[row.op] };
        let holds_rows =
            compiler.fuses_by_priority() && !row.is_copy && holds_rows(program, works, &row);
        for (at, &op) in computed.iter().chain(&row.fused).enumerate() {
            let is_rotated = compiler.fuses_by_priority() && is_part_of_rotation(program, op);
            work = work.plus(if is_rotated { Work::default() } else { work_of(works, op) });
            let other = works.unit(op);
            // A product takes in what it reads, or what is done to its result.
            let is_hardest = unit.product().is_none() && unit != Unit::Kernel;
            if is_hardest && (at == 0 || !matches!(other, Unit::Vector | Unit::Scattered)) {
                unit = other;
            }
            if compiler.transposes_in_loops() && unit == Unit::Vector && other == Unit::Scattered {
                unit = other;
            }
        }
        if holds_rows && unit == Unit::Vector {
            unit = Unit::Rows;
        }
        let ops = std::iter::once(row.op).chain(row.fused);
        kernels.push(Kernel {
            kind: KernelKind {
                element: works.element_of(row.op),
                unit,
                work,
                read: row.read,
                cached: row.cached,
                written: row.written,
            },
            ops: ops.map(|op| (op, program.loc(op))).collect(),
            accessed: row.accessed,
            is_copy: row.is_copy,
            is_collective: is_collective && !row.is_copy,
            runs: row.runs,
        });
    }
    kernels
}

/// Whether a kernel that computes `root` and `fused` holds rows between a reduction and what reads its result, together with an
/// operand that is smaller than these rows and is the same for several of them. Such a kernel holds as many rows at a time as fit into
/// the registers, so that it computes while it does not read.
///
/// Source: tiles that XLA for GPUs chooses: 16,384 elements for such a kernel or a reduction of one, else a row.
fn holds_rows(program: &Program, works: &mut Works<'_>, row: &KernelRow) -> bool {
    let (root, fused) = (row.op, &row.fused);
    let is_reduce = |op: OpId| program.op_name(op) == "stablehlo.reduce";
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
    let inside = std::iter::once(root).chain(fused.iter().copied());
    let read: FxHashSet<OpId> =
        inside.flat_map(|op| program.operands(op)).filter_map(maker).collect();
    let mut elements = |value: Option<ValueId>| value.map_or(0, |it| works.tensors.of(it).elements);
    let mut reductions = fused.iter().copied().filter(|&op| is_reduce(op));
    let held = reductions
        .find(|op| elements(program.operands(*op).next()) == largest && read.contains(op));
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

/// The work of one run of `op`; zero if it is not known.
fn work_of(works: &mut Works<'_>, op: OpId) -> Work {
    match works.of(op) {
        Outcome::Counted(work) | Outcome::Collective(work) => work,
        Outcome::Inside | Outcome::Unknown(_) => Work::default(),
    }
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
        let mut kinds: FxHashMap<OpId, Vec<KernelKind>> = FxHashMap::default();
        for kernel in kernels(program, works, (execution, entry), chip, known, false) {
            // A product that is computed in the kernel of its user is what takes the time.
            let is_main = |&op: &OpId| kernel.kind.unit == works.unit(op);
            let is_product = kernel.kind.unit.product().is_some() && !kernel.is_copy;
            let mut ops = kernel.ops.iter().map(|&(op, _)| op);
            let first = ops.clone().next();
            let op = ops.find(is_main).filter(|_| is_product).or(first);
            if let Some(op) = op.filter(|_| kernel.runs > 0) {
                kinds.entry(op).or_default().push(kernel.kind);
            }
        }
        let mut places: FxHashMap<Box<[KernelKind]>, u32> = FxHashMap::default();
        let mut this = Self { sets: vec![Box::default()], of_op: vec![0; program.num_op_ids()] };
        for (place, op) in this.of_op.iter_mut().zip(program.op_ids()) {
            let Some(set) = kinds.remove(&op).map(Vec::into_boxed_slice) else { continue };
            *place = *places.entry(set).or_insert_with_key(|set| {
                this.sets.push(set.clone());
                this.sets.len() as u32 - 1
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
        let set = self.sets[place as usize].iter();
        set.map(KernelKind::traffic).fold(0, u128::saturating_add)
    }
}
