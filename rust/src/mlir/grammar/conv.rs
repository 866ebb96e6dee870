//! Dimension numbers of convolutions, `[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]`.

use super::position::Grammar;
use crate::error::{Result, Span};
use crate::mlir::cursor::{syntax, Cursor};
use std::collections::BTreeSet;

impl Grammar<'_, '_> {
    /// `<dimension numbers>`, or the fields that they stand for after the word `raw`.
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
    /// A place for each of `letters`, and for each number up to the largest.
    fn conv_list(&mut self, letters: [&str; 2]) -> Result<()> {
        self.cursor.skip_space();
        let start = self.cursor.pos;
        let mut seen: Vec<&str> = Vec::new();
        let mut numbers: BTreeSet<i64> = BTreeSet::new();
        self.list(b'[', b']', |grammar| {
            grammar.cursor.skip_space();
            let at = grammar.cursor.pos;
            let word = grammar.cursor.name();
            let fail = |span: Span, message: String| Err(syntax(span, message).into());
            if word.is_empty() && !matches!(grammar.cursor.next_byte(), b'-' | b'0'..=b'9') {
                return Err(grammar.cursor.expected("valid keyword"));
            }
            if !word.is_empty() {
                let span = grammar.cursor.span_since(at);
                let missing = letters.iter().find(|letter| !seen.contains(letter));
                return match missing {
                    _ if letters.contains(&word) && !seen.contains(&word) => {
                        seen.push(word);
                        Ok(())
                    }
                    _ if word.len() > 1 => fail(span, format!("Unexpected keyword {word}")),
                    Some(letter) => {
                        fail(span, format!("Unexpected dimension {word}, expecting {letter}"))
                    }
                    None => fail(span, format!("Unexpected dimension {word}")),
                };
            }
            grammar.int()?;
            let number = Cursor::new(grammar.cursor.since(at), 0).integer()?;
            let span = grammar.cursor.span_since(at);
            if number < 0 {
                return fail(span, format!("Unexpected dimension {number}"));
            }
            if !numbers.insert(number) {
                return fail(span, format!("Duplicate entries for spatial dimension {number}"));
            }
            Ok(())
        })?;
        let span = self.cursor.span_since(start);
        let fail = |message: String| Err(syntax(span, message).into());
        let missing: Vec<&str> = letters.into_iter().filter(|l| !seen.contains(l)).collect();
        if !missing.is_empty() {
            return fail(format!("Expected dimensions {} not specified", missing.join(", ")));
        }
        match (0..).zip(&numbers).find(|(place, number)| place != *number) {
            Some((place, _)) => fail(format!("Expected spatial dimensions {place} not specified")),
            None => Ok(()),
        }
    }
}
