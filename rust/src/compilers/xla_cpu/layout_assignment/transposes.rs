//! Transposes that move no elements.
//!
//! Source: XLA's `AlgebraicSimplifier`, `ReshapeDecomposer`.

use super::dim_orders::{is_moved, Reader};
use super::operand_copies::Layouts;
use crate::index::OpId;
use crate::ir::Program;
use crate::work::cached::Works;

impl Layouts {
    /// Whether `op` is a transpose that keeps the order of elements, or, where arrays are stored in tiles, the dims of tiles, for which
    /// the order of the others is chosen; or a broadcast that only adds dims of size one.
    pub fn keeps_places(&mut self, program: &Program, works: &mut Works<'_>, op: OpId) -> bool {
        if !matches!(program.op_name(op), "stablehlo.transpose" | "stablehlo.broadcast_in_dim") {
            return false;
        }
        let (operand, result) = (program.operand(op, 0), program.result(op, 0));
        let has_tiles = self.compiler().has_tiles();
        match self.reader(program, op) {
            Some(Reader::Transpose(turned)) => {
                let keeps_tiles = has_tiles && keeps_minor(turned);
                let sizes = works.tensors.of(operand).dims.as_deref();
                sizes.is_some_and(|sizes| keeps_tiles || !is_moved(turned, sizes))
            }
            Some(Reader::Broadcast(places)) => {
                let elements = works.tensors.of(operand).elements;
                let sizes = works.tensors.of(result).dims.as_deref();
                sizes.is_some_and(|sizes| !is_moved(places, sizes))
                    && works.tensors.of(result).elements == elements
            }
            _ => false,
        }
    }
    /// Whether `op` is a transpose, on GPUs, that swaps the free dims of the two operands of a dot: it equals the dot with its
    /// operands swapped. The partitioner comes after that, so collectives that reduce the result are swapped, too.
    pub fn swaps_product(&mut self, program: &Program, op: OpId) -> bool {
        if !self.compiler().fuses_by_priority() || program.op_name(op) != "stablehlo.transpose" {
            return false;
        }
        let made_by = |op: OpId| {
            let value = program.operand(op, 0);
            program.defining_op(value).filter(|_| program.has_one_use(value))
        };
        let Some(mut product) = made_by(op) else { return false };
        while matches!(
            program.op_name(product),
            "stablehlo.all_reduce" | "stablehlo.reduce_scatter"
        ) {
            let Some(operand) = made_by(product) else { return false };
            product = operand;
        }
        let first = program.operands(product).next();
        let rank = first.and_then(|value| program.value_type(value).rank());
        let (batch, left) = match (self.reader(program, product), rank) {
            (Some(Reader::Dot(dims)), Some(rank)) => {
                let batch = dims.lhs_batching.len();
                (batch, rank.saturating_sub(batch + dims.lhs_contracting.len()))
            }
            _ => return false,
        };
        let Some(turned) = self.permuted(program, op) else { return false };
        let (first, last) = turned.split_at(batch.min(turned.len()));
        let right = last.len().saturating_sub(left);
        let swapped = (batch + left..batch + left + right).chain(batch..batch + left);
        first.iter().all(|&dim| dim < batch) && last.iter().copied().eq(swapped)
    }
}

/// Whether a transpose to these dims keeps the two minor ones.
fn keeps_minor(turned: &[usize]) -> bool {
    let rank = turned.len();
    rank > 2 && turned[rank - 2..] == [rank - 2, rank - 1]
}
