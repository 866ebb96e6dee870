//! Splices edits into the text of an op.

use super::printer::{Edit, Label, Printer, Task};
use crate::error::Span;
use crate::index::OpId;

impl Printer<'_> {
    /// Prints the text at `span`, which belongs to `op`, with `edits` in any order.
    pub(super) fn splice(&mut self, op: OpId, span: Span, edits: &mut Vec<Edit>) {
        if edits.len() > 1 {
            edits.sort_by_key(|edit| (edit.span().start, edit.span().end));
            // Values of two regions may share one name in the text.
            edits.dedup_by(|a, b| a.span() == b.span() && !a.span().is_empty());
        }
        if edits.iter().any(|edit| matches!(edit, Edit::Region(..))) {
            return self.splice_regions(op, span, edits);
        }
        let mut at = span.start;
        for edit in edits.iter() {
            let place = edit.span();
            if place.start < at {
                continue;
            }
            self.copy(Span::new(at, place.start));
            self.flush();
            let mut out = std::mem::take(&mut self.out);
            self.write_edit(op, edit, &mut out);
            self.out = out;
            at = place.end;
        }
        self.copy(Span::new(at, span.end));
    }
    /// Pushes tasks that print the text at `span` with `edits`, which are sorted and include
    /// regions.
    fn splice_regions(&mut self, op: OpId, span: Span, edits: &[Edit]) {
        let mut tasks = Vec::new();
        let mut at = span.start;
        for edit in edits {
            let place = edit.span();
            if place.start < at {
                continue;
            }
            tasks.push(Task::Copy(Span::new(at, place.start)));
            tasks.push(if let Edit::Region(_, region) = edit {
                Task::Region(*region, Label::AsInText)
            } else {
                let mut text = String::new();
                self.write_edit(op, edit, &mut text);
                Task::Text(text)
            });
            at = place.end;
        }
        tasks.push(Task::Copy(Span::new(at, span.end)));
        self.tasks.extend(tasks.into_iter().rev());
    }
    /// Appends the text of `edit` of `op`.
    fn write_edit(&mut self, op: OpId, edit: &Edit, out: &mut String) {
        match edit {
            Edit::Text(_, text) => out.push_str(text),
            Edit::Operand(_, value) => self.names.append(self.program, *value, out),
            Edit::Results(_) => out.push_str(&self.result_list(op)),
            Edit::Dict(span) => {
                let start = out.len();
                if span.is_empty() {
                    out.push(' ');
                }
                if !self.write_op_dict(op, out) {
                    out.truncate(start);
                }
            }
            Edit::Region(..) => {}
        }
    }
}
