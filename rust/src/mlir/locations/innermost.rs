//! The innermost source line of an op or value in the user's program.
//!
//! `loc("a.py":3:4)` is a line; `loc("name"(...))`, `loc(callsite(a at b))` and `loc(fused[a, b])`
//! contain others; `#loc3` is an alias of another. The innermost line is that of the callee of a
//! call site, and of the first part of a fused location that has a line. Lines in installed
//! packages, such as `flax/linear.py`, are skipped if the call stack has a line of the user's
//! program, as JAX does with its own files.

use super::installed::is_installed;
use crate::index::{OpId, ValueId};
use crate::ir::{Program, ValueDef};
use crate::mlir::cursor::Cursor;
use crate::mlir::escapes::unescaped;
use rustc_hash::FxHashSet;
use std::borrow::Cow;

/// The innermost line or name of a location.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A line of the user's program, `file.py:12:3`.
    Place(String),
    /// A name only.
    Name(String),
}

impl Origin {
    /// The text of the line or name.
    pub fn into_text(self) -> String {
        match self {
            Self::Place(text) | Self::Name(text) => text,
        }
    }
}

impl Program {
    /// The source line of `op`: `file.py:12:3`, or a name if the location has no line.
    pub fn op_location(&self, op: OpId) -> Option<String> {
        self.origin(self.text().get(self.loc(op))).map(Origin::into_text)
    }
    /// The source line of `value`, or a name if the location has no line.
    pub fn value_location(&self, value: ValueId) -> Option<String> {
        match self.def(value) {
            ValueDef::Result(op) => self.op_location(op),
            ValueDef::Arg(_) => {
                let span = self.arg_location_text(value)?;
                self.origin(self.text().get(span)).map(Origin::into_text)
            }
        }
    }
    /// The innermost line of the location `text` that is not in an installed package, else the
    /// innermost line, else the first name in it. Takes linear time in the text of the location and
    /// of the aliases in it, at any nesting depth; if the innermost line is in a package, also the
    /// time of [`Self::frames`].
    pub fn origin(&self, text: &str) -> Option<Origin> {
        let (names, place) = self.names_and_place(text);
        let Some(place) = place else {
            return names.into_iter().next().map(|name| Origin::Name(name.into_owned()));
        };
        let own = if is_installed(&place) { self.own_frame(text) } else { None };
        Some(Origin::Place(own.unwrap_or(place)))
    }
    /// The name stack of the location `text`, which ends in the name of a primitive:
    /// `jit(f)/layer/mul` for JAX's `loc("jit(f)/layer/mul"("f"("a.py":3:4)))` or
    /// `loc("mul"("jit(f)/layer"("a.py":3:4)))`. The names of functions in frames of a call stack
    /// are nested inside it and are left out. Takes the time of [`Self::origin`].
    pub fn name_stack(&self, text: &str) -> String {
        let (names, _) = self.names_and_place(text);
        let is_stack = |name: &Cow<'_, str>| name.contains(['(', '/']);
        let last = names.iter().position(is_stack).unwrap_or_default();
        let mut parts: Vec<Cow<'_, str>> = names.into_iter().take(last + 1).collect();
        parts.reverse();
        parts.join("/")
    }
    /// The innermost line of the location `text`, and the names before it, outermost first.
    fn names_and_place<'t>(&'t self, text: &'t str) -> (Vec<Cow<'t, str>>, Option<String>) {
        let mut names = Vec::new();
        let mut seen = FxHashSet::default();
        let mut open = vec![Cursor::new(text, 0)];
        while let Some(mut cursor) = open.pop() {
            while let Some(part) = next_part(&mut cursor) {
                match part {
                    Part::Place(place) => return (names, Some(place)),
                    Part::Name(found) => names.push(found),
                    Part::Alias(alias) => {
                        let body = self.strings().find(alias).and_then(|id| self.alias(id));
                        // An alias without a line need not be searched again.
                        if let Some(body) = body.filter(|_| seen.insert(alias)) {
                            open.push(cursor.clone());
                            cursor = Cursor::new(self.text().get(body), 0);
                        }
                    }
                }
            }
        }
        (names, None)
    }
}

/// A part of a location.
enum Part<'t> {
    Place(String),
    Name(Cow<'t, str>),
    Alias(&'t str),
}

/// The next part of the location that `cursor` is in; only the callee of call sites is visited.
fn next_part<'t>(cursor: &mut Cursor<'t>) -> Option<Part<'t>> {
    while !cursor.at_end() {
        let start = cursor.pos;
        match cursor.peek() {
            b'"' => {
                let quoted = unescaped(cursor.string().ok()?);
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
            // The metadata of fused locations.
            b'<' => cursor.skip_balanced().ok()?,
            _ if cursor.name() == "at" => skip_caller(cursor)?,
            _ => cursor.pos = cursor.pos.max(start + 1),
        }
    }
    None
}

/// Parses `line`, or `line:column`, without space.
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

/// Moves to the `)` of the call site in whose caller `cursor` is, or to the end.
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
