//! The types of operands and results in the text of an op.

use super::printer::{Edit, Printer};
use crate::error::Span;
use crate::index::OpId;
use crate::ir::{OpInfo, OpKind, Syntax};
use crate::mlir::cursor::Cursor;

impl Printer<'_> {
    /// The edit of the types of operands and results, after the last colon.
    pub(super) fn types_edit(&self, op: OpId) -> Option<Edit> {
        let kind = self.program.kind(op);
        let whole = self.program.printing().op(op);
        let end = whole.span.end as usize;
        let mut cursor = Cursor::new(self.program.text().source(), self.name_start(op) as usize);
        loop {
            if cursor.pos >= end {
                return None;
            }
            match cursor.next_byte() {
                b':' => break,
                b'"' => {
                    cursor.string().ok()?;
                }
                b'(' | b'[' | b'{' | b'<' => cursor.skip_balanced().ok()?,
                _ => cursor.pos += 1,
            }
        }
        let start = cursor.pos + 1;
        let text = &self.program.text().source()[start..end];
        let loc = text.rfind("loc(").filter(|&at| text.ends_with(')') && is_loc(&text[at..]));
        let is_generic = self.is_generic(op);
        // The types are followed by the body of a reduction, and by the attributes and regions of a
        // loop.
        let body = match kind {
            OpKind::Reduce if !is_generic => text.find("reducer"),
            OpKind::While if !is_generic => text.find("attributes").or_else(|| text.find("cond")),
            _ => None,
        };
        let len = text[..body.or(loc).unwrap_or(text.len())].trim_end().len();
        let syntax = OpInfo::by_name(self.program.op_name(op))?.syntax;
        // Some ops are printed with a function type, others with types without parentheses; few
        // accept both.
        let is_function = text.trim_start().starts_with('(');
        let is_bare = syntax == Syntax::Arrow && !is_function;
        let types = if is_generic {
            self.function_type(op)
        } else if is_bare {
            self.arrow_types(op)
        } else {
            self.short_types(op, kind, syntax)
        };
        let span = Span::new(start as u32, (start + len) as u32);
        Some(Edit::Text(span, format!(" {types}")))
    }
    /// The types of operands and results in the custom syntax of an op.
    fn short_types(&self, op: OpId, kind: OpKind, syntax: Syntax) -> String {
        let results = self.program.op_results(op);
        let results: Vec<&str> =
            results.map(|value| self.type_text(self.program.type_of(value))).collect();
        let operands = self.operand_types(op);
        let is_list = matches!(syntax, Syntax::Results | Syntax::Barrier) || kind == OpKind::While;
        if is_list {
            return results.join(", ");
        }
        let are_same = operands.iter().chain(&results).all(|ty| Some(ty) == results.first());
        match syntax {
            Syntax::Same if are_same && results.len() == 1 => results[0].to_owned(),
            Syntax::Return => operands.join(", "),
            _ => self.function_type(op),
        }
    }
    /// `a, b -> c`: types of operands and results, without parentheses around operands.
    fn arrow_types(&self, op: OpId) -> String {
        let operands = self.operand_types(op).join(", ");
        let results = self.program.op_results(op);
        let results: Vec<&str> =
            results.map(|value| self.type_text(self.program.type_of(value))).collect();
        match results[..] {
            [result] => format!("{operands} -> {result}"),
            _ => format!("{operands} -> ({})", results.join(", ")),
        }
    }
}

/// Whether `text` is one `loc(...)`.
pub(super) fn is_loc(text: &str) -> bool {
    let mut cursor = Cursor::new(text, 3);
    cursor.skip_balanced().is_ok() && cursor.at_end()
}
