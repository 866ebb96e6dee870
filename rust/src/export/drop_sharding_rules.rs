//! `sdy-drop-sharding-rules`: removes the sharding rules of ops, but for those users wrote.

use crate::context::Context;
use crate::error::Result;
use crate::index::{Id, RuleId};
use crate::ir::Program;

/// Runs the pass on all functions.
pub fn run(program: &mut Program, _context: &mut Context) -> Result<()> {
    let is_custom: Vec<bool> = (0..program.rules.len())
        .map(|rule| program.rules[RuleId::from_index(rule)].is_custom)
        .collect();
    let mut op_rules = std::mem::take(&mut program.op_rules);
    op_rules.remove_if(|op, rule| {
        let is_dropped = !is_custom[rule.index()];
        if is_dropped {
            program.mark_attrs_changed(op);
        }
        is_dropped
    });
    program.op_rules = op_rules;
    Ok(())
}
