//! Values that are equal, since equal ops made them from equal operands: XLA computes them once.
//!
//! Source: XLA's `HloCSE`.

use super::super::work::Movement;
use super::super::works::Works;
use crate::index::{Id, OpId, ValueId};
use crate::ir::{OpKind, Program};
use rustc_hash::FxHashMap;

/// For each value the first one in its block that is equal to it.
pub struct Equal(Vec<ValueId>);

impl Equal {
    /// Of the values of `functions`, given by their ops.
    pub fn new(program: &Program, works: &mut Works<'_>, functions: &[OpId]) -> Self {
        let mut this = Self(program.value_ids().collect());
        // By block, name, signature, type of the result, and operands: the first ones, then the others.
        let mut known: FxHashMap<([u32; 8], Box<[u32]>), ValueId> = FxHashMap::default();
        known.reserve(program.num_value_ids());
        for &func in functions {
            for &op in works.ops_inside(func).iter() {
                let is_pure = matches!(
                    works.movement(op),
                    Movement::Pointwise | Movement::Window | Movement::Expand | Movement::Alias
                ) || program.kind(op) == OpKind::DotGeneral;
                let Some(signature) = program.signature(op).get().filter(|_| is_pure) else {
                    continue;
                };
                if program.num_results(op) != 1
                    || program.num_operands(op) == 0
                    || program.num_regions(op) > 0
                {
                    continue;
                }
                let result = program.result(op, 0);
                let mut first = [u32::MAX; 8];
                first[0] = program.parent_block(op).index() as u32;
                first[1] = program.op_name_id(op).index() as u32;
                first[2] = signature.index() as u32;
                first[3] = program.type_of(result).index() as u32;
                let mut operands =
                    program.operands(op).map(|value| this.first(value).index() as u32);
                for (place, operand) in first[4..].iter_mut().zip(&mut operands) {
                    *place = operand;
                }
                // An empty box takes no memory.
                let others: Box<[u32]> = operands.collect();
                this.0[result.index()] = *known.entry((first, others)).or_insert(result);
            }
        }
        this
    }
    /// The first value that is equal to `value`.
    pub fn first(&self, value: ValueId) -> ValueId {
        self.0[value.index()]
    }
    /// Whether `op` makes what an op before it has made.
    pub fn is_repeated(&self, program: &Program, op: OpId) -> bool {
        program.op_results(op).next().is_some_and(|result| self.first(result) != result)
    }
}
