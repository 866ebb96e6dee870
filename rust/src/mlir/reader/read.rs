//! The main loop of the parser: parses ops one after the other, without recursion.

use super::nuls::blanked;
use super::op_names::dialect_of_short;
use super::parser::{After, OpenRegion, Parser, PendingOp};
use crate::error::{Code, Diagnostic, Error, Result, Span};
use crate::index::{BlockId, SignatureId};
use crate::ir::{AttrRange, Findings, OpKind, OpText, Program, Source};
use crate::memory;
use crate::mlir::cursor::syntax;
use crate::shardy::Version;
use std::sync::Arc;

/// The most memory for a byte of text while it is parsed: about 22 bytes for the shortest ops.
const BYTES_PER_BYTE: usize = 24;

/// Parses a module for the newest version of Shardy.
pub fn parse(source: Arc<str>) -> Result<Program> {
    parse_shared(Arc::new(source), Version::NEWEST)
}

/// Parses a module for version `shardy`, without copying its text.
pub fn parse_shared(source: Source, shardy: Version) -> Result<Program> {
    let parsed = read(source, shardy)?;
    Error::check(parsed.findings.problems)?;
    Ok(parsed.program)
}

/// A module that could be parsed, with the errors found in it.
pub struct Parsed {
    /// The module, without invalid attributes.
    pub program: Program,
    /// The errors found.
    pub findings: Findings,
}

/// Parses a module for version `shardy`, without copying its text. Fails only on syntax errors;
/// other errors are returned with the module.
pub fn read(source: Source, shardy: Version) -> Result<Parsed> {
    let given = source.clone();
    let parsed = read_without_nuls(source, shardy);
    let problems = match &parsed {
        Ok(parsed) => &parsed.findings.problems,
        Err(error) => &error.diagnostics,
    };
    if !problems.iter().any(|problem| problem.code == Code::Syntax) {
        return parsed;
    }
    match blanked((*given).as_ref()) {
        None => parsed,
        Some(text) => read_without_nuls(Arc::new(text), shardy),
    }
}

/// [`read`] for a text without NUL characters between tokens.
fn read_without_nuls(source: Source, shardy: Version) -> Result<Parsed> {
    let shared = source.clone();
    let text: &str = (*shared).as_ref();
    if text.len() >= i32::MAX as usize {
        let message = "the text is 2 GiB or longer";
        return Err(Diagnostic::new(Code::ProgramTooLarge, message).into());
    }
    memory::ensure(text.len().saturating_mul(BYTES_PER_BYTE), "parsing the program")?;
    let mut parser = Parser::new(text, Program::from_source(source, shardy));
    parser.reserve();
    parser.parse_top_level()?;
    let successors = parser.labels.successors()?;
    parser.names.check_dominance(&parser.program)?;
    let mut findings = parser.notes.resolve(&mut parser.program);
    findings.successors = Some(successors);
    findings.problems.extend(parser.location_aliases.problems(&parser.program));
    Ok(Parsed { program: parser.program, findings })
}

