//! Which values are in the memory of the host instead of the device, what the host computes, and what is moved between the two.
//!
//! A program says where its values are with `mhlo.memory_kind` on arguments and results, with `annotate_device_placement`, and
//! with `_xla_compute_type = "host"` on what the host computes, or on calls of it ([`marks`]). As in XLA, from there on a value is
//! on the host through whatever only passes it on, until it is placed on the device ([`flow`]):
//!
//! 1. What loops carry, branches return, barriers and reshapes pass on.
//! 2. The result of a `dynamic_update_slice` into it, or of it; and what that began with, if it is made of nothing.
//! 3. A slice, unless it is then placed on the device: that reads the slice out of the host's memory, and needs no other there.
//!    Likewise, what is placed on the host to be put into something there is written to its place.
//! 4. The result of any other op, which the host computes as well: XLA moves ops to where their operands are.
//!
//! Every change of the memory is a move ([`moves`]), of a placement or implied: what the host computes from the device's values,
//! and the device from what the host was asked to compute, operands of collectives, and results that are to be elsewhere than
//! they are.
//!
//! Source: XLA's `ConvertMemoryPlacementToInternalAnnotations` and `HostOffloader`. Deviations:
//!
//! 1. XLA knows no memory kind of arguments of functions that are called; values in calls that are not inlined are on the device.
//! 2. The host's memory has what the host computes, which XLA does not count.

mod flow;
mod marks;
mod moves;

#[cfg(test)]
mod tests;

use crate::bitset::BitSet;
use crate::index::{Id, OpId, ValueId};
use crate::ir::Program;
use flow::Flow;
use marks::Marks;

/// A memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Space {
    /// That of the device.
    Device,
    /// That of its host, pinned or not.
    Host,
}

/// The memory that a value takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Taken {
    #[default]
    Device,
    Host,
    /// It is made in one of the two, and copied to the other for some of its uses.
    Both,
    /// It is a part of what is on the host, read or written there.
    Neither,
}

/// A value that is moved from one memory to the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Move {
    /// The op that moves it, or for which it is moved.
    pub op: OpId,
    /// The value.
    pub value: ValueId,
    /// Where it is moved to.
    pub to: Space,
}

/// Where the values of a program are.
#[derive(Default)]
pub struct Spaces {
    /// By value; empty if all are on the device.
    taken: Vec<Taken>,
    /// The ops that the host computes, and those of them that the program asks it to.
    computed: Option<BitSet<OpId>>,
    asked: Option<BitSet<OpId>>,
    /// The ops for which the chip does nothing.
    off_chip: Option<BitSet<OpId>>,
    /// The results of the entry function that are on the host.
    results: Vec<bool>,
    /// What is moved, in the order of the program.
    pub moves: Vec<Move>,
    /// Placements of what is there already.
    pub idle: Vec<OpId>,
}

impl Spaces {
    /// Where the values of `program` are.
    pub fn new(program: &Program) -> Self {
        let Some(marks) = Marks::of(program) else { return Self::default() };
        let mut flow = Flow::new(program, &marks);
        flow.run();
        let found = flow.moves();
        let mut taken = vec![Taken::Device; program.num_value_ids()];
        for value in flow.host.iter() {
            taken[value.index()] = Taken::Host;
        }
        for &value in &found.copied {
            taken[value.index()] = Taken::Both;
        }
        for value in flow.within.iter() {
            taken[value.index()] = Taken::Neither;
        }
        let (off_chip, computed) = (Some(flow.off_chip()), Some(flow.computed));
        Self {
            taken,
            computed,
            asked: Some(marks.computed),
            off_chip,
            results: marks.results,
            moves: found.moves,
            idle: found.idle,
        }
    }
    /// Whether `value` takes memory in `space`.
    #[inline]
    pub fn takes(&self, space: Space, value: ValueId) -> bool {
        match self.taken.get(value.index()).copied().unwrap_or_default() {
            Taken::Device => space == Space::Device,
            Taken::Host => space == Space::Host,
            Taken::Both => true,
            Taken::Neither => false,
        }
    }
    /// Whether the host computes `op`.
    #[inline]
    pub fn is_computed_by_host(&self, op: OpId) -> bool {
        self.computed.as_ref().is_some_and(|ops| ops.contains(op))
    }
    /// Whether the program asks the host to compute `op`; else it does if an operand is in its memory.
    pub fn is_asked_of_host(&self, op: OpId) -> bool {
        self.asked.as_ref().is_some_and(|ops| ops.contains(op))
    }
    /// Whether the chip does nothing for `op`: the host computes it, or it only moves data to or from the host, or within its
    /// memory.
    #[inline]
    pub fn is_off_chip(&self, op: OpId) -> bool {
        self.off_chip.as_ref().is_some_and(|ops| ops.contains(op))
    }
    /// Where result `index` of the entry function, which returns `value`, is.
    pub fn of_result(&self, index: usize, value: ValueId) -> Space {
        let is_host = self.results.get(index).copied().unwrap_or_default()
            || !self.takes(Space::Device, value);
        if is_host {
            Space::Host
        } else {
            Space::Device
        }
    }
    /// Where `value`, an argument of the entry function, is.
    pub fn of_argument(&self, value: ValueId) -> Space {
        match self.taken.get(value.index()).copied().unwrap_or_default() {
            Taken::Device => Space::Device,
            _ => Space::Host,
        }
    }
}
