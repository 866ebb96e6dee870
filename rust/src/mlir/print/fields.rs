//! Prints ops from their fields: those without text, and those whose text cannot be edited.

use super::attrs::append_symbol;
use super::printer::{Label, Printer, Task};
use crate::index::OpId;
use crate::ir::{OpKind, Payload};

impl Printer<'_> {
    /// Prints `op` from its fields in its dialect's syntax, if passes make such ops.
    pub(super) fn print_fields(&mut self, op: OpId) {
        self.new_line();
        let results = self.result_list(op);
        self.write(&results);
        let program = self.program;
        match (program.kind(op), program.payload(op)) {
            (OpKind::Func, Some(Payload::Function(id))) => self.print_function(op, *id),
            (OpKind::Call, Some(Payload::Call(callee))) => {
                let mut head =
                    if self.needs_prefix(op) { "func.call " } else { "call " }.to_owned();
                append_symbol(program.str(*callee), &mut head);
                let operands = self.operand_list(op);
                let dict = spaced(self.dict(program.op_attrs(op), &self.sharding_attrs(op)));
                let types = self.function_type(op);
                let loc = self.loc_suffix(op);
                self.write(&format!("{head}({operands}){dict} : {types}{loc}"));
            }
            (
                OpKind::FuncReturn
                | OpKind::StablehloReturn
                | OpKind::SdyReturn
                | OpKind::MpmdReturn,
                _,
            ) => self.print_return(op),
            (OpKind::Module, _) => self.print_generic_here(op),
            (OpKind::Fragment, _) if self.print_sdy(op) => {}
            _ if program.op_name(op).starts_with("sdy.") && self.print_sdy(op) => {}
            _ => self.print_generic_here(op),
        }
    }
    fn print_return(&mut self, op: OpId) {
        let name = match self.program.kind(op) {
            OpKind::FuncReturn if !self.needs_prefix(op) => "return",
            _ => self.program.op_name(op),
        };
        let dict = spaced(self.dict(self.program.op_attrs(op), &self.sharding_attrs(op)));
        let operands = self.operand_list(op);
        let types = self.operand_types(op).join(", ");
        let loc = self.loc_suffix(op);
        let (before, after) = if self.program.kind(op) == OpKind::StablehloReturn {
            (String::new(), dict)
        } else {
            (dict, String::new())
        };
        let text = if operands.is_empty() {
            format!("{name}{before}{after}{loc}")
        } else {
            format!("{name}{before} {operands}{after} : {types}{loc}")
        };
        self.write(&text);
    }
    /// Prints `op`, whose text cannot be edited, in generic form.
    pub(super) fn print_generic(&mut self, op: OpId) {
        self.new_line();
        let results = self.result_list(op);
        self.write(&results);
        self.print_generic_here(op);
    }
    fn print_generic_here(&mut self, op: OpId) {
        let program = self.program;
        let name = program.op_name(op);
        let operands = self.operand_list(op);
        let dict = spaced(self.dict(program.op_attrs(op), &self.sharding_attrs(op)));
        let (types, loc) = (self.function_type(op), self.loc_suffix(op));
        let tail = format!("{dict} : {types}{loc}");
        self.write(&format!("\"{name}\"({operands})"));
        let regions: Vec<_> = program.op_regions(op).collect();
        if regions.is_empty() {
            return self.write(&tail);
        }
        self.write(" (");
        let mut tasks = Vec::new();
        for (index, &region) in regions.iter().enumerate() {
            if index > 0 {
                tasks.push(Task::Text(", ".into()));
            }
            tasks.push(Task::Region(region, Label::Shown));
        }
        tasks.push(Task::Text(format!("){tail}")));
        self.tasks.extend(tasks.into_iter().rev());
    }
    /// `%a, %b#1`
    pub(super) fn operand_list(&self, op: OpId) -> String {
        let mut out = String::new();
        for (index, value) in self.program.operands(op).enumerate() {
            if index > 0 {
                out.push_str(", ");
            }
            self.names.append(self.program, value, &mut out);
        }
        out
    }
    pub(super) fn operand_types(&self, op: OpId) -> Vec<&str> {
        let operands = self.program.operands(op);
        operands.map(|value| self.type_text(self.program.type_of(value))).collect()
    }
    /// `(types) -> types`
    pub(super) fn function_type(&self, op: OpId) -> String {
        let inputs = self.operand_types(op).join(", ");
        let results: Vec<&str> = self
            .program
            .op_results(op)
            .map(|value| self.type_text(self.program.type_of(value)))
            .collect();
        match results[..] {
            [one] if !one.starts_with('(') => format!("({inputs}) -> {one}"),
            _ => format!("({inputs}) -> ({})", results.join(", ")),
        }
    }
}

/// `text` with a space before it, unless it is empty.
pub(super) fn spaced(text: String) -> String {
    if text.is_empty() {
        text
    } else {
        format!(" {text}")
    }
}
