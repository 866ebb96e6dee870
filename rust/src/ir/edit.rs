//! Edits: the only ways to change a program's structure. They keep use lists and print flags right.

use super::op::AttrRange;
use super::{
    Attr, Block, Function, Op, OpFlags, OpKind, Operand, Payload, Program, Region, Span, Type,
    Value, ValueDef,
};
use crate::index::{
    BlockId, FuncId, Id, OpId, PayloadId, RegionId, RuleId, ShardingId, SignatureId, StrId, TypeId,
    UseId, ValueId,
};

/// Where to put an op.
#[derive(Clone, Copy, Debug)]
pub enum Place {
    /// Right before this op.
    Before(OpId),
    /// Right after this op.
    After(OpId),
    /// At the start of this block.
    Start(BlockId),
    /// At the end of this block.
    End(BlockId),
}

impl Program {
    /// Adds a row for an op of which only the name is known, in no block yet.
    pub fn new_op_row(&mut self, name: StrId, kind: OpKind) -> OpId {
        self.ops.push(Op {
            name,
            kind,
            flags: OpFlags::default(),
            first_operand: UseId::NONE,
            num_operands: 0,
            first_result: ValueId::NONE,
            num_results: 0,
            first_region: RegionId::NONE,
            num_regions: 0,
            parent: BlockId::NONE,
            prev: OpId::NONE,
            next: OpId::NONE,
            span: Span::EMPTY,
            dict: Span::EMPTY,
            loc: Span::EMPTY,
            attrs: AttrRange::default(),
            signature: SignatureId::NONE,
            payload: PayloadId::NONE,
        })
    }
    /// Adds an op that has no text of its own, in no block yet.
    pub fn create_op(&mut self, name: &str, operands: &[ValueId], result_types: &[TypeId]) -> OpId {
        let name_id = self.strings.intern(name);
        let op = self.new_op_row(name_id, OpKind::from_name(name));
        self.ops[op].flags = OpFlags::SYNTHESISED;
        self.add_operands(op, operands.iter().map(|&value| (value, u32::MAX)));
        self.add_results(op, result_types.iter().map(|&ty| (ty, u32::MAX)));
        op
    }
    /// Gives `op`, which has none, its operands: values and where their names stand in the text.
    pub fn add_operands(&mut self, op: OpId, operands: impl IntoIterator<Item = (ValueId, u32)>) {
        let first = self.operands.next_id();
        let mut count = 0;
        for (value, text) in operands {
            self.push_operand(op, value, text);
            count += 1;
        }
        self.ops[op].num_operands = count;
        self.ops[op].first_operand = if count == 0 { UseId::NONE } else { first };
    }
    /// Adds an operand slot; the caller tells `op` of it.
    #[inline]
    pub(crate) fn push_operand(&mut self, op: OpId, value: ValueId, text: u32) {
        let slot = self.operands.push(Operand {
            value,
            owner: op,
            next_use: UseId::NONE,
            prev_use: UseId::NONE,
            text,
        });
        self.link_use(slot, value);
    }
    /// Adds a value that stands for one whose definition comes later; `op` is in no block.
    pub(crate) fn new_placeholder(&mut self, op: OpId, ty: TypeId) -> ValueId {
        self.values.push(Value {
            ty,
            def: ValueDef::Result(op),
            first_use: UseId::NONE,
            sharding: ShardingId::NONE,
            name: u32::MAX,
        })
    }
    /// Makes the uses of `placeholder` uses of `value`, as in [`Program::replace_all_uses`] but
    /// without a trace: it is what the text says.
    pub(crate) fn bind_placeholder(&mut self, placeholder: ValueId, value: ValueId) {
        while let Some(slot) = self.values[placeholder].first_use.get() {
            self.unlink_use(slot);
            self.link_use(slot, value);
        }
    }
    /// Gives `op`, which has none, its results: types and where their names stand in the text.
    pub fn add_results(&mut self, op: OpId, results: impl IntoIterator<Item = (TypeId, u32)>) {
        let first = self.values.next_id();
        let mut count = 0;
        for (ty, name) in results {
            self.values.push(Value {
                ty,
                def: ValueDef::Result(op),
                first_use: UseId::NONE,
                sharding: ShardingId::NONE,
                name,
            });
            count += 1;
        }
        self.ops[op].num_results = count;
        self.ops[op].first_result = if count == 0 { ValueId::NONE } else { first };
    }
    /// Gives `op`, which has none, `count` empty regions.
    pub fn add_regions(&mut self, op: OpId, count: usize) {
        let first = self.regions.next_id();
        for _ in 0..count {
            self.regions.push(Region {
                op,
                first_block: BlockId::NONE,
                last_block: BlockId::NONE,
                span: Span::EMPTY,
            });
        }
        self.ops[op].num_regions = count as u32;
        self.ops[op].first_region = if count == 0 { RegionId::NONE } else { first };
    }
    /// Appends an empty block to `region`.
    pub fn add_block(&mut self, region: RegionId) -> BlockId {
        let block = self.blocks.push(Block {
            region,
            next: BlockId::NONE,
            first_op: OpId::NONE,
            last_op: OpId::NONE,
            first_arg: ValueId::NONE,
            num_args: 0,
            header: Span::EMPTY,
        });
        match self.regions[region].last_block.get() {
            Some(last) => self.blocks[last].next = block,
            None => self.regions[region].first_block = block,
        }
        self.regions[region].last_block = block;
        block
    }
    /// Gives `block`, which has none, its arguments: types and where their names stand in the text.
    pub fn add_block_args(
        &mut self,
        block: BlockId,
        args: impl IntoIterator<Item = (TypeId, u32)>,
    ) {
        let first = self.values.next_id();
        let mut count = 0;
        for (ty, name) in args {
            self.values.push(Value {
                ty,
                def: ValueDef::Arg(block),
                first_use: UseId::NONE,
                sharding: ShardingId::NONE,
                name,
            });
            count += 1;
        }
        self.blocks[block].num_args = count;
        self.blocks[block].first_arg = if count == 0 { ValueId::NONE } else { first };
    }

