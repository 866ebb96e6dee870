//! Checks ops with successors, and that definitions dominate their uses.
//!
//! Takes time linear in the program, plus, for values in regions with several blocks, linear in
//! their uses times the nesting depth of the users.

use super::dominance::Dominance;
use super::Verifier;
use crate::index::{BlockId, OpId, RegionId, ValueId};
use crate::ir::{OpTraits, Program, Type};
use crate::stablehlo::Attributes;

impl Verifier<'_> {
    /// Checks ops that have successors although they may not, branches to entry blocks, and
    /// dominance between blocks.
    pub(super) fn ways(&mut self) {
        let Some(successors) = self.successors.take() else { return };
        let mut ops: Vec<OpId> = successors.keys().copied().collect();
        ops.sort_unstable();
        for op in ops {
            self.takes_successors(op, successors[&op].len());
        }
        for region in std::mem::take(&mut self.branching) {
            let dominance = Dominance::new(self.program, region, &successors);
            if dominance.entry_is_jumped_to() {
                let message = "entry block of region may not have predecessors".to_owned();
                self.bare(self.program.region_op(region), message);
            } else {
                self.uses_in(region, &dominance);
            }
        }
    }
    /// Records the regions of `op` that have branches between blocks.
    pub(super) fn note_branching(&mut self, op: OpId) {
        for region in self.program.op_regions(op) {
            let entry = self.program.region_entry(region).get();
            let is_jumped_to = |block: BlockId| {
                self.program.next_block(block).is_some()
                    || self.successors.as_ref().is_some_and(|known| !known.is_empty())
            };
            if entry.is_some_and(is_jumped_to) {
                self.branching.push(region);
            }
        }
    }
    /// Checks that `op`, which has `count` successors, may have successors.
    fn takes_successors(&mut self, op: OpId, count: usize) {
        if self.program.next_op(op).is_some() {
            let message = "operation with block successors must terminate its parent block";
            self.bare(op, message.to_owned());
        }
        let name = self.program.op_name(op);
        let traits = OpTraits::of_name(name);
        if !traits.has(OpTraits::KNOWN) {
            return;
        }
        let message = if traits.has(OpTraits::TERMINATOR) {
            format!("'{name}' op requires 0 successors but found {count}")
        } else {
            "successors in non-terminator".to_owned()
        };
        self.bare(op, message);
    }
    /// Checks that the definitions of the values of `region` dominate their uses.
    fn uses_in(&mut self, region: RegionId, dominance: &Dominance) {
        let program = self.program;
        let op = program.region_op(region);
        if !OpTraits::of_name(program.op_name(op)).has(OpTraits::KNOWN) {
            return;
        }
        for block in program.region_blocks(region) {
            let args = program.block_args(block);
            let results = program.block_ops(block).flat_map(|op| program.op_results(op));
            for value in args.chain(results).collect::<Vec<ValueId>>() {
                for slot in program.uses(value).collect::<Vec<_>>() {
                    let user = program.user(slot);
                    let Some(used_in) = block_within(program, user, region) else { continue };
                    if dominance.holds(block, used_in) {
                        continue;
                    }
                    let index = program.op_uses(user).position(|own| own == slot).unwrap_or(0);
                    self.bare(user, format!("operand #{index} does not dominate this use"));
                }
            }
        }
    }
    /// Checks `op` if it is a branch: the number of its successors, and whether its operands match
    /// their arguments.
    pub(super) fn branch(&mut self, op: OpId) {
        let Some(successors) = &self.successors else { return };
        let blocks = successors.get(&op).map_or(&[][..], Vec::as_slice);
        let found = match self.program.op_name(op) {
            "cf.br" => self.jump(op, blocks),
            "cf.cond_br" => self.choice(op, blocks),
            "cf.switch" => self.switch(op, blocks),
            "cf.assert" => self.assertion(op, blocks.len()),
            _ => Ok(()),
        };
        if let Err(message) = found {
            self.bare(op, message);
        }
    }
    fn jump(&self, op: OpId, blocks: &[BlockId]) -> Result<(), String> {
        self.is_bare_branch(op)?;
        let &[block] = blocks else {
            return Err(wrong_count("cf.br", "1 successor", blocks.len()));
        };
        let operands: Vec<ValueId> = self.program.operands(op).collect();
        self.passes(&operands, block, 0)
    }
    fn choice(&self, op: OpId, blocks: &[BlockId]) -> Result<(), String> {
        let program = self.program;
        let operands: Vec<ValueId> = program.operands(op).collect();
        let [conditions, on_true, _] = segments(program, op, operands.len())?;
        self.is_bare_branch(op)?;
        let &[then, otherwise] = blocks else {
            return Err(wrong_count("cf.cond_br", "2 successors", blocks.len()));
        };
        for at in 0..conditions {
            is_bit(program, op, at)?;
        }
        let (on_true, on_false) = operands[conditions..].split_at(on_true);
        self.passes(on_true, then, 0)?;
        self.passes(on_false, otherwise, 1)
    }
    /// Checks that `op`, a branch, has neither regions nor results.
    pub(super) fn is_bare_branch(&self, op: OpId) -> Result<(), String> {
        let program = self.program;
        let counts = [("regions", program.num_regions(op)), ("results", program.num_results(op))];
        match counts.iter().find(|(_, count)| *count != 0) {
            None => Ok(()),
            Some((what, _)) => Err(format!("'{}' op requires zero {what}", program.op_name(op))),
        }
    }
    /// Checks that the arguments of `block`, the `index`-th successor of a branch, match
    /// `operands`.
    pub(super) fn passes(
        &self,
        operands: &[ValueId],
        block: BlockId,
        index: usize,
    ) -> Result<(), String> {
        let program = self.program;
        let (has, takes) = (operands.len(), program.block_args(block).len());
        if has != takes {
            return Err(format!(
                "branch has {has} operands for successor #{index}, but target block has {takes}"
            ));
        }
        let mut pairs = operands.iter().zip(program.block_args(block));
        match pairs.position(|(&value, arg)| program.type_of(value) != program.type_of(arg)) {
            None => Ok(()),
            Some(at) => Err(format!("type mismatch for bb argument #{at} of successor #{index}")),
        }
    }
}

