//! Completes an op: moves its parts from the stacks to the program's tables.

use super::parser::{Parser, PendingOp};
use super::parts::PendingResult;
use crate::error::{Code, Diagnostic, Result, Span};
use crate::ir::{AttrRange, OpText, Payload, Place, Syntax, NO_NAME};
use crate::mlir::meaning::plural;

impl Parser<'_> {
    /// Completes an op whose types are on the stack, inputs first.
    pub(super) fn finish(&mut self, mut pending: PendingOp) -> Result<()> {
        let op = pending.op;
        self.add_regions(op, pending.base.regions);
        if pending.is_generic {
            self.take_inherent(&mut pending)?;
        }
        self.finish_operands(&pending)?;
        self.finish_results(&pending)?;
        self.finish_annotations(&pending)?;
        self.check_arity(&pending)?;
        let end = self.cursor.pos;
        let loc = self.skip_location()?;
        if loc == Span::EMPTY {
            self.cursor.pos = end;
        }
        let span = Span::new(pending.start, self.cursor.pos as u32);
        let signature = self.signature_of(&pending);
        let attrs = self.flush_attrs(pending.base.attrs);
        self.program.set_op_text(op, OpText { span, dict: pending.dict, loc }, attrs, signature);
        self.parts.types.truncate(pending.base.types);
        self.last_end = self.cursor.pos as u32;
        let block = self.current_block();
        self.program.insert_op(op, Place::End(block));
        Ok(())
    }
    /// Records the sharding annotations of a complete op.
    fn finish_annotations(&mut self, pending: &PendingOp) -> Result<()> {
        let op = pending.op;
        if pending.function.is_some() {
            let payload = Payload::Function(pending.function);
            self.program.attach_payload(op, payload);
            self.finish_function(pending)?;
        }
        let annotations = &pending.annotations;
        self.notes.note_annotations(&mut self.program, op, annotations, pending.is_generic)
    }
    fn finish_operands(&mut self, pending: &PendingOp) -> Result<()> {
        let count = self.parts.operands.len() - pending.base.operands;
        if count != pending.num_inputs {
            let needs = pending.num_inputs;
            let name = self.program.str(pending.name.id);
            let message = match pending.name.syntax {
                _ if pending.is_generic => {
                    format!("expected {} but had {needs}", plural(count, "operand type"))
                }
                Syntax::Same | Syntax::Complex | Syntax::Select => {
                    format!("custom op '{name}' {count} operands present, but expected {needs}")
                }
                _ => format!(
                    "custom op '{name}' number of operands and types do not match: got {count} \
                     operands and {needs} types"
                ),
            };
            let span = self.name_span(pending);
            return Err(Diagnostic::new(Code::TypeMismatch, message).at(span).into());
        }
        // Resolving may add placeholder values, but no operand slots.
        for index in 0..count {
            let operand = self.parts.operands[pending.base.operands + index];
            let ty = self.parts.types[pending.base.types + index];
            self.add_operand(pending.op, operand, ty)?;
        }
        self.parts.operands.truncate(pending.base.operands);
        Ok(())
    }
    fn finish_results(&mut self, pending: &PendingOp) -> Result<()> {
        let types = pending.base.types + pending.num_inputs..self.parts.types.len();
        let count = types.len();
        let names = pending.base.results..self.parts.results.len();
        let total: usize =
            self.parts.results[names.clone()].iter().map(|name| name.count as usize).sum();
        if total != count && !names.is_empty() {
            let message = if count == 0 {
                "cannot name an operation with no results".to_owned()
            } else {
                format!("operation defines {count} results but was provided {total} to bind")
            };
            let start = self.parts.results[names.start].offset;
            let span = Span::new(start, self.name_span(pending).end);
            return Err(Diagnostic::new(Code::TypeMismatch, message).at(span).into());
        }
        let mut at = names.start;
        let mut left = self.parts.results.get(at).map_or(0, |name| name.count);
        for &ty in &self.parts.types[types] {
            if left == 0 {
                at += 1;
                left = self.parts.results.get(at).map_or(u32::MAX, |name| name.count);
            }
            left -= 1;
            let name = self.parts.results.get(at).map_or(NO_NAME, |name| name.offset);
            self.program.push_result(pending.op, ty, name);
        }
        let mut index = 0;
        for at in names {
            let PendingResult { name, count, .. } = self.parts.results[at];
            self.define(name, self.program.result(pending.op, index), count)?;
            index += count as usize;
        }
        self.parts.results.truncate(pending.base.results);
        Ok(())
    }
    /// Moves the attributes above `base` to the program's table.
    pub(super) fn flush_attrs(&mut self, base: usize) -> AttrRange {
        let range = self.program.add_attrs(&self.parts.attrs[base..]);
        // Their texts are in the processor's caches now.
        self.program.has_symbol_attrs();
        self.parts.attrs.truncate(base);
        range
    }
}
