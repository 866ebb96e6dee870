//! The gather: axes that no dim of the target has.

use super::state::State;
use crate::axis::{push_or_merge, AxisRef};
use crate::ir::{OpKind, Payload};

impl State<'_> {
    /// Gathers, in each dim, the axes that no dim of the target has.
    ///
    /// As in the reference, if the last incoming axis of a dim is in no dim of the target, all of them are
    /// gathered. Earlier ones could be in the target only if axis sizes do not divide each other; these are not
    /// sliced again.
    pub fn try_gather(&mut self) {
        let all: Vec<AxisRef> = self.incoming.iter().flatten().copied().collect();
        self.gather(|state, dim| {
            let last = state.incoming[dim].last()?;
            state.out_place(*last).is_none().then_some(0)
        });
        for axis in all {
            if self.out_place(axis).is_some() {
                self.add_incoming(axis);
            }
        }
    }
    /// Gathers the last axes of each dim that no dim of the target has, and all axes of a dim of which something is
    /// set aside.
    pub fn try_gather_last(&mut self) {
        self.gather(|state, dim| {
            let is_wanted = |&axis: &AxisRef| state.out_place(axis).is_some();
            if state.set_aside[dim].is_some() {
                return Some(0);
            }
            let last_wanted = state.incoming[dim].iter().rposition(is_wanted);
            Some(last_wanted.map_or(0, |wanted| wanted + 1))
        });
    }
    /// Gathers the incoming axes of each dim from the one on whose index `first` returns.
    fn gather(&mut self, first: impl Fn(&Self, usize) -> Option<usize>) {
        let mut gathered = vec![Vec::new(); self.rank()];
        for (dim, gathered) in gathered.iter_mut().enumerate() {
            let Some(first) = first(self, dim) else { continue };
            let axes = self.incoming[dim].split_off(first);
            self.pop_current(dim, &axes);
            for axis in axes {
                self.remove_incoming(axis);
                push_or_merge(gathered, axis, &self.mesh);
            }
        }
        if gathered.iter().any(|axes| !axes.is_empty()) {
            self.emit(OpKind::AllGather, Some(Payload::axes_per_dim(gathered)));
        }
    }
}
