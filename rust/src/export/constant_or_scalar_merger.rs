//! `sdy-constant-or-scalar-merger`: merges equal constants, and equal broadcasts of one scalar, of
//! one region when their attributes, shardings included, are the same.
//!
//! Import gives every use of a constant a constant of its own so that nothing flows between them;
//! those that ended up with one sharding need not stay apart. The first in program order stays. A
//! constant of one dialect may stand for one of another.

use crate::context::Context;
use crate::error::Result;
use crate::index::{OpId, RegionId, RuleId, ShardingId, SignatureId, TypeId, ValueId};
use crate::ir::{Attr, OpKind, OpTraits, Program, TraitCache};
use rustc_hash::{FxHashMap, FxHasher};
use std::collections::hash_map::Entry;
use std::hash::{Hash, Hasher};

/// What two ops must have in common to be merged, beside attributes and the value of constants.
#[derive(PartialEq, Eq, Hash)]
struct Key {
    ty: TypeId,
    region: RegionId,
    /// Of a broadcast: the scalar and how it is broadcast.
    scalar: (ValueId, SignatureId),
    sharding: ShardingId,
    rule: RuleId,
}

/// Runs the pass on `func`.
pub fn run(program: &mut Program, _context: &mut Context, func: OpId) -> Result<()> {
    let mut traits = TraitCache::default();
    let mut kept: FxHashMap<u64, OpId> = FxHashMap::default();
    let ops: Vec<OpId> = program.pre_order(func).collect();
    for op in ops {
        if !is_candidate(program, &mut traits, op) {
            continue;
        }
        let mut hash = hash(program, op);
        loop {
            match kept.entry(hash) {
                Entry::Vacant(entry) => {
                    entry.insert(op);
                    break;
                }
                Entry::Occupied(entry) if are_equal(program, *entry.get(), op) => {
                    let (old, new) = (program.result(op, 0), program.result(*entry.get(), 0));
                    program.replace_all_uses(old, new);
                    program.erase_op(op);
                    break;
                }
                // Different ops with the same hash: try the next.
                Entry::Occupied(_) => hash = hash.wrapping_add(1),
            }
        }
    }
    Ok(())
}

/// Whether `op` is a constant or a broadcast of a scalar.
fn is_candidate(program: &Program, traits: &mut TraitCache, op: OpId) -> bool {
    let row = &program.ops[op];
    match row.kind {
        _ if row.num_results != 1 => false,
        OpKind::BroadcastInDim => {
            let scalar = program.op_operands(op).first();
            scalar.is_some_and(|slot| program.value_type(slot.value).is_scalar())
                && row.signature.is_some()
        }
        OpKind::SdyConstant => true,
        _ => traits.has(program, op, OpTraits::CONSTANT_LIKE),
    }
}

fn is_constant(program: &Program, op: OpId) -> bool {
    program.kind(op) != OpKind::BroadcastInDim
}

fn key(program: &Program, op: OpId) -> Key {
    let row = &program.ops[op];
    let result = program.result(op, 0);
    Key {
        ty: program.values[result].ty,
        region: program.blocks[row.parent].region,
        scalar: if is_constant(program, op) {
            (ValueId::NONE, SignatureId::NONE)
        } else {
            (program.operand(op, 0), row.signature)
        },
        sharding: program.sharding(result),
        rule: program.op_rules.get(op),
    }
}

/// The attributes of `op`, but for the value of a constant, by name.
fn attrs(program: &Program, op: OpId) -> Vec<Attr> {
    let is_value = |attr: &Attr| program.strings.get(attr.name) == "value";
    let all = program.op_attrs(op).iter().copied();
    let mut attrs: Vec<Attr> =
        all.filter(|attr| !(is_constant(program, op) && is_value(attr))).collect();
    attrs.sort_unstable_by_key(|attr| attr.name);
    attrs
}

fn hash(program: &Program, op: OpId) -> u64 {
    let mut hasher = FxHasher::default();
    key(program, op).hash(&mut hasher);
    if is_constant(program, op) {
        program.constant_value(op).hash(&mut hasher);
    }
    for attr in attrs(program, op) {
        (attr.name, program.text.get(attr.value)).hash(&mut hasher);
    }
    hasher.finish()
}

fn are_equal(program: &Program, first: OpId, second: OpId) -> bool {
    let are_attrs_equal = || {
        if program.ops[first].attrs == program.ops[second].attrs {
            return true;
        }
        let (first, second) = (attrs(program, first), attrs(program, second));
        let is_same = |(a, b): (&Attr, &Attr)| {
            a.name == b.name && program.text.get(a.value) == program.text.get(b.value)
        };
        first.len() == second.len() && first.iter().zip(&second).all(is_same)
    };
    key(program, first) == key(program, second)
        && are_attrs_equal()
        && (!is_constant(program, first)
            || program.constant_value(first) == program.constant_value(second))
}
