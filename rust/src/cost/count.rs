//! The walk over a program that sums the costs of its ops.

use super::collectives::collective;
use super::dataflow::Dataflow;
use super::donation::donated_of_entry;
use super::execution::Execution;
use super::fusion::Fusion;
use super::groups::KnownGroups;
use super::host::host_order;
use super::inline::Inlined;
use super::local::Local;
use super::memory::{Liveness, Memory};
use super::schedule::Schedule;
use super::steps::{Order, RowsOfOp};
use super::work::estimate::Estimates;
use super::work::unit::Unit;
use super::work::{Movement, Work};
use super::works::{Outcome, Works};
use super::{OpRow, ProgramCost, Sequence, Uncounted};
use crate::index::{FuncId, Id, OpId, StrId};
use crate::ir::{OpKind, OpTraits, Program};
use rustc_hash::FxHashMap;

const MISSING_CALLEE: &str = "what it calls is not there";

/// The key of a row: ops with the same name, location, element type, work, unit and traffic share one.
type RowKey<'a> = (StrId, &'a str, StrId, Work, Unit, u128);

/// The sums of a walk so far.
pub(super) struct Count<'a> {
    local: Local<'a>,
    inlined: &'a Inlined<'a>,
    program: &'a Program,
    works: Works<'a>,
    execution: Execution,
    fusion: Fusion,
    groups: KnownGroups<'a>,
    rows: FxHashMap<RowKey<'a>, usize>,
    uncounted: FxHashMap<(String, &'static str), usize>,
    /// The rows of each op.
    rows_of: Vec<RowsOfOp>,
    cost: ProgramCost,
}

