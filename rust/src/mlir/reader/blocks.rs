//! Regions and blocks.

use crate::error::{Code, Diagnostic, Error, Result, Span};
use crate::index::{BlockId, OpId};
use crate::ir::{OpKind, OpTraits, NO_NAME};

/// The deepest nesting of regions. The parser needs no limit, but cloning of ops is recursive.
const MAX_DEPTH: usize = 2_000;
use super::parser::{After, OpenRegion, Parser, PendingOp};
use super::parts::PendingArg;

impl Parser<'_> {
    /// Reads the opening brace of a region of `pending`'s op, whose first block has the arguments
    /// on the stack.
    pub(super) fn open_region(&mut self, pending: PendingOp, after: After) -> Result<()> {
        self.cursor.skip_space();
        let start = self.cursor.pos as u32;
        if self.open_regions.len() > MAX_DEPTH {
            let message = format!("regions nest deeper than {MAX_DEPTH} levels");
            let span = self.cursor.here();
            return Err(Diagnostic::new(Code::NestedTooDeeply, message).at(span).into());
        }
        self.cursor.expect_for(b'{', "to begin a region")?;
        self.last_end = self.cursor.pos as u32;
        self.names.enter(pending.name.traits.has(OpTraits::ISOLATED));
        let mut block = BlockId::NONE;
        if !self.parts.args.is_empty()
            || matches!(pending.name.kind, OpKind::Module)
            || (pending.function.is_some() && self.cursor.next_byte() != b'^')
        {
            block = self.program.push_block(Span::EMPTY);
            self.check_entry_args()?;
            self.add_block_args(block).map_err(of_entry)?;
        }
        let first_block = block;
        self.open_regions.push(OpenRegion { pending, after, start, first_block, block });
        Ok(())
    }
    /// Checks that no region argument on the stack has a name that was used before.
    fn check_entry_args(&self) -> Result<()> {
        match self.parts.args.iter().find(|arg| self.names.is_awaited(arg.name)) {
            None => Ok(()),
            Some(arg) => {
                let message = format!("region entry argument '%{}' is already in use", arg.name);
                let span = Span::new(arg.offset, arg.offset + 1 + arg.name.len() as u32);
                Err(Diagnostic::new(Code::RedefinedValue, message).at(span).into())
            }
        }
    }
    /// Adds the arguments on the stack to `block` and empties the stack.
    pub(super) fn add_block_args(&mut self, block: BlockId) -> Result<()> {
        let args = std::mem::take(&mut self.parts.args);
        for arg in &args {
            let name = if arg.name.is_empty() { NO_NAME } else { arg.offset };
            self.program.push_block_arg(block, arg.ty, name);
        }
        for (arg, value) in args.iter().zip(self.program.block_args(block)) {
            if !arg.name.is_empty() {
                self.define(arg.name, value, 1)?;
            }
        }
        self.parts.args = args;
        self.parts.args.clear();
        Ok(())
    }
    /// Parses `^bb0(%a: type loc(...), ...):`.
    pub(super) fn parse_block_label(&mut self) -> Result<()> {
        let start = self.cursor.pos;
        self.cursor.pos += 1;
        let label = self.cursor.ssa_name();
        let span = self.cursor.span_since(start);
        if label.is_empty() {
            return Err(self.cursor.expected("the name of a block"));
        }
        let block = self.program.next_block_id();
        self.labels.define(self.names.region(), label, span, block)?;
        if self.cursor.eat(b'(') && !self.cursor.eat(b')') {
            loop {
                self.cursor.skip_space();
                let offset = self.cursor.pos as u32;
                let name = self.parse_ssa_name()?;
                self.cursor.expect_for(b':', "and type for SSA operand")?;
                let ty = self.parse_type()?;
                self.skip_argument_location()?;
                self.parts.args.push(PendingArg { name, offset, ty });
                if !self.cursor.eat(b',') {
                    self.cursor.expect(b')')?;
                    break;
                }
            }
        }
        self.cursor.expect_for(b':', "after block name")?;
        let last = self.open_regions.last().map_or(BlockId::NONE, |region| region.block);
        let header = Span::new(self.last_end, self.cursor.pos as u32);
        let block = self.program.push_block(header);
        if let Some(last) = last.get() {
            self.program.chain_block(last, block);
        }
        self.last_end = header.end;
        self.add_block_args(block)?;
        if let Some(region) = self.open_regions.last_mut() {
            region.block = block;
            if region.first_block.is_none() {
                region.first_block = block;
            }
        }
        Ok(())
    }
    /// Reads `[^bb1, ^bb2]`, the successors of `op`.
    pub(super) fn parse_successors(&mut self, op: OpId) -> Result<()> {
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
            self.labels.note_use(self.names.region(), label, span, op);
            if !self.cursor.eat(b',') {
                return self.cursor.expect(b']');
            }
        }
    }
    /// Reads the closing brace of the innermost region.
    pub(super) fn close_region(&mut self) -> Result<Option<(PendingOp, After)>> {
        self.cursor.pos += 1;
        let end = self.cursor.pos as u32;
        let Some(region) = self.open_regions.pop() else { return Ok(None) };
        let OpenRegion { pending, after, start, first_block, .. } = region;
        self.names.leave(&self.program, pending.name.traits.has(OpTraits::ISOLATED))?;
        self.parts.regions.push((first_block, Span::new(start, end)));
        self.last_end = end;
        Ok(Some((pending, after)))
    }
    /// The block that ops are added to; it is made if the region has none yet.
    pub(super) fn current_block(&mut self) -> BlockId {
        let Some(block) = self.open_regions.last().map(|region| region.block) else {
            return BlockId::NONE;
        };
        if block.is_some() {
            return block;
        }
        let block = self.program.push_block(Span::EMPTY);
        if let Some(region) = self.open_regions.last_mut() {
            (region.block, region.first_block) = (block, block);
        }
        block
    }
    /// Adds the regions on the stack above `base` to `op`.
    pub(super) fn add_regions(&mut self, op: OpId, base: usize) {
        for (first_block, span) in self.parts.regions.drain(base..) {
            let region = self.program.push_region(op, span);
            self.program.adopt_blocks(region, first_block);
        }
    }
    /// Adds a region that the text implies.
    pub(super) fn push_implied_region(&mut self, block: BlockId) {
        self.parts.regions.push((block, Span::EMPTY));
    }
    /// The first block of the `index`-th region that was read for `pending`.
    pub(super) fn region_block(&self, pending: &PendingOp, index: usize) -> BlockId {
        self.parts
            .regions
            .get(pending.base.regions + index)
            .map_or(BlockId::NONE, |region| region.0)
    }
}

/// `error` as reported for arguments before a region.
fn of_entry(mut error: Error) -> Error {
    for problem in &mut error.diagnostics {
        if let Some(name) = problem.message.strip_prefix("redefinition of SSA value ") {
            problem.message = format!("region entry argument {name} is already in use");
        }
    }
    error
}
