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
//! An op has as many edges in a group as the owner has values.
//!
//! Source: Shardy's `ShardableDataFlowOpInterface`.

use super::{OpKind, Program, ValueDef};
use crate::index::{BlockId, Id, OpId, UseId, ValueId};
use std::borrow::Cow;

/// A set of an op's regions; one beyond the 64th is only in [`Regions::ALL`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Regions(u64);

impl Regions {
    /// No region.
    pub const NONE: Self = Self(0);
    /// Every region.
    pub const ALL: Self = Self(u64::MAX);

    /// The `index`-th region alone, below 63.
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

/// A group of edges with the same kinds of sources and targets, one for each owner.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EdgeGroup {
    /// What owns the edges.
    pub owners: EdgeOwners,
    /// The `i`-th edge has operand `first + i` among its sources, where this is `Some(first)`.
    pub first_operand: Option<u32>,
    /// The regions whose `i`-th returned value is a source of the `i`-th edge.
    pub returns: Regions,
    /// The regions whose `i`-th argument is a target of the `i`-th edge; an owner need not be listed.
    pub block_args: Regions,
}

/// All data-flow edges of an op: groups whose owners are block arguments first.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EdgeSpec {
    /// The groups.
    pub groups: Cow<'static, [EdgeGroup]>,
}

/// One edge of an op.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Edge {
    /// The target that represents the edge.
    pub owner: ValueId,
    /// Operand slots whose values flow in: the op's own, then those of its regions' terminators.
    pub sources: Vec<UseId>,
    /// The targets beside the owner, in the order of regions.
    pub targets: Vec<ValueId>,
}

const RESULTS: EdgeGroup = EdgeGroup {
    owners: EdgeOwners::Results,
    first_operand: None,
    returns: Regions::NONE,
    block_args: Regions::NONE,
};

static WHILE: EdgeSpec = EdgeSpec {
    groups: Cow::Borrowed(&[EdgeGroup {
        first_operand: Some(0),
        returns: Regions::only(1),
        block_args: Regions::ALL,
        ..RESULTS
    }]),
};
static CASE: EdgeSpec =
    EdgeSpec { groups: Cow::Borrowed(&[EdgeGroup { returns: Regions::ALL, ..RESULTS }]) };
static OPTIMIZATION_BARRIER: EdgeSpec =
    EdgeSpec { groups: Cow::Borrowed(&[EdgeGroup { first_operand: Some(0), ..RESULTS }]) };
/// The edges of `sdy.manual_computation` and `sdy.named_computation`: from operands to arguments of the body,
/// and from its returned values to results.
static BODY: EdgeSpec = EdgeSpec {
    groups: Cow::Borrowed(&[
        EdgeGroup { owners: EdgeOwners::BlockArgs(0), first_operand: Some(0), ..RESULTS },
        EdgeGroup { returns: Regions::only(0), ..RESULTS },
    ]),
};

impl EdgeSpec {
    /// The kinds of ops that have edges.
    pub const KINDS: [OpKind; 5] = [
        OpKind::While,
        OpKind::Case,
        OpKind::OptimizationBarrier,
        OpKind::ManualComputation,
        OpKind::NamedComputation,
    ];
    /// The edges of ops of this kind, `None` if it has none.
    #[inline]
    pub fn of_kind(kind: OpKind) -> Option<&'static Self> {
        match kind {
            OpKind::While => Some(&WHILE),
            OpKind::Case => Some(&CASE),
            OpKind::OptimizationBarrier => Some(&OPTIMIZATION_BARRIER),
            OpKind::ManualComputation | OpKind::NamedComputation => Some(&BODY),
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
        let index = program.value_index(target);
        let group = self.groups.iter().find(|group| match program.values[target].def() {
            ValueDef::Result(_) => group.owners == EdgeOwners::Results,
            ValueDef::Arg(block) => region_index(program, op, block)
                .is_some_and(|region| group.takes_block_args_of(region)),
        })?;
        group.owner(program, op, index)
    }
}

impl Program {
    /// Sets the data-flow edges that users have given to ops, by op name, instead of all earlier ones.
    pub fn set_edge_specs<'n>(&mut self, specs: impl Iterator<Item = (&'n str, EdgeSpec)>) {
        self.edge_specs.clear();
        for (name, spec) in specs {
            let name = self.strings.intern(name);
            self.edge_specs.insert(name, spec);
        }
    }
    /// Whether users have given data-flow edges to any op.
    pub fn has_edge_specs(&self) -> bool {
        !self.edge_specs.is_empty()
    }
    /// The data-flow edges of `op`, `None` if it has none.
    #[inline]
    pub fn edge_spec(&self, op: OpId) -> Option<&EdgeSpec> {
        if !self.edge_specs.is_empty() {
            if let Some(spec) = self.edge_specs.get(&self.ops[op].name) {
                return Some(spec);
            }
        }
        EdgeSpec::of_kind(self.kind(op))
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
            sources.extend(program.op_uses(op).nth(first as usize + index));
        }
        for region in 0..program.ops[op].num_regions as usize {
            if self.returns.contains(region) {
                let terminator = program.region_terminator(op, region);
                sources.extend(terminator.and_then(|user| program.op_uses(user).nth(index)));
            }
            if self.block_args.contains(region) {
                let block = entry_block(program, op, region);
                let arg = block.and_then(|block| program.block_args(block).nth(index));
                targets.extend(arg.filter(|arg| arg != owner));
            }
        }
    }

    fn takes_block_args_of(&self, region: usize) -> bool {
        self.block_args.contains(region)
            || matches!(self.owners, EdgeOwners::BlockArgs(own) if own as usize == region)
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
