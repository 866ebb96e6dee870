//! Inlines the branch of a case with a constant index.

use super::driver::Driver;
use crate::index::{OpId, ValueId};
use crate::ir::{ConstantValue, OpKind, OpTraits, Place, ValueMap};

/// Replaces a case with a constant index by the ops of its branch.
pub fn inline_constant(driver: &mut Driver, op: OpId) -> bool {
    let Some(branch) = constant_index(driver, op) else { return false };
    let program = &*driver.program;
    let Some(region) = program.op_regions(op).nth(branch) else { return false };
    let Some(block) = program.region_blocks(region).last() else { return false };
    let mut ops: Vec<OpId> = program.block_ops(block).collect();
    let Some(end) = ops.pop() else { return false };
    let mut map = ValueMap::default();
    for inner in ops {
        let clone = driver.program.clone_op(inner, &mut map, false);
        driver.insert_at(clone, Place::Before(op), op);
        let nested: Vec<OpId> = driver.program.pre_order(clone).skip(1).collect();
        for nested in nested {
            driver.push(nested);
        }
    }
    let values = driver.program.operands(end);
    let values: Vec<ValueId> = values.map(|value| map.get(value).unwrap_or(value)).collect();
    driver.replace(op, &values);
    true
}

/// The constant index of the branch of `op`.
fn constant_index(driver: &Driver, op: OpId) -> Option<usize> {
    let program = &*driver.program;
    let index = program.operands(op).next()?;
    let constant = program.defining_op(index)?;
    let is_constant = program.kind(constant) != OpKind::SdyConstant
        && program.has_traits(constant, OpTraits::CONSTANT_LIKE);
    let ConstantValue::Element(text) = program.constant_value(constant) else { return None };
    text.parse().ok().filter(|_| is_constant)
}
