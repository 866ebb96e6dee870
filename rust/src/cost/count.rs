//! The walk over a program that sums the costs of its ops.

use super::collectives::collective;
use super::dataflow::Dataflow;
use super::donation::donated_of_entry;
use super::groups::KnownGroups;
use super::host::copies;
use super::kernels::{Chip, Kernels, KernelsOfOps};
use super::local::Local;
use super::memory::Memory;
use super::steps::{Order, RowsOfOp, Step};
use super::{OpRow, ProgramCost, Uncounted, WorkKind};
use crate::compilers::accelerator::fusion::Fusion;
use crate::compilers::compilation::{Known, Target};
use crate::compilers::target::Compiler;
use crate::compilers::xla_cpu::compiled_order;
use crate::compilers::xla_tpu::narrowed_values::Narrowed;
use crate::error::Span;
use crate::index::{BlockId, FuncId, Id, IdVec, OpId, SignatureId, StrId};
use crate::inlining::call_inliner::Inlined;
use crate::ir::{OpKind, OpTraits, Program};
use crate::spmd::custom_partitioning::{called, is_partitioned_call};
use crate::work::cached::{Outcome, Works};
use crate::work::execution::Execution;
use crate::work::ops::estimate::Estimates;
use crate::work::ops::{Movement, Work};
use crate::work::spaces::Space;
use rustc_hash::FxHashMap;

/// The index of an op that shares its costs with no other.
const NOT_ALIKE: u32 = u32::MAX;

const ON_HOST: &str = "the host computes it";
const AT_OPERAND: &str =
    "the host computes it, as an operand is in its memory and not placed on the device";
const MISSING_CALLEE: &str = "what it calls is not there";

/// The key of a row: ops with the same name, location and kind share one.
type RowKey<'a> = (StrId, &'a str, u32);

/// The bytes that an op reads and writes, and the kernels that start with it; see [`WorkKind::kernels`].
type Traffic = (u128, Option<u32>);

/// The costs that ops of equal signature and types share; not for ops with regions, custom calls and aliases.
#[derive(Clone, Copy)]
struct Alike {
    work: Work,
    has_work: bool,
    is_collective: bool,
}

/// The sums of a walk so far.
pub(crate) struct Count<'a> {
    local: Local<'a>,
    inlined: &'a Inlined<'a>,
    program: &'a Program,
    works: Works<'a>,
    execution: Execution,
    kernels: Kernels,
    groups: KnownGroups<'a>,
    /// The values that are stored as `bf16`.
    narrowed: Narrowed<'a>,
    /// For each signature the index in `alikes` of the ops that share costs.
    alike_of: IdVec<SignatureId, u32>,
    alikes: Vec<Alike>,
    rows: FxHashMap<RowKey<'a>, usize>,
    /// The indices of kinds in `ProgramCost::kinds`.
    kinds: FxHashMap<WorkKind, u32>,
    /// The kind of ops that share costs, by their index in `alikes` and their traffic.
    kinds_of_alike: FxHashMap<(u32, Traffic), u32>,
    /// The row of ops that share costs, by signature, location and traffic.
    rows_of_alike: FxHashMap<(SignatureId, Span, Traffic), usize>,
    uncounted: FxHashMap<(String, &'static str), usize>,
    cost: ProgramCost,
}

