//! Gathers and scatters whose operand is sharded along indexed dims, and scatters whose updates are sharded.
//!
//! Each device gathers the slices in its shard, and zeros for the others; or scatters the updates in its shard. If updates are
//! sharded, one of the devices whose results are summed scatters into the operand, the others into the identity of the reduction.

use super::super::super::emit::{int_array, one, zero};
use super::super::{LocalValue, Lowering, Reducer};
use super::offsets::elements;
use crate::axis::AxisRef;
use crate::index::{MeshId, OpId, ShardingId, TypeId, ValueId};
use crate::mesh::Mesh;
use crate::mlir::op_attribute;
use crate::sharding::TensorSharding;
use crate::shardy::Change;
use crate::spmd::digits::{digits_of, number_at};
use crate::spmd::lower::windows::elements_needed::ints;
use crate::stablehlo::dims::{IndexingDims, GATHER, SCATTER};

/// The indices of a gather or scatter, and the operand dims that they index.
struct Indexing<'a> {
    mesh: &'a Mesh,
    dims: &'a IndexingDims,
    /// The axes of each dim of the operand, its sizes, and those of its shards.
    axes: &'a [Vec<AxisRef>],
    shape: &'a [i64],
    local: &'a [i64],
    /// The sharded dims of which one element is taken.
    cut: &'a [usize],
    /// The mesh of the sharding of the operand.
    mesh_id: Option<MeshId>,
}

/// The fewest bits of index types that can hold the offsets of shards.
const MIN_BITS: i64 = 32;

