//! Which values XLA materializes in memory, and which it recomputes in each consumer.
//!
//! 1. A value with one use, by an op that fuses with its producers, is computed in that op.
//! 2. A value with several uses is recomputed in each consumer that fuses, if it is cheap and reads at most one large operand. It
//!    is also materialized if some consumer does not fuse.
//! 3. A library reduction (over 4096 32-bit floats or more) fuses elementwise ops, dots, convolutions and other such reductions
//!    that have no other use; its other operands are materialized.
//! 4. A conversion, transpose or sum at the end of a kernel (its tail) is fused into the consumers, if all of these fuse.
//! 5. A loop-invariant value that is hoisted ([`crate::compilers::xla_cpu::passes::loop_invariant_code_motion`]) is materialized if
//!    the loop reads it.
//! 6. A reshape, and a value that a loop carries unchanged, is an alias of its operand.
//!
//! Dots, convolutions, sorts, collectives, scatters, control flow and returns read materialized operands. An operand that a dot or
//! an all-gather reads in another layout is copied ([`crate::compilers::xla_cpu::layout_assignment::operand_copies`]); the copy
//! fuses with its producers.
//!
//! [`super::instruction_fusion`] says which ops fuse.

use crate::compilers::accelerator::fusion::is_only_read;
use crate::compilers::xla_cpu::fusion::duplicated_producers::Paths;
use crate::compilers::xla_cpu::fusion::op_facts::{
    ended_branch, is_branching, Fact, Facts, Inside,
};
use crate::compilers::xla_cpu::layout_assignment::operand_copies::Layouts;
use crate::compilers::xla_cpu::passes::collective_combiner::is_expanded_scatter;
use crate::compilers::xla_cpu::passes::common_subexpressions::{Equal, Search};
use crate::compilers::xla_cpu::passes::loop_invariant_code_motion::Invariant;
use crate::compilers::xla_tpu::while_loop_fusible_sinking::{is_broadcast, is_sunk};
use crate::index::{Id, OpId, ValueId};
use crate::ir::{OpKind, Program, ValueDef};
use crate::work::cached::Works;
use rustc_hash::FxHashMap;

/// The longest chain of values that are duplicated into several consumers: XLA bounds the size of fusions, too.
const MAX_DEPTH: u8 = 15;

/// How the values of a program are stored.
pub struct Storage {
    /// The values that are equal (common subexpressions).
    pub equal: Equal,
    pub facts: Facts,
    pub(in crate::compilers::xla_cpu) invariant: Invariant,
    pub(in crate::compilers::xla_cpu) rows: Vec<Row>,
    /// For elementwise ops that XLA computes in the shape of matrices, with a reshape for their users: how the result is reshaped.
    reshaped: FxHashMap<ValueId, (u32, u32)>,
}

/// How a value is stored.
#[derive(Clone, Copy, Default)]
#[allow(clippy::struct_excessive_bools)] // Each is found out by itself.
pub(in crate::compilers) struct Row {
    pub uses: u32,
    /// The uses, where a consumer that is itself duplicated counts once for each copy.
    pub reads: u32,
    /// The uses by library reductions, which fuse a producer only if it has no other use.
    pub sums: u32,
    /// The reduction with these uses, as its index plus one; [`u32::MAX`] for several.
    pub sum_of: u32,
    depth: u8,
    /// Whether it is computed from a dot or convolution that a library reduction fuses.
    holds_product: bool,
    /// Whether rows that are broadcast take part in it, as in a softmax.
    reads_rows: bool,
    pub is_read_whole: bool,
    /// Whether it is hoisted out of its loop, and some op in the loop reads it.
    is_carried: bool,
    /// Whether some use reads it from memory in its own shape, and whether some use reads it in another shape.
    pub read_in_own: bool,
    read_in_others: bool,
    is_written: bool,
    /// Whether consumers that fuse recompute it.
    pub is_inlined: bool,
    pub has_tail: bool,
    /// Whether they need no operand for that, and no op reads it from memory.
    pub is_nothing: bool,
}

