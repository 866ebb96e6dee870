//! Adds rows to the tables. Only these methods add rows, and they keep the printer's tables as long as the
//! program's. An op's operands, results and regions are consecutive rows, which are added one by one.

use super::{
    Block, Function, Op, OpFlags, OpKind, OpText, Operand, Port, PortRange, Program, Region, Span,
    Value, ValueDef, NO_NAME,
};
use crate::index::{
    BlockId, FuncId, Id, OpId, PayloadId, RegionId, ShardingId, SignatureId, StrId, TypeId, UseId,
    ValueId,
};

impl Program {
    /// Reserves memory, if available, for `ops` more ops with a typical number of values and
    /// operands, since a table that grows needs its old and its new memory at the same time.
    pub fn reserve(&mut self, ops: usize) {
        let (values, operands) = (ops + ops / 8, ops + ops / 2);
        self.ops.reserve(ops);
        self.attr_ranges.reserve(ops);
        self.printing.ops.reserve(ops);
        self.printing.flags.reserve(ops);
        self.values.reserve(values);
        self.printing.value_names.reserve(values);
        self.value_shardings.reserve(values);
        self.operands.reserve(operands);
        self.printing.operand_names.reserve(operands);
    }
    /// Adds an op of which only the name is known, in no block yet.
    pub(crate) fn push_op(&mut self, name: StrId, kind: OpKind) -> OpId {
        let traits = self.kinds.traits_of(name, self.strings.get(name), kind);
        self.push_op_row(Op {
            name,
            kind,
            traits,
            is_erased: false,
            first_operand: UseId::NONE,
            num_operands: 0,
            first_result: ValueId::NONE,
            num_results: 0,
            first_region: RegionId::NONE,
            num_regions: 0,
            parent: BlockId::NONE,
            prev: OpId::NONE,
            next: OpId::NONE,
            order: 0,
            signature: SignatureId::NONE,
            payload: PayloadId::NONE,
        })
    }
    /// Adds an op.
    #[inline]
    pub(super) fn push_op_row(&mut self, row: Op) -> OpId {
        self.kinds.added(self.ops.next_id(), row.kind, row.name);
        self.attr_ranges.push(super::AttrRange::default());
        self.printing.ops.push(OpText::default());
        self.printing.flags.push(OpFlags::default());
        self.ops.push(row)
    }
    /// Adds an operand to `op`, which must be the op that the last operand was added to; `text` is
    /// the offset of its name.
    #[inline(always)]
    pub(crate) fn push_operand(&mut self, op: OpId, value: ValueId, text: u32) {
        let slot = self.operands.push(Operand {
            value,
            owner: op,
            next_use: UseId::NONE,
            prev_use: UseId::NONE,
        });
        self.printing.operand_names.push(text);
        let row = &mut self.ops[op];
        if row.num_operands == 0 {
            row.first_operand = slot;
        }
        debug_assert_eq!(row.first_operand.index() + row.num_operands as usize, slot.index());
        row.num_operands += 1;
        self.link_use(slot, value);
    }
    /// Adds a result to `op`, which must be the owner of the last value added; `name` is the offset
    /// of its name.
    #[inline(always)]
    pub(crate) fn push_result(&mut self, op: OpId, ty: TypeId, name: u32) -> ValueId {
        let value = self.push_value(Value::new(ty, ValueDef::Result(op)), name, ShardingId::NONE);
        let row = &mut self.ops[op];
        if row.num_results == 0 {
            row.first_result = value;
        }
        debug_assert_eq!(row.first_result.index() + row.num_results as usize, value.index());
        row.num_results += 1;
        value
    }
    /// Adds an argument to `block`, which must be the owner of the last value added; `name` is the
    /// offset of its name.
    pub(crate) fn push_block_arg(&mut self, block: BlockId, ty: TypeId, name: u32) -> ValueId {
        let value = self.push_value(Value::new(ty, ValueDef::Arg(block)), name, ShardingId::NONE);
        let row = &mut self.blocks[block];
        if row.num_args == 0 {
            row.first_arg = value;
        }
        debug_assert_eq!(row.first_arg.index() + row.num_args as usize, value.index());
        row.num_args += 1;
        value
    }
    /// Adds a value; the caller adds it to the results of an op or the arguments of a block.
    #[inline]
    pub(super) fn push_value(&mut self, value: Value, name: u32, sharding: ShardingId) -> ValueId {
        self.printing.value_names.push(name);
        self.value_shardings.push(sharding);
        self.values.push(value)
    }
    /// Adds a region without blocks to `op`, which must be the op that the last region was added
    /// to.
    pub(crate) fn push_region(&mut self, op: OpId, span: Span) -> RegionId {
        let (first_block, last_block) = (BlockId::NONE, BlockId::NONE);
        let region = self.regions.push(Region { op, first_block, last_block });
        self.printing.region_spans.push(span);
        let row = &mut self.ops[op];
        if row.num_regions == 0 {
            row.first_region = region;
        }
        debug_assert_eq!(row.first_region.index() + row.num_regions as usize, region.index());
        row.num_regions += 1;
        region
    }
    /// Adds a block that is in no region yet.
    pub(crate) fn push_block(&mut self, header: Span) -> BlockId {
        self.printing.block_headers.push(header);
        self.blocks.push(Block {
            region: RegionId::NONE,
            next: BlockId::NONE,
            first_op: OpId::NONE,
            last_op: OpId::NONE,
            first_arg: ValueId::NONE,
            num_args: 0,
        })
    }
    /// The id of the block that [`Program::push_block`] makes next.
    pub(crate) fn next_block_id(&self) -> BlockId {
        self.blocks.next_id()
    }
    /// Puts `block` at the end of `region`.
    pub(super) fn append_block(&mut self, region: RegionId, block: BlockId) {
        self.blocks[block].region = region;
        match self.regions[region].last_block.get() {
            Some(last) => self.blocks[last].next = block,
            None => self.regions[region].first_block = block,
        }
        self.regions[region].last_block = block;
    }
    /// Adds the function of `op`, without arguments, results and body.
    pub(crate) fn push_function(&mut self, op: OpId, name: StrId) -> FuncId {
        self.printing.functions.push(super::FunctionText::default());
        let (args, results) = (PortRange::default(), PortRange::default());
        let body = BlockId::NONE;
        self.functions.push(Function { op, name, is_private: false, body, args, results })
    }
    /// Adds a port; `dict` is its dictionary in the text, or where one would be inserted.
    pub(super) fn push_port(&mut self, port: Port, dict: Span) -> usize {
        self.printing.port_dicts.push(dict);
        self.ports.push(port);
        self.ports.len() - 1
    }
}

impl Program {
    /// Adds these operands, which are not in the text, to `op`.
    pub(super) fn push_operands(&mut self, op: OpId, values: &[ValueId]) {
        for &value in values {
            self.push_operand(op, value, NO_NAME);
        }
    }
}
