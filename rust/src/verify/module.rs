//! Checks modules, with the messages of MLIR's verifier.

use super::Verifier;
use crate::error::Code;
use crate::index::{BlockId, OpId};
use crate::ir::Program;

/// The attributes of a module without a dialect in their names.
const OWN: [&str; 2] = ["sym_name", "sym_visibility"];

impl Verifier<'_> {
    /// Checks the attributes and the region of `op`, a module.
    pub(super) fn module(&mut self, op: OpId) {
        if let Some(message) = problem(self.program, op) {
            let problem = self.problem(op, Code::InvalidOp, &message);
            self.report(op, problem);
        } else if is_named(self.program, op) {
            self.visibility(op);
        }
    }
}

/// Whether module `op`, in custom syntax, has a name. The parser checks modules in generic form.
fn is_named(program: &Program, op: OpId) -> bool {
    let after_keyword = program.name_span(op).map(|name| program.text().tail(name.end));
    after_keyword.is_some_and(|text| text.trim_start().starts_with('@'))
}

/// The error in module `op`.
fn problem(program: &Program, op: OpId) -> Option<String> {
    let is_string = |text: &str| program.resolved_alias(text.trim()).starts_with('"');
    let is_wrong = |name: &&str| program.attr(op, name).is_some_and(|text| !is_string(text));
    if let Some(name) = OWN.into_iter().find(is_wrong) {
        return Some(format!("attribute '{name}' failed to satisfy constraint: string attribute"));
    }
    let regions = program.op_regions(op);
    let blocks: Vec<BlockId> = regions.flat_map(|region| program.region_blocks(region)).collect();
    // Ops without a label are in a block before the first label.
    let is_written = |(at, block): (usize, &BlockId)| at > 0 || program.first_op(*block).is_some();
    if blocks.iter().enumerate().filter(|&block| is_written(block)).count() > 1 {
        return Some("expects region #0 to have 0 or 1 blocks".to_owned());
    }
    if blocks.iter().any(|&block| program.num_block_args(block) > 0) {
        return Some("region should have no arguments".to_owned());
    }
    let names = program.op_attrs(op).iter().map(|attr| program.str(attr.name));
    let other = names.filter(|name| !name.contains('.') && !OWN.contains(name)).min()?;
    Some(format!("can only contain attributes with dialect-prefixed names, found: '{other}'"))
}
