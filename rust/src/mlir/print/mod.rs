//! Prints programs: copies the text of unchanged ops, and splices edits into that of changed ones.
//!
//! Every op of the program is visited in order. An op with text has a list of [`Edit`]s to it; the
//! list is empty if the op did not change. Each region is one edit, and is printed in turn. Changed
//! ops of `sdy`, changed calls, and ops that passes made are written from their fields. Adjacent
//! unchanged ops are copied together.

mod attrs;
mod fields;
mod function;
mod header;
mod names;
mod op_types;
mod printer;
mod sdy;
mod splice;

use crate::error::Span;
use crate::index::{BlockId, OpId, RegionId};
use crate::ir::{OpFlags, OpKind, Program};
use printer::{Label, Printer, Task, PIECE};

/// Prints `program` as MLIR text.
pub fn print(program: &Program) -> String {
    // Reserved memory that is not used is not mapped.
    let room = program.text().source().len() * 2;
    let mut printer = Printer::new(program, room, None);
    printer.print_module();
    printer.out
}

/// Prints `program` as MLIR text in pieces of about a mebibyte. Each piece is passed to `take`,
/// except the last, which is returned, so that a large text is never in memory as a whole.
pub fn print_in_pieces(program: &Program, take: &mut dyn FnMut(&str)) -> String {
    let mut printer = Printer::new(program, PIECE * 2, Some(take));
    printer.print_module();
    std::mem::take(&mut printer.out)
}

