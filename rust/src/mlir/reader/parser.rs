//! The parser: its state, and the loop over ops.
//!
//! Ops nest through an explicit stack of [`Frame`]s, one for each op whose regions are being read, so
//! depth costs heap and not stack. What an op consists of is collected on stacks as well (operands,
//! result names, types, attributes, regions) and goes to the program's tables when the op is
//! complete, after its regions: that is when MLIR creates it, and the order in which uses are added
//! depends on it.

use crate::error::{Code, Diagnostic, Error, Result, Span};
use crate::index::{BlockId, FuncId, OpId, StrId, TypeId};
use crate::ir::{Attr, Findings, OpInfo, OpKind, OpTraits, Program, Source, Syntax, TextPool};
use crate::mlir::cursor::{syntax, Cursor};
use crate::mlir::meaning::notes::Call;
use crate::mlir::meaning::target::Target;
use crate::mlir::names::scopes::Scopes;
use crate::mlir::reader::formats::{format_of, Part};
use crate::mlir::reader::repeated::Repeated;
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;

/// How deep regions may nest. Nothing here needs a limit; what clones ops goes down with them.
pub(in crate::mlir) const MAX_DEPTH: usize = 2_000;

/// What is known about a name that ops have in the text.
#[derive(Clone, Copy)]
pub(in crate::mlir) struct OpName {
    pub id: StrId,
    pub kind: OpKind,
    pub syntax: Syntax,
    pub traits: OpTraits,
    /// What stands in front of its dictionary, if it has a syntax of its own.
    pub format: &'static [Part],
}

/// An operand as it stands in the text.
#[derive(Clone, Copy)]
pub(in crate::mlir) struct PendingOperand<'a> {
    pub name: &'a str,
    pub number: u32,
    pub span: Span,
}

/// A result name, `%x` or `%x:2`.
#[derive(Clone, Copy)]
pub(in crate::mlir) struct PendingResult<'a> {
    pub name: &'a str,
    pub count: u32,
    pub offset: u32,
}

/// An argument of a region's first block.
#[derive(Clone, Copy)]
pub(in crate::mlir) struct PendingArg<'a> {
    pub name: &'a str,
    pub offset: u32,
    pub ty: TypeId,
}

/// An op whose parts are being collected. The `usize`s are heights of the stacks at its start.
#[derive(Clone, Copy)]
pub(in crate::mlir) struct Building {
    pub op: OpId,
    pub name: OpName,
    pub is_generic: bool,
    /// Where its text starts, leading space included.
    pub start: u32,
    /// Where its name starts.
    pub name_start: u32,
    pub operands: usize,
    pub results: usize,
    pub types: usize,
    pub num_inputs: usize,
    pub attrs: usize,
    pub regions: usize,
    /// From its name to its types or first region.
    pub syntax: Span,
    pub dict: Span,
    pub sharding: Option<Span>,
    pub rule: Option<Span>,
    /// What is between its operands and its types in the dialect's syntax: sdy ops only.
    pub payload: Span,
    pub function: FuncId,
}

/// What follows the region that is being read.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::mlir) enum After {
    /// More regions or `)`, then the rest of the generic form.
    Generic,
    /// Nothing but the location.
    Nothing,
    /// The body of a `stablehlo.while`.
    Do,
    /// An attribute dictionary, a colon, a function type.
    Signature,
    /// More regions or `)`, then the same.
    Regions,
}

/// An op whose regions are being read.
pub(in crate::mlir) struct Frame {
    pub building: Building,
    pub after: After,
    /// Where the region starts.
    pub region_start: u32,
    pub first_block: BlockId,
    /// The block that ops go to; `NONE` before there is one.
    pub block: BlockId,
}

