//! Which of two axes propagated first: by user priority, then by op-priority step.

use super::reason::{Code, Place};
use super::steps::{AxisName, Explanation};
use crate::index::{FactorId, Id};
use crate::ir::{Direction, Program};
use crate::propagation::visit::direction::NUM_STEPS;
use crate::propagation::visit::VisitSpec;

/// Two dims of tensors of an op that have a factor in common.
pub(super) struct Link {
    /// The position of the op in the plan.
    pub position: u32,
    /// The index, among the op's tensors, of the tensor nearer to the dim in question.
    pub near: usize,
    /// The factor.
    pub factor: FactorId,
    /// The dim of the other tensor.
    pub place: Place,
}

impl Link {
    /// The first op-priority step in which the op propagates to the near tensor; `None` if it never does.
    pub(super) fn first_step(&self, program: &Program, spec: VisitSpec) -> Option<usize> {
        let rules = program.rules();
        let directions = spec.directions(rules);
        let is_result = self.near >= rules[spec.rule].operands.len();
        let needed = if is_result { Direction::Forward } else { Direction::Backward };
        (0..NUM_STEPS).find(|&step| {
            let direction = directions.of(step)[self.factor.index()];
            direction == Direction::Both || direction == needed
        })
    }
}

impl Explanation {
    /// The code of a priority, if that is why the axes at `won` came before `axis` could propagate
    /// along `link`.
    pub(super) fn earlier(
        &self,
        program: &Program,
        won: Place,
        (spec, link): (VisitSpec, &Link),
        axis: &AxisName,
    ) -> Option<Code> {
        let first = self.axes(program, won).into_iter().next()?;
        let winner = self.turn(program, won, &first);
        let (priority, step) = self.turn(program, link.place, axis);
        let own = (priority, step.max(link.first_step(program, spec)?));
        if own.0 > winner.0 {
            return Some(Code::Priority);
        }
        (own.0 == winner.0 && own.1 > winner.1).then_some(Code::OpPriority)
    }

    /// The user priority and the op-priority step at which `axis` came to the dim at `place`.
    fn turn(&self, program: &Program, place: Place, axis: &AxisName) -> (i64, usize) {
        let end = self.trace.num_changes();
        if let Some(index) = self.arrival(program, place.slot, axis, end) {
            return self.trace.run(index).map_or((0, 0), |run| (run.priority, run.run.step));
        }
        let initial = program.shardings().get(self.initial(program, place.slot));
        let dim = initial.and_then(|sharding| sharding.dims.get(place.dim));
        (dim.and_then(|dim| dim.priority).unwrap_or(0), 0)
    }
}