impl Storage {
    /// How the values of `functions`, given by their ops, are stored.
    pub fn new(
        program: &Program,
        works: &mut Works<'_>,
        layouts: &mut Layouts,
        functions: &[OpId],
    ) -> Self {
        let mut search = Search::new(program, false, layouts.compiler().fuses_by_priority());
        let is_new = |works: &mut Works<'_>, op, fact: Fact| {
            !fact.has(Fact::ALIKE) || search.is_new(works, op)
        };
        let (facts, inside) = Facts::new(program, works, layouts, functions, is_new);
        let mut this = Self {
            equal: search.finish(),
            facts,
            invariant: Invariant::new(program, works, functions),
            rows: vec![Row::default(); program.num_value_ids()],
            reshaped: FxHashMap::default(),
        };
        let mut paths = Paths::new(program);
        for Inside { ops, is_flat } in inside {
            for &op in ops.iter().rev() {
                this.count_uses(program, works, layouts, (op, is_flat));
            }
            paths.enter(&ops);
            for &op in &ops {
                this.decide(program, works, layouts, (op, &mut paths));
            }
        }
        this
    }
    /// How `value` is stored.
    #[inline]
    pub(in crate::compilers) fn row(&self, value: ValueId) -> &Row {
        &self.rows[value.index()]
    }
    /// Overrides the storage of `value` by the decision of another pass: whether it is written, and whether some users recompute
    /// it.
    pub fn store(&mut self, value: ValueId, is_written: bool, is_inlined: bool) {
        let row = &mut self.rows[value.index()];
        (row.is_written, row.is_inlined) = (is_written, is_inlined);
        row.is_nothing &= !is_written;
    }
    /// Whether `value` is written to memory of its own.
    #[inline]
    pub fn is_written(&self, value: ValueId) -> bool {
        self.rows[value.index()].is_written
    }
    /// Whether `value` is computed from a larger intermediate result that its op writes ([`Fact::TAIL`]).
    #[inline]
    pub fn has_tail(&self, value: ValueId) -> bool {
        self.rows[value.index()].has_tail
    }
    /// Whether `op` is computed in the library reduction that fuses it, and no op reads its result from memory.
    pub fn is_computed_in_sum(&self, program: &Program, op: OpId) -> bool {
        self.facts.has(op, Fact::OPAQUE)
            && program.num_results(op) == 1
            && self.rows[program.result(op, 0).index()].is_inlined
            && !self.rows[program.result(op, 0).index()].has_tail
    }
    /// Whether some use reads `value` from memory.
    #[inline]
    pub fn is_read_whole(&self, value: ValueId) -> bool {
        self.rows[value.index()].is_read_whole
    }
    /// Whether `value` is cheap, and read from memory in its own shape as well as in another one: XLA computes it twice, the second
    /// time fused with the reshape.
    pub fn is_reshaped_anew(&self, value: ValueId) -> bool {
        let at = value.index();
        self.rows[at].is_written
            && self.rows[at].is_inlined
            && self.rows[at].depth > 0
            && self.rows[at].read_in_own
            && self.rows[at].read_in_others
    }
    /// The number of uses of `value`, including those of its aliases.
    #[inline]
    pub fn uses(&self, value: ValueId) -> u32 {
        self.rows[value.index()].uses
    }
    /// Counts the uses of the operands of `op`; `is_flat`: all ops of its function are in one block.
    fn count_uses(
        &mut self,
        program: &Program,
        works: &mut Works<'_>,
        layouts: &mut Layouts,
        (op, is_flat): (OpId, bool),
    ) {
        let own = program.op_results(op).next().map(|result| self.rows[result.index()]);
        let own = own.unwrap_or_default();
        let facts = self.facts.of(op);
        if is_unused(facts, own.uses) {
            return;
        }
        let fuses = facts.has(Fact::FUSES);
        let is_opaque = layouts.carried.may_copy(op, facts.has(Fact::OPAQUE));
        let (is_sum, is_name) = (facts.has(Fact::SUM), facts.has(Fact::NAME));
        let is_product = facts.has(Fact::PRODUCT);
        let has_loops = self.invariant.has_loops();
        let block = program.parent_block(op);
        let ends = if facts.has(Fact::SINGLE) { None } else { ended_branch(program, op) };
        let times = self.times_made(program, works, (op, facts), own.reads);
        let is_taken_in = own.sums > 0
            && facts.has(Fact::SINGLE)
            && self.is_taken_in(program, works, layouts, op);
        let mut first = ValueId::NONE;
        for (index, operand) in program.operands(op).enumerate() {
            let operand = self.equal.first(operand);
            if index == 0 {
                first = operand;
            }
            if ends.is_some_and(|owner| self.rows[program.result(owner, index).index()].uses == 0) {
                continue;
            }
            let mut folded = None;
            if is_product {
                folded = layouts.folded_into(program, works, op, (index, operand));
            }
            let used = folded.map_or(operand, |folded| self.equal.first(folded));
            if index == 1 && first == used {
                // A square uses its operand once.
                continue;
            }
            let at = used.index();
            let compiler = layouts.compiler();
            if is_sunk(program, &self.facts, compiler, (op, index, used)) {
                self.rows[at].uses += 1;
                continue;
            }
            let is_carried = has_loops
                && self.invariant.is_carried_to(program, used, op)
                && !is_broadcast(program, &self.facts, compiler, used);
            let is_near = is_flat
                || match program.def(used) {
                    ValueDef::Result(def) => program.parent_block(def) == block,
                    ValueDef::Arg(owner) => owner == block,
                };
            let row = &mut self.rows[at];
            if is_carried {
                (row.is_carried, row.is_read_whole) = (true, true);
            }
            if is_near && is_name {
                row.uses = row.uses.saturating_add(own.uses);
                row.reads = row.reads.saturating_add(own.reads);
                row.is_read_whole |= own.is_read_whole;
                row.read_in_others |= own.is_read_whole;
                if own.sums > 0 {
                    let sums = row.sums.saturating_add(own.sums - 1);
                    row.note_sum(own.sum_of);
                    row.sums = sums.saturating_add(1);
                }
                continue;
            }
            let is_copied = is_opaque
                && !(fuses && is_near)
                && folded.is_none()
                && layouts.copies(program, works, op, index);
            let is_taken_in = is_taken_in && !is_copied;
            row.uses = row.uses.saturating_add(1);
            row.reads = row.reads.saturating_add(times);
            if is_taken_in {
                row.note_sum(own.sum_of);
            } else if is_sum && index == 0 {
                row.note_sum(op.index() as u32 + 1);
            }
            if is_carried || !(is_near && (fuses || is_taken_in || is_copied)) {
                row.is_read_whole = true;
                if is_product && layouts.reshapes(program, works, op, index) {
                    row.read_in_others = true;
                } else {
                    row.read_in_own = true;
                }
            }
        }
    }
    /// The number of users in which `op`, whose result has so many `reads`, is recomputed; 1 if it is not duplicated.
    fn times_made(
        &self,
        program: &Program,
        works: &mut Works<'_>,
        (op, facts): (OpId, Fact),
        reads: u32,
    ) -> u32 {
        let is_anew = reads > 1
            && facts.has(Fact::SINGLE)
            && !facts.has(Fact::EXPENSIVE)
            && facts.has_any(Fact::POINTWISE.or(Fact::WINDOW))
            && self.facts.reads_little(program, works, op);
        if is_anew {
            reads
        } else {
            1
        }
    }
    fn decide(
        &mut self,
        program: &Program,
        works: &mut Works<'_>,
        layouts: &mut Layouts,
        (op, paths): (OpId, &mut Paths),
    ) {
        let facts = self.facts.of(op);
        if !facts.has(Fact::SINGLE) {
            for (index, result) in program.op_results(op).enumerate() {
                let is_carried =
                    program.kind(op) == OpKind::While && is_only_read(program, op, index);
                let row = &mut self.rows[result.index()];
                let is_unused = is_branching(program, op) && row.uses == 0;
                row.is_written = !is_carried && !is_unused;
            }
            return;
        }
        let at = program.result(op, 0).index();
        let mut row = self.rows[at];
        if is_unused(facts, row.uses) {
            self.rows[at].is_inlined = true;
            return;
        }
        let is_taken_in = row.sums > 0 && self.is_taken_in(program, works, layouts, op);
        row.is_read_whole |= row.sums > 0 && !is_taken_in;
        let has = |fact: Fact| facts.has(fact);
        if has(Fact::CONSTANT) {
            // Others are part of the executable.
            row.is_inlined = true;
            row.is_written = has(Fact::OF_NOTHING) && row.is_read_whole;
        } else if has(Fact::NAME) {
            row.is_inlined = true;
        } else if has(Fact::EXPAND) {
            (row.is_inlined, row.is_written) = (true, row.is_read_whole);
            let input = program.operands(op).next();
            row.reads_rows = input.is_some_and(|it| program.value_type(it).rank() != Some(0));
        } else if facts.has_any(Fact::POINTWISE.or(Fact::WINDOW)) && !has(Fact::APART) {
            let mut depth = 0;
            for value in program.operands(op) {
                let operand = self.rows[self.equal.first(value).index()];
                depth = operand.depth.max(depth);
                row.holds_product |= operand.holds_product;
                row.reads_rows |= operand.reads_rows;
            }
            let depth = depth.saturating_add(1);
            let is_expensive = has(Fact::EXPENSIVE)
                && row.uses > layouts.compiler().expensive_uses(row.reads_rows);
            let has_one_use = row.uses == 1 && (row.reads == 1 || !is_expensive);
            let is_single = (has_one_use || row.sums > 0) && !row.is_read_whole;
            if row.holds_product && !is_taken_in && !self.continues(program, works, (op, &row)) {
                // The kernel of the product and the reduction ends here.
                (row.holds_product, row.is_written) = (false, true);
                self.rows[at] = row;
                return;
            }
            let reshaped = self.matrices(program, layouts, op);
            if let Some(reshaped) = reshaped {
                self.reshaped.insert(program.result(op, 0), reshaped);
            }
            let is_repeated = row.uses > 1
                && !row.is_carried
                && depth <= MAX_DEPTH
                && !is_expensive
                && (self.facts.reads_little(program, works, op)
                    || reshaped.is_some()
                    || self.is_used_as_name(program, op)
                    || !layouts.compiler().fuses_products()
                        && !row.is_read_whole
                        && paths.all_fuse(program, works, &self.facts, op));
            row.depth = if is_repeated || is_single { depth } else { 0 };
            row.is_inlined = is_single || is_repeated;
            row.is_written = !row.is_inlined || row.is_read_whole;
        } else if is_taken_in {
            let mut operands = program.operands(op).map(|value| self.equal.first(value).index());
            row.holds_product =
                has(Fact::OPAQUE) || operands.any(|operand| self.rows[operand].holds_product);
            (row.is_inlined, row.depth) = (true, 1);
        } else if has(Fact::TAIL)
            || has(Fact::REDUCES) && is_expanded_scatter(program, layouts.compiler(), op)
        {
            let is_wide = layouts.widens(program, works, op, program.result(op, 0));
            let uses = if is_wide { row.reads } else { row.uses.min(1) };
            let is_inlined = uses == 1 && !row.is_read_whole;
            (row.has_tail, row.is_inlined) = (true, is_inlined);
            (row.depth, row.is_written) = (u8::from(is_inlined), !is_inlined);
        } else {
            let is_carried = program.kind(op) == OpKind::While && is_only_read(program, op, 0);
            row.is_written = !is_carried;
        }
        let is_computed = row.is_inlined && !row.is_read_whole && !has(Fact::OPAQUE);
        row.is_nothing = is_computed
            && program.operands(op).all(|value| self.row(self.equal.first(value)).is_nothing);
        self.rows[at] = row;
    }
    /// Whether the only user of the result of `op` is an alias of it. XLA counts uses before it fuses: it sees one use here, and
    /// duplicates the op into each user of the alias.
    fn is_used_as_name(&self, program: &Program, op: OpId) -> bool {
        let mut users = program.users(program.result(op, 0));
        let user = users.next();
        users.next().is_none() && user.is_some_and(|user| self.facts.has(user, Fact::NAME))
    }
    /// How the result of `op`, a binary elementwise op, is reshaped, if XLA computes it in the shape of matrices: its operands are
    /// dots without other uses, or such elementwise ops. Source: XLA's `ReshapeMover`.
    fn matrices(&self, program: &Program, layouts: &mut Layouts, op: OpId) -> Option<(u32, u32)> {
        if program.num_operands(op) != 2 {
            return None;
        }
        let mut reshaped = program.operands(op).map(|value| {
            let value = self.equal.first(value);
            if self.rows[value.index()].uses != 1 {
                return None;
            }
            let known = self.reshaped.get(&value).copied();
            known.or_else(|| layouts.reshapes_result(program, program.defining_op(value)?))
        });
        let (first, second) = (reshaped.next()??, reshaped.next()??);
        (first == second).then_some(first)
    }
}

/// Whether an op with these facts is dead code, as its result has so many `uses`.
fn is_unused(facts: Fact, uses: u32) -> bool {
    uses == 0 && facts.has(Fact::PURE.or(Fact::SINGLE)) && !facts.has(Fact::CONSTANT)
}
