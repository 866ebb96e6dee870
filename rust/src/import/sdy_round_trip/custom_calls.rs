//! Replaces custom calls that stand for ops of `sdy`: constraints, members of groups, and barriers.

use super::frontend_attributes::of_op;
use crate::error::{Code, Result};
use crate::import::hlo_annotations::HLO_SHARDING;
use crate::import::mistake;
use crate::index::{OpId, ShardingId};
use crate::ir::{Direction, NewOp, OpKind, Payload, Program};
use crate::mlir::{op_attribute, AttrValue};

/// Replaces them.
pub(super) fn run(program: &mut Program) -> Result<()> {
    for op in program.ops_in_pre_order(&[OpKind::CustomCall]) {
        let target = op_attribute(program, op, "call_target_name");
        let target = target.as_ref().and_then(AttrValue::as_str).unwrap_or_default();
        let (kind, results) = match target {
            // With a sharding in GSPMD's notation, it is a constraint of GSPMD.
            "Sharding" if op_attribute(program, op, HLO_SHARDING).is_some() => continue,
            "Sharding" => (OpKind::ShardingConstraint, 1..=1),
            "xla.sdy.PropagationBarrier" => (OpKind::PropagationBarrier, 1..=1),
            "xla.sdy.ShardingGroup" => (OpKind::ShardingGroup, 0..=1),
            _ => continue,
        };
        if program.num_operands(op) != 1 || !results.contains(&program.num_results(op)) {
            let message = format!("@{target} has one operand and one result");
            return Err(mistake(program, op, Code::InvalidSharding, message).into());
        }
        replace(program, op, kind)?;
    }
    Ok(())
}

fn replace(program: &mut Program, op: OpId, kind: OpKind) -> Result<()> {
    let missing = |program: &Program, what: &str| {
        let message = format!("a custom call of Shardy's has no xla.sdy.{what}");
        mistake(program, op, Code::InvalidSharding, message)
    };
    let input = program.operand(op, 0);
    let ty = program.type_of(input);
    let new = match kind {
        OpKind::ShardingGroup => {
            let id = of_op(program, op, "sharding_group_id").and_then(|found| {
                let number = found.text.split(':').next().unwrap_or_default();
                number.trim().parse().ok()
            });
            let Some(id) = id else { return Err(missing(program, "sharding_group_id").into()) };
            NewOp::of_kind(kind, &[input], &[]).payload(Payload::ShardingGroup(id))
        }
        OpKind::PropagationBarrier => {
            let text = of_op(program, op, "allowed_direction");
            let Some(direction) = text.and_then(|found| direction_of(&found.text)) else {
                return Err(missing(program, "allowed_direction").into());
            };
            NewOp::of_kind(kind, &[input], &[ty]).payload(Payload::PropagationBarrier(direction))
        }
        _ => {
            let sharding = program.sharding(program.result(op, 0));
            if sharding.is_none() {
                return Err(missing(program, "sharding").into());
            }
            let sharding = with_open_dims(program, op, sharding);
            NewOp::of_kind(kind, &[input], &[ty]).sharding(sharding)
        }
    };
    let new = program.build(new, program.before(op));
    let (old_results, new_results) = (program.num_results(op), program.num_results(new));
    if new_results == 1 {
        program.copy_name(program.result(op, 0), program.result(new, 0));
        program.replace_all_uses(program.result(op, 0), program.result(new, 0));
    } else if old_results == 1 {
        program.replace_all_uses(program.result(op, 0), input);
    }
    program.erase_op(op);
    Ok(())
}

/// The direction of `#sdy<propagation_direction FORWARD>` or of `1 : i32`.
fn direction_of(text: &str) -> Option<Direction> {
    let word = text.trim_end_matches('>').rsplit([' ', '<']).find(|word| !word.is_empty())?;
    let number = text.split(':').next()?.trim();
    match (word, number) {
        ("NONE", _) | (_, "0") => Some(Direction::None),
        ("FORWARD", _) | (_, "1") => Some(Direction::Forward),
        ("BACKWARD", _) | (_, "2") => Some(Direction::Backward),
        ("BOTH", _) | (_, "3") => Some(Direction::Both),
        _ => None,
    }
}

/// `sharding` with the dims open that the custom call lists as unspecified, as in
/// `unspecified_dims=[0,1]`.
fn with_open_dims(program: &mut Program, op: OpId, sharding: ShardingId) -> ShardingId {
    let config = op_attribute(program, op, "backend_config");
    let config = config.as_ref().and_then(AttrValue::as_str).unwrap_or_default();
    let list = config.split_once("unspecified_dims=[").and_then(|(_, rest)| rest.split_once(']'));
    let Some((list, _)) = list else { return sharding };
    let dims: Vec<usize> = list.split(',').filter_map(|dim| dim.trim().parse().ok()).collect();
    let Some(mut found) = program.shardings().get(sharding).cloned() else { return sharding };
    for dim in dims {
        if let Some(dim) = found.dims.get_mut(dim) {
            dim.is_closed = false;
        }
    }
    program.intern_sharding(found)
}