impl<'a> Count<'a> {
    /// The cost of `inlined`, which is the program of `local`.
    pub fn of(local: Local<'a>, inlined: &'a Inlined<'a>, estimates: &Estimates) -> ProgramCost {
        let count = Self::new(local, inlined, estimates);
        count.map_or_else(ProgramCost::default, |(count, entry)| count.finish(entry))
    }
    /// What depends on the order of the ops.
    pub fn sequence(local: Local<'a>, inlined: &'a Inlined<'a>, estimates: &Estimates) -> Sequence {
        let count = Self::new(local, inlined, estimates);
        count.map_or_else(Sequence::default, |(count, entry)| count.in_order(entry))
    }
    /// The sums over all ops, and the entry function, if there is one.
    fn new(
        local: Local<'a>,
        inlined: &'a Inlined<'a>,
        estimates: &Estimates,
    ) -> Option<(Self, FuncId)> {
        let program = &*inlined.program;
        let entry = program.entry_function()?;
        let mut works = Works::with_estimates(program, estimates);
        let execution = Execution::new(program, &mut works);
        let mut functions: Vec<OpId> =
            execution.functions.iter().map(|&func| program.func_op(func)).collect();
        let fusion = Fusion::new(program, &mut works, &functions);
        let mut count = Self {
            local,
            inlined,
            program,
            works,
            execution,
            fusion,
            groups: KnownGroups::default(),
            rows: FxHashMap::default(),
            uncounted: FxHashMap::default(),
            rows_of: vec![RowsOfOp::default(); program.num_op_ids()],
            cost: ProgramCost::default(),
        };
        // Callers first, so that rows of the entry function come first.
        functions.reverse();
        for &func in &functions {
            for &op in count.works.ops_inside(func).iter() {
                for value in program.op_results(op) {
                    count.works.tensors.id(value);
                }
                if count.execution.times_once(program.parent_block(op)) > 0
                    && !program.has_traits(op, OpTraits::TERMINATOR)
                {
                    count.add(op);
                }
            }
        }
        let inside: Vec<_> =
            functions.iter().map(|&func| (func, count.works.ops_inside(func))).collect();
        count.cost.flow = Dataflow::new(program, &count.execution, &inside, &count.rows_of);
        Some((count, entry))
    }
    /// Adds one op.
    fn add(&mut self, op: OpId) {
        let program = self.program;
        let mut work = Work::default();
        let mut is_collective = false;
        match self.works.of(op) {
            Outcome::Counted(counted) => work = counted,
            Outcome::Collective(sums) => {
                (work, is_collective) = (sums, true);
                let (works, groups) = (&mut self.works, &mut self.groups);
                let at = (self.inlined, op);
                let row = collective(self.local, at, works, &self.execution, groups);
                self.rows_of[op.index()].collective = Some(self.cost.collectives.len() as u32);
                self.cost.collectives.push(row);
            }
            Outcome::Inside => {
                let is_call = matches!(program.kind(op), OpKind::Call | OpKind::Composite);
                if is_call && self.execution.callee(program, op).is_none() {
                    self.note(op, MISSING_CALLEE);
                }
                return;
            }
            Outcome::Unknown(reason) => self.note(op, reason),
        }
        self.add_row(op, work, is_collective);
    }
    fn add_row(&mut self, op: OpId, work: Work, is_collective: bool) {
        let program = self.program;
        let estimate = self.works.estimate(op);
        let traffic = match estimate.and_then(|known| known.bytes) {
            Some(bytes) => bytes,
            None => self.fusion.traffic(program, &mut self.works, op),
        };
        let is_free = work == Work::default() && traffic == 0;
        if is_free || self.works.movement(op) == Movement::Alias {
            return;
        }
        let element = self.element(op);
        let place = program.text().get(program.loc(op));
        let unit = self.works.unit(op);
        let key = (program.op_name_id(op), place, element, work, unit, traffic);
        let ops = &mut self.cost.ops;
        let index = *self.rows.entry(key).or_insert_with(|| {
            let loc = program.loc(op);
            let (count, once) = (0, 0);
            ops.push(OpRow { op, loc, element, work, unit, traffic, count, once, is_collective });
            ops.len() - 1
        });
        self.rows_of[op.index()].row = Some(index as u32);
        let block = program.parent_block(op);
        let row = &mut self.cost.ops[index];
        row.count = row.count.saturating_add(self.execution.times(block));
        row.once = row.once.saturating_add(self.execution.times_once(block));
    }
    /// Lists `op` among those that are not counted.
    fn note(&mut self, op: OpId, reason: &'static str) {
        let program = self.program;
        let target = self.works.target(op).filter(|_| program.kind(op) == OpKind::CustomCall);
        let name = match target {
            Some(target) => format!("{} @{target}", program.op_name(op)),
            None => program.op_name(op).to_owned(),
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
    /// The element type that `op` computes in.
    fn element(&mut self, op: OpId) -> StrId {
        let operand = self.program.operands(op).next();
        let value = operand.or_else(|| self.program.op_results(op).next());
        value.map_or(StrId::NONE, |value| self.works.tensors.of(value).element)
    }
    /// What depends on the order of the ops. Of the order of the program and the depth-first one that counts which needs less.
    fn in_order(mut self, entry: FuncId) -> Sequence {
        let program = self.program;
        let donated = donated_of_entry(program, &mut self.works.tensors, entry);
        let arguments = Memory::of_ports(program, &mut self.works, entry, &[]).argument_bytes;
        let functions = self.execution.functions.iter().map(|&func| program.func_op(func));
        let functions: Vec<OpId> = functions.collect();
        let depth_first = Schedule::depth_first(program, &mut self.works.tensors, &functions);
        let peaks = [depth_first, Schedule::of_the_program()].map(|schedule| {
            let (works, fusion) = (&mut self.works, &mut self.fusion);
            Liveness::new(program, works, fusion, &self.execution, &schedule).peak(entry, &donated)
        });
        let live = host_order(program, &mut self.works, &self.execution, entry, &donated);
        let (execution, rows) = (&self.execution, &*self.rows_of);
        let order = Order { program, execution, rows, originals: &self.inlined.originals };
        let least_peak_bytes = arguments.saturating_add(peaks[0].min(peaks[1]));
        Sequence { steps: order.steps(&live), least_peak_bytes }
    }
    /// Adds the figures of arguments and results, and of loops.
    fn finish(mut self, entry: FuncId) -> ProgramCost {
        let donated = donated_of_entry(self.program, &mut self.works.tensors, entry);
        self.cost.memory = Memory::of_ports(self.program, &mut self.works, entry, &donated);
        self.cost.loops = std::mem::take(&mut self.execution.loops);
        let rows = self.cost.ops.iter();
        let mut figures =
            rows.flat_map(|row| [row.work.flops, row.work.transcendentals, row.traffic, row.count]);
        self.cost.is_saturated =
            self.works.tensors.are_saturated() || figures.any(|figure| figure == u128::MAX);
        self.cost.execution = self.execution;
        self.cost
    }
}
