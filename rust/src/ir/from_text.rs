//! Edits that only the parser makes: they take spans of the source text, and do not mark ops as changed, since the text
//! already says what they set.
//!
//! Operands, results and regions are added to an op as they are read ([`Program::push_operand`] and
//! its like); blocks are read before the region around them is complete.

use super::{
    Attr, AttrRange, FunctionText, OpText, Payload, Program, Source, Span, TextPool, Value,
};
use super::{SignatureTable, ValueDef, NO_NAME};
use crate::index::{
    BlockId, FuncId, Id, OpId, RegionId, ShardingId, SignatureId, StrId, TypeId, ValueId,
};
use crate::shardy::Version;

impl Program {
    /// An empty program over `source`, for the version `shardy`.
    pub(crate) fn from_source(source: Source, shardy: Version) -> Self {
        Self { text: TextPool::new(source), shardy, ..Self::default() }
    }
    /// Ends the parse: records that all ops so far have their signatures.
    pub(crate) fn end_of_text(&mut self, module: OpId) {
        self.module = module;
        self.signature_rules.signed_ops = self.ops.len();
    }
    /// Discards an op that was begun, so that it is not part of the program.
    pub(crate) fn discard_op(&mut self, op: OpId) {
        self.mark_erased(op);
    }
    /// Adds a placeholder for a value that is used before its definition; `op`, its owner, is in no block.
    pub(crate) fn new_placeholder(&mut self, op: OpId, ty: TypeId) -> ValueId {
        self.push_value(Value::new(ty, ValueDef::Result(op)), NO_NAME, ShardingId::NONE)
    }
    /// The result `%x#number`, where `first` is the first value of the result group `%x:3`, whose
    /// ids are consecutive. `None` if `first` is not in a group of that size.
    #[inline]
    pub(crate) fn named_with(&self, first: ValueId, number: u32) -> Option<ValueId> {
        let (values, names) = (&self.values, &self.printing.value_names);
        let value = ValueId::from_index(first.index() + number as usize);
        let has_name = names.get(value) == Some(&names[first]);
        (has_name && values[first].def() == values[value].def()).then_some(value)
    }
    /// Makes the uses of `placeholder` uses of `value`, in the order of [`Program::replace_all_uses`].
    pub(crate) fn bind_placeholder(&mut self, placeholder: ValueId, value: ValueId) {
        while let Some(slot) = self.values[placeholder].first_use.get() {
            self.unlink_use(slot);
            self.link_use(slot, value);
        }
    }
    /// Sets the span, dictionary and signature of `op`.
    pub(crate) fn set_op_text(
        &mut self,
        op: OpId,
        text: OpText,
        attrs: AttrRange,
        signature: SignatureId,
    ) {
        self.printing.ops[op] = text;
        self.attr_ranges[op] = attrs;
        self.ops[op].signature = signature;
    }
    /// Gives `op`, which has none, structured attributes.
    pub(crate) fn attach_payload(&mut self, op: OpId, payload: Payload) {
        self.ops[op].payload = self.payloads.push(payload);
    }
    /// Gives `to` a dictionary equal to that of `from`; `shift` maps the spans of its values to those in the
    /// text of `to`.
    pub(crate) fn repeat_attrs(&mut self, from: OpId, shift: impl Fn(Span) -> Span) -> AttrRange {
        let range = self.attr_ranges[from];
        if range.len == 0 {
            return range;
        }
        let start = self.attrs.len() as u32;
        for index in range.start..range.start + range.len {
            let Attr { name, value } = self.attrs[index as usize];
            self.attrs.push(Attr { name, value: shift(value) });
        }
        self.skip_repeated_attrs(start);
        AttrRange { start, len: range.len }
    }
    /// Puts `block`, whose region is not complete, behind `last`.
    pub(crate) fn chain_block(&mut self, last: BlockId, block: BlockId) {
        self.blocks[last].next = block;
    }
    /// Gives `region`, which is empty, the blocks from `first` on.
    pub(crate) fn adopt_blocks(&mut self, region: RegionId, first: BlockId) {
        self.regions[region].first_block = first;
        let mut next = first;
        while let Some(block) = next.get() {
            self.regions[region].last_block = block;
            let row = &mut self.blocks[block];
            row.region = region;
            next = row.next;
        }
    }
    /// Sets the name of `func` and its span.
    pub(crate) fn name_function(&mut self, func: FuncId, name: StrId, place: Span) {
        self.functions[func].name = name;
        self.printing.functions[func].name = place;
    }
    /// Marks `func` as private.
    pub(crate) fn note_private(&mut self, func: FuncId) {
        self.functions[func].is_private = true;
    }
    /// Sets the span of the results of `func`.
    pub(crate) fn set_results_text(&mut self, func: FuncId, results: Span) {
        let text: &mut FunctionText = &mut self.printing.functions[func];
        text.results = results;
    }
    /// Sets the body of `func`.
    pub(crate) fn set_func_body(&mut self, func: FuncId, body: BlockId) {
        self.functions[func].body = body;
    }
    /// Defines the alias `name`, given with its sigil, as the text at `value`.
    pub(crate) fn define_alias(&mut self, name: StrId, value: Span) {
        self.aliases.insert(name, value);
    }
    /// Records the span of the definition of an alias, or of a resource section.
    pub(crate) fn note_definition(&mut self, span: Span) {
        self.printing.definitions.push(span);
    }
    /// Records that the text has locations.
    pub(crate) fn note_locations(&mut self) {
        self.printing.has_locations = true;
    }
    /// Signatures to add to.
    pub(crate) fn signatures_mut(&mut self) -> &mut SignatureTable {
        &mut self.signatures
    }
    /// Sets the sharding of argument `index` of `func`, a declaration.
    pub(crate) fn assign_arg_sharding(&mut self, func: FuncId, index: usize, sharding: ShardingId) {
        let port = self.functions[func].args.position(index);
        self.ports[port].sharding = sharding;
    }
    /// Sets the sharding of result `index` of `func`.
    pub(crate) fn assign_result_sharding(
        &mut self,
        func: FuncId,
        index: usize,
        sharding: ShardingId,
    ) {
        let port = self.functions[func].results.position(index);
        self.ports[port].sharding = sharding;
    }
}
