//! Reductions over sharded dims: each device reduces what it has, from the identity on; then devices reduce
//! their terms, and the initial value comes in once.

use super::super::reducer::Reducer;
use super::super::ways::{Ability, Way};
use super::joined;
use super::work::ByRule;
use super::{Held, Lowering};
use crate::index::{FactorId, ValueId};
use crate::ir::{ConstantValue, OpKind, Program};

/// What an op can do along a factor that it reduces.
pub(super) fn ability_along_reduction(
    program: &Program,
    work: &ByRule,
    factor: FactorId,
) -> Ability {
    match program.kind(work.op) {
        // As the user says, if it makes sense: what is summed away is in no result.
        OpKind::CustomCall if work.rule.results.iter().all(|tensor| !tensor.contains(factor)) => {
            Ability::Terms
        }
        OpKind::DotGeneral | OpKind::Dot | OpKind::Gather => Ability::Terms,
        OpKind::Reduce if reducer(program, work).is_some() => Ability::Terms,
        OpKind::Reduce if joined::selects(program, work.op) => Ability::Joined,
        // Those of a convolution among them: what is inside windows moves, and groups change their number.
        _ => Ability::Whole,
    }
}

/// The reducer of a reduce of one tensor, and how its identity is written.
pub(super) fn reducer(program: &Program, work: &ByRule) -> Option<(Reducer, String)> {
    if work.operands.len() != 2 {
        return None;
    }
    let reducer = Reducer::of_region(program, work.op)?;
    let crate::ir::Type::RankedTensor { element, .. } = &program.types()[work.operands[0].global]
    else {
        return None;
    };
    Some((reducer, reducer.identity(program.str(element.text))?))
}

impl Lowering<'_, '_, '_> {
    /// Reduces what devices have.
    pub(super) fn reduce_locally(&mut self, work: &ByRule, way: &Way, mut operands: Vec<Held>) {
        let digits = Self::joined_digits(work, way);
        if !digits.is_empty() {
            return self.reduce_and_join(work, way, &digits, operands);
        }
        let has_terms = !self.placements[way.results[0]].partial.is_empty();
        let known = reducer(self.emit.program, work).filter(|_| has_terms);
        let Some((reducer, identity)) = known else {
            return self.in_place(work, way, &operands);
        };
        let (input, init) = (operands[0], operands[1]);
        let is_neutral = self.is_constant(init.value, &identity);
        let neutral =
            if is_neutral { init.value } else { self.emit.scalar(&identity, input.global) };
        let dims = Self::dims_of_terms(work, way, 0);
        operands[0] = self.filled(input, &dims, neutral);
        operands[1].value = neutral;
        let values: Vec<ValueId> = operands.iter().map(|held| held.value).collect();
        let op = work.op;
        self.set_operands(op, &values);
        let result = self.emit.program.result(op, 0);
        let held = Held { reducer, ..self.keep(result, way.results[0]) };
        self.emit.go_after(op);
        let mut new = self.reshard(held, work.results[0].1);
        if !is_neutral && self.placements[new.placement].partial.is_empty() {
            let ty = self.emit.type_of(new.value);
            let init = self.emit.broadcast(init.value, &[], ty);
            new.value = self.emit.elementwise(reducer.op_name(), &[new.value, init]);
        }
        self.set_held(result, new);
    }
    /// Whether `value` is a constant all elements of which are what `element` says.
    pub(super) fn is_constant(&self, value: ValueId, element: &str) -> bool {
        let program = &*self.emit.program;
        let Some(mut op) = program.defining_op(value) else { return false };
        while program.kind(op) == OpKind::BroadcastInDim {
            let Some(before) = program.defining_op(program.operand(op, 0)) else { return false };
            op = before;
        }
        if program.kind(op) != OpKind::Constant {
            return false;
        }
        let text = format!("dense<{element}>");
        let wanted = ConstantValue::parse(&text);
        program.constant_value(op) == wanted
    }
}
