//! A notification of one op.

/// What happens to an op that depends on a sharding that has changed.
///
/// The next visit of a *marked* op may change something; *queued* ops are visited next, in the
/// order of the reference's worklist. An op that is marked but not queued is visited at its place
/// in the queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Action {
    /// Mark it, and queue it unless it is the op whose visit made the change.
    MarkAndQueue,
    /// Only mark it.
    Mark,
    /// Only queue it, if the last `MarkAndQueue` before it queued its op, which is inside this one.
    QueueWithPrevious,
    /// Only queue it: it encloses an op that is not visited.
    Queue,
}

/// One op that depends on a sharding that has changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Notice {
    /// The position of the op in the order of visits.
    pub position: u32,
    /// What happens to it.
    pub action: Action,
}
