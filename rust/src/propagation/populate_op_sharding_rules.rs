//! `sdy-populate-op-sharding-rules`: puts its sharding rule on every op that has one.

use crate::context::Context;
use crate::error::Result;
use crate::index::OpId;
use crate::ir::Program;

/// Runs the pass on `func`.
pub fn run(
    program: &mut Program,
    context: &mut Context,
    func: OpId,
    conservative: bool,
) -> Result<()> {
    context.rules.prepare(program, conservative)?;
    let ops: Vec<OpId> = program.pre_order(func).collect();
    for op in ops {
        let rule = context.rules.rule(program, op);
        if rule.is_some() && !program.op_rules.contains_key(&op) {
            program.op_rules.insert(op, rule);
            program.mark_attrs_changed(op);
        }
    }
    Ok(())
}
