//! Templates: ops whose text, except for the names of values, is repeated by later ops.
//!
//! The lines of a model's program repeat a few hundred different ones, with other value names. So
//! the text of an op on one line is split at these names. If an op with the same pieces was parsed
//! before, it is the template.

use crate::error::Span;
use crate::index::OpId;
use crate::mlir::cursor::Cursor;
use memchr::memchr2;
use rustc_hash::{FxHashMap, FxHasher};
use std::hash::Hasher;
use std::ops::Range;

/// The longest text that is compared.
const MAX_LEN: usize = 2_048;
/// The most templates; if there are more the table is emptied.
const MAX_TEMPLATES: usize = 1 << 14;

/// An op whose text later ops may repeat.
#[derive(Clone)]
pub(super) struct Template {
    pub op: OpId,
    /// Its text without leading space and location.
    text: Span,
    /// The range in [`Templates::kept_names`] of the names in its text.
    names: Range<usize>,
    /// Whether its results have a name.
    pub is_named: bool,
    /// The range of its shardings and rule in the notes.
    pub annotations: Range<usize>,
}

/// The templates, and the pieces of the text of the next op.
#[derive(Default)]
pub(super) struct Templates {
    /// The templates by the hash of their pieces.
    known: FxHashMap<u64, Template>,
    /// The names in the texts of the templates.
    kept_names: Vec<Span>,
    /// The names in the text that was split, with `%`.
    pub names: Vec<Span>,
    /// Offsets in the template's text, each with the number to add from there on.
    shifts: Vec<(u32, u32)>,
    /// The hash of the pieces; 0 if the text could not be split.
    hash: u64,
    /// The span of the text that was split, without leading space and location.
    text: Span,
}

impl Templates {
    /// Splits the line at `start` of `text`. Returns its template, and the end of the op without
    /// its location.
    #[inline]
    pub fn find(&mut self, text: &str, start: usize) -> Option<(Template, usize)> {
        if !self.split(text, start) {
            self.hash = 0;
            return None;
        }
        let template = self.like(text)?;
        Some((template, self.text.end as usize))
    }
    /// Reserves memory for this many templates.
    pub fn reserve(&mut self, count: usize) {
        self.known.reserve(count);
        self.kept_names.reserve(2 * count);
    }
    /// The hash and the span of the text that was split, if it could be split.
    pub fn taken_apart(&self) -> Option<(u64, Span)> {
        (self.hash != 0).then_some((self.hash, self.text))
    }
    /// Keeps `op`, whose text was split into [`Templates::names`], as the template for texts with this hash.
    pub fn keep(
        &mut self,
        (hash, text): (u64, Span),
        op: OpId,
        is_named: bool,
        annotations: Range<usize>,
    ) {
        if self.known.len() >= MAX_TEMPLATES {
            self.known.clear();
            self.kept_names.clear();
        }
        let start = self.kept_names.len();
        self.kept_names.extend_from_slice(&self.names);
        let names = start..self.kept_names.len();
        self.known.insert(hash, Template { op, text, names, is_named, annotations });
    }
    /// Splits the line at `start`; false if it is too long or has a `%` without a name.
    #[inline]
    fn split(&mut self, text: &str, start: usize) -> bool {
        let bytes = text.as_bytes();
        let limit = text.len().min(start + MAX_LEN);
        let mut hasher = FxHasher::default();
        let mut at = start;
        self.names.clear();
        loop {
            // A name may continue beyond the limit.
            let piece = bytes.get(at..limit).unwrap_or(&[]);
            // Most pieces are short ones between operands.
            let found = match piece {
                [b'%', ..] => 0,
                [b',', b' ', b'%', ..] => 2,
                _ => {
                    let Some(found) = memchr2(b'%', b'\n', piece) else { return false };
                    if piece[found] == b'\n' {
                        let end = at + end_without_location(&piece[..found]);
                        hasher.write(&bytes[at..end]);
                        self.text = Span::new(start as u32, end as u32);
                        self.hash = hasher.finish();
                        return end > start;
                    }
                    hasher.write(&piece[..found]);
                    found
                }
            };
            hasher.write_usize(found);
            let mut cursor = Cursor::new(text, at + found + 1);
            if cursor.ssa_name().is_empty() {
                return false;
            }
            self.names.push(cursor.span_since(at + found));
            at = cursor.pos;
        }
    }
    /// The template with the same pieces.
    #[inline]
    fn like(&mut self, text: &str) -> Option<Template> {
        let template = self.known.get(&self.hash)?;
        let names = self.kept_names.get(template.names.clone())?;
        if names.len() != self.names.len() {
            return None;
        }
        let bytes = text.as_bytes();
        let piece = |start: u32, end: u32| bytes.get(start as usize..end as usize);
        let (mut own, mut other) = (self.text.start, template.text.start);
        self.shifts.clear();
        for (name, known) in self.names.iter().zip(names) {
            if piece(own, name.start) != piece(other, known.start) {
                return None;
            }
            self.shifts.push((other, own.wrapping_sub(other)));
            (own, other) = (name.end, known.end);
        }
        self.shifts.push((other, own.wrapping_sub(other)));
        (piece(own, self.text.end) == piece(other, template.text.end)).then(|| template.clone())
    }
    /// The span that corresponds, in the text that was split, to `span` of the template.
    pub fn shifted(&self, span: Span) -> Span {
        let after = self.shifts.iter().rev().find(|(start, _)| *start <= span.start);
        let shift = after.map_or(0, |(_, shift)| *shift);
        Span::new(span.start.wrapping_add(shift), span.end.wrapping_add(shift))
    }
}

/// The length of a line without ` loc(...)` and white space at its end.
fn end_without_location(line: &[u8]) -> usize {
    let line = line.trim_ascii_end();
    if line.last() != Some(&b')') {
        return line.len();
    }
    memchr::memmem::rfind(line, b" loc(").unwrap_or(line.len())
}
