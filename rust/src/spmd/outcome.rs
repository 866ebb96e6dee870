//! What became of the ops of the source program.

use crate::index::OpId;
use std::sync::Arc;

/// How an op is computed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OutcomeKind {
    /// On the shards as they are.
    Local,
    /// On shards, with collectives.
    Collective,
    /// Some dim, or everything, was gathered first.
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

/// What became of an op.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The op, of the source program.
    pub op: OpId,
    /// How it is computed.
    pub kind: OutcomeKind,
    /// What is sent or gathered, and why; empty for local ops.
    pub reason: Arc<str>,
}