    /// Puts `op`, which is in no block, at `place`.
    pub fn insert_op(&mut self, op: OpId, place: Place) {
        let (block, prev, next) = match place {
            Place::Before(at) => (self.ops[at].parent, self.ops[at].prev, at),
            Place::After(at) => (self.ops[at].parent, at, self.ops[at].next),
            Place::Start(block) => (block, OpId::NONE, self.blocks[block].first_op),
            Place::End(block) => (block, self.blocks[block].last_op, OpId::NONE),
        };
        let row = &mut self.ops[op];
        (row.parent, row.prev, row.next) = (block, prev, next);
        match prev.get() {
            Some(prev) => self.ops[prev].next = op,
            None => self.blocks[block].first_op = op,
        }
        match next.get() {
            Some(next) => self.ops[next].prev = op,
            None => self.blocks[block].last_op = op,
        }
    }
    /// Takes `op` out of its block; it keeps its operands and uses.
    pub fn unlink_op(&mut self, op: OpId) {
        let Op { parent, prev, next, .. } = self.ops[op];
        match prev.get() {
            Some(prev) => self.ops[prev].next = next,
            None => self.blocks[parent].first_op = next,
        }
        match next.get() {
            Some(next) => self.ops[next].prev = prev,
            None => self.blocks[parent].last_op = prev,
        }
        let row = &mut self.ops[op];
        (row.parent, row.prev, row.next) = (BlockId::NONE, OpId::NONE, OpId::NONE);
    }
    /// Moves `op` to `place`.
    pub fn move_op(&mut self, op: OpId, place: Place) {
        self.unlink_op(op);
        self.insert_op(op, place);
    }
    /// Erases `op` and all ops inside it; its results must have no uses left (outside it).
    pub fn erase_op(&mut self, op: OpId) {
        if self.ops[op].num_regions == 0 {
            for slot in self.op_uses(op) {
                self.unlink_use(slot);
            }
            self.ops[op].flags.set(OpFlags::ERASED);
            return self.unlink_op(op);
        }
        let inside: Vec<OpId> = self.pre_order(op).collect();
        for inner in inside {
            for slot in self.op_uses(inner) {
                self.unlink_use(slot);
            }
            self.ops[inner].flags.set(OpFlags::ERASED);
        }
        self.unlink_op(op);
    }
    /// Moves all blocks of `from` to the end of `to`.
    pub fn take_blocks(&mut self, from: RegionId, to: RegionId) {
        let first = std::mem::take(&mut self.regions[from].first_block);
        let last = std::mem::take(&mut self.regions[from].last_block);
        if first.is_none() {
            return;
        }
        match self.regions[to].last_block.get() {
            Some(last) => self.blocks[last].next = first,
            None => self.regions[to].first_block = first,
        }
        self.regions[to].last_block = last;
        let mut block = first;
        while block.is_some() {
            self.blocks[block].region = to;
            block = self.blocks[block].next;
        }
    }

