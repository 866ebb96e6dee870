//! A position in MLIR text, and the lexical steps that every parser takes from it.
//!
//! There is no token stream: parsers look at the next byte and step over names, strings and
//! brackets. Bracketed text of any depth is skipped without recursion. A position is always at a
//! character boundary when text is sliced, because slices start and end at ASCII bytes.

use crate::attribute::is_no_token;
use crate::error::{Code, Diagnostic, Result, Span};
use memchr::{memchr, memchr3};

/// A position in a text.
#[derive(Clone, Debug)]
pub struct Cursor<'a> {
    text: &'a str,
    /// The position.
    pub pos: usize,
}

/// The class of bytes that may be part of a name.
const NAME: u8 = 1;
const NAME_START: u8 = 2;
const SSA_NAME: u8 = 4;
const BRACKET: u8 = 8;
const SPACE: u8 = 16;
const DIGIT: u8 = 32;

static CLASSES: [u8; 256] = classes();

const fn classes() -> [u8; 256] {
    let mut table = [0u8; 256];
    let mut at = 0;
    while at < 256 {
        let byte = at as u8;
        let mut class = match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'_' => NAME | NAME_START | SSA_NAME,
            b'0'..=b'9' => NAME | SSA_NAME | DIGIT,
            b'$' | b'.' => NAME | SSA_NAME,
            b'-' => SSA_NAME,
            _ => 0,
        };
        if matches!(
            byte,
            0 | b'(' | b')' | b'[' | b']' | b'{' | b'}' | b'<' | b'>' | b'"' | b'/' | b'-'
        ) {
            class |= BRACKET;
        }
        if matches!(byte, b' ' | b'\n' | b'\t' | b'\r') {
            class |= SPACE;
        }
        table[at] = class;
        at += 1;
    }
    table
}

/// A syntax error at `span`.
pub fn syntax(span: Span, message: impl Into<String>) -> Diagnostic {
    Diagnostic::new(Code::Syntax, message).at(span)
}

