//! `sdy-constant-or-scalar-merger`: merges equal constants, and equal broadcasts of one scalar, of
//! one region when their attributes, shardings included, are the same.
//!
//! Import clones a constant for each of its uses, so that shardings do not propagate between them;
//! clones with the same sharding are merged again. The first in program order is kept. Constants of
//! different dialects may be merged.

use crate::context::Context;
use crate::error::Result;
use crate::index::{OpId, RegionId, RuleId, ShardingId, SignatureId, StrId, TypeId, ValueId};
use crate::ir::{Attr, ConstantValue, OpKind, OpTraits, Program};
use rustc_hash::{FxHashMap, FxHasher};
use std::collections::hash_map::Entry;
use std::hash::{Hash, Hasher};

/// The properties that two ops must have in common to be merged, besides attributes.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Key {
    ty: TypeId,
    region: RegionId,
    /// Of a broadcast: the scalar and how it is broadcast.
    scalar: (ValueId, SignatureId),
    /// Of a constant: its value, by number.
    value: Option<u32>,
    sharding: ShardingId,
    rule: RuleId,
}

/// Runs the pass on all functions.
pub fn run(program: &mut Program, _context: &mut Context) -> Result<()> {
    let candidates = candidates(program);
    let value_name = program.strings().find("value").unwrap_or_default();
    // One map for all functions: keys include the region, which is in one function.
    let mut kept: FxHashMap<u64, (OpId, Key)> = FxHashMap::default();
    for (op, value) in candidates {
        let key = key(program, op, value);
        let mut hash = hash(program, op, &key, value_name);
        loop {
            match kept.entry(hash) {
                Entry::Vacant(entry) => {
                    entry.insert((op, key));
                    break;
                }
                Entry::Occupied(entry) => {
                    let &(first, first_key) = entry.get();
                    if first_key == key && have_equal_attrs(program, first, op, value_name) {
                        let (old, new) = (program.result(op, 0), program.result(first, 0));
                        program.replace_all_uses(old, new);
                        program.erase_op(op);
                        break;
                    }
                    // Different ops with the same hash: try the next.
                    hash = hash.wrapping_add(1);
                }
            }
        }
    }
    Ok(())
}

/// The ops that may be merged in pre-order, constants with the number of their value.
fn candidates(program: &Program) -> Vec<(OpId, Option<u32>)> {
    let mut by_text: FxHashMap<&str, u32> = FxHashMap::default();
    let mut by_value: FxHashMap<ConstantValue<'_>, u32> = FxHashMap::default();
    let mut number = |op: OpId| {
        let next = by_value.len() as u32;
        let text = program.constant_text(op);
        *by_text
            .entry(text)
            .or_insert_with(|| *by_value.entry(ConstantValue::parse(text)).or_insert(next))
    };
    let mut candidates = Vec::new();
    for op in program.pre_order(program.module_op()) {
        if program.num_results(op) != 1 {
            continue;
        }
        if program.kind(op) == OpKind::BroadcastInDim {
            let scalar = program.operands(op).next();
            let is_scalar = |value: ValueId| program.types().is_scalar(program.type_of(value));
            if program.signature(op).is_some() && scalar.is_some_and(is_scalar) {
                candidates.push((op, None));
            }
        } else if program.has_traits(op, OpTraits::CONSTANT_LIKE) {
            candidates.push((op, Some(number(op))));
        }
    }
    candidates
}

fn key(program: &Program, op: OpId, value: Option<u32>) -> Key {
    let result = program.result(op, 0);
    let is_constant = value.is_some();
    Key {
        ty: program.type_of(result),
        region: program.block_region(program.parent_block(op)),
        scalar: if is_constant {
            (ValueId::NONE, SignatureId::NONE)
        } else {
            (program.operand(op, 0), program.signature(op))
        },
        value,
        sharding: program.sharding(result),
        rule: program.op_rules().get(op),
    }
}

/// The attributes of `op` that are compared: all but the value of a constant.
fn attrs(program: &Program, op: OpId, value_name: StrId) -> impl Iterator<Item = &Attr> {
    let is_constant = program.kind(op) != OpKind::BroadcastInDim;
    program.op_attrs(op).iter().filter(move |attr| !(is_constant && attr.name == value_name))
}

fn hash(program: &Program, op: OpId, key: &Key, value_name: StrId) -> u64 {
    let hash = |item: &dyn Fn(&mut FxHasher)| {
        let mut hasher = FxHasher::default();
        item(&mut hasher);
        hasher.finish()
    };
    // In any order.
    attrs(program, op, value_name)
        .map(|attr| hash(&|hasher| (attr.name, program.text().get(attr.value)).hash(hasher)))
        .fold(hash(&|hasher| key.hash(hasher)), u64::wrapping_add)
}

fn have_equal_attrs(program: &Program, first: OpId, second: OpId, value_name: StrId) -> bool {
    if std::ptr::eq(program.op_attrs(first), program.op_attrs(second)) {
        return true;
    }
    let sorted = |op| {
        let mut attrs: Vec<Attr> = attrs(program, op, value_name).copied().collect();
        attrs.sort_unstable_by_key(|attr| attr.name);
        attrs
    };
    let (first, second) = (sorted(first), sorted(second));
    let is_same = |(a, b): (&Attr, &Attr)| {
        a.name == b.name && program.text().get(a.value) == program.text().get(b.value)
    };
    first.len() == second.len() && first.iter().zip(&second).all(is_same)
}
