//! The names of values: those of the text, or names made from their ids.

use crate::index::{Id, ValueId};
use crate::ir::{OpKind, Program, ValueDef};
use crate::mlir::cursor::Cursor;

/// The SSA name that starts at `offset`, with its `%`; empty if there is none.
pub(in crate::mlir) fn ssa_name_at(text: &str, offset: u32) -> &str {
    let start = offset as usize;
    let mut cursor = Cursor::new(text, start);
    if cursor.peek() != b'%' {
        return "";
    }
    cursor.pos += 1;
    cursor.ssa_name();
    cursor.since(start)
}

/// The index of `value` among the results that share its name; `None` if it has its own name.
pub(in crate::mlir) fn group_number(program: &Program, value: ValueId) -> Option<usize> {
    let ValueDef::Result(op) = program.def(value) else { return None };
    if program.num_results(op) == 1 {
        return None;
    }
    let name = program.printing().value_name(value);
    let mut cursor = Cursor::new(program.text().source(), name as usize + 1);
    cursor.ssa_name();
    if !cursor.eat(b':') {
        return None;
    }
    // The group starts after the last result with another name.
    let mut first = value.index();
    let start = program.result(op, 0).index();
    if program.printing().value_name(program.result(op, 0)) == name {
        first = start;
    } else {
        while first > start && program.printing().value_name(ValueId::from_index(first - 1)) == name
        {
            first -= 1;
        }
    }
    Some(value.index() - first)
}

impl Program {
    /// The name of `value`: `%12`, `%3#1`, `%arg0`. The printer uses it too, unless it clashes with
    /// the name of another visible value, after a pass has moved ops.
    pub fn value_name(&self, value: ValueId) -> String {
        let mut out = String::new();
        let offset = self.printing().value_name(value);
        if offset == u32::MAX {
            append_fresh(self, value, &mut out);
            return out;
        }
        out.push_str(ssa_name_at(self.text().source(), offset));
        if let Some(number) = group_number(self, value) {
            out.push('#');
            out.push_str(&number.to_string());
        }
        out
    }
}

/// Appends the name made from the id of `value`.
pub(in crate::mlir) fn append_fresh(program: &Program, value: ValueId, out: &mut String) {
    let value = name_giver(program, value);
    let (first, number) = match program.def(value) {
        ValueDef::Result(op) if program.num_results(op) > 1 => {
            (program.result(op, 0), Some(program.value_index(value)))
        }
        _ => (value, None),
    };
    out.push('%');
    out.push_str(program.printing().fresh_prefix(|| fresh_prefix(program.text().source())));
    out.push_str(&first.index().to_string());
    if let Some(number) = number {
        out.push('#');
        out.push_str(&number.to_string());
    }
}

/// The value that has the name of `value`: arguments of a loop's body share the names of those of
/// its condition.
pub(in crate::mlir) fn name_giver(program: &Program, value: ValueId) -> ValueId {
    let ValueDef::Arg(block) = program.def(value) else { return value };
    let op = program.block_parent_op(block);
    if program.kind(op) != OpKind::While {
        return value;
    }
    let condition = program.op_regions(op).next().map(|region| program.region_entry(region));
    let index = program.value_index(value);
    condition.and_then(|block| program.block_args(block.get()?).nth(index)).unwrap_or(value)
}

/// A prefix for new names that no name in `source` starts with.
fn fresh_prefix(source: &str) -> String {
    let mut prefix = "shc".to_owned();
    while memchr::memmem::find(source.as_bytes(), format!("%{prefix}").as_bytes()).is_some() {
        prefix.push('_');
    }
    prefix
}
