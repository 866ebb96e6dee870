//! Propagation of `bf16`: what only products of default precision read is stored as `bf16`.
//!
//! Products on TPUs round operands of `f32` to `bf16`, unless a higher precision is asked for. A value that nothing else reads,
//! though moved, gathered or sent before, is rounded where it is made; so are values whose readers all convert them to `bf16`.
//! Arguments, and what is computed across devices, stay as they are; what a loop carries is rounded as a whole or not.
//!
//! Source: XLA's `BFloat16Propagation`.

use super::product_fusion::is_product;
use crate::bitset::BitSet;
use crate::compilers::xla_cpu::by_signature::BySignature;
use crate::compilers::xla_cpu::passes::common_subexpressions::Equal;
use crate::compilers::xla_cpu::passes::dot_strength_reduction::has_default_precision;
use crate::index::{Id, IdVec, OpId, StrId, ValueId};
use crate::ir::{OpKind, OpTraits, Program, ValueDef};
use crate::work::cached::Works;
use crate::work::tensors::Tensors;
use std::rc::Rc;

/// The most times that values carried by loops are looked at.
const MAX_ROUNDS: usize = 8;

/// By value whether it is stored as `bf16`, in `functions`, given by their ops. Of `equal` values the first is asked for.
pub fn narrowed(
    program: &Program,
    works: &mut Works<'_>,
    equal: &Equal,
    functions: &[OpId],
) -> Vec<bool> {
    let inside: Vec<Rc<[OpId]>> = functions.iter().map(|&func| works.ops_inside(func)).collect();
    let ops = || inside.iter().flat_map(|ops| ops.iter().copied());
    let tensors = &mut works.tensors;
    let mut products = BySignature::new(program);
    let mut does_round = BitSet::new(program.num_op_ids());
    for op in ops().filter(|&op| rounds(program, tensors, &mut products, op)) {
        does_round.insert(op);
    }
    let moving = Moving::of(program);
    let values = vec![false; program.num_value_ids()];
    let mut exact = Exact { equal, moving: &moving, values, is_new: false };
    // Without loops, all that reads a value comes after it.
    let rounds = if has_loops(program) { MAX_ROUNDS } else { 1 };
    for _ in 0..rounds {
        exact.is_new = false;
        for op in ops().rev().filter(|&op| !does_round.contains(op)) {
            exact.note_operands(program, op);
        }
        if !exact.is_new {
            break;
        }
    }
    let mut narrowed = vec![false; program.num_value_ids()];
    if exact.is_new && rounds > 1 {
        return narrowed;
    }
    let mut narrow = |value: ValueId| {
        narrowed[value.index()] = !exact.has(value) && tensors.element(value) == "f32";
    };
    for op in ops() {
        if program.kind(op) == OpKind::While {
            let arguments = (0..2).flat_map(|region| arguments(program, op, region));
            program.op_results(op).chain(arguments).for_each(&mut narrow);
        } else if is_made_rounded(program, &moving, op) {
            program.op_results(op).for_each(&mut narrow);
        }
    }
    narrowed
}

/// The arguments of a region of `op`, a loop.
fn arguments(program: &Program, op: OpId, region: usize) -> impl Iterator<Item = ValueId> + '_ {
    let entry = program.op_regions(op).nth(region).and_then(|it| program.region_entry(it).get());
    entry.into_iter().flat_map(|block| program.block_args(block))
}

/// The values that something reads in full precision.
struct Exact<'e> {
    equal: &'e Equal,
    moving: &'e Moving,
    values: Vec<bool>,
    /// Whether there are more than in the round before.
    is_new: bool,
}

