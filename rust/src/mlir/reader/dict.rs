//! Attribute dictionaries.

use super::parser::{Parser, PendingOp};
use crate::error::{Result, Span};
use crate::index::StrId;
use crate::ir::Attr;
use crate::mlir::cursor::syntax;
use crate::mlir::meaning::Target;
use rustc_hash::FxHashSet;

/// The attribute with the shardings of an op's results.
const SHARDING: &str = "sdy.sharding";
/// The attribute with the rule of an op.
const RULE: &str = "sdy.sharding_rule";

/// A dictionary; its other attributes are on the parser's stack.
#[derive(Clone, Copy, Default)]
pub(super) struct Dict {
    /// Its text with braces.
    pub span: Span,
    /// `sdy.sharding`
    pub sharding: Option<Span>,
    /// `sdy.sharding_rule`
    pub rule: Option<Span>,
}

impl Parser<'_> {
    /// Reads `{name = value, name, ...}` onto the stack of attributes.
    pub(super) fn parse_dict(&mut self) -> Result<Dict> {
        self.cursor.skip_space();
        let start = self.cursor.pos;
        let base = self.parts.attrs.len();
        let mut seen: FxHashSet<StrId> = FxHashSet::default();
        let mut dict = Dict::default();
        self.cursor.expect_for(b'{', "in attribute dictionary")?;
        if self.cursor.eat(b'}') {
            dict.span = self.cursor.span_since(start);
            return Ok(dict);
        }
        loop {
            self.cursor.skip_space();
            let at = self.cursor.pos;
            let name =
                if self.cursor.peek() == b'"' { self.cursor.string()? } else { self.cursor.name() };
            let name_span = self.cursor.here_from(at);
            if name.is_empty() {
                return Err(self.cursor.expected("attribute name"));
            }
            let end = self.cursor.pos as u32;
            let value = if self.cursor.eat(b'=') {
                self.parse_value_of(name)?
            } else {
                self.cursor.pos = end as usize;
                Span::new(end, end)
            };
            let known = match name {
                SHARDING => dict.sharding.replace(value).is_some(),
                RULE => dict.rule.replace(value).is_some(),
                _ => {
                    let name = self.program.intern(name);
                    self.parts.attrs.push(Attr { name, value });
                    self.is_repeated(name, base, &mut seen)
                }
            };
            if known {
                let message = format!("duplicate key '{name}' in dictionary attribute");
                return Err(syntax(name_span, message).into());
            }
            if !self.cursor.eat(b',') {
                if !self.cursor.eat(b'}') {
                    return Err(self.cursor.expected("'}' in attribute dictionary"));
                }
                dict.span = self.cursor.span_since(start);
                return Ok(dict);
            }
        }
    }
    /// Whether the last attribute has the same name as another one above `base`.
    fn is_repeated(&self, name: StrId, base: usize, seen: &mut FxHashSet<StrId>) -> bool {
        let others = &self.parts.attrs[base..self.parts.attrs.len() - 1];
        if others.len() < 16 {
            return others.iter().any(|attr| attr.name == name);
        }
        if seen.is_empty() {
            seen.extend(others.iter().map(|attr| attr.name));
        }
        !seen.insert(name)
    }
    /// Reads the value of the attribute `name` in a dictionary.
    fn parse_value_of(&mut self, name: &str) -> Result<Span> {
        if matches!(name, SHARDING | RULE) {
            return self.parse_value();
        }
        self.cursor.skip_space();
        let start = self.cursor.pos;
        self.grammar().reading_shardy().attribute()?;
        Ok(self.cursor.span_since(start))
    }
    /// Reads the value of an attribute in a dictionary; values of Shardy's attributes are parsed
    /// later.
    pub(super) fn parse_value(&mut self) -> Result<Span> {
        self.cursor.skip_space();
        let start = self.cursor.pos;
        self.grammar().attribute()?;
        Ok(self.cursor.span_since(start))
    }
    /// Reads the dictionary of `pending`'s op, which is next.
    pub(super) fn parse_op_dict(&mut self, pending: &mut PendingOp) -> Result<()> {
        let dict = self.parse_dict()?;
        pending.dict = dict.span;
        self.place_dict(pending, &dict);
        self.check_strict(pending)
    }
    /// Records the sharding annotations in the dictionary of `pending`'s op. If the op has
    /// shardings as properties, those in the dictionary are only verified, and otherwise treated as
    /// any attribute.
    pub(super) fn place_dict(&mut self, pending: &mut PendingOp, dict: &Dict) {
        pending.annotations.rule = pending.annotations.rule.or(dict.rule);
        let Some(value) = dict.sharding else { return };
        if pending.name.kind.has_own_sharding() {
            let name = self.program.intern(SHARDING);
            self.parts.attrs.push(Attr { name, value });
            self.notes.note_sharding(Target::Unread(pending.op), value);
        } else {
            pending.annotations.sharding = pending.annotations.sharding.or(dict.sharding);
        }
    }
    /// Reads the dictionary of `pending`'s op if one is next; else records where it would be.
    pub(super) fn parse_optional_op_dict(&mut self, pending: &mut PendingOp) -> Result<()> {
        let end = self.cursor.pos;
        if self.cursor.next_byte() == b'{' {
            return self.parse_op_dict(pending);
        }
        self.cursor.pos = end;
        pending.dict = Span::new(end as u32, end as u32);
        Ok(())
    }
    /// Reads `attributes {...}` of `pending`'s op if that is next; else records where it would be.
    pub(super) fn parse_optional_attributes(&mut self, pending: &mut PendingOp) -> Result<()> {
        let end = self.cursor.pos;
        if self.cursor.eat_keyword("attributes") {
            return self.parse_op_dict(pending);
        }
        self.cursor.pos = end;
        pending.dict = Span::new(end as u32, end as u32);
        Ok(())
    }
}