impl<'a> Cursor<'a> {
    /// The position `pos` in `text`.
    #[inline]
    pub const fn new(text: &'a str, pos: usize) -> Self {
        Self { text, pos }
    }
    /// The whole text.
    #[inline]
    pub const fn text(&self) -> &'a str {
        self.text
    }
    /// The byte here; 0 at the end.
    #[inline]
    pub fn peek(&self) -> u8 {
        self.byte(self.pos)
    }
    /// The byte at `pos`; 0 beyond the end.
    #[inline]
    pub fn byte(&self, pos: usize) -> u8 {
        self.text.as_bytes().get(pos).copied().unwrap_or(0)
    }
    /// The text from `start` to here; empty if the positions are no character boundaries.
    #[inline]
    pub fn since(&self, start: usize) -> &'a str {
        self.text.get(start..self.pos).unwrap_or("")
    }
    /// The span from `start` to here.
    #[inline]
    pub fn span_since(&self, start: usize) -> Span {
        Span::new(start as u32, self.pos as u32)
    }
    /// Whether everything was read.
    #[inline]
    pub fn at_end(&self) -> bool {
        self.pos >= self.text.len()
    }
    /// Steps over white space and comments.
    #[inline]
    pub fn skip_space(&mut self) {
        loop {
            let byte = self.peek();
            if CLASSES[byte as usize] & SPACE != 0 {
                self.pos += 1;
            } else if byte == b'/' && self.byte(self.pos + 1) == b'/' {
                let rest = self.text.as_bytes().get(self.pos..).unwrap_or(&[]);
                self.pos += memchr(b'\n', rest).unwrap_or(rest.len());
            } else {
                return;
            }
        }
    }
    /// Skips space and returns the next byte.
    #[inline]
    pub fn next_byte(&mut self) -> u8 {
        self.skip_space();
        self.peek()
    }
    /// Steps over `byte`, with space before it, if it is next.
    #[inline]
    pub fn eat(&mut self, byte: u8) -> bool {
        let found = self.next_byte() == byte;
        if found {
            self.pos += 1;
        }
        found
    }
    /// Steps over `byte` or fails.
    #[inline]
    pub fn expect(&mut self, byte: u8) -> Result<()> {
        self.eat(byte).then_some(()).ok_or_else(|| self.expected(&format!("'{}'", byte as char)))
    }
    /// Steps over `byte`, which is there for `purpose`: `')' to end operand list`.
    pub fn expect_for(&mut self, byte: u8, purpose: &str) -> Result<()> {
        let what = || format!("'{}' {purpose}", byte as char);
        self.eat(byte).then_some(()).ok_or_else(|| self.expected(&what()))
    }
    /// Steps over `token` if it is next.
    pub fn eat_str(&mut self, token: &str) -> bool {
        self.skip_space();
        let found =
            self.text.as_bytes()[self.pos.min(self.text.len())..].starts_with(token.as_bytes());
        if found {
            self.pos += token.len();
        }
        found
    }
    /// Steps over `->` or fails.
    pub fn expect_arrow(&mut self) -> Result<()> {
        self.eat_str("->").then_some(()).ok_or_else(|| self.expected("'->'"))
    }
    /// Reads `[A-Za-z_][A-Za-z0-9_$.]*` right here; empty if there is none.
    #[inline]
    pub fn name(&mut self) -> &'a str {
        let start = self.pos;
        if CLASSES[self.peek() as usize] & NAME_START != 0 {
            self.pos += 1;
            self.skip_class(NAME);
        }
        self.since(start)
    }
    /// Reads the letters, digits and punctuation of an SSA, block or alias name right here: digits alone, if it starts with one.
    #[inline]
    pub fn ssa_name(&mut self) -> &'a str {
        let start = self.pos;
        let is_number = self.peek().is_ascii_digit();
        self.skip_class(if is_number { DIGIT } else { SSA_NAME });
        self.since(start)
    }
    #[inline]
    fn skip_class(&mut self, class: u8) {
        while CLASSES[self.peek() as usize] & class != 0 {
            self.pos += 1;
        }
    }
    /// Steps over the word `keyword` if it is next.
    pub fn eat_keyword(&mut self, keyword: &str) -> bool {
        self.skip_space();
        let start = self.pos;
        if self.name() == keyword {
            return true;
        }
        self.pos = start;
        false
    }
    /// Steps over the word `keyword` or fails.
    pub fn expect_keyword(&mut self, keyword: &str) -> Result<()> {
        if self.eat_keyword(keyword) {
            return Ok(());
        }
        Err(self.expected(&format!("'{keyword}'")))
    }
    /// Reads decimal digits right here; `None` if there are none or too many.
    #[inline]
    pub fn digits(&mut self) -> Option<u64> {
        let start = self.pos;
        let mut value = Some(0_u64);
        while self.peek().is_ascii_digit() {
            let digit = u64::from(self.peek() - b'0');
            value = value.and_then(|value| value.checked_mul(10)?.checked_add(digit));
            self.pos += 1;
        }
        value.filter(|_| self.pos > start)
    }
    /// Reads an integer without sign right here, in decimal digits or, after `0x`, hexadecimal ones; `None` if there is
    /// none or it is too large.
    pub fn unsigned(&mut self) -> Option<u64> {
        let is_hex = self.peek() == b'0' && self.byte(self.pos + 1) == b'x';
        if !is_hex || !self.byte(self.pos + 2).is_ascii_hexdigit() {
            return self.digits();
        }
        self.pos += 2;
        let start = self.pos;
        while self.peek().is_ascii_hexdigit() {
            self.pos += 1;
        }
        u64::from_str_radix(self.since(start), 16).ok()
    }
    /// Reads an integer with an optional minus.
    pub fn integer(&mut self) -> Result<i64> {
        self.skip_space();
        let start = self.pos;
        let is_negative = self.eat(b'-');
        self.skip_space();
        let value = match self.unsigned() {
            Some(value) if is_negative => 0_i64.checked_sub_unsigned(value),
            value => value.and_then(|value| i64::try_from(value).ok()),
        };
        value.ok_or_else(|| syntax(self.here_from(start), "expected an integer of 64 bits").into())
    }
    /// Steps over a string in quotes and returns its text with escapes left as they are: a quote, a
    /// backslash, `n`, `t` or two hexadecimal digits after a backslash.
    pub fn string(&mut self) -> Result<&'a str> {
        let start = self.pos;
        let bytes = self.text.as_bytes();
        let mut at = start + 1;
        loop {
            let rest = bytes.get(at..).unwrap_or(&[]);
            let Some(found) = memchr3(b'"', b'\\', b'\n', rest).filter(|&at| rest[at] != b'\n')
            else {
                let span = Span::new(start as u32, (start + 1) as u32);
                return Err(syntax(span, "expected '\"' in string literal").into());
            };
            if rest[found] == b'"' {
                self.pos = at + found + 1;
                return Ok(self.text.get(start + 1..at + found).unwrap_or(""));
            }
            at += found + 1;
            at += match rest.get(found + 1..).unwrap_or(&[]) {
                [b'"' | b'\\' | b'n' | b't', ..] => 1,
                [high, low, ..] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => 2,
                _ => {
                    let span = Span::new(at as u32 - 1, at as u32);
                    return Err(syntax(span, "unknown escape in string literal").into());
                }
            };
        }
    }
    /// Reads `@name` or `@"name"`, without the `@`.
    pub fn symbol(&mut self) -> Result<&'a str> {
        self.skip_space();
        if self.peek() != b'@' {
            return Err(self.expected("valid '@'-identifier for symbol name"));
        }
        self.pos += 1;
        if self.peek() == b'"' {
            return self.string();
        }
        let name = self.name();
        if name.is_empty() {
            return Err(self.expected("a name after '@'"));
        }
        Ok(name)
    }
    /// Steps over the bracket here and its contents, up to the matching bracket.
    pub fn skip_balanced(&mut self) -> Result<()> {
        self.balance(Self::unbalanced)
    }
    /// Steps over the bracketed body of an attribute or type of a dialect, up to the matching bracket;
    /// errors have MLIR's messages for such bodies.
    pub fn skip_body(&mut self) -> Result<()> {
        self.balance(|cursor, partner, at| {
            let message =
                format!("unbalanced '{}' character in pretty dialect name", partner as char);
            let open = Span::new(at as u32, at as u32 + 1);
            let hint = format!("close it with '{}'", closing(partner) as char);
            syntax(open, message).with_related(cursor.here(), "before this").with_hint(hint).into()
        })
    }
    fn balance(
        &mut self,
        unbalanced: impl Fn(&Self, u8, usize) -> crate::error::Error,
    ) -> Result<()> {
        let mut open: Vec<(u8, usize)> = Vec::new();
        let start = self.pos;
        let bytes = self.text.as_bytes();
        loop {
            while let Some(&byte) = bytes.get(self.pos) {
                if CLASSES[byte as usize] & BRACKET != 0 {
                    break;
                }
                self.pos += 1;
            }
            let byte = self.peek();
            match byte {
                b'(' | b'[' | b'{' => open.push((byte, self.pos)),
                b'<' if self.byte(self.pos + 1) != b'=' => open.push((byte, self.pos)),
                b'>' if self.byte(self.pos + 1) == b'=' => {}
                b')' | b']' | b'}' | b'>' => {
                    let Some((partner, at)) = open.pop() else { break };
                    if closing(partner) != byte {
                        return Err(unbalanced(self, partner, at));
                    }
                }
                b'"' => {
                    self.string()?;
                    self.pos -= 1;
                }
                b'-' if self.byte(self.pos + 1) == b'>' => self.pos += 1,
                b'/' if self.byte(self.pos + 1) == b'/' => {
                    self.skip_space();
                    self.pos -= 1;
                }
                0 => {
                    let (partner, at) = open.pop().unwrap_or((b'(', start));
                    return Err(unbalanced(self, partner, at));
                }
                _ => {}
            }
            self.pos += 1;
            if open.is_empty() {
                return Ok(());
            }
        }
        Err(self.expected("attribute value"))
    }
    fn unbalanced(&self, partner: u8, at: usize) -> crate::error::Error {
        let open = Span::new(at as u32, at as u32 + 1);
        let message = format!("expected '{}'", closing(partner) as char);
        syntax(self.here(), message).with_related(open, "to close this").into()
    }
    /// The span of the next character; empty at the end.
    pub fn here(&self) -> Span {
        let rest = self.text.get(self.pos..).unwrap_or("");
        let len = rest.chars().next().map_or(0, char::len_utf8);
        let pos = self.pos.min(self.text.len());
        Span::new(pos as u32, (pos + len) as u32)
    }
    /// The span from `start` to here, at least one character.
    pub fn here_from(&self, start: usize) -> Span {
        if self.pos > start {
            self.span_since(start)
        } else {
            self.here()
        }
    }
    /// The error that `what` is expected here.
    #[cold]
    pub fn expected(&mut self, what: &str) -> crate::error::Error {
        self.skip_space();
        let start = self.pos;
        let mut look = self.clone();
        if look.peek() == b'"' {
            // An unclosed string is reported as such, whatever was expected.
            if let Err(error) = look.string() {
                return error;
            }
            look.pos = start;
        }
        let token = if look.ssa_name().is_empty() { self.here() } else { look.span_since(start) };
        if self.text.get(start..).is_some_and(|rest| rest.starts_with(is_no_token)) {
            let problem = syntax(self.here(), "unexpected character");
            return problem.with_hint(format!("expected {what}")).into();
        }
        let found = match self.text.get(token.start as usize..token.end as usize) {
            Some(found) if !found.is_empty() => format!("expected {what}, found '{found}'"),
            _ => format!("expected {what}, found the end of the text"),
        };
        // MLIR reports an unexpected end of a line at the end of that line.
        let before = self.text.get(..start).unwrap_or("").trim_end().len();
        let ends_line = self.text.get(before..start).is_some_and(|gap| gap.contains('\n'));
        let is_token =
            what.starts_with('\'') || matches!(what, "attribute value" | "non-function type");
        let is_missing = is_token && ends_line && before > 0 && !self.at_end();
        let span = if is_missing { Span::new(before as u32, before as u32) } else { token };
        syntax(span, found).into()
    }
}

/// The bracket that closes `open`.
const fn closing(open: u8) -> u8 {
    match open {
        b'(' => b')',
        b'[' => b']',
        b'{' => b'}',
        _ => b'>',
    }
}
