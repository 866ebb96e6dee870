//! Checks that the callees of calls exist and have matching types.

use super::symbols::Symbols;
use crate::error::{Code, Diagnostic, Span};
use crate::index::{FuncId, OpId, StrId};
use crate::ir::Program;
use crate::suggest;

/// A call to check.
pub(super) struct Call {
    pub op: OpId,
    /// The module in which its callee is looked up.
    pub module: OpId,
    pub callee: StrId,
    /// The span of the callee's name.
    pub span: Span,
}

impl Call {
    /// The error of the call, if it has one.
    pub fn problem(&self, program: &Program, symbols: &Symbols) -> Option<Diagnostic> {
        let callee = symbols.find(self.module, self.callee);
        let function = callee.map_or(FuncId::NONE, |op| program.function_of(op));
        let name = program.str(self.callee);
        let Some(id) = function.get() else {
            let message = format!("'func.call' op '{name}' does not reference a valid function");
            let mut diagnostic = Diagnostic::new(Code::UnknownSymbol, message).at(self.span);
            let names = program.func_ids().map(|id| program.str(program.func_name(id)));
            let names = names.take(suggest::MAX_CANDIDATES);
            diagnostic.hint = suggest::hint(name, names, |name| format!("@{name}"));
            return Some(diagnostic);
        };
        let mismatch = program.call_mismatch(self.op, id)?;
        let message = format!("'func.call' op {mismatch}");
        let place = program.printing().function(id).name;
        let problem = Diagnostic::new(Code::TypeMismatch, message).at(self.span);
        Some(problem.with_related(place, "the function"))
    }
}
