//! Symbol tables: the op of a module that `@name` refers to.

use crate::error::{Code, Diagnostic, Result, Span};
use crate::index::{OpId, StrId};
use rustc_hash::FxHashMap;

/// The symbols of all modules of a program, which may nest.
#[derive(Default)]
pub(super) struct Symbols {
    /// The modules that are open, the innermost last.
    open: Vec<OpId>,
    defined: FxHashMap<(OpId, StrId), (OpId, Span)>,
}

impl Symbols {
    /// Enters the region of `module`.
    pub fn enter(&mut self, module: OpId) {
        self.open.push(module);
    }
    /// Leaves the region of the innermost module.
    pub fn leave(&mut self) {
        self.open.pop();
    }
    /// The innermost module around the op that is being read.
    pub fn module_around(&self, op: OpId) -> OpId {
        self.open.iter().rev().copied().find(|&module| module != op).unwrap_or(OpId::NONE)
    }
    /// Defines `name`, written as `text` at `span`, as `op`.
    pub fn define(&mut self, op: OpId, name: StrId, text: &str, span: Span) -> Result<()> {
        let module = self.module_around(op);
        let Some((_, first)) = self.defined.insert((module, name), (op, span)) else {
            return Ok(());
        };
        let message = format!("redefinition of symbol named '{text}'");
        Err(Diagnostic::new(Code::RedefinedSymbol, message)
            .at(span)
            .with_related(first, "first defined here")
            .into())
    }
    /// The op that `name` refers to in `module`.
    pub fn find(&self, module: OpId, name: StrId) -> Option<OpId> {
        self.defined.get(&(module, name)).map(|&(op, _)| op)
    }
}

/// The name in the text of a symbol reference or of a string attribute, without resolving escapes.
pub(in crate::mlir) fn symbol_name(text: &str) -> &str {
    let text = text.strip_prefix('@').unwrap_or(text);
    text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(text)
}
