//! Halo exchange for reshapes of dims that do not divide evenly into shards.
//!
//! If a dim is split, and each shard of the result starts in a neighbouring shard of the operand,
//! devices exchange elements with their neighbours; otherwise the dims are replicated around the
//! reshape.

use super::exchange::{ceil, round_up, DimExchange, Plan, Start};
use super::groups::{cut_alike, Group};
use super::manual::{self, Halo};
use super::{is_small, Operand, Resolution};
use crate::axis::{difference, push_or_merge, total_size, AxisRef};
use crate::index::{OpId, ShardingId};
use crate::ir::{NewOp, OpKind, Program};
use crate::mesh::Mesh;
use crate::partition::across_reshapes::is_equivalent_across_reshapes;
use crate::sharding::{DimSharding, TensorSharding};

/// A reshape.
struct Reshape {
    operand: Operand,
    /// The sharding of the result.
    sharding: ShardingId,
    /// The shape of the result.
    shape: Vec<i64>,
    groups: Vec<Group>,
}

/// Rewrites the reshape `op`.
pub fn resolve(
    program: &mut Program,
    op: OpId,
    enable_halo_exchange: bool,
    resolution: &mut Resolution,
) {
    let Some(reshape) = Reshape::of(program, op) else { return };
    if reshape.is_local(program, op) {
        return;
    }
    let mesh = program.meshes()[reshape.operand.mesh].mesh.clone();
    let plan = if enable_halo_exchange { reshape.plan(program, &mesh) } else { None };
    match plan {
        Some((plan, padded)) => reshape.exchange(program, op, resolution, &plan, &padded),
        None => reshape.replicate(program, op, &mesh),
    }
}

