//! Where shardings propagate without a rule: data-flow edges, calls, and values that share a
//! sharding.
//!
//! All targets of a data-flow edge have one sharding. Its *holder* is the result of the edge op, or the
//! edge's owner if there is no such op.

use super::calls::Calls;
use crate::context::RuleSource;
use crate::index::{Id, OpId, RegionId, ShardingId, UseId, ValueId};
use crate::ir::{Edge, OpKind, Program, ValueDef};
use rustc_hash::FxHashMap;
use std::ops::Range;

/// What holds the sharding of a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Holder {
    /// Nothing: the value is an argument of a region and has no sharding.
    None,
    /// This value.
    Value(ValueId),
    /// This argument of a manual computation; its sharding also has the manual axes.
    ManualArg(OpId, ValueId),
}

/// An edge into or out of a manual computation: its sharding inside differs from that outside.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ManualEnd {
    /// The manual computation.
    pub op: OpId,
    /// The owner of the edge.
    pub owner: ValueId,
    /// Whether the owner is an argument of the body.
    pub is_arg: bool,
}

#[derive(Clone, Debug)]
struct EdgeRow {
    sources: Range<u32>,
    targets: Range<u32>,
}

/// The edge that an operand slot is a source of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SourceEdge {
    /// The edge op.
    pub edge: OpId,
    /// Whether the edge is visited again when the source changes. (The reference misses the
    /// operands of manual and named computations.)
    pub is_notified: bool,
}

/// The table of data-flow edges and holders.
#[derive(Clone)]
pub struct Edges {
    rows: Vec<EdgeRow>,
    /// For each op one more than the row of its edge, 0 if it is no edge. Empty if the program has
    /// no edges.
    row_of: Vec<u32>,
    manual_ends: FxHashMap<OpId, ManualEnd>,
    values: Vec<ValueId>,
    /// For each operand slot the edge that it is a source of. Empty if the program has no edges.
    sources: Vec<Option<SourceEdge>>,
    /// For each value the value that holds its sharding; `NONE` if the holder is in
    /// `manual_holders` or is [`Holder::None`]. Empty if each value holds its own sharding.
    holders: Vec<ValueId>,
    /// The holders of values inside manual computations.
    manual_holders: FxHashMap<ValueId, Holder>,
    /// For each value the other values that have its sharding without an edge op.
    followers: FxHashMap<ValueId, Vec<ValueId>>,
    /// Ops whose operands are sources of edges; some are repeated.
    pub forwarding: Vec<OpId>,
    /// Calls between functions.
    pub calls: Calls,
}

