//! The state of a value between the shardings of the operand and the result of a reshard.

use super::align::{align, align_both};
use crate::axis::{push_or_merge, AxisRef};
use crate::index::{MeshId, OpId, ShardingId, ValueId};
use crate::ir::{OpKind, Payload, Program};
use crate::mesh::Mesh;
use crate::sharding::{DimSharding, ReductionOp, TensorSharding};
use crate::shardy::Change;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// The state of a value that collectives reshard step by step.
///
/// `incoming` and `outgoing` are the axes of the current and of the wanted sharding, in each dim,
/// after their common prefix; sub-axes are split so that axes that overlap are equal. Every
/// collective removes differences; when both are empty, the value has the wanted sharding. From
/// `[{"x", "y"}, {}]` to `[{"x"}, {"y"}]`:
///
/// | | dim 0 | dim 1 |
/// | --- | --- | --- |
/// | current | `x y` | |
/// | incoming | `y` | |
/// | outgoing | | `y` |
///
/// and one all-to-all of `y` from dim 0 to dim 1 completes the reshard.
pub struct State<'a> {
    pub program: &'a mut Program,
    /// The reshard that is replaced.
    op: OpId,
    /// The result of the collectives so far.
    pub value: ValueId,
    pub mesh: Arc<Mesh>,
    current_mesh: MeshId,
    wanted_mesh: MeshId,
    unreduced: Vec<AxisRef>,
    /// The current axes of each dim.
    pub current: Vec<Vec<AxisRef>>,
    pub incoming: Vec<Vec<AxisRef>>,
    pub outgoing: Vec<Vec<AxisRef>>,
    /// All axes in `incoming`.
    incoming_set: Vec<AxisRef>,
    /// The position of each axis in `outgoing`: dim and index.
    out_places: FxHashMap<AxisRef, (usize, usize)>,
    /// The factor by which each dim may still be sharded further.
    pub capacity: Vec<i64>,
    /// For each dim whether the wanted sharding and that of the operand pad it to different sizes;
    /// false after the dim was whole.
    changes_padding: Vec<bool>,
}

