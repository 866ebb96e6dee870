//! Ops written like one before: such an op has its template's name, types, attributes and signature, and
//! nothing has to be read but the names of values.
//!
//! A parser reads token by token, so equal pieces mean equal parses; what may follow an op on the next
//! line is looked at anew. No templates are ops with regions in their text, successors or structured
//! attributes, terminators, and ops whose operands are in another order than in the text.

use super::parser::Parser;
use super::templates::Template;
use crate::error::{Result, Span};
use crate::index::{Id, OpId};
use crate::ir::{Attr, AttrRange, OpKind, OpText, OpTraits, Place};
use crate::mlir::cursor::Cursor;
use crate::mlir::meaning::NotesMark;
use crate::mlir::names::{op_traits, NameUse};

impl<'a> Parser<'a> {
    /// Reads the op here if it has a template; false if not.
    pub(super) fn parse_repeated(&mut self) -> Result<bool> {
        let start = self.cursor.pos;
        let Some((template, end)) = self.templates.find(self.cursor.text(), start) else {
            return Ok(false);
        };
        self.cursor.pos = end;
        let Some((loc, end)) = self.end_of_op() else {
            self.cursor.pos = start;
            return Ok(false);
        };
        let op = self.repeat(&template)?;
        self.cursor.pos = end;
        let row = &mut self.program.op_texts[op];
        row.loc = loc;
        row.span = Span::new(self.last_end, end as u32);
        self.last_end = end as u32;
        let block = self.current_block();
        self.program.insert_op(op, Place::End(block));
        Ok(true)
    }
    /// The location that follows and the end of the op with it; `None` if it may go on behind.
    fn end_of_op(&mut self) -> Option<(Span, usize)> {
        let mut end = self.cursor.pos;
        let loc = self.skip_location().ok()?;
        if loc != Span::EMPTY {
            end = self.cursor.pos;
        }
        let next = self.cursor.next_byte();
        (next.is_ascii_alphabetic() || matches!(next, b'%' | b'"' | b'}' | b'^'))
            .then_some((loc, end))
    }
    /// Adds an op like `template` with the names of the text that was split.
    fn repeat(&mut self, template: &Template) -> Result<OpId> {
        let from = self.program.ops[template.op].clone();
        let op = self.program.new_op_row(from.name, from.kind);
        if from.num_regions > 0 {
            self.repeat_reducer(template.op, op);
        }
        let is_named = usize::from(template.is_named);
        let first = self.program.operands.next_id();
        for index in 0..from.num_operands as usize {
            let span = self.templates.names[is_named + index];
            let operand = self.operand_at(span);
            let slot = self.program.operands[Id::from_index(from.first_operand.index() + index)];
            let ty = self.program.values[slot.value].ty;
            self.add_operand(op, operand, ty)?;
        }
        let name = self.templates.names.first().copied().filter(|_| template.is_named);
        let offset = name.map_or(u32::MAX, |name| name.start);
        let result = self.program.values.next_id();
        for index in 0..from.num_results as usize {
            let ty = self.program.values[Id::from_index(from.first_result.index() + index)].ty;
            self.program.push_result(op, ty, offset);
        }
        let OpText { attrs, dict, .. } = self.program.op_texts[template.op];
        let attrs = self.repeat_attrs(attrs);
        let dict = self.templates.shifted(dict);
        let text = &mut self.program.op_texts[op];
        (text.dict, text.attrs) = (dict, attrs);
        let row = &mut self.program.ops[op];
        row.num_operands = from.num_operands;
        row.first_operand = if from.num_operands == 0 { from.first_operand } else { first };
        row.num_results = from.num_results;
        row.first_result = if from.num_results == 0 { from.first_result } else { result };
        row.signature = from.signature;
        if let Some(name) = name {
            let name = self.text_at(Span::new(name.start + 1, name.end));
            self.define(name, result, from.num_results)?;
        }
        let (notes, templates) = (&mut self.notes, &self.templates);
        notes.repeat_annotations(template.annotations.clone(), op, |span| templates.shifted(span));
        Ok(op)
    }
    /// Gives `op` the region that the syntax of `template` implies.
    fn repeat_reducer(&mut self, template: OpId, op: OpId) {
        let Some(region) = self.program.op_regions(template).next() else { return };
        let block = &self.program.blocks[self.program.region_entry(region)];
        let inner = &self.program.ops[block.first_op];
        let scalar = self.program.values[block.first_arg].ty;
        let regions = self.parts.regions.len();
        self.add_reducer((inner.name, inner.kind), scalar);
        self.add_regions(op, regions);
    }
    /// The operand whose name is at `span`.
    fn operand_at(&self, span: Span) -> NameUse<'a> {
        let mut cursor = Cursor::new(self.cursor.text(), span.end as usize);
        let mut number = 0;
        if cursor.peek() == b'#' {
            cursor.pos += 1;
            // It was a number in the template.
            number = cursor.digits().unwrap_or(0) as u32;
        }
        let name = self.text_at(Span::new(span.start + 1, span.end));
        NameUse { name, number, span: cursor.span_since(span.start as usize) }
    }
    fn repeat_attrs(&mut self, range: AttrRange) -> AttrRange {
        let start = self.program.attrs.len() as u32;
        for index in range.start..range.start + range.len {
            let Attr { name, value } = self.program.attrs[index as usize];
            let value = self.templates.shifted(value);
            self.program.attrs.push(Attr { name, value });
        }
        self.program.skip_repeated_attrs(start);
        if range.len == 0 {
            range
        } else {
            AttrRange { start, len: range.len }
        }
    }
}

