//! Regions and blocks.

use crate::error::{Code, Diagnostic, Result, Span};
use crate::index::{BlockId, OpId, RegionId, ValueId};
use crate::ir::{Block, OpKind, OpTraits, Region};
use crate::mlir::reader::parser::{After, Building, Frame, Parser, PendingArg, MAX_DEPTH};

impl Parser<'_> {
    /// Reads the opening brace of a region of `building`'s op, whose first block has the arguments
    /// on the stack.
    pub(in crate::mlir) fn open_region(&mut self, building: Building, after: After) -> Result<()> {
        self.cursor.skip_space();
        let region_start = self.cursor.pos as u32;
        if self.frames.len() > MAX_DEPTH {
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
    pub(in crate::mlir) fn add_block_args(&mut self, block: BlockId) -> Result<()> {
        let args = std::mem::take(&mut self.args);
        self.program.add_block_args(
            block,
            args.iter()
                .map(|arg| (arg.ty, if arg.name.is_empty() { u32::MAX } else { arg.offset })),
        );
        let values = self.program.block_args(block);
        for (arg, value) in args.iter().zip(values) {
            if !arg.name.is_empty() {
                self.define(arg.name, value, 1)?;
            }
        }
        self.args = args;
        self.args.clear();
        Ok(())
    }
    /// Adds a block after `last`; its region is filled in when the op is complete.
    pub(in crate::mlir) fn new_block(&mut self, last: BlockId) -> BlockId {
        let block = self.program.blocks.push(Block {
            region: RegionId::NONE,
            next: BlockId::NONE,
            first_op: OpId::NONE,
            last_op: OpId::NONE,
            first_arg: ValueId::NONE,
            num_args: 0,
            header: Span::EMPTY,
        });
        if let Some(last) = last.get() {
            self.program.blocks[last].next = block;
        }
        block
    }
    /// Parses `^bb0(%a: type loc(...), ...):`.
    pub(in crate::mlir) fn parse_block_label(&mut self) -> Result<()> {
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
    pub(in crate::mlir) fn parse_successors(&mut self) -> Result<()> {
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
    pub(in crate::mlir) fn check_labels(&self) -> Result<()> {
        for &(scope, label, span) in &self.label_uses {
            if !self.block_labels.contains(&(scope, label)) {
                let message = format!("there is no block ^{label} in this region");
                return Err(Diagnostic::new(Code::UnknownSymbol, message).at(span).into());
            }
        }
        Ok(())
    }
    /// Reads the closing brace of a region and what follows it.
    pub(in crate::mlir) fn close_region(&mut self) -> Result<()> {
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
    pub(in crate::mlir) fn add_regions(&mut self, op: OpId, base: usize) {
        let count = self.regions.len() - base;
        if count == 0 {
            return;
        }
        let first = self.program.regions.next_id();
        for (first_block, span) in self.regions.drain(base..) {
            let row = Region { op, first_block, last_block: BlockId::NONE, span };
            let region = self.program.regions.push(row);
            let (mut block, mut last_block) = (first_block, BlockId::NONE);
            while block.is_some() {
                last_block = block;
                let row = &mut self.program.blocks[block];
                row.region = region;
                block = row.next;
            }
            self.program.regions[region].last_block = last_block;
        }
        let row = &mut self.program.ops[op];
        row.first_region = first;
        row.num_regions = count as u32;
    }
    /// Adds a region that the text only implies.
    pub(in crate::mlir) fn push_implied_region(&mut self, block: BlockId) {
        self.regions.push((block, Span::EMPTY));
    }
    /// The first block of the `index`-th region that `building` has so far.
    pub(in crate::mlir) fn region_block(&self, building: &Building, index: usize) -> BlockId {
        self.regions.get(building.regions + index).map_or(BlockId::NONE, |region| region.0)
    }
}
