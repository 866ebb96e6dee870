//! A position in the text of an attribute, with parsers of words, numbers, strings, lists and types.
//! `reader.rs` parses whole attributes.
//!
//! Every parser returns `None` if the text does not have its form; the position is then unspecified.
//! Nesting and aliases are limited, so that hostile text exhausts neither stack nor time.

use crate::inline_list::InlineList;
use crate::mlir::escapes::unescaped;
use std::borrow::Cow;

/// The most aliases that are resolved for one attribute: each may contain many others.
const MAX_ALIASES: u32 = 256;

/// Returns the definition of an alias (`#map`, `!t`).
pub type Aliases<'r, 'a> = &'r dyn Fn(&str) -> Option<&'a str>;

/// A position in the text of an attribute.
pub struct AttrCursor<'r, 'a> {
    pub(super) text: &'a str,
    pub(super) place: usize,
    pub(super) depth: u32,
    pub(super) aliases: Aliases<'r, 'a>,
    pub(super) aliases_left: u32,
}

/// For each byte whether it may be part of a word.
static WORD: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0_u8;
    while byte < 128 {
        table[byte as usize] =
            byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | b'.' | b'-');
        byte += 1;
    }
    table
};

#[inline]
fn is_word(byte: u8) -> bool {
    WORD[byte as usize]
}

