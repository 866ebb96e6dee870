//! Dimension numbers of convolutions, `[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]`.

use super::position::Grammar;
use crate::error::{Result, Span};
use crate::mlir::cursor::{syntax, Cursor};
use std::collections::BTreeSet;

impl Grammar<'_, '_> {
    /// `<dimension numbers>`, or, after the word `raw`, the fields of the structure.
    pub(super) fn conv(&mut self) -> Result<()> {
        self.cursor.expect(b'<')?;
        if self.cursor.eat_keyword("raw") {
            return self.structure("raw");
        }
        self.conv_dims()?;
        self.cursor.expect(b'>')
    }
    /// The dims of input, kernel and output.
    pub fn conv_dims(&mut self) -> Result<()> {
        self.conv_list(["b", "f"])?;
        if !self.cursor.eat(b'x') {
            return Err(self.cursor.expected("'x'"));
        }
        self.conv_list(["i", "o"])?;
        self.cursor.expect_arrow()?;
        self.conv_list(["b", "f"])
    }
    /// A list with one place for each of `letters`, and for each number from 0 to the largest.
    fn conv_list(&mut self, letters: [&str; 2]) -> Result<()> {
        self.cursor.skip_space();
        let start = self.cursor.pos;
        let mut dims = Dims { letters, seen: Vec::new(), numbers: BTreeSet::new() };
        self.list(b'[', b']', |grammar| {
            grammar.conv_dim(&mut dims)?;
            // If a list ends too early, that is reported before its closing bracket is expected.
            if matches!(grammar.cursor.next_byte(), b',' | b']') {
                return Ok(());
            }
            dims.check(grammar.cursor.span_since(start))
        })?;
        dims.check(self.cursor.span_since(start))
    }
    /// A letter or a number.
    fn conv_dim(&mut self, dims: &mut Dims<'_>) -> Result<()> {
        self.cursor.skip_space();
        let at = self.cursor.pos;
        let word = self.cursor.name();
        let fail = |span: Span, message: String| Err(syntax(span, message).into());
        let Dims { letters, seen, numbers } = dims;
        if !word.is_empty() {
            let span = self.cursor.span_since(at);
            let known = letters.iter().find(|letter| **letter == word && !seen.contains(letter));
            if let Some(letter) = known {
                seen.push(letter);
                return Ok(());
            }
            let missing = letters.iter().find(|letter| !seen.contains(letter));
            return match missing.filter(|_| word.len() == 1) {
                Some(letter) => {
                    fail(span, format!("Unexpected dimension {word}, expecting {letter}"))
                }
                None => fail(span, format!("Unexpected keyword {word}")),
            };
        }
        let rest = self.cursor.text().get(at..).unwrap_or("");
        let after = rest.trim_start_matches(|c: char| c == '-' || c.is_ascii_digit());
        if after.len() == rest.len() || after.starts_with('.') {
            return Err(self.cursor.expected("valid keyword"));
        }
        self.int()?;
        let number = Cursor::new(self.cursor.since(at), 0).integer()?;
        let span = self.cursor.span_since(at);
        if number < 0 {
            return fail(span, format!("Unexpected dimension {number}"));
        }
        if !numbers.insert(number) {
            return fail(span, format!("Duplicate entries for spatial dimension {number}"));
        }
        Ok(())
    }
}

/// The dims of an operand or of the result that were read.
struct Dims<'t> {
    /// The letters that are required.
    letters: [&'t str; 2],
    seen: Vec<&'t str>,
    numbers: BTreeSet<i64>,
}

impl Dims<'_> {
    /// Checks that all letters, and all numbers from 0 to the largest, were read.
    fn check(&self, span: Span) -> Result<()> {
        /// The most numbers that a message lists.
        const MOST: usize = 10;

        let fail = |message: String| Err(syntax(span, message).into());
        let is_missing = |letter: &&str| !self.seen.contains(letter);
        let missing: Vec<&str> = self.letters.into_iter().filter(is_missing).collect();
        if !missing.is_empty() {
            return fail(format!("Expected dimensions {} not specified", missing.join(", ")));
        }
        let last = self.numbers.last().copied().unwrap_or(0);
        let missing = (0..last).filter(|place| !self.numbers.contains(place)).take(MOST);
        let missing: Vec<String> = missing.map(|place| place.to_string()).collect();
        if missing.is_empty() {
            return Ok(());
        }
        fail(format!("Expected spatial dimensions {} not specified", missing.join(", ")))
    }
}
