//! The all-slice: adds axes that are wanted and do not shard anything yet.
//!
//! A dim can be sliced by the ratio of the numbers of shards along it in the wanted and the current
//! sharding. Axes are sliced where they are wanted if they fit, else in the first dim where they
//! fit, from which they are moved later. If an all-to-all is going to move axes from one dim to
//! another that wants more axes right behind them, these are sliced in the first dim too, so that
//! they move along.

use super::state::State;
use crate::axis::{push_or_merge, AxisRef};
use crate::ir::{OpKind, Payload};
use crate::projection::gcd;
use std::ops::Range;

impl State<'_> {
    /// Makes the slice if there is something to slice.
    pub fn try_slice(&mut self) {
        let slicing = self.slicing_axes();
        if slicing.iter().any(|axes| !axes.is_empty()) {
            self.emit(OpKind::AllSlice, Some(Payload::axes_per_dim(slicing)));
        }
    }
    fn slicing_axes(&mut self) -> Vec<Vec<AxisRef>> {
        let mut slicing = vec![Vec::new(); self.rank()];
        for dim in 0..self.rank() {
            let (now, then) = (self.size(&self.incoming[dim]), self.size(&self.outgoing[dim]));
            let keeps_padding = !self.changes_padding(dim);
            self.capacity[dim] = if keeps_padding { then / gcd(now, then).max(1) } else { 1 };
        }
        for (dim, slicing) in slicing.iter_mut().enumerate() {
            let Some((wanted_in, range)) = self.axes_to_move_along(dim) else { continue };
            let moved: Vec<AxisRef> = self.outgoing[wanted_in][range].to_vec();
            for axis in moved {
                self.incoming[dim].push(axis);
                self.add_incoming(axis);
                push_or_merge(slicing, axis, &self.mesh);
                self.push_current(dim, axis);
            }
        }
        let mut available = Vec::new();
        for (dim, slicing) in slicing.iter_mut().enumerate() {
            if !self.changes_padding(dim) {
                self.slice_where_wanted(dim, slicing, &mut available);
            }
        }
        let mut lists = [available];
        self.distribute(&mut lists, false, |state, axis, dim| {
            push_or_merge(&mut slicing[dim], axis, &state.mesh);
            state.push_current(dim, axis);
        });
        self.index_outgoing();
        slicing
    }
    /// Slices `dim` by the axes that are wanted there, as far as they fit; the others are
    /// `available` to other dims.
    fn slice_where_wanted(
        &mut self,
        dim: usize,
        slicing: &mut Vec<AxisRef>,
        available: &mut Vec<AxisRef>,
    ) {
        let mut at = 0;
        while at < self.outgoing[dim].len() {
            let axis = self.outgoing[dim][at];
            if self.is_incoming(axis) {
                at += 1;
                continue;
            }
            let Some((fitting, rest)) = self.fit(axis, dim) else {
                available.push(axis);
                at += 1;
                continue;
            };
            push_or_merge(slicing, fitting, &self.mesh);
            self.push_current(dim, fitting);
            if self.incoming[dim].is_empty() && at == 0 {
                self.outgoing[dim].remove(0);
            } else {
                self.add_incoming(fitting);
                self.incoming[dim].push(fitting);
                self.outgoing[dim][at] = fitting;
                at += 1;
            }
            if let Some(rest) = rest {
                self.outgoing[dim].insert(at, rest);
                available.push(rest);
                at += 1;
            }
        }
    }
    /// The axes to slice in `source` so that they move along with its axes: the dim that wants
    /// them, and their range there. Their size is subtracted from that dim's capacity.
    fn axes_to_move_along(&mut self, source: usize) -> Option<(usize, Range<usize>)> {
        let incoming = &self.incoming[source];
        let last = *incoming.last()?;
        if !self.outgoing[source].is_empty() {
            return None;
        }
        let (target, _) = self.out_place(last)?;
        if !self.incoming[target].is_empty() || self.changes_padding(target) {
            return None;
        }
        let wanted = &self.outgoing[target];
        let start = wanted.iter().position(|&axis| axis == last)? + 1;
        if self.is_incoming(*wanted.get(start)?) {
            return None;
        }
        let pairs = incoming.iter().rev().zip(wanted[..start].iter().rev());
        let in_order = pairs.take_while(|(a, b)| a == b).count();
        let mut others = incoming[..incoming.len() - in_order].iter();
        if others.any(|&axis| self.out_place(axis).is_some_and(|(dim, _)| dim == target)) {
            return None;
        }
        let free = wanted[start..].iter().take_while(|&&axis| !self.is_incoming(axis)).count();
        let moved = self.size(&incoming[incoming.len() - in_order..]);
        let added = self.size(&wanted[start..start + free]);
        let shards = self.size(&self.current[source]) * added;
        if self.dim_size(source).is_none_or(|size| size % shards != 0) {
            return None;
        }
        self.capacity[target] /= moved * added;
        Some((target, start..start + free))
    }
}