impl Parser<'_> {
    /// Reserves memory for 1.5 ops for each line, since some ops are implied, and passes add more.
    fn reserve(&mut self) {
        /// The largest number of ops to reserve space for.
        const MAX_RESERVED: usize = 1 << 24;
        /// The largest number of distinct ops to reserve memory for.
        const MAX_DIFFERENT: usize = 1 << 8;
        /// The usual length of the key of a signature, in bytes.
        const USUAL_KEY: usize = 1 << 7;
        let text = self.cursor.text();
        let lines = memchr::memchr_iter(b'\n', text.as_bytes()).count();
        let ops = (lines + lines / 2).min(text.len() / 24).min(MAX_RESERVED);
        self.program.reserve(ops);
        // Most programs repeat a few hundred different lines.
        let different = ops.min(MAX_DIFFERENT);
        self.program
            .signatures_mut()
            .reserve(different, text.len().min(MAX_DIFFERENT * USUAL_KEY) / 4);
        self.templates.reserve(different);
        self.names.reserve(different);
    }
    /// Parses everything: ops, and aliases and resources between them.
    fn parse_top_level(&mut self) -> Result<()> {
        let name = self.op_names.get(&mut self.program, "builtin.module");
        let implicit = self.begin(name, 0, 0);
        self.notes.enter_module(implicit.op);
        self.names.enter(true);
        let block = self.program.push_block(Span::EMPTY);
        let after = After::Nothing;
        self.open_regions.push(OpenRegion {
            pending: implicit,
            after,
            start: 0,
            first_block: block,
            block,
        });
        loop {
            let is_top = self.open_regions.len() == 1;
            match self.cursor.next_byte() {
                b'}' if !is_top => {
                    if let Some((pending, after)) = self.close_region()? {
                        self.after_region(pending, after)?;
                    }
                }
                b'^' if !is_top => self.parse_block_label()?,
                b'#' | b'!' if is_top => self.parse_alias_definition()?,
                b'{' if is_top && self.cursor.text()[self.cursor.pos..].starts_with("{-#") => {
                    self.skip_resources()?;
                }
                0 if self.cursor.at_end() => break,
                _ => self.parse_op()?,
            }
        }
        if self.open_regions.len() > 1 {
            let start = self.open_regions[self.open_regions.len() - 1].start;
            let open = Span::new(start, start + 1);
            let message = "expected '}', found the end of the text";
            return Err(syntax(self.cursor.here(), message)
                .with_related(open, "to close this")
                .into());
        }
        self.names.leave_last(&self.program)?;
        self.finish_module(implicit, block);
        Ok(())
    }
    /// The module op: the only top-level op if it is a module, else an implicit module around
    /// everything.
    fn finish_module(&mut self, implicit: PendingOp, block: BlockId) {
        let end = self.cursor.text().len() as u32;
        let first = self.program.first_op(block);
        let only = first.get().filter(|&op| op == self.program.last_op(block));
        if let Some(op) = only.filter(|&op| self.program.kind(op) == OpKind::Module) {
            self.program.unlink_op(op);
            self.program.discard_op(implicit.op);
            self.program.end_of_text(op);
            return;
        }
        self.parts.regions.push((block, Span::EMPTY));
        self.add_regions(implicit.op, implicit.base.regions);
        let text = OpText { span: Span::new(0, end), ..OpText::default() };
        self.program.set_op_text(implicit.op, text, AttrRange::default(), SignatureId::NONE);
        self.program.end_of_text(implicit.op);
    }

    /// Checks that ops of `func` whose name omits the dialect are directly in a function, and those
    /// of `builtin` are not.
    fn check_short_name(&self, name: &str, start: u32) -> Result<()> {
        let Some(dialect) = dialect_of_short(name) else { return Ok(()) };
        let default = self.default_dialect();
        if dialect == default {
            return Ok(());
        }
        let span = Span::new(start, start + name.len() as u32);
        let place = if dialect == "func" { "only" } else { "not" };
        let message = format!(
            "custom op '{name}' is unknown (tried '{default}.{name}' as well): it is short for {dialect}.{name} directly in \
             a function {place}"
        );
        Err(syntax(span, message).with_hint(format!("write {dialect}.{name}")).into())
    }
    /// Parses an op up to its end or its first region.
    fn parse_op(&mut self) -> Result<()> {
        if self.parse_repeated()? {
            return Ok(());
        }
        let mark = self.mark();
        self.parse_new_op()?;
        self.keep_template(&mark);
        Ok(())
    }
    /// Parses an op without a template.
    fn parse_new_op(&mut self) -> Result<()> {
        let start = self.last_end;
        let results = self.parts.results.len();
        if self.cursor.peek() == b'%' {
            self.parse_result_names()?;
        }
        let name_start = self.cursor.pos as u32;
        if self.cursor.peek() == b'"' {
            let name = self.cursor.string()?;
            if name.is_empty() {
                let span = self.cursor.span_since(name_start as usize);
                return Err(syntax(span, "empty operation name is invalid").into());
            }
            let name = self.op_names.get(&mut self.program, name);
            let mut pending = self.begin(name, start, name_start);
            pending.base.results = results;
            pending.is_generic = true;
            return self.parse_generic(pending);
        }
        let name = self.cursor.name();
        if name.is_empty() {
            return Err(self.cursor.expected("operation name in quotes"));
        }
        self.check_short_name(name, name_start)?;
        let name = self.op_names.get(&mut self.program, name);
        let mut pending = self.begin(name, start, name_start);
        pending.base.results = results;
        self.parse_custom(pending)
    }
}
