//! Where the sharding of a value is stored when the op that defines it has data-flow edges.
//!
//! Between import and export an edge is an op, `sdy.data_flow_edge`, on the edge's owner, and stores the
//! sharding of all targets. Before and after, the owner stores it. A manual computation stores the
//! shardings of its arguments and results as they are outside, manual axes included.
//!
//! Source: `getSharding` and `setSharding` of Shardy's utilities.

use super::{OpKind, Payload, Program, ValueDef};
use crate::bitset::BitSet;
use crate::index::{AxisId, Id, MeshId, OpId, ShardingId, StrId, TypeId, ValueId};
use crate::sharding::{ReductionOp, TensorSharding};
use crate::shardy::Change;
use std::borrow::Cow;
use std::ops::Range;

impl Program {
    /// The `sdy.data_flow_edge` on `owner`: its only user.
    pub fn data_flow_edge(&self, owner: ValueId) -> Option<OpId> {
        let slot = self.values[owner].first_use.get()?;
        let user = self.operands[slot].owner;
        let is_edge = self.kind(user) == OpKind::DataFlowEdge && self.has_one_use(owner);
        is_edge.then_some(user)
    }
    /// The manual axes of `op`, a manual computation, as axes of the mesh of `sharding`.
    pub fn manual_axes(&self, op: OpId, sharding: &TensorSharding) -> BitSet<AxisId> {
        let mesh = self.mesh(sharding.mesh);
        let mut axes = BitSet::new(mesh.axes.len());
        if let Some(Payload::ManualComputation(names)) = self.payload(op) {
            for axis in names.iter().filter_map(|&n| mesh.axis_by_name(self.strings.get(n))) {
                axes.insert(axis);
            }
        }
        axes
    }
    /// The names of the manual axes of the manual computations around `value`, innermost computation first.
    pub fn manual_axes_around(&self, value: ValueId) -> Vec<StrId> {
        match self.values[value].def() {
            ValueDef::Result(op) => self.manual_axes_around_op(op),
            ValueDef::Arg(block) => self.manual_axes_from(Some(self.block_parent_op(block))),
        }
    }
    /// The axes that are manual around `op`.
    pub fn manual_axes_around_op(&self, op: OpId) -> Vec<StrId> {
        self.manual_axes_from(self.parent_op(op))
    }
    /// The manual axes of `around` and of the ops around it.
    fn manual_axes_from(&self, mut around: Option<OpId>) -> Vec<StrId> {
        let mut names = Vec::new();
        while let Some(op) = around {
            if let Some(Payload::ManualComputation(axes)) = self.payload(op) {
                names.extend_from_slice(axes);
            }
            around = self.parent_op(op);
        }
        names
    }
    /// The value that stores the sharding of `value`: the result of its data-flow edge, the owner
    /// of its edge, or itself. `None` for region arguments that have no sharding.
    pub fn shardable_value(&self, value: ValueId) -> Option<ValueId> {
        let owning_op = match self.values[value].def() {
            ValueDef::Result(op) => op,
            ValueDef::Arg(block) => self.block_parent_op(block),
        };
        if let Some(spec) = self.edge_spec(owning_op) {
            let owner = spec.owner_of_target(self, owning_op, value)?;
            return match self.data_flow_edge(owner) {
                Some(edge) => Some(self.result(edge, 0)),
                None => Some(owner),
            };
        }
        let is_shardable = matches!(self.values[value].def(), ValueDef::Result(_))
            || self.kind(owning_op) == OpKind::Func;
        is_shardable.then_some(value)
    }
    /// The sharding of `value`, wherever it is stored: on its data-flow edge, on the owner of
    /// that, or on itself. Inside a manual computation it is without the manual axes.
    pub fn sharding_of(&mut self, value: ValueId) -> ShardingId {
        let Some(value) = self.shardable_value(value) else { return ShardingId::NONE };
        let id = self.sharding(value);
        match (self.manual_computation_of_arg(value), self.shardings.get(id)) {
            (Some(op), Some(outer)) => {
                let inner = outer.without_manual_axes(&self.manual_axes(op, outer));
                self.shardings.intern(inner)
            }
            _ => id,
        }
    }
    /// The value that has the sharding of `value`: the value itself if it is an op result, else the
    /// owner of its data-flow edge. `None` for region arguments that have no sharding.
    pub fn sharding_holder(&self, value: ValueId) -> Option<ValueId> {
        match self.values[value].def() {
            ValueDef::Result(_) => Some(value),
            ValueDef::Arg(_) => self.shardable_value(value),
        }
    }
    /// The sharding of `value` as it applies to the type of `value`. An argument of a loop body has
    /// the sharding of the carried value. For an argument of a manual computation, whose type is
    /// local with respect to the manual axes, the manual axes are removed.
    pub fn visible_sharding(&self, value: ValueId) -> Option<Cow<'_, TensorSharding>> {
        let holder = self.sharding_holder(value)?;
        let sharding = self.shardings.get(self.sharding(holder))?;
        Some(match self.manual_computation_of_arg(holder) {
            Some(op) => Cow::Owned(sharding.without_manual_axes(&self.manual_axes(op, sharding))),
            None => Cow::Borrowed(sharding),
        })
    }
    /// The id of [`Program::visible_sharding`]; `None` if it is not in the program's table of
    /// shardings, which may be so where manual axes are removed.
    pub fn visible_sharding_id(&self, value: ValueId) -> Option<ShardingId> {
        let Some(holder) = self.sharding_holder(value) else { return Some(ShardingId::NONE) };
        self.manual_computation_of_arg(holder).is_none().then(|| self.sharding(holder))
    }
    /// The manual computation whose body `value` is an argument of.
    pub fn manual_computation_of_arg(&self, value: ValueId) -> Option<OpId> {
        let ValueDef::Arg(block) = self.values[value].def() else { return None };
        let op = self.block_parent_op(block);
        (self.kind(op) == OpKind::ManualComputation).then_some(op)
    }
    /// Sets the sharding of `arg`, an argument of the body of manual computation `op`: the free
    /// axes of its outer sharding become the axes of `inner`. As in the reference, the reduction of
    /// all arguments becomes the sum.
    pub fn set_manual_arg_sharding(&mut self, op: OpId, arg: ValueId, inner: ShardingId) {
        let sharding = self.with_manual_axes(op, arg, inner);
        self.set_sharding(arg, sharding);
        if !self.shardy.has(Change::ReductionOps) {
            return;
        }
        let ValueDef::Arg(block) = self.values[arg].def() else { return };
        for other in self.block_args(block) {
            let summed = match self.shardings.get(self.sharding(other)) {
                Some(sharding) if sharding.reduction_op != ReductionOp::Sum => {
                    TensorSharding { reduction_op: ReductionOp::Sum, ..sharding.clone() }
                }
                _ => continue,
            };
            let summed = self.shardings.intern(summed);
            self.set_sharding(other, summed);
        }
    }
    /// Sets the sharding that [`Program::sharding_of`] reads.
    pub fn set_sharding_of(&mut self, value: ValueId, sharding: ShardingId) {
        let Some(value) = self.shardable_value(value) else { return };
        if let Some(op) = self.manual_computation_of_arg(value) {
            self.set_manual_arg_sharding(op, value, sharding);
        } else if self.defining_op(value).is_some() {
            self.set_result_sharding(value, sharding);
        } else {
            self.set_sharding(value, sharding);
        }
    }
    /// `outer`, the sharding outside manual computation `op` of one of its arguments or results,
    /// without the manual axes: the sharding inside.
    pub fn inside_manual(&mut self, op: OpId, outer: ShardingId) -> ShardingId {
        let Some(sharding) = self.shardings.get(outer) else { return outer };
        let inner = sharding.without_manual_axes(&self.manual_axes(op, sharding));
        self.shardings.intern(inner)
    }
    /// Positions of the values that get shardings together with `value`, itself included: all results
    /// of an op, all arguments of a named computation.
    #[inline]
    pub fn siblings(&self, value: ValueId) -> Range<usize> {
        let (first, count) = match self.values[value].def() {
            ValueDef::Result(op) => (self.ops[op].first_result, self.ops[op].num_results),
            ValueDef::Arg(block)
                if matches!(
                    self.kind(self.block_parent_op(block)),
                    OpKind::NamedComputation | OpKind::Fragment
                ) =>
            {
                (self.blocks[block].first_arg, self.blocks[block].num_args)
            }
            ValueDef::Arg(_) => (value, 1),
        };
        first.index()..first.index() + count as usize
    }
    /// `inner` preceded, in each dim, by the manual axes of the sharding that `value`, an argument
    /// or result of manual computation `op`, has on the outside.
    pub fn with_manual_axes(&mut self, op: OpId, value: ValueId, inner: ShardingId) -> ShardingId {
        let outer = self.shardings.get(self.sharding(value));
        let (Some(outer), Some(inner)) = (outer, self.shardings.get(inner)) else {
            return inner;
        };
        let sharding = outer.with_free_axes_of(inner, &self.manual_axes(op, outer));
        self.shardings.intern(sharding)
    }
    /// The sharding of rank `rank` over `mesh` without axes, open or closed.
    pub fn replicated(&mut self, mesh: MeshId, value_type: TypeId, is_closed: bool) -> ShardingId {
        let rank = self.types[value_type].rank().unwrap_or(0);
        self.shardings.intern(TensorSharding::fully_replicated(mesh, rank, is_closed))
    }
    /// Sets the sharding of result `value`. If no result of the op had a sharding, the other
    /// results get open shardings, since an op has shardings for all of its results or for none.
    pub fn set_result_sharding(&mut self, value: ValueId, sharding: ShardingId) {
        let Some(op) = self.defining_op(value) else { return };
        let mesh = self.mesh_of(sharding);
        if mesh.is_some() && self.ops[op].num_results > 1 && self.sharding(value).is_none() {
            for other in self.op_results(op) {
                if other != value && self.sharding(other).is_none() {
                    let open = self.replicated(mesh, self.values[other].ty, false);
                    self.set_sharding(other, open);
                }
            }
        }
        self.set_sharding(value, sharding);
    }
}
