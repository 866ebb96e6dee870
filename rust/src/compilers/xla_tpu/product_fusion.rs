//! Product fusion: products and convolutions take in the elementwise ops that make their operands, and are taken in by those that use
//! their results.
//!
//! A product that one elementwise op or reduction uses is computed in the kernel of that op, unless that has another product, or makes a
//! larger array for several users. An elementwise op that only products and ops that fuse read is computed in each of them, if they are
//! two or it has as many bytes as it is computed of. One that is
//! expensive is, if few read it, though others are between it and the product; or if it is computed of fewer bytes than it has, as
//! the exponentials of scores in `bf16`.

use crate::compilers::xla_cpu::fusion::materialization::Storage;
use crate::compilers::xla_cpu::fusion::op_facts::Fact;
use crate::compilers::xla_cpu::layout_assignment::operand_copies::Layouts;
use crate::compilers::xla_tpu::small_results::bytes_of_sources;
use crate::compilers::xla_tpu::softmax_fusion::{of_rows, rows_of, ProductDims, Rows};
use crate::index::{Id, OpId, ValueId};
use crate::ir::{OpKind, Program};
use crate::work::cached::Works;

/// The elements of a row of a tile.
const LANES: u128 = 128;

/// The most ops in a row that a product is followed through.
const MAX_STEPS: usize = 64;

/// The most elementwise ops in a row, each with other users, that products compute anew.
const MAX_DEPTH: u32 = 16;

/// The most users of something cheap that compute it anew.
const MAX_USERS: u32 = 2;

/// The most users of something expensive that compute it anew: those of the `tanh` in a GELU, one before its product and two in its
/// gradient.
const MAX_EXPENSIVE_USERS: u32 = 3;

/// Whether `op` is computed by the matrix unit.
pub fn is_product(program: &Program, op: OpId) -> bool {
    matches!(program.kind(op), OpKind::DotGeneral | OpKind::Convolution)
}

/// Stores what products take in, and products that others take in, of `functions`, given by their ops; the matrix unit sums over so
/// many `lanes`.
pub fn fused(
    program: &Program,
    (works, layouts): (&mut Works<'_>, &mut Layouts),
    storage: &mut Storage,
    (functions, lanes): (&[OpId], i64),
) {
    let mut with_product = vec![false; program.num_value_ids()];
    let mut dims = ProductDims::new(program);
    // For what is computed in a product, how many ops in a row with several users there are up to that.
    let mut depths = vec![None; program.num_value_ids()];
    let mut names = Vec::new();
    for &func in functions {
        let ops = works.ops_inside(func);
        for &op in ops.iter().filter(|&&op| is_product(program, op)) {
            let place = rows_of(program, works, (&mut dims, lanes), op);
            fuse_into_user(program, (works, layouts), storage, (&mut with_product, op), place);
        }
        for &op in ops.iter().rev() {
            let found = (&with_product[..], &mut depths[..], &mut names);
            fuse_into_products((program, works), storage, found, op);
        }
    }
}

/// Whether `op` gathers rows: there is a kernel for that, with which nothing is fused that reads them.
pub fn gathers_rows(program: &Program, works: &mut Works<'_>, storage: &Storage, op: OpId) -> bool {
    if !storage.facts.has(op, Fact::GATHER) || program.num_operands(op) < 2 {
        return false;
    }
    let mut elements = |value: ValueId| works.tensors.of(value).elements;
    let indices = elements(program.operand(op, 1));
    elements(program.result(op, 0)) >= indices.saturating_mul(LANES)
}

/// Whether the result of `user`, which reads `value`, is another name of it.
fn is_renamed(program: &Program, storage: &Storage, value: ValueId, user: OpId) -> bool {
    let is_equal = |result| storage.equal.first(result) == storage.equal.first(value);
    storage.facts.has(user, Fact::NAME) || program.op_results(user).any(is_equal)
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
        if !is_renamed(program, storage, at, user) {
            let takes_in = storage.facts.has(user, Fact::FUSES)
                && (storage.facts.has(user, Fact::POINTWISE)
                    || program.kind(user) == OpKind::Reduce);
            return takes_in.then_some(user);
        }
        at = program.result(user, 0);
    }
    None
}

