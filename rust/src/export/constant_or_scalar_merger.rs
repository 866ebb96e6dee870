//! `sdy-constant-or-scalar-merger`: merges equal constants, and equal broadcasts of one scalar, of
//! one region when their attributes, shardings included, are the same.
//!
//! Import gives every use of a constant a constant of its own so that nothing flows between them;
//! those that ended up with one sharding need not stay apart. The first in program order stays.

use crate::context::Context;
use crate::error::Result;
use crate::index::{OpId, RegionId, RuleId, ShardingId, SignatureId, StrId, TypeId, ValueId};
use crate::ir::{Attr, OpKind, OpTraits, Program, TraitCache};
use rustc_hash::FxHashMap;
use std::collections::hash_map::Entry;

/// All that two ops must have in common to be merged, but for the value of constants, of which this has
/// the hash.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Key {
    name: StrId,
    ty: TypeId,
    signature: SignatureId,
    value: u64,
    region: RegionId,
    scalar: ValueId,
    sharding: ShardingId,
    rule: RuleId,
    attrs: Vec<(StrId, String)>,
}

/// Runs the pass on `func`.
pub fn run(program: &mut Program, _context: &mut Context, func: OpId) -> Result<()> {
    let mut traits = TraitCache::default();
    let mut first: FxHashMap<Key, OpId> = FxHashMap::default();
    let ops: Vec<OpId> = program.pre_order(func).collect();
    for op in ops {
        let Some(mut key) = key(program, &mut traits, op) else { continue };
        let is_constant = program.kind(op) != OpKind::BroadcastInDim;
        loop {
            let kept = match first.entry(key.clone()) {
                Entry::Occupied(entry) => *entry.get(),
                Entry::Vacant(entry) => {
                    entry.insert(op);
                    break;
                }
            };
            if !is_constant || program.constant_value(kept) == program.constant_value(op) {
                program.replace_all_uses(program.result(op, 0), program.result(kept, 0));
                program.erase_op(op);
                break;
            }
            // Different values with the same hash: try the next.
            key.value = key.value.wrapping_add(1);
        }
    }
    Ok(())
}

/// The key of `op`, `None` if it is not to be merged.
fn key(program: &Program, traits: &mut TraitCache, op: OpId) -> Option<Key> {
    let row = &program.ops[op];
    let scalar = match row.kind {
        OpKind::BroadcastInDim => {
            let scalar = program.op_operands(op).first()?.value;
            program.value_type(scalar).is_scalar().then_some(scalar)?
        }
        OpKind::SdyConstant => ValueId::NONE,
        _ if traits.has(program, op, OpTraits::CONSTANT_LIKE) => ValueId::NONE,
        _ => return None,
    };
    let is_constant = scalar.is_none();
    if !is_constant && row.signature.is_none() {
        return None;
    }
    let is_other = |attr: &&Attr| !is_constant || program.strings.get(attr.name) != "value";
    let attrs = program.op_attrs(op).iter().filter(is_other);
    let mut attrs: Vec<_> =
        attrs.map(|attr| (attr.name, program.text.get(attr.value).to_owned())).collect();
    attrs.sort();
    Some(Key {
        // A constant of one dialect may stand for one of another.
        name: if is_constant { StrId::NONE } else { row.name },
        ty: program.values[program.result(op, 0)].ty,
        signature: row.signature,
        value: if is_constant { program.constant_hash(op) } else { 0 },
        region: program.blocks[row.parent].region,
        scalar,
        sharding: program.sharding(program.result(op, 0)),
        rule: program.op_rules.get(&op).copied().unwrap_or_default(),
        attrs,
    })
}