impl<'a> State<'a> {
    /// The state of `value`, sharded as `source`, which is resharded to `target` in place of `op`.
    pub fn new(
        program: &'a mut Program,
        op: OpId,
        value: ValueId,
        source: ShardingId,
        target: ShardingId,
    ) -> Self {
        let axes = |id: ShardingId| -> Vec<Vec<AxisRef>> {
            program.shardings()[id].dims.iter().map(|dim| dim.axes.clone()).collect()
        };
        let (mut incoming, mut outgoing) = (axes(source), axes(target));
        let current = incoming.clone();
        let (current_mesh, wanted_mesh) = (program.mesh_of(source), program.mesh_of(target));
        let mesh = program.meshes()[current_mesh].mesh.clone();
        let unreduced = program.shardings()[target].unreduced.clone();
        align_both(&mut incoming, &mut outgoing, &mesh);
        for (incoming, outgoing) in incoming.iter_mut().zip(&mut outgoing) {
            let pairs = incoming.iter().zip(outgoing.iter());
            let common = pairs.take_while(|(a, b)| a == b).count();
            incoming.drain(..common);
            outgoing.drain(..common);
        }
        let mut state = Self {
            capacity: vec![1; current.len()],
            changes_padding: vec![false; current.len()],
            incoming_set: incoming.iter().flatten().copied().collect(),
            out_places: FxHashMap::default(),
            program,
            op,
            value,
            mesh,
            current_mesh,
            wanted_mesh,
            unreduced,
            current,
            incoming,
            outgoing,
        };
        state.index_outgoing();
        if state.program.shardy().has(Change::PaddingInReshards) {
            let dims = 0..state.rank();
            state.changes_padding = dims.map(|dim| state.is_padded_otherwise(dim)).collect();
        }
        state
    }
    /// Makes the collectives that lead to the wanted sharding.
    pub fn insert_collectives(&mut self) {
        let rounds = if self.program.shardy().has(Change::PaddingInReshards) { 3 } else { 2 };
        for _ in 0..rounds {
            if self.is_done() {
                return;
            }
            self.try_slice();
            self.try_permute();
            self.try_all_to_alls(false);
            self.try_all_to_alls(true);
            self.try_gather();
        }
    }
    fn is_done(&self) -> bool {
        self.current_mesh == self.wanted_mesh
            && self.incoming.iter().chain(&self.outgoing).all(Vec::is_empty)
    }
    /// The number of dims.
    pub fn rank(&self) -> usize {
        self.current.len()
    }
    /// Whether the value is on the wanted mesh.
    pub fn is_on_wanted_mesh(&self) -> bool {
        self.current_mesh == self.wanted_mesh
    }
    /// Switches to the wanted mesh.
    pub fn take_wanted_mesh(&mut self) {
        self.current_mesh = self.wanted_mesh;
    }
    /// Recomputes the positions of the axes in `outgoing`.
    pub fn index_outgoing(&mut self) {
        self.out_places.clear();
        for (dim, axes) in self.outgoing.iter().enumerate() {
            for (index, &axis) in axes.iter().enumerate() {
                self.out_places.entry(axis).or_insert((dim, index));
            }
        }
    }
    /// Dim and index of `axis` in `outgoing`, as last indexed.
    pub fn out_place(&self, axis: AxisRef) -> Option<(usize, usize)> {
        self.out_places.get(&axis).copied()
    }
    pub fn is_incoming(&self, axis: AxisRef) -> bool {
        self.incoming_set.contains(&axis)
    }
    pub fn add_incoming(&mut self, axis: AxisRef) {
        if !self.is_incoming(axis) {
            self.incoming_set.push(axis);
        }
    }
    pub fn remove_incoming(&mut self, axis: AxisRef) {
        self.incoming_set.retain(|other| *other != axis);
    }
    pub fn clear_incoming(&mut self) {
        self.incoming_set.clear();
    }
    /// Whether `dim` was sharded at the start, and the operand's sharding pads it to another size
    /// than the wanted one. Only an all-gather brings the elements of such a dim to their devices.
    pub fn changes_padding(&self, dim: usize) -> bool {
        self.changes_padding[dim]
    }
    /// Whether the current and the wanted axes of `dim`, if it has both, pad it to different sizes.
    fn is_padded_otherwise(&self, dim: usize) -> bool {
        let current = self.size(&self.current[dim]);
        let kept = current / self.size(&self.incoming[dim]).max(1);
        let wanted = kept * self.size(&self.outgoing[dim]);
        let differs = |size| padded(size, current) != padded(size, wanted);
        current > 1 && wanted > 1 && self.dim_size(dim).is_some_and(differs)
    }
    /// The size of `dim`; `None` if dynamic.
    pub fn dim_size(&self, dim: usize) -> Option<i64> {
        self.program.value_type(self.value).shape()?.get(dim).copied().flatten()
    }
    /// Number of shards along `axes`.
    pub fn size(&self, axes: &[AxisRef]) -> i64 {
        crate::axis::total_size(axes, &self.mesh)
    }
    /// Adds `axis` to the current axes of `dim`.
    pub fn push_current(&mut self, dim: usize, axis: AxisRef) {
        push_or_merge(&mut self.current[dim], axis, &self.mesh);
    }
    /// Removes `axes`, which may be parts of axes, from the end of the current axes of `dim`.
    pub fn pop_current(&mut self, dim: usize, axes: &[AxisRef]) {
        let current = &mut self.current[dim];
        for &axis in axes.iter().rev() {
            let Some(last) = current.last_mut() else { return };
            match last.prefix_without_overlap(axis) {
                Some(prefix) => *last = prefix,
                None => {
                    current.pop();
                }
            }
        }
    }
    /// The part of `axis` that fits into the capacity of `dim`, which is reduced by it, and the
    /// rest of the axis; `None` if neither divides the other.
    pub fn fit(&mut self, axis: AxisRef, dim: usize) -> Option<(AxisRef, Option<AxisRef>)> {
        fit(axis, &mut self.capacity[dim], &self.mesh)
    }
    /// Makes the next op: one of `kind` with `payload`.
    pub fn emit(&mut self, kind: OpKind, payload: Option<Payload>) {
        for (changes, current) in self.changes_padding.iter_mut().zip(&self.current) {
            *changes &= !current.is_empty();
        }
        let dims = self.current.iter().map(|axes| DimSharding {
            axes: axes.clone(),
            is_closed: true,
            priority: None,
        });
        let sharding = TensorSharding {
            mesh: self.current_mesh,
            dims: dims.collect(),
            replicated: Vec::new(),
            unreduced: self.unreduced.clone(),
            // Shardy does not keep the reduction here.
            reduction_op: ReductionOp::Sum,
        };
        let sharding = self.program.intern_sharding(sharding);
        let at = self.program.before(self.op);
        self.value = self.program.create_sdy_op(kind, self.value, sharding, payload, at);
        // A reshard without a cause was written by the user.
        let cause = self.program.cause(self.op).unwrap_or(self.op);
        self.program.note_cause(self.value, cause);
    }
    /// Adds axes of `available` to dims that have capacity, at the front or the end of their
    /// incoming axes, and calls `added` for each. `available` has one list for all dims, or one for
    /// each dim.
    pub fn distribute(
        &mut self,
        available: &mut [Vec<AxisRef>],
        to_front: bool,
        mut added: impl FnMut(&mut Self, AxisRef, usize),
    ) {
        let mut split = Vec::new();
        for dim in 0..self.rank() {
            let mut front = 0;
            let list = if available.len() == 1 { 0 } else { dim };
            let Some(axes) = available.get_mut(list) else { break };
            let mut at = 0;
            while at < axes.len() && self.capacity[dim] > 1 {
                let Some((fitting, rest)) = self.fit(axes[at], dim) else {
                    at += 1;
                    continue;
                };
                axes.remove(at);
                if to_front {
                    self.incoming[dim].insert(front, fitting);
                    front += 1;
                } else {
                    self.incoming[dim].push(fitting);
                }
                self.add_incoming(fitting);
                added(self, fitting, dim);
                if let Some(rest) = rest {
                    split.push(fitting);
                    axes.insert(0, rest);
                    at += 1;
                }
            }
        }
        split.sort_by_key(|axis: &AxisRef| axis.mesh_order(&self.mesh));
        align(&mut self.outgoing, &split, &self.mesh);
    }
    /// Gathers, in each dim, the axes that no dim of the target has.
    ///
    /// A dim whose padding changes is gathered completely.
    fn try_gather(&mut self) {
        let knows_padding = self.program.shardy().has(Change::PaddingInReshards);
        let mut gathered = Vec::with_capacity(self.rank());
        for dim in 0..self.rank() {
            if self.changes_padding(dim) {
                gathered.push(self.gather_whole(dim));
                continue;
            }
            let start = self.first_gathered(dim, knows_padding);
            let all = self.incoming[dim].split_off(start);
            self.pop_current(dim, &all);
            let mut axes = Vec::new();
            let last = all.len().saturating_sub(1);
            for (index, axis) in all.into_iter().enumerate() {
                push_or_merge(&mut axes, axis, &self.mesh);
                if knows_padding || index == last {
                    self.remove_incoming(axis);
                }
            }
            gathered.push(axes);
        }
        self.index_outgoing();
        if gathered.iter().any(|axes| !axes.is_empty()) {
            self.emit(OpKind::AllGather, Some(Payload::axes_per_dim(gathered)));
        }
    }
    /// The index of the first incoming axis of `dim` that is gathered now.
    ///
    /// As in the reference, if the last axis is in no dim of the target, all axes are gathered;
    /// earlier ones could be in the target only if axis sizes do not divide each other. If padding
    /// is known, axes that another dim wants stay, except the last ones if they cannot move there
    /// because that dim's padding changes.
    fn first_gathered(&self, dim: usize, knows_padding: bool) -> usize {
        let incoming = &self.incoming[dim];
        let stays = |axis: &AxisRef| {
            let place = self.out_place(*axis);
            place.is_some_and(|(other, _)| {
                !knows_padding || other == dim || !self.changes_padding(other)
            })
        };
        match incoming.iter().rposition(stays) {
            Some(last) if knows_padding || last + 1 == incoming.len() => last + 1,
            _ => 0,
        }
    }
    /// Removes all axes of `dim` and returns them; those that it keeps in the target become wanted
    /// again.
    fn gather_whole(&mut self, dim: usize) -> Vec<AxisRef> {
        let all = self.current[dim].clone();
        let incoming = std::mem::take(&mut self.incoming[dim]);
        self.pop_current(dim, &incoming);
        for axis in incoming {
            self.remove_incoming(axis);
        }
        let kept = std::mem::take(&mut self.current[dim]);
        self.outgoing[dim].splice(0..0, kept);
        all
    }
}

/// `size` after it is padded to a multiple of `shards`.
fn padded(size: i64, shards: i64) -> i64 {
    size.saturating_add(shards - 1) / shards * shards
}

/// The part of `axis` that fits into `capacity`, and the rest.
pub fn fit(axis: AxisRef, capacity: &mut i64, mesh: &Mesh) -> Option<(AxisRef, Option<AxisRef>)> {
    let size = axis.size(mesh);
    if *capacity <= 1 || !are_divisible(size, *capacity) {
        return None;
    }
    if *capacity >= size {
        *capacity /= size;
        return Some((axis, None));
    }
    let fitting = AxisRef::sub(axis.axis, axis.pre_size(), *capacity);
    let rest = AxisRef::sub(axis.axis, fitting.next_pre_size(mesh), size / *capacity);
    *capacity = 1;
    Some((fitting, Some(rest)))
}

/// Whether one of two numbers divides the other.
pub fn are_divisible(a: i64, b: i64) -> bool {
    a % b == 0 || b % a == 0
}
