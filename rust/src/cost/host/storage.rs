//! Which values of a program XLA writes to memory, and which each use computes anew.
//!
//! 1. A value with one use, by an op that fuses with its producers, is computed in that op.
//! 2. A value with several uses is computed anew in each that fuses if that is cheap and reads no more than one
//!    large operand. It is written besides where some use does not fuse.
//! 3. A sum of 4096 32-bit floats or more, and the like, takes in elementwise ops, products, convolutions and other such sums that have
//!    no other use; it reads what is written otherwise.
//! 4. What is taken from the result of a kernel is taken by the ops that read it, if all of these fuse.
//! 5. What is computed before a loop as it is the same in each trip ([`super::invariant`]) is written if the loop reads it.
//! 6. A reshape, and a value that a loop carries unchanged, is a name of its operand.
//!
//! Dots, convolutions, sorts, collectives, scatters, control flow and returns read what is written. An operand that a dot
//! or an all-gather reads in another order of its dims is copied ([`super::layouts`]); the copy fuses with its producers.
//!
//! Which ops fuse says [`super::fused`].

use super::super::fusion::{is_only_read, is_splat};
use super::super::work::Movement;
use super::super::works::Works;
use super::combined::is_scatter;
use super::equal::Equal;
use super::fused::{fuses, is_apart, is_expensive, is_name, is_sum, reads_little};
use super::invariant::Invariant;
use super::layouts::Layouts;
use super::paths::Paths;
use crate::index::{Id, OpId, ValueId};
use crate::ir::{OpKind, OpTraits, Program, ValueDef};

/// The most values in a row that several uses compute anew: the fusions of XLA are bounded, too.
const MAX_DEPTH: u8 = 15;

/// How the values of a program are stored.
pub struct Storage {
    /// The values that are equal.
    pub equal: Equal,
    pub(super) invariant: Invariant,
    pub(super) uses: Vec<u32>,
    /// The uses, where those of what is computed anew in several count as that many.
    reads: Vec<u32>,
    /// The uses by reductions that take in an op only where all of its uses are theirs.
    pub(super) sums: Vec<u32>,
    /// The reduction whose uses these are, counted from 1; [`u32::MAX`] of several.
    pub(super) sum_of: Vec<u32>,
    /// Whether a value is computed of a product that a reduction takes in.
    holds_product: Vec<bool>,
    pub(super) is_read_whole: Vec<bool>,
    /// Whether a value is computed before the loop that it is in, and some op of the loop reads it.
    is_carried: Vec<bool>,
    /// Whether some use reads it from memory in the dims that it has, and whether some use does in others.
    read_in_own: Vec<bool>,
    read_in_others: Vec<bool>,
    is_written: Vec<bool>,
    is_inlined: Vec<bool>,
    has_tail: Vec<bool>,
    depth: Vec<u8>,
    /// Of what XLA computes in the dims of matrices and reshapes for its uses: how it is reshaped.
    reshaped_as: Vec<Option<(usize, usize)>>,
}

