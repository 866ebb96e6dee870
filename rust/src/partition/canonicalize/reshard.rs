//! Canonicalization of reshards: chains of two, and equal ones.

use super::collectives::{create, input_of_kind, out_sharding};
use super::driver::Driver;
use crate::index::{BlockId, OpId, ValueId};
use crate::ir::{NewOp, OpKind, Program, ValueMap};
use crate::mlir::op_attribute;
use crate::partition::across_reshapes::is_equivalent_across_reshapes;
use crate::sharding::TensorSharding;
use rustc_hash::FxHashSet;

/// Replaces a reshard of a reshard with no other use by one reshard.
pub fn fuse(driver: &mut Driver, op: OpId) -> bool {
    let Some(inner) = input_of_kind(driver.program, op, OpKind::Reshard) else { return false };
    if !driver.program.has_one_use(driver.program.result(inner, 0)) {
        return false;
    }
    let input = driver.program.operand(inner, 0);
    let sharding = out_sharding(driver.program, op);
    let new = create(driver, op, OpKind::Reshard, input, sharding, &[op, inner]);
    driver.replace(op, &[driver.program.result(new, 0)]);
    true
}

/// Replaces a reshard if an earlier reshard in the block has brought the same data, possibly in
/// another shape, to the target sharding: by its result, with the reshapes and transposes that lead
/// to this reshard's input.
pub fn reuse(driver: &mut Driver, op: OpId) -> bool {
    let input = driver.program.operand(op, 0);
    let (root, path) = metadata_path(driver.program, input);
    let Some(target) = target_sharding(driver.program, op, &path) else { return false };
    let Some(mut value) = find_compatible(driver, root, &target, op) else { return false };
    let ty = driver.program.type_of(root);
    if driver.program.type_of(value) != ty {
        let at = driver.program.after_value(value).with_loc(driver.program.loc(op));
        let reshape = driver.build(NewOp::of_kind(OpKind::Reshape, &[value], &[ty]), at, op);
        value = driver.program.result(reshape, 0);
    }
    for &step in path.iter().rev() {
        let place = driver.program.place_after_value(value);
        let clone = driver.program.clone_op(step, &mut ValueMap::default(), false);
        driver.insert_at(clone, place, op);
        if let Some(slot) = driver.program.op_uses(clone).next() {
            driver.program.set_operand(slot, value);
        }
        value = driver.program.result(clone, 0);
    }
    driver.replace(op, &[value]);
    true
}

/// Whether `op` only changes how elements are indexed.
fn is_metadata(program: &Program, op: OpId) -> bool {
    matches!(program.kind(op), OpKind::Reshape | OpKind::Transpose)
}

/// The value from which reshapes and transposes make `value`, and these ops from the last to the
/// first.
fn metadata_path(program: &Program, mut value: ValueId) -> (ValueId, Vec<OpId>) {
    let mut path = Vec::new();
    while let Some(op) = program.defining_op(value).filter(|&op| is_metadata(program, op)) {
        // The text of a program may define values in a cycle.
        if path.len() > program.num_op_ids() {
            break;
        }
        path.push(op);
        value = program.operand(op, 0);
    }
    (value, path)
}

/// The sharding of `reshard` before the transposes on the `path` to its input, as far as the shapes
/// in between have the same rank.
fn target_sharding(program: &Program, reshard: OpId, path: &[OpId]) -> Option<TensorSharding> {
    let mut sharding = program.shardings().get(out_sharding(program, reshard))?.clone();
    for &op in path {
        if program.kind(op) == OpKind::Reshape {
            let rank = |value| program.value_type(value).rank();
            if rank(program.operand(op, 0)) != rank(program.result(op, 0)) {
                break;
            }
            continue;
        }
        let permutation = op_attribute(program, op, "permutation")?.as_ints()?;
        let mut dims = sharding.dims.clone();
        if permutation.len() != dims.len() {
            return None;
        }
        for (from, dim) in permutation.into_iter().zip(&sharding.dims) {
            dims.get_mut(usize::try_from(from).ok()?)?.clone_from(dim);
        }
        sharding.dims = dims;
    }
    Some(sharding)
}

/// A reshard of `root`, or of a reshape of it, before `current`, whose result places the elements
/// as `target` places those of `current`'s type.
fn find_compatible(
    driver: &Driver,
    root: ValueId,
    target: &TensorSharding,
    current: OpId,
) -> Option<ValueId> {
    let program = &*driver.program;
    let block: BlockId = program.parent_block(current);
    let target = (target, program.type_of(program.result(current, 0)));
    let mut worklist = vec![root];
    let mut seen: FxHashSet<ValueId> = FxHashSet::default();
    while let Some(value) = worklist.pop() {
        if !seen.insert(value) {
            continue;
        }
        for slot in program.uses(value) {
            let user = program.user(slot);
            match program.kind(user) {
                OpKind::Reshard if user != current && program.parent_block(user) == block => {
                    let result = program.result(user, 0);
                    let sharding = program.shardings().get(program.sharding(result));
                    let other = (sharding?, program.type_of(result));
                    if is_equivalent_across_reshapes(program, other, target)
                        && driver.is_before(user, current)
                    {
                        return Some(result);
                    }
                }
                OpKind::Reshape => worklist.push(program.result(user, 0)),
                _ => {}
            }
        }
    }
    None
}
