//! Memory spaces: which values are in host memory, which ops the host computes, and what is copied between host and device.
//!
//! A program states memory spaces by `mhlo.memory_kind` on arguments and results, by `annotate_device_placement`, and by
//! `_xla_compute_type = "host"` on ops that the host computes, or on calls ([`marks`]). As in XLA, a value in host memory stays
//! there through ops that only forward it, until it is placed on the device ([`flow`]):
//!
//! 1. Values that loops carry, branches return, and barriers and reshapes forward.
//! 2. The result of a `dynamic_update_slice` into it, or of it; and the initial value of that, if it reads no data (zeros, an
//!    iota).
//! 3. A slice, unless it is then placed on the device: that reads the slice from host memory, without a buffer for it there.
//!    Likewise, a value that is placed on the host only to update a buffer there is written into that.
//! 4. The result of any other op, which the host then computes: XLA moves ops to where their operands are.
//!
//! Every change of memory space is a copy ([`moves`]), explicit or implied: of device values that the host computes with, and the
//! reverse; of operands of collectives; and of results that are to be in the other space.
//!
//! Source: XLA's `ConvertMemoryPlacementToInternalAnnotations` and `HostOffloader`. Deviations:
//!
//! 1. XLA knows no memory kind of arguments of called functions; values in calls that are not inlined are on the device.
//! 2. Values that the host computes take host memory, which XLA does not count.

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

/// A memory space.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Space {
    /// That of the device.
    Device,
    /// The memory of its host, pinned or not.
    Host,
}

/// The memory space in which a value takes memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Taken {
    #[default]
    Device,
    Host,
    /// In both: it is defined in one, and copied to the other for some users.
    Both,
    /// In neither: it is a slice of a buffer on the host, read or written in place.
    Neither,
}

/// A copy of a value from one memory space to the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Move {
    /// The op that copies, or that needs the copy.
    pub op: OpId,
    /// The value.
    pub value: ValueId,
    /// Where it is moved to.
    pub to: Space,
}

/// The memory spaces of the values of a program.
#[derive(Default)]
pub struct Spaces {
    /// By value; empty if all are on the device.
    taken: Vec<Taken>,
    /// The ops that the host computes, and those of them that the program marks for the host.
    computed: Option<BitSet<OpId>>,
    asked: Option<BitSet<OpId>>,
    /// The ops that the chip does not execute.
    off_chip: Option<BitSet<OpId>>,
    /// The results of the entry function that are on the host.
    results: Vec<bool>,
    /// The copies, in program order.
    pub moves: Vec<Move>,
    /// Placements of values that are already there.
    pub idle: Vec<OpId>,
}

impl Spaces {
    /// The memory spaces of the values of `program`.
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
    /// Whether the program marks `op` for the host; otherwise the host computes it only if an operand is in its memory.
    pub fn is_asked_of_host(&self, op: OpId) -> bool {
        self.asked.as_ref().is_some_and(|ops| ops.contains(op))
    }
    /// Whether the chip does not execute `op`: the host computes it, or it only moves data to or from the host, or within host
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