    /// Puts `slot` at the head of `value`'s use list.
    fn link_use(&mut self, slot: UseId, value: ValueId) {
        let head = std::mem::replace(&mut self.values[value].first_use, slot);
        let row = &mut self.operands[slot];
        (row.value, row.next_use, row.prev_use) = (value, head, UseId::NONE);
        if let Some(head) = head.get() {
            self.operands[head].prev_use = slot;
        }
    }
    /// Takes `slot` out of the use list it is in.
    pub(super) fn unlink_use(&mut self, slot: UseId) {
        let Operand { value, next_use, prev_use, .. } = self.operands[slot];
        if value.is_none() {
            return;
        }
        match prev_use.get() {
            Some(prev) => self.operands[prev].next_use = next_use,
            None => self.values[value].first_use = next_use,
        }
        if let Some(next) = next_use.get() {
            self.operands[next].prev_use = prev_use;
        }
        let row = &mut self.operands[slot];
        (row.value, row.next_use, row.prev_use) = (ValueId::NONE, UseId::NONE, UseId::NONE);
    }
    /// Makes `value` the operand of `slot`; as in MLIR it becomes the newest use of `value`.
    pub fn set_operand(&mut self, slot: UseId, value: ValueId) {
        self.unlink_use(slot);
        self.link_use(slot, value);
        let owner = self.operands[slot].owner;
        self.ops[owner].flags.set(OpFlags::OPERANDS_CHANGED);
    }
    /// Makes every use of `old` a use of `new`, newest first, as MLIR's `replaceAllUsesWith` does
    /// (which leaves them in reverse order at the head of `new`'s list).
    pub fn replace_all_uses(&mut self, old: ValueId, new: ValueId) {
        self.replace_uses_if(old, new, |_, _| true);
    }
    /// The same for the uses that `pick` accepts, asked newest first.
    pub fn replace_uses_if(
        &mut self,
        old: ValueId,
        new: ValueId,
        mut pick: impl FnMut(&Self, UseId) -> bool,
    ) {
        let mut slot = self.values[old].first_use;
        while slot.is_some() {
            let next = self.operands[slot].next_use;
            if pick(self, slot) {
                self.set_operand(slot, new);
            }
            slot = next;
        }
    }
    /// The same for the uses by other ops than `user`, as MLIR's `replaceAllUsesExcept` does.
    pub fn replace_all_uses_except(&mut self, old: ValueId, new: ValueId, user: OpId) {
        self.replace_uses_if(old, new, |program, slot| program.operands[slot].owner != user);
    }
    /// Turns the use list of `value` round: what remains when all uses went to another value, one by
    /// one from the head, and that value then takes this one's place.
    pub fn reverse_uses(&mut self, value: ValueId) {
        let (mut slot, mut head) = (self.values[value].first_use, UseId::NONE);
        while let Some(at) = slot.get() {
            let row = &mut self.operands[at];
            slot = row.next_use;
            std::mem::swap(&mut row.next_use, &mut row.prev_use);
            head = at;
        }
        self.values[value].first_use = head;
    }
    /// Makes `slot` the newest use of its value.
    pub fn make_newest_use(&mut self, slot: UseId) {
        let value = self.operands[slot].value;
        self.unlink_use(slot);
        self.link_use(slot, value);
    }
    /// Puts the uses of `value` in this order, newest first; `order` holds all of them.
    pub fn set_use_order(&mut self, value: ValueId, order: &[UseId]) {
        self.values[value].first_use = UseId::NONE;
        for &slot in order.iter().rev() {
            self.link_use(slot, value);
        }
    }
    /// Moves all uses of `old` to `new`, keeping their order; `new` must have no uses.
    pub fn transfer_uses(&mut self, old: ValueId, new: ValueId) {
        let head = std::mem::take(&mut self.values[old].first_use);
        self.values[new].first_use = head;
        let mut slot = head;
        while let Some(at) = slot.get() {
            self.operands[at].value = new;
            let owner = self.operands[at].owner;
            self.ops[owner].flags.set(OpFlags::OPERANDS_CHANGED);
            slot = self.operands[at].next_use;
        }
    }
    /// Replaces the operands of `op` by a new list (new slots, added in order).
    pub fn set_operands(&mut self, op: OpId, values: &[ValueId]) {
        for slot in self.op_uses(op) {
            self.unlink_use(slot);
        }
        self.ops[op].num_operands = 0;
        self.add_operands(op, values.iter().map(|&value| (value, u32::MAX)));
        self.ops[op].flags.set(OpFlags::OPERANDS_CHANGED);
    }
    /// Has the printer invent a name for `value`.
    pub fn forget_name(&mut self, value: ValueId) {
        self.values[value].name = u32::MAX;
        match self.values[value].def {
            ValueDef::Result(op) => self.ops[op].flags.set(OpFlags::RESULTS_RENAMED),
            ValueDef::Arg(block) => {
                let op = self.block_parent_op(block);
                self.ops[op].flags.set(OpFlags::ATTRS_CHANGED);
            }
        }
        let users: Vec<OpId> = self.uses(value).map(|slot| self.operands[slot].owner).collect();
        for user in users {
            self.ops[user].flags.set(OpFlags::OPERANDS_CHANGED);
        }
    }

