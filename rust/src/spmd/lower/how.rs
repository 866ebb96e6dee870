//! How a program is lowered.

use super::super::one_by_one::OneByOne;
use super::super::policy::Policy;
use super::super::results::Results;

/// Options of lowering.
#[derive(Clone, Copy, Debug)]
pub(in crate::spmd) struct How {
    /// What chooses among the ways to compute an op.
    pub policy: Policy,
    /// The placement of results after the op that computes them.
    pub results: Results,
    /// The options of `sdy-convert-global-to-local`, if that is what runs; shardings are kept then.
    pub one_by_one: Option<OneByOne>,
}