impl Storage {
    /// How the values of `functions`, given by their ops, are stored.
    pub fn new(
        program: &Program,
        works: &mut Works<'_>,
        layouts: &mut Layouts,
        functions: &[OpId],
    ) -> Self {
        let count = program.num_value_ids();
        let equal = Equal::new(program, works, functions, false);
        let mut this = Self {
            equal,
            invariant: Invariant::new(program, works, functions),
            uses: vec![0; count],
            reads: vec![0; count],
            sums: vec![0; count],
            sum_of: vec![0; count],
            holds_product: vec![false; count],
            is_read_whole: vec![false; count],
            is_carried: vec![false; count],
            read_in_own: vec![false; count],
            read_in_others: vec![false; count],
            is_written: vec![false; count],
            is_inlined: vec![false; count],
            has_tail: vec![false; count],
            depth: vec![0; count],
            reshaped_as: vec![None; count],
        };
        let mut paths = Paths::new(program);
        for &func in functions {
            let ops = works.ops_inside(func);
            let is_first = |equal: &Equal, op: &OpId| !equal.is_repeated(program, *op);
            let ops: Vec<OpId> =
                ops.iter().copied().filter(|op| is_first(&this.equal, op)).collect();
            for &op in ops.iter().rev() {
                this.count_uses(program, works, layouts, op);
            }
            paths.enter(&ops);
            for &op in &ops {
                this.decide(program, works, layouts, (op, &mut paths));
            }
        }
        this
    }
    /// Whether `value` is written to memory of its own.
    pub fn is_written(&self, value: ValueId) -> bool {
        self.is_written[value.index()]
    }
    /// Whether ops that fuse with their producers compute `value` anew.
    pub fn is_inlined(&self, value: ValueId) -> bool {
        self.is_inlined[value.index()]
    }
    /// Whether `value` is taken from something else that its op writes.
    pub fn has_tail(&self, value: ValueId) -> bool {
        self.has_tail[value.index()]
    }
    /// Whether `op`, whose results nothing reads from memory, is computed by the reductions that take it in.
    pub fn is_computed_in_sum(&self, program: &Program, works: &mut Works<'_>, op: OpId) -> bool {
        works.movement(op) == Movement::Opaque
            && program.num_results(op) == 1
            && self.is_inlined[program.result(op, 0).index()]
            && !self.has_tail[program.result(op, 0).index()]
    }
    /// Whether some use reads `value` from memory.
    pub fn is_read_whole(&self, value: ValueId) -> bool {
        self.is_read_whole[value.index()]
    }
    /// Whether `value` is cheap, and some use reads it from memory in the dims that it has, and another in others: XLA computes
    /// it for each of the two, with the reshape.
    pub fn is_reshaped_anew(&self, value: ValueId) -> bool {
        let at = value.index();
        self.is_written[at]
            && self.is_inlined[at]
            && self.depth[at] > 0
            && self.read_in_own[at]
            && self.read_in_others[at]
    }
    /// The number of uses of `value`, those of its other names included.
    pub fn uses(&self, value: ValueId) -> u32 {
        self.uses[value.index()]
    }
    fn count_uses(
        &mut self,
        program: &Program,
        works: &mut Works<'_>,
        layouts: &mut Layouts,
        op: OpId,
    ) {
        if self.is_unused(program, works, op) {
            return;
        }
        let fuses = fuses(program, works, layouts, op);
        let is_taken_in =
            program.num_results(op) == 1 && self.is_taken_in(program, works, layouts, op);
        let is_sum = is_sum(program, works, op);
        let block = program.parent_block(op);
        let ends = ended_branch(program, op);
        let is_name = is_name(program, works, layouts, op);
        let times = self.times_made(program, works, layouts, op);
        for (index, operand) in program.operands(op).enumerate() {
            if ends.is_some_and(|owner| self.uses[program.result(owner, index).index()] == 0) {
                continue;
            }
            let operand = self.equal.first(operand);
            let folded = layouts.folded(program, works, op, (index, operand));
            let operand = folded.map_or(operand, |folded| self.equal.first(folded));
            let first = program.operands(op).next().filter(|_| index == 1);
            if first.is_some_and(|first| self.equal.first(first) == operand) {
                // A square uses its operand once.
                continue;
            }
            let at = operand.index();
            let is_carried = self.invariant.is_carried_to(program, operand, op);
            self.is_carried[at] |= is_carried;
            self.is_read_whole[at] |= is_carried;
            let is_near = match program.def(operand) {
                ValueDef::Result(def) => program.parent_block(def) == block,
                ValueDef::Arg(owner) => owner == block,
            };
            if is_near && is_name {
                let result = program.result(op, 0).index();
                self.uses[at] = self.uses[at].saturating_add(self.uses[result]);
                self.reads[at] = self.reads[at].saturating_add(self.reads[result]);
                if self.sums[result] > 0 {
                    let sums = self.sums[at].saturating_add(self.sums[result] - 1);
                    self.note_sum(at, self.sum_of[result]);
                    self.sums[at] = sums.saturating_add(1);
                }
                self.is_read_whole[at] |= self.is_read_whole[result];
                self.read_in_others[at] |= self.is_read_whole[result];
                continue;
            }
            let is_copied = !(fuses && is_near)
                && folded.is_none()
                && layouts.order(program, works, op, index).is_some();
            let is_taken_in = is_taken_in && !is_copied;
            self.uses[at] = self.uses[at].saturating_add(1);
            self.reads[at] = self.reads[at].saturating_add(times);
            if is_taken_in {
                self.note_sum(at, self.sum_of[program.result(op, 0).index()]);
            } else if is_sum && index == 0 {
                self.note_sum(at, op.index() as u32 + 1);
            }
            if is_carried || !(is_near && (fuses || is_taken_in || is_copied)) {
                self.is_read_whole[at] = true;
                let is_reshaped = layouts.reshapes(program, works, op, index);
                let read =
                    if is_reshaped { &mut self.read_in_others } else { &mut self.read_in_own };
                read[at] = true;
            }
        }
    }
    /// In how many of its users `op` is computed anew; 1 if in none.
    fn times_made(
        &self,
        program: &Program,
        works: &mut Works<'_>,
        layouts: &Layouts,
        op: OpId,
    ) -> u32 {
        let result = program.op_results(op).next().map_or(0, |value| self.reads[value.index()]);
        let is_moved = matches!(works.movement(op), Movement::Pointwise | Movement::Window);
        let is_anew = result > 1
            && is_moved
            && program.num_results(op) == 1
            && !is_expensive(program, works, layouts, op)
            && reads_little(program, works, op);
        if is_anew {
            result
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
        if program.num_results(op) != 1 {
            for (index, result) in program.op_results(op).enumerate() {
                let is_carried =
                    program.kind(op) == OpKind::While && is_only_read(program, op, index);
                let is_unused = is_branching(program, op) && self.uses[result.index()] == 0;
                self.is_written[result.index()] = !is_carried && !is_unused;
            }
            return;
        }
        let at = program.result(op, 0).index();
        if self.is_unused(program, works, op) {
            self.is_inlined[at] = true;
            return;
        }
        let movement = works.movement(op);
        let is_apart = is_apart(program, works, layouts, op);
        let is_taken_in = self.is_taken_in(program, works, layouts, op);
        self.is_read_whole[at] |= self.sums[at] > 0 && !is_taken_in;
        if program.has_traits(op, OpTraits::CONSTANT_LIKE) {
            // Others are part of the executable.
            self.is_inlined[at] = true;
            self.is_written[at] = is_splat(program, op) && self.is_read_whole[at];
        } else if is_name(program, works, layouts, op) {
            self.is_inlined[at] = true;
        } else if movement == Movement::Expand {
            (self.is_inlined[at], self.is_written[at]) = (true, self.is_read_whole[at]);
        } else if matches!(movement, Movement::Pointwise | Movement::Window) && !is_apart {
            let depth =
                program.operands(op).map(|value| self.depth[self.equal.first(value).index()]).max();
            let depth = depth.unwrap_or(0).saturating_add(1);
            let is_expensive = is_expensive(program, works, layouts, op);
            let has_one_use = self.uses[at] == 1 && (self.reads[at] == 1 || !is_expensive);
            let is_single = (has_one_use || self.sums[at] > 0) && !self.is_read_whole[at];
            let mut operands = program.operands(op).map(|value| self.equal.first(value).index());
            self.holds_product[at] = operands.any(|operand| self.holds_product[operand]);
            if self.holds_product[at] && !is_taken_in && !self.continues(program, works, op) {
                // The kernel of the product and the reduction ends here.
                (self.holds_product[at], self.is_written[at]) = (false, true);
                return;
            }
            self.reshaped_as[at] = self.matrices(program, layouts, op);
            let is_repeated = self.uses[at] > 1
                && !self.is_carried[at]
                && depth <= MAX_DEPTH
                && !is_expensive
                && (reads_little(program, works, op)
                    || self.reshaped_as[at].is_some()
                    || is_used_as_name(program, works, layouts, op)
                    || !self.is_read_whole[at] && paths.all_fuse(program, works, layouts, op));
            self.depth[at] = if is_repeated || is_single { depth } else { 0 };
            self.is_inlined[at] = is_single || is_repeated;
            self.is_written[at] = !self.is_inlined[at] || self.is_read_whole[at];
        } else if is_taken_in {
            let mut operands = program.operands(op).map(|value| self.equal.first(value).index());
            let holds_product =
                movement == Movement::Opaque || operands.any(|operand| self.holds_product[operand]);
            (self.is_inlined[at], self.depth[at], self.holds_product[at]) =
                (true, 1, holds_product);
        } else if has_tail(program, works, layouts, op) {
            let is_wide = layouts.widens(program, works, op, program.result(op, 0));
            let uses = if is_wide { self.reads[at] } else { self.uses[at].min(1) };
            let is_inlined = uses == 1 && !self.is_read_whole[at];
            (self.has_tail[at], self.is_inlined[at]) = (true, is_inlined);
            (self.depth[at], self.is_written[at]) = (u8::from(is_inlined), !is_inlined);
        } else {
            let is_carried = program.kind(op) == OpKind::While && is_only_read(program, op, 0);
            self.is_written[at] = !is_carried;
        }
    }
    /// How the result of `op`, an elementwise one, is reshaped, if XLA computes it of matrices: of two products that nothing else
    /// reads, or of what such are computed of. Source: XLA's `ReshapeMover`.
    fn matrices(
        &self,
        program: &Program,
        layouts: &mut Layouts,
        op: OpId,
    ) -> Option<(usize, usize)> {
        if program.num_operands(op) != 2 {
            return None;
        }
        let mut reshaped = program.operands(op).map(|value| {
            let value = self.equal.first(value);
            if self.uses[value.index()] != 1 {
                return None;
            }
            let known = self.reshaped_as[value.index()];
            known.or_else(|| layouts.reshapes_result(program, program.defining_op(value)?))
        });
        let (first, second) = (reshaped.next()??, reshaped.next()??);
        (first == second).then_some(first)
    }
    /// Whether `op`, of which all users are known, makes something that no op needs.
    fn is_unused(&self, program: &Program, works: &mut Works<'_>, op: OpId) -> bool {
        let is_pure = matches!(
            works.movement(op),
            Movement::Pointwise | Movement::Expand | Movement::Alias | Movement::Window
        );
        is_pure
            && program.num_results(op) == 1
            && self.uses[program.result(op, 0).index()] == 0
            && !program.has_traits(op, OpTraits::CONSTANT_LIKE)
    }
}

/// Whether one op reads the result of `op`, and makes another name of it. XLA looks at the uses of a value before it fuses: of
/// this one there is one, and each use of the name computes it.
fn is_used_as_name(
    program: &Program,
    works: &mut Works<'_>,
    layouts: &mut Layouts,
    op: OpId,
) -> bool {
    let mut users = program.users(program.result(op, 0));
    let user = users.next();
    users.next().is_none() && user.is_some_and(|user| is_name(program, works, layouts, user))
}

/// The op whose results `op` ends a branch with.
fn ended_branch(program: &Program, op: OpId) -> Option<OpId> {
    if !program.has_traits(op, OpTraits::TERMINATOR) {
        return None;
    }
    let owner = program.parent_op(op)?;
    (is_branching(program, owner) && program.num_results(owner) == program.num_operands(op))
        .then_some(owner)
}

/// Whether `op` runs one of several branches.
fn is_branching(program: &Program, op: OpId) -> bool {
    matches!(program.kind(op), OpKind::Case | OpKind::If)
}

/// Whether the result of `op` is taken from something else that it writes: a part of it, `f32` of which it is the `bf16`, or the
/// same in another order of dims. Ops that fuse with their producers take what they need themselves.
fn has_tail(program: &Program, works: &mut Works<'_>, layouts: &mut Layouts, op: OpId) -> bool {
    if layouts.image_groups(program, op) > 1 {
        return false;
    }
    is_scatter(program, op)
        || layouts.widens(program, works, op, program.result(op, 0))
        || layouts.moves_result(program, works, op)
}
