//! Locations of values; those of block arguments are parsed from the text on demand.

use crate::error::Span;
use crate::index::ValueId;
use crate::ir::{AttrRange, InsertPoint, Program, ValueDef};
use crate::mlir::cursor::Cursor;
use crate::mlir::escapes::unescaped;
use crate::mlir::grammar::skip_type;

impl Program {
    /// The location of `value`: that of its op, or its own if it is a block argument.
    pub fn value_loc(&self, value: ValueId) -> Span {
        match self.def(value) {
            ValueDef::Result(op) => self.loc(op),
            ValueDef::Arg(_) => self.arg_location_text(value).unwrap_or(Span::EMPTY),
        }
    }
    /// The insertion point right after the definition of `value`, with its location.
    pub fn after_value(&self, value: ValueId) -> InsertPoint {
        InsertPoint { place: self.place_after_value(value), loc: self.value_loc(value) }
    }
    /// The pytree path of a function's result in the user's program, from its attributes `attrs`.
    pub fn result_label(&self, attrs: AttrRange) -> Option<String> {
        let mut attrs = self.attr_list(attrs).iter();
        let info = attrs.find(|attr| self.str(attr.name) == "jax.result_info")?;
        let text = self.text().get(info.value);
        let label = text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(text);
        (!label.is_empty()).then(|| unescaped(label).into_owned())
    }
    /// The contents of `loc(...)` of `arg`, a block argument; `None` if it has no location.
    pub(in crate::mlir) fn arg_location_text(&self, arg: ValueId) -> Option<Span> {
        if !self.printing().has_name(arg) || !self.printing().has_locations() {
            return None;
        }
        after_argument(self.text().source(), self.printing().value_name(arg))
    }
}

/// The span within `loc(...)` of the argument whose name starts at `offset`.
fn after_argument(text: &str, offset: u32) -> Option<Span> {
    let mut cursor = Cursor::new(text, offset as usize + 1);
    cursor.ssa_name();
    if !cursor.eat(b':') {
        return None;
    }
    skip_type(&mut cursor).ok()?;
    if cursor.next_byte() == b'{' {
        cursor.skip_balanced().ok()?;
    }
    if !cursor.eat_keyword("loc") || cursor.next_byte() != b'(' {
        return None;
    }
    let start = cursor.pos as u32 + 1;
    cursor.skip_balanced().ok()?;
    Some(Span::new(start, cursor.pos as u32 - 1))
}
