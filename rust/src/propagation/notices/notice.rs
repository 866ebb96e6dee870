//! A notification of one op.

/// How the engine is notified of an op that depends on a sharding that has changed.
///
/// *Marked* ops are those whose next visit may do something; *queued* ones are taken next, in the order
/// of the reference's worklist. An op that is marked but not queued is visited when the queue comes to it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Action {
    /// It is marked, and queued unless it is the op whose visit made the change.
    MarkAndQueue,
    /// It is marked only.
    Mark,
    /// It is queued only, if the last `MarkAndQueue` before it queued its op, which is inside this one.
    QueueWithPrevious,
    /// It is queued only: it encloses an op that is not visited.
    Queue,
}

/// One op that depends on a sharding that has changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Notice {
    /// The position of the op in the order of visits.
    pub position: u32,
    /// How the engine is notified of it.
    pub action: Action,
}
