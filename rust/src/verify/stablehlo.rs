//! Checks ops of `StableHLO` and CHLO against their definitions.

use super::Verifier;
use crate::error::Code;
use crate::index::OpId;
use crate::ir::{OpKind, Program};
use crate::mlir::{GroupsByAxes, REPLICA_GROUPS};
use rustc_hash::FxHashSet;

/// The error for an invalid attribute of an op.
const WRONG_KIND: &str = "failed to satisfy constraint: ";

impl Verifier<'_> {
    /// Checks `op` against its definition, or that an op without one is allowed.
    pub(super) fn definition(&mut self, op: OpId) {
        let Some(checker) = &mut self.checker else { return };
        match checker.check(op) {
            Ok(true) => {}
            Ok(false) => self.without_definition(op),
            Err(said) => {
                let name = self.program.op_name(op);
                for message in said {
                    let is_parsed = message.contains(WRONG_KIND) && self.is_in_custom_syntax(op);
                    let parser =
                        if is_parsed { format!("custom op '{name}' ") } else { String::new() };
                    self.bare(op, parser + &message);
                }
            }
        }
    }
    /// Whether `op` is in custom syntax in the text: then MLIR's parser has checked attributes of
    /// the syntax.
    pub(super) fn is_in_custom_syntax(&self, op: OpId) -> bool {
        let source = self.program.text().source().as_bytes();
        self.program.name_span(op).is_some_and(|name| match name.start as usize {
            0 => true,
            start => source.get(start - 1) != Some(&b'"'),
        })
    }
    /// Checks that the meshes in replica groups of collectives exist, once for each signature.
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
