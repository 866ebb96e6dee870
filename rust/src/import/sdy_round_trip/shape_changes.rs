//! Custom calls between global and local shapes whose shardings are in GSPMD's notation, as in
//! later versions of XLA.

use super::frontend_attributes::FRONTEND_ATTRIBUTES;
use super::manual_computations::{is_call_of, TO_GLOBAL, TO_LOCAL};
use crate::attribute::write_string;
use crate::import::hlo_annotations::HLO_SHARDING;
use crate::index::{OpId, ValueId};
use crate::ir::{NewOp, OpKind, Program, Type};
use crate::mlir::{op_attribute, AttrValue};

/// Replaces each that has a tuple as its result by one with several results.
pub(super) fn untuple(program: &mut Program) {
    for op in program.ops_in_pre_order(&[OpKind::CustomCall]) {
        if is_call_of(program, op, TO_LOCAL) || is_call_of(program, op, TO_GLOBAL) {
            untuple_op(program, op);
        }
    }
}

fn untuple_op(program: &mut Program, op: OpId) {
    if program.num_results(op) != 1 {
        return;
    }
    let tuple = program.result(op, 0);
    let Type::Tuple(types) = program.value_type(tuple).clone() else { return };
    let users: Vec<OpId> = program.users(tuple).collect();
    let index = |program: &Program, user: OpId| {
        let index = op_attribute(program, user, "index")?.as_int()?;
        usize::try_from(index).ok().filter(|&index| index < types.len())
    };
    let is_element = |&user: &OpId| {
        program.kind(user) == OpKind::GetTupleElement && index(program, user).is_some()
    };
    if !users.iter().all(is_element) {
        return;
    }
    let target = if is_call_of(program, op, TO_LOCAL) { TO_LOCAL } else { TO_GLOBAL };
    let operands: Vec<ValueId> = program.operands(op).collect();
    let mut call = NewOp::of_kind(OpKind::CustomCall, &operands, &types)
        .attr("call_target_name", format!("\"{target}\""));
    let kept: Vec<(&str, String)> = [FRONTEND_ATTRIBUTES, HLO_SHARDING]
        .into_iter()
        .filter_map(|name| {
            let attr = program.op_attrs(op).iter().find(|attr| program.str(attr.name) == name)?;
            Some((name, program.text().get(attr.value).to_owned()))
        })
        .collect();
    for (name, text) in kept {
        call = call.attr(name, text);
    }
    let new = program.build(call, program.before(op));
    for user in users {
        if let Some(index) = index(program, user) {
            let (old, element) = (program.result(user, 0), program.result(new, index));
            program.copy_name(old, element);
            program.replace_all_uses(old, element);
        }
        program.erase_op(user);
    }
    program.erase_op(op);
}

/// Replaces each by GSPMD's custom calls, one for each value.
pub fn run(program: &mut Program) {
    untuple(program);
    for op in program.ops_in_pre_order(&[OpKind::CustomCall]) {
        for (own, theirs) in
            [(TO_LOCAL, "SPMDFullToShardShape"), (TO_GLOBAL, "SPMDShardToFullShape")]
        {
            if is_call_of(program, op, own) {
                split(program, op, theirs);
                break;
            }
        }
    }
}

/// Replaces `op` by a custom call `target` for each operand, if there are shardings for all of
/// them.
fn split(program: &mut Program, op: OpId, target: &str) {
    let text = op_attribute(program, op, HLO_SHARDING);
    let Some(text) = text.as_ref().and_then(AttrValue::as_str) else { return };
    let operands: Vec<ValueId> = program.operands(op).collect();
    let results: Vec<ValueId> = program.op_results(op).collect();
    let parts = if operands.len() == 1 { vec![text] } else { parts(text) };
    if operands.len() != results.len() || parts.len() != results.len() {
        return;
    }
    let mut quoted = Vec::with_capacity(parts.len());
    for part in parts {
        let mut out = String::new();
        write_string(&mut out, part);
        quoted.push(out);
    }
    for ((operand, result), sharding) in operands.into_iter().zip(results).zip(quoted) {
        let types = [program.type_of(result)];
        let operands = [operand];
        let call = NewOp::of_kind(OpKind::CustomCall, &operands, &types)
            .attr("call_target_name", format!("\"{target}\""))
            .attr(HLO_SHARDING, sharding);
        let new = program.build_value(call, program.before(op));
        program.copy_name(result, new);
        program.replace_all_uses(result, new);
    }
    program.erase_op(op);
}

/// The elements of the sharding of a tuple, `{{replicated}, {manual}}`.
fn parts(text: &str) -> Vec<&str> {
    let inner = text.trim().strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
    let Some(inner) = inner else { return Vec::new() };
    let (mut parts, mut depth, mut start) = (Vec::new(), 0_usize, 0);
    for (at, byte) in inner.bytes().enumerate() {
        match byte {
            b'{' => {
                if depth == 0 {
                    start = at;
                }
                depth += 1;
            }
            b'}' => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    parts.push(&inner[start..=at]);
                }
            }
            _ => {}
        }
    }
    parts
}
