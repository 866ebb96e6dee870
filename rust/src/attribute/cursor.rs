//! A cursor over the text of one attribute.
//!
//! It reads the tokens that attributes of the `sdy` dialect have: bare identifiers, strings with escapes,
//! symbols, integers, punctuation, white space and `//` comments. Nothing is recursive, and every failure
//! is an [`Error`] at a span of the program's text.

use crate::error::{Code, Diagnostic, Error, Result, Span};

/// A position in the text of one attribute.
#[derive(Clone, Debug)]
pub struct Cursor<'a> {
    text: &'a str,
    at: usize,
    base: u32,
}

/// The form in which the name of an attribute is written around its contents.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wrapping {
    /// Without a name: only the contents are written.
    Stripped,
    /// As `#sdy.name`.
    Pretty,
    /// As `#sdy<name` with a `>` after the contents.
    Angled,
}

impl<'a> Cursor<'a> {
    /// A cursor at the start of `text`, which is at byte `base` of the program's text.
    pub const fn new(text: &'a str, base: u32) -> Self {
        Self { text, at: 0, base }
    }
    /// The text that was not read yet.
    pub fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }
    /// Bytes read so far.
    pub const fn consumed(&self) -> usize {
        self.at
    }
    /// The offset of the next token in the program's text.
    pub fn position(&mut self) -> u32 {
        self.skip_space();
        self.base + self.at as u32
    }
    /// From `start`, a former position, to the end of the last token.
    pub fn span_from(&self, start: u32) -> Span {
        Span::new(start, (self.base + self.at as u32).max(start))
    }
    /// Skips `bytes` bytes, which must end between characters.
    pub fn skip(&mut self, bytes: usize) {
        self.at += bytes;
    }
    /// Skips white space and comments.
    pub fn skip_space(&mut self) {
        loop {
            let rest = self.rest();
            let trimmed = rest.trim_start_matches([' ', '\t', '\n', '\r']);
            self.at += rest.len() - trimmed.len();
            if !trimmed.starts_with("//") {
                return;
            }
            self.at += trimmed.find('\n').unwrap_or(trimmed.len());
        }
    }
    /// Whether the next token starts with `token`.
    pub fn peek(&mut self, token: &str) -> bool {
        self.skip_space();
        self.rest().starts_with(token)
    }
    /// Reads `token` if it is next.
    pub fn eat(&mut self, token: &str) -> bool {
        let found = self.peek(token);
        if found {
            self.at += token.len();
        }
        found
    }
    /// Reads `token`, which has to be next.
    pub fn expect(&mut self, token: &str) -> Result<()> {
        if self.eat(token) {
            return Ok(());
        }
        Err(self.expected_token(&format!("'{token}'")))
    }
    /// The error that the token `what` is expected here; at the end of the previous line, if the
    /// text there ends without it.
    pub fn expected_token(&mut self, what: &str) -> Error {
        let end = self.at;
        let mut error = self.expected(what);
        let between = &self.text[end..self.at];
        if let (Some(line_end), [problem]) = (between.find(['\n', '/']), &mut error.diagnostics[..])
        {
            let is_comment = between.as_bytes()[line_end] == b'/' && !between.contains('\n');
            if !is_comment {
                let at = self.base + end as u32;
                problem.span = Some(Span::new(at, at));
            }
        }
        error
    }
    /// The error that something else was expected next.
    pub fn expected(&mut self, what: &str) -> Error {
        let span = self.token();
        let found = self.next_token();
        if found == "\"" {
            // An unclosed string is reported as such, whatever was expected.
            if let Err(error) = self.clone().string() {
                return error;
            }
        }
        if found.starts_with(is_no_token) {
            let problem = Diagnostic::new(Code::Syntax, "unexpected character").at(span);
            return problem.with_hint(format!("expected {what}")).into();
        }
        let message = if found.is_empty() {
            format!("expected {what}, found the end of the attribute")
        } else {
            format!("expected {what}, found '{found}'")
        };
        Diagnostic::new(Code::Syntax, message).at(span).into()
    }
    /// The span of the next token.
    pub fn token(&mut self) -> Span {
        let start = self.position();
        Span::new(start, start + self.next_token().len() as u32)
    }
    /// The text of the next token, for error messages.
    fn next_token(&self) -> &'a str {
        let rest = self.rest();
        let word = bare_len(rest);
        if word > 0 {
            return &rest[..word];
        }
        let digits = rest.bytes().take_while(u8::is_ascii_alphanumeric).count();
        let first = rest.chars().next().map_or(0, char::len_utf8);
        &rest[..digits.max(first)]
    }
    /// Reads a bare identifier if one is next.
    pub fn word(&mut self) -> Option<(&'a str, Span)> {
        let start = self.position();
        let rest = self.rest();
        let len = bare_len(rest);
        if len == 0 {
            return None;
        }
        self.at += len;
        Some((&rest[..len], self.span_from(start)))
    }
    /// Reads the identifier `word` if it is next.
    pub fn eat_word(&mut self, word: &str) -> bool {
        self.skip_space();
        let rest = self.rest();
        let found = &rest[..bare_len(rest)] == word;
        if found {
            self.at += word.len();
        }
        found
    }
    /// Reads an integer: decimal or `0x` hexadecimal, with an optional minus.
    pub fn integer(&mut self) -> Result<(i64, Span)> {
        let start = self.position();
        let before = self.at;
        let negative = self.eat("-");
        self.skip_space();
        let rest = self.rest();
        if !rest.starts_with(|c: char| c.is_ascii_digit()) {
            self.at = before;
            return Err(self.expected("integer value"));
        }
        let hex = rest.strip_prefix("0x").map_or(0, |digits| count(digits, u8::is_ascii_hexdigit));
        let value = if hex > 0 {
            self.at += 2 + hex;
            i128::from_str_radix(&rest[2..2 + hex], 16)
        } else {
            let len = count(rest, u8::is_ascii_digit);
            self.at += len;
            rest[..len].parse()
        };
        let span = self.span_from(start);
        let signed = value.ok().map(|value| if negative { -value } else { value });
        match signed.and_then(|value| i64::try_from(value).ok()) {
            Some(value) => Ok((value, span)),
            None => Err(Diagnostic::new(Code::Syntax, "integer value too large").at(span).into()),
        }
    }
    /// Reads a quoted string and decodes its escapes.
    pub fn string(&mut self) -> Result<(String, Span)> {
        let start = self.position();
        if !self.peek("\"") {
            return Err(self.expected("string"));
        }
        let bytes = self.rest().as_bytes();
        let mut decoded = Vec::new();
        let mut i = 1;
        loop {
            match bytes.get(i) {
                None | Some(b'\n' | 0x0b | 0x0c) => {
                    self.at += i;
                    return Err(self.string_error(start, "expected '\"' in string literal"));
                }
                Some(b'"') => break,
                Some(b'\\') => {
                    let Some((byte, len)) = unescape(&bytes[i + 1..]) else {
                        self.at += i + 1;
                        return Err(self.string_error(start, "unknown escape in string literal"));
                    };
                    decoded.push(byte);
                    i += 1 + len;
                }
                Some(&byte) => {
                    decoded.push(byte);
                    i += 1;
                }
            }
        }
        self.at += i + 1;
        match String::from_utf8(decoded) {
            Ok(decoded) => Ok((decoded, self.span_from(start))),
            Err(_) => Err(self.string_error(start, "this string is not UTF-8")),
        }
    }
    fn string_error(&self, start: u32, message: &str) -> Error {
        Diagnostic::new(Code::Syntax, message).at(self.span_from(start)).into()
    }
    /// Reads a symbol `@name` or `@"name"`; the result is without `@`.
    pub fn symbol(&mut self) -> Result<(String, Span)> {
        let start = self.position();
        if !self.eat("@") {
            return Err(self.expected("a symbol like @mesh"));
        }
        if self.rest().starts_with('"') {
            let (name, _) = self.string()?;
            return Ok((name, self.span_from(start)));
        }
        let rest = self.rest();
        let len = bare_len(rest);
        if len == 0 {
            return Err(self.expected("a name after '@'"));
        }
        self.at += len;
        Ok((rest[..len].to_owned(), self.span_from(start)))
    }
    /// Reads the name of attribute `name` of the `sdy` dialect, if it is next, and returns its
    /// form.
    pub fn open(&mut self, name: &str) -> Wrapping {
        self.skip_space();
        let before = self.at;
        for (prefix, wrapping) in [("#sdy.", Wrapping::Pretty), ("#sdy<", Wrapping::Angled)] {
            if self.eat(prefix) && self.eat_word(name) {
                return wrapping;
            }
            self.at = before;
        }
        Wrapping::Stripped
    }
    /// Reads the end of the form that [`Cursor::open`] returned.
    pub fn close(&mut self, wrapping: Wrapping) -> Result<()> {
        match wrapping {
            Wrapping::Angled => self.expect(">"),
            Wrapping::Stripped | Wrapping::Pretty => Ok(()),
        }
    }
    /// Reads `item (, item)*` up to `end`, which is read too; the opening was read already.
    pub fn list<T>(
        &mut self,
        end: &str,
        mut item: impl FnMut(&mut Self) -> Result<T>,
    ) -> Result<Vec<T>> {
        if self.eat(end) {
            return Ok(Vec::new());
        }
        let items = self.items(&mut item)?;
        self.expect(end)?;
        Ok(items)
    }
    /// Reads `item (, item)*` and stops where no comma follows.
    pub fn items<T>(&mut self, mut item: impl FnMut(&mut Self) -> Result<T>) -> Result<Vec<T>> {
        let mut items = vec![item(self)?];
        while self.eat(",") {
            items.push(item(self)?);
        }
        Ok(items)
    }
    /// Fails unless everything was read.
    pub fn finish(&mut self) -> Result<()> {
        self.skip_space();
        if self.rest().is_empty() {
            return Ok(());
        }
        Err(self.expected("the end of the attribute"))
    }
}

