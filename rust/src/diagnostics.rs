//! Converts spans to lines and columns.
//!
//! Errors have byte spans; lines are looked up only when an error is shown. Lines and columns count from
//! 1, columns in characters.

use crate::error::Span;

/// A line longer than this is shown in part: constants may fill megabytes without a line break.
const MAX_SHOWN: usize = 160;

/// Characters of a long line that are shown before the span.
const LEAD: usize = 60;

/// The line and columns of a span in a text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Location {
    /// Line of its first byte.
    pub line: usize,
    /// Column of its first byte.
    pub column: usize,
    /// Column after its last byte, or after the end of the line if it goes on.
    pub end_column: usize,
    /// The line, or the part of it around the span if it is very long.
    pub text: String,
    /// Column of the first character of `text`.
    pub text_column: usize,
}

/// Locates spans in a text. Spans in ascending order take one pass over the text together.
pub struct Locator<'a> {
    source: &'a str,
    /// Where each line starts.
    lines: Vec<usize>,
    /// The last position found: its line, its byte, and the number of characters of the line before
    /// it.
    last: (usize, usize, usize),
}

impl<'a> Locator<'a> {
    /// A locator for spans in `source`.
    pub fn new(source: &'a str) -> Self {
        let breaks = memchr::memchr_iter(b'\n', source.as_bytes());
        let lines = std::iter::once(0).chain(breaks.map(|newline| newline + 1)).collect();
        Self { source, lines, last: (0, 0, 0) }
    }

    /// The location of `span`; `None` if it is not in the text.
    pub fn locate(&mut self, span: Span) -> Option<Location> {
        let (source, start, end) = (self.source, span.start as usize, span.end as usize);
        if start > end || !source.is_char_boundary(start) || !source.is_char_boundary(end) {
            return None;
        }
        let line = self.lines.partition_point(|&first| first <= start);
        let line_start = self.lines[line - 1];
        let line_end = self.lines.get(line).map_or(source.len(), |next| next - 1);
        let before = self.chars_before(line, line_start, start);
        let end_column = before + source[start..end.min(line_end)].chars().count() + 1;
        let text = source[line_start..line_end].trim_end_matches('\r');
        let is_long = text.chars().nth(MAX_SHOWN).is_some();
        let skipped = if is_long { before.saturating_sub(LEAD) } else { 0 };
        let lead = source[line_start..start].char_indices().rev().take(before - skipped);
        let first = lead.last().map_or(start, |(at, _)| line_start + at);
        let rest = source.get(first..line_start + text.len()).unwrap_or_default();
        Some(Location {
            line,
            column: before + 1,
            end_column,
            text: rest.chars().take(MAX_SHOWN).collect(),
            text_column: skipped + 1,
        })
    }

    /// How many characters of its line stand before byte `start`.
    fn chars_before(&mut self, line: usize, line_start: usize, start: usize) -> usize {
        let (last_line, byte, chars) = self.last;
        let (from, known) =
            if last_line == line && byte <= start { (byte, chars) } else { (line_start, 0) };
        let before = known + self.source[from..start].chars().count();
        self.last = (line, start, before);
        before
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_lines_and_columns_in_characters() {
        let mut locator = Locator::new("ab\n☃cd\r\nef");
        let mut at = |start, end| locator.locate(Span::new(start, end));
        let second =
            Location { line: 2, column: 2, end_column: 3, text: "☃cd".into(), text_column: 1 };
        assert_eq!(at(6, 7), Some(second));
        assert_eq!(at(7, 8).map(|at| (at.column, at.end_column)), Some((3, 4)));
        assert_eq!(at(3, 6).map(|at| (at.column, at.end_column)), Some((1, 2)));
        assert_eq!(at(10, 12).map(|at| (at.line, at.column)), Some((3, 1)));
        assert_eq!(at(12, 12).map(|at| at.column), Some(3));
        // A newline belongs to the line that it ends.
        assert_eq!(at(2, 3).map(|at| (at.line, at.column)), Some((1, 3)));
        // A span over several lines ends where its first line does.
        assert_eq!(at(0, 8).map(|at| at.end_column), Some(3));
        assert_eq!(at(4, 5), None);
        assert_eq!(at(12, 13), None);
    }

    #[test]
    fn long_lines_are_shown_in_part() {
        let source = format!("{}x{}", "a".repeat(1000), "b".repeat(1000));
        let found = Locator::new(&source).locate(Span::new(1000, 1001)).unwrap();
        assert_eq!((found.column, found.text_column, found.text.len()), (1001, 941, 160));
        assert!(found.text[60..].starts_with("xb"));
    }
}
