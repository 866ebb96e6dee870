//! The collective permute: replaces the incoming axes by other axes, or by the same ones in another
//! order, without changing the number of shards of each dim.

use super::state::{are_divisible, fit, State};
use crate::axis::AxisRef;
use crate::ir::OpKind;

impl State<'_> {
    /// Makes the permute if it is useful, or if the device order has to change.
    pub fn try_permute(&mut self) {
        let keeps_padding = !(0..self.rank()).any(|dim| self.changes_padding(dim));
        if keeps_padding && self.is_permute_useful() {
            self.permute();
        } else if self.is_on_wanted_mesh() {
            return;
        }
        self.take_wanted_mesh();
        self.emit(OpKind::CollectivePermute, None);
    }
    /// Whether a permute would move axes to their outgoing dims, or next to each other so that one
    /// all-to-all moves them, or after those that have to be gathered.
    fn is_permute_useful(&self) -> bool {
        let (mut spare_in, mut spare_out) = (None, None);
        for dim in 0..self.rank() {
            let (incoming, outgoing) = (&self.incoming[dim], &self.outgoing[dim]);
            if let (Some(first), Some(wanted)) = (incoming.first(), outgoing.first()) {
                if self.are_sizes_divisible(*first, *wanted) {
                    return true;
                }
            }
            spare_out =
                outgoing.iter().copied().rfind(|&axis| !self.is_incoming(axis)).or(spare_out);
            if self.has_axes_out_of_order(dim, &mut spare_in) {
                return true;
            }
        }
        // Axes to be gathered can be replaced by axes to be sliced.
        matches!((spare_in, spare_out), (Some(a), Some(b)) if self.are_sizes_divisible(a, b))
    }
    /// Whether the incoming axes of `dim` have to be reordered before they can move. Sets `spare`
    /// to the last one that no dim wants.
    fn has_axes_out_of_order(&self, dim: usize, spare: &mut Option<AxisRef>) -> bool {
        let mut last: Option<(usize, usize)> = None;
        let mut last_index = 0;
        let mut seen = vec![false; self.rank()];
        for &axis in &self.incoming[dim] {
            let place = self.out_place(axis);
            if let Some((wanted_in, index)) = place {
                let follows =
                    last.is_some_and(|(dim, _)| dim == wanted_in) && index == last_index + 1;
                if (wanted_in == dim || seen[wanted_in]) && !follows {
                    return true;
                }
                seen[wanted_in] = true;
                last_index = index;
            } else if last.is_some() && self.outgoing[dim].is_empty() {
                return true;
            } else {
                *spare = Some(axis);
            }
            last = place;
        }
        false
    }
    fn are_sizes_divisible(&self, a: AxisRef, b: AxisRef) -> bool {
        are_divisible(a.size(&self.mesh), b.size(&self.mesh))
    }
    /// Chooses new axes: first wanted axes in their places, then wanted axes anywhere, then the
    /// axes that were there, in front, so that they can be gathered after the others have moved.
    fn permute(&mut self) {
        let mut wanted = Vec::new();
        let mut spare = vec![Vec::new(); self.rank()];
        self.clear_incoming();
        for (dim, spare) in spare.iter_mut().enumerate() {
            let mut old = std::mem::take(&mut self.incoming[dim]);
            let shards = self.size(&old);
            self.capacity[dim] = shards;
            self.pop_current(dim, &old);
            while self.capacity[dim] > 1 && !self.outgoing[dim].is_empty() {
                let Some((fitting, rest)) = self.fit(self.outgoing[dim][0], dim) else { break };
                self.outgoing[dim].remove(0);
                self.push_current(dim, fitting);
                if let Some(rest) = rest {
                    self.outgoing[dim].insert(0, rest);
                }
            }
            wanted.extend(&self.outgoing[dim]);
            // Axes that were replaced come last, so that the others return to their old positions.
            old.retain(|&axis| self.out_place(axis).is_none());
            let mut replaced = shards / self.capacity[dim].max(1);
            while replaced > 1 && !old.is_empty() {
                let Some((fitting, rest)) = fit(old[0], &mut replaced, &self.mesh) else { break };
                old.remove(0);
                spare.push(fitting);
                if let Some(rest) = rest {
                    old.insert(0, rest);
                }
            }
            spare.splice(0..0, old);
        }
        self.distribute(&mut [wanted], false, |_, _, _| {});
        self.distribute_per_dim(&mut spare);
        self.distribute(&mut [spare.concat()], true, |_, _, _| {});
        self.index_outgoing();
        for dim in 0..self.rank() {
            for axis in self.incoming[dim].clone() {
                self.push_current(dim, axis);
            }
        }
    }
    /// Puts the former axes of each dim back at its front.
    fn distribute_per_dim(&mut self, spare: &mut [Vec<AxisRef>]) {
        self.distribute(spare, true, |_, _, _| {});
    }
}