pub(in crate::mlir) struct Parser<'a> {
    pub cursor: Cursor<'a>,
    pub program: Program,
    pub type_ids: FxHashMap<&'a str, TypeId>,
    pub op_names: FxHashMap<&'a str, OpName>,
    pub scopes: Scopes<'a>,
    pub repeated: Repeated,
    pub frames: Vec<Frame>,
    /// The end of the last op, block label or opening brace.
    pub last_end: u32,
    pub operands: Vec<PendingOperand<'a>>,
    pub results: Vec<PendingResult<'a>>,
    pub types: Vec<TypeId>,
    pub attrs: Vec<Attr>,
    pub regions: Vec<(BlockId, Span)>,
    pub args: Vec<PendingArg<'a>>,
    /// Shardings and rules, read once all meshes are known.
    pub targets: Vec<(Target, Span)>,
    pub calls: Vec<Call>,
    /// The modules that are open.
    pub modules: Vec<OpId>,
    pub symbols: FxHashMap<(OpId, StrId), (OpId, Span)>,
    pub meshes: Vec<(OpId, Span)>,
    pub block_labels: FxHashSet<(u32, &'a str)>,
    pub label_uses: Vec<(u32, &'a str, Span)>,
    /// Ops with regions, and where their names stand.
    pub region_ops: Vec<(OpId, Span)>,
    /// Uses that came before the definition and have been moved to it.
    pub forward_uses: Vec<crate::index::UseId>,
    pub placeholder_op: OpId,
    pub key: String,
    pub sharding_names: [StrId; 2],
    pub has_all_aliases: bool,
}

/// Parses a module.
pub fn parse(source: Arc<str>) -> Result<Program> {
    parse_shared(Arc::new(source))
}

/// Parses a module whose text stays where it is.
pub fn parse_shared(source: Source) -> Result<Program> {
    let parsed = read(source)?;
    Error::check(parsed.findings.problems)?;
    Ok(parsed.program)
}

/// A module that has the form of one.
pub struct Parsed {
    /// The module, without what made no sense.
    pub program: Program,
    /// What made no sense.
    pub findings: Findings,
}

/// Parses a module whose text stays where it is; fails if it does not have the form of one, whatever
/// may be wrong with what it says.
pub fn read(source: Source) -> Result<Parsed> {
    let shared = source.clone();
    let text: &str = (*shared).as_ref();
    if text.len() >= i32::MAX as usize {
        let message = "the text is 2 GiB or longer";
        return Err(Diagnostic::new(Code::ProgramTooLarge, message).into());
    }
    let mut parser = Parser::new(text);
    parser.program.text = TextPool::new(source);
    parser.program.fresh_prefix = crate::mlir::names::text::fresh_prefix(text);
    parser.reserve();
    parser.parse_top_level()?;
    let findings = parser.resolve()?;
    let program = &mut parser.program;
    program.signature_rules.signed_ops = program.ops.len();
    Ok(Parsed { program: parser.program, findings })
}

impl<'a> Parser<'a> {
    fn new(text: &'a str) -> Self {
        let mut program = Program::default();
        let sharding_names =
            [program.strings.intern("sdy.sharding"), program.strings.intern("sdy.sharding_rule")];
        Self {
            cursor: Cursor::new(text, 0),
            program,
            type_ids: FxHashMap::default(),
            op_names: FxHashMap::default(),
            scopes: Scopes::default(),
            repeated: Repeated::default(),
            frames: Vec::new(),
            last_end: 0,
            operands: Vec::new(),
            results: Vec::new(),
            types: Vec::new(),
            attrs: Vec::new(),
            regions: Vec::new(),
            args: Vec::new(),
            targets: Vec::new(),
            calls: Vec::new(),
            modules: Vec::new(),
            symbols: FxHashMap::default(),
            meshes: Vec::new(),
            block_labels: FxHashSet::default(),
            label_uses: Vec::new(),
            region_ops: Vec::new(),
            forward_uses: Vec::new(),
            placeholder_op: OpId::NONE,
            key: String::new(),
            sharding_names,
            has_all_aliases: false,
        }
    }

    /// Makes room for half as many ops again as there are lines: some are implied, and passes add more.
    fn reserve(&mut self) {
        /// Beyond this tables grow as they have to.
        const MAX_RESERVED: usize = 1 << 24;
        let text = self.cursor.text();
        let lines = memchr::memchr_iter(b'\n', text.as_bytes()).count();
        let ops = (lines + lines / 2).min(text.len() / 24).min(MAX_RESERVED);
        self.program.reserve(ops);
        self.scopes.prepare(text);
    }
    /// Parses everything: ops, and aliases and resources between them.
    fn parse_top_level(&mut self) -> Result<()> {
        let name = self.op_name("builtin.module");
        let implicit = self.begin(name, 0, 0);
        self.modules.push(implicit.op);
        self.scopes.enter(true);
        let block = self.new_block(BlockId::NONE);
        let after = After::Nothing;
        self.frames.push(Frame {
            building: implicit,
            after,
            region_start: 0,
            first_block: block,
            block,
        });
        loop {
            let is_top = self.frames.len() == 1;
            match self.cursor.next_byte() {
                b'}' if !is_top => self.close_region()?,
                b'^' if !is_top => self.parse_block_label()?,
                b'#' | b'!' if is_top => self.parse_alias_definition()?,
                b'{' if is_top && self.cursor.text()[self.cursor.pos..].starts_with("{-#") => {
                    self.skip_resources()?;
                }
                0 if self.cursor.at_end() => break,
                _ => self.parse_op()?,
            }
        }
        if self.frames.len() > 1 {
            let start = self.frames[self.frames.len() - 1].region_start;
            let open = Span::new(start, start + 1);
            let message = "expected '}', found the end of the text";
            return Err(syntax(self.cursor.here(), message)
                .with_related(open, "to close this")
                .into());
        }
        self.report_undefined(0)?;
        self.scopes.leave();
        self.finish_module(implicit, block)
    }
    /// The explicit module if that is all there is, else one around everything.
    fn finish_module(&mut self, implicit: Building, block: BlockId) -> Result<()> {
        let end = self.cursor.text().len() as u32;
        self.check_labels()?;
        let first = self.program.blocks[block].first_op;
        let only = first.get().filter(|&op| op == self.program.blocks[block].last_op);
        if let Some(op) = only.filter(|&op| self.program.kind(op) == OpKind::Module) {
            self.program.unlink_op(op);
            self.program.op_flags[implicit.op].set(crate::ir::OpFlags::ERASED);
            self.program.module = op;
            return Ok(());
        }
        self.regions.push((block, Span::EMPTY));
        self.add_regions(implicit.op, implicit.regions);
        self.program.op_texts[implicit.op].span = Span::new(0, end);
        self.program.module = implicit.op;
        Ok(())
    }

    /// What is known about `name`; ops of `func` and `builtin` may leave out the dialect.
    pub(in crate::mlir) fn op_name(&mut self, name: &'a str) -> OpName {
        if let Some(&known) = self.op_names.get(name) {
            return known;
        }
        let full = match name {
            "return" | "call" | "call_indirect" | "constant" => format!("func.{name}"),
            "module" | "unrealized_conversion_cast" => format!("builtin.{name}"),
            _ => name.to_owned(),
        };
        let info = OpInfo::by_name(&full);
        let made = OpName {
            id: self.program.strings.intern(&full),
            kind: info.map_or(OpKind::Other, |info| info.kind),
            syntax: info.map_or(Syntax::Generic, |info| info.syntax),
            traits: info.map_or(OpTraits::NONE, |info| info.traits),
            format: format_of(&full),
        };
        self.op_names.insert(name, made);
        made
    }
    /// Ops of `func` may leave out the dialect directly in a function only.
    fn check_short_name(&self, name: &str, start: u32) -> Result<()> {
        let is_short = matches!(name, "return" | "call" | "call_indirect" | "constant");
        let is_in_function =
            self.frames.last().is_some_and(|frame| frame.building.name.kind == OpKind::Func);
        if !is_short || is_in_function {
            return Ok(());
        }
        let span = Span::new(start, start + name.len() as u32);
        let message = format!("'{name}' is short for func.{name} directly in a function only");
        Err(syntax(span, message).with_hint(format!("write func.{name}")).into())
    }
    /// Starts an op.
    fn begin(&mut self, name: OpName, start: u32, name_start: u32) -> Building {
        Building {
            op: self.program.new_op_row(name.id, name.kind),
            name,
            is_generic: false,
            start,
            name_start,
            operands: self.operands.len(),
            results: self.results.len(),
            types: self.types.len(),
            num_inputs: 0,
            attrs: self.attrs.len(),
            regions: self.regions.len(),
            syntax: Span::EMPTY,
            dict: Span::EMPTY,
            sharding: None,
            rule: None,
            payload: Span::EMPTY,
            function: FuncId::NONE,
        }
    }
    /// Parses an op up to its end or its first region.
    fn parse_op(&mut self) -> Result<()> {
        if self.parse_repeated()? {
            return Ok(());
        }
        let mark = self.mark();
        self.parse_new_op()?;
        self.note_example(&mark);
        Ok(())
    }
    /// Parses an op piece by piece.
    fn parse_new_op(&mut self) -> Result<()> {
        let start = self.last_end;
        let results = self.results.len();
        if self.cursor.peek() == b'%' {
            self.parse_result_names()?;
        }
        let name_start = self.cursor.pos as u32;
        if self.cursor.peek() == b'"' {
            let name = self.cursor.string()?;
            let name = self.op_name(name);
            let mut building = self.begin(name, start, name_start);
            building.results = results;
            building.is_generic = true;
            return self.parse_generic(building);
        }
        let name = self.cursor.name();
        if name.is_empty() {
            return Err(self.cursor.expected("operation name in quotes"));
        }
        self.check_short_name(name, name_start)?;
        let name = self.op_name(name);
        let mut building = self.begin(name, start, name_start);
        building.results = results;
        self.parse_custom(building)
    }
}
