//! Completing an op: what was collected on the stacks goes to the program's tables.

use crate::error::{Code, Diagnostic, Result, Span};
use crate::index::{BlockId, Id};
use crate::ir::{AttrRange, Place};
use crate::mlir::cursor::Cursor;
use crate::mlir::reader::parser::{Building, Parser, PendingResult};

impl Parser<'_> {
    /// Completes an op whose types are on the stack: inputs first.
    pub(in crate::mlir) fn finish(&mut self, mut building: Building) -> Result<()> {
        let op = building.op;
        self.add_regions(op, building.regions);
        if building.is_generic {
            self.take_inherent(&mut building)?;
        }
        self.finish_operands(&building)?;
        self.finish_results(&building)?;
        self.note_meaning(&building)?;
        self.check_arity(&building)?;
        let end = self.cursor.pos;
        self.program.op_texts[op].loc = self.skip_location()?;
        if self.program.op_texts[op].loc == Span::EMPTY {
            self.cursor.pos = end;
        }
        self.program.op_texts[op].dict = building.dict;
        self.program.op_texts[op].span = Span::new(building.start, self.cursor.pos as u32);
        self.program.ops[op].signature = self.signature(&building);
        self.program.op_texts[op].attrs = self.flush_attrs(building.attrs);
        self.types.truncate(building.types);
        self.last_end = self.cursor.pos as u32;
        let block = self.current_block();
        self.program.insert_op(op, Place::End(block));
        Ok(())
    }
    /// The block that ops go to, which is made if the region has none yet.
    pub(in crate::mlir) fn current_block(&mut self) -> BlockId {
        let Some(block) = self.frames.last().map(|frame| frame.block) else { return BlockId::NONE };
        if block.is_some() {
            return block;
        }
        let block = self.new_block(BlockId::NONE);
        if let Some(frame) = self.frames.last_mut() {
            (frame.block, frame.first_block) = (block, block);
        }
        block
    }
    pub(in crate::mlir) fn finish_operands(&mut self, building: &Building) -> Result<()> {
        let count = self.operands.len() - building.operands;
        if count != building.num_inputs {
            let (what, were) = (plural(count, "operand"), building.num_inputs);
            let message = format!("the op has {what}, but its type has {were}");
            let span = self.name_span(building);
            return Err(Diagnostic::new(Code::TypeMismatch, message).at(span).into());
        }
        if count == 0 {
            return Ok(());
        }
        // Resolving may add placeholder values, but no operand slots.
        let first = self.program.operands.next_id();
        for index in 0..count {
            let operand = self.operands[building.operands + index];
            let ty = self.types[building.types + index];
            let value = self.resolve_operand(building.op, operand, ty)?;
            self.program.push_operand(building.op, value, operand.span.start);
        }
        let row = &mut self.program.ops[building.op];
        row.num_operands = count as u32;
        row.first_operand = first;
        self.operands.truncate(building.operands);
        Ok(())
    }
    pub(in crate::mlir) fn finish_results(&mut self, building: &Building) -> Result<()> {
        let types = building.types + building.num_inputs..self.types.len();
        let count = types.len();
        let names = building.results..self.results.len();
        let total: usize = self.results[names.clone()].iter().map(|name| name.count as usize).sum();
        if total != count && !names.is_empty() {
            let message = format!(
                "the op has {}, but {total} {} named",
                plural(count, "result"),
                if total == 1 { "is" } else { "are" }
            );
            let start = self.results[names.start].offset;
            let span = Span::new(start, self.name_span(building).end);
            return Err(Diagnostic::new(Code::TypeMismatch, message).at(span).into());
        }
        let first = self.program.values.next_id();
        let mut at = names.start;
        let mut left = self.results.get(at).map_or(0, |name| name.count);
        let (op, results) = (building.op, &self.results);
        let rows = self.types[types].iter().map(|&ty| {
            if left == 0 {
                at += 1;
                left = results.get(at).map_or(u32::MAX, |name| name.count);
            }
            left -= 1;
            (ty, results.get(at).map_or(u32::MAX, |name| name.offset))
        });
        self.program.add_results(op, rows);
        let mut value = first.index();
        for index in names {
            let PendingResult { name, count, .. } = self.results[index];
            self.define(name, Id::from_index(value), count)?;
            value += count as usize;
        }
        self.results.truncate(building.results);
        Ok(())
    }
    /// Moves the attributes above `base` to the program's table.
    pub(in crate::mlir) fn flush_attrs(&mut self, base: usize) -> AttrRange {
        let range = self.program.add_attrs(&self.attrs[base..]);
        // Now their texts are in the caches.
        self.program.has_symbol_attrs();
        self.attrs.truncate(base);
        range
    }
    /// Where the op's name stands.
    pub(in crate::mlir) fn name_span(&self, building: &Building) -> Span {
        let mut cursor = Cursor::new(self.cursor.text(), building.name_start as usize);
        if cursor.peek() == b'"' {
            // It was read once, so it is closed.
            let _ = cursor.string();
        } else {
            cursor.name();
        }
        cursor.span_since(building.name_start as usize)
    }
}

/// `1 operand`, `2 operands`.
pub(in crate::mlir) fn plural(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}
