//! Prints `func.func`.

use super::attrs::append_symbol;
use super::printer::{Edit, Label, Printer, Task};
use crate::error::Span;
use crate::index::{FuncId, OpId, ShardingId};
use crate::ir::{AttrRange, OpFlags};
use std::fmt::Write as _;

impl Printer<'_> {
    /// The edits to the header of a function whose text is in custom syntax.
    pub(super) fn function_edits(&self, op: OpId, edits: &mut Vec<Edit>) -> Option<()> {
        let program = self.program;
        let id = program.function_of(op);
        if self.is_generic(op) || id.is_none() {
            return Some(());
        }
        if program.printing().flags(op).has(OpFlags::TYPES_CHANGED) {
            return None;
        }
        let header = program.printing().function(id);
        let mut name = String::new();
        append_symbol(program.str(program.func_name(id)), &mut name);
        if program.text().get(header.name) != name {
            edits.push(Edit::Text(header.name, name));
        }
        if !program.printing().flags(op).has(OpFlags::ATTRS_CHANGED) {
            return Some(());
        }
        self.visibility_edit(op, id, edits);
        let mut args =
            program.func_body(id).get().into_iter().flat_map(|body| program.block_args(body));
        if args.any(|arg| !self.names.keeps(program, arg)) {
            return None;
        }
        for (index, arg) in program.func_args(id).iter().enumerate() {
            let place = program.arg_dict(id, index);
            let text = self.value_attrs(arg.attrs, program.func_arg_sharding(id, index));
            if program.text().get(place) == text {
                continue;
            }
            if text.is_empty() {
                edits.push(Edit::Text(self.with_space_before(place), text));
                continue;
            }
            let space = if place.is_empty() { " " } else { "" };
            edits.push(Edit::Text(place, format!("{space}{text}")));
        }
        if !program.func_results(id).is_empty() && !header.results.is_empty() {
            let text = self.function_results(id);
            if program.text().get(header.results) != text {
                edits.push(Edit::Text(header.results, text));
            }
        }
        let dict = program.printing().op(op).dict;
        let text = self.function_dict(op);
        let old = program.text().get(dict);
        if dict.is_empty() && !text.is_empty() {
            edits.push(Edit::Text(dict, format!(" attributes {text}")));
        } else if !dict.is_empty() && old != text {
            edits.push(Edit::Text(dict, if text.is_empty() { "{}".into() } else { text }));
        }
        Some(())
    }
    /// `place` and the space before it, if there is one.
    fn with_space_before(&self, place: Span) -> Span {
        let before = Span::new(place.start.saturating_sub(1), place.start);
        let is_space = self.program.text().get(before) == " ";
        Span::new(if is_space { before.start } else { place.start }, place.end)
    }
    /// Inserts or removes `private` if the visibility in the text is not the current one.
    fn visibility_edit(&self, op: OpId, id: FuncId, edits: &mut Vec<Edit>) {
        let name = self.program.printing().function(id).name;
        let start = self.name_start(op);
        let head = self.program.text().get(Span::new(start, name.start));
        let Some(after) = head.find(|c: char| c.is_whitespace()) else { return };
        let place = Span::new(start + after as u32, name.start);
        if head.trim_end().ends_with("private") != self.program.is_private(id) {
            let word = self.visibility(op, id);
            edits.push(Edit::Text(place, format!(" {word}")));
        }
    }
    /// `private `, `public ` or nothing.
    fn visibility(&self, op: OpId, id: FuncId) -> &'static str {
        if self.program.is_private(id) {
            return "private ";
        }
        match self.program.attr(op, "sym_visibility") {
            Some("\"public\"") => "public ",
            Some("\"nested\"") => "nested ",
            _ => "",
        }
    }
    /// The dictionary of a function, without the attributes in its header.
    fn function_dict(&self, op: OpId) -> String {
        let program = self.program;
        let mut attrs = program.op_attrs(op).to_vec();
        attrs.retain(|attr| program.str(attr.name) != "sym_visibility");
        self.dict(&attrs, &self.sharding_attrs(op))
    }
    /// The dictionary of an argument or result.
    fn value_attrs(&self, attrs: AttrRange, sharding: ShardingId) -> String {
        let mut more = Vec::new();
        if sharding.is_some() {
            more.push(("sdy.sharding", format!("#sdy.sharding{}", self.sharding_text(sharding))));
        }
        self.dict(self.program.attr_list(attrs), &more)
    }
    /// The text after `->`.
    fn function_results(&self, id: FuncId) -> String {
        let results = self.program.func_results(id);
        let mut out = String::new();
        let mut has_dict = false;
        for (index, result) in results.iter().enumerate() {
            if index > 0 {
                out.push_str(", ");
            }
            out.push_str(self.type_text(result.ty));
            let dict = self.value_attrs(result.attrs, result.sharding);
            if !dict.is_empty() {
                out.push(' ');
                out.push_str(&dict);
                has_dict = true;
            }
        }
        let is_function = results.len() == 1 && out.starts_with('(');
        if has_dict || results.len() != 1 || is_function {
            return format!("({out})");
        }
        out
    }
    /// Prints a function from its fields.
    pub(super) fn print_function(&mut self, op: OpId, id: FuncId) {
        let program = self.program;
        let mut head = format!("func.func {}", self.visibility(op, id));
        append_symbol(program.str(program.func_name(id)), &mut head);
        head.push('(');
        for (index, port) in program.func_args(id).iter().enumerate() {
            if index > 0 {
                head.push_str(", ");
            }
            let arg =
                program.func_body(id).get().and_then(|body| program.block_args(body).nth(index));
            if let Some(arg) = arg {
                self.names.append(program, arg, &mut head);
                head.push_str(": ");
            }
            head.push_str(self.type_text(port.ty));
            let dict = self.value_attrs(port.attrs, program.func_arg_sharding(id, index));
            if !dict.is_empty() {
                head.push(' ');
                head.push_str(&dict);
            }
            if let Some(loc) = arg.and_then(|arg| program.arg_location_text(arg)) {
                let _ = write!(head, " loc({})", program.text().get(loc));
            }
        }
        head.push(')');
        if !program.func_results(id).is_empty() {
            head.push_str(" -> ");
            head.push_str(&self.function_results(id));
        }
        let dict = self.function_dict(op);
        if !dict.is_empty() {
            head.push_str(" attributes ");
            head.push_str(&dict);
        }
        self.write(&head);
        let end = self.loc_suffix(op);
        if program.func_body(id).is_none() {
            return self.write(&end);
        }
        self.write(" ");
        self.tasks.push(Task::Text(end));
        if let Some(region) = program.op_regions(op).next() {
            self.tasks.push(Task::Region(region, Label::Hidden));
        }
    }
    /// ` loc(...)`, or nothing.
    pub(super) fn loc_suffix(&self, op: OpId) -> String {
        let loc = self.program.loc(op);
        if loc.is_empty() {
            return String::new();
        }
        format!(" loc({})", self.program.text().get(loc))
    }
}
