//! Source locations: where in the user's program an op or value comes from.
//!
//! `loc("a.py":3:4)` is a place; `loc("name"(...))`, `loc(callsite(a at b))` and `loc(fused[a, b])` wrap
//! others; `#loc3` stands for another. The place in the user's own file is the innermost one: the
//! callee of a call site, the first part of a fused location that has one.

use crate::index::{OpId, ValueId};
use crate::ir::{Program, ValueDef};
use crate::mlir::cursor::Cursor;
use rustc_hash::FxHashSet;

/// What a location says of where something comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A place in the user's program, `file.py:12:3`.
    Place(String),
    /// No more than a name.
    Name(String),
}

impl Origin {
    /// The text of either.
    pub fn into_text(self) -> String {
        match self {
            Self::Place(text) | Self::Name(text) => text,
        }
    }
}

impl Program {
    /// Where `op` comes from: `file.py:12:3`, or a name where the location is no more than that.
    pub fn op_location(&self, op: OpId) -> Option<String> {
        self.origin(self.text().get(self.loc(op))).map(Origin::into_text)
    }
    /// The innermost location of `value`.
    pub fn value_location(&self, value: ValueId) -> Option<String> {
        match self.def(value) {
            ValueDef::Result(op) => self.op_location(op),
            ValueDef::Arg(_) => {
                let span = self.arg_location_text(value)?;
                self.origin(self.text().get(span)).map(Origin::into_text)
            }
        }
    }
    /// The innermost place of the location `text`, or, without one, the first name in it; linear in the text of
    /// what the location consists of, however deep that is nested.
    pub fn origin(&self, text: &str) -> Option<Origin> {
        let mut name = None;
        let mut seen = FxHashSet::default();
        let mut open = vec![Cursor::new(text, 0)];
        while let Some(mut cursor) = open.pop() {
            while let Some(part) = next_part(&mut cursor) {
                match part {
                    Part::Place(place) => return Some(Origin::Place(place)),
                    Part::Name(found) => name = name.or(Some(found)),
                    Part::Alias(alias) => {
                        let body = self.strings().find(alias).and_then(|id| self.alias(id));
                        // What had no place the first time has none the second time.
                        if let Some(body) = body.filter(|_| seen.insert(alias)) {
                            open.push(cursor.clone());
                            cursor = Cursor::new(self.text().get(body), 0);
                        }
                    }
                }
            }
        }
        name.map(|name| Origin::Name(name.to_owned()))
    }
}

/// What a location consists of.
enum Part<'t> {
    Place(String),
    Name(&'t str),
    Alias(&'t str),
}

/// The next part of the location that `cursor` is in; of call sites those of the callee only.
fn next_part<'t>(cursor: &mut Cursor<'t>) -> Option<Part<'t>> {
    while !cursor.at_end() {
        let start = cursor.pos;
        match cursor.peek() {
            b'"' => {
                let quoted = cursor.string().ok()?;
                if cursor.eat(b':') {
                    return Some(Part::Place(format!("{quoted}:{}", line_and_column(cursor)?)));
                }
                if !quoted.is_empty() {
                    return Some(Part::Name(quoted));
                }
            }
            b'#' => {
                cursor.pos += 1;
                cursor.ssa_name();
                return Some(Part::Alias(cursor.since(start)));
            }
            // What is said about fused locations.
            b'<' => cursor.skip_balanced().ok()?,
            _ if cursor.name() == "at" => skip_caller(cursor)?,
            _ => cursor.pos = cursor.pos.max(start + 1),
        }
    }
    None
}

/// `line`, or `line:column`, as it is written but for space.
fn line_and_column(cursor: &mut Cursor<'_>) -> Option<String> {
    let number = |cursor: &mut Cursor<'_>| {
        cursor.skip_space();
        let start = cursor.pos;
        cursor.unsigned().map(|_| cursor.since(start).to_owned())
    };
    let line = number(cursor)?;
    if cursor.eat(b':') {
        return Some(format!("{line}:{}", number(cursor)?));
    }
    Some(line)
}

/// Goes to the `)` of the call site in whose caller `cursor` is, or to the end.
fn skip_caller(cursor: &mut Cursor<'_>) -> Option<()> {
    while !cursor.at_end() && cursor.peek() != b')' {
        match cursor.peek() {
            b'"' => drop(cursor.string().ok()?),
            b'(' | b'[' | b'<' | b'{' => cursor.skip_balanced().ok()?,
            _ => cursor.pos += 1,
        }
    }
    Some(())
}
