//! A kernel of a program, as a row: its ops, and the bytes that it reads and writes.

use crate::index::OpId;

/// A kernel, with its traffic and the number of its runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelRow {
    /// The op whose result it writes; for a copy the op that reads the copy.
    pub op: OpId,
    /// The producers that are fused into it.
    pub fused: Vec<OpId>,
    /// Whether it copies an operand of `op`, and does not compute `op`.
    pub is_copy: bool,
    /// Bytes that each run reads.
    pub read: u128,
    /// Those of them that are in the cache, since they were read or written shortly before.
    pub cached: u128,
    /// Bytes that each run writes.
    pub written: u128,
    /// The elements of the smallest array that it reads, except scalars.
    pub smallest: u128,
    /// The bytes that XLA's analysis counts for each run, if they are asked for.
    pub accessed: u128,
    /// The number of runs; 0 if it is compiled, and the host does without it.
    pub runs: u128,
}
