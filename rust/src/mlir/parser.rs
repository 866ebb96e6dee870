//! The parser: its state, and the loop over ops.
//!
//! Ops nest through an explicit stack of [`Frame`]s, one for each op whose regions are being read, so
//! depth costs heap and not stack. What an op consists of is collected on stacks as well (operands,
//! result names, types, attributes, regions) and goes to the program's tables when the op is
//! complete, after its regions: that is when MLIR creates it, and the order in which uses are added
//! depends on it.

use super::cursor::{syntax, Cursor};
use super::resolve::{Call, Target};
use super::scopes::Scopes;
use crate::error::{Code, Diagnostic, Result, Span};
use crate::index::{BlockId, FuncId, OpId, StrId, TypeId};
use crate::ir::{
    Attr, AttrRange, Block, OpInfo, OpKind, OpTraits, Place, Program, Region, Syntax, TextPool,
};
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;

/// How deep regions may nest.
const MAX_DEPTH: usize = 10_000;

/// What is known about a name that ops have in the text.
#[derive(Clone, Copy)]
pub(super) struct OpName {
    pub id: StrId,
    pub kind: OpKind,
    pub syntax: Syntax,
    pub traits: OpTraits,
}

/// An operand as it stands in the text.
#[derive(Clone, Copy)]
pub(super) struct PendingOperand<'a> {
    pub name: &'a str,
    pub number: u32,
    pub span: Span,
}

/// A result name, `%x` or `%x:2`.
#[derive(Clone, Copy)]
pub(super) struct PendingResult<'a> {
    pub name: &'a str,
    pub count: u32,
    pub offset: u32,
}

/// An argument of a region's first block.
#[derive(Clone, Copy)]
pub(super) struct PendingArg<'a> {
    pub name: &'a str,
    pub offset: u32,
    pub ty: TypeId,
}

/// An op whose parts are being collected. The `usize`s are heights of the stacks at its start.
#[derive(Clone, Copy)]
pub(super) struct Building {
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
pub(super) enum After {
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
pub(super) struct Frame {
    pub building: Building,
    pub after: After,
    /// Where the region starts.
    region_start: u32,
    first_block: BlockId,
    /// The block that ops go to; `NONE` before there is one.
    block: BlockId,
}

pub(super) struct Parser<'a> {
    pub cursor: Cursor<'a>,
    pub program: Program,
    pub type_ids: FxHashMap<&'a str, TypeId>,
    op_names: FxHashMap<&'a str, OpName>,
    pub scopes: Scopes<'a>,
    pub frames: Vec<Frame>,
    /// The end of the last op, block label or opening brace.
    pub last_end: u32,
    pub operands: Vec<PendingOperand<'a>>,
    pub results: Vec<PendingResult<'a>>,
    pub types: Vec<TypeId>,
    pub attrs: Vec<Attr>,
    regions: Vec<(BlockId, Span)>,
    pub args: Vec<PendingArg<'a>>,
    /// Shardings and rules, read once all meshes are known.
    pub targets: Vec<(Target, Span)>,
    pub calls: Vec<Call>,
    /// The modules that are open.
    pub modules: Vec<OpId>,
    pub symbols: FxHashMap<(OpId, StrId), (OpId, Span)>,
    pub meshes: Vec<(OpId, Span)>,
    block_labels: FxHashSet<(u32, &'a str)>,
    label_uses: Vec<(u32, &'a str, Span)>,
    /// Ops with regions, and where their names stand.
    pub region_ops: Vec<(OpId, Span)>,
    /// Uses that came before the definition and have been moved to it.
    pub forward_uses: Vec<crate::index::UseId>,
    pub placeholder_op: OpId,
    pub key: Vec<u8>,
    pub sharding_names: [StrId; 2],
    has_all_aliases: bool,
}

/// Parses a module.
pub fn parse(source: Arc<str>) -> Result<Program> {
    if source.len() >= i32::MAX as usize {
        let message = "the text is 2 GiB or longer";
        return Err(Diagnostic::new(Code::ProgramTooLarge, message).into());
    }
    let text = source.clone();
    let mut parser = Parser::new(&text);
    parser.program.text = TextPool::new(source);
    parser.program.fresh_prefix = super::names::fresh_prefix(&text);
    parser.parse_top_level()?;
    parser.resolve()?;
    Ok(parser.program)
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
            key: Vec::new(),
            sharding_names,
            has_all_aliases: false,
        }
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
            self.program.ops[implicit.op].flags.set(crate::ir::OpFlags::ERASED);
            self.program.module = op;
            return Ok(());
        }
        self.regions.push((block, Span::EMPTY));
        self.add_regions(implicit.op, implicit.regions);
        let row = &mut self.program.ops[implicit.op];
        row.span = Span::new(0, end);
        self.program.module = implicit.op;
        Ok(())
    }

