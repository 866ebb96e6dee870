//! Ops written like one before.
//!
//! A model's program is a few hundred different lines, tens of thousands of times: only the names of
//! values differ. So the text of an op on one line is taken apart at these names, and if an op with the
//! same pieces was parsed before, this one has that op's name, types, attributes and signature, and
//! nothing has to be read but the names. A parser reads token by token, so equal pieces mean equal
//! parses; what may follow an op on the next line is looked at anew.
//!
//! Left to the parser are ops with regions in their text, successors or structured attributes, terminators, and ops
//! whose operands are in another order than in the text.

use crate::error::{Result, Span};
use crate::index::{Id, OpId};
use crate::ir::{Attr, AttrRange, OpKind, OpText, Place};
use crate::mlir::cursor::Cursor;
use crate::mlir::meaning::target::Target;
use crate::mlir::reader::parser::{Parser, PendingOperand};
use memchr::memchr2;
use rustc_hash::{FxHashMap, FxHasher};
use std::hash::Hasher;
use std::ops::Range;

/// Longer texts are not compared.
const MAX_LEN: usize = 2_048;
/// How many examples are kept; should there be more, all are forgotten.
const MAX_EXAMPLES: usize = 1 << 14;

/// An op and its text.
#[derive(Clone)]
struct Example {
    op: OpId,
    /// Its text without space before it and location.
    text: Span,
    /// Whether its results have a name.
    is_named: bool,
    /// Its shardings and rule in the list of targets.
    targets: Range<usize>,
}

/// The names in the text of an op, and the examples by the hashes of their pieces.
#[derive(Default)]
pub(in crate::mlir) struct Repeated {
    examples: FxHashMap<u64, Example>,
    /// The names, `%` included.
    names: Vec<Span>,
    /// What to add to offsets in the example, from each piece of its text on.
    shifts: Vec<(u32, u32)>,
    hash: u64,
    text: Span,
}

impl Repeated {
    /// Takes the line at `start` apart; false if it is too long or has a `%` without a name.
    #[inline]
    fn split(&mut self, text: &str, start: usize) -> bool {
        let bytes = text.as_bytes();
        let limit = text.len().min(start + MAX_LEN);
        let mut hasher = FxHasher::default();
        let mut at = start;
        self.names.clear();
        loop {
            // A name may go on beyond the limit.
            let piece = bytes.get(at..limit).unwrap_or(&[]);
            let Some(found) = memchr2(b'%', b'\n', piece) else { return false };
            if piece[found] == b'\n' {
                let end = at + end_without_location(&piece[..found]);
                hasher.write(&bytes[at..end]);
                self.text = Span::new(start as u32, end as u32);
                self.hash = hasher.finish();
                return end > start;
            }
            hasher.write(&piece[..found]);
            let mut cursor = Cursor::new(text, at + found + 1);
            if cursor.ssa_name().is_empty() {
                return false;
            }
            self.names.push(cursor.span_since(at + found));
            at = cursor.pos;
        }
    }
    /// The example that has the same pieces.
    #[inline]
    fn find(&mut self, text: &str) -> Option<Example> {
        let example = self.examples.get(&self.hash)?;
        let bytes = text.as_bytes();
        let mut other = Cursor::new(text, example.text.start as usize);
        let mut at = self.text.start as usize;
        self.shifts.clear();
        for name in &self.names {
            let piece = &bytes[at..name.start as usize];
            let start = other.pos;
            other.pos += piece.len();
            if bytes.get(start..other.pos) != Some(piece) || other.peek() != b'%' {
                return None;
            }
            self.shifts.push((start as u32, (at as u32).wrapping_sub(start as u32)));
            other.pos += 1;
            other.ssa_name();
            at = name.end as usize;
        }
        let start = other.pos;
        self.shifts.push((start as u32, (at as u32).wrapping_sub(start as u32)));
        let is_same = bytes[at..self.text.end as usize] == bytes[start..example.text.end as usize];
        is_same.then(|| example.clone())
    }
    /// Where `span` of the example is in the text that was split.
    fn shifted(&self, span: Span) -> Span {
        let after = self.shifts.iter().rev().find(|(start, _)| *start <= span.start);
        let shift = after.map_or(0, |(_, shift)| *shift);
        Span::new(span.start.wrapping_add(shift), span.end.wrapping_add(shift))
    }
}

/// The length of a line without ` loc(...)` and white space at its end.
fn end_without_location(line: &[u8]) -> usize {
    let line = line.trim_ascii_end();
    if line.last() != Some(&b')') {
        return line.len();
    }
    memchr::memmem::rfind(line, b" loc(").unwrap_or(line.len())
}