impl Lowering<'_, '_, '_> {
    pub(super) fn gather_as_shardy(&mut self, op: OpId) -> Option<()> {
        let program = &*self.emit.program;
        let [operand, indices] = [program.operand(op, 0), program.operand(op, 1)];
        let result = program.result(op, 0);
        let dims = op_attribute(program, op, GATHER.attribute)?;
        let dims = IndexingDims::read(&dims, &GATHER)?;
        let mut sizes = ints(program, op, "slice_sizes");
        let (axes, shape) = (self.axes_of(operand), self.global_shape(operand)?);
        let mesh = self.mesh_of(op)?;
        let is_cut = |&dim: &usize| {
            !axes[dim].is_empty() && sizes[dim] == 1 && !dims.input_batching.contains(&dim)
        };
        let cut: Vec<usize> = (0..shape.len()).filter(is_cut).collect();
        let others = (0..shape.len()).filter(|dim| !axes[*dim].is_empty() && !cut.contains(dim));
        let is_whole = |dim: usize| dims.input_batching.contains(&dim) || sizes[dim] == shape[dim];
        if cut.is_empty() || !others.clone().all(is_whole) || !self.has_wide_index(indices, &dims) {
            return None;
        }
        let reduced: Vec<AxisRef> = cut.iter().flat_map(|&dim| axes[dim].clone()).collect();
        let element = self.emit.element(self.emit.program.type_of(result)).to_owned();
        if element == "i1" || !self.has_terms_along(op, &reduced, &mesh) {
            return None;
        }
        let mesh_id = self.mesh_id_of(operand);
        let (input, index) = (self.held(operand).value, self.held(indices).value);
        let local = self.emit.shape(input);
        for dim in others.collect::<Vec<_>>() {
            if !dims.input_batching.contains(&dim) {
                sizes[dim] = local[dim];
            }
        }
        let indexing = Indexing {
            mesh: &mesh,
            dims: &dims,
            axes: &axes,
            shape: &shape,
            local: &local,
            cut: &cut,
            mesh_id,
        };
        let is_indexed = cut.iter().any(|dim| dims.index_map.contains(dim));
        let index = if is_indexed { self.clamped(&indexing, index) } else { index };
        let (index, mask) = self.index_in_shard(&indexing, index, true);
        let mut mask = self.mask_in_shard(&indexing, mask)?;
        self.set_operands(op, [input, index]);
        self.emit.program.set_attr(op, "slice_sizes", &int_array(&sizes));
        self.write_default(op, "indices_are_sorted");
        let target = self.target(result);
        let placement = self.with_terms_left(result, target);
        let held = self.keep(result, placement);
        self.emit.go_after(op);
        let mut shape = self.emit.shape(mask);
        if dims.index_vector < shape.len() {
            shape.remove(dims.index_vector);
            mask = self.all_parts(mask, dims.index_vector, &shape);
        }
        let whole = self.emit.shape(held.value);
        let batch: Vec<i64> = (0..whole.len())
            .filter(|dim| !dims.window.contains(dim))
            .map(|dim| dim as i64)
            .collect();
        let batch = if self.emit.shape(mask).is_empty() { Vec::new() } else { batch };
        let ty = self.emit.program.tensor_type_of(&whole, "i1");
        let mask = self.emit.broadcast(mask, &batch, ty);
        let local = self.emit.type_of(held.value);
        let nothing = self.emit.splat(zero(&element), local);
        let value = self.emit.select(mask, held.value, nothing);
        self.set_held(result, LocalValue { value, ..held });
        Some(())
    }
    /// Whether the type of `indices`, whose index vector dim is not sharded, can hold the offsets of shards.
    fn has_wide_index(&mut self, indices: ValueId, dims: &IndexingDims) -> bool {
        let axes = self.axes_of(indices);
        let is_whole = axes.get(dims.index_vector).is_none_or(Vec::is_empty);
        is_whole && self.bits(self.global_type(indices)) >= MIN_BITS
    }
    /// `index` clamped as the gather clamps indices of slices of one element.
    fn clamped(&mut self, indexing: &Indexing<'_>, index: ValueId) -> ValueId {
        let (ty, vector) = (self.emit.type_of(index), indexing.dims.index_vector);
        let last: Vec<i64> =
            indexing.dims.index_map.iter().map(|&dim| indexing.shape[dim] - 1).collect();
        let start = self.emit.splat("0", ty);
        let is_list = vector < self.emit.shape(index).len() && last.len() > 1;
        let last = if is_list {
            let list = self.emit.like(&[last.len() as i64], ty);
            let last = self.emit.splat(&elements(&last), list);
            self.emit.broadcast(last, &[vector as i64], ty)
        } else {
            self.emit.splat(&last[0].to_string(), ty)
        };
        self.emit.op("stablehlo.clamp", &[start, index, last], ty, &[])
    }
    /// `index` relative to the start of the shard, and, if requested, whether each of its components is in the shard.
    fn index_in_shard(
        &mut self,
        indexing: &Indexing<'_>,
        index: ValueId,
        has_mask: bool,
    ) -> (ValueId, Option<ValueId>) {
        let Indexing { mesh, dims, axes, shape, local, cut, .. } = *indexing;
        if !cut.iter().any(|dim| dims.index_map.contains(dim)) {
            return (index, None);
        }
        let ty = self.emit.type_of(index);
        let scalar = self.emit.like(&[], ty);
        let sharding = self.sharding_of_bounds(ty, indexing.mesh_id);
        let (mut first, mut last) = (Vec::new(), Vec::new());
        for &dim in &dims.index_map {
            if !cut.contains(&dim) {
                first.push(self.emit.splat("0", scalar));
                if has_mask {
                    last.push(self.emit.splat(&(shape[dim] - 1).to_string(), scalar));
                }
                continue;
            }
            let offset = self.offset(mesh, &axes[dim], local[dim]);
            let offset = self.emit.op("stablehlo.convert", &[offset], scalar, &[]);
            first.push(offset);
            if has_mask {
                let size = self.emit.splat(&(local[dim] - 1).to_string(), scalar);
                last.push(self.emit.elementwise("stablehlo.add", &[offset, size]));
            }
        }
        let like = (ty, scalar, sharding);
        let first = self.like_index(&first, like, dims.index_vector);
        let last = has_mask.then(|| self.like_index(&last, like, dims.index_vector));
        let own = self.emit.elementwise("stablehlo.subtract", &[index, first]);
        let mask = last.map(|last| {
            let masks =
                [self.emit.compare("GE", index, first), self.emit.compare("LE", index, last)];
            self.emit.elementwise("stablehlo.and", &masks)
        });
        (own, mask)
    }
    fn mesh_id_of(&self, value: ValueId) -> Option<MeshId> {
        let program = &*self.emit.program;
        program.mesh_of(program.sharding(value)).get()
    }
    /// The sharding of index bounds of type `ty`: none, or since [`Change::ShardedBounds`] replicated.
    fn sharding_of_bounds(&mut self, ty: TypeId, mesh: Option<MeshId>) -> ShardingId {
        let mesh = mesh.filter(|_| self.emit.program.shardy().has(Change::ShardedBounds));
        let Some(mesh) = mesh else { return ShardingId::NONE };
        let rank = self.emit.program.types()[ty].rank().unwrap_or(0);
        self.emit.program.intern_sharding(TensorSharding::fully_replicated(mesh, rank, true))
    }
    /// `bounds`, one for each component of an index, broadcast to the type of all indices, with this sharding.
    fn like_index(
        &mut self,
        bounds: &[ValueId],
        (ty, scalar, sharding): (TypeId, TypeId, ShardingId),
        vector: usize,
    ) -> ValueId {
        let shape = self.shape_of(ty).unwrap_or_default();
        if shape.get(vector).is_none_or(|&parts| parts == 1) {
            let bounds = self.emit.broadcast(bounds[0], &[], ty);
            self.emit.program.set_sharding(bounds, sharding);
            return bounds;
        }
        let one = self.emit.like(&[1], scalar);
        let parts: Vec<ValueId> = bounds
            .iter()
            .map(|&bound| self.emit.op("stablehlo.reshape", &[bound], one, &[]))
            .collect();
        let list = self.emit.concatenate(&parts, 0);
        let bounds = self.emit.broadcast(list, &[vector as i64], ty);
        self.emit.program.set_sharding(bounds, sharding);
        bounds
    }
    /// `mask`, if any, restricted to the devices whose shards start at 0 along the sharded dims that are not indexed.
    fn mask_in_shard(&mut self, indexing: &Indexing<'_>, mask: Option<ValueId>) -> Option<ValueId> {
        let Indexing { mesh, dims, axes, local, cut, .. } = *indexing;
        let mut starts: Option<ValueId> = None;
        for &dim in cut.iter().filter(|dim| !dims.index_map.contains(dim)) {
            let offset = self.offset(mesh, &axes[dim], local[dim]);
            let ty = self.emit.type_of(offset);
            let nothing = self.emit.splat("0", ty);
            let is_first = self.emit.compare("EQ", offset, nothing);
            starts = Some(match starts {
                Some(others) => self.emit.elementwise("stablehlo.and", &[others, is_first]),
                None => is_first,
            });
        }
        match (mask, starts) {
            (Some(mask), Some(starts)) => {
                let ty = self.emit.type_of(mask);
                let starts = self.emit.broadcast(starts, &[], ty);
                Some(self.emit.elementwise("stablehlo.and", &[mask, starts]))
            }
            (mask, starts) => mask.or(starts),
        }
    }
    /// The conjunction of `mask` along `dim`, of shape `shape`.
    fn all_parts(&mut self, mask: ValueId, dim: usize, shape: &[i64]) -> ValueId {
        let scalar = self.emit.program.tensor_type_of(&[], "i1");
        let ty = self.emit.like(shape, scalar);
        let init = self.emit.splat("true", scalar);
        let attrs = [("dimensions", int_array(&[dim as i64]))];
        let op = self.emit.op_with_results("stablehlo.reduce", &[mask, init], &[ty], &attrs);
        Reducer::And.add_body(&mut self.emit, op, scalar);
        self.emit.program.result(op, 0)
    }
    pub(super) fn scatter_as_shardy(&mut self, op: OpId) -> Option<()> {
        let program = &*self.emit.program;
        let count = program.num_results(op);
        let operands: Vec<ValueId> = program.operands(op).collect();
        let (input, indices, update) = (operands[0], operands[count], operands[count + 1]);
        let dims = op_attribute(program, op, SCATTER.attribute)?;
        let dims = IndexingDims::read(&dims, &SCATTER)?;
        let reducers = Reducer::each_of_region(program, op).unwrap_or_default();
        let reducer = reducers.first().copied().unwrap_or(Reducer::Add);
        let is_known = reducers.len() == count && reducers.iter().all(|other| *other == reducer);
        let (axes, updated) = (self.axes_of(input), self.axes_of(update));
        let indexed = self.axes_of(indices);
        let (shape, windows) = (self.global_shape(input)?, self.global_shape(update)?);
        let is_alike = operands[..count].iter().all(|&value| self.axes_of(value) == axes)
            && operands[count + 1..].iter().all(|&value| self.axes_of(value) == updated)
            && program.op_results(op).all(|value| self.axes_of(value) == axes);
        let mesh = self.mesh_of(op)?;
        if !is_alike || shape.is_empty() || !self.has_wide_index(indices, &dims) {
            return None;
        }
        // Updates that several devices have parts of, and those of the shard of a device.
        let batch = (0..windows.len()).filter(|dim| !dims.window.contains(dim));
        let indexing = (0..).filter(|&dim| dim != dims.index_vector);
        let batching = |at: usize| dims.indices_batching.iter().position(|&dim| dim == at);
        let mut reduced: Vec<AxisRef> = Vec::new();
        for (dim, at) in batch.zip(indexing) {
            match batching(at) {
                Some(place) => {
                    // Each device has the same part of all three.
                    let own = &axes[*dims.input_batching.get(place)?];
                    let is_same = *own == updated[dim] && Some(own) == indexed.get(at);
                    is_same.then_some(())?;
                }
                None => reduced.extend_from_slice(&updated[dim]),
            }
        }
        if !reduced.is_empty() && !is_known {
            return None;
        }
        if reduced.iter().any(|axis| axes.iter().flatten().any(|other| other == axis)) {
            return None;
        }
        let sharded = (0..shape.len()).filter(|&dim| !axes[dim].is_empty());
        let is_left_out =
            |dim: usize| dims.collapsed.contains(&dim) || dims.input_batching.contains(&dim);
        let mut cut = Vec::new();
        for dim in sharded {
            let place = (0..dim).filter(|&dim| !is_left_out(dim)).count();
            let window = dims.window.get(place).filter(|_| !is_left_out(dim));
            let size = window.map_or(1, |&window| windows[window]);
            if dims.input_batching.contains(&dim) {
                continue;
            }
            if dims.index_map.contains(&dim) {
                let is_one = size == 1 && window.is_none_or(|&window| updated[window].is_empty());
                cut.push(dim);
                is_one.then_some(())?;
            } else {
                let is_whole = size == shape[dim] && updated[*window?] == axes[dim];
                is_whole.then_some(())?;
            }
        }
        if cut.is_empty() && reduced.is_empty() || !self.has_terms_along(op, &reduced, &mesh) {
            return None;
        }
        let mut values: Vec<ValueId> =
            operands.iter().map(|&operand| self.held(operand).value).collect();
        if !reduced.is_empty() {
            let element = self.emit.element(self.emit.type_of(values[0]));
            let identity = identity(reducer, element)?;
            self.start_once(&mut values[..count], &identity, (&reduced, &mesh));
        }
        let local = self.emit.shape(values[0]);
        let (mesh, dims, axes) = (&*mesh, &dims, &axes[..]);
        let mesh_id = self.mesh_id_of(input);
        let (shape, local, cut) = (&shape[..], &local[..], &cut[..]);
        let indexing = Indexing { mesh, dims, axes, shape, local, cut, mesh_id };
        values[count] = self.index_in_shard(&indexing, values[count], false).0;
        self.set_operands(op, &values);
        self.write_default(op, "indices_are_sorted");
        self.write_default(op, "unique_indices");
        let results: Vec<ValueId> = self.emit.program.op_results(op).collect();
        for result in results {
            let target = self.target(result);
            let placement = self.with_terms_left(result, target);
            let held = self.keep(result, placement);
            self.set_held(result, LocalValue { reducer, ..held });
        }
        Some(())
    }
    /// Replaces `inputs` by `identity`, except on the first of the devices along `axes`.
    fn start_once(
        &mut self,
        inputs: &mut [ValueId],
        identity: &str,
        (axes, mesh): (&[AxisRef], &Mesh),
    ) {
        let ty = self.emit.type_of(inputs[0]);
        let (shape, scalar) = (self.emit.shape(inputs[0]), self.emit.like(&[], ty));
        let mut identity = self.emit.splat(identity, scalar);
        let is_scalar = self.emit.program.shardy().has(Change::FirstDeviceSelects);
        if is_scalar {
            identity = self.emit.broadcast(identity, &[], ty);
        }
        let digits = digits_of(axes, mesh);
        let mut is_first = vec![0; mesh.device_count() as usize];
        for position in 0..mesh.device_count() {
            let device = mesh.device_at_position(position) as usize;
            is_first[device] = i64::from(number_at(&digits, position) == 0);
        }
        let device = self.device_as_shardy();
        let is_first = self.own_element(device, &is_first, "i1");
        let is_first = if is_scalar {
            let flag = self.emit.program.tensor_type_of(&[], "i1");
            self.emit.op("stablehlo.reshape", &[is_first], flag, &[])
        } else {
            let mask = self.emit.program.tensor_type_of(&shape, "i1");
            let is_first = self.emit.broadcast(is_first, &[0], mask);
            identity = self.emit.broadcast(identity, &[], ty);
            is_first
        };
        for input in inputs {
            *input = self.emit.select(is_first, *input, identity);
        }
    }
}

/// The identity of `reducer` in the reference, if that is correct: not for minima and maxima of floats, which it starts from the
/// largest finite numbers, nor for those of unsigned integers, nor for the bitwise "and".
fn identity(reducer: Reducer, element: &str) -> Option<String> {
    match reducer {
        Reducer::Add | Reducer::Or => Some(zero(element).to_owned()),
        Reducer::Multiply => Some(one(element).to_owned()),
        Reducer::And => (element == "i1").then(|| "true".to_owned()),
        Reducer::Max | Reducer::Min if element.starts_with('i') && element != "i1" => {
            reducer.identity(element)
        }
        _ => None,
    }
}
