//! Bytes of the results of kernels, and when they are live.

use crate::compilers::xla_cpu::buffer_assignment::liveness::Liveness;
use crate::compilers::xla_cpu::kernels::graph::Graph;

/// Whether the live range `span` contains the position `at`.
pub fn is_live(span: Option<(u32, u32)>, at: u32) -> bool {
    span.is_some_and(|(first, last)| (first..=last).contains(&at))
}

/// Bytes of the results of `kernel`, without those in buffers of arguments, or of outputs that are written later.
pub fn made(graph: &Graph, liveness: &Liveness, kernel: u32) -> u128 {
    let is_counted = |&item: &usize| liveness.spans[item].is_some() || liveness.is_output[item];
    let own = graph.makes(kernel).iter().map(|&item| item as usize).filter(is_counted);
    own.map(|item| graph.items[item].bytes).sum()
}