impl Printer<'_> {
    fn print_module(&mut self) {
        let module = self.program.module_op();
        let span = self.program.printing().op(module).span;
        let end = self.program.text().source().len() as u32;
        let is_implicit = self
            .program
            .op_regions(module)
            .next()
            .is_some_and(|region| self.program.printing().region_span(region).is_empty());
        if is_implicit {
            self.print_definitions(|text| !text.starts_with("{-#"));
            // If a pass gave attributes to a module that is implicit in the text, it needs a
            // header.
            let attrs = self.dict(self.program.op_attrs(module), &[]);
            if !attrs.is_empty() {
                self.write(&format!("module attributes {attrs} {{\n"));
            }
            let block = self.program.module_block();
            self.tasks.push(Task::Ops(self.program.first_op(block)));
            self.run();
            self.copy_tail(self.program.last_op(block), 0, end);
            if !attrs.is_empty() {
                self.write("\n}\n");
            }
            self.print_definitions(|text| text.starts_with("{-#"));
        } else {
            self.copy(Span::new(0, span.start));
            self.print_op(module);
            self.run();
            self.copy(Span::new(span.end, end));
        }
        self.flush();
    }
    /// Prints the definitions, aliases or resources, for which `pick` holds.
    fn print_definitions(&mut self, pick: impl Fn(&str) -> bool) {
        for &definition in self.program.printing().definitions() {
            let text = self.program.text().get(definition);
            if pick(text) {
                self.flush();
                if !self.out.is_empty() && !self.out.ends_with('\n') {
                    self.out.push('\n');
                }
                // The text around the definition may have left empty lines.
                while self.out.ends_with("\n\n") {
                    self.out.pop();
                }
                self.out.push_str(text);
            }
        }
    }
    /// Runs all tasks; nested regions are tasks, so that nesting takes no stack.
    fn run(&mut self) {
        while let Some(task) = self.tasks.pop() {
            match task {
                Task::Copy(span) => self.copy(span),
                Task::Text(text) => self.write(&text),
                Task::Region(region, label) => self.print_region(region, label),
                Task::Ops(op) => {
                    let mut next = op;
                    // Ops without regions need no stack.
                    while let Some(op) = next.get() {
                        next = self.program.next_op(op);
                        let tasks = self.tasks.len();
                        if self.program.num_regions(op) > 0 {
                            self.tasks.push(Task::Ops(next));
                            next = OpId::NONE;
                        }
                        self.print_op(op);
                        debug_assert!(next.is_none() || self.tasks.len() == tasks);
                    }
                }
                Task::Blocks(block) => self.print_block(block),
                Task::EndRegion(region) => self.end_region(region),
            }
        }
    }
    fn print_region(&mut self, region: RegionId, label: Label) {
        let program = self.program;
        let (op, span) = (program.region_op(region), program.printing().region_span(region));
        if span.is_empty() {
            self.write("{");
        } else {
            self.copy(Span::new(span.start, span.start + 1));
        }
        if program.kind(op) == OpKind::Func {
            self.names.enter_function(program, op);
        }
        self.depth += 1;
        self.tasks.push(Task::EndRegion(region));
        let Some(first) = program.region_entry(region).get() else { return };
        let header = program.printing().block_header(first);
        let has_text = label == Label::AsInText && !header.is_empty();
        if label == Label::Shown || has_text {
            self.tasks.push(Task::Blocks(first));
        } else {
            self.push_rest(first);
        }
    }
    fn print_block(&mut self, block: BlockId) {
        let Some(block) = block.get() else { return };
        self.print_label(block);
        self.push_rest(block);
    }
    /// Pushes tasks for the ops of `block` and for the blocks after it.
    fn push_rest(&mut self, block: BlockId) {
        self.tasks.push(Task::Blocks(self.program.next_block(block)));
        self.tasks.push(Task::Ops(self.program.first_op(block)));
    }
    fn end_region(&mut self, region: RegionId) {
        self.depth -= 1;
        let span = self.program.printing().region_span(region);
        let last = self.program.region_blocks(region).last();
        let last_op = last.map_or(OpId::NONE, |block| self.program.last_op(block));
        if span.is_empty() {
            self.new_line();
            self.write("}");
        } else {
            self.copy_tail(last_op, span.start + 1, span.end - 1);
            self.copy(Span::new(span.end - 1, span.end));
        }
    }
    /// Appends the text from the last op of a region, or from its start, to its end, if that is
    /// only white space and comments; else starts a new line.
    fn copy_tail(&mut self, last: OpId, start: u32, end: u32) {
        let start = last.get().map_or(start, |op| self.program.printing().op(op).span.end);
        let text = self.program.text().source();
        let mut cursor = super::cursor::Cursor::new(text, start as usize);
        if start <= end && (last.is_none() || start > 0) {
            cursor.skip_space();
            if cursor.pos == end as usize {
                self.copy(Span::new(start, end));
                return;
            }
        }
        self.new_line();
    }
    /// Prints an op, or pushes tasks if it has regions.
    fn print_op(&mut self, op: OpId) {
        let (kind, span) = (self.program.kind(op), self.program.printing().op(op).span);
        if self.program.num_regions(op) == 0
            && self.flags(op).is_clean()
            && !self.names.has_renamed()
        {
            if matches!(kind, OpKind::Call | OpKind::FuncReturn) && self.has_lost_prefix(op) {
                self.print_fields(op);
                return;
            }
            self.before_op(span);
            self.copy(span);
            return;
        }
        if self.is_from_fields(op) {
            self.print_fields(op);
            return;
        }
        let mut edits = std::mem::take(&mut self.edits);
        match self.collect_edits(op, &mut edits) {
            Some(()) => {
                self.before_op(span);
                self.splice(op, span, &mut edits);
            }
            None if kind == OpKind::Func => self.print_fields(op),
            None => self.print_generic(op),
        }
        edits.clear();
        self.edits = edits;
    }
    /// Separates two ops whose texts were not adjacent.
    fn before_op(&mut self, span: Span) {
        if self.copied.end != span.start
            && !(self.out.is_empty() && self.copied.is_empty())
            && !self.program.text().get(span).starts_with([' ', '\n', '\t', '\r'])
        {
            self.new_line();
        }
    }
    /// Whether the name of `op` without dialect would be parsed as another op here.
    fn needs_prefix(&self, op: OpId) -> bool {
        let parent = self.program.parent_op(op);
        parent.is_some_and(|parent| {
            self.program.kind(parent) != OpKind::Func || self.has_generic_text(parent)
        })
    }
    /// Whether the text of `op` has a name without dialect that would be parsed as another op here.
    fn has_lost_prefix(&self, op: OpId) -> bool {
        self.needs_prefix(op) && self.text_at(self.name_start(op)).starts_with(['c', 'r'])
    }
    /// The flags of `op`, including the flag for a rule set by `leave_op_rules`, which is stored
    /// elsewhere.
    #[inline]
    fn flags(&self, op: OpId) -> OpFlags {
        let mut flags = self.program.printing().flags(op);
        if self.program.op_rules().is_left(op) {
            flags.set(OpFlags::ATTRS_CHANGED);
        }
        flags
    }
    /// Whether an op has to be printed from its fields.
    fn is_from_fields(&self, op: OpId) -> bool {
        let made = self.program.printing().flags(op).has(OpFlags::SYNTHESISED);
        if made || self.program.printing().op(op).span.is_empty() {
            return true;
        }
        let is_touched = !self.flags(op).is_clean() || self.names.is_affected(self.program, op);
        match self.program.kind(op) {
            OpKind::Call | OpKind::FuncReturn => is_touched || self.has_lost_prefix(op),
            OpKind::Func => is_touched && self.is_generic(op),
            OpKind::SdyConstant => false,
            OpKind::Fragment => is_touched,
            _ => is_touched && self.program.op_name(op).starts_with("sdy."),
        }
    }
    fn has_generic_text(&self, op: OpId) -> bool {
        !self.program.printing().op(op).span.is_empty() && self.is_generic(op)
    }
    /// Whether `op`'s text is in generic form.
    fn is_generic(&self, op: OpId) -> bool {
        self.text_at(self.name_start(op)).starts_with('"')
    }
}
