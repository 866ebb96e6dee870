//! The op names in the text, with their kinds and formats.

use super::format_table::{format_of, Part};
use crate::index::StrId;
use crate::ir::{OpInfo, OpKind, OpTraits, Program, Syntax};
use rustc_hash::FxHashMap;

/// An op name of the text, with its kind and format.
#[derive(Clone, Copy)]
pub(super) struct OpName {
    pub id: StrId,
    pub kind: OpKind,
    pub syntax: Syntax,
    pub traits: OpTraits,
    /// The format before its dictionary, if it has a custom syntax.
    pub format: &'static [Part],
}

/// The names that have appeared so far.
#[derive(Default)]
pub(super) struct OpNames<'a> {
    known: FxHashMap<&'a str, OpName>,
}

impl<'a> OpNames<'a> {
    /// The entry of `name`; ops of `func` and `builtin` may omit the dialect.
    pub fn get(&mut self, program: &mut Program, name: &'a str) -> OpName {
        if let Some(&known) = self.known.get(name) {
            return known;
        }
        let full = match dialect_of_short(name) {
            Some(dialect) => format!("{dialect}.{name}"),
            None => name.to_owned(),
        };
        let info = OpInfo::by_name(&full);
        let made = OpName {
            id: program.intern(&full),
            kind: info.map_or(OpKind::Other, |info| info.kind),
            syntax: info.map_or(Syntax::Generic, |info| info.syntax),
            traits: info.map_or(OpTraits::NONE, |info| info.traits),
            format: format_of(&full, program.shardy()),
        };
        self.known.insert(name, made);
        made
    }
}

/// The dialect of the op whose name without dialect is `name`, if that may be omitted.
pub(super) fn dialect_of_short(name: &str) -> Option<&'static str> {
    match name {
        "module" | "unrealized_conversion_cast" => Some("builtin"),
        "return" | "call" | "call_indirect" | "constant" => Some("func"),
        _ => None,
    }
}
