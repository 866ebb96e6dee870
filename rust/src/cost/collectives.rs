//! The collectives of a program: kind, axes, bytes, number of runs, and the op that required each.

use super::execution::Execution;
use super::groups::{axes_of_groups, size_of_groups};
use super::meshes::are_held_alike;
use super::works::Works;
use crate::axis::{disjoint, AxisRef};
use crate::error::Span;
use crate::index::{AxisId, Id, MeshId, OpId, ShardingId, ValueId};
use crate::ir::{OpKind, Payload, Program};
use crate::mesh::Mesh;
use crate::sharding::TensorSharding;

/// The kind of a collective.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CollectiveKind {
    /// Every device gets the blocks of all.
    AllGather,
    /// A reduction, of which every device keeps one block.
    ReduceScatter,
    /// A reduction, whose result every device gets.
    AllReduce,
    /// Blocks along one dim become blocks along another.
    AllToAll,
    /// Each device sends its block to one other.
    CollectivePermute,
    /// Each device keeps a part of what it holds: no communication.
    AllSlice,
    /// A reshard to another mesh, or to another order of devices.
    Reshard,
    /// Something else.
    Other,
}

impl CollectiveKind {
    /// The name in reports.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::AllGather => "all_gather",
            Self::ReduceScatter => "reduce_scatter",
            Self::AllReduce => "all_reduce",
            Self::AllToAll => "all_to_all",
            Self::CollectivePermute => "collective_permute",
            Self::AllSlice => "all_slice",
            Self::Reshard => "reshard",
            Self::Other => "other",
        }
    }
    pub(super) fn of_name(name: &str) -> Self {
        match name.split_once('.').map_or(name, |(_, op)| op) {
            "all_gather" => Self::AllGather,
            "reduce_scatter" => Self::ReduceScatter,
            "all_reduce" | "cross-replica-sum" => Self::AllReduce,
            "all_to_all" => Self::AllToAll,
            "collective_permute" => Self::CollectivePermute,
            "all_slice" => Self::AllSlice,
            "reshard" => Self::Reshard,
            _ => Self::Other,
        }
    }
}

/// One collective.
#[derive(Clone, Debug)]
pub struct Collective {
    /// The op.
    pub op: OpId,
    /// Its location, as that of an [`super::OpRow`].
    pub loc: Span,
    /// Its kind.
    pub kind: CollectiveKind,
    /// The mesh, where it is known.
    pub mesh: MeshId,
    /// The axes along which devices communicate; `None` where they are not known.
    pub axes: Option<Vec<AxisRef>>,
    /// How many devices talk to each other; 1 where that is not known.
    pub devices: i64,
    /// Number of runs.
    pub count: u128,
    /// Bytes of the array on a device once it is gathered along the axes, for one run.
    pub bytes: u128,
    /// The op that required it.
    pub cause: Option<OpId>,
    /// The location of that op.
    pub cause_loc: Span,
    /// Its first operand.
    pub operand: ValueId,
    /// Its first result.
    pub result: ValueId,
}

/// Whether ops of `kind` are collectives of the `sdy` dialect.
pub fn is_sdy_collective(kind: OpKind) -> bool {
    matches!(
        kind,
        OpKind::AllGather
            | OpKind::AllSlice
            | OpKind::AllToAll
            | OpKind::CollectivePermute
            | OpKind::AllReduce
            | OpKind::ReduceScatter
    )
}

/// The description of `op`, a collective; `None` for a reshard that changes no device's shard.
pub fn collective(
    program: &Program,
    works: &mut Works<'_>,
    execution: &Execution,
    op: OpId,
) -> Option<Collective> {
    let kind = CollectiveKind::of_name(program.op_name(op));
    let operand = program.operands(op).next().unwrap_or_default();
    let result = program.op_results(op).next().unwrap_or_default();
    if kind == CollectiveKind::Reshard {
        let pair = (operand, result);
        return (!are_held_alike(program, operand, result))
            .then(|| moved_operand(program, works, execution, op, pair));
    }
    let (mesh, axes) = if is_sdy_collective(program.kind(op)) {
        let sharding = result.get().map_or(ShardingId::NONE, |result| program.sharding(result));
        (program.mesh_of(sharding), sdy_axes(program, op, operand, result))
    } else {
        let mesh = mesh_around(program, op);
        (mesh, mesh.get().and_then(|mesh| axes_of_groups(program, op, program.mesh(mesh))))
    };
    let devices =
        size_of_groups(program, op).unwrap_or_else(|| num_devices(program, mesh, axes.as_deref()));
    let bytes = bytes_moved(program, works, op, kind, devices);
    let cause = cause(program, op);
    Some(Collective {
        op,
        loc: program.loc(op),
        kind,
        mesh,
        axes,
        devices,
        count: execution.times(program.parent_block(op)),
        bytes,
        cause,
        cause_loc: cause.map_or(Span::EMPTY, |cause| program.loc(cause)),
        operand,
        result,
    })
}

/// Bytes that a device has of the array once it is gathered among `devices`, each time that `op`, a collective, runs.
pub(super) fn bytes_moved(
    program: &Program,
    works: &mut Works<'_>,
    op: OpId,
    kind: CollectiveKind,
    devices: i64,
) -> u128 {
    let mut total = |values: &mut dyn Iterator<Item = ValueId>| -> u128 {
        values.map(|value| works.tensors.bytes(value)).sum()
    };
    match kind {
        CollectiveKind::AllGather => total(&mut program.op_results(op)),
        CollectiveKind::AllToAll => {
            total(&mut program.operands(op)).saturating_mul(devices.unsigned_abs().into())
        }
        _ => total(&mut program.operands(op)),
    }
}

