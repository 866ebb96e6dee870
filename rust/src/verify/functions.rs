//! Checks functions, calls and terminators, with the messages of MLIR's verifier.

use super::Verifier;
use crate::error::Code;
use crate::index::{BlockId, FuncId, OpId};
use crate::ir::{Attr, OpKind, OpTraits, Program};
use crate::mlir::wrong_visibility;
use crate::shardy::Change;

/// The visibility of `op`, as text of its attribute.
fn visibility(program: &Program, op: OpId) -> Option<&str> {
    program.attr(op, "sym_visibility").map(|text| program.resolved_alias(text).trim_matches('"'))
}

impl Verifier<'_> {
    /// Checks `op` if it is a function, a call or a terminator, and the terminators of the blocks
    /// in it.
    pub(super) fn structure(&mut self, op: OpId) {
        if self.program.num_regions(op) > 0 {
            self.terminators(op);
            if self.successors.is_some() {
                self.note_branching(op);
            }
        }
        match self.program.kind(op) {
            OpKind::ManualComputation | OpKind::NamedComputation => self.ends_with_return(op),
            OpKind::Func => {
                if let Some(id) = self.program.function_of(op).get() {
                    self.function(op, id);
                }
            }
            OpKind::Module => self.module(op),
            OpKind::Mesh => {
                let parent = self.program.parent_op(op);
                if !parent.is_some_and(|parent| self.program.kind(parent) == OpKind::Module) {
                    self.report_with_name(op, "expects parent op 'builtin.module'");
                }
                self.visibility(op);
            }
            OpKind::FuncReturn => {
                let parent = self.program.parent_op(op);
                if !parent.is_some_and(|parent| self.program.kind(parent) == OpKind::Func) {
                    self.report_with_name(op, "expects parent op 'func.func'");
                }
                self.ends_block(op);
            }
            OpKind::SdyReturn | OpKind::StablehloReturn | OpKind::MpmdReturn => self.ends_block(op),
            OpKind::Call => self.unit(op, "no_inline"),
            _ => {}
        }
    }
    /// Reports an error in `op`, prefixed with its name, at the op's name.
    fn report_with_name(&mut self, op: OpId, message: &str) {
        let problem = self.problem(op, Code::InvalidOp, message);
        self.report(op, problem);
    }
    /// Checks that the blocks in `op` end with ops that may be terminators. The parser has checked
    /// the blocks of Shardy's ops and of functions; a region of an unknown op may have no
    /// terminator if it has one block.
    fn terminators(&mut self, op: OpId) {
        let program = self.program;
        let name = program.op_name(op);
        let is_unknown = !OpTraits::of_name(name).has(OpTraits::KNOWN);
        if !is_unknown && !name.starts_with("stablehlo.") && !name.starts_with("mpmd.") {
            return;
        }
        for region in program.op_regions(op) {
            let blocks: Vec<BlockId> = program.region_blocks(region).collect();
            if is_unknown && blocks.len() < 2 {
                continue;
            }
            for block in blocks {
                let Some(last) = program.last_op(block).get() else {
                    if is_unknown {
                        self.bare(op, "empty block: expect at least a terminator".to_owned());
                    }
                    continue;
                };
                let traits = OpTraits::of_name(program.op_name(last));
                if traits.has(OpTraits::KNOWN) && !traits.has(OpTraits::TERMINATOR) {
                    self.bare(last, "block with no terminator, has this op at its end".to_owned());
                }
            }
        }
    }
    /// Checks that the terminator of the region of `op`, a computation of Shardy, if it has one, is
    /// `sdy.return`.
    fn ends_with_return(&mut self, op: OpId) {
        let program = self.program;
        let Some(last) = program.region_terminator(op, 0) else { return };
        let name = program.op_name(last);
        let traits = OpTraits::of_name(name);
        let may_end = traits.has(OpTraits::TERMINATOR) || !traits.has(OpTraits::KNOWN);
        if may_end && program.kind(last) != OpKind::SdyReturn {
            let message = format!("expects regions to end with 'sdy.return', found '{name}'");
            self.report_with_name(op, &message);
        }
    }
    /// Checks that `op`, a terminator, is the last op of its block.
    fn ends_block(&mut self, op: OpId) {
        if self.program.next_op(op).is_some() {
            self.report_with_name(op, "must be the last operation in the parent block");
        }
    }
    /// Checks the visibility of `op`, a symbol.
    pub(super) fn visibility(&mut self, op: OpId) {
        let shardy = self.program.shardy();
        if self.program.kind(op) == OpKind::Mesh && shardy.has(Change::MeshVisibility) {
            return;
        }
        if let Some(message) = visibility(self.program, op).and_then(wrong_visibility) {
            self.report_with_name(op, &message);
        }
    }
    fn function(&mut self, op: OpId, id: FuncId) {
        let module = self.program.parent_op(op);
        if module.is_some_and(|module| self.program.kind(module) != OpKind::Module) {
            self.report_with_name(op, "symbol's parent must have the SymbolTable trait");
        }
        self.visibility(op);
        let is_public = visibility(self.program, op).is_none_or(|text| text == "public");
        if self.program.func_body(id).is_none() && is_public && !self.program.is_private(id) {
            self.report_with_name(op, "symbol declaration cannot have public visibility");
        }
        let has_plain =
            |attrs: &[Attr]| attrs.iter().any(|attr| !self.program.str(attr.name).contains('.'));
        for (ports, what) in
            [(self.program.func_args(id), "arguments"), (self.program.func_results(id), "results")]
        {
            if ports.iter().any(|port| has_plain(self.program.attr_list(port.attrs))) {
                let message = format!("{what} may only have dialect attributes");
                let problem = self.problem(op, Code::InvalidOp, &message);
                return self.report(op, problem);
            }
        }
    }
    /// Checks that attribute `name` of `op` is a unit attribute.
    fn unit(&mut self, op: OpId, name: &str) {
        if self.program.attr(op, name).is_some_and(|text| !matches!(text.trim(), "" | "unit")) {
            let message =
                format!("attribute '{name}' failed to satisfy constraint: unit attribute");
            self.report_with_name(op, &message);
        }
    }
    /// Checks an op that is not defined by `StableHLO` or CHLO.
    pub(super) fn without_definition(&mut self, op: OpId) {
        if self.program.op_name(op).starts_with("mpmd.") {
            self.mpmd(op);
        }
        if self.program.kind(op) == OpKind::Other {
            self.registered(op);
            self.indirect(op);
            self.branch(op);
        }
    }
    /// If all ops of the dialect of `op` are known, checks that `op` is one of them.
    fn registered(&mut self, op: OpId) {
        let name = self.program.op_name(op);
        let Some((dialect, _)) = name.split_once('.') else { return };
        let is_known = match dialect {
            "stablehlo" | "chlo" | "func" | "sdy" | "mpmd" | "builtin" => {
                OpTraits::of_name(name).has(OpTraits::KNOWN)
            }
            "cf" => matches!(name, "cf.assert" | "cf.br" | "cf.cond_br" | "cf.switch"),
            _ => true,
        };
        if is_known {
            return;
        }
        let message = format!(
            "unregistered operation '{name}' found in dialect ('{dialect}') that does not allow \
             unknown operations"
        );
        self.bare(op, message);
    }
}