impl Reshape {
    /// The reshape `op`; `None` if it is not sharded, or if its operand and result have different
    /// axes.
    fn of(program: &mut Program, op: OpId) -> Option<Self> {
        let value = program.operand(op, 0);
        let sharding = program.sharding(program.result(op, 0));
        let shape = program.value_type(program.result(op, 0)).static_shape()?;
        let own = program.sharding_of(value);
        let mesh = program.shardings().get(own)?.mesh;
        let operand = Operand {
            value,
            sharding: own,
            mesh,
            shape: program.value_type(value).static_shape()?,
        };
        let (from, to) = (&program.shardings()[own], program.shardings().get(sharding)?);
        let axes = |sharding: &TensorSharding| {
            let mut all: Vec<AxisRef> = Vec::new();
            for &axis in sharding.dims.iter().flat_map(|dim| &dim.axes) {
                push_or_merge(&mut all, axis, program.mesh(mesh));
            }
            all
        };
        if from.mesh != to.mesh || axes(from) != axes(to) {
            return None;
        }
        let groups = Group::all(&operand.shape, &shape);
        Some(Self { operand, sharding, shape, groups })
    }
    fn shardings<'p>(&self, program: &'p Program) -> [&'p TensorSharding; 2] {
        [self.operand.sharding, self.sharding].map(|id| &program.shardings()[id])
    }
    fn shapes(&self) -> [&[i64]; 2] {
        [&self.operand.shape, &self.shape]
    }
    /// Whether each shard of the result has the elements of the operand's shard on the same device.
    fn is_local(&self, program: &Program, op: OpId) -> bool {
        let [from, to] = self.shardings(program);
        let types =
            [program.operand(op, 0), program.result(op, 0)].map(|value| program.type_of(value));
        is_equivalent_across_reshapes(program, (from, types[0]), (to, types[1]))
            || (self.is_alike(program) && self.groups.iter().all(Group::is_kept))
    }
    fn is_alike(&self, program: &Program) -> bool {
        cut_alike(self.shardings(program), self.shapes(), program.mesh(self.operand.mesh))
    }
    /// The exchanges, and the padded shape of the result; `None` if there are no elements to
    /// exchange, or not only with neighbours.
    fn plan(&self, program: &Program, mesh: &Mesh) -> Option<(Plan, Vec<i64>)> {
        if !self.is_alike(program) || !is_small(mesh, &self.shapes()) {
            return None;
        }
        let shardings = self.shardings(program);
        let padded = [0, 1].map(|side| padded(self.shapes()[side], shardings[side], mesh));
        let mut plan = Plan { padded: padded[0].clone(), ..Plan::default() };
        let mut split: Vec<&Group> = Vec::new();
        for group in &self.groups {
            let is_uneven = padded[0][group.from.clone()] != self.operand.shape[group.from.clone()]
                || padded[1][group.to.clone()] != self.shape[group.to.clone()];
            if !is_uneven {
                continue;
            }
            plan.manual.extend(group.axes(shardings).iter().map(|axis| axis.axis));
            if group.is_kept() {
                continue;
            }
            self.can_split(group, &padded).then_some(())?;
            split.push(group);
        }
        if split.is_empty() {
            return None;
        }
        plan.manual.sort_unstable();
        plan.manual.dedup();
        for (dim, axes) in shardings[0].dims.iter().map(|dim| &dim.axes).enumerate() {
            let shards = total_size(axes, mesh);
            if shards <= 1 {
                continue;
            }
            let size = padded[0][dim] / shards;
            let mut exchange = DimExchange { dim, size, is_near: true, ..DimExchange::default() };
            if let Some(group) = split.iter().find(|group| group.from.end == dim + 1) {
                self.split(&mut exchange, group, shardings[1], shards, mesh);
            }
            plan.dims.push(exchange);
        }
        let [_, padded] = padded;
        plan.is_near().then_some((plan, padded))
    }
    /// Whether the elements of `group` can be exchanged.
    fn can_split(&self, group: &Group, padded: &[Vec<i64>; 2]) -> bool {
        let (Some(&from), Some(&to)) =
            (self.operand.shape.get(group.from.start), self.shape.get(group.to.start))
        else {
            return false;
        };
        let volume =
            |shape: &[i64]| shape.iter().try_fold(1_i64, |all, size| all.checked_mul(*size));
        let volumes =
            (volume(&padded[0][group.from.clone()]), volume(&padded[1][group.to.clone()]));
        group.is_split()
            && group.is_long()
            && from > 0
            && to > 0
            && (from % to == 0 || to % from == 0)
            && volumes.0 == volumes.1
    }
    /// Records for each shard of the result which shards of the operand it needs.
    fn split(
        &self,
        exchange: &mut DimExchange,
        group: &Group,
        result: &TensorSharding,
        shards: i64,
        mesh: &Mesh,
    ) {
        let size = self.operand.shape[exchange.dim];
        let shard = ceil(size, shards);
        let dims = group.to.clone();
        let axes: Vec<AxisRef> =
            result.dims[dims.clone()].iter().flat_map(|dim| dim.axes.iter().copied()).collect();
        let mut starts = Vec::new();
        for target in 0..shards {
            // The first element of the shard, in row-major order without padding.
            let (mut start, mut stride, mut rest) = (0, 1, target);
            for dim in dims.clone().rev() {
                let parts = total_size(&result.dims[dim].axes, mesh).max(1);
                start += rest % parts * ceil(self.shape[dim], parts) * stride;
                rest /= parts;
                stride *= self.shape[dim];
            }
            let holder = |element: i64| (element < size).then(|| element / shard);
            let (first, last) = (holder(start), holder(start + exchange.size - 1));
            for holder in [first, last].into_iter().flatten() {
                exchange.communicates |= holder != target;
            }
            exchange.hops[0] = exchange.hops[0].max(first.map_or(0, |first| target - first));
            exchange.hops[1] = exchange.hops[1].max(last.map_or(0, |last| last - target));
            let place = first.map_or(0, |first| start - first * shard);
            starts.push(Start { shard: first, place });
        }
        exchange.is_near = exchange.hops[0] <= 1 && exchange.hops[1] <= 1;
        exchange.split = Some((axes, starts));
    }
    /// Exchanges elements with neighbours, and reshapes on each device.
    fn exchange(
        &self,
        program: &mut Program,
        op: OpId,
        resolution: &mut Resolution,
        plan: &Plan,
        padded: &[i64],
    ) {
        let ty = program.type_of(program.result(op, 0));
        let padding = program.build_zero(ty, program.before(op));
        let input = self.operand.padded(program, op, &plan.padded, None);
        let (low, dilations) = (vec![0; plan.padded.len()], vec![1; plan.padded.len()]);
        let shardings = [self.operand.sharding, self.sharding];
        let halo = Halo { op, input, shardings, padding, plan, low: &low, dilations: &dilations };
        let mesh = program.meshes()[self.operand.mesh].mesh.clone();
        let inside = program.without_manual(self.sharding, &plan.manual);
        let sharding = program.shardings()[self.sharding].clone();
        let local = manual::local_shape(padded, &sharding, &plan.manual, &mesh);
        let result = manual::exchange(program, resolution, halo, |program, body, value, _| {
            let ty = program.tensor_type(&local, ty);
            let reshape = NewOp::of_kind(OpKind::Reshape, &[value], &[ty]).sharding(inside);
            program.build_value(reshape, body.at)
        });
        let to = Operand { sharding: self.sharding, ..self.operand.clone() };
        to.replace(program, op, result, &self.shape);
    }
    /// Replicates the dims of groups that do not divide evenly before the reshape, and shards them
    /// again after it.
    fn replicate(&self, program: &mut Program, op: OpId, mesh: &Mesh) {
        let shardings = self.shardings(program);
        let mut removed: Vec<AxisRef> = Vec::new();
        for group in self.groups.iter().filter(|group| !group.is_kept()) {
            let is_uneven = |side: usize| {
                let dims = [&group.from, &group.to][side].clone();
                let shape = padded(self.shapes()[side], shardings[side], mesh);
                shape[dims.clone()] != self.shapes()[side][dims]
            };
            if is_uneven(0) || is_uneven(1) {
                removed.extend(group.axes(shardings));
            }
        }
        let [from, to] = [0, 1].map(|side| without(shardings[side], &removed, mesh));
        let (from, to) = (program.intern_sharding(from), program.intern_sharding(to));
        let old = program.result(op, 0);
        let ty = program.type_of(old);
        let input = self.operand.value;
        let reshard = program.build_unary(OpKind::Reshard, input, from, program.before(op));
        let input = program.result(reshard, 0);
        let reshape = NewOp::of_kind(OpKind::Reshape, &[input], &[ty]).sharding(to);
        let reshaped = program.build_value(reshape, program.before(op));
        let at = program.before(op);
        let reshard = program.build_unary(OpKind::Reshard, reshaped, self.sharding, at);
        program.replace_all_uses(old, program.result(reshard, 0));
        program.erase_op(op);
    }
}

/// `shape` with each dim rounded up to a multiple of its number of shards.
fn padded(shape: &[i64], sharding: &TensorSharding, mesh: &Mesh) -> Vec<i64> {
    let round =
        |(&size, dim): (&i64, &DimSharding)| round_up(size, total_size(&dim.axes, mesh).max(1));
    shape.iter().zip(&sharding.dims).map(round).collect()
}

/// `sharding` without the axes in `removed`.
fn without(sharding: &TensorSharding, removed: &[AxisRef], mesh: &Mesh) -> TensorSharding {
    let mut rest = sharding.clone();
    for dim in &mut rest.dims {
        dim.axes = difference(&dim.axes, removed, mesh);
    }
    rest
}
