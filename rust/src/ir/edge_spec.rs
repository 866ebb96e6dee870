//! Data-flow edges: which operands, returned values, results and block arguments of an op are
//! sharded alike because values only flow between them.
//!
//! The `i`-th edge of a group joins sources (the `i`-th operand, the `i`-th value that regions return)
//! to targets (the `i`-th result, the `i`-th argument of regions); one target is its *owner* and
//! represents the edge. For a `stablehlo.while` there is one group:
//!
//! | | |
//! | --- | --- |
//! | owner | result `i` |
//! | sources | operand `i`, the `i`-th value returned by region 1 (the body) |
//! | other targets | argument `i` of region 0 (the condition) and of region 1 |
//!
//! The number of edges in a group is the number of the owner's values: results or block arguments.
//!
//! Source: Shardy's `ShardableDataFlowOpInterface`.

use super::{OpKind, Program, ValueDef};
use crate::index::{BlockId, Id, OpId, SignatureId, StrId, UseId, ValueId};
use crate::shardy::Change;
use rustc_hash::FxHashMap;
use std::borrow::Cow;
use std::sync::Arc;

/// A set of an op's regions. Regions from the 64th on are only in [`Regions::ALL`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Regions(u64);

impl Regions {
    /// No region.
    pub const NONE: Self = Self(0);
    /// Every region.
    pub const ALL: Self = Self(u64::MAX);

    /// The `index`-th region alone; `index` is below 63.
    pub const fn only(index: u32) -> Self {
        Self(1 << index)
    }
    /// The regions of both sets.
    #[must_use]
    pub const fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
    /// Whether the `index`-th region is in the set.
    pub const fn contains(self, index: usize) -> bool {
        if index < 64 {
            self.0 >> index & 1 == 1
        } else {
            self.0 == u64::MAX
        }
    }
}

/// Which values own the edges of a group.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EdgeOwners {
    /// The results of the op.
    Results,
    /// The arguments of the entry block of this region.
    BlockArgs(u32),
}

/// The order in which the edges of a group take values of one kind.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Order {
    /// The `i`-th edge takes the `i`-th value.
    #[default]
    Same,
    /// The `i`-th edge takes the value at the `i`-th listed position; edges beyond the list take
    /// none.
    Listed(Arc<[u32]>),
}

impl Order {
    /// The position that the edge with this index takes.
    fn position(&self, edge: usize) -> Option<usize> {
        match self {
            Self::Same => Some(edge),
            Self::Listed(positions) => positions.get(edge).map(|&position| position as usize),
        }
    }
    /// The first edge that takes this position.
    fn edge_at(&self, position: usize) -> Option<usize> {
        match self {
            Self::Same => Some(position),
            Self::Listed(positions) => positions.iter().position(|&at| at as usize == position),
        }
    }
}

/// A group of edges with the same kinds of sources and targets, one for each owner.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EdgeGroup {
    /// What owns the edges.
    pub owners: EdgeOwners,
    /// The `i`-th edge has operand `first + i` among its sources, where this is `Some(first)`.
    pub first_operand: Option<u32>,
    /// The regions whose `i`-th returned value is a source of the `i`-th edge.
    pub returns: Regions,
    /// The regions whose `i`-th argument is a target of the `i`-th edge; an owner need not be listed.
    pub block_args: Regions,
    /// Which operand each edge takes, counted from `first_operand`.
    pub operand_order: Order,
    /// Which returned value of each region each edge takes.
    pub return_order: Order,
    /// Which block argument each edge takes in regions whose arguments do not own the edges.
    pub arg_order: Order,
    /// The attribute of the op with the shardings of the block arguments that own the edges, a
    /// `#sdy.sharding_per_value`. If `None`, these shardings are not in the text.
    pub stored_in: Option<Arc<str>>,
}

/// All data-flow edges of an op: groups whose owners are block arguments first.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EdgeSpec {
    /// The groups.
    pub groups: Cow<'static, [EdgeGroup]>,
}

/// The edges that users have given to ops.
#[derive(Clone, Debug, Default)]
pub(super) struct EdgeSpecs {
    by_name: FxHashMap<StrId, EdgeSpec>,
    by_signature: FxHashMap<SignatureId, EdgeSpec>,
}

impl EdgeSpecs {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.by_name.is_empty() && self.by_signature.is_empty()
    }
}

/// One edge of an op.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Edge {
    /// The target that represents the edge.
    pub owner: ValueId,
    /// Operand slots whose values flow in: those of the op, then those of its regions' terminators.
    pub sources: Vec<UseId>,
    /// The targets beside the owner, in the order of regions.
    pub targets: Vec<ValueId>,
}

const RESULTS: EdgeGroup = EdgeGroup {
    owners: EdgeOwners::Results,
    first_operand: None,
    returns: Regions::NONE,
    block_args: Regions::NONE,
    operand_order: Order::Same,
    return_order: Order::Same,
    arg_order: Order::Same,
    stored_in: None,
};