impl<'r, 'a> AttrCursor<'r, 'a> {
    /// A cursor at the start of `text`.
    pub fn new(text: &'a str, aliases: Aliases<'r, 'a>) -> Self {
        Self { text, place: 0, depth: 0, aliases, aliases_left: MAX_ALIASES }
    }
    /// Whether nothing but white space is left.
    pub fn at_end(&mut self) -> bool {
        self.peek().is_none()
    }
    /// The byte that comes next, after white space and comments.
    #[inline]
    pub fn peek(&mut self) -> Option<u8> {
        let bytes = self.text.as_bytes();
        loop {
            while bytes.get(self.place).is_some_and(u8::is_ascii_whitespace) {
                self.place += 1;
            }
            let next = bytes.get(self.place).copied();
            if next != Some(b'/') || bytes.get(self.place + 1) != Some(&b'/') {
                return next;
            }
            self.skip_comment();
        }
    }
    /// Skips what is left of the line.
    #[cold]
    fn skip_comment(&mut self) {
        let bytes = self.text.as_bytes();
        while bytes.get(self.place).is_some_and(|&byte| byte != b'\n') {
            self.place += 1;
        }
    }
    /// The text from here on.
    pub fn rest(&self) -> &'a str {
        self.text.get(self.place..).unwrap_or("")
    }
    /// Skips `token`, which is not empty, if it comes next.
    #[inline]
    pub fn eat(&mut self, token: &str) -> bool {
        // Most tokens differ in their first bytes.
        if self.peek() != token.bytes().next() {
            return false;
        }
        let found = token.len() == 1 || self.rest().starts_with(token);
        if found {
            self.place += token.len();
        }
        found
    }
    /// Skips one byte, or one character if it is not ASCII.
    pub fn skip_char(&mut self) {
        self.place += self.rest().chars().next().map_or(0, char::len_utf8);
    }
    pub(super) fn expect(&mut self, token: &str) -> Option<()> {
        self.eat(token).then_some(())
    }
    /// A word of letters, digits, `_`, `$`, `.` and `-`, not empty.
    pub fn word(&mut self) -> Option<&'a str> {
        self.peek();
        let rest = self.rest();
        let bytes = rest.as_bytes();
        let mut len = 0;
        for &byte in bytes {
            if !is_word(byte) {
                break;
            }
            len += 1;
        }
        if bytes.get(len) == Some(&b'>') && bytes[..len].last() == Some(&b'-') {
            len -= 1;
        }
        self.place += len;
        (len > 0).then(|| &rest[..len])
    }
    /// Skips the names of values, `%0#1, %a`, up to the end of the last name.
    pub fn skip_values(&mut self) {
        let bytes = self.text.as_bytes();
        let end_of = |start: usize, is_part: fn(u8) -> bool| {
            let rest = bytes.get(start..).unwrap_or(&[]);
            start + rest.iter().position(|&byte| !is_part(byte)).unwrap_or(rest.len())
        };
        loop {
            self.place = end_of(self.place + 1, |byte| is_word(byte) || byte == b'#');
            let next = end_of(self.place, |byte| matches!(byte, b',' | b' '));
            if bytes.get(next) != Some(&b'%') {
                return;
            }
            self.place = next;
        }
    }
    /// An integer in decimal or hexadecimal.
    pub fn int(&mut self) -> Option<i64> {
        self.peek();
        self.short_decimal().or_else(|| parse_int(self.number()))
    }
    /// A decimal integer of at most 18 digits, the usual case. If something else comes next, the
    /// cursor does not move.
    #[inline]
    pub(super) fn short_decimal(&mut self) -> Option<i64> {
        let bytes = self.text.as_bytes();
        let is_negative = bytes.get(self.place) == Some(&b'-');
        let start = self.place + usize::from(is_negative);
        let (mut end, mut value) = (start, 0_i64);
        while let Some(byte) = bytes.get(end).filter(|byte| byte.is_ascii_digit()) {
            value = value.wrapping_mul(10).wrapping_add(i64::from(byte - b'0'));
            end += 1;
        }
        let goes_on =
            bytes.get(end).is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'.');
        if goes_on || !(1..=18).contains(&(end - start)) {
            return None;
        }
        self.place = end;
        Some(if is_negative { -value } else { value })
    }
    pub(super) fn number(&mut self) -> &'a str {
        let rest = self.rest();
        let bytes = rest.as_bytes();
        let mut len = usize::from(bytes.first().is_some_and(|byte| matches!(byte, b'-' | b'+')));
        while let Some(&byte) = bytes.get(len) {
            let is_exponent_sign =
                matches!(byte, b'-' | b'+') && len > 0 && matches!(bytes[len - 1], b'e' | b'E');
            if !(byte.is_ascii_alphanumeric() || byte == b'.' || is_exponent_sign) {
                break;
            }
            len += 1;
        }
        self.place += len;
        &rest[..len]
    }
    /// A string in quotes, unescaped.
    pub fn string(&mut self) -> Option<Cow<'a, str>> {
        self.expect("\"")?;
        let rest = self.rest();
        let bytes = rest.as_bytes();
        let mut end = 0;
        while *bytes.get(end)? != b'"' {
            end += if bytes[end] == b'\\' { 2 } else { 1 };
        }
        let body = rest.get(..end)?;
        self.place += end + 1;
        Some(unescaped(body))
    }
    /// `open`, values read by `item` with commas in between, `close`.
    pub fn list<T>(
        &mut self,
        open: &str,
        close: &str,
        mut item: impl FnMut(&mut Self) -> Option<T>,
    ) -> Option<Vec<T>> {
        self.expect(open)?;
        let mut items = Vec::new();
        if self.eat(close) {
            return Some(items);
        }
        loop {
            items.push(item(self)?);
            if self.eat(close) {
                return Some(items);
            }
            self.expect(",")?;
        }
    }
    /// `[1, 2]`.
    pub fn ints(&mut self) -> Option<Vec<i64>> {
        self.list("[", "]", Self::int)
    }
    /// `open`, integers with commas in between, `close`. If something else comes next, returns
    /// `None`, and the cursor does not move.
    pub fn int_list(&mut self, open: u8, close: u8) -> Option<InlineList<i64, 4>> {
        let start = self.place;
        let ints = self.ints_between(open, close);
        if ints.is_none() {
            self.place = start;
        }
        ints
    }
    fn ints_between(&mut self, open: u8, close: u8) -> Option<InlineList<i64, 4>> {
        if self.peek() != Some(open) {
            return None;
        }
        self.place += 1;
        let mut ints = InlineList::new();
        if self.peek() == Some(close) {
            self.place += 1;
            return Some(ints);
        }
        loop {
            self.peek();
            ints.push(match self.short_decimal() {
                Some(int) => int,
                None => parse_int(self.number())?,
            });
            let next = self.peek()?;
            self.place += 1;
            if next == close {
                return Some(ints);
            }
            if next != b',' {
                return None;
            }
        }
    }
    /// `@name`, `@"na me"`, with nested references.
    pub fn symbol(&mut self) -> Option<Cow<'a, str>> {
        self.expect("@")?;
        if self.rest().starts_with('"') {
            return self.string();
        }
        let rest = self.rest();
        let is_part = |byte: u8| is_word(byte) || matches!(byte, b':' | b'@');
        let len = rest.bytes().position(|byte| !is_part(byte)).unwrap_or(rest.len());
        self.place += len;
        (len > 0).then(|| rest[..len].into())
    }
    /// The text of a type: words, `!`, and brackets after them; `->` and the type after it.
    pub fn type_text(&mut self) -> Option<&'a str> {
        self.peek()?;
        let start = self.place;
        self.single_type()?;
        while self.eat("->") {
            self.peek()?;
            self.single_type()?;
        }
        Some(self.text[start..self.place].trim_end())
    }
    fn single_type(&mut self) -> Option<()> {
        if self.peek()? == b'(' {
            return self.balanced();
        }
        self.eat("!");
        self.word()?;
        if self.rest().starts_with('<') {
            self.balanced()
        } else {
            Some(())
        }
    }
    pub(super) fn balanced_suffixes(&mut self) -> Option<()> {
        while self.rest().starts_with(['<', '(']) {
            self.balanced()?;
        }
        Some(())
    }
    /// Skips a bracket that comes next with everything up to its match.
    pub fn balanced(&mut self) -> Option<()> {
        let bytes = self.text.as_bytes();
        let mut closers = Vec::new();
        loop {
            let byte = *bytes.get(self.place)?;
            match byte {
                b'<' => closers.push(b'>'),
                b'(' => closers.push(b')'),
                b'[' => closers.push(b']'),
                b'{' => closers.push(b'}'),
                b'"' => {
                    self.string()?;
                    continue;
                }
                b'-' if bytes.get(self.place + 1) == Some(&b'>') => self.place += 1,
                b'>' | b')' | b']' | b'}' if closers.pop() != Some(byte) => return None,
                _ => {}
            }
            self.place += 1;
            if closers.is_empty() {
                return Some(());
            }
        }
    }
}

/// Parses `text` as an integer, in decimal or hexadecimal; one with the highest of 64 bits set is negative.
pub(super) fn parse_int(text: &str) -> Option<i64> {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, text),
    };
    let unsigned = |value: u64| value as i64;
    match digits.strip_prefix("0x") {
        Some(hex) => {
            u64::from_str_radix(hex, 16).ok().map(|value| unsigned(value).wrapping_mul(sign))
        }
        None => text.parse().ok().or_else(|| text.parse().ok().map(unsigned)),
    }
}
