//! Pads branches and loops.

use super::conversion::Conversion;
use super::shapes::padded_type;
use crate::index::{BlockId, OpId, TypeId, ValueId};
use crate::ir::{OpKind, Program};

impl Conversion {
    /// Gives `op`, a `stablehlo.case` or a `stablehlo.if`, padded result types, if the values that
    /// all branches return are padded to the same types.
    pub(super) fn pad_branching(&mut self, program: &mut Program, op: OpId) -> bool {
        let types = self.padded_types(program, program.op_results(op).collect());
        for block in blocks(program, op) {
            if self.returned_types(program, block).as_ref() != Some(&types) {
                return false;
            }
        }
        let operands: Vec<ValueId> = program.operands(op).collect();
        self.set_padded(program, op, &operands, &types);
        true
    }
    /// Gives `op`, a `stablehlo.while`, padded operands, block arguments and results, if their
    /// types are all equal, and equal to those of the values that its body returns.
    pub(super) fn pad_loop(&mut self, program: &mut Program, op: OpId) -> bool {
        let types = self.padded_types(program, program.op_results(op).collect());
        let blocks = blocks(program, op);
        let returned = blocks.last().and_then(|&body| self.returned_types(program, body));
        if returned.as_ref() != Some(&types)
            || self.padded_types(program, program.operands(op).collect()) != types
        {
            return false;
        }
        for &block in &blocks {
            if self.padded_types(program, program.block_args(block).collect()) != types {
                return false;
            }
        }
        let operands = self.adapted_operands(program, op);
        for block in blocks {
            for (arg, &ty) in program.block_args(block).zip(&types) {
                self.retype(program, arg, ty);
            }
        }
        self.set_padded(program, op, &operands, &types);
        true
    }
    /// Gives `op`, a `stablehlo.return`, operands of the result types of the op around it.
    pub(super) fn pad_return(&mut self, program: &mut Program, op: OpId) -> bool {
        let Some(parent) = program.parent_op(op) else { return false };
        let is_returned = matches!(program.kind(parent), OpKind::Case | OpKind::If | OpKind::While);
        if !is_returned || program.num_results(parent) != program.num_operands(op) {
            return false;
        }
        let results: Vec<ValueId> = program.op_results(parent).collect();
        let operands: Vec<ValueId> = program.operands(op).collect();
        let mut padded = Vec::with_capacity(operands.len());
        for (value, result) in operands.into_iter().zip(results) {
            let ty = program.type_of(result);
            padded.push(self.of_type(program, value, ty));
        }
        self.set_padded(program, op, &padded, &[]);
        true
    }
    /// The padded types of the operands of the last op of `block`.
    fn returned_types(&self, program: &mut Program, block: BlockId) -> Option<Vec<TypeId>> {
        let last = program.last_op(block).get()?;
        Some(self.padded_types(program, program.operands(last).collect()))
    }
    fn padded_types(&self, program: &mut Program, values: Vec<ValueId>) -> Vec<TypeId> {
        let types = values.into_iter().map(|value| {
            let (ty, sharding) = (self.original_type(program, value), program.sharding_of(value));
            padded_type(program, ty, sharding)
        });
        types.collect()
    }
}

/// The blocks of `op`.
fn blocks(program: &Program, op: OpId) -> Vec<BlockId> {
    program.op_regions(op).flat_map(|region| program.region_blocks(region)).collect()
}