impl Exact<'_> {
    fn has(&self, value: ValueId) -> bool {
        self.values[self.equal.first(value).index()]
    }
    fn add(&mut self, value: ValueId) {
        let first = self.equal.first(value).index();
        self.is_new |= !std::mem::replace(&mut self.values[first], true);
    }
    /// Adds the operands of `op`, which does not round them, that it needs in full precision.
    fn note_operands(&mut self, program: &Program, op: OpId) {
        if program.kind(op) == OpKind::While {
            self.note_carried(program, op);
        } else if program.has_traits(op, OpTraits::TERMINATOR) && ends_loop(program, op) {
            // What a loop carries has one type.
        } else if !self.moving.has(program, op)
            || program.op_results(op).any(|result| self.has(result))
        {
            program.operands(op).for_each(|value| self.add(value));
        }
    }
    /// Adds all names of what `op`, a loop, carries in full precision.
    fn note_carried(&mut self, program: &Program, op: OpId) {
        let [condition, body] = [0, 1].map(|it| arguments(program, op, it).collect::<Vec<_>>());
        let block = body.first().map(|&value| match program.def(value) {
            ValueDef::Arg(block) => block,
            ValueDef::Result(op) => program.parent_block(op),
        });
        let last = block.and_then(|block| program.last_op(block).get());
        let returned = last.map_or_else(Vec::new, |last| program.operands(last).collect());
        for (index, operand) in program.operands(op).enumerate() {
            let names = [&condition, &body, &returned].map(|names| names.get(index).copied());
            let result = (index < program.num_results(op)).then(|| program.result(op, index));
            let names = || names.into_iter().chain([result]).flatten();
            if names().any(|name| self.has(name)) {
                names().chain([operand]).for_each(|name| self.add(name));
            }
        }
    }
}

/// Whether `op`, a terminator, ends a region of a loop.
fn ends_loop(program: &Program, op: OpId) -> bool {
    program.parent_op(op).is_some_and(|owner| program.kind(owner) == OpKind::While)
}

/// Whether `op` reads its operands as `bf16`; `products` are those of known signatures.
pub fn rounds(
    program: &Program,
    tensors: &mut Tensors<'_>,
    products: &mut BySignature<bool>,
    op: OpId,
) -> bool {
    if is_product(program, op) {
        let has_default = || has_default_precision(program, op);
        return match program.signature(op).get() {
            Some(id) => *products.of(id, has_default),
            None => has_default(),
        };
    }
    program.op_name(op) == "stablehlo.convert" && tensors.element(program.result(op, 0)) == "bf16"
}

/// The names of ops whose results have elements of their operands.
const MOVING: [&str; 15] = [
    "stablehlo.all_gather",
    "stablehlo.all_to_all",
    "stablehlo.broadcast_in_dim",
    "stablehlo.collective_permute",
    "stablehlo.concatenate",
    "stablehlo.dynamic_slice",
    "stablehlo.dynamic_update_slice",
    "stablehlo.gather",
    "stablehlo.optimization_barrier",
    "stablehlo.pad",
    "stablehlo.reshape",
    "stablehlo.reverse",
    "stablehlo.select",
    "stablehlo.slice",
    "stablehlo.transpose",
];

/// Whether each string of a program is one of [`MOVING`].
pub struct Moving(IdVec<StrId, bool>);

impl Moving {
    /// For the names of `program`.
    pub fn of(program: &Program) -> Self {
        let mut moving = IdVec::filled(false, program.strings().len());
        for name in MOVING.iter().filter_map(|name| program.strings().find(name)) {
            moving[name] = true;
        }
        Self(moving)
    }
    /// Whether elements of the result of `op` are elements of its operands.
    #[inline]
    pub fn has(&self, program: &Program, op: OpId) -> bool {
        self.0[program.op_name_id(op)]
    }
}

/// Whether `op` may write its result rounded.
pub fn is_made_rounded(program: &Program, moving: &Moving, op: OpId) -> bool {
    moving.has(program, op)
        || is_product(program, op)
        || program.has_traits(op, OpTraits::ELEMENTWISE) && program.kind(op) != OpKind::Constant
}

/// Whether values may be carried by loops.
pub fn has_loops(program: &Program) -> bool {
    program.has_any(&[OpKind::While])
}
