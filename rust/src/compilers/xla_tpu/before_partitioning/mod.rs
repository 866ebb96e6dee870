//! The passes that XLA for TPUs runs before it propagates shardings and partitions a program. If annotations conflict, the ops and
//! their order decide, so values may be sharded differently from those of compilers that propagate the program as it is.

mod algebraic_simplifier;
mod cse;
mod sparse_gradient_rewrite;

use crate::inlining::call_inliner::Originals;
use crate::ir::{Program, Unused};

/// Runs them on `program`, whose calls are inlined; `sign` gives ops their signatures. Records the originals of new ops in `originals`.
pub fn run(program: &mut Program, originals: &mut Originals, sign: impl Fn(&mut Program)) {
    sparse_gradient_rewrite::run(program, originals);
    program.erase_unused(Unused::WithoutCollectives);
    sign(program);
    cse::run(program);
    algebraic_simplifier::run(program, originals);
    program.erase_unused(Unused::WithoutCollectives);
    sign(program);
    cse::run(program);
}
