//! Propagation step by step, in the names of the given program.

use super::tensors::Tensors;
use crate::index::ShardingId;
use crate::propagation::explain::RunVisits;
use crate::propagation::observe::{Cause, Change};
use crate::propagation::VisitStrategy;

/// A greedy run: one op-priority step of a user priority.
#[derive(Clone, Debug)]
pub struct Frame {
    /// The user priority up to which dims take part.
    pub priority: i64,
    /// The op-priority step, from 0.
    pub step: usize,
    /// The strategy of its visits, `"basic"` or `"aggressive"`.
    pub strategy: &'static str,
    /// The shardings that the visit changed, in order.
    pub visits: Vec<Visit>,
}

/// The changes of one visit.
#[derive(Clone, Debug)]
pub struct Visit {
    /// The op and its line; `None` where dims of a user priority are closed or opened again.
    pub op: Option<(String, Option<String>)>,
    /// Each tensor with its sharding before and after.
    pub changes: Vec<(String, ShardingId, ShardingId)>,
}

impl Tensors {
    /// All greedy runs, in order, with what each visit changed. Shardings are those of [`Tensors::sharding_text`].
    pub(super) fn frames(&self) -> Vec<Frame> {
        let frame = |run: RunVisits<'_>| Frame {
            priority: run.priority,
            step: run.run.step,
            strategy: match run.run.strategy {
                VisitStrategy::Basic => "basic",
                VisitStrategy::Aggressive => "aggressive",
            },
            visits: run.visits.iter().filter_map(|changes| self.visit(changes)).collect(),
        };
        self.explanation.runs().into_iter().map(frame).collect()
    }
    /// The text of a sharding of the propagated program; `None` for no sharding.
    pub(super) fn sharding_text(&self, sharding: ShardingId) -> Option<String> {
        let sharding = self.done.shardings().get(sharding)?;
        Some(crate::attribute::print_sharding(sharding, &self.done))
    }
    /// The visit that made `changes`.
    fn visit(&self, changes: &[Change]) -> Option<Visit> {
        let op = match changes.first()?.cause {
            Cause::Visit(op) => Some((self.op_name(op).0, self.line(op))),
            Cause::FuncResult(_) => Some(("func.return".to_owned(), None)),
            Cause::UserPriority => None,
        };
        let change = |change: &Change| (self.slot_name(change.slot), change.old, change.new);
        Some(Visit { op, changes: changes.iter().map(change).collect() })
    }
}
