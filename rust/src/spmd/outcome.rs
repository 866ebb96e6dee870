//! How each op of the source program is computed: on shards, with collectives, or replicated; and why.

use crate::index::OpId;
use std::sync::Arc;

/// How an op is computed, in order of increasing communication.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum OutcomeKind {
    /// On shards, without communication.
    Local,
    /// On shards, with collectives.
    Collective,
    /// After some or all dims were gathered.
    Gathered,
}

impl OutcomeKind {
    /// The name in reports.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::Collective => "collective",
            Self::Gathered => "gathered",
        }
    }
}

/// How an op of the source program is computed, and why.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The op, of the source program.
    pub op: OpId,
    /// How the op is computed.
    pub kind: OutcomeKind,
    /// What is sent or gathered, and why; empty for local ops.
    pub reason: Arc<str>,
}
