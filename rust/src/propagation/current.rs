//! The shardings of the tensors of the op that is visited.

use super::plan::{OpRow, WIDE};
use super::state::State;
use crate::index::ShardingId;

/// The shardings of at most [`WIDE`] tensors.
#[derive(Default)]
pub(super) struct CurrentShardings {
    shardings: [ShardingId; WIDE],
    len: usize,
}

impl CurrentShardings {
    /// The shardings, of operands (or sources of an edge) and results.
    #[inline]
    pub fn as_slice(&self) -> &[ShardingId] {
        &self.shardings[..self.len]
    }
    /// Loads the shardings of the tensors of the op at `position`.
    #[inline(always)]
    pub fn load(&mut self, state: &mut State<'_>, position: u32) {
        let OpRow { visit, tensors } = state.plan.row(position);
        self.len = tensors.len();
        if visit.is_plain() {
            let program = state.program();
            for (sharding, &tensor) in self.shardings.iter_mut().zip(tensors) {
                *sharding = program.sharding(tensor);
            }
        } else {
            self.load_indirect(state, position);
        }
    }

    /// Loads shardings of an op whose tensors are not plain: some are held by other values.
    #[inline(never)]
    fn load_indirect(&mut self, state: &mut State<'_>, position: u32) {
        let (program, plan) = state.program_and_plan();
        let tensors = plan.row(position).tensors;
        let shardings = &mut self.shardings[..tensors.len()];
        for (id, &tensor) in shardings.iter_mut().zip(tensors) {
            *id = plan.edges.sharding(program, tensor);
        }
        let end = plan.edges.manual_end(plan.op(position));
        if let (Some(end), Some(last)) = (end, shardings.last_mut()) {
            *last = if end.is_arg {
                program.with_manual_axes(end.op, end.owner, *last)
            } else {
                program.inside_manual(end.op, *last)
            };
        }
    }
}
