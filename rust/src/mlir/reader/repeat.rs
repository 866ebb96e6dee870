//! Parses ops whose text equals that of an earlier op, their *template*, except for the names of
//! values: such an op has the name, types, attributes and signature of its template, and only the
//! value names are parsed.
//!
//! The parser works token by token, so equal text parses equally; whether the op continues on the
//! next line is checked again. Not used as templates: ops with regions in their text, successors or
//! a payload; terminators; ops whose operands are in another order than in the text.

use super::parser::Parser;
use super::templates::Template;
use crate::error::{Result, Span};
use crate::index::{Id, OpId};
use crate::ir::{OpKind, OpText, OpTraits, Place, NO_NAME};
use crate::mlir::cursor::Cursor;
use crate::mlir::meaning::NotesMark;
use crate::mlir::names::NameUse;

impl<'a> Parser<'a> {
    /// Parses the next op if it has a template; false if not.
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
        let text = OpText {
            span: Span::new(self.last_end, end as u32),
            dict: self.templates.shifted(self.program.printing().op(template.op).dict),
            loc,
        };
        let attrs = self.program.repeat_attrs(template.op, |span| self.templates.shifted(span));
        let signature = self.program.signature(template.op);
        self.program.set_op_text(op, text, attrs, signature);
        self.last_end = end as u32;
        let block = self.current_block();
        self.program.insert_op(op, Place::End(block));
        Ok(true)
    }
    /// The location that follows, and the end of the op with it; `None` if the op may continue
    /// after it.
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
    /// Adds an op like `template` with the names in the text that was split.
    fn repeat(&mut self, template: &Template) -> Result<OpId> {
        let from = template.op;
        let op = self.program.push_op(self.program.op_name_id(from), self.program.kind(from));
        if self.program.num_regions(from) > 0 {
            self.repeat_reducer(from, op);
        }
        let is_named = usize::from(template.is_named);
        for index in 0..self.program.num_operands(from) {
            let operand = self.operand_at(self.templates.names[is_named + index]);
            let ty = self.program.type_of(self.program.operand(from, index));
            self.add_operand(op, operand, ty)?;
        }
        let name = self.templates.names.first().copied().filter(|_| template.is_named);
        let offset = name.map_or(NO_NAME, |name| name.start);
        for result in self.program.op_results(from) {
            self.program.push_result(op, self.program.type_of(result), offset);
        }
        if let Some(name) = name {
            let text = self.text_at(Span::new(name.start + 1, name.end));
            let count = self.program.num_results(from) as u32;
            self.define(text, self.program.result(op, 0), count)?;
        }
        let (notes, templates) = (&mut self.notes, &self.templates);
        if !template.annotations.is_empty() {
            let span_of = |span| templates.shifted(span);
            notes.repeat_annotations(template.annotations.clone(), op, span_of);
        }
        Ok(op)
    }
    /// Adds the region that the syntax of `template` implies to `op`.
    fn repeat_reducer(&mut self, template: OpId, op: OpId) {
        let Some(region) = self.program.op_regions(template).next() else { return };
        let block = self.program.region_entry(region);
        let inner = self.program.first_op(block);
        let (name, kind) = (self.program.op_name_id(inner), self.program.kind(inner));
        let scalar = self.program.type_of(self.program.block_arg(block, 0));
        let regions = self.parts.regions.len();
        self.add_reducer((name, kind), scalar);
        self.add_regions(op, regions);
    }
    /// The operand whose name is at `span`.
    fn operand_at(&self, span: Span) -> NameUse<'a> {
        let mut cursor = Cursor::new(self.cursor.text(), span.end as usize);
        let mut number = 0;
        if cursor.peek() == b'#' {
            cursor.pos += 1;
            // In the template, a number is at this place.
            number = cursor.digits().unwrap_or(0) as u32;
        }
        let name = self.text_at(Span::new(span.start + 1, span.end));
        NameUse { name, number, span: cursor.span_since(span.start as usize) }
    }
}

/// The state of the parser before an op.
pub(super) struct Mark {
    taken_apart: Option<(u64, Span)>,
    op: OpId,
    num_open_regions: usize,
    num_label_uses: usize,
    notes: NotesMark,
}

impl Parser<'_> {
    /// The state of the parser before the op whose text was split.
    pub(super) fn mark(&self) -> Mark {
        Mark {
            taken_apart: self.templates.taken_apart(),
            op: Id::from_index(self.program.num_op_ids()),
            num_open_regions: self.open_regions.len(),
            num_label_uses: self.labels.num_uses(),
            notes: self.notes.mark(),
        }
    }
    /// Makes the op that was parsed since `mark` a template for others, if it can be one.
    pub(super) fn keep_template(&mut self, mark: &Mark) {
        if mark.num_open_regions != self.open_regions.len()
            || mark.num_label_uses != self.labels.num_uses()
        {
            return;
        }
        let Some(split @ (_, text)) = mark.taken_apart else { return };
        let Some(annotations) = self.notes.annotations_since(mark.notes) else { return };
        let Some(is_named) = self.is_template(mark.op, text) else { return };
        self.templates.keep(split, mark.op, is_named, annotations);
    }
    /// Whether the results of `op`, whose `text` was split, have a name; `None` if it cannot be a
    /// template.
    fn is_template(&self, op: OpId, text: Span) -> Option<bool> {
        let kind = self.program.kind(op);
        let is_implied = |region| self.program.printing().region_span(region).is_empty();
        if !self.program.op_regions(op).all(is_implied)
            || self.program.payload(op).is_some()
            || matches!(kind, OpKind::Module | OpKind::Func | OpKind::Mesh | OpKind::Call)
            || matches!(kind, OpKind::Case | OpKind::If | OpKind::While)
            || self.program.has_traits(op, OpTraits::TERMINATOR)
        {
            return None;
        }
        let whole = self.program.printing().op(op);
        self.ends_as_split(text.end, whole.span, whole.loc).then_some(())?;
        // The names have to be those of the results and the operands, in this order.
        let names = &self.templates.names;
        let operands = self.program.operand_names(op);
        let results = names.len().checked_sub(operands.len())?;
        let in_order = operands.iter().zip(&names[results..]).all(|(&a, b)| a == b.start);
        let offset = names.first().map_or(NO_NAME, |name| name.start);
        let mut values = self.program.op_results(op);
        let is_named = match results {
            0 => values.all(|value| !self.program.printing().has_name(value)),
            1 => {
                self.program.num_results(op) > 0
                    && values.all(|value| self.program.printing().value_name(value) == offset)
            }
            _ => false,
        };
        (in_order && is_named).then_some(results == 1)
    }
    /// Whether `end` is the end of the text before the location of an op at `span` with location
    /// `loc`.
    fn ends_as_split(&self, end: u32, span: Span, loc: Span) -> bool {
        if loc == Span::EMPTY {
            return span.end == end;
        }
        loc.start > end && self.text_at(Span::new(end, loc.start - 1)).trim() == "loc"
    }
}
