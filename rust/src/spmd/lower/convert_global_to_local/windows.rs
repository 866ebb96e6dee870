//! Windows that do not overlap and do not cross shard boundaries.

use super::super::Lowering;
use crate::axis::AxisRef;
use crate::index::{OpId, ValueId};
use crate::ir::OpKind;
use crate::spmd::lower::windows::elements_needed::window_dims;
use crate::stablehlo::windows::WindowDim;

impl Lowering<'_, '_, '_> {
    /// Keeps `op`, a `reduce_window` or `select_and_scatter`, on the shards of its operands.
    pub(super) fn windows_as_shardy(&mut self, op: OpId) -> Option<()> {
        let program = &*self.emit.program;
        let is_reduction = program.kind(op) == OpKind::ReduceWindow;
        let operands: Vec<ValueId> = program.operands(op).collect();
        let results: Vec<ValueId> = program.op_results(op).collect();
        let num_inputs = if is_reduction { results.len() } else { 2 };
        let input = *operands.first()?;
        let axes: Vec<Vec<AxisRef>> = self.axes_of(input);
        let shape = self.global_shape(input)?;
        let mut tensors = operands[..num_inputs].iter().chain(&results);
        if !tensors.all(|&value| self.axes_of(value) == axes) {
            return None;
        }
        let mesh = self.mesh_of(op)?;
        let windows = window_dims(&*self.emit.program, op, shape.len());
        let local = self.held(input).value;
        let local = self.emit.shape(local);
        let is_whole = |dim: usize| {
            let is_apart = |window: &WindowDim| is_apart(window, local[dim]);
            axes[dim].is_empty() || windows.get(dim).is_some_and(is_apart)
        };
        if !(0..shape.len()).all(is_whole) || !self.has_terms_along(op, &[], &mesh) {
            return None;
        }
        let values: Vec<ValueId> =
            operands.into_iter().map(|operand| self.held(operand).value).collect();
        self.set_operands(op, values);
        for result in results {
            let target = self.target(result);
            self.keep(result, target);
        }
        Some(())
    }
}

/// Whether these windows are disjoint: each begins at or after the end of the one before.
fn is_apart(window: &WindowDim, size: i64) -> bool {
    let reach = window.size.map(|size| (size - 1) * window.window_dilation + 1);
    window.padding == [0, 0]
        && window.base_dilation == 1
        && reach.is_some_and(|reach| (1..=window.stride).contains(&reach))
        && size % window.stride == 0
}
