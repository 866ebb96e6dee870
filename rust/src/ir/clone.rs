//! Clones of ops with everything inside them, as MLIR makes them.

use super::{Function, InsertPoint, Op, OpFlags, Payload, Place, Program, ValueMap};
use crate::index::{BlockId, FuncId, Id, OpId, RegionId, UseId, ValueId};

impl Program {
    /// Clones `op` with everything inside it, in no block yet, as MLIR's `Operation::clone` does:
    /// operands are mapped by `map`, to which results and inner block arguments are added.
    /// Results keep their names if `keep_names` (right when the clone goes to another scope).
    pub fn clone_op(&mut self, op: OpId, map: &mut ValueMap, keep_names: bool) -> OpId {
        let original = self.ops[op];
        let clone = self.push_op_row(Op {
            parent: BlockId::NONE,
            prev: OpId::NONE,
            next: OpId::NONE,
            first_region: RegionId::NONE,
            num_regions: 0,
            first_operand: UseId::NONE,
            num_operands: 0,
            first_result: ValueId::NONE,
            num_results: 0,
            ..original
        });
        self.attr_ranges[clone] = self.attr_ranges[op];
        self.printing.ops[clone] = self.printing.ops[op];
        self.printing.flags[clone] = self.printing.flags[op];
        if let Some(payload) = self.payload(op).cloned() {
            self.ops[clone].payload = self.payloads.push(payload);
        }
        if self.op_rules.set(clone, self.op_rules.get(op)) && !self.op_rules.is_own(op) {
            // The printer writes the rules set by `leave_op_rules` itself.
            self.printing.flags[clone].set(OpFlags::ATTRS_CHANGED);
        }
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
    /// Clones `op` as [`Program::clone_op`] does, to `at`.
    pub fn clone_op_at(&mut self, op: OpId, map: &mut ValueMap, at: InsertPoint) -> OpId {
        let clone = self.clone_op(op, map, true);
        self.printing.ops[clone].loc = at.loc;
        self.insert_op(clone, at.place);
        clone
    }
    /// Gives `clone`, which has none, the operands of `op`, mapped by `map` if it has them.
    fn clone_operands(&mut self, op: OpId, clone: OpId, map: &ValueMap) {
        for slot in self.op_uses(op) {
            let (value, text) = (self.operands[slot].value, self.printing.operand_names[slot]);
            let mapped = map.get(value).unwrap_or(value);
            self.push_operand(clone, mapped, text);
            if mapped != value {
                self.printing.flags[clone].set(OpFlags::OPERANDS_CHANGED);
            }
        }
    }
    /// Gives `clone`, which has none, results like those of `op`, and adds them to `map`.
    fn clone_results(&mut self, op: OpId, clone: OpId, map: &mut ValueMap) {
        for old in self.op_results(op) {
            let new = self.push_result(clone, self.type_of(old), self.printing.value_names[old]);
            self.value_shardings[new] = self.sharding(old);
            map.insert(old, new);
        }
    }
    /// Gives `clone`, which has none, arguments like those of `block`, and adds them to `map`.
    fn clone_args(&mut self, block: BlockId, clone: BlockId, map: &mut ValueMap) {
        for old in self.block_args(block) {
            let new = self.push_block_arg(clone, self.type_of(old), self.printing.value_names[old]);
            self.value_shardings[new] = self.sharding(old);
            map.insert(old, new);
        }
    }
    /// Clones `function`, in no block yet and under the same name. Uses `map` for its values.
    pub fn clone_function(&mut self, function: FuncId, map: &mut ValueMap) -> FuncId {
        map.clear();
        let op = self.clone_op(self.functions[function].op, map, true);
        let body = self.op_regions(op).next().map_or(BlockId::NONE, |body| self.region_entry(body));
        let original = self.functions[function].clone();
        let (args, results) = (self.clone_ports(original.args), self.clone_ports(original.results));
        let clone = self.push_function(op, original.name);
        self.printing.functions[clone] = self.printing.functions[function];
        self.functions[clone] = Function { op, body, args, results, ..original };
        self.set_payload(op, Payload::Function(clone));
        clone
    }
    /// Clones the blocks of `from` into the empty region `to`. Names inside are kept.
    pub fn clone_region(&mut self, from: RegionId, to: RegionId, map: &mut ValueMap) {
        self.printing.region_spans[to] = self.printing.region_spans[from];
        let mut next = self.region_entry(from);
        while let Some(block) = next.get() {
            let copy = self.push_block(self.printing.block_headers[block]);
            self.append_block(to, copy);
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