    /// Sets the sharding of `value`; true if that changed it.
    #[inline]
    pub fn set_sharding(&mut self, value: ValueId, sharding: ShardingId) -> bool {
        let row = &mut self.values[value];
        if row.sharding == sharding {
            return false;
        }
        row.sharding = sharding;
        let owner = match row.def {
            ValueDef::Result(op) => op,
            ValueDef::Arg(block) => self.block_parent_op(block),
        };
        self.ops[owner].flags.set(OpFlags::ATTRS_CHANGED);
        true
    }
    /// Makes `op` an op called `name` that has the same operands, results and syntax.
    pub fn rename_op(&mut self, op: OpId, name: &str) {
        let id = self.strings.intern(name);
        let row = &mut self.ops[op];
        (row.name, row.kind) = (id, OpKind::from_name(name));
        // The signature was that of the old name. None of the new names has a rule.
        row.signature = SignatureId::NONE;
        row.flags.set(OpFlags::RENAMED);
    }
    /// Has the printer write the attributes of `op` anew.
    pub fn mark_attrs_changed(&mut self, op: OpId) {
        self.ops[op].flags.set(OpFlags::ATTRS_CHANGED);
    }
    /// Makes the location of `op` unknown; an op without a location stays without.
    pub fn forget_loc(&mut self, op: OpId) {
        if !self.ops[op].loc.is_empty() {
            self.ops[op].loc = self.text.add("unknown");
            self.ops[op].flags.set(OpFlags::LOC_CHANGED);
        }
    }
    /// The location of an op made from `ops`, of which there is at least one: their only location, or
    /// all of them fused.
    pub fn fused_loc(&mut self, ops: &[OpId]) -> Span {
        let mut locs: Vec<Span> = Vec::new();
        for &op in ops {
            let loc = self.ops[op].loc;
            let text = self.text.get(loc);
            let is_new = locs.iter().all(|&seen| self.text.get(seen) != text);
            if !text.is_empty() && text != "unknown" && is_new {
                locs.push(loc);
            }
        }
        if let [] | [_] = locs[..] {
            return locs.first().copied().unwrap_or(Span::EMPTY);
        }
        let locs: Vec<String> =
            locs.into_iter().map(|loc| self.without_aliases(self.text.get(loc), 0)).collect();
        self.text.add(&format!("fused[{}]", locs.join(", ")))
    }
    /// The location `text` with what its aliases stand for: where locations are nested, MLIR does not
    /// know aliases that are defined further down. Aliases nested deeper than any compiler writes them
    /// stay.
    fn without_aliases(&self, text: &str, depth: usize) -> String {
        const MAX_DEPTH: usize = 32;
        const MAX_LEN: usize = 1 << 16;
        let mut out = String::new();
        let mut rest = text;
        let mut in_string = false;
        while let Some(at) = rest.find(['"', '#']) {
            let (before, from) = rest.split_at(at);
            out.push_str(before);
            if from.starts_with('"') || in_string {
                let is_escaped = before.ends_with('\\');
                in_string ^= from.starts_with('"') && !(in_string && is_escaped);
                out.push_str(&from[..1]);
                rest = &from[1..];
                continue;
            }
            let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '$' | '.' | '-');
            let end = from[1..].find(|c| !is_part(c)).map_or(from.len(), |end| end + 1);
            let alias = self.strings.find(&from[..end]).and_then(|name| self.aliases.get(&name));
            match alias.map(|&span| self.text.get(span).trim()) {
                Some(value) if depth < MAX_DEPTH && out.len() < MAX_LEN => {
                    let inner = value.strip_prefix("loc(").and_then(|v| v.strip_suffix(')'));
                    out.push_str(&self.without_aliases(inner.unwrap_or(value), depth + 1));
                }
                _ => out.push_str(&from[..end]),
            }
            rest = &from[end..];
        }
        out.push_str(rest);
        out
    }
    /// The location of `value`: that of its op, or its own if it is a block argument.
    pub fn value_loc(&self, value: ValueId) -> Span {
        match self.values[value].def {
            ValueDef::Result(op) => self.ops[op].loc,
            ValueDef::Arg(_) => self.arg_location_text(value).unwrap_or(Span::EMPTY),
        }
    }
    /// Removes the rule that `op` carries, unless a user wrote it.
    pub fn drop_rule(&mut self, op: OpId) {
        if let Some(rule) = self.op_rules.get(op).get() {
            if !self.rules[rule].is_custom {
                self.op_rules.set(op, RuleId::NONE);
                self.mark_attrs_changed(op);
            }
        }
    }
    /// Sets the structured attributes of `op`.
    pub fn set_payload(&mut self, op: OpId, payload: Payload) {
        match self.ops[op].payload.get() {
            Some(id) => self.payloads[id] = payload,
            None => self.ops[op].payload = self.payloads.push(payload),
        }
        self.ops[op].flags.set(OpFlags::ATTRS_CHANGED);
    }
    /// Sets attribute `name` of `op` to `value`, a text as MLIR prints it (empty for a unit).
    pub fn set_attr(&mut self, op: OpId, name: &str, value: &str) {
        let name = self.strings.intern(name);
        let attr = Attr { name, value: self.text.add(value) };
        let mut list: Vec<Attr> = self.op_attrs(op).to_vec();
        match list.iter_mut().find(|old| old.name == name) {
            Some(old) => *old = attr,
            None => list.push(attr),
        }
        self.replace_attrs(op, &list);
    }
    /// Removes attribute `name` of `op`; true if it was there.
    pub fn remove_attr(&mut self, op: OpId, name: &str) -> bool {
        let Some(name) = self.strings.find(name) else { return false };
        let mut list: Vec<Attr> = self.op_attrs(op).to_vec();
        let before = list.len();
        list.retain(|attr| attr.name != name);
        if list.len() == before {
            return false;
        }
        self.replace_attrs(op, &list);
        true
    }
    /// Replaces the whole dictionary of `op`.
    pub fn replace_attrs(&mut self, op: OpId, list: &[Attr]) {
        let range = self.add_attrs(list);
        let row = &mut self.ops[op];
        row.attrs = range;
        row.flags.set(OpFlags::ATTRS_CHANGED);
    }
    /// The id of `ty`; `text` is how it is written, should it be new.
    pub fn intern_type(&mut self, ty: Type, text: &str) -> TypeId {
        if let Some(id) = self.types.find(&ty) {
            return id;
        }
        let span = self.text.add(text);
        self.types.intern(ty, span)
    }
    /// Adds a dictionary to the attribute table.
    pub fn add_attrs(&mut self, list: &[Attr]) -> AttrRange {
        let start = self.attrs.len() as u32;
        self.attrs.extend_from_slice(list);
        AttrRange { start, len: list.len() as u32 }
    }
}