impl Edges {
    /// The edges of all ops of `program`.
    pub fn new(program: &mut Program, source: &dyn RuleSource) -> Self {
        let mut edges = Self {
            rows: Vec::new(),
            row_of: Vec::new(),
            manual_ends: FxHashMap::default(),
            values: Vec::new(),
            sources: Vec::new(),
            holders: Vec::new(),
            manual_holders: FxHashMap::default(),
            followers: FxHashMap::default(),
            forwarding: Vec::new(),
            calls: Calls::new(program),
        };
        // Ops with edges come second: they overwrite what is known of the arguments of their
        // regions.
        for region in program.region_ids() {
            edges.add_opaque_region(program, region);
        }
        for op in program.ops_with_edges_in_pre_order() {
            if let Some(spec) = source.edges(program, op) {
                spec.for_each_edge(program, op, |edge| edges.add_edge(program, op, edge));
            }
        }
        for op in program.ops_of(&[OpKind::FuncDataFlowEdge]) {
            edges.add_func_edge(program, op);
        }
        edges
    }
    /// The values that flow into edge `op`.
    pub fn sources(&self, op: OpId) -> &[ValueId] {
        self.row(op).map_or(&[], |edge| self.slice(&edge.sources))
    }
    /// The targets of edge `op` beside its owner.
    pub fn targets(&self, op: OpId) -> &[ValueId] {
        self.row(op).map_or(&[], |edge| self.slice(&edge.targets))
    }
    /// The manual computation that edge `op` leads into or out of.
    pub fn manual_end(&self, op: OpId) -> Option<ManualEnd> {
        if self.manual_ends.is_empty() {
            return None;
        }
        self.manual_ends.get(&op).copied()
    }
    /// Whether some value is an argument or a result of a manual computation.
    pub fn has_manual_ends(&self) -> bool {
        !self.manual_ends.is_empty() || !self.manual_holders.is_empty()
    }
    #[inline]
    fn row(&self, op: OpId) -> Option<&EdgeRow> {
        let row = self.row_of.get(op.index()).copied()?;
        self.rows.get((row as usize).checked_sub(1)?)
    }
    fn set_row(&mut self, program: &Program, op: OpId, row: EdgeRow) {
        if self.row_of.is_empty() {
            self.row_of = vec![0; program.num_op_ids()];
        }
        self.rows.push(row);
        self.row_of[op.index()] = self.rows.len() as u32;
    }
    /// The edge that `slot` is a source of.
    pub fn edge_of_source(&self, slot: UseId) -> Option<SourceEdge> {
        self.sources.get(slot.index()).copied().flatten()
    }
    /// What holds the sharding of `value`.
    #[inline]
    pub fn holder(&self, value: ValueId) -> Holder {
        match self.plain_holder(value).get() {
            Some(holder) => Holder::Value(holder),
            None => self.manual_holders.get(&value).copied().unwrap_or(Holder::None),
        }
    }
    /// The sharding of `value`, whatever holds it; inside a manual computation, without the manual
    /// axes.
    #[inline]
    pub fn sharding(&self, program: &mut Program, value: ValueId) -> ShardingId {
        match self.holder(value) {
            Holder::Value(holder) => program.sharding(holder),
            Holder::None => ShardingId::NONE,
            Holder::ManualArg(op, arg) => {
                let outer = program.sharding(arg);
                program.inside_manual(op, outer)
            }
        }
    }
    /// The value that holds the sharding of `value`, if any.
    pub fn holder_of(&self, value: ValueId) -> Option<ValueId> {
        match self.holder(value) {
            Holder::Value(holder) | Holder::ManualArg(_, holder) => Some(holder),
            Holder::None => None,
        }
    }
    /// The value that holds the sharding of `value`; `NONE` if the holder is not a plain value.
    #[inline]
    fn plain_holder(&self, value: ValueId) -> ValueId {
        self.holders.get(value.index()).copied().unwrap_or(value)
    }
    /// Replaces each of `values` by the value that holds its sharding. If some holder is not a
    /// plain value, changes nothing and returns false.
    #[inline]
    pub fn replace_by_holders(&self, values: &mut [ValueId]) -> bool {
        if self.holders.is_empty() {
            return true;
        }
        let are_plain = values.iter().all(|&value| self.holders[value.index()].is_some());
        if are_plain {
            for value in values {
                *value = self.holders[value.index()];
            }
        }
        are_plain
    }
    /// Whether any values share a sharding without an edge op.
    #[inline]
    pub fn has_followers(&self) -> bool {
        !self.followers.is_empty()
    }
    /// The values that share the sharding of `value` without an edge op.
    pub fn followers(&self, value: ValueId) -> &[ValueId] {
        self.followers.get(&value).map_or(&[], Vec::as_slice)
    }

    fn slice(&self, range: &Range<u32>) -> &[ValueId] {
        &self.values[range.start as usize..range.end as usize]
    }
    fn add_values(&mut self, values: impl IntoIterator<Item = ValueId>) -> Range<u32> {
        let start = self.values.len() as u32;
        self.values.extend(values);
        start..self.values.len() as u32
    }
    fn set_holder(&mut self, program: &Program, value: ValueId, holder: Holder) {
        if self.holders.is_empty() {
            self.holders = program.value_ids().collect();
        }
        self.holders[value.index()] = ValueId::NONE;
        match holder {
            Holder::Value(holder) => self.holders[value.index()] = holder,
            Holder::ManualArg(..) => {
                self.manual_holders.insert(value, holder);
            }
            Holder::None => {}
        }
    }

