//! Lowers collectives of `sdy` one by one, as Shardy's `sdy-convert-global-to-local`: each becomes the corresponding
//! collective of `StableHLO`, with the reshapes and transposes that several dims need.
//!
//! Cases that Shardy's pass does not support, or lowers incorrectly, are lowered as other reshards: dims that do not divide, and
//! offsets and pairs of sub-axes, which it numbers from the wrong end.
//!
//! Source: Shardy's `convert_global_to_local.cc`.

use crate::axis::AxisRef;
use crate::index::{AxisId, Id, MeshId, OpId, TypeId, ValueId};
use crate::ir::{OpKind, Payload, ValueDef};
use crate::mesh::Mesh;
use crate::sharding::ReductionOp;
use crate::spmd::convert_global_to_local::GlobalToLocalOptions;
use crate::spmd::digits::{digits_of, number_at, total_size, Cuts, Digit};
use crate::spmd::emit::int_array;
use crate::spmd::lower::{LocalValue, Lowering, Reducer};
use crate::spmd::placement::PlacementId;
use crate::spmd::reshard_steps::Step;
use std::sync::Arc;

/// A collective that is lowered: its mesh, its operand, and the shape of its result.
pub(in crate::spmd::lower) struct Site {
    pub(in crate::spmd::lower) mesh_id: MeshId,
    pub(in crate::spmd::lower) mesh: Arc<Mesh>,
    pub(in crate::spmd::lower) held: LocalValue,
    pub(in crate::spmd::lower) shape: Vec<i64>,
}

/// A collective that changes the size of one dim.
#[derive(Clone, Copy)]
enum Along {
    Gather,
    ReduceScatter,
}

