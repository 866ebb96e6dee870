//! All-to-alls, which move axes from the end of one dim to the end of another.

use super::state::State;
use crate::axis::{push_or_merge, AxisRef};
use crate::ir::{OpKind, Payload};

impl State<'_> {
    /// Makes all possible all-to-alls; unless `out_of_order`, only those that move axes directly to
    /// their places.
    pub fn try_all_to_alls(&mut self, out_of_order: bool) {
        for source in 0..self.rank() {
            while let Some((axes, target)) = self.move_axes(source, out_of_order) {
                let dim = |dim: usize| i64::try_from(dim).unwrap_or(i64::MAX);
                let param = (axes, dim(source), dim(target));
                self.emit(OpKind::AllToAll, Some(Payload::AllToAll(vec![param])));
            }
        }
    }
    /// Moves the last incoming axes of `source`, as many as one other dim wants; returns them and
    /// that dim.
    fn move_axes(&mut self, source: usize, out_of_order: bool) -> Option<(Vec<AxisRef>, usize)> {
        let incoming = &self.incoming[source];
        let (target, _) = self.out_place(*incoming.last()?)?;
        if target == source {
            return None;
        }
        let is_wanted_there =
            |axis: &&AxisRef| self.out_place(**axis).is_some_and(|(dim, _)| dim == target);
        let start = incoming.len() - incoming.iter().rev().take_while(is_wanted_there).count();
        if !out_of_order && !self.outgoing[target].starts_with(&incoming[start..]) {
            return None;
        }
        let empties = self.size(&incoming[start..]) == self.size(&self.current[source]);
        if (self.changes_padding(source) && !empties) || self.changes_padding(target) {
            return None;
        }
        let axes = self.incoming[source].split_off(start);
        self.pop_current(source, &axes);
        let mut moved = Vec::with_capacity(axes.len());
        for axis in axes {
            push_or_merge(&mut moved, axis, &self.mesh);
            self.push_current(target, axis);
            self.remove_incoming(axis);
            if self.incoming[target].is_empty() && self.outgoing[target].first() == Some(&axis) {
                self.outgoing[target].remove(0);
            } else {
                self.incoming[target].push(axis);
                self.add_incoming(axis);
            }
        }
        Some((moved, target))
    }
}
