//! Ops of `StableHLO` and CHLO against their definitions.

use super::Verifier;
use crate::error::Code;
use crate::index::OpId;
use crate::ir::{OpKind, Program};
use crate::mlir::{GroupsByAxes, REPLICA_GROUPS};
use rustc_hash::FxHashSet;

impl Verifier<'_> {
    /// Checks `op` against its definition, or that an op without one is allowed.
    pub(super) fn definition(&mut self, op: OpId) {
        let Some(checker) = &mut self.checker else { return };
        match checker.check(op) {
            Ok(true) => {}
            Ok(false) => self.without_definition(op),
            Err(said) => said.into_iter().for_each(|message| self.bare(op, message)),
        }
    }
    /// Checks that the meshes that groups of collectives are of are there, once for each signature.
    pub(super) fn meshes_of_groups(&mut self) {
        let program = self.program;
        if program.strings().find(REPLICA_GROUPS).is_none() {
            return;
        }
        let mut known: Option<(OpId, FxHashSet<&str>)> = None;
        for id in program.signatures().ids() {
            let op = program.signatures()[id].example;
            let Some(symbol) = GroupsByAxes::of(program, op).and_then(|it| it.symbol()) else {
                continue;
            };
            let mut parents =
                std::iter::successors(program.parent_op(op), |&op| program.parent_op(op));
            let module = parents.find(|&op| program.kind(op) == OpKind::Module);
            let Some(module) = module else { continue };
            let symbols = match known.take().filter(|known| known.0 == module) {
                Some(known) => known.1,
                None => symbols_in(program, module),
            };
            if !symbols.contains(symbol) {
                let message = format!("replica_groups: mesh symbol '{symbol}' not found");
                let problem = self.problem(op, Code::InvalidOp, &message);
                self.report(op, problem);
            }
            known = Some((module, symbols));
        }
    }
}

/// The symbols of `module`.
fn symbols_in(program: &Program, module: OpId) -> FxHashSet<&str> {
    let blocks = program.op_regions(module).flat_map(|region| program.region_blocks(region));
    let ops = blocks.flat_map(|block| program.block_ops(block));
    ops.filter_map(|op| program.symbol_of(op)).collect()
}
