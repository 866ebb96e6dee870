//! `merge-equal-collectives`: merges collectives in one block with equal operands and attributes.
//!
//! Values are equal if they are the same, or are results of equal ops of `CHEAP` on equal operands. Takes linear time in the
//! program.

use super::super::reducer::Reducer;
use super::{Names, CHEAP, COLLECTIVES};
use crate::context::Context;
use crate::error::Result;
use crate::index::{BlockId, Id, OpId, SignatureId, StrId, TypeId, ValueId};
use crate::ir::Program;
use rustc_hash::FxHashMap;
use std::collections::hash_map::Entry;

/// The name, operands, attributes and types of an op, without the channel.
#[derive(PartialEq, Eq, Hash)]
struct Key<'p> {
    name: StrId,
    block: BlockId,
    operands: Vec<ValueId>,
    types: Vec<TypeId>,
    signature: SignatureId,
    attributes: Vec<(&'p str, &'p str)>,
    reducer: Option<Reducer>,
}

/// Runs the pass on the module.
pub fn run(program: &mut Program, context: &mut Context<'_>) -> Result<()> {
    context.progress("merge-equal-collectives", 0, 1)?;
    for (op, other) in equal_collectives(program) {
        for index in 0..program.num_results(op) {
            let (old, new) = (program.result(op, index), program.result(other, index));
            program.replace_all_uses(old, new);
        }
        program.erase_op(op);
    }
    Ok(())
}

/// The collectives that equal an earlier one, each with the first equal one.
fn equal_collectives(program: &Program) -> Vec<(OpId, OpId)> {
    let names = Names::new(program, &COLLECTIVES);
    let ops: Vec<OpId> = program.pre_order(program.module_op()).collect();
    let collectives: Vec<OpId> =
        ops.iter().copied().filter(|&op| names.contain(program, op)).collect();
    if collectives.len() < 2 {
        return Vec::new();
    }
    let needed = needed_by(program, &collectives);
    let constant = program.strings().find("stablehlo.constant");
    // For each value that equals an earlier one, the first such value.
    let mut first: FxHashMap<ValueId, ValueId> = FxHashMap::default();
    let mut known: FxHashMap<Key, OpId> = FxHashMap::default();
    let mut equal = Vec::new();
    for op in ops.into_iter().filter(|op| needed[op.index()]) {
        let is_collective = names.contain(program, op);
        let is_constant = Some(program.op_name_id(op)) == constant;
        let Some(key) = key(program, op, (is_collective, is_constant), &first) else { continue };
        match known.entry(key) {
            Entry::Vacant(place) => {
                place.insert(op);
            }
            Entry::Occupied(other) => {
                let other = *other.get();
                for (old, new) in program.op_results(op).zip(program.op_results(other)) {
                    first.insert(old, new);
                }
                if is_collective {
                    equal.push((op, other));
                }
            }
        }
    }
    equal
}

/// For each op whether it is one of `collectives`, or a cheap op that one of these depends on.
fn needed_by(program: &Program, collectives: &[OpId]) -> Vec<bool> {
    let mut needed = vec![false; program.num_op_ids()];
    let mut left = collectives.to_vec();
    for &op in collectives {
        needed[op.index()] = true;
    }
    let cheap = Names::new(program, &CHEAP);
    while let Some(op) = left.pop() {
        for value in program.operands(op) {
            let Some(before) = program.defining_op(value) else { continue };
            if !needed[before.index()] && cheap.contain(program, before) {
                needed[before.index()] = true;
                left.push(before);
            }
        }
    }
    needed
}

fn key<'p>(
    program: &'p Program,
    op: OpId,
    (is_collective, is_constant): (bool, bool),
    first: &FxHashMap<ValueId, ValueId>,
) -> Option<Key<'p>> {
    let reducer = match program.num_regions(op) {
        0 => None,
        1 => Some(Reducer::of_region(program, op)?),
        _ => return None,
    };
    let mut attributes = Vec::new();
    let mut signature = SignatureId::NONE;
    let is_written = program.op_span(op).is_some();
    if is_constant {
        attributes.push(("value", program.constant_text(op).trim()));
    } else if is_collective || !is_written {
        // These have all their attributes in a dictionary.
        for attr in program.op_attrs(op) {
            let name = program.str(attr.name);
            if name != "channel_handle" {
                attributes.push((name, program.text().get(attr.value)));
            }
        }
        attributes.sort_unstable();
    } else {
        signature = program.signature(op);
        if signature.is_none() {
            return None;
        }
    }
    let operands = program.operands(op).map(|value| first.get(&value).copied().unwrap_or(value));
    Some(Key {
        name: program.op_name_id(op),
        block: program.parent_block(op),
        operands: operands.collect(),
        types: program.op_results(op).map(|value| program.type_of(value)).collect(),
        signature,
        attributes,
        reducer,
    })
}
