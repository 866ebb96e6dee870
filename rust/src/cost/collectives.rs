//! The collectives of a per-device program: kind, axes, bytes, number of runs, and the op that required each.

use super::groups::KnownGroups;
use super::local::Local;
use crate::axis::AxisRef;
use crate::compilers::xla_tpu::narrowed_values::Narrowed;
use crate::error::Span;
use crate::index::{MeshId, OpId, ValueId};
use crate::inlining::call_inliner::Inlined;
use crate::ir::Program;
use crate::work::cached::Works;
use crate::work::execution::Execution;

/// The kind of a collective.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CollectiveKind {
    /// Every device gets the blocks of all devices.
    AllGather,
    /// Each device gets one block of the reduced array.
    ReduceScatter,
    /// Every device gets the whole reduced array.
    AllReduce,
    /// Blocks along one dim are exchanged for blocks along another.
    AllToAll,
    /// Each device sends its block to one other.
    CollectivePermute,
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
            Self::Other => "other",
        }
    }
    pub(crate) fn of_name(name: &str) -> Self {
        match name.split_once('.').map_or(name, |(_, op)| op) {
            "all_gather" => Self::AllGather,
            "reduce_scatter" => Self::ReduceScatter,
            "all_reduce" | "cross-replica-sum" => Self::AllReduce,
            "all_to_all" => Self::AllToAll,
            "collective_permute" => Self::CollectivePermute,
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
    /// The size of a replica group; 1 if it is not known.
    pub devices: i64,
    /// Number of runs.
    pub count: u128,
    /// Bytes of the array on one device once it is gathered along the axes, for one run.
    pub bytes: u128,
    /// The op of the source program that required it.
    pub cause: Option<OpId>,
    /// The location of that op, as that of an [`super::OpRow`].
    pub cause_loc: Span,
}

/// Describes `op`, a collective of `inlined`, which is the program of `local`; `narrowed` says which values are stored as `bf16`.
pub(crate) fn collective<'a>(
    local: Local<'_>,
    (inlined, op): (&'a Inlined<'_>, OpId),
    narrowed: &mut Narrowed<'_>,
    works: &mut Works<'_>,
    execution: &Execution,
    groups: &mut KnownGroups<'a>,
) -> Collective {
    let program = &*inlined.program;
    let kind = CollectiveKind::of_name(program.op_name(op));
    let required = program.cause(op).unwrap_or(op);
    let required_by = inlined.originals.op(required);
    let cause = local.cause(required_by);
    let id = groups.of(program, op);
    let only_mesh = groups.only_mesh(local);
    let along = match only_mesh {
        Some(mesh) => groups.axes(local, id, std::iter::once(mesh)),
        None => groups.axes(local, id, local.meshes(cause)),
    };
    let devices = groups.num_devices(local, id, &along);
    let (mesh, axes) = along.unzip();
    let mesh = mesh.or(only_mesh).or_else(|| local.meshes(cause).next()).unwrap_or_default();
    let mut bytes = bytes_moved(program, works, op, kind, devices);
    if program.op_results(op).all(|value| narrowed.has(&mut works.tensors, value)) {
        bytes /= 2;
    }
    let is_kept = cause == local.source_op(required_by);
    let cause_loc = match cause {
        Some(_) if is_kept => program.loc(required),
        Some(cause) => local.source.loc(cause),
        None => Span::EMPTY,
    };
    let count = execution.times(program.parent_block(op));
    Collective {
        op,
        loc: program.loc(op),
        kind,
        mesh,
        axes,
        devices,
        count,
        bytes,
        cause,
        cause_loc,
    }
}

/// Bytes of the array on one device once it is gathered among `devices`, for one run of `op`, a collective.
pub(crate) fn bytes_moved(
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
