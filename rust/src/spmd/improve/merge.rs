//! `merge-equal-collectives`: merges collectives in one block with equal operands and attributes.
//!
//! Values are equal if they are the same, or are computed from equal ones by equal ops of `CHEAP`. Takes
//! linear time in the program.

use super::super::reducer::Reducer;
use super::{is_cheap, is_collective};
use crate::context::Context;
use crate::error::Result;
use crate::index::{BlockId, OpId, SignatureId, TypeId, ValueId};
use crate::ir::Program;
use rustc_hash::FxHashMap;

/// The name, operands, attributes and types of an op, without the channel.
#[derive(PartialEq, Eq, Hash)]
struct Key {
    name: String,
    block: BlockId,
    operands: Vec<ValueId>,
    types: Vec<TypeId>,
    signature: SignatureId,
    attributes: Vec<(String, String)>,
    reducer: Option<Reducer>,
}

/// Runs the pass on the module.
pub fn run(program: &mut Program, context: &mut Context<'_>) -> Result<()> {
    context.progress("merge-equal-collectives", 0, 1)?;
    let ops: Vec<OpId> = program.pre_order(program.module_op()).collect();
    // For each value that equals an earlier one, the first such value.
    let mut first: FxHashMap<ValueId, ValueId> = FxHashMap::default();
    let mut known: FxHashMap<Key, OpId> = FxHashMap::default();
    for op in ops {
        let is_collective = is_collective(program, op);
        if !is_collective && !is_cheap(program, op) {
            continue;
        }
        let Some(key) = key(program, op, is_collective, &first) else { continue };
        let Some(&other) = known.get(&key) else {
            known.insert(key, op);
            continue;
        };
        for index in 0..program.num_results(op) {
            let (old, new) = (program.result(op, index), program.result(other, index));
            if is_collective {
                program.replace_all_uses(old, new);
            } else {
                first.insert(old, new);
            }
        }
        if is_collective {
            program.erase_op(op);
        }
    }
    Ok(())
}

fn key(
    program: &Program,
    op: OpId,
    is_collective: bool,
    first: &FxHashMap<ValueId, ValueId>,
) -> Option<Key> {
    let reducer = match program.num_regions(op) {
        0 => None,
        1 => Some(Reducer::of_region(program, op)?),
        _ => return None,
    };
    let mut attributes = Vec::new();
    let mut signature = SignatureId::NONE;
    let is_written = program.op_span(op).is_some();
    if program.op_name(op) == "stablehlo.constant" {
        attributes.push(("value".to_owned(), program.constant_text(op).trim().to_owned()));
    } else if is_collective || !is_written {
        // These have all their attributes in a dictionary.
        for attr in program.op_attrs(op) {
            let name = program.str(attr.name);
            if name != "channel_handle" {
                attributes.push((name.to_owned(), program.text().get(attr.value).to_owned()));
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
        name: program.op_name(op).to_owned(),
        block: program.parent_block(op),
        operands: operands.collect(),
        types: program.op_results(op).map(|value| program.type_of(value)).collect(),
        signature,
        attributes,
        reducer,
    })
}
