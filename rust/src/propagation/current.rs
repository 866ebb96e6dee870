//! The op in hand: the shardings of its tensors.

use super::engine::{sharding, Engine};
use super::plan::{OpRow, WIDE};
use crate::index::ShardingId;

/// The shardings of the tensors of the op in hand, at most [`WIDE`].
#[derive(Default)]
pub(super) struct CurrentShardings {
    shardings: [ShardingId; WIDE],
    len: usize,
}

impl CurrentShardings {
    /// The shardings.
    #[inline]
    pub fn shardings(&self) -> &[ShardingId] {
        &self.shardings[..self.len]
    }
}

impl Engine<'_> {
    /// Looks at the shardings of the tensors of the op at `position`.
    #[inline(always)]
    pub fn load(&mut self, position: u32) {
        let OpRow { visit, tensors } = self.plan.row(position);
        self.current.len = tensors.len();
        if visit.is_plain() {
            let all = &self.program.value_shardings;
            for (sharding, &tensor) in self.current.shardings.iter_mut().zip(tensors) {
                *sharding = all[tensor];
            }
        } else {
            self.load_indirect(position);
        }
    }

    /// The same where some are kept in other places.
    #[inline(never)]
    fn load_indirect(&mut self, position: u32) {
        let op = self.plan.op(position);
        let (tensors, edges) = (self.plan.row(position).tensors, &self.plan.edges);
        let shardings = &mut self.current.shardings[..tensors.len()];
        for (id, &tensor) in shardings.iter_mut().zip(tensors) {
            *id = sharding(self.program, edges, tensor);
        }
        if let (Some(end), Some(last)) = (edges.manual_end(op), shardings.last_mut()) {
            *last = if end.is_arg {
                self.program.with_manual_axes(end.op, end.owner, *last)
            } else {
                self.program.inside_manual(end.op, *last)
            };
        }
    }
}
