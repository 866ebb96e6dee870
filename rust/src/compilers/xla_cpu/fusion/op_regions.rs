//! What fusion asks of the regions of ops.

use crate::index::{BlockId, OpId};
use crate::ir::{Program, ValueDef};

/// The first op of the first region of `op`.
pub fn first_inside(program: &Program, op: OpId) -> OpId {
    let block = program.op_regions(op).next().and_then(|region| program.region_entry(region).get());
    block.map_or(OpId::NONE, |block| program.first_op(block))
}

/// Whether an op inside `op` captures a value from outside.
pub fn captures(program: &Program, op: OpId) -> bool {
    let is_inside = |mut block: BlockId| loop {
        let owner = program.block_parent_op(block);
        if owner == op {
            return true;
        }
        match program.parent_block(owner).get() {
            Some(outer) => block = outer,
            None => return false,
        }
    };
    let home = |value| match program.def(value) {
        ValueDef::Result(def) => program.parent_block(def),
        ValueDef::Arg(block) => block,
    };
    let reads_outside = |inner: OpId| {
        let own = program.parent_block(inner);
        program.operands(inner).map(home).any(|block| block != own && !is_inside(block))
    };
    for region in program.op_regions(op) {
        for block in program.region_blocks(region) {
            for inner in program.block_ops(block) {
                let mut deeper = program.pre_order(inner).skip(1);
                if reads_outside(inner)
                    || program.num_regions(inner) > 0 && deeper.any(reads_outside)
                {
                    return true;
                }
            }
        }
    }
    false
}
