//! Source locations: where in the user's program an op or value comes from.
//!
//! `loc("a.py":3:4)` is a place; `loc("name"(...))`, `loc(callsite(a at b))` and `loc(fused[a, b])` wrap
//! others; `#loc3` stands for another. The place in the user's own file is the innermost one: the
//! callee of a call site, the first part of a fused location that has one.

use crate::index::{OpId, ValueId};
use crate::ir::{Program, ValueDef};
use crate::mlir::cursor::Cursor;

/// How many locations are looked at for one answer; they may refer to each other in a circle.
const MAX_STEPS: usize = 200;

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
    /// The innermost place of the location `text`, or, without one, the first name in it.
    pub fn origin(&self, text: &str) -> Option<Origin> {
        let mut todo = vec![text];
        let mut name = None;
        for _ in 0..MAX_STEPS {
            let Some(text) = todo.pop() else { break };
            let text = text.trim();
            if text.starts_with('#') {
                let alias = self.strings().find(text).and_then(|id| self.alias(id));
                if let Some(body) = alias {
                    let body = self.text().get(body).trim();
                    let inner = body.strip_prefix("loc").map(str::trim_start);
                    let inner = inner.and_then(|body| body.strip_prefix('(')?.strip_suffix(')'));
                    todo.extend(inner);
                }
                continue;
            }
            if let Some(place) = location_step(text, &mut todo, &mut name) {
                return Some(Origin::Place(place));
            }
        }
        name.map(Origin::Name)
    }
}

/// Looks at one location; those inside it go to `todo`, the one to look at first last.
fn location_step<'t>(
    text: &'t str,
    todo: &mut Vec<&'t str>,
    name: &mut Option<String>,
) -> Option<String> {
    let mut cursor = Cursor::new(text, 0);
    if cursor.peek() == b'"' {
        let quoted = cursor.string().ok()?;
        if cursor.eat(b':') {
            let rest = text[cursor.pos..].replace(char::is_whitespace, "");
            let from = rest.split("to").next().unwrap_or("");
            return Some(format!("{quoted}:{from}"));
        }
        if !quoted.is_empty() && name.is_none() {
            *name = Some(quoted.to_owned());
        }
        if cursor.next_byte() == b'(' {
            let start = cursor.pos + 1;
            cursor.skip_balanced().ok()?;
            todo.push(&text[start..cursor.pos - 1]);
        }
        return None;
    }
    let word = cursor.name();
    if word == "fused" && cursor.next_byte() == b'<' {
        cursor.skip_balanced().ok()?;
    }
    let open = cursor.next_byte();
    if !matches!((word, open), ("callsite", b'(') | ("fused", b'[')) {
        return None;
    }
    let start = cursor.pos + 1;
    cursor.skip_balanced().ok()?;
    let inner = &text[start..cursor.pos - 1];
    let parts = split_locations(inner, if word == "fused" { b',' } else { b' ' });
    // Of a call site only the callee is the innermost.
    todo.extend(parts.into_iter().take(if word == "fused" { 64 } else { 1 }).rev());
    None
}

/// Splits at commas, or at the word `at` if `separator` is a space, outside of brackets and strings.
fn split_locations(text: &str, separator: u8) -> Vec<&str> {
    let mut cursor = Cursor::new(text, 0);
    let mut parts = Vec::new();
    let mut start = 0;
    while !cursor.at_end() {
        let at = cursor.pos;
        match cursor.peek() {
            b'"' if cursor.string().is_ok() => continue,
            b'(' | b'[' | b'<' | b'{' if cursor.skip_balanced().is_ok() => continue,
            b',' if separator == b',' => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            b' ' if separator == b' ' && text[at..].starts_with(" at ") => {
                parts.push(&text[start..at]);
                start = at + 4;
            }
            _ => {}
        }
        cursor.pos += 1;
    }
    parts.push(text.get(start..).unwrap_or(""));
    parts
}