impl Lowering<'_, '_, '_> {
    /// Lowers `op`, a collective of `sdy`, as Shardy's pass does; false if it has to be lowered otherwise.
    pub(in crate::spmd::lower) fn lower_global_to_local(
        &mut self,
        op: OpId,
        options: GlobalToLocalOptions,
    ) -> bool {
        let result = self.emit.program.result(op, 0);
        if self.has_nothing_to_send(op) {
            return false;
        }
        let target = self.target(result);
        let target = self.with_terms_left(result, target);
        let Some(site) = self.site(op, target) else { return false };
        let is_reduction =
            matches!(self.emit.program.kind(op), OpKind::AllReduce | OpKind::ReduceScatter);
        // What devices have of an argument may be terms, whether or not its sharding says so; of other values it is known.
        let operand = self.emit.program.operand(op, 0);
        let may_be_terms = self.how.global_to_local.is_some()
            && matches!(self.emit.program.def(operand), ValueDef::Arg(_));
        let has_terms = !self.placements[site.held.placement].partial.is_empty();
        if is_reduction && !has_terms && !may_be_terms {
            return false;
        }
        let element = self.emit.element(site.held.global);
        if is_reduction
            && self.how.global_to_local.is_none()
            && !site.held.reducer.is_of_collectives(element)
        {
            return false;
        }
        let first = self.next_op_id();
        let payload = self.emit.program.payload(op).cloned();
        let value = match (self.emit.program.kind(op), payload) {
            (OpKind::AllGather, Some(Payload::AxesPerDim(axes, _))) => {
                self.gather_dims(&site, &axes, options)
            }
            (OpKind::AllReduce, Some(Payload::Axes(axes, _))) => {
                self.reduce_axes(&site, site.held.value, &axes, options)
            }
            (OpKind::AllSlice, Some(Payload::AxesPerDim(axes, _))) => {
                self.own_part(&site, site.held.value, &axes)
            }
            (OpKind::AllToAll, Some(Payload::AllToAll(params))) => match &params[..] {
                [(axes, source, target)] => {
                    self.exchange(&site, axes, (*source as usize, *target as usize), options)
                }
                params => self.exchange_all(&site, params, options),
            },
            (OpKind::CollectivePermute, _) => match self.permute_shards(&site, op) {
                Some(value) => value,
                None => return false,
            },
            (OpKind::ReduceScatter, Some(Payload::AxesPerDim(axes, _))) => {
                self.scatter_dims(&site, &axes, options)
            }
            _ => return false,
        };
        let (ops, before) = ((first, self.next_op_id()), site.held.placement);
        for made in first.index()..ops.1.index() {
            self.emit.program.set_cause(OpId::from_index(made), op);
        }
        self.steps.push(Step { ops, before, after: target, rematerializes: false });
        let held = LocalValue { value, placement: target, is_zero_padded: false, ..site.held };
        self.set_held(result, held);
        self.dead.push(op);
        true
    }
    /// Whether `op`, a collective of `sdy`, has an empty result and needs no collective: `StableHLO` has none for these, and a
    /// per-device program needs none.
    fn has_nothing_to_send(&self, op: OpId) -> bool {
        let program = &*self.emit.program;
        let Some(shape) = self.shape_of(program.type_of(program.result(op, 0))) else {
            return false;
        };
        if self.how.global_to_local.is_none() {
            return shape.contains(&0);
        }
        match (program.kind(op), program.payload(op)) {
            (OpKind::AllGather | OpKind::ReduceScatter, Some(Payload::AxesPerDim(axes, _))) => {
                shape.iter().zip(axes).any(|(&size, axes)| size == 0 && !axes.is_empty())
            }
            _ => false,
        }
    }
    /// The properties of `op`; `None` if Shardy's pass does not support its shards.
    fn site(&mut self, op: OpId, target: PlacementId) -> Option<Site> {
        let operand = self.emit.program.operand(op, 0);
        let mut held = self.held(operand);
        if let Some(reducer) = self.emit.program.payload(op).and_then(named_reducer) {
            held.reducer = reducer;
            self.set_held(operand, held);
        }
        let own = self.target(operand);
        let own = self.with_terms_of(op, own);
        let global = self.shape_of(held.global)?;
        let (from, to) = (self.placements[held.placement].clone(), &self.placements[target]);
        let is_even = (0..global.len())
            .all(|dim| !from.is_padded(dim, global[dim]) && !to.is_padded(dim, global[dim]));
        let is_one_order = from.order == to.order || from.is_replicated() || to.is_replicated();
        // Arguments of regions have the placement of what is passed.
        let is_argument = matches!(self.emit.program.def(operand), ValueDef::Arg(_));
        let is_expected = held.placement == own || is_argument;
        if !is_expected || !is_even || !is_one_order {
            return None;
        }
        let shape = to.local_shape(&global);
        let sharding = self.emit.program.sharding(self.emit.program.result(op, 0));
        let mesh_id = self.emit.program.shardings().get(sharding)?.mesh;
        let mesh = self.emit.program.meshes()[mesh_id].mesh.clone();
        Some(Site { mesh_id, mesh, held, shape })
    }
    pub(in crate::spmd::lower) fn number_of_shards(site: &Site, axes: &[AxisRef]) -> i64 {
        total_size(&digits_of(axes, &site.mesh))
    }
    fn typed(&mut self, site: &Site, shape: &[i64]) -> TypeId {
        self.emit.like(shape, site.held.global)
    }
    pub(in crate::spmd::lower) fn reshaped(
        &mut self,
        site: &Site,
        value: ValueId,
        shape: &[i64],
    ) -> ValueId {
        let ty = self.typed(site, shape);
        self.emit.op("stablehlo.reshape", &[value], ty, &[])
    }
    pub(in crate::spmd::lower) fn transposed(
        &mut self,
        site: &Site,
        value: ValueId,
        order: &[usize],
    ) -> ValueId {
        let shape = self.emit.shape(value);
        let new: Vec<i64> = order.iter().map(|&dim| shape[dim]).collect();
        let ty = self.typed(site, &new);
        let order: Vec<i64> = order.iter().map(|&dim| dim as i64).collect();
        self.emit.op("stablehlo.transpose", &[value], ty, &[("permutation", int_array(&order))])
    }
    /// The all-gather or the reduce-scatter of `value` along one dim.
    fn along_dim(
        &mut self,
        site: &Site,
        kind: Along,
        value: ValueId,
        (dim, axes): (usize, &[AxisRef]),
        options: GlobalToLocalOptions,
    ) -> ValueId {
        let mut shape = self.emit.shape(value);
        let shards = Self::number_of_shards(site, axes);
        let name_of_dim = match kind {
            Along::Gather => {
                shape[dim] *= shards;
                "all_gather_dim"
            }
            Along::ReduceScatter => {
                shape[dim] /= shards;
                "scatter_dimension"
            }
        };
        let mut attrs = self.group_attrs(site, axes, options);
        attrs.push((name_of_dim, format!("{dim} : i64")));
        attrs.push(("use_global_device_ids", String::new()));
        let ty = self.typed(site, &shape);
        match kind {
            Along::Gather => self.emit.op("stablehlo.all_gather", &[value], ty, &attrs),
            Along::ReduceScatter => {
                let how = (&attrs[..], site.held.reducer);
                self.reducing("stablehlo.reduce_scatter", value, ty, how)
            }
        }
    }
    /// An all-gather: several dims are gathered last to first, or along a new leading dim, which is then split over them.
    fn gather_dims(
        &mut self,
        site: &Site,
        axes: &[Vec<AxisRef>],
        options: GlobalToLocalOptions,
    ) -> ValueId {
        let dims: Vec<usize> = (0..axes.len()).filter(|&dim| !axes[dim].is_empty()).collect();
        let mut value = site.held.value;
        if dims.len() < 2 || options.gathers_per_dim {
            for &dim in dims.iter().rev() {
                value = self.along_dim(site, Along::Gather, value, (dim, &axes[dim]), options);
            }
            return value;
        }
        let local = self.emit.shape(value);
        value = self.reshaped(site, value, &[&[1], &local[..]].concat());
        value = self.along_dim(site, Along::Gather, value, (0, &axes.concat()), options);
        let factors: Vec<i64> =
            dims.iter().map(|&dim| Self::number_of_shards(site, &axes[dim])).collect();
        value = self.reshaped(site, value, &[&factors[..], &local[..]].concat());
        let mut order = Vec::with_capacity(dims.len() + local.len());
        for dim in 0..local.len() {
            order.extend(dims.iter().position(|&gathered| gathered == dim));
            order.push(dims.len() + dim);
        }
        value = self.transposed(site, value, &order);
        self.reshaped(site, value, &site.shape)
    }
    fn reduce_axes(
        &mut self,
        site: &Site,
        value: ValueId,
        axes: &[AxisRef],
        options: GlobalToLocalOptions,
    ) -> ValueId {
        let mut attrs = self.group_attrs(site, axes, options);
        attrs.push(("use_global_device_ids", String::new()));
        let ty = self.emit.type_of(value);
        self.reducing("stablehlo.all_reduce", value, ty, (&attrs, site.held.reducer))
    }
    fn reducing(
        &mut self,
        name: &str,
        value: ValueId,
        ty: TypeId,
        (attrs, reducer): (&[(&str, String)], Reducer),
    ) -> ValueId {
        let op = self.emit.op_with_results(name, &[value], &[ty], attrs);
        reducer.add_body(&mut self.emit, op, ty);
        self.emit.program.result(op, 0)
    }
    /// A reduce-scatter: over several dims an all-reduce and a slice, or one over a new leading dim.
    fn scatter_dims(
        &mut self,
        site: &Site,
        axes: &[Vec<AxisRef>],
        options: GlobalToLocalOptions,
    ) -> ValueId {
        let dims: Vec<usize> = (0..axes.len()).filter(|&dim| !axes[dim].is_empty()).collect();
        let input = site.held.value;
        if let [dim] = dims[..] {
            return self.along_dim(site, Along::ReduceScatter, input, (dim, &axes[dim]), options);
        }
        if !options.combines_reduce_scatter {
            let whole = self.reduce_axes(site, input, &axes.concat(), options);
            return self.own_part(site, whole, axes);
        }
        let shape = self.emit.shape(input);
        let (mut split, mut order) = (Vec::new(), Vec::new());
        for (dim, &size) in shape.iter().enumerate() {
            if dims.contains(&dim) {
                let factor = Self::number_of_shards(site, &axes[dim]);
                order.push(split.len());
                split.extend([factor, size / factor]);
            } else {
                split.push(size);
            }
        }
        let rest: Vec<usize> = (0..split.len()).filter(|dim| !order.contains(dim)).collect();
        order.extend(rest);
        let mut value = self.reshaped(site, input, &split);
        value = self.transposed(site, value, &order);
        let count = Self::number_of_shards(site, &axes.concat());
        value = self.reshaped(site, value, &[&[count], &site.shape[..]].concat());
        value = self.along_dim(site, Along::ReduceScatter, value, (0, &axes.concat()), options);
        self.reshaped(site, value, &site.shape)
    }
    fn exchange(
        &mut self,
        site: &Site,
        axes: &[AxisRef],
        (source, target): (usize, usize),
        options: GlobalToLocalOptions,
    ) -> ValueId {
        let count = Self::number_of_shards(site, axes);
        let mut attrs = self.exchange_attrs(site, axes, options);
        attrs.push(("split_dimension", format!("{target} : i64")));
        attrs.push(("concat_dimension", format!("{source} : i64")));
        attrs.push(("split_count", format!("{count} : i64")));
        let ty = self.typed(site, &site.shape);
        self.emit.op("stablehlo.all_to_all", &[site.held.value], ty, &attrs)
    }
    /// The device's slice of `value` along `axes` of each dim; offsets are looked up in tables.
    fn own_part(&mut self, site: &Site, value: ValueId, axes: &[Vec<AxisRef>]) -> ValueId {
        let scalar = self.emit.program.tensor_type_of(&[], self.offset_element());
        let mut operands = vec![value];
        for (dim, axes) in axes.iter().enumerate() {
            operands.push(if axes.is_empty() {
                self.emit.splat("0", scalar)
            } else {
                self.offset(&site.mesh, axes, site.shape[dim])
            });
        }
        let ty = self.typed(site, &site.shape);
        let sizes = [("slice_sizes", int_array(&site.shape))];
        self.emit.op("stablehlo.dynamic_slice", &operands, ty, &sizes)
    }
    /// A permute: devices are numbered by the axes of the dims, then the others, before and after; each device sends to
    /// the one with its number. Manual axes come first, so that nothing is sent along them.
    fn permute_shards(&mut self, site: &Site, op: OpId) -> Option<ValueId> {
        let result = self.emit.program.result(op, 0);
        let target = self.target(result);
        let (from, to) = (&self.placements[site.held.placement], &self.placements[target]);
        let axes = (0..site.mesh.axes.len()).map(|axis| AxisRef::full(AxisId::from_index(axis)));
        let axes = axes.map(|axis| Digit::of_axis(axis, &site.mesh));
        let axes: Vec<Digit> = axes.filter(|digit| digit.size != 1).collect();
        let free = self.devices();
        let used = from.digits().chain(to.digits()).chain(axes.iter().chain(&free).copied());
        let cuts = Cuts::of(used)?;
        let (every, free) = (cuts.split(&axes), cuts.split(&free));
        let ordered = |dims: &[Vec<Digit>]| {
            let mut own: Vec<Digit> =
                every.iter().copied().filter(|digit| !free.contains(digit)).collect();
            own.extend(cuts.split(&dims.concat()));
            let others: Vec<Digit> =
                every.iter().copied().filter(|digit| !own.contains(digit)).collect();
            own.extend(others);
            own
        };
        let (before, after) = (ordered(&from.dims), ordered(&to.dims));
        let count = site.mesh.device_count();
        let device = |position| site.mesh.device_at_position(position);
        let mut targets = vec![0; usize::try_from(count).ok()?];
        for position in 0..count {
            *targets.get_mut(number_at(&after, position) as usize)? = device(position);
        }
        let mut pairs = Vec::with_capacity(targets.len());
        for position in 0..count {
            pairs.push((device(position), *targets.get(number_at(&before, position) as usize)?));
        }
        pairs.sort_unstable();
        Some(self.collectives.permute(&mut self.emit, site.held.value, &pairs))
    }
    /// Turns a constant of `sdy` into one of `StableHLO`, which devices slice.
    pub(in crate::spmd::lower) fn constant_part(
        &mut self,
        op: OpId,
        target: PlacementId,
    ) -> Option<ValueId> {
        let result = self.emit.program.result(op, 0);
        let global = self.emit.program.type_of(result);
        let sharding = self.emit.program.sharding(result);
        let sharding = self.emit.program.shardings().get(sharding)?.clone();
        let shape = self.shape_of(global)?;
        let placement = &self.placements[target];
        if (0..shape.len()).any(|dim| placement.is_padded(dim, shape[dim])) {
            return None;
        }
        let shape = placement.local_shape(&shape);
        let mesh = self.emit.program.meshes()[sharding.mesh].mesh.clone();
        let mut held = self.held(result);
        held.global = global;
        let site = Site { mesh_id: sharding.mesh, mesh, held, shape };
        let text = self.emit.program.constant_text(op).trim().to_owned();
        let whole = self.emit.op("stablehlo.constant", &[], global, &[("value", text)]);
        let axes: Vec<Vec<AxisRef>> = sharding.dims.iter().map(|dim| dim.axes.clone()).collect();
        Some(self.own_part(&site, whole, &axes))
    }
}

/// The reducer that a collective names: any but that of sums, which it also has if it says nothing.
const fn named_reducer(payload: &Payload) -> Option<Reducer> {
    match payload.reduction_op() {
        ReductionOp::Sum => None,
        ReductionOp::Max => Some(Reducer::Max),
        ReductionOp::Min => Some(Reducer::Min),
    }
}