static WHILE: [EdgeGroup; 1] = [EdgeGroup {
    first_operand: Some(0),
    returns: Regions::only(1),
    block_args: Regions::ALL,
    ..RESULTS
}];
static CASE: [EdgeGroup; 1] = [EdgeGroup { returns: Regions::ALL, ..RESULTS }];
static OPTIMIZATION_BARRIER: [EdgeGroup; 1] = [EdgeGroup { first_operand: Some(0), ..RESULTS }];
/// The edges of `sdy.manual_computation`, `sdy.named_computation` and `mpmd.fragment`: from operands to arguments of the body,
/// and from its returned values to results.
static BODY: [EdgeGroup; 2] = [
    EdgeGroup { owners: EdgeOwners::BlockArgs(0), first_operand: Some(0), ..RESULTS },
    EdgeGroup { returns: Regions::only(0), ..RESULTS },
];
/// The edges of `mpmd.for`: those of a `stablehlo.while` with one region.
static FOR: [EdgeGroup; 1] = [EdgeGroup {
    first_operand: Some(0),
    returns: Regions::only(0),
    block_args: Regions::only(0),
    ..RESULTS
}];
static SPECS: [EdgeSpec; 5] = [
    EdgeSpec { groups: Cow::Borrowed(&WHILE) },
    EdgeSpec { groups: Cow::Borrowed(&CASE) },
    EdgeSpec { groups: Cow::Borrowed(&OPTIMIZATION_BARRIER) },
    EdgeSpec { groups: Cow::Borrowed(&BODY) },
    EdgeSpec { groups: Cow::Borrowed(&FOR) },
];

impl EdgeSpec {
    /// The kinds of ops that have edges; those of `stablehlo.if` since [`Change::IfEdges`].
    pub const KINDS: [OpKind; 8] = [
        OpKind::While,
        OpKind::Case,
        OpKind::If,
        OpKind::OptimizationBarrier,
        OpKind::ManualComputation,
        OpKind::NamedComputation,
        OpKind::Fragment,
        OpKind::MpmdFor,
    ];
    /// The edges of ops of this kind in the newest version, `None` if it has none.
    #[inline]
    pub fn of_kind(kind: OpKind) -> Option<&'static Self> {
        match kind {
            OpKind::While => Some(&SPECS[0]),
            OpKind::Case | OpKind::If => Some(&SPECS[1]),
            OpKind::OptimizationBarrier => Some(&SPECS[2]),
            OpKind::ManualComputation | OpKind::NamedComputation | OpKind::Fragment => {
                Some(&SPECS[3])
            }
            OpKind::MpmdFor => Some(&SPECS[4]),
            _ => None,
        }
    }

    /// Every edge of `op` in the order of groups and owners.
    pub fn edges(&self, program: &Program, op: OpId) -> Vec<Edge> {
        let mut edges = Vec::new();
        self.for_each_edge(program, op, |edge| edges.push(edge.clone()));
        edges
    }
    /// Calls `visit` with every edge of `op`, in the order of groups and owners.
    pub fn for_each_edge(&self, program: &Program, op: OpId, mut visit: impl FnMut(&Edge)) {
        let mut edge = Edge { owner: ValueId::NONE, sources: Vec::new(), targets: Vec::new() };
        for group in self.groups.iter() {
            for index in 0..group.num_edges(program, op) {
                if let Some(owner) = group.owner(program, op, index) {
                    edge.owner = owner;
                    group.fill_edge(program, op, index, &mut edge);
                    visit(&edge);
                }
            }
        }
    }

    /// The owner of the edge that has `target`, a result of `op` or an argument of one of its
    /// regions, among its targets.
    pub fn owner_of_target(&self, program: &Program, op: OpId, target: ValueId) -> Option<ValueId> {
        let position = program.value_index(target);
        let (group, index) = match program.values[target].def() {
            ValueDef::Result(_) => {
                let owns = |group: &&EdgeGroup| group.owners == EdgeOwners::Results;
                (self.groups.iter().find(owns)?, position)
            }
            ValueDef::Arg(block) => {
                let region = region_index(program, op, block)?;
                let mut edges = self
                    .groups
                    .iter()
                    .filter_map(|group| Some((group, group.edge_of_block_arg(region, position)?)));
                edges.next()?
            }
        };
        group.owner(program, op, index)
    }
}

