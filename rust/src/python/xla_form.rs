//! Converts a program to the form in which XLA propagates it.

use crate::axis::AxisRef;
use crate::compilers::target::Compiler;
use crate::compilers::xla_tpu::before_partitioning;
use crate::context::RuleSource;
use crate::import::hlo_loops::Loops;
use crate::import::{
    hlo_captures, hlo_dead, hlo_form, hlo_order, hlo_simplified, hlo_single_device,
};
use crate::inlining::call_inliner::{Inlined, Originals};
use crate::ir::Program;
use crate::rules::Registry;
use crate::sharding::TensorSharding;

/// `original` in the form and op order in which the XLA `compiler` propagates it, with signatures by
/// `rules`, and the originals of clones.
pub(super) fn as_in_xla(
    original: &Program,
    rules: &Registry,
    compiler: Compiler,
) -> (Program, Originals) {
    let mut alive = original.clone();
    hlo_dead::run(&mut alive);
    hlo_single_device::run(&mut alive);
    let loops = Loops::of(&alive);
    let (mut program, mut originals) = Inlined::of(alive).into_parts();
    loops.run(&mut program, &mut originals);
    // Removes results of calls that nothing reads.
    hlo_dead::run(&mut program);
    hlo_simplified::run(&mut program, &mut originals);
    hlo_form::run(&mut program, &mut originals);
    if compiler.simplifies_before_partitioning() {
        before_partitioning::run(&mut program, &mut originals, |program| rules.sign(program));
    }
    hlo_order::run(&mut program);
    hlo_captures::capture(&mut program, &mut originals);
    rules.sign(&mut program);
    note_open_results(&mut program);
    (program, originals)
}

/// Notes that the results of `program`, which is not completed yet, that have no sharding are left to the compiler.
pub(super) fn note_open_results(program: &mut Program) {
    let given: Vec<bool> = program
        .entry_function()
        .map(|func| program.func_results(func).iter().map(|port| port.sharding.is_some()).collect())
        .unwrap_or_default();
    program.note_open_results(|_, index| given.get(index).copied().unwrap_or(true));
}

/// Whether the dims of all ports are sharded along the same axes; a port without sharding counts as
/// replicated.
pub(super) fn same_axes(
    ports: &[Option<TensorSharding>],
    other: &[Option<TensorSharding>],
) -> bool {
    let is_same =
        |(port, other): (&Option<_>, &Option<_>)| has_same_axes(port.as_ref(), other.as_ref());
    ports.len() == other.len() && ports.iter().zip(other).all(is_same)
}

/// Whether the dims of a port are sharded along the same axes; a port without sharding counts as
/// replicated.
pub(super) fn has_same_axes(port: Option<&TensorSharding>, other: Option<&TensorSharding>) -> bool {
    fn axes(port: Option<&TensorSharding>) -> Option<impl Iterator<Item = &[AxisRef]>> {
        let sharding = port.filter(|sharding| !sharding.has_no_axes())?;
        Some(sharding.dims.iter().map(|dim| &*dim.axes))
    }
    match (axes(port), axes(other)) {
        (Some(port), Some(other)) => port.eq(other),
        (port, other) => port.is_none() && other.is_none(),
    }
}
