//! From spans to lines and columns.
//!
//! Errors hold byte spans; only when one is shown is its line looked up. Lines and columns count from
//! 1, columns in characters.

use crate::error::Span;

/// A line longer than this is shown in part: constants may fill megabytes without a line break.
const MAX_SHOWN: usize = 160;

/// Characters shown in front of what a long line is shown for.
const LEAD: usize = 60;

/// Where a span stands in a text.
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

/// Where `span` stands in `source`; `None` if it is not in it.
pub fn locate(source: &str, span: Span) -> Option<Location> {
    let (start, end) = (span.start as usize, span.end as usize);
    if end > source.len() || !source.is_char_boundary(start) || !source.is_char_boundary(end) {
        return None;
    }
    let line_start = source[..start].rfind('\n').map_or(0, |newline| newline + 1);
    let line_end = source[start..].find('\n').map_or(source.len(), |newline| start + newline);
    let line = memchr::memchr_iter(b'\n', &source.as_bytes()[..line_start]).count() + 1;
    let text = source[line_start..line_end].trim_end_matches('\r');
    let chars = |to: usize| source[line_start..to].chars().count();
    let column = chars(start) + 1;
    let end_column = column + source[start..end.min(line_end)].chars().count();
    let is_long = text.chars().nth(MAX_SHOWN).is_some();
    let skipped = if is_long { (column - 1).saturating_sub(LEAD) } else { 0 };
    let text = text.chars().skip(skipped).take(MAX_SHOWN).collect();
    Some(Location { line, column, end_column, text, text_column: skipped + 1 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_lines_and_columns_in_characters() {
        let source = "ab\n☃cd\r\nef";
        let at = |start, end| locate(source, Span::new(start, end)).unwrap();
        let second =
            Location { line: 2, column: 2, end_column: 3, text: "☃cd".into(), text_column: 1 };
        assert_eq!(at(6, 7), second);
        assert_eq!((at(10, 12).line, at(10, 12).column), (3, 1));
        assert_eq!(at(12, 12).column, 3);
        // A span over several lines ends where its first line does.
        assert_eq!(at(0, 8).end_column, 3);
        assert_eq!(locate(source, Span::new(4, 5)), None);
        assert_eq!(locate(source, Span::new(12, 13)), None);
    }

    #[test]
    fn long_lines_are_shown_in_part() {
        let source = format!("{}x{}", "a".repeat(1000), "b".repeat(1000));
        let found = locate(&source, Span::new(1000, 1001)).unwrap();
        assert_eq!((found.column, found.text_column, found.text.len()), (1001, 941, 160));
        assert!(found.text[60..].starts_with("xb"));
    }
}