impl Program {
    /// Sets the data-flow edges that users have given to ops, by op name and by signature,
    /// replacing all earlier ones.
    pub fn set_edge_specs<'n>(
        &mut self,
        by_name: impl Iterator<Item = (&'n str, EdgeSpec)>,
        by_signature: impl Iterator<Item = (SignatureId, EdgeSpec)>,
    ) {
        self.edge_specs.by_name.clear();
        for (name, spec) in by_name {
            let name = self.strings.intern(name);
            self.edge_specs.by_name.insert(name, spec);
        }
        self.edge_specs.by_signature = by_signature.collect();
    }
    /// Whether users have given data-flow edges to any op.
    pub fn has_edge_specs(&self) -> bool {
        !self.edge_specs.is_empty()
    }
    /// The data-flow edges of `op`, `None` if it has none.
    #[inline]
    pub fn edge_spec(&self, op: OpId) -> Option<&EdgeSpec> {
        if !self.edge_specs.is_empty() {
            let specs = &self.edge_specs;
            let by_name = specs.by_name.get(&self.ops[op].name);
            let spec = by_name.or_else(|| specs.by_signature.get(&self.signature(op)));
            if spec.is_some() {
                return spec;
            }
        }
        let kind = self.kind(op);
        if kind == OpKind::If && !self.shardy().has(Change::IfEdges) {
            return None;
        }
        EdgeSpec::of_kind(kind)
    }
    /// The data-flow edge that `value` belongs to, and the op that has the edge: `value` is a target, or the result
    /// of the edge op.
    pub fn edge_of_target(&self, value: ValueId) -> Option<(OpId, Edge)> {
        let (op, target) = match self.values[value].def() {
            ValueDef::Result(edge) if self.kind(edge) == OpKind::DataFlowEdge => {
                let owner = self.operand(edge, 0);
                (self.owning_op(owner), owner)
            }
            _ => (self.owning_op(value), value),
        };
        let spec = self.edge_spec(op)?;
        let owner = spec.owner_of_target(self, op, target)?;
        spec.edges(self, op).into_iter().find(|edge| edge.owner == owner).map(|edge| (op, edge))
    }
    /// The op that defines `value`, or whose region `value` is an argument of.
    fn owning_op(&self, value: ValueId) -> OpId {
        match self.values[value].def() {
            ValueDef::Result(op) => op,
            ValueDef::Arg(block) => self.block_parent_op(block),
        }
    }
}

impl EdgeGroup {
    /// How many edges `op` has in this group.
    pub fn num_edges(&self, program: &Program, op: OpId) -> usize {
        match self.owners {
            EdgeOwners::Results => program.ops[op].num_results as usize,
            EdgeOwners::BlockArgs(region) => entry_block(program, op, region as usize)
                .map_or(0, |block| program.blocks[block].num_args as usize),
        }
    }

    /// The owner of the `index`-th edge.
    pub fn owner(&self, program: &Program, op: OpId, index: usize) -> Option<ValueId> {
        if index >= self.num_edges(program, op) {
            return None;
        }
        match self.owners {
            EdgeOwners::Results => Some(program.result(op, index)),
            EdgeOwners::BlockArgs(region) => {
                let block = entry_block(program, op, region as usize)?;
                Some(ValueId::from_index(program.blocks[block].first_arg.index() + index))
            }
        }
    }

    /// Fills in the sources and targets of the `index`-th edge, whose owner is set already.
    fn fill_edge(&self, program: &Program, op: OpId, index: usize, edge: &mut Edge) {
        let Edge { owner, sources, targets } = edge;
        sources.clear();
        targets.clear();
        if let Some(first) = self.first_operand {
            let position = self.operand_order.position(index);
            let slot = position.and_then(|at| program.op_uses(op).nth(first as usize + at));
            sources.extend(slot);
        }
        for region in 0..program.ops[op].num_regions as usize {
            if self.returns.contains(region) {
                let terminator = program.region_terminator(op, region);
                let position = self.return_order.position(index);
                let slot = terminator.zip(position);
                sources.extend(slot.and_then(|(user, at)| program.op_uses(user).nth(at)));
            }
            if self.block_args.contains(region) {
                let block = entry_block(program, op, region);
                let arg = block.zip(self.position_in(region, index));
                let arg = arg.and_then(|(block, at)| program.block_args(block).nth(at));
                targets.extend(arg.filter(|arg| arg != owner));
            }
        }
    }

    /// The position of the argument of `region` that the edge with this index takes.
    fn position_in(&self, region: usize, edge: usize) -> Option<usize> {
        match self.owners {
            EdgeOwners::BlockArgs(own) if own as usize == region => Some(edge),
            _ => self.arg_order.position(edge),
        }
    }
    /// The edge that has the argument of `region` at this position among its targets.
    fn edge_of_block_arg(&self, region: usize, position: usize) -> Option<usize> {
        if matches!(self.owners, EdgeOwners::BlockArgs(own) if own as usize == region) {
            return Some(position);
        }
        if self.block_args.contains(region) {
            return self.arg_order.edge_at(position);
        }
        None
    }
}

fn entry_block(program: &Program, op: OpId, region: usize) -> Option<BlockId> {
    program.region_entry(program.op_regions(op).nth(region)?).get()
}

/// Which region of `op` holds `block`.
fn region_index(program: &Program, op: OpId, block: BlockId) -> Option<usize> {
    let region = program.blocks[block.get()?].region;
    program.op_regions(op).position(|candidate| candidate == region)
}
