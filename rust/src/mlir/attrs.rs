//! Attribute dictionaries, and stepping over attributes.

use super::cursor::{syntax, Cursor};
use super::parser::{Building, Parser};
use crate::error::{Result, Span};
use crate::index::StrId;
use crate::ir::Attr;
use rustc_hash::FxHashSet;

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
                return Err(self.cursor.expected("the name of an attribute"));
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
                let message = format!("attribute '{name}' is given twice");
                return Err(syntax(name_span, message).into());
            }
            if !self.cursor.eat(b',') {
                self.cursor.expect(b'}')?;
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
    /// Steps over the value of an attribute in a list or dictionary.
    pub(super) fn parse_value(&mut self) -> Result<Span> {
        self.cursor.skip_space();
        let start = self.cursor.pos;
        let mut end = start;
        loop {
            match self.cursor.next_byte() {
                b',' | b'}' | b']' | b')' | b'>' => break,
                b'-' if self.cursor.byte(self.cursor.pos + 1) == b'>' => self.cursor.pos += 2,
                0 if self.cursor.at_end() => break,
                _ => self.step_over()?,
            }
            end = self.cursor.pos;
        }
        if end == start {
            return Err(self.cursor.expected("an attribute"));
        }
        Ok(Span::new(start as u32, end as u32))
    }
    /// Steps over a bracketed text, a string, or a run of other bytes.
    #[inline]
    fn step_over(&mut self) -> Result<()> {
        match self.cursor.peek() {
            b'(' | b'[' | b'{' | b'<' => self.cursor.skip_balanced(),
            b'"' => self.cursor.string().map(|_| ()),
            _ => {
                if self.cursor.ssa_type_run() == 0 {
                    self.cursor.pos += 1;
                }
                Ok(())
            }
        }
    }
    /// Steps over an attribute with its type, where nothing else ends it: an alias's value.
    pub(super) fn skip_whole_attribute(&mut self) -> Result<()> {
        self.skip_attribute()?;
        let end = self.cursor.pos;
        if self.cursor.eat(b':') {
            return super::types::skip_type(&mut self.cursor);
        }
        self.cursor.pos = end;
        Ok(())
    }
    /// Steps over an attribute without its type.
    pub(super) fn skip_attribute(&mut self) -> Result<()> {
        skip_attribute(&mut self.cursor)
    }
    /// Reads the dictionary of `building`'s op, which is next.
    pub(super) fn parse_op_dict(&mut self, building: &mut Building) -> Result<()> {
        let dict = self.parse_dict()?;
        building.dict = dict.span;
        // An op's own sharding comes before that in its dictionary.
        building.sharding = building.sharding.or(dict.sharding);
        building.rule = dict.rule;
        Ok(())
    }
    /// Reads the dictionary of `building`'s op if one is next; else notes where it would stand.
    pub(super) fn parse_optional_op_dict(&mut self, building: &mut Building) -> Result<()> {
        let end = self.cursor.pos;
        if self.cursor.next_byte() == b'{' {
            return self.parse_op_dict(building);
        }
        self.cursor.pos = end;
        building.dict = Span::new(end as u32, end as u32);
        Ok(())
    }
    /// The same for `attributes {...}`.
    pub(super) fn parse_optional_attributes(&mut self, building: &mut Building) -> Result<()> {
        let end = self.cursor.pos;
        if self.cursor.eat_keyword("attributes") {
            return self.parse_op_dict(building);
        }
        self.cursor.pos = end;
        building.dict = Span::new(end as u32, end as u32);
        Ok(())
    }
}

/// Steps over an attribute without its type.
pub(super) fn skip_attribute(cursor: &mut Cursor<'_>) -> Result<()> {
    match cursor.next_byte() {
        b'"' => cursor.string().map(|_| ()),
        b'[' | b'{' => cursor.skip_balanced(),
        b'(' | b'!' => super::types::skip_type(cursor),
        b'@' => {
            cursor.symbol()?;
            loop {
                let end = cursor.pos;
                if !cursor.eat_str("::") {
                    cursor.pos = end;
                    return Ok(());
                }
                cursor.symbol()?;
            }
        }
        byte => {
            if byte == b'#' {
                cursor.pos += 1;
            }
            let start = cursor.pos;
            if cursor.peek() == b'-' {
                cursor.pos += 1;
            }
            let named = cursor.ssa_type_run() > 0;
            if !named && byte != b'#' {
                cursor.pos = start;
                return Err(cursor.expected("an attribute"));
            }
            let is_loc = &cursor.text().as_bytes()[start..cursor.pos] == b"loc";
            let end = cursor.pos;
            if cursor.peek() == b'<' || (is_loc && cursor.next_byte() == b'(') {
                return cursor.skip_balanced();
            }
            cursor.pos = end;
            // A number in scientific notation has a sign inside.
            if cursor.peek() == b'+' {
                cursor.pos += 1;
                cursor.ssa_type_run();
            }
            Ok(())
        }
    }
}

impl Cursor<'_> {
    /// Steps over letters, digits, `_ $ . -`, but not over the `-` of `->`; how many there were.
    #[inline]
    fn ssa_type_run(&mut self) -> usize {
        let start = self.pos;
        let name = self.ssa_name();
        if name.ends_with('-') && self.peek() == b'>' {
            self.pos -= 1;
        }
        self.pos - start
    }
}
