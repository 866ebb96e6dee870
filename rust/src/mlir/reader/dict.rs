//! Attribute dictionaries, and stepping over attributes.

use crate::error::{Result, Span};
use crate::index::StrId;
use crate::ir::Attr;
use crate::mlir::cursor::syntax;
use crate::mlir::grammar::Grammar;
use crate::mlir::meaning::target::Target;
use crate::mlir::reader::parser::{Building, Parser};
use rustc_hash::FxHashSet;

/// A dictionary; its other attributes are on the parser's stack.
#[derive(Clone, Copy, Default)]
pub(in crate::mlir) struct Dict {
    /// Its text with braces.
    pub span: Span,
    /// `sdy.sharding`
    pub sharding: Option<Span>,
    /// `sdy.sharding_rule`
    pub rule: Option<Span>,
}

impl<'a> Parser<'a> {
    /// Reads `{name = value, name, ...}` onto the stack of attributes.
    pub(in crate::mlir) fn parse_dict(&mut self) -> Result<Dict> {
        self.cursor.skip_space();
        let start = self.cursor.pos;
        let base = self.attrs.len();
        let mut seen: FxHashSet<StrId> = FxHashSet::default();
        let mut dict = Dict::default();
        self.cursor.expect(b'{')?;
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
            let name = self.program.strings.intern(name);
            let end = self.cursor.pos as u32;
            let value = if self.cursor.eat(b'=') {
                self.parse_value()?
            } else {
                self.cursor.pos = end as usize;
                Span::new(end, end)
            };
            let known = match (name == self.sharding_names[0], name == self.sharding_names[1]) {
                (true, _) => dict.sharding.replace(value).is_some(),
                (_, true) => dict.rule.replace(value).is_some(),
                _ => {
                    self.attrs.push(Attr { name, value });
                    self.is_repeated(name, base, &mut seen)
                }
            };
            if known {
                let name = self.program.strings.get(name);
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
    /// Whether the last attribute has the name of another one above `base`.
    fn is_repeated(&self, name: StrId, base: usize, seen: &mut FxHashSet<StrId>) -> bool {
        let others = &self.attrs[base..self.attrs.len() - 1];
        if others.len() < 16 {
            return others.iter().any(|attr| attr.name == name);
        }
        if seen.is_empty() {
            seen.extend(others.iter().map(|attr| attr.name));
        }
        !seen.insert(name)
    }
    /// Reads the value of an attribute in a dictionary.
    pub(in crate::mlir) fn parse_value(&mut self) -> Result<Span> {
        self.cursor.skip_space();
        let start = self.cursor.pos;
        self.grammar().attribute()?;
        Ok(self.cursor.span_since(start))
    }
    /// For stepping over something that has a form but no meaning here.
    pub(in crate::mlir) fn grammar(&mut self) -> Grammar<'_, 'a> {
        Grammar::new(&mut self.cursor, Some(&self.program))
    }
    /// Reads the dictionary of `building`'s op, which is next.
    pub(in crate::mlir) fn parse_op_dict(&mut self, building: &mut Building) -> Result<()> {
        let dict = self.parse_dict()?;
        building.dict = dict.span;
        self.place_dict(building, &dict);
        Ok(())
    }
    /// Gives `building`'s op what its dictionary says of shardings. To an op that has shardings of its
    /// own those in the dictionary are an attribute like any other, which only has to make sense.
    pub(in crate::mlir) fn place_dict(&mut self, building: &mut Building, dict: &Dict) {
        building.rule = building.rule.or(dict.rule);
        let Some(value) = dict.sharding else { return };
        if building.name.kind.has_own_sharding() {
            self.attrs.push(Attr { name: self.sharding_names[0], value });
            self.targets.push((Target::Unread(building.op), value));
        } else {
            building.sharding = building.sharding.or(dict.sharding);
        }
    }
    /// Reads the dictionary of `building`'s op if one is next; else notes where it would stand.
    pub(in crate::mlir) fn parse_optional_op_dict(
        &mut self,
        building: &mut Building,
    ) -> Result<()> {
        let end = self.cursor.pos;
        if self.cursor.next_byte() == b'{' {
            return self.parse_op_dict(building);
        }
        self.cursor.pos = end;
        building.dict = Span::new(end as u32, end as u32);
        Ok(())
    }
    /// The same for `attributes {...}`.
    pub(in crate::mlir) fn parse_optional_attributes(
        &mut self,
        building: &mut Building,
    ) -> Result<()> {
        let end = self.cursor.pos;
        if self.cursor.eat_keyword("attributes") {
            return self.parse_op_dict(building);
        }
        self.cursor.pos = end;
        building.dict = Span::new(end as u32, end as u32);
        Ok(())
    }
}
