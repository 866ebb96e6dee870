//! Rows for the kinds of ops and kernels (those of one kind take the same time), as Python tuples.

use crate::cost::kernels::KernelKind;
use crate::cost::WorkKind;
use crate::index::StrId;
use crate::ir::Program;
use crate::work::ops::unit::Unit;
use crate::work::ops::Work;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

/// The sizes of a matrix product: batch, rows, columns, contracted; or [`Unit::sizes`] of others.
type Sizes = (u128, u128, u128, u128);

/// A kind of kernel: element type, compute unit, its sizes, FLOPs,
/// transcendentals, bytes read, the part of these that the cache has, and bytes written.
pub(super) type KernelKindRow<'a> =
    (Option<&'a str>, &'static str, Option<Sizes>, u128, u128, u128, u128, u128);

/// A kind of op: element type, compute unit, its sizes, FLOPs, transcendentals,
/// FLOPs on hosts only, bytes, whether they are collectives, and the kernels that start with them
/// if the compiler's kernels are modelled.
pub(super) type WorkRow<'a, 'py> = (
    Option<&'a str>,
    &'static str,
    Option<Sizes>,
    u128,
    u128,
    u128,
    u128,
    bool,
    Option<Bound<'py, PyTuple>>,
);

/// What the time of `unit` depends on, if that is more than traffic and FLOPs.
fn sizes(unit: Unit) -> Option<Sizes> {
    let [batch, rows, columns, summed] = unit.sizes()?;
    Some((batch, rows, columns, summed))
}

/// The row of ops of `kind`; `sets` are [`crate::cost::ProgramCost::kernels`].
pub(super) fn work_row<'a, 'py>(
    py: Python<'py>,
    program: &'a Program,
    sets: &[Box<[KernelKind]>],
    kind: &WorkKind,
) -> PyResult<WorkRow<'a, 'py>> {
    let Work { flops, transcendentals, only_on_hosts } = kind.work;
    let rows = |set: u32| sets[set as usize].iter().map(|kernel| kernel_row(program, kernel));
    let kernels = kind.kernels.map(|set| PyTuple::new(py, rows(set))).transpose()?;
    Ok((
        dtype(program, kind.element),
        kind.unit.as_str(),
        sizes(kind.unit),
        flops,
        transcendentals,
        only_on_hosts,
        kind.traffic,
        kind.is_collective,
        kernels,
    ))
}

/// The row of a kind of kernel.
pub(super) fn kernel_row<'a>(program: &'a Program, kernel: &KernelKind) -> KernelKindRow<'a> {
    (
        dtype(program, kernel.element),
        kernel.unit.as_str(),
        sizes(kernel.unit),
        kernel.work.flops,
        kernel.work.transcendentals,
        kernel.read,
        kernel.cached,
        kernel.written,
    )
}

fn dtype(program: &Program, element: StrId) -> Option<&str> {
    element.get().map(|id| program.strings().get(id))
}