impl<'a> Parser<'a> {
    /// Parses the op here if one like it was parsed before; false if not.
    pub(in crate::mlir) fn parse_repeated(&mut self) -> Result<bool> {
        let text = self.cursor.text();
        let start = self.cursor.pos;
        if !self.repeated.split(text, start) {
            self.repeated.hash = 0;
            return Ok(false);
        }
        let Some(example) = self.repeated.find(text) else { return Ok(false) };
        self.cursor.pos = self.repeated.text.end as usize;
        let Some((loc, end)) = self.end_of_op() else {
            self.cursor.pos = start;
            return Ok(false);
        };
        let op = self.repeat(&example)?;
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
    /// Adds an op like `example` with the names of the text that was split.
    fn repeat(&mut self, example: &Example) -> Result<OpId> {
        let from = self.program.ops[example.op].clone();
        let op = self.program.new_op_row(from.name, from.kind);
        if from.num_regions > 0 {
            self.repeat_reducer(example.op, op);
        }
        let is_named = usize::from(example.is_named);
        let first = self.program.operands.next_id();
        for index in 0..from.num_operands as usize {
            let span = self.repeated.names[is_named + index];
            let operand = self.operand_at(span);
            let slot = self.program.operands[Id::from_index(from.first_operand.index() + index)];
            let ty = self.program.values[slot.value].ty;
            let value = self.resolve_operand(op, operand, ty)?;
            self.program.push_operand(op, value, span.start);
        }
        let name = self.repeated.names.first().copied().filter(|_| example.is_named);
        let offset = name.map_or(u32::MAX, |name| name.start);
        let result = self.program.values.next_id();
        for index in 0..from.num_results as usize {
            let ty = self.program.values[Id::from_index(from.first_result.index() + index)].ty;
            self.program.push_result(op, ty, offset);
        }
        let OpText { attrs, dict, .. } = self.program.op_texts[example.op];
        let attrs = self.repeat_attrs(attrs);
        let dict = self.repeated.shifted(dict);
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
        for index in example.targets.clone() {
            let (target, span) = self.targets[index];
            let target = match target {
                Target::Results(_) => Target::Results(op),
                Target::Rule(_) => Target::Rule(op),
                _ => Target::Result(op),
            };
            self.targets.push((target, self.repeated.shifted(span)));
        }
        Ok(op)
    }
    /// Gives `op` the region that the syntax of `example` implies.
    fn repeat_reducer(&mut self, example: OpId, op: OpId) {
        let Some(region) = self.program.op_regions(example).next() else { return };
        let block = &self.program.blocks[self.program.region_entry(region)];
        let inner = &self.program.ops[block.first_op];
        let scalar = self.program.values[block.first_arg].ty;
        let regions = self.regions.len();
        self.add_reducer((inner.name, inner.kind), scalar);
        self.add_regions(op, regions);
    }
    /// The operand whose name is at `span`.
    fn operand_at(&self, span: Span) -> PendingOperand<'a> {
        let mut cursor = Cursor::new(self.cursor.text(), span.end as usize);
        let mut number = 0;
        if cursor.peek() == b'#' {
            cursor.pos += 1;
            // It was a number in the example.
            number = cursor.digits().unwrap_or(0) as u32;
        }
        let name = self.text_at(Span::new(span.start + 1, span.end));
        PendingOperand { name, number, span: cursor.span_since(span.start as usize) }
    }
    fn repeat_attrs(&mut self, range: AttrRange) -> AttrRange {
        let start = self.program.attrs.len() as u32;
        for index in range.start..range.start + range.len {
            let Attr { name, value } = self.program.attrs[index as usize];
            let value = self.repeated.shifted(value);
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
pub(in crate::mlir) struct Mark {
    hash: u64,
    text: Span,
    op: OpId,
    frames: usize,
    calls: usize,
    labels: usize,
    targets: usize,
}

impl Parser<'_> {
    /// Notes that the parser will read the op whose text was split.
    pub(in crate::mlir) fn mark(&self) -> Mark {
        Mark {
            hash: self.repeated.hash,
            text: self.repeated.text,
            op: self.program.ops.next_id(),
            frames: self.frames.len(),
            calls: self.calls.len(),
            labels: self.label_uses.len(),
            targets: self.targets.len(),
        }
    }
    /// Makes the op that has been read since `mark` an example for others.
    pub(in crate::mlir) fn note_example(&mut self, mark: &Mark) {
        let is_plain = mark.hash != 0
            && mark.frames == self.frames.len()
            && mark.calls == self.calls.len()
            && mark.labels == self.label_uses.len();
        if is_plain {
            if let Some(is_named) = self.is_example(mark) {
                let (op, text) = (mark.op, mark.text);
                let targets = mark.targets..self.targets.len();
                if self.repeated.examples.len() >= MAX_EXAMPLES {
                    self.repeated.examples.clear();
                }
                let example = Example { op, text, is_named, targets };
                self.repeated.examples.insert(mark.hash, example);
            }
        }
    }
    /// Whether the results of the op read since `mark` have a name, `None` if it is no example.
    fn is_example(&self, mark: &Mark) -> Option<bool> {
        let row = &self.program.ops[mark.op];
        let own = |target: &(Target, Span)| {
            matches!(target.0, Target::Results(_) | Target::Result(_) | Target::Rule(_))
        };
        let is_implied = |region| self.program.regions[region].span.is_empty();
        if !self.program.op_regions(mark.op).all(is_implied)
            || row.payload.is_some()
            || matches!(row.kind, OpKind::Module | OpKind::Func | OpKind::Mesh | OpKind::Call)
            || matches!(row.kind, OpKind::Case | OpKind::If | OpKind::While)
            || self.op_traits(mark.op).has(crate::ir::OpTraits::TERMINATOR)
            || !self.targets[mark.targets..].iter().all(own)
        {
            return None;
        }
        let text = &self.program.op_texts[mark.op];
        self.ends_as_split(mark.text.end, text.span, text.loc).then_some(())?;
        // The names are those of the results and the operands, in this order.
        let names = &self.repeated.names;
        let operands = self.program.operand_texts(mark.op);
        let results = names.len().checked_sub(operands.len())?;
        let in_order = operands.iter().zip(&names[results..]).all(|(&a, b)| a == b.start);
        let offset = names.first().map_or(u32::MAX, |name| name.start);
        let mut values = self.program.op_results(mark.op);
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
