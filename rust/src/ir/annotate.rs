//! Edits of the shardings, attributes, locations and names of ops and values.

use super::op::AttrRange;
use super::{Attr, OpFlags, OpKind, Payload, Program, Span, ValueDef};
use crate::index::{OpId, RuleId, ShardingId, SignatureId, StrId, TypeId, ValueId};

impl Program {
    /// Sets the sharding of `value`; true if that changed it.
    #[inline]
    pub fn set_sharding(&mut self, value: ValueId, sharding: ShardingId) -> bool {
        let old = std::mem::replace(&mut self.value_shardings[value], sharding);
        if old == sharding {
            return false;
        }
        let owner = match self.values[value].def() {
            ValueDef::Result(op) => op,
            ValueDef::Arg(block) => self.block_parent_op(block),
        };
        self.printing.flags[owner].set(OpFlags::ATTRS_CHANGED);
        true
    }
    /// Sets the shardings of all values, in order of their ids.
    pub fn set_shardings(&mut self, shardings: &[ShardingId]) {
        for (value, &sharding) in self.value_shardings.ids().zip(shardings) {
            if self.value_shardings[value] != sharding {
                self.set_sharding(value, sharding);
            }
        }
    }
    /// Replaces the sharding of `value` without marking its op as changed, and returns the old one.
    /// For the parser, since the text has the sharding, and for propagation, which marks all
    /// changed ops at its end.
    #[inline]
    pub fn assign_sharding(&mut self, value: ValueId, sharding: ShardingId) -> ShardingId {
        std::mem::replace(&mut self.value_shardings[value], sharding)
    }
    /// Replaces the shardings of all values, as [`Program::assign_sharding`] does.
    pub fn assign_shardings(&mut self, shardings: &[ShardingId]) {
        self.value_shardings.as_mut_slice().copy_from_slice(shardings);
    }
    /// Sets the shardings of `op`, which has no results.
    pub fn set_no_result_shardings(&mut self, op: OpId, shardings: Vec<ShardingId>) {
        self.no_result_shardings.insert(op, shardings);
    }
    /// Removes the shardings of `op`, which has no results; true if it had some.
    pub fn remove_no_result_shardings(&mut self, op: OpId) -> bool {
        self.no_result_shardings.remove(&op).is_some()
    }
    /// Sets or removes (`NONE`) the rule that `op` carries; true if that changed it.
    pub fn set_op_rule(&mut self, op: OpId, rule: RuleId) -> bool {
        self.op_rules.set(op, rule)
    }
    /// Sets `rules`, indexed by op, as the rules that propagation found for ops without an
    /// `sdy.sharding_rule` attribute.
    pub fn leave_op_rules(&mut self, rules: Vec<RuleId>) {
        self.op_rules.leave(rules);
    }
    /// Records that `cause` required `op`, a reshard or collective that a pass has inserted.
    pub fn set_cause(&mut self, op: OpId, cause: OpId) {
        self.causes.insert(op, cause);
    }
    /// Renames `ops` to `name`, an op with the same operands, results and syntax.
    pub fn rename_ops(&mut self, ops: &[OpId], name: &str) {
        let id = self.strings.intern(name);
        let kind = OpKind::from_name(name);
        let traits = self.kinds.traits_of(id, name, kind);
        for &op in ops {
            let row = &mut self.ops[op];
            self.kinds.removed(row.kind);
            self.kinds.added(op, kind, id);
            (row.name, row.kind, row.traits) = (id, kind, traits);
            // The signature is that of the old name. None of the new names has a sharding rule.
            row.signature = SignatureId::NONE;
            self.printing.flags[op].set(OpFlags::RENAMED);
        }
    }
    /// Makes the printer write `op` from its fields instead of its source text.
    pub fn forget_text(&mut self, op: OpId) {
        self.printing.flags[op].set(OpFlags::SYNTHESISED);
    }
    /// Changes the type of `value`. The caller has to call [`Program::update_types`] for the op that defines
    /// it and for those that use it.
    pub fn set_type(&mut self, value: ValueId, ty: TypeId) {
        self.values[value].ty = ty;
    }
    /// Makes the printer write the attributes of `op` from its fields.
    pub fn mark_attrs_changed(&mut self, op: OpId) {
        self.printing.flags[op].set(OpFlags::ATTRS_CHANGED);
    }
    /// Makes the location of `op` unknown; an op without a location keeps none.
    pub fn forget_loc(&mut self, op: OpId) {
        if !self.printing.ops[op].loc.is_empty() {
            self.printing.ops[op].loc = self.text.add("unknown");
            self.printing.flags[op].set(OpFlags::LOC_CHANGED);
        }
    }
    /// The location of an op made from `ops`: their only known location, or their known locations
    /// fused.
    pub fn fused_loc(&mut self, ops: &[OpId]) -> Span {
        let mut locs: Vec<Span> = Vec::new();
        for &op in ops {
            let loc = self.printing.ops[op].loc;
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
    /// The location `text` with its aliases expanded: MLIR does not resolve aliases in nested locations that
    /// are defined later in the text. Aliases nested deeper than `MAX_DEPTH` levels become `unknown`.
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
                Some(value) if value.starts_with("loc") => out.push_str("unknown"),
                _ => out.push_str(&from[..end]),
            }
            rest = &from[end..];
        }
        out.push_str(rest);
        out
    }
    /// Removes the rules that ops carry, except those that users wrote.
    pub fn drop_rules(&mut self) {
        let Self { op_rules, rules, .. } = self;
        op_rules.remove_left();
        for op in op_rules.remove_if(|rule| !rules[rule].is_custom) {
            self.mark_attrs_changed(op);
        }
    }
    /// Removes the sharding rules of all ops, those that users wrote too.
    pub fn drop_all_rules(&mut self) {
        self.op_rules.remove_left();
        for op in self.op_rules.remove_if(|_| true) {
            self.mark_attrs_changed(op);
        }
    }
    /// Sets the structured attributes of `op`.
    pub fn set_payload(&mut self, op: OpId, payload: Payload) {
        match self.ops[op].payload.get() {
            Some(id) => self.payloads[id] = payload,
            None => self.ops[op].payload = self.payloads.push(payload),
        }
        self.printing.flags[op].set(OpFlags::ATTRS_CHANGED);
    }
    /// Stores `list`, shardings of the inputs of fragment `op` or of its outputs, in the header of
    /// `op`, since they cannot be stored on its values. `are_some` is whether the list has any
    /// sharding.
    pub fn keep_in_header(&mut self, op: OpId, is_of_inputs: bool, list: &str, are_some: bool) {
        let Some(Payload::Fragment { header, .. }) = self.payload(op).cloned() else { return };
        let side = if is_of_inputs { "in" } else { "out" };
        let text = format!("{}, {side}_shardings={list}", self.str(header));
        let text = self.intern(&text);
        let Some(id) = self.ops[op].payload.get() else { return };
        if let Payload::Fragment {
            header,
            has_in_shardings,
            has_out_shardings,
            has_foreign_shardings,
            ..
        } = &mut self.payloads[id]
        {
            *header = text;
            *(if is_of_inputs { has_in_shardings } else { has_out_shardings }) = false;
            *has_foreign_shardings |= are_some;
        }
    }
    /// Sets attribute `name` of `op` to `value`, a text as MLIR prints it (empty for a unit).
    pub fn set_attr(&mut self, op: OpId, name: &str, value: &str) {
        self.attr_ranges[op] = self.with_attr(self.attr_ranges[op], name, value);
        self.mark_attrs_changed(op);
        self.resign_with_attr(op, name, value);
    }
    /// The index of attribute `name` among the attributes of `op`.
    pub fn attr_place(&self, op: OpId, name: StrId) -> Option<usize> {
        self.op_attrs(op).iter().position(|attr| attr.name == name)
    }
    /// Sets the attribute of `op` at index `place`, which its signature does not depend on, to
    /// `value`, which differs for each op.
    pub fn set_unsigned_attr(&mut self, op: OpId, place: usize, value: &str) {
        let AttrRange { start, len } = self.attr_ranges[op];
        let new = self.attrs.len();
        self.attrs.extend_from_within(start as usize..(start + len) as usize);
        self.attrs[new + place].value = self.text.add(value);
        self.attr_ranges[op].start = new as u32;
        self.mark_attrs_changed(op);
    }
    /// Removes attribute `name` of `op`; true if it was there.
    pub fn remove_attr(&mut self, op: OpId, name: &str) -> bool {
        let attrs = self.op_attrs(op);
        let is_it = |attr: &&Attr| self.strings.get(attr.name) == name;
        let Some(&Attr { name, .. }) = attrs.iter().find(is_it) else { return false };
        let list: Vec<Attr> = attrs.iter().filter(|attr| attr.name != name).copied().collect();
        self.replace_attrs(op, &list);
        true
    }
    /// Replaces the whole dictionary of `op`.
    pub fn replace_attrs(&mut self, op: OpId, list: &[Attr]) {
        let range = self.add_attrs(list);
        self.attr_ranges[op] = range;
        self.printing.flags[op].set(OpFlags::ATTRS_CHANGED);
    }
    /// Gives `to` the dictionary of `from`.
    pub fn copy_attrs(&mut self, from: OpId, to: OpId) {
        self.attr_ranges[to] = self.attr_ranges[from];
        self.mark_attrs_changed(to);
    }
    /// The dictionary at `range` with attribute `name` set to `value`.
    pub(super) fn with_attr(&mut self, range: AttrRange, name: &str, value: &str) -> AttrRange {
        let name = self.strings.intern(name);
        let attr = Attr { name, value: self.text.add_once(value) };
        let mut list = self.attr_list(range).to_vec();
        match list.iter_mut().find(|old| old.name == name) {
            Some(old) => *old = attr,
            None => list.push(attr),
        }
        self.add_attrs(&list)
    }
    /// Adds a dictionary to the attribute table.
    pub(crate) fn add_attrs(&mut self, list: &[Attr]) -> AttrRange {
        let start = self.attrs.len() as u32;
        self.attrs.extend_from_slice(list);
        AttrRange { start, len: list.len() as u32 }
    }
}
