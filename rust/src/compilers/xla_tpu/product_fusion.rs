//! Product fusion: products and convolutions take in the elementwise ops that make their operands, and are taken in by those that use
//! their results.
//!
//! A product that one elementwise op or reduction uses is computed in the kernel of that op, unless that has another product. An
//! elementwise op that only products and ops that fuse read is computed in each of them; if it is expensive only if there is but one.

use crate::compilers::xla_cpu::fusion::materialization::Storage;
use crate::compilers::xla_cpu::fusion::op_facts::Fact;
use crate::index::{OpId, ValueId};
use crate::ir::{OpKind, Program};
use rustc_hash::{FxHashMap, FxHashSet};

/// The most ops in a row that a product is followed through.
const MAX_STEPS: usize = 64;

/// The most elementwise ops in a row, each with other users, that products compute anew.
const MAX_DEPTH: u32 = 16;

/// Whether `op` is computed by the matrix unit.
pub fn is_product(program: &Program, op: OpId) -> bool {
    matches!(program.kind(op), OpKind::DotGeneral | OpKind::Convolution)
}

/// Stores what products take in, and products that others take in, of `functions`, given by their ops.
pub fn fused(program: &Program, storage: &mut Storage, functions: &[OpId]) {
    let mut with_product = FxHashSet::default();
    for &func in functions {
        let ops: Vec<OpId> = program.pre_order(func).collect();
        for &op in ops.iter().filter(|&&op| is_product(program, op)) {
            fuse_into_user(program, storage, &mut with_product, op);
        }
        let mut depths = FxHashMap::default();
        for &op in ops.iter().rev() {
            fuse_into_products(program, storage, (&with_product, &mut depths), op);
        }
    }
}

/// The only user of `value` in its block that is not another name of it, if it fuses.
fn only_user(program: &Program, storage: &Storage, value: ValueId) -> Option<OpId> {
    let home = program.parent_block(program.defining_op(value)?);
    let mut at = value;
    for _ in 0..MAX_STEPS {
        let mut users = program.users(at);
        let user = users.next().filter(|_| users.next().is_none())?;
        if program.parent_block(user) != home {
            return None;
        }
        if !storage.facts.has(user, Fact::NAME) {
            let takes_in = storage.facts.has(user, Fact::FUSES)
                && (storage.facts.has(user, Fact::POINTWISE)
                    || program.kind(user) == OpKind::Reduce);
            return takes_in.then_some(user);
        }
        at = program.result(user, 0);
    }
    None
}

/// Computes `product` in the kernel of the op that uses it.
fn fuse_into_user(
    program: &Program,
    storage: &mut Storage,
    with_product: &mut FxHashSet<ValueId>,
    product: OpId,
) {
    let value = program.result(product, 0);
    if !storage.is_written(value) || storage.has_tail(value) {
        return;
    }
    let Some(mut user) = only_user(program, storage, value) else { return };
    // The result of the kernel that computes the user.
    for _ in 0..MAX_STEPS {
        if program.num_results(user) != 1 {
            break;
        }
        let result = program.result(user, 0);
        if storage.is_written(result) {
            break;
        }
        let Some(next) = only_user(program, storage, result) else {
            storage.store(result, true, false);
            break;
        };
        user = next;
    }
    if program.op_results(user).any(|result| !with_product.insert(result)) {
        return;
    }
    storage.store(value, false, true);
}

/// Computes what `op` makes in the products that read it, if nothing else needs it in memory; `depths` has, for what was so before, how
/// many such ops in a row there are up to a product.
fn fuse_into_products(
    program: &Program,
    storage: &mut Storage,
    (with_product, depths): (&FxHashSet<ValueId>, &mut FxHashMap<ValueId, u32>),
    op: OpId,
) {
    let facts = storage.facts.of(op);
    if !facts.has(Fact::SINGLE) || !facts.has_any(Fact::POINTWISE.or(Fact::EXPAND)) {
        return;
    }
    let value = program.result(op, 0);
    if !storage.is_written(value) || with_product.contains(&value) {
        return;
    }
    let (mut num_users, mut is_read, mut depth) = (0, false, 0);
    let mut names = vec![value];
    while let Some(name) = names.pop() {
        for user in program.users(name) {
            num_users += 1;
            let is_near = program.parent_block(user) == program.parent_block(op);
            let facts = storage.facts.of(user);
            if is_near && facts.has(Fact::NAME) {
                names.push(program.result(user, 0));
                num_users -= 1;
            } else if is_near && is_product(program, user) {
                is_read = true;
            } else if !is_near || !facts.has(Fact::FUSES) || program.kind(user) == OpKind::Reduce {
                return;
            } else {
                let after = program.op_results(user).filter_map(|value| depths.get(&value));
                depth = after.copied().max().unwrap_or(0).max(depth);
            }
        }
    }
    if is_read && depth < MAX_DEPTH && (num_users == 1 || !facts.has(Fact::EXPENSIVE)) {
        storage.store(value, false, true);
        depths.insert(value, depth + 1);
    }
}