    /// What is known about `name`; ops of `func` and `builtin` may leave out the dialect.
    pub(super) fn op_name(&mut self, name: &'a str) -> OpName {
        if let Some(&known) = self.op_names.get(name) {
            return known;
        }
        let full = match name {
            "return" | "call" | "call_indirect" | "constant" | "func" => format!("func.{name}"),
            "module" | "unrealized_conversion_cast" => format!("builtin.{name}"),
            _ => name.to_owned(),
        };
        let info = OpInfo::by_name(&full);
        let made = OpName {
            id: self.program.strings.intern(&full),
            kind: info.map_or(OpKind::Other, |info| info.kind),
            syntax: info.map_or(Syntax::Generic, |info| info.syntax),
            traits: info.map_or(OpTraits::NONE, |info| info.traits),
        };
        self.op_names.insert(name, made);
        made
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
            return Err(self.cursor.expected("an op"));
        }
        let name = self.op_name(name);
        let mut building = self.begin(name, start, name_start);
        building.results = results;
        self.parse_custom(building)
    }
    /// Reads `%a, %b:2 =`.
    fn parse_result_names(&mut self) -> Result<()> {
        loop {
            self.cursor.skip_space();
            let offset = self.cursor.pos as u32;
            let name = self.parse_ssa_name()?;
            let mut count = 1;
            if self.cursor.eat(b':') {
                self.cursor.skip_space();
                let at = self.cursor.pos;
                let number = self.cursor.digits().filter(|&n| (1..1 << 28).contains(&n));
                let Some(number) = number else {
                    let span = self.cursor.here_from(at);
                    return Err(syntax(span, "expected how many results this names").into());
                };
                count = number as u32;
            }
            self.results.push(PendingResult { name, count, offset });
            if !self.cursor.eat(b',') {
                break;
            }
        }
        self.cursor.expect(b'=')?;
        self.cursor.skip_space();
        Ok(())
    }
    /// Reads `%name`, returns `name`.
    pub(super) fn parse_ssa_name(&mut self) -> Result<&'a str> {
        self.cursor.skip_space();
        if self.cursor.peek() != b'%' {
            return Err(self.cursor.expected("a value, '%name'"));
        }
        self.cursor.pos += 1;
        let name = self.cursor.ssa_name();
        if name.is_empty() {
            return Err(self.cursor.expected("a name after '%'"));
        }
        Ok(name)
    }
    /// Reads `%name` or `%name#2` onto the stack of operands.
    #[inline]
    pub(super) fn parse_operand(&mut self) -> Result<()> {
        self.cursor.skip_space();
        let start = self.cursor.pos;
        let name = self.parse_ssa_name()?;
        let mut number = 0;
        if self.cursor.peek() == b'#' {
            self.cursor.pos += 1;
            number = match self.cursor.digits().and_then(|n| u32::try_from(n).ok()) {
                Some(number) => number,
                None => return Err(self.cursor.expected("the number of a result")),
            };
        }
        let span = self.cursor.span_since(start);
        self.operands.push(PendingOperand { name, number, span });
        Ok(())
    }
    /// Reads operands separated by commas, up to `end`; the opening bracket was read.
    pub(super) fn parse_operands_to(&mut self, end: u8) -> Result<()> {
        if self.cursor.eat(end) {
            return Ok(());
        }
        loop {
            self.parse_operand()?;
            if !self.cursor.eat(b',') {
                return self.cursor.expect(end);
            }
        }
    }

    /// Reads the opening brace of a region of `building`'s op, whose first block has the arguments
    /// on the stack.
    pub(super) fn open_region(&mut self, building: Building, after: After) -> Result<()> {
        self.cursor.skip_space();
        let region_start = self.cursor.pos as u32;
        if self.frames.len() >= MAX_DEPTH {
            let message = format!("regions nest deeper than {MAX_DEPTH} levels");
            let span = self.cursor.here();
            return Err(Diagnostic::new(Code::NestedTooDeeply, message).at(span).into());
        }
        self.cursor.expect(b'{')?;
        self.last_end = self.cursor.pos as u32;
        self.scopes.enter(building.name.traits.has(OpTraits::ISOLATED));
        let mut block = BlockId::NONE;
        if !self.args.is_empty()
            || matches!(building.name.kind, OpKind::Module)
            || (building.function.is_some() && self.cursor.next_byte() != b'^')
        {
            block = self.new_block(BlockId::NONE);
            self.add_block_args(block)?;
        }
        let first_block = block;
        self.frames.push(Frame { building, after, region_start, first_block, block });
        Ok(())
    }
    /// Gives `block` the arguments on the stack, which is left empty.
    fn add_block_args(&mut self, block: BlockId) -> Result<()> {
        let args = std::mem::take(&mut self.args);
        self.program.add_block_args(
            block,
            args.iter()
                .map(|arg| (arg.ty, if arg.name.is_empty() { u32::MAX } else { arg.offset })),
        );
        let values = self.program.block_args(block);
        for (arg, value) in args.iter().zip(values) {
            if !arg.name.is_empty() {
                self.define(arg.name, value, 1, arg.offset)?;
            }
        }
        self.args = args;
        self.args.clear();
        Ok(())
    }
    /// Adds a block after `last`; its region is filled in when the op is complete.
    fn new_block(&mut self, last: BlockId) -> BlockId {
        let block = self.program.blocks.push(Block {
            region: crate::index::RegionId::NONE,
            next: BlockId::NONE,
            first_op: OpId::NONE,
            last_op: OpId::NONE,
            first_arg: crate::index::ValueId::NONE,
            num_args: 0,
            header: Span::EMPTY,
        });
        if let Some(last) = last.get() {
            self.program.blocks[last].next = block;
        }
        block
    }
    /// Parses `^bb0(%a: type loc(...), ...):`.
    fn parse_block_label(&mut self) -> Result<()> {
        let start = self.cursor.pos;
        self.cursor.pos += 1;
        let label = self.cursor.ssa_name();
        let span = self.cursor.span_since(start);
        if label.is_empty() {
            return Err(self.cursor.expected("the name of a block"));
        }
        if !self.block_labels.insert((self.scopes.current(), label)) {
            let message = format!("block ^{label} is defined twice");
            return Err(Diagnostic::new(Code::RedefinedSymbol, message).at(span).into());
        }
        if self.cursor.eat(b'(') && !self.cursor.eat(b')') {
            loop {
                self.cursor.skip_space();
                let offset = self.cursor.pos as u32;
                let name = self.parse_ssa_name()?;
                self.cursor.expect(b':')?;
                let ty = self.parse_type()?;
                self.skip_location()?;
                self.args.push(PendingArg { name, offset, ty });
                if !self.cursor.eat(b',') {
                    self.cursor.expect(b')')?;
                    break;
                }
            }
        }
        self.cursor.expect(b':')?;
        let last = self.frames.last().map_or(BlockId::NONE, |frame| frame.block);
        let header = Span::new(self.last_end, self.cursor.pos as u32);
        let block = self.new_block(last);
        self.program.blocks[block].header = header;
        self.last_end = header.end;
        self.add_block_args(block)?;
        if let Some(frame) = self.frames.last_mut() {
            frame.block = block;
            if frame.first_block.is_none() {
                frame.first_block = block;
            }
        }
        Ok(())
    }
    /// Reads `[^bb1, ^bb2]`.
    pub(super) fn parse_successors(&mut self) -> Result<()> {
        self.cursor.expect(b'[')?;
        loop {
            self.cursor.skip_space();
            let start = self.cursor.pos;
            if self.cursor.peek() != b'^' {
                return Err(self.cursor.expected("a block, '^name'"));
            }
            self.cursor.pos += 1;
            let label = self.cursor.ssa_name();
            let span = self.cursor.span_since(start);
            self.label_uses.push((self.scopes.current(), label, span));
            if !self.cursor.eat(b',') {
                return self.cursor.expect(b']');
            }
        }
    }
    fn check_labels(&self) -> Result<()> {
        for &(scope, label, span) in &self.label_uses {
            if !self.block_labels.contains(&(scope, label)) {
                let message = format!("there is no block ^{label} in this region");
                return Err(Diagnostic::new(Code::UnknownSymbol, message).at(span).into());
            }
        }
        Ok(())
    }
    /// Reads the closing brace of a region and what follows it.
    fn close_region(&mut self) -> Result<()> {
        self.cursor.pos += 1;
        let end = self.cursor.pos as u32;
        let isolation = self.scopes.isolation();
        let Some(frame) = self.frames.pop() else { return Ok(()) };
        if frame.building.name.traits.has(OpTraits::ISOLATED) {
            self.report_undefined(isolation)?;
        }
        self.scopes.leave();
        self.regions.push((frame.first_block, Span::new(frame.region_start, end)));
        self.last_end = end;
        self.after_region(frame.building, frame.after)
    }
    /// Gives `op` the regions on the stack above `base`.
    fn add_regions(&mut self, op: OpId, base: usize) {
        let count = self.regions.len() - base;
        if count == 0 {
            return;
        }
        let first = self.program.regions.next_id();
        for (first_block, span) in self.regions.drain(base..) {
            let region = self.program.regions.push(Region { op, first_block, span });
            let mut block = first_block;
            while block.is_some() {
                let row = &mut self.program.blocks[block];
                row.region = region;
                block = row.next;
            }
        }
        let row = &mut self.program.ops[op];
        row.first_region = first;
        row.num_regions = count as u32;
    }
    /// Adds a region that the text only implies.
    pub(super) fn push_implied_region(&mut self, block: BlockId) {
        self.regions.push((block, Span::EMPTY));
    }
    /// The first block of the `index`-th region that `building` has so far.
    pub(super) fn region_block(&self, building: &Building, index: usize) -> BlockId {
        self.regions.get(building.regions + index).map_or(BlockId::NONE, |region| region.0)
    }

    /// Completes an op whose types are on the stack: inputs first.
    pub(super) fn finish(&mut self, mut building: Building) -> Result<()> {
        let op = building.op;
        self.add_regions(op, building.regions);
        if building.is_generic {
            self.take_inherent(&mut building)?;
        }
        self.finish_operands(&building)?;
        self.finish_results(&building)?;
        self.note_meaning(&building)?;
        self.check_arity(&building)?;
        let end = self.cursor.pos;
        self.program.ops[op].loc = self.skip_location()?;
        if self.program.ops[op].loc == Span::EMPTY {
            self.cursor.pos = end;
        }
        self.program.ops[op].dict = building.dict;
        self.program.ops[op].span = Span::new(building.start, self.cursor.pos as u32);
        self.program.ops[op].signature = self.signature(&building);
        self.program.ops[op].attrs = self.flush_attrs(building.attrs);
        self.types.truncate(building.types);
        self.last_end = self.cursor.pos as u32;
        let Some(frame) = self.frames.last_mut() else { return Ok(()) };
        if frame.block.is_none() {
            let block = self.new_block(BlockId::NONE);
            if let Some(frame) = self.frames.last_mut() {
                (frame.block, frame.first_block) = (block, block);
            }
        }
        let block = self.frames.last().map_or(BlockId::NONE, |frame| frame.block);
        self.program.insert_op(op, Place::End(block));
        Ok(())
    }
    fn finish_operands(&mut self, building: &Building) -> Result<()> {
        let count = self.operands.len() - building.operands;
        if count != building.num_inputs {
            let (what, were) = (plural(count, "operand"), building.num_inputs);
            let message = format!("the op has {what}, but its type has {were}");
            let span = self.name_span(building);
            return Err(Diagnostic::new(Code::TypeMismatch, message).at(span).into());
        }
        if count == 0 {
            return Ok(());
        }
        // Resolving may add placeholder values, but no operand slots.
        let first = self.program.operands.next_id();
        for index in 0..count {
            let operand = self.operands[building.operands + index];
            let ty = self.types[building.types + index];
            let value = self.resolve_operand(operand, ty)?;
            self.program.push_operand(building.op, value, operand.span.start);
        }
        let row = &mut self.program.ops[building.op];
        row.num_operands = count as u32;
        row.first_operand = first;
        self.operands.truncate(building.operands);
        Ok(())
    }
    fn finish_results(&mut self, building: &Building) -> Result<()> {
        let types = building.types + building.num_inputs..self.types.len();
        let count = types.len();
        let names = building.results..self.results.len();
        let named: usize = self.results[names.clone()].iter().map(|name| name.count as usize).sum();
        if named != count && !(names.is_empty()) {
            let message = format!(
                "the op has {}, but {named} {} named",
                plural(count, "result"),
                if named == 1 { "is" } else { "are" }
            );
            let start = self.results[names.start].offset;
            let span = Span::new(start, self.name_span(building).end);
            return Err(Diagnostic::new(Code::TypeMismatch, message).at(span).into());
        }
        let first = self.program.values.next_id();
        let mut name = names.start;
        let mut left = self.results.get(name).map_or(0, |name| name.count);
        let (op, results) = (building.op, &self.results);
        let rows = self.types[types].iter().map(|&ty| {
            if left == 0 {
                name += 1;
                left = results.get(name).map_or(u32::MAX, |name| name.count);
            }
            left -= 1;
            (ty, results.get(name).map_or(u32::MAX, |name| name.offset))
        });
        self.program.add_results(op, rows);
        let mut value = crate::index::Id::index(first);
        for index in names {
            let PendingResult { name, count, offset } = self.results[index];
            self.define(name, crate::index::Id::from_index(value), count, offset)?;
            value += count as usize;
        }
        self.results.truncate(building.results);
        Ok(())
    }
    /// Moves the attributes above `base` to the program's table.
    pub(super) fn flush_attrs(&mut self, base: usize) -> AttrRange {
        let range = self.program.add_attrs(&self.attrs[base..]);
        self.attrs.truncate(base);
        range
    }
    /// Where the op's name stands.
    pub(super) fn name_span(&self, building: &Building) -> Span {
        let mut cursor = Cursor::new(self.cursor.text(), building.name_start as usize);
        if cursor.peek() == b'"' {
            // It was read once, so it is closed.
            let _ = cursor.string();
        } else {
            cursor.name();
        }
        cursor.span_since(building.name_start as usize)
    }

    /// Reads `loc(...)` if it is next; the span of what is between the parentheses.
    pub(super) fn skip_location(&mut self) -> Result<Span> {
        self.cursor.skip_space();
        let bytes = self.cursor.text().as_bytes();
        if !bytes.get(self.cursor.pos..).is_some_and(|rest| rest.starts_with(b"loc")) {
            return Ok(Span::EMPTY);
        }
        let start = self.cursor.pos;
        if !self.cursor.eat_keyword("loc") || self.cursor.next_byte() != b'(' {
            self.cursor.pos = start;
            return Ok(Span::EMPTY);
        }
        let open = self.cursor.pos;
        self.cursor.skip_balanced()?;
        Ok(Span::new(open as u32 + 1, self.cursor.pos as u32 - 1))
    }
    /// Reads `#name = ...` or `!name = ...`.
    fn parse_alias_definition(&mut self) -> Result<()> {
        let start = self.cursor.pos;
        self.cursor.pos += 1;
        let name = self.cursor.ssa_name();
        if name.is_empty() {
            return Err(self.cursor.expected("the name of an alias"));
        }
        let name = self.cursor.since(start);
        self.cursor.expect(b'=')?;
        self.cursor.skip_space();
        let body = self.cursor.pos;
        if name.starts_with('!') {
            super::types::skip_type(&mut self.cursor)?;
        } else {
            self.skip_whole_attribute()?;
        }
        let span = self.cursor.span_since(body);
        let id = self.program.strings.intern(name);
        self.program.aliases.insert(id, span);
        self.program.alias_definitions.push(self.cursor.span_since(start));
        self.last_end = self.cursor.pos as u32;
        Ok(())
    }
    /// The body of type alias `name`, which is used at `span`.
    pub(super) fn alias_body(&mut self, name: &str, span: Span) -> Result<Span> {
        if let Some(&body) =
            self.program.strings.find(name).and_then(|id| self.program.aliases.get(&id))
        {
            return Ok(body);
        }
        if !self.has_all_aliases {
            self.has_all_aliases = true;
            self.find_type_aliases();
            return self.alias_body(name, span);
        }
        let message = format!("there is no type alias {name}");
        Err(Diagnostic::new(Code::UnknownSymbol, message).at(span).into())
    }
    /// Looks ahead for type aliases that are defined after their use.
    fn find_type_aliases(&mut self) {
        let text = self.cursor.text();
        let mut offset = 0;
        for line in text.split_inclusive('\n') {
            let start = offset + line.len() - line.trim_start().len();
            offset += line.len();
            if text.as_bytes().get(start) != Some(&b'!') {
                continue;
            }
            let mut cursor = Cursor::new(text, start + 1);
            cursor.ssa_name();
            let name = cursor.since(start);
            if !cursor.eat(b'=') {
                continue;
            }
            cursor.skip_space();
            let body = cursor.pos;
            if super::types::skip_type(&mut cursor).is_ok() {
                let id = self.program.strings.intern(name);
                self.program.aliases.insert(id, cursor.span_since(body));
            }
        }
    }
    /// Reads `{-# ... #-}`.
    fn skip_resources(&mut self) -> Result<()> {
        let start = self.cursor.pos;
        self.cursor.pos += 3;
        loop {
            match self.cursor.next_byte() {
                b'"' => {
                    self.cursor.string()?;
                }
                b'#' if self.cursor.eat_str("#-}") => break,
                0 if self.cursor.at_end() => {
                    let open = Span::new(start as u32, start as u32 + 3);
                    return Err(syntax(open, "expected '#-}' after this").into());
                }
                _ => self.cursor.pos += 1,
            }
        }
        self.program.alias_definitions.push(self.cursor.span_since(start));
        self.last_end = self.cursor.pos as u32;
        Ok(())
    }
}

/// `1 operand`, `2 operands`.
pub(super) fn plural(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}
