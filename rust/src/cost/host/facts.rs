//! What is known of each op and of each type by themselves, whatever is made of values: worked out once, since it is asked for often.

use super::super::fusion::is_splat;
use super::super::work::Movement;
use super::super::works::Works;
use super::fused::{fuses, is_apart, is_expensive, is_for_sums, is_sum};
use super::layouts::Layouts;
use super::names::{Named, Names};
use crate::index::{Id, OpId, TypeId, ValueId};
use crate::ir::{OpKind, OpTraits, Program, Type};

/// What is known of an op, as a set of bits.
#[derive(Clone, Copy)]
pub struct Fact(u16);

impl Fact {
    /// It fuses with the ops that make its operands.
    pub const FUSES: Self = Self(1);
    /// It is a concatenation that is a kernel of its own.
    pub const APART: Self = Self(1 << 1);
    /// Its result is another name of its only operand.
    pub const NAME: Self = Self(1 << 2);
    /// It reads each element only for the element of the result at its place: it is elementwise, another name, or moves nothing.
    pub const PLACE_BY_PLACE: Self = Self(1 << 3);
    /// XLA computes it only once.
    pub const EXPENSIVE: Self = Self(1 << 4);
    /// It is a reduction that a library computes.
    pub const SUM: Self = Self(1 << 5);
    /// A reduction that a library computes takes it in, if nothing else needs its result.
    pub const FOR_SUMS: Self = Self(1 << 6);
    /// It makes its result of nothing: it is a broadcast, a count along a dim, or a constant all of whose elements are equal.
    pub const OF_NOTHING: Self = Self(1 << 7);
    /// Its movement is [`Movement::Opaque`].
    pub const OPAQUE: Self = Self(1 << 8);
    /// It is a gather.
    pub const GATHER: Self = Self(1 << 9);
    /// It is elementwise or moves data, and is not needed but for its result.
    pub const PURE: Self = Self(1 << 10);
    /// None of them.
    pub const NONE: Self = Self(0);

    /// `self` and, where `is_so`, `other`.
    pub const fn with(self, other: Self, is_so: bool) -> Self {
        if is_so {
            Self(self.0 | other.0)
        } else {
            self
        }
    }
}

/// What is known of the ops of a program.
pub struct Facts {
    ops: Vec<Fact>,
    /// For each type the number of its dims that are larger than one.
    ranks: Vec<u32>,
}

impl Facts {
    /// Of the ops of `functions`, given by their ops.
    pub fn new(
        program: &Program,
        works: &mut Works<'_>,
        layouts: &mut Layouts,
        functions: &[OpId],
    ) -> Self {
        let mut names = Names::new(program);
        let mut ops = vec![Fact::NONE; program.num_op_ids()];
        for &func in functions {
            for &op in works.ops_inside(func).iter() {
                let named = names.of(program, works, op);
                ops[op.index()] = of_op(program, works, layouts, (op, &named));
            }
        }
        let ranks = (0..program.types().len()).map(|row| rank(program, TypeId::from_index(row)));
        Self { ops, ranks: ranks.collect() }
    }
    /// Whether `fact` is so of `op`.
    #[inline]
    pub fn has(&self, op: OpId, fact: Fact) -> bool {
        self.ops[op.index()].0 & fact.0 != 0
    }
    /// Whether `op` reads at most one operand of as many dims as its result, or fewer elements than it writes.
    pub fn reads_little(&self, program: &Program, works: &mut Works<'_>, op: OpId) -> bool {
        let rank = |value: ValueId| self.ranks[program.type_of(value).index()];
        let result = program.result(op, 0);
        let least = rank(result);
        let is_large = |value: &ValueId| {
            let made_by = program.defining_op(*value);
            rank(*value) >= least && !made_by.is_some_and(|made| self.has(made, Fact::OF_NOTHING))
        };
        let operands = program.operands(op);
        if operands.clone().filter(is_large).nth(1).is_none() {
            return true;
        }
        let mut elements: u128 = 0;
        for (index, value) in operands.clone().enumerate() {
            if !operands.clone().take(index).any(|other| other == value) {
                elements = elements.saturating_add(works.tensors.of(value).elements);
            }
        }
        elements <= works.tensors.of(result).elements
    }
}

fn of_op(
    program: &Program,
    works: &mut Works<'_>,
    layouts: &mut Layouts,
    (op, named): (OpId, &Named),
) -> Fact {
    let movement = works.movement(op);
    let is_constant = program.has_traits(op, OpTraits::CONSTANT_LIKE);
    let keeps = named.spreads && layouts.keeps_places(program, works, op);
    let is_apart = named.joins && is_apart(program, works, layouts, op);
    let is_single = program.num_operands(op) == 1 && program.num_results(op) == 1;
    let is_element_by_element = matches!(movement, Movement::Pointwise | Movement::Alias);
    let is_pure = is_element_by_element || matches!(movement, Movement::Expand | Movement::Window);
    Fact::NONE
        .with(Fact::FUSES, fuses(program, works, layouts, (op, is_apart)))
        .with(Fact::APART, is_apart)
        .with(Fact::NAME, is_single && (movement == Movement::Alias || keeps))
        .with(Fact::PLACE_BY_PLACE, is_element_by_element || keeps)
        .with(Fact::EXPENSIVE, is_expensive(program, works, layouts, (op, named)))
        .with(Fact::SUM, program.kind(op) == OpKind::Reduce && is_sum(program, works, op))
        .with(Fact::FOR_SUMS, is_for_sums(program, works, (op, named)))
        .with(Fact::OF_NOTHING, named.is_of_nothing || is_constant && is_splat(program, op))
        .with(Fact::OPAQUE, movement == Movement::Opaque)
        .with(Fact::GATHER, named.is_gather)
        .with(Fact::PURE, is_pure)
}

/// The number of dims of `ty` that are larger than one; 0 where not all are known.
fn rank(program: &Program, ty: TypeId) -> u32 {
    let Type::RankedTensor { shape, .. } = &program.types()[ty] else { return 0 };
    let sizes: Option<Vec<i64>> = shape.iter().copied().collect();
    sizes.map_or(0, |sizes| sizes.iter().filter(|&&size| size > 1).count() as u32)
}
