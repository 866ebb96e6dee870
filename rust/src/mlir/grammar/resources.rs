//! Resource sections, `{-# dialect_resources: { builtin: { name: "0x..." } } #-}`: bytes of
//! attributes, stored separately.

use super::position::Grammar;
use super::registered_dialects::known_dialect;
use crate::error::{Code, Diagnostic, Result, Span};
use crate::mlir::cursor::syntax;

impl<'a> Grammar<'_, 'a> {
    /// A resource section, which is next.
    pub fn resources(&mut self) -> Result<()> {
        self.cursor.pos += "{-#".len();
        if self.cursor.eat_str("#-}") {
            return Ok(());
        }
        loop {
            self.cursor.skip_space();
            let start = self.cursor.pos;
            let key = self.cursor.name();
            let span = self.cursor.here_from(start);
            if key.is_empty() {
                return Err(self.cursor.expected("identifier key in file metadata dictionary"));
            }
            self.cursor.expect(b':')?;
            match key {
                "dialect_resources" => self.entries(Self::dialect_resources)?,
                "external_resources" => self.entries(Self::external_resources)?,
                _ => {
                    let message = format!("unknown key '{key}' in file metadata dictionary");
                    let hint = "a section holds dialect_resources and external_resources";
                    return Err(syntax(span, message).with_hint(hint).into());
                }
            }
            if !self.cursor.eat(b',') {
                break;
            }
        }
        if self.cursor.eat_str("#-}") {
            return Ok(());
        }
        Err(self.cursor.expected("',' or '#-}'"))
    }
    /// `{ name: { ... }, ... }`; `inside` reads the inner braces.
    fn entries(&mut self, inside: fn(&mut Self, &str, Span) -> Result<()>) -> Result<()> {
        self.cursor.expect(b'{')?;
        self.braced(|grammar| {
            let (name, span) = grammar.key("resource", false)?;
            grammar.cursor.expect(b':')?;
            grammar.cursor.expect(b'{')?;
            inside(grammar, name, span)
        })
    }
    /// `item, item }`, or `}`.
    fn braced(&mut self, mut item: impl FnMut(&mut Self) -> Result<()>) -> Result<()> {
        if self.cursor.eat(b'}') {
            return Ok(());
        }
        loop {
            item(self)?;
            if self.cursor.eat(b'}') {
                return Ok(());
            }
            if !self.cursor.eat(b',') {
                return Err(self.cursor.expected("',' or '}'"));
            }
        }
    }
    /// The key of an entry of `what`; `may_be_quoted` is whether it may be a string.
    pub(super) fn key(&mut self, what: &str, may_be_quoted: bool) -> Result<(&'a str, Span)> {
        self.cursor.skip_space();
        let start = self.cursor.pos;
        if may_be_quoted && self.cursor.peek() == b'"' {
            let name = self.cursor.string()?;
            return Ok((name, self.cursor.span_since(start)));
        }
        let name = self.cursor.name();
        if name.is_empty() {
            return Err(self.cursor.expected(&format!("identifier key for '{what}' entry")));
        }
        Ok((name, self.cursor.span_since(start)))
    }
    /// The resources of a dialect, which has to be `builtin`: no other dialect has resources.
    fn dialect_resources(&mut self, dialect: &str, at: Span) -> Result<()> {
        if dialect != "builtin" {
            let message = if known_dialect(dialect).is_some() {
                format!("unexpected 'resource' section for dialect '{dialect}'")
            } else {
                format!("dialect '{dialect}' is unknown")
            };
            let problem = Diagnostic::new(Code::Syntax, message).at(at);
            return Err(problem.with_hint("elements of dense_resource are in 'builtin'").into());
        }
        self.braced(|grammar| {
            let (name, _) = grammar.key("resource", true)?;
            grammar.cursor.expect(b':')?;
            grammar.cursor.skip_space();
            grammar.blob(name)
        })
    }
    /// The bytes of the resource `name`, in hexadecimal digits: four of the alignment, then the data.
    fn blob(&mut self, name: &str) -> Result<()> {
        let start = self.cursor.pos;
        let what = format!("expected hex string blob for key '{name}'");
        let hint = "write \"0x\", the alignment in 4 bytes, the lowest first, and the data";
        let digits = if self.cursor.peek() == b'"' { self.cursor.string()? } else { "" };
        let span = self.cursor.here_from(start);
        let fail = |text: String| Err(syntax(span, text).with_hint(hint).into());
        let is_hex = |digits: &&str| {
            digits.len() % 2 == 0 && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
        };
        let Some(digits) = digits.strip_prefix("0x").filter(is_hex) else { return fail(what) };
        let alignment = digits.get(..8).and_then(|digits| u32::from_str_radix(digits, 16).ok());
        match alignment.map(u32::swap_bytes) {
            None => fail(format!("{what} to encode alignment in first 4 bytes")),
            Some(align) if align != 0 && !align.is_power_of_two() => fail(format!(
                "{what} to encode alignment in first 4 bytes, but got non-power-of-2 value: {align}"
            )),
            Some(_) => Ok(()),
        }
    }
    /// Resources of external tools: one token each.
    fn external_resources(&mut self, _tool: &str, _at: Span) -> Result<()> {
        self.braced(|grammar| {
            grammar.key("external_resources", true)?;
            grammar.cursor.expect(b':')?;
            grammar.any_token()
        })
    }
    /// Any token.
    fn any_token(&mut self) -> Result<()> {
        self.cursor.skip_space();
        let sigil = matches!(self.cursor.peek(), b'@' | b'#' | b'%' | b'!' | b'^');
        match self.cursor.peek() {
            b'"' => return self.cursor.string().map(|_| ()),
            b'0'..=b'9' => {
                // A number, possibly with a fraction.
                let _ = super::number::Number::read(self.cursor);
            }
            0 if self.cursor.at_end() => return Err(self.cursor.expected("a value")),
            b'-' if self.cursor.byte(self.cursor.pos + 1) == b'>' => self.cursor.pos += 2,
            byte => {
                let is_word = sigil || byte.is_ascii_alphabetic() || byte == b'_';
                self.cursor.pos += self.cursor.here().len();
                if is_word {
                    self.cursor.ssa_name();
                }
            }
        }
        Ok(())
    }
}
