//! A per-device program together with its source: for each local op and value its origin in the source program.

use crate::index::{Id, MeshId, OpId, ValueId};
use crate::inlining::call_inliner::Originals;
use crate::ir::{OpKind, Program};
use crate::sharding::TensorSharding;
use std::borrow::Cow;

/// A per-device program, and its source. Ops and values that partitioning kept have the same ids in both, or in the copy of the
/// source in which calls were inlined.
#[derive(Clone, Copy)]
pub struct Local<'a> {
    /// The program that a device runs.
    pub program: &'a Program,
    /// The program before partitioning, which has names, shardings and meshes.
    pub source: &'a Program,
    /// If calls were inlined before partitioning, the original of each clone.
    pub originals: Option<&'a Originals>,
}

impl<'a> Local<'a> {
    /// The op of the source that became `op`; `None` if partitioning created it.
    pub fn source_op(self, op: OpId) -> Option<OpId> {
        let op = self.originals.map_or(op, |originals| originals.op(op));
        (op.index() < self.source.num_op_ids()).then_some(op)
    }
    /// The value of the source that became `value`; `None` if partitioning created it.
    pub fn source_value(self, value: ValueId) -> Option<ValueId> {
        let value = self.originals.map_or(value, |originals| originals.value(value));
        (value.index() < self.source.num_value_ids()).then_some(value)
    }
    /// The sharding of `value` in the source. If calls were inlined, the clone's own sharding is preferred, since the original may
    /// be erased.
    pub fn sharding(self, value: ValueId) -> Option<Cow<'a, TensorSharding>> {
        let clone = (value.index() < self.source.num_value_ids()).then_some(value);
        let of = |value| self.source.visible_sharding(value);
        clone.and_then(of).or_else(|| self.source_value(value).and_then(of))
    }
    /// The op of the source that required a collective which was created for `op`.
    ///
    /// That is `op` itself, unless it is a collective, or a reshard that is not in the text. For one that a pass inserted it is the
    /// op that the pass recorded; otherwise, for a reduction, the op whose partial results are reduced; else, and for a reduction
    /// of an argument, the first user of its result, through other collectives.
    pub fn cause(self, op: OpId) -> Option<OpId> {
        // The op that a pass recorded may be erased since, as a reshard that became collectives.
        // So may a function all of whose calls were inlined; its clones stand for its ops then.
        let is_there =
            |op: &OpId| op.index() < self.source.num_op_ids() && !self.source.is_erased(*op);
        let cause = self.source_op(op).filter(is_there).or_else(|| Some(op).filter(is_there))?;
        let moves = |op: OpId| {
            let is_inserted =
                self.source.kind(op) == OpKind::Reshard && self.source.op_span(op).is_none();
            is_inserted || self.source.kind(op).is_collective()
        };
        if !moves(cause) {
            return Some(cause);
        }
        let recorded = self.source.cause(cause).filter(|&op| !self.source.is_erased(op));
        if recorded.is_some() {
            return recorded;
        }
        let made_by = |op: OpId| self.source.defining_op(self.source.operands(op).next()?);
        // Uses are newest first.
        let used_by = |op: OpId| {
            let last = self.source.uses(self.source.op_results(op).next()?).last()?;
            Some(self.source.user(last))
        };
        let first_that_computes = |next: &dyn Fn(OpId) -> Option<OpId>| {
            std::iter::successors(Some(cause), |&at| next(at)).find(|&at| !moves(at))
        };
        let is_sum = matches!(self.source.kind(cause), OpKind::AllReduce | OpKind::ReduceScatter);
        let summed = is_sum.then(|| first_that_computes(&made_by)).flatten();
        // No op makes an argument that is partial.
        summed.or_else(|| first_that_computes(&used_by))
    }
    /// The meshes with several devices that the replica groups of a collective may refer to, the most likely ones first: that of
    /// the manual computation around `cause`, those of its operands and results, and all others.
    pub fn meshes(self, cause: Option<OpId>) -> impl Iterator<Item = MeshId> + 'a {
        let source = self.source;
        let near = cause.into_iter().flat_map(move |op| {
            let values = source.operands(op).chain(source.op_results(op));
            let own = values.filter_map(move |value| source.visible_sharding(value)?.mesh.get());
            mesh_around(source, op).into_iter().chain(own)
        });
        let has_several = move |mesh: &MeshId| source.mesh(*mesh).device_count() > 1;
        near.chain(source.meshes().ids()).filter(has_several)
    }
}

/// The mesh of the innermost manual computation around `op`.
fn mesh_around(program: &Program, op: OpId) -> Option<MeshId> {
    let mut at = op;
    while let Some(parent) = program.parent_op(at) {
        if program.kind(parent) == OpKind::ManualComputation {
            let arguments =
                program.op_regions(parent).filter_map(|id| program.region_entry(id).get());
            let outer = arguments.flat_map(|block| program.block_args(block));
            let mut values = outer.chain(program.op_results(parent));
            if let Some(mesh) =
                values.find_map(|value| program.mesh_of(program.sharding(value)).get())
            {
                return Some(mesh);
            }
        }
        at = parent;
    }
    None
}