/// How many devices there are along `axes`.
fn num_devices(program: &Program, mesh: MeshId, axes: Option<&[AxisRef]>) -> i64 {
    match (axes, mesh.get()) {
        (Some(axes), Some(mesh)) => crate::axis::total_size(axes, program.mesh(mesh)).max(1),
        _ => 1,
    }
}

/// The reshard of an operand of `op` to the mesh of another tensor, counted as a permute along all axes of that
/// mesh, or, if that is a single device, of the operand's mesh: every device sends its shard.
pub fn moved_operand(
    program: &Program,
    works: &mut Works<'_>,
    execution: &Execution,
    op: OpId,
    (operand, target): (ValueId, ValueId),
) -> Collective {
    let mesh_of = |value| program.visible_sharding(value).and_then(|sharding| sharding.mesh.get());
    let meshes = [target, operand].into_iter().filter_map(mesh_of);
    let mut axes = meshes.map(|mesh| (mesh, all_axes(program.mesh(mesh))));
    let found = axes.find(|(_, axes)| !axes.is_empty());
    let (mesh, axes) = found.map_or((MeshId::NONE, None), |(mesh, axes)| (mesh, Some(axes)));
    let cause = cause(program, op);
    Collective {
        op,
        loc: program.loc(op),
        kind: CollectiveKind::Reshard,
        mesh,
        devices: num_devices(program, mesh, axes.as_deref()),
        axes,
        count: execution.times(program.parent_block(op)),
        bytes: works.tensors.bytes(operand),
        cause,
        cause_loc: cause.map_or(Span::EMPTY, |cause| program.loc(cause)),
        operand,
        result: target,
    }
}

/// The axes of `mesh` along which there is more than one device.
fn all_axes(mesh: &Mesh) -> Vec<AxisRef> {
    let several = (0..mesh.axes.len()).filter(|&axis| mesh.axes[axis].size > 1);
    several.map(|axis| AxisRef::full(AxisId::from_index(axis))).collect()
}

/// The axes that a collective of Shardy's runs along.
fn sdy_axes(
    program: &Program,
    op: OpId,
    operand: ValueId,
    result: ValueId,
) -> Option<Vec<AxisRef>> {
    Some(match program.payload(op) {
        Some(Payload::Axes(axes)) => axes.clone(),
        Some(Payload::AxesPerDim(lists)) => lists.concat(),
        Some(Payload::AllToAll(params)) => {
            params.iter().flat_map(|(axes, ..)| axes).copied().collect()
        }
        _ => {
            let (before, after) = (
                program.visible_sharding(operand.get()?)?,
                program.visible_sharding(result.get()?)?,
            );
            let (from, to) = (program.mesh(before.mesh), program.mesh(after.mesh));
            if from.device_ids != to.device_ids {
                let is_kept = are_held_alike(program, operand, result);
                return Some(if is_kept { Vec::new() } else { all_axes(to) });
            }
            moved_axes(&before, &after, to)
        }
    })
}

/// The axes along which a permute moves shards, each once: those of the dims that change, without the common
/// prefix of both shardings of a dim.
fn moved_axes(before: &TensorSharding, after: &TensorSharding, mesh: &Mesh) -> Vec<AxisRef> {
    let mut moved: Vec<AxisRef> = Vec::new();
    for (before, after) in before.dims.iter().zip(&after.dims) {
        let same = before.axes.iter().zip(&after.axes).take_while(|(a, b)| a == b).count();
        moved.extend(before.axes[same..].iter().chain(&after.axes[same..]));
    }
    disjoint(&moved, mesh)
}

/// The mesh of the manual computation around `op`, or else the only mesh with several devices.
fn mesh_around(program: &Program, op: OpId) -> MeshId {
    let mut at = op;
    while let Some(parent) = program.parent_op(at) {
        if program.kind(parent) == OpKind::ManualComputation {
            let arguments =
                program.op_regions(parent).filter_map(|id| program.region_entry(id).get());
            let outer = arguments.flat_map(|block| program.block_args(block));
            let values = outer.chain(program.op_results(parent));
            let mesh = values.map(|value| program.mesh_of(program.sharding(value)));
            if let Some(mesh) = mesh.into_iter().find(|mesh| mesh.is_some()) {
                return mesh;
            }
        }
        at = parent;
    }
    let mut several = program.meshes().ids().filter(|&id| program.mesh(id).device_count() > 1);
    several.next().unwrap_or(MeshId::NONE)
}

/// The op that required `op`, a collective.
///
/// The pass that inserted it may have recorded that. Otherwise it is, for a reduction, the op whose partial
/// results it reduces, and for others the first op that uses its result, through other collectives.
fn cause(program: &Program, op: OpId) -> Option<OpId> {
    if let Some(cause) = program.cause(op) {
        return Some(cause);
    }
    if !is_sdy_collective(program.kind(op)) {
        return Some(op);
    }
    let is_sum = matches!(program.kind(op), OpKind::AllReduce | OpKind::ReduceScatter);
    let mut at = op;
    loop {
        at = if is_sum {
            program.defining_op(program.operands(at).next()?)?
        } else {
            // Uses are newest first.
            program.user(program.uses(program.op_results(at).next()?).last()?)
        };
        if !is_sdy_collective(program.kind(at)) {
            return Some(at);
        }
    }
}
