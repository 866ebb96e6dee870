//! Clones of ops with everything inside them, as MLIR makes them.

use super::{Function, Op, OpFlags, Payload, Place, Program, Value, ValueDef, ValueMap};
use crate::index::{BlockId, FuncId, Id, OpId, RegionId, UseId, ValueId};

impl Program {
    /// Clones `op` with everything inside it, in no block yet, as MLIR's `Operation::clone` does:
    /// operands that `map` knows are replaced; results and inner block arguments are added to it.
    /// Results keep their names if `keep_names` (right when the clone goes to another scope).
    pub fn clone_op(&mut self, op: OpId, map: &mut ValueMap, keep_names: bool) -> OpId {
        let original = self.ops[op].clone();
        self.kinds.added(self.ops.next_id(), original.kind);
        self.op_texts.push(self.op_texts[op]);
        self.op_flags.push(self.op_flags[op]);
        let clone = self.ops.push(Op {
            parent: BlockId::NONE,
            prev: OpId::NONE,
            next: OpId::NONE,
            num_regions: 0,
            num_operands: 0,
            num_results: 0,
            ..original.clone()
        });
        if let Some(payload) = self.payload(op).cloned() {
            self.ops[clone].payload = self.payloads.push(payload);
        }
        self.op_rules.set(clone, self.op_rules.get(op));
        if !self.no_result_shardings.is_empty() {
            if let Some(shardings) = self.no_result_shardings.get(&op).cloned() {
                self.no_result_shardings.insert(clone, shardings);
            }
        }
        self.clone_operands(op, clone, map);
        self.clone_results(op, clone, map);
        if !keep_names {
            self.op_results(clone).for_each(|result| self.forget_name(result));
        }
        self.add_regions(clone, original.num_regions as usize);
        for index in 0..original.num_regions as usize {
            let from = RegionId::from_index(original.first_region.index() + index);
            let to = RegionId::from_index(self.ops[clone].first_region.index() + index);
            self.clone_region(from, to, map);
        }
        clone
    }
    /// Gives `clone`, which has none, the operands of `op`, or what `map` has for them.
    fn clone_operands(&mut self, op: OpId, clone: OpId, map: &ValueMap) {
        let first = self.operands.next_id();
        for slot in self.op_uses(op) {
            let (value, text) = (self.operands[slot].value, self.operand_texts[slot]);
            let mapped = map.get(value).unwrap_or(value);
            self.push_operand(clone, mapped, text);
            if mapped != value {
                self.op_flags[clone].set(OpFlags::OPERANDS_CHANGED);
            }
        }
        let count = self.ops[op].num_operands;
        self.ops[clone].num_operands = count;
        self.ops[clone].first_operand = if count == 0 { UseId::NONE } else { first };
    }
    /// Gives `clone`, which has none, results like those of `op`, and adds them to `map`.
    fn clone_results(&mut self, op: OpId, clone: OpId, map: &mut ValueMap) {
        let first = self.values.next_id();
        for old in self.op_results(op) {
            let value = Value::new(self.values[old].ty, ValueDef::Result(clone));
            let new = self.push_value(value, self.value_names[old], self.sharding(old));
            map.insert(old, new);
        }
        let count = self.ops[op].num_results;
        self.ops[clone].num_results = count;
        self.ops[clone].first_result = if count == 0 { ValueId::NONE } else { first };
    }
    /// Gives `clone`, which has none, arguments like those of `block`, and adds them to `map`.
    fn clone_args(&mut self, block: BlockId, clone: BlockId, map: &mut ValueMap) {
        let first = self.values.next_id();
        for old in self.block_args(block) {
            let value = Value::new(self.values[old].ty, ValueDef::Arg(clone));
            let new = self.push_value(value, self.value_names[old], self.sharding(old));
            map.insert(old, new);
        }
        let count = self.blocks[block].num_args;
        self.blocks[clone].num_args = count;
        self.blocks[clone].first_arg = if count == 0 { ValueId::NONE } else { first };
    }
    /// Clones `function`, in no block yet and under the same name. Uses `map` for its values.
    pub fn clone_function(&mut self, function: FuncId, map: &mut ValueMap) -> FuncId {
        map.clear();
        let op = self.clone_op(self.functions[function].op, map, true);
        let body = self.op_regions(op).next().map_or(BlockId::NONE, |body| self.region_entry(body));
        let original = self.functions[function].clone();
        let (args, results) = (self.clone_ports(original.args), self.clone_ports(original.results));
        let clone = self.functions.push(Function { op, body, args, results, ..original });
        self.set_payload(op, Payload::Function(clone));
        clone
    }
    /// Clones the blocks of `from` into the empty region `to`. Names inside are kept.
    pub fn clone_region(&mut self, from: RegionId, to: RegionId, map: &mut ValueMap) {
        self.regions[to].span = self.regions[from].span;
        let mut next = self.region_entry(from);
        while let Some(block) = next.get() {
            let copy = self.add_block(to);
            self.blocks[copy].header = self.blocks[block].header;
            self.clone_args(block, copy, map);
            next = self.blocks[block].next;
        }
        let (mut block, mut copy) = (self.region_entry(from), self.region_entry(to));
        while block.is_some() {
            let mut next = self.blocks[block].first_op;
            while let Some(op) = next.get() {
                let clone = self.clone_op(op, map, true);
                self.insert_op(clone, Place::End(copy));
                next = self.ops[op].next;
            }
            (block, copy) = (self.blocks[block].next, self.blocks[copy].next);
        }
    }
}
