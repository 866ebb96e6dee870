//! `sdy-populate-op-sharding-rules`: puts its sharding rule on every op that has one.

use crate::context::Context;
use crate::error::{Code, Diagnostic, Error, Result};
use crate::index::{OpId, ValueId};
use crate::ir::{Program, Type};
use crate::rules::table::Family;

/// Runs the pass on `func`.
pub fn run(
    program: &mut Program,
    context: &mut Context,
    func: OpId,
    conservative: bool,
) -> Result<()> {
    context.rules.prepare(program, conservative)?;
    let ops: Vec<OpId> = program.pre_order(func).collect();
    let mut problems = Vec::new();
    for op in ops {
        let rule = context.rules.rule(program, op);
        if rule.is_none() {
            problems.extend(dynamic_tensor(program, op));
        } else if program.op_rules().get(op).is_none() {
            program.set_op_rule(op, rule);
            program.mark_attrs_changed(op);
        }
    }
    Error::check(problems)
}

/// The error for an op that would have a rule if all its shapes were static.
fn dynamic_tensor(program: &Program, op: OpId) -> Option<Diagnostic> {
    let name = program.op_name(op);
    // Most custom calls have no rule, whatever their shapes are.
    if Family::of(name).is_none_or(|family| family.name == "custom_call") {
        return None;
    }
    let is_dynamic = |&value: &ValueId| match program.value_type(value) {
        Type::RankedTensor { shape, .. } | Type::MeshTensor { shape, .. } => {
            shape.iter().any(Option::is_none)
        }
        Type::UnrankedTensor(_) => true,
        Type::Tuple(_) | Type::Other(_) => false,
    };
    let operands = program.operands(op);
    let value = operands.chain(program.op_results(op)).find(is_dynamic)?;
    let ty = program.type_text(program.type_of(value));
    let message = format!("{name} has no sharding rule: {ty} has no static shape");
    Some(Diagnostic::new(Code::UnsupportedType, message).at_op(program, op))
}
