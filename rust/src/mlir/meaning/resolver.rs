//! The state of the resolver, and the wording of errors in attributes.

use super::notes::Notes;
use super::wording::in_own_syntax;
use crate::error::{Diagnostic, Error, Span};
use crate::index::{OpId, ShardingId};
use crate::ir::{Findings, Program};
use rustc_hash::FxHashMap;
use std::rc::Rc;

/// The most aliases that are resolved for one attribute; aliases may be cyclic.
const MAX_ALIASES: usize = 16;

/// Resolves the records of a program.
pub(super) struct Resolver<'p, 'a> {
    pub notes: &'p Notes<'a>,
    pub program: &'p mut Program,
    pub findings: Findings,
    /// The shardings of each valid text; the key is whether the text is a list, and the text.
    pub known: FxHashMap<(bool, &'a str), Rc<[ShardingId]>>,
}

impl<'p, 'a> Resolver<'p, 'a> {
    /// The initial state; `findings` has the errors so far.
    pub fn new(notes: &'p Notes<'a>, program: &'p mut Program, findings: Findings) -> Self {
        Self { notes, program, findings, known: FxHashMap::default() }
    }
    /// The text at `span`, or the definition if it is an attribute alias.
    pub fn attribute_text(&self, span: Span) -> (&'a str, u32) {
        let mut span = span;
        for _ in 0..MAX_ALIASES {
            let text = self.notes.text_at(span);
            let alias = self.program.strings().find(text).filter(|_| text.starts_with('#'));
            match alias.and_then(|id| self.program.alias(id)) {
                Some(body) => span = body,
                None => break,
            }
        }
        (self.notes.text_at(span), span.start)
    }
    /// The byte before `span`.
    fn byte_before(&self, span: Span) -> Option<&u8> {
        self.notes.text.as_bytes().get((span.start as usize).checked_sub(1)?)
    }
    /// Adds a syntax error in an attribute of `op`; `is_own` is whether it is in the op's custom
    /// syntax.
    pub fn unreadable(&mut self, op: OpId, is_own: bool, error: Error) {
        let span = self.program.name_span(op).unwrap_or_default();
        let is_own = is_own && self.byte_before(span) != Some(&b'"');
        let name = self.program.op_name(op);
        let error = if is_own { in_own_syntax(name, error) } else { error };
        for problem in error.diagnostics {
            self.findings.add(op, problem);
        }
    }
    /// Adds the errors `found` in an attribute of `op`, whose messages start with `subject`.
    pub fn wrong(&mut self, op: OpId, subject: &str, found: impl IntoIterator<Item = Diagnostic>) {
        for mut problem in found {
            problem.message.insert_str(0, subject);
            self.findings.add(op, self.program.reported_at(op, problem));
        }
    }
}