    /// Arguments of regions without edges have no sharding; those of an asynchronous computation
    /// share the shardings of its operands.
    fn add_opaque_region(&mut self, program: &Program, region: RegionId) {
        let op = program.region_op(region);
        if program.kind(op) == OpKind::Func || program.is_erased(op) {
            return;
        }
        let is_async =
            program.kind(op) == OpKind::Other && program.op_name(op) == "stablehlo.async_start";
        for block in program.region_blocks(region) {
            for (index, arg) in program.block_args(block).enumerate() {
                if program.types().is_scalar(program.type_of(arg)) {
                    continue; // A declaration has no body.
                }
                self.set_holder(program, arg, Holder::None);
                if let Some(operand) = program.operands(op).nth(index).filter(|_| is_async) {
                    self.set_holder(program, arg, Holder::Value(operand));
                    self.followers.entry(operand).or_default().push(arg);
                }
            }
        }
    }

    fn add_edge(&mut self, program: &Program, op: OpId, edge: &Edge) {
        let kind = program.kind(op);
        let is_manual = kind == OpKind::ManualComputation;
        let is_arg = matches!(program.def(edge.owner), ValueDef::Arg(_));
        // An edge op that is not the only user of its owner is visited, but not found from its
        // owner.
        let users = program.users(edge.owner);
        for user in users.filter(|&user| program.kind(user) == OpKind::DataFlowEdge) {
            let sources = edge.sources.iter().map(|&slot| program.used_value(slot));
            let row = EdgeRow {
                sources: self.add_values(sources),
                targets: self.add_values(edge.targets.iter().copied()),
            };
            self.set_row(program, user, row);
            if is_manual {
                self.manual_ends.insert(user, ManualEnd { op, owner: edge.owner, is_arg });
            }
            for &slot in &edge.sources {
                let is_body = is_manual || kind == OpKind::NamedComputation;
                let is_found = program.has_one_use(edge.owner);
                let is_notified = is_found && !(is_body && program.user(slot) == op);
                self.forwarding.push(program.user(slot));
                if self.sources.is_empty() {
                    self.sources = vec![None; program.num_use_ids()];
                }
                self.sources[slot.index()] = Some(SourceEdge { edge: user, is_notified });
            }
        }
        let holder = match program.data_flow_edge(edge.owner) {
            Some(user) => Holder::Value(program.result(user, 0)),
            None if is_manual && is_arg => Holder::ManualArg(op, edge.owner),
            None => Holder::Value(edge.owner),
        };
        for &value in edge.targets.iter().chain([&edge.owner]) {
            if !self.holders.is_empty() || holder != Holder::Value(value) {
                self.set_holder(program, value, holder);
            }
        }
        if holder == Holder::Value(edge.owner) && !edge.targets.is_empty() {
            self.followers.insert(edge.owner, edge.targets.clone());
        }
    }

    /// An edge into a function from all calls of it, or out of a function at one call.
    fn add_func_edge(&mut self, program: &Program, op: OpId) {
        let value = program.operand(op, 0);
        let index = program.value_index(value);
        let sources: Vec<ValueId> = match program.def(value) {
            ValueDef::Arg(block) => {
                let func = program.function_of(program.block_parent_op(block));
                let calls = self.calls.callers(func).iter();
                calls.filter_map(|&call| program.operands(call).nth(index)).collect()
            }
            ValueDef::Result(call) => {
                let callee = self.calls.callee(call);
                let body = callee.and_then(|callee| program.func_body(callee).get());
                let last = body.and_then(|body| program.last_op(body).get());
                let last = last.filter(|&last| program.kind(last) == OpKind::FuncReturn);
                let operand = last.and_then(|last| program.operands(last).nth(index));
                operand.into_iter().collect()
            }
        };
        let row = EdgeRow { sources: self.add_values(sources), targets: 0..0 };
        self.set_row(program, op, row);
    }
}
