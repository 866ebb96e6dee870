//! The state of the printer.

use super::names::Names;
use crate::error::Span;
use crate::index::{BlockId, OpId, RegionId, ShardingId, ValueId};
use crate::ir::Program;

/// A piece of text with at least this many bytes is passed on.
pub(super) const PIECE: usize = 1 << 20;

/// An edit of the text of an op: a span and its new contents, which are turned into text when they
/// are printed.
#[derive(Clone, Debug)]
pub(super) enum Edit {
    /// Other text.
    Text(Span, String),
    /// A region.
    Region(Span, RegionId),
    /// The name of an operand.
    Operand(Span, ValueId),
    /// The names of the results.
    Results(Span),
    /// The attribute dictionary of an op.
    Dict(Span),
}

impl Edit {
    pub(super) const fn span(&self) -> Span {
        match self {
            Self::Text(span, _)
            | Self::Region(span, _)
            | Self::Operand(span, _)
            | Self::Results(span)
            | Self::Dict(span) => *span,
        }
    }
}

/// Whether the first block of a region has a label.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Label {
    /// If there is one in the text.
    AsInText,
    /// No: its arguments are in the op's header.
    Hidden,
    /// If it has arguments.
    Shown,
}

/// A part of the program that remains to be printed.
pub(super) enum Task {
    /// This text of the program.
    Copy(Span),
    /// This text.
    Text(String),
    /// A region with its braces.
    Region(RegionId, Label),
    /// An op and the following ops of its block.
    Ops(OpId),
    /// A block with its label and the following blocks.
    Blocks(BlockId),
    /// The end of a region.
    EndRegion(RegionId),
}

/// An empty span that is not adjacent to any other.
const NOTHING: Span = Span::new(u32::MAX, u32::MAX);

/// The state of printing a program.
pub(super) struct Printer<'p> {
    pub(super) program: &'p Program,
    pub(super) out: String,
    /// The receiver of the pieces of text.
    pub(super) take: Option<&'p mut dyn FnMut(&str)>,
    /// A span of the program's text that is copied next.
    pub(super) copied: Span,
    pub(super) names: Names,
    /// The number of open regions.
    pub(super) depth: usize,
    pub(super) tasks: Vec<Task>,
    /// Edits of the op that is being printed.
    pub(super) edits: Vec<Edit>,
    pub(super) sharding_texts: ShardingTexts,
}

/// The texts of shardings, each computed once.
#[derive(Default)]
pub(super) struct ShardingTexts {
    texts: Vec<Option<Box<str>>>,
}

impl ShardingTexts {
    /// The text of `id`; empty for the absent sharding.
    pub(super) fn get(&mut self, program: &Program, id: ShardingId) -> &str {
        let Some(sharding) = program.shardings().get(id) else { return "" };
        let index = crate::index::Id::index(id);
        if index >= self.texts.len() {
            self.texts.resize(index + 1, None);
        }
        self.texts[index].get_or_insert_with(|| {
            let mut text = String::new();
            crate::attribute::write_sharding(&mut text, sharding, program);
            text.into()
        })
    }
}

impl<'p> Printer<'p> {
    pub(super) fn new(
        program: &'p Program,
        room: usize,
        take: Option<&'p mut dyn FnMut(&str)>,
    ) -> Self {
        Self {
            program,
            out: String::with_capacity(room),
            take,
            copied: NOTHING,
            names: Names::new(program),
            depth: 0,
            tasks: Vec::new(),
            edits: Vec::new(),
            sharding_texts: ShardingTexts::default(),
        }
    }
    /// Appends text of the program.
    #[inline]
    pub(super) fn copy(&mut self, span: Span) {
        if self.copied.end == span.start {
            self.copied.end = span.end;
            return;
        }
        self.flush();
        self.copied = span;
    }
    /// Copies the span that is copied next.
    pub(super) fn flush(&mut self) {
        let is_empty = self.copied.is_empty();
        let text = if is_empty { "" } else { self.program.text().get(self.copied) };
        if self.take.is_some() && self.out.len() + text.len() >= PIECE {
            self.give_away(text);
        } else {
            self.out.push_str(text);
        }
        self.copied = NOTHING;
    }
    /// Passes on the text printed so far, followed by `text`, except its last character, which the
    /// following text depends on.
    #[cold]
    pub(super) fn give_away(&mut self, text: &str) {
        let Some(take) = &mut self.take else { return };
        let start_of_last = |text: &str| text.char_indices().next_back().map_or(0, |(at, _)| at);
        if text.is_empty() {
            let last = start_of_last(&self.out);
            take(&self.out[..last]);
            self.out.drain(..last);
        } else {
            let last = start_of_last(text);
            take(&self.out);
            let mut rest = &text[..last];
            while !rest.is_empty() {
                let mut end = rest.len().min(PIECE);
                while !rest.is_char_boundary(end) {
                    end -= 1;
                }
                take(&rest[..end]);
                rest = &rest[end..];
            }
            self.out.clear();
            self.out.push_str(&text[last..]);
        }
    }
    /// Appends text that is not copied.
    pub(super) fn write(&mut self, text: &str) {
        self.flush();
        self.out.push_str(text);
    }
    /// Starts a line.
    pub(super) fn new_line(&mut self) {
        self.flush();
        self.out.push('\n');
        for _ in 0..self.depth {
            self.out.push_str("  ");
        }
    }
}
