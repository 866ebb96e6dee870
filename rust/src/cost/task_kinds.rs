//! The kinds of the tasks of a schedule ([`super::timeline`]): what overlaps with what.

use super::dataflow::{Dataflow, Task};
use super::times::Times;

/// The kind of a task, which determines what it overlaps with.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// It takes no time.
    Free,
    Op,
    /// It can be computed chunk by chunk along with a collective.
    Product,
    /// It runs its bodies, and nothing else runs at the same time.
    Alone,
    Collective,
    /// A collective that is split in chunks.
    Split,
    /// A copy to or from the host in a loop, for which nothing waits.
    InBackground,
}

impl Kind {
    /// Whether its users need not wait for it.
    pub const fn is_free(self) -> bool {
        matches!(self, Self::Free | Self::InBackground)
    }
    /// The kind of `task`, which sends the transfer `sent`.
    #[inline]
    fn of(flow: &Dataflow, task: &Task, times: &Times<'_>, sent: Option<u32>) -> Self {
        match (sent, task.row) {
            (Some(row), _) if times.transfers[row as usize].chunks > 1.0 => Self::Split,
            (Some(_), _) => Self::Collective,
            _ if !flow.bodies(task).is_empty() => Self::Alone,
            (None, Some(row)) if times.computations[row as usize].is_product => Self::Product,
            (None, Some(_)) => Self::Op,
            (None, None) => Self::Free,
        }
    }
}

/// The kinds of the tasks of `flow`, and the transfer of each; `u32::MAX` if it sends nothing, or nothing waits for it.
pub(super) fn kinds(flow: &Dataflow, times: &Times<'_>) -> (Vec<Kind>, Vec<u32>) {
    let count = flow.tasks.len();
    let (mut kinds, mut all_sent) = (Vec::with_capacity(count), Vec::with_capacity(count));
    for task in &flow.tasks {
        let sent = times.sent(flow, task);
        kinds.push(Kind::of(flow, task, times, sent));
        all_sent.push(sent.unwrap_or(u32::MAX));
    }
    if !times.pipelines_copies {
        return (kinds, all_sent);
    }
    let bodies = flow.tasks.iter().flat_map(|task| flow.bodies(task));
    for &(block, _) in bodies.filter(|&&(_, runs)| runs > 1.0) {
        let (start, end) = flow.blocks[block as usize].tasks;
        let own = start as usize..end as usize;
        for at in own {
            if kinds[at] == Kind::Collective && flow.tasks[at].collective.is_none() {
                (kinds[at], all_sent[at]) = (Kind::InBackground, u32::MAX);
            }
        }
    }
    (kinds, all_sent)
}