/// Where the parser stands before an op.
pub(super) struct Mark {
    taken_apart: Option<(u64, Span)>,
    op: OpId,
    num_open_regions: usize,
    num_label_uses: usize,
    notes: NotesMark,
}

impl Parser<'_> {
    /// Notes that the parser will read the op whose text was taken apart.
    pub(super) fn mark(&self) -> Mark {
        Mark {
            taken_apart: self.templates.taken_apart(),
            op: self.program.ops.next_id(),
            num_open_regions: self.open_regions.len(),
            num_label_uses: self.labels.num_uses(),
            notes: self.notes.mark(),
        }
    }
    /// Makes the op that has been read since `mark` a template for others, if it can be one.
    pub(super) fn keep_template(&mut self, mark: &Mark) {
        if mark.num_open_regions != self.open_regions.len()
            || mark.num_label_uses != self.labels.num_uses()
        {
            return;
        }
        let Some((hash, text)) = mark.taken_apart else { return };
        let Some(annotations) = self.notes.annotations_since(mark.notes) else { return };
        let Some(is_named) = self.is_template(mark.op, text) else { return };
        let template = Template { op: mark.op, text, is_named, annotations };
        self.templates.keep(hash, template);
    }
    /// Whether the results of `op`, whose `text` was taken apart, have a name; `None` if it is no template.
    fn is_template(&self, op: OpId, text: Span) -> Option<bool> {
        let row = &self.program.ops[op];
        let is_implied = |region| self.program.regions[region].span.is_empty();
        if !self.program.op_regions(op).all(is_implied)
            || row.payload.is_some()
            || matches!(row.kind, OpKind::Module | OpKind::Func | OpKind::Mesh | OpKind::Call)
            || matches!(row.kind, OpKind::Case | OpKind::If | OpKind::While)
            || op_traits(&self.program, op).has(OpTraits::TERMINATOR)
        {
            return None;
        }
        let whole = &self.program.op_texts[op];
        self.ends_as_split(text.end, whole.span, whole.loc).then_some(())?;
        // The names are those of the results and the operands, in this order.
        let names = &self.templates.names;
        let operands = self.program.operand_texts(op);
        let results = names.len().checked_sub(operands.len())?;
        let in_order = operands.iter().zip(&names[results..]).all(|(&a, b)| a == b.start);
        let offset = names.first().map_or(u32::MAX, |name| name.start);
        let mut values = self.program.op_results(op);
        let is_named = match results {
            0 => values.all(|value| self.program.value_names[value] == u32::MAX),
            1 => {
                row.num_results > 0 && values.all(|value| self.program.value_names[value] == offset)
            }
            _ => false,
        };
        (in_order && is_named).then_some(results == 1)
    }
    /// Whether an op at `span` with location `loc` has `end` as the end of what is before the location.
    fn ends_as_split(&self, end: u32, span: Span, loc: Span) -> bool {
        if loc == Span::EMPTY {
            return span.end == end;
        }
        loc.start > end && self.text_at(Span::new(end, loc.start - 1)).trim() == "loc"
    }
}