/// How the values of a cloned op map to those of the original.
pub type ValueMap = rustc_hash::FxHashMap<ValueId, ValueId>;

impl Program {
    /// Clones `op` with everything inside it, in no block yet, as MLIR's `Operation::clone` does:
    /// operands that `map` knows are replaced; results and inner block arguments are added to it.
    /// Results keep their names if `keep_names` (right when the clone goes to another scope).
    pub fn clone_op(&mut self, op: OpId, map: &mut ValueMap, keep_names: bool) -> OpId {
        let original = self.ops[op].clone();
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
        if let Some(shardings) = self.no_result_shardings.get(&op).cloned() {
            self.no_result_shardings.insert(clone, shardings);
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
            let Operand { value, text, .. } = self.operands[slot];
            let mapped = map.get(&value).copied().unwrap_or(value);
            self.push_operand(clone, mapped, text);
            if mapped != value {
                self.ops[clone].flags.set(OpFlags::OPERANDS_CHANGED);
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
            let def = ValueDef::Result(clone);
            let new = self.values.push(Value { def, first_use: UseId::NONE, ..self.values[old] });
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
            let def = ValueDef::Arg(clone);
            let new = self.values.push(Value { def, first_use: UseId::NONE, ..self.values[old] });
            map.insert(old, new);
        }
        let count = self.blocks[block].num_args;
        self.blocks[clone].num_args = count;
        self.blocks[clone].first_arg = if count == 0 { ValueId::NONE } else { first };
    }
    /// Clones `function`, in no block yet and under the same name.
    pub fn clone_function(&mut self, function: FuncId) -> FuncId {
        let op = self.clone_op(self.functions[function].op, &mut ValueMap::default(), true);
        let body = self.op_regions(op).next().map_or(BlockId::NONE, |body| self.region_entry(body));
        let clone = Function { op, body, ..self.functions[function].clone() };
        let clone = self.functions.push(clone);
        self.set_payload(op, Payload::Function(clone));
        clone
    }
    /// Clones the blocks of `from` into the empty region `to`. Names inside are kept.
    pub fn clone_region(&mut self, from: RegionId, to: RegionId, map: &mut ValueMap) {
        self.regions[to].span = self.regions[from].span;
        let blocks: Vec<BlockId> = self.region_blocks(from).collect();
        for &block in &blocks {
            let copy = self.add_block(to);
            self.blocks[copy].header = self.blocks[block].header;
            self.clone_args(block, copy, map);
        }
        let copies: Vec<BlockId> = self.region_blocks(to).collect();
        for (block, copy) in blocks.into_iter().zip(copies) {
            let mut next = self.blocks[block].first_op;
            while let Some(op) = next.get() {
                let clone = self.clone_op(op, map, true);
                self.insert_op(clone, Place::End(copy));
                next = self.ops[op].next;
            }
        }
    }
}
