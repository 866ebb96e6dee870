//! The spans of names, operands and arguments in an op's text, and the edits to them.

use super::op_types::is_loc;
use super::printer::{Edit, Printer};
use crate::error::Span;
use crate::index::{BlockId, OpId, ValueId};
use crate::ir::{OpFlags, OpKind, Program};
use crate::mlir::cursor::Cursor;
use crate::mlir::names::{append_fresh, group_number, ssa_name_at};
use std::fmt::Write as _;

impl Printer<'_> {
    /// The text of the source from `offset` on.
    pub(super) fn text_at(&self, offset: u32) -> &str {
        self.program.text().source().get(offset as usize..).unwrap_or("")
    }
    /// The offset of the name of `op`, after its results.
    pub(super) fn name_start(&self, op: OpId) -> u32 {
        let mut cursor = Cursor::new(
            self.program.text().source(),
            self.program.printing().op(op).span.start as usize,
        );
        if cursor.next_byte() == b'%' {
            while cursor.next_byte() != b'=' && !cursor.at_end() {
                cursor.pos += 1;
            }
            cursor.pos += 1;
            cursor.skip_space();
        }
        cursor.pos as u32
    }
    /// Appends the edits that turn the text of `op` into its current form; `None` if the text
    /// cannot be edited.
    pub(super) fn collect_edits(&self, op: OpId, edits: &mut Vec<Edit>) -> Option<()> {
        let program = self.program;
        let kind = program.kind(op);
        for region in program.op_regions(op) {
            let span = program.printing().region_span(region);
            if !span.is_empty() {
                edits.push(Edit::Region(span, region));
            }
        }
        if kind == OpKind::Func {
            self.function_edits(op, edits)?;
        }
        let is_affected = self.names.is_affected(program, op);
        let flags = self.flags(op);
        if flags.is_clean() && !is_affected {
            return Some(());
        }
        if is_affected || flags.has(OpFlags::OPERANDS_CHANGED) {
            self.operand_edits(op, edits)?;
        }
        if flags.has(OpFlags::RESULTS_RENAMED) || is_affected {
            self.result_edit(op, edits);
        }
        if is_affected || flags.has(OpFlags::ATTRS_CHANGED) {
            self.arg_edits(op, edits)?;
        }
        if flags.has(OpFlags::ATTRS_CHANGED) {
            self.dict_edit(op, edits);
        }
        if flags.has(OpFlags::RENAMED) {
            let start = self.name_start(op);
            let mut cursor = Cursor::new(program.text().source(), start as usize);
            let name = program.op_name(op);
            let text = if cursor.peek() == b'"' {
                cursor.string().ok()?;
                format!("\"{name}\"")
            } else {
                cursor.name();
                name.to_owned()
            };
            edits.push(Edit::Text(Span::new(start, cursor.pos as u32), text));
        }
        if flags.has(OpFlags::TYPES_CHANGED) {
            edits.push(self.types_edit(op)?);
        }
        if flags.has(OpFlags::LOC_CHANGED) {
            self.loc_edit(op, edits);
        }
        Some(())
    }
    /// Appends the edit that replaces the location of `op` or adds one.
    fn loc_edit(&self, op: OpId, edits: &mut Vec<Edit>) {
        let whole = self.program.printing().op(op);
        let text = self.program.text().get(whole.span);
        let old = text.rfind("loc(").filter(|&at| text.ends_with(')') && is_loc(&text[at..]));
        let start = old.map_or(whole.span.end, |at| whole.span.start + at as u32);
        let new = format!("loc({})", self.program.text().get(whole.loc));
        let new = if old.is_some() { new } else { format!(" {new}") };
        edits.push(Edit::Text(Span::new(start, whole.span.end), new));
    }
    /// Appends the edits of operand names.
    fn operand_edits(&self, op: OpId, edits: &mut Vec<Edit>) -> Option<()> {
        let operands = self.program.operands(op);
        let texts = self.program.operand_names(op);
        let mut add = |place: u32, value| {
            let old = operand_text(self.program, place);
            edits.push(Edit::Operand(Span::new(place, place + old.len() as u32), value));
        };
        if !texts.contains(&u32::MAX) {
            for (&place, value) in texts.iter().zip(operands) {
                add(place, value);
            }
            return Some(());
        }
        let places = self.operand_places(op);
        if places.len() != operands.len() {
            return None;
        }
        for (value, place) in operands.zip(places) {
            add(place, value);
        }
        Some(())
    }
    /// The offsets of operands in the text of `op`, in the order of its operands.
    fn operand_places(&self, op: OpId) -> Vec<u32> {
        let kind = self.program.kind(op);
        let whole = self.program.printing().op(op);
        let mut cursor = Cursor::new(self.program.text().source(), self.name_start(op) as usize);
        let is_generic = cursor.peek() == b'"';
        if is_generic {
            // The string was parsed before, so it is closed.
            let _ = cursor.string();
        }
        let mut places = Vec::new();
        while cursor.pos < whole.span.end as usize {
            match cursor.next_byte() {
                b'%' => {
                    places.push(cursor.pos as u32);
                    cursor.pos += 1;
                    cursor.ssa_name();
                }
                b')' if is_generic => break,
                b':' if kind != OpKind::Reduce => break,
                b'a' if kind == OpKind::Reduce && cursor.eat_keyword("across") => break,
                b'"' if cursor.string().is_ok() => {}
                b'{' if cursor.skip_balanced().is_ok() => {}
                _ => cursor.pos += 1,
            }
        }
        match kind {
            OpKind::Reduce if !is_generic => {
                let inputs = places.iter().step_by(2);
                inputs.chain(places.iter().skip(1).step_by(2)).copied().collect()
            }
            OpKind::While if !is_generic => places.into_iter().skip(1).step_by(2).collect(),
            _ => places,
        }
    }
    /// Appends the edit of result names, with all results as one group.
    fn result_edit(&self, op: OpId, edits: &mut Vec<Edit>) {
        let program = self.program;
        let count = program.num_results(op);
        if count == 0 {
            return;
        }
        if program.op_results(op).all(|value| self.names.keeps(program, value)) {
            return;
        }
        let span = program.printing().op(op).span;
        let mut cursor = Cursor::new(program.text().source(), span.start as usize);
        cursor.skip_space();
        let start = cursor.pos as u32;
        let span = Span::new(start, self.name_start(op));
        edits.push(Edit::Results(span));
    }
    /// `%a, %b:2 = `
    pub(super) fn result_list(&self, op: OpId) -> String {
        let program = self.program;
        let mut out = String::new();
        let results: Vec<ValueId> = program.op_results(op).collect();
        if results.is_empty() {
            return out;
        }
        if !results.iter().all(|&value| self.names.keeps(program, value)) {
            append_fresh(program, results[0], &mut out);
            if results.len() > 1 {
                out.truncate(out.find('#').unwrap_or(out.len()));
                let _ = write!(out, ":{}", results.len());
            }
            out.push_str(" = ");
            return out;
        }
        let mut at = 0;
        while at < results.len() {
            let offset = program.printing().value_name(results[at]);
            if at > 0 {
                out.push_str(", ");
            }
            out.push_str(ssa_name_at(program.text().source(), offset));
            if group_number(program, results[at]).is_none() {
                at += 1;
                continue;
            }
            let same = |value: &&ValueId| program.printing().value_name(**value) == offset;
            let group = results[at..].iter().take_while(same).count();
            let _ = write!(out, ":{group}");
            at += group;
        }
        out.push_str(" = ");
        out
    }
    /// Appends the edits of the names of arguments of `op`'s regions; arguments of labelled blocks
    /// are printed with the label.
    fn arg_edits(&self, op: OpId, edits: &mut Vec<Edit>) -> Option<()> {
        let program = self.program;
        if program.kind(op) == OpKind::Func {
            return Some(());
        }
        let mut places = None;
        for region in program.op_regions(op) {
            let Some(block) = program.region_entry(region).get() else { continue };
            let is_implied = program.printing().region_span(region).is_empty();
            if is_implied || !program.printing().block_header(block).is_empty() {
                continue;
            }
            for (index, arg) in program.block_args(block).enumerate() {
                if self.names.keeps(program, arg) {
                    continue;
                }
                let places = places.get_or_insert_with(|| self.arg_places(op));
                let &offset = places.get(index)?;
                let old = ssa_name_at(program.text().source(), offset);
                let mut new = String::new();
                self.names.append(program, arg, &mut new);
                let span = Span::new(offset, offset + old.len() as u32);
                edits.push(Edit::Text(span, new));
            }
        }
        Some(())
    }
    /// The offsets of the arguments of `op`'s regions in its custom syntax, before these regions.
    fn arg_places(&self, op: OpId) -> Vec<u32> {
        let kind = self.program.kind(op);
        let whole = self.program.printing().op(op);
        let mut cursor = Cursor::new(self.program.text().source(), self.name_start(op) as usize);
        if kind == OpKind::Reduce {
            let text = self.program.text().get(whole.span);
            let Some(at) = text.find(" reducer") else { return Vec::new() };
            cursor.pos = whole.span.start as usize + at;
        }
        let mut places = Vec::new();
        while cursor.pos < whole.span.end as usize {
            match cursor.next_byte() {
                b'%' => {
                    places.push(cursor.pos as u32);
                    cursor.pos += 1;
                }
                b'{' => break,
                b':' if kind == OpKind::While => break,
                b'"' if cursor.string().is_ok() => {}
                b'<' | b'[' if cursor.skip_balanced().is_ok() => {}
                _ => cursor.pos += 1,
            }
        }
        let first = places.iter().step_by(2).copied();
        match kind {
            OpKind::While => first.collect(),
            OpKind::Reduce => first.chain(places.iter().skip(1).step_by(2).copied()).collect(),
            _ => places,
        }
    }
    /// Prints the label of `block` with its arguments.
    pub(super) fn print_label(&mut self, block: BlockId) {
        let program = self.program;
        let header = program.printing().block_header(block);
        let args: Vec<ValueId> = program.block_args(block).collect();
        if header.is_empty() {
            if args.is_empty() && self.is_entry(block) {
                return;
            }
            self.new_line();
            let name = format!("^bb{}", crate::index::Id::index(block));
            let list = self.typed_args(&args);
            let list = if list.is_empty() { list } else { format!("({list})") };
            return self.write(&format!("{name}{list}:"));
        }
        let parent = program.block_parent_op(block);
        if self.flags(parent).has(OpFlags::TYPES_CHANGED) && !args.is_empty() {
            let label = program.text().get(header);
            let start = label.len() - label.trim_start().len();
            let end = label.find(['(', ':']).unwrap_or(label.len());
            self.before_op(header);
            let text = format!("{}({}):", &label[..end.max(start)], self.typed_args(&args));
            return self.write(&text);
        }
        let mut edits = Vec::new();
        for arg in args {
            let offset = program.printing().value_name(arg);
            if offset == u32::MAX || self.names.is_renamed(arg) {
                let Some(place) = self.label_arg_place(header, program.value_index(arg)) else {
                    continue;
                };
                let old = ssa_name_at(program.text().source(), place);
                let mut new = String::new();
                self.names.append(program, arg, &mut new);
                edits.push(Edit::Text(Span::new(place, place + old.len() as u32), new));
            }
        }
        self.before_op(header);
        self.splice(OpId::NONE, header, &mut edits);
    }
    fn is_entry(&self, block: BlockId) -> bool {
        self.program.region_entry(self.program.block_region(block)) == block
    }
    /// The offset of the name of the `index`-th argument in a label.
    fn label_arg_place(&self, header: Span, index: usize) -> Option<u32> {
        let mut cursor = Cursor::new(self.program.text().source(), header.start as usize);
        let mut seen = 0;
        while cursor.pos < header.end as usize {
            match cursor.next_byte() {
                b'%' if seen == index => return Some(cursor.pos as u32),
                b'%' => {
                    seen += 1;
                    cursor.pos += 1;
                }
                b'"' => {
                    cursor.string().ok()?;
                }
                _ => cursor.pos += 1,
            }
        }
        None
    }
    /// `%a: type loc(...), %b: type`
    pub(super) fn typed_args(&self, args: &[ValueId]) -> String {
        let mut out = String::new();
        for (index, &arg) in args.iter().enumerate() {
            if index > 0 {
                out.push_str(", ");
            }
            self.names.append(self.program, arg, &mut out);
            out.push_str(": ");
            out.push_str(self.type_text(self.program.type_of(arg)));
            if let Some(loc) = self.program.arg_location_text(arg) {
                let _ = write!(out, " loc({})", self.program.text().get(loc));
            }
        }
        out
    }
    /// The text of a type.
    pub(super) fn type_text(&self, ty: crate::index::TypeId) -> &str {
        self.program.type_text(ty)
    }
}

/// The operand that starts at `place`: `%a` or `%a#1`.
fn operand_text(program: &Program, place: u32) -> &str {
    let mut cursor = Cursor::new(program.text().source(), place as usize);
    cursor.pos += 1;
    cursor.ssa_name();
    if cursor.peek() == b'#' {
        cursor.pos += 1;
        cursor.digits();
    }
    cursor.since(place as usize)
}
