//! Why an axis is not on a dim, in the names of the given program.

use super::tensors::Tensors;
use crate::propagation::explain::{Absence, AxisName, Code, Neighbours, Place};
use crate::propagation::observe::Slot;

/// A reason.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reason {
    /// Propagation did not bring the axis there.
    Propagation(Code),
    /// Export removed it, since the dim is not divisible.
    Trimmed,
    /// Export removed it, since it is a sub-axis or follows one.
    SubAxis,
}

impl Reason {
    /// The name in records.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Propagation(code) => code.as_str(),
            Self::Trimmed => "trimmed",
            Self::SubAxis => "sub-axis",
        }
    }
}

/// Why an axis is not on a dim.
#[derive(Clone, Debug)]
pub struct Missing {
    /// The reason.
    pub reason: Reason,
    /// The tensor at which the axis stopped, and its dim.
    pub at: (String, usize),
    /// The op that does not pass it on, and its line.
    pub op: Option<(String, Option<String>)>,
    /// The winner of the conflict, if there is one: a tensor, its dim, and the axes on that.
    pub instead: Option<(String, usize, Vec<AxisName>)>,
}

impl Tensors {
    /// Why `axis` is not on the dim at `place`.
    pub(super) fn missing(&self, around: &Neighbours, place: Place, axis: &AxisName) -> Missing {
        if self.explanation.has(&self.done, place, axis) {
            let at = (self.slot_name(place.slot), place.dim);
            let is_part = self.explanation.has_after_part(&self.done, place, axis);
            let reason = if is_part { Reason::SubAxis } else { Reason::Trimmed };
            return Missing { reason, at, op: None, instead: None };
        }
        // What a result of the main function does not have, the value that is returned does not have either.
        let place = match place.slot {
            Slot::FuncResult(_, index) => {
                self.returned(index).map_or(place, |slot| Place { slot, ..place })
            }
            Slot::Value(_) => place,
        };
        let found = self.explanation.absence(&self.done, around, place, axis);
        let Absence { code, at, op, instead } = found;
        Missing {
            reason: Reason::Propagation(code),
            at: (self.slot_name(at.slot), at.dim),
            op: op.map(|op| (self.op_name(op).0, self.line(op))),
            instead: instead.map(|(place, axes)| (self.slot_name(place.slot), place.dim, axes)),
        }
    }
    /// The value that is returned as a result of the entry function.
    fn returned(&self, index: usize) -> Option<Slot> {
        let func = self.done.entry_function()?;
        let last = self.done.last_op(self.done.func_body(func).get()?).get()?;
        self.explanation.slot_of(self.done.operands(last).nth(index)?)
    }
}
