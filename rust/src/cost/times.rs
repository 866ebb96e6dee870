//! The times of ops and collectives from which [`super::timeline`] makes a schedule.

use super::dataflow::{Dataflow, Task};

/// How long one run of some ops takes.
#[derive(Clone, Copy, Debug)]
pub struct Computation {
    /// Seconds.
    pub seconds: f64,
    /// Whether it can be computed chunk by chunk along with a collective.
    pub is_product: bool,
}

/// How long one run of some collectives takes.
#[derive(Clone, Copy, Debug)]
pub struct Transfer {
    /// Seconds.
    pub seconds: f64,
    /// The stream of its links; 0, the compute stream, if it does not overlap with ops.
    pub stream: usize,
    /// The number of chunks that it is split in; 1 if it is not.
    pub chunks: f64,
    /// The seconds that ops which run meanwhile lose to it.
    pub slows: f64,
    /// Whether kernels of products take its steps: it stands still beside other ops.
    pub in_products: bool,
}

/// The inputs of a schedule, by row of `ProgramCost::ops` and `ProgramCost::collectives`.
pub struct Times<'a> {
    /// Of the rows of ops.
    pub computations: &'a [Computation],
    /// Of the rows of collectives, then of the groups of copies to and from the host.
    pub transfers: &'a [Transfer],
    /// The number of collectives among `transfers`.
    pub num_collectives: u32,
    /// The number of streams, that of computation included.
    pub num_streams: usize,
    /// Whether loops copy to and from the host in the background.
    pub pipelines_copies: bool,
    /// The share of the time of a collective by which concurrent ops are slowed, as both use the memory: what they make up while idle.
    pub contention: f64,
}

impl Times<'_> {
    /// The transfer of `task`, as an index; `None` if it sends nothing, or also computes.
    #[inline]
    pub(super) fn sent(&self, flow: &Dataflow, task: &Task) -> Option<u32> {
        let copies = task.copies.filter(|_| task.row.is_none() && flow.bodies(task).is_empty());
        task.collective.or_else(|| Some(self.num_collectives + copies?))
    }
}