/// Whether no token of MLIR starts with `character`.
pub fn is_no_token(character: char) -> bool {
    "'`;$&~\\".contains(character) || !character.is_ascii()
}

/// Whether `text` is an attribute with the name `name` of the `sdy` dialect.
pub fn names_itself(text: &str, name: &str) -> bool {
    Cursor::new(text, 0).open(name) != Wrapping::Stripped
}

/// Length of the leading bytes of `text` that satisfy `is`.
fn count(text: &str, is: impl Fn(&u8) -> bool) -> usize {
    text.bytes().take_while(|byte| is(byte)).count()
}

/// Length of the bare identifier that `text` starts with.
pub(super) fn bare_len(text: &str) -> usize {
    if !text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
        return 0;
    }
    count(text, |byte| byte.is_ascii_alphanumeric() || b"_$.".contains(byte))
}

/// The byte that an escape stands for, and the length of the escape after the backslash.
fn unescape(bytes: &[u8]) -> Option<(u8, usize)> {
    let hex = |byte: u8| char::from(byte).to_digit(16);
    match *bytes.first()? {
        b'n' => Some((b'\n', 1)),
        b't' => Some((b'\t', 1)),
        byte @ (b'"' | b'\\') => Some((byte, 1)),
        byte => Some(((hex(byte)? * 16 + hex(*bytes.get(1)?)?) as u8, 2)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn string(text: &str) -> Result<String> {
        Cursor::new(text, 0).string().map(|(text, _)| text)
    }

    #[test]
    fn strings_decode_as_in_mlir() {
        assert_eq!(string(r#""a\22\n\\\E2\98\83☃""#).unwrap(), "a\"\n\\☃☃");
        for bad in ["\"", "\"a\nb\"", r#""\q""#, r#""\F""#, r#""\FF""#, r#""\"#, "a"] {
            assert!(string(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn integers_stop_at_64_bits() {
        let integer = |text: &str| Cursor::new(text, 0).integer().map(|(value, _)| value);
        assert_eq!(integer("0x10").unwrap(), 16);
        assert_eq!(integer("-9223372036854775808").unwrap(), i64::MIN);
        assert!(integer("9223372036854775808").is_err());
        assert!(integer(&"9".repeat(100)).is_err());
        assert!(integer("-").is_err());
        assert_eq!(integer("0xg").unwrap(), 0);
    }

    #[test]
    fn symbols_are_read_bare_and_quoted() {
        let mut cursor = Cursor::new(" @\"1 b\" // comment\n @x", 10);
        assert_eq!(cursor.symbol().unwrap(), ("1 b".to_owned(), Span::new(11, 17)));
        assert_eq!(cursor.symbol().unwrap(), ("x".to_owned(), Span::new(30, 32)));
    }
}