impl<'a> Count<'a> {
    /// The cost of `inlined`, which is the program of `local` with its calls inlined.
    pub fn of(
        local: Local<'a>,
        inlined: &'a Inlined<'a>,
        estimates: &Estimates,
        chip: Chip,
    ) -> ProgramCost {
        let count = Self::new(local, inlined, estimates, Some(chip));
        count.map_or_else(ProgramCost::default, |(count, entry)| count.finish(entry, chip.0))
    }
    /// The steps of the program of `local`.
    pub fn steps(
        local: Local<'a>,
        inlined: &'a Inlined<'a>,
        estimates: &Estimates,
        chip: Chip,
    ) -> Vec<Step> {
        let count = Self::new(local, inlined, estimates, Some(chip));
        count.map_or_else(Vec::new, |(count, entry)| count.in_order(entry, chip))
    }
    /// The sums over all ops, and the entry function, if there is one.
    fn new(
        local: Local<'a>,
        inlined: &'a Inlined<'a>,
        estimates: &Estimates,
        chip: Option<Chip>,
    ) -> Option<(Self, FuncId)> {
        let program = &*inlined.program;
        let entry = program.entry_function()?;
        let mut works = Works::with_estimates(program, estimates);
        let execution = Execution::new(program, &mut works);
        let mut functions: Vec<OpId> =
            execution.functions.iter().map(|&func| program.func_op(func)).collect();
        let known = Known::default();
        let compiler = chip.map_or(Compiler::None, |chip| chip.0);
        let narrowed = Narrowed::of_collectives(program, &mut works, &functions, compiler);
        let kernels = match chip.filter(|chip| chip.0.has_timed_kernels()) {
            Some(chip) => Kernels::Modelled(KernelsOfOps::new(
                program,
                &mut works,
                (&execution, entry),
                chip,
                &known,
            )),
            None => Kernels::Fused(Fusion::new(program, &mut works, &functions)),
        };
        let mut count = Self {
            local,
            inlined,
            program,
            works,
            execution,
            kernels,
            groups: KnownGroups::default(),
            narrowed,
            alike_of: IdVec::filled(NOT_ALIKE, program.signatures().len()),
            alikes: Vec::new(),
            rows: FxHashMap::default(),
            kinds: FxHashMap::default(),
            kinds_of_alike: FxHashMap::default(),
            rows_of_alike: FxHashMap::default(),
            uncounted: FxHashMap::default(),
            cost: ProgramCost {
                rows_of: vec![RowsOfOp::default(); program.num_op_ids()],
                known,
                compiler,
                ..ProgramCost::default()
            },
        };
        // Callers first, so that rows of the entry function come first.
        functions.reverse();
        // The block of the op before, and whether it runs.
        let (mut block, mut is_run) = (BlockId::NONE, false);
        for &func in &functions {
            for &op in count.works.ops_inside(func).iter() {
                for value in program.op_results(op) {
                    count.works.tensors.id(value);
                }
                if program.parent_block(op) != block {
                    block = program.parent_block(op);
                    is_run = count.execution.times_once(block) > 0;
                }
                if is_run && program.has_traits(op, OpTraits::TERMINATOR) {
                    count.add_copies(op);
                } else if is_run {
                    count.add(op);
                }
            }
        }
        let rows = &mut *count.cost.rows_of;
        count.cost.host.copies = copies(program, &mut count.works, &count.execution, rows);
        let (execution, rows) = (&count.execution, &*count.cost.rows_of);
        count.cost.flow = Dataflow::new(program, execution, &mut count.works, &functions, rows);
        Some((count, entry))
    }
    /// Adds one op.
    fn add(&mut self, op: OpId) {
        if self.works.is_free(op) {
            return;
        }
        if self.works.spaces.is_off_chip(op) {
            return self.add_off_chip(op);
        }
        if let Some(place) = self.alike(op) {
            return self.add_alike(op, place);
        }
        let program = self.program;
        let outcome = self.works.of(op);
        match outcome {
            Outcome::Counted(_) => {}
            Outcome::Collective(_) => self.add_collective(op),
            Outcome::Inside => {
                let is_call = matches!(program.kind(op), OpKind::Call | OpKind::Composite);
                if is_call && self.execution.callee(program, op).is_none() {
                    self.note(op, MISSING_CALLEE);
                }
                return self.add_copies(op);
            }
            Outcome::Unknown(reason) => self.note(op, reason),
        }
        self.add_row(op, &outcome);
    }
    /// Adds the host copies of `op`, which has no work of its own.
    fn add_copies(&mut self, op: OpId) {
        if matches!(&self.kernels, Kernels::Modelled(kernels) if kernels.of(op) != 0) {
            self.add_row(op, &Outcome::Inside);
        }
    }
    /// Adds an op that the chip does not execute.
    fn add_off_chip(&mut self, op: OpId) {
        let movement = self.works.movement(op);
        let is_computed = self.works.spaces.is_computed_by_host(op);
        if !is_computed || matches!(movement, Movement::Alias | Movement::Expand | Movement::Inside)
        {
            return;
        }
        if let Outcome::Counted(work) = self.works.of(op) {
            let times = self.execution.times(self.program.parent_block(op));
            let host = &mut self.cost.host;
            host.work = host.work.plus(work.times(times));
        }
        let is_asked = self.works.spaces.is_asked_of_host(op);
        self.note(op, if is_asked { ON_HOST } else { AT_OPERAND });
    }
    fn add_collective(&mut self, op: OpId) {
        let Self { works, groups, narrowed, execution, .. } = self;
        let row = collective(self.local, (self.inlined, op), narrowed, works, execution, groups);
        self.cost.rows_of[op.index()].collective = Some(self.cost.collectives.len() as u32);
        self.cost.collectives.push(row);
    }
    /// The index in `alikes` of the costs that `op` shares.
    fn alike(&self, op: OpId) -> Option<u32> {
        let known = *self.alike_of.get(self.program.signature(op))?;
        (known != NOT_ALIKE && self.works.is_as_signed(op)).then_some(known)
    }
    /// Adds `op`, whose shared costs are at `place`.
    fn add_alike(&mut self, op: OpId, place: u32) {
        let alike = self.alikes[place as usize];
        let Alike { has_work, is_collective, .. } = alike;
        if is_collective {
            self.add_collective(op);
        }
        let program = self.program;
        let traffic = self.traffic(op);
        if !has_work && traffic.0 == 0 {
            return;
        }
        let key = (program.signature(op), program.loc(op), traffic);
        let index = if let Some(&known) = self.rows_of_alike.get(&key) {
            known
        } else {
            let kind = if let Some(&known) = self.kinds_of_alike.get(&(place, traffic)) {
                known
            } else {
                let kind = self.kind(op, alike, traffic);
                self.kinds_of_alike.insert((place, traffic), kind);
                kind
            };
            let index = self.row(op, kind);
            self.rows_of_alike.insert(key, index);
            index
        };
        self.count_run(op, index);
    }
    fn add_row(&mut self, op: OpId, outcome: &Outcome) {
        let (work, is_collective, is_counted) = match *outcome {
            Outcome::Counted(work) => (work, false, true),
            Outcome::Collective(work) => (work, true, true),
            Outcome::Inside | Outcome::Unknown(_) => (Work::default(), false, false),
        };
        let program = self.program;
        let estimate = self.works.estimate(op);
        let traffic = match estimate.and_then(|known| known.bytes) {
            Some(bytes) => (bytes, None),
            None => self.traffic(op),
        };
        if self.works.movement(op) == Movement::Alias {
            return;
        }
        let has_work = work != Work::default();
        let own = Alike { work, has_work, is_collective };
        if is_counted && self.works.is_as_signed(op) {
            self.alike_of[program.signature(op)] = self.alikes.len() as u32;
            self.alikes.push(own);
        }
        if !has_work && traffic.0 == 0 {
            return;
        }
        let kind = self.kind(op, own, traffic);
        let index = self.row(op, kind);
        self.count_run(op, index);
    }
    /// Counts the runs of `op` in the row `index`.
    fn count_run(&mut self, op: OpId, index: usize) {
        self.cost.rows_of[op.index()].row = Some(index as u32);
        let block = self.program.parent_block(op);
        let row = &mut self.cost.ops[index];
        row.count = row.count.saturating_add(self.execution.times(block));
    }
    /// The bytes that `op` reads and writes, and its kernels.
    fn traffic(&mut self, op: OpId) -> Traffic {
        match &mut self.kernels {
            Kernels::Modelled(kernels) => {
                let set = kernels.of(op);
                (kernels.traffic(set), Some(set))
            }
            Kernels::Fused(fusion) => (fusion.traffic(self.program, &mut self.works, op), None),
        }
    }
    fn kind(&mut self, op: OpId, alike: Alike, (traffic, kernels): Traffic) -> u32 {
        let Alike { work, is_collective, .. } = alike;
        let (element, unit) = (self.works.element_of(op), self.works.unit(op));
        let kind = WorkKind { element, unit, work, traffic, is_collective, kernels };
        let kinds = &mut self.cost.kinds;
        *self.kinds.entry(kind).or_insert_with(|| {
            kinds.push(kind);
            kinds.len() as u32 - 1
        })
    }
    /// The row of `op`, which is of `kind`.
    fn row(&mut self, op: OpId, kind: u32) -> usize {
        let program = self.program;
        let loc = program.loc(op);
        let key = (program.op_name_id(op), program.text().get(loc), kind);
        let WorkKind { element, unit, work, traffic, is_collective, .. } =
            self.cost.kinds[kind as usize];
        let ops = &mut self.cost.ops;
        *self.rows.entry(key).or_insert_with(|| {
            let count = 0;
            ops.push(OpRow { op, loc, element, work, unit, traffic, count, is_collective, kind });
            ops.len() - 1
        })
    }
    /// Lists `op` among the ops that are not counted.
    fn note(&mut self, op: OpId, reason: &'static str) {
        let program = self.program;
        let target = self.works.target(op).filter(|_| program.kind(op) == OpKind::CustomCall);
        let name = match target {
            Some(target) if !is_partitioned_call(program, op) => {
                format!("{} @{target}", program.op_name(op))
            }
            _ => called(program, op).into_owned(),
        };
        let operands = program.operands(op);
        let values = operands.chain(program.op_results(op));
        let held: u128 = values.map(|value| self.works.tensors.bytes(value)).sum();
        let times = self.execution.times(program.parent_block(op));
        let rows = &mut self.cost.uncounted;
        let index = *self.uncounted.entry((name.clone(), reason)).or_insert_with(|| {
            let loc = program.loc(op);
            rows.push(Uncounted { op, loc, name, reason, count: 0, bytes: 0 });
            rows.len() - 1
        });
        let row = &mut self.cost.uncounted[index];
        row.count = row.count.saturating_add(times);
        row.bytes = row.bytes.saturating_add(held.saturating_mul(times));
    }
    /// The steps of the program, in the order in which the compiler runs them.
    fn in_order(mut self, entry: FuncId, (compiler, facts): Chip) -> Vec<Step> {
        let known = &Known::default();
        let target = Target { compiler, facts, space: Some(Space::Device), known };
        let program = self.program;
        let donated = donated_of_entry(program, &mut self.works, entry, compiler);
        let (works, execution) = (&mut self.works, &self.execution);
        let live = compiled_order(program, works, execution, entry, &donated, target);
        let (execution, rows) = (&self.execution, &*self.cost.rows_of);
        Order { program, execution, rows, originals: &self.inlined.originals }.steps(&live)
    }
    /// Adds the figures of arguments, results and loops.
    fn finish(mut self, entry: FuncId, compiler: Compiler) -> ProgramCost {
        let (program, works) = (self.program, &mut self.works);
        let donated = donated_of_entry(program, works, entry, compiler);
        self.cost.memory =
            Memory::of_ports(program, works, entry, &donated, (Space::Device, compiler));
        self.cost.host.memory =
            Memory::of_ports(program, works, entry, &donated, (Space::Host, compiler));
        self.cost.donated = donated;
        self.cost.loops = std::mem::take(&mut self.execution.loops);
        let rows = self.cost.ops.iter();
        let mut figures =
            rows.flat_map(|row| [row.work.flops, row.work.transcendentals, row.traffic, row.count]);
        self.cost.is_saturated =
            self.works.tensors.are_saturated() || figures.any(|figure| figure == u128::MAX);
        self.cost.execution = self.execution;
        if let Kernels::Modelled(kernels) = self.kernels {
            self.cost.kernels = kernels.sets;
        }
        self.cost
    }
}