/// Computes `product` in the kernel of the op that uses it, or of a softmax of what it makes; reductions of that are computed at
/// `place`.
fn fuse_into_user(
    program: &Program,
    (works, layouts): (&mut Works<'_>, &mut Layouts),
    storage: &mut Storage,
    (with_product, product): (&mut [bool], OpId),
    place: Rows,
) {
    let value = program.result(product, 0);
    if !storage.is_written(value) || storage.has_tail(value) {
        return;
    }
    // The last value that the kernel makes, and those that only it needs.
    let (mut made, mut inside) = (vec![value], Vec::new());
    for _ in 0..MAX_STEPS {
        let last = made[0];
        // A softmax has two reductions; the second one is broadcast by another kernel.
        let has_rows = place != Rows::Apart && inside.is_empty();
        let rows = has_rows.then(|| of_rows(program, storage, layouts, last)).flatten();
        if let Some((next, reduced)) = rows {
            inside.push(reduced);
            if place == Rows::Behind {
                storage.store(last, true, false);
                let end = end_of(program, storage, next);
                storage.store(end, true, false);
                break;
            }
            inside.push(last);
            made = vec![next];
        } else if last != value && storage.is_written(last) && !storage.row(last).is_inlined {
            break;
        } else if let Some(user) = only_user(program, storage, last) {
            made = program.op_results(user).collect();
            if made.len() != 1 {
                break;
            }
        } else if last == value || inside.is_empty() && is_wider(works, last, value) {
            // Each user of the last one widens what the product writes.
            return;
        } else {
            storage.store(last, true, false);
            break;
        }
    }
    if made.iter().any(|&it| std::mem::replace(&mut with_product[it.index()], true)) {
        return;
    }
    for value in inside.into_iter().chain([value]) {
        storage.store(value, false, true);
    }
}

/// Whether `value` is computed of fewer bytes than it has.
fn is_of_less(program: &Program, works: &mut Works<'_>, storage: &Storage, value: ValueId) -> bool {
    let sources = bytes_of_sources(program, works, storage, value);
    sources.is_some_and(|bytes| bytes < works.tensors.bytes(value))
}

/// The value at the end of the elementwise ops of which each is the only user of the one before, from `value` on.
fn end_of(program: &Program, storage: &Storage, mut value: ValueId) -> ValueId {
    for _ in 0..MAX_STEPS {
        let next = only_user(program, storage, value).filter(|&op| program.num_results(op) == 1);
        let Some(next) = next.filter(|_| !storage.is_written(value)) else { break };
        value = program.result(next, 0);
    }
    value
}

/// Whether `op` is a transpose of what is computed in its kernel: layouts are chosen so that it moves nothing.
fn is_transpose_of_computed(program: &Program, storage: &Storage, op: OpId) -> bool {
    if program.op_name(op) != "stablehlo.transpose" {
        return false;
    }
    let source = storage.equal.first(program.operand(op, 0));
    let is_pointwise = |made_by| storage.facts.has(made_by, Fact::POINTWISE);
    !storage.is_written(source) && program.defining_op(source).is_some_and(is_pointwise)
}

/// Whether `value` has more bytes than `other`.
fn is_wider(works: &mut Works<'_>, value: ValueId, other: ValueId) -> bool {
    works.tensors.bytes(value) > works.tensors.bytes(other)
}

/// Computes what `op` makes in the products that read it, if nothing else needs it in memory; `depths` has, for what is computed in a
/// product, how many ops in a row with several users there are up to that; `names` is empty.
fn fuse_into_products(
    (program, works): (&Program, &mut Works<'_>),
    storage: &mut Storage,
    (with_product, depths, names): (&[bool], &mut [Option<u32>], &mut Vec<ValueId>),
    op: OpId,
) {
    let facts = storage.facts.of(op);
    let fuses = facts.has_any(Fact::POINTWISE.or(Fact::EXPAND))
        || is_transpose_of_computed(program, storage, op);
    if !facts.has(Fact::SINGLE) || !fuses {
        return;
    }
    let value = program.result(op, 0);
    if with_product[value.index()] {
        return;
    }
    let is_expensive = facts.has(Fact::EXPENSIVE);
    let (mut num_users, mut near, mut far, mut all_fuse) = (0, None, None, true);
    let mut is_reduced = false;
    names.push(value);
    while let Some(name) = names.pop() {
        for user in program.users(name) {
            num_users += 1;
            let is_near = program.parent_block(user) == program.parent_block(op);
            let facts = storage.facts.of(user);
            if is_near && is_renamed(program, storage, name, user) {
                names.push(program.result(user, 0));
                num_users -= 1;
            } else if is_near && is_product(program, user) {
                near = near.max(Some(0));
            } else if !is_near || !facts.has(Fact::FUSES) {
                all_fuse = false;
            } else if program.kind(user) == OpKind::Reduce {
                is_reduced = true;
            } else {
                let after = program.op_results(user).map(|value| depths[value.index()]);
                far = after.max().flatten().max(far);
            }
        }
    }
    let depth = near.max(far);
    if !storage.is_written(value) {
        depths[value.index()] = depth;
        return;
    }
    let reaches = if is_expensive { depth } else { near.and(depth) };
    let Some(depth) = reaches.filter(|&depth| all_fuse && depth < MAX_DEPTH) else { return };
    let most = if is_expensive { MAX_EXPENSIVE_USERS } else { MAX_USERS };
    let is_free = num_users <= most && !is_reduced;
    let is_of_little = if is_expensive {
        is_of_less(program, works, storage, value)
    } else {
        !is_reduced && is_of_as_much(program, works, storage, value)
    };
    if is_free || is_of_little {
        storage.store(value, false, true);
        depths[value.index()] = Some(depth + 1);
    }
}

/// Whether `value` is computed of hardly more bytes than it has, as rows that are normalized.
fn is_of_as_much(
    program: &Program,
    works: &mut Works<'_>,
    storage: &Storage,
    value: ValueId,
) -> bool {
    let own = works.tensors.bytes(value);
    bytes_of_sources(program, works, storage, value).is_some_and(|bytes| bytes <= own + own / 8)
}