/// Checks that operand `at` of `op` is an `i1`.
pub(super) fn is_bit(program: &Program, op: OpId, at: usize) -> Result<(), String> {
    let value = program.operand(op, at);
    if matches!(program.value_type(value), Type::Other(text) if program.str(*text) == "i1") {
        return Ok(());
    }
    let (name, got) = (program.op_name(op), program.value_type_text(value));
    Err(format!("'{name}' op operand #{at} must be 1-bit signless integer, but got '{got}'"))
}

/// The numbers of the `total` operands of `op`, a branch, that select the successor, that are
/// passed to the first successor, and to the others.
pub(super) fn segments(program: &Program, op: OpId, total: usize) -> Result<[usize; 3], String> {
    let (name, attributes) = (program.op_name(op), Attributes::of(program, op));
    let names = ["operandSegmentSizes", "operand_segment_sizes"];
    let sizes = names.map(|name| attributes.ints(name));
    let sizes = sizes.into_iter().find(|sizes| sizes.len() == 3).unwrap_or(&[0; 3]);
    if sizes.iter().any(|size| *size < 0) {
        return Err(format!(
            "'{name}' op 'operandSegmentSizes' attribute cannot have negative elements"
        ));
    }
    let sum = sizes.iter().fold(0_i64, |sum, size| sum.saturating_add(*size));
    match [0, 1, 2].map(|at| usize::try_from(sizes[at]).unwrap_or(usize::MAX)) {
        sizes if usize::try_from(sum) == Ok(total) => Ok(sizes),
        _ => Err(format!(
            "'{name}' op operand count ({total}) does not match with the total size ({sum}) specified in attribute \
             'operandSegmentSizes'"
        )),
    }
}

pub(super) fn wrong_count(name: &str, needs: &str, has: usize) -> String {
    format!("'{name}' op requires {needs} but found {has}")
}

/// The block of `region` that contains `op`, directly or nested.
fn block_within(program: &Program, op: OpId, region: RegionId) -> Option<BlockId> {
    let mut block = program.parent_block(op).get()?;
    while program.block_region(block) != region {
        block = program.parent_block(program.block_parent_op(block)).get()?;
    }
    Some(block)
}
