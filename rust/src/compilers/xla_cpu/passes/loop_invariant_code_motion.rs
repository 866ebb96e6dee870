//! Loop-invariant ops, which XLA hoists in front of the loop; the loop then carries those of their results that the ops in it read.
//!
//! Source: XLA's `WhileLoopInvariantCodeMotion`.

use crate::compilers::accelerator::fusion::is_only_read;
use crate::index::{BlockId, Id, OpId, ValueId};
use crate::ir::{OpKind, OpTraits, Program, ValueDef};
use crate::stablehlo::trips::trip_count;
use crate::work::cached::Works;
use crate::work::ops::Movement;

/// Properties of the values in the bodies of loops.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Known {
    /// The value is a constant, or computed from constants only.
    Constant,
    /// The value is the same in each trip.
    Same,
    Varies,
}

/// The ops that are hoisted out of loops.
#[derive(Default)]
pub struct Invariant {
    /// For each op whether it is hoisted; empty if the program has no loops.
    is_moved: Vec<bool>,
}

impl Invariant {
    /// For the loops of `functions`, given by their ops.
    pub fn new(program: &Program, works: &mut Works<'_>, functions: &[OpId]) -> Self {
        if !program.has_any(&[OpKind::While]) {
            return Self::default();
        }
        let mut is_moved = vec![false; program.num_op_ids()];
        let mut known = vec![Known::Varies; program.num_value_ids()];
        for &func in functions {
            for &op in works.ops_inside(func).iter() {
                let body = program.op_regions(op).nth(1);
                let body = body.and_then(|region| program.region_entry(region).get());
                if let (OpKind::While, Some(body)) = (program.kind(op), body) {
                    if trip_count(program, op).is_none_or(|trips| trips > 1) {
                        look_at_body(program, works, (op, body), &mut known, &mut is_moved);
                    }
                }
            }
        }
        Self { is_moved }
    }
    /// Whether the program has loops; without any, nothing is hoisted.
    #[inline]
    pub fn has_loops(&self) -> bool {
        !self.is_moved.is_empty()
    }
    /// Whether `op` is hoisted out of its loop.
    pub fn is_moved(&self, op: OpId) -> bool {
        self.is_moved.get(op.index()).copied().unwrap_or(false)
    }
    /// Whether `op`, which reads `value`, reads it as a carried value, since its producer was hoisted.
    pub fn is_carried_to(&self, program: &Program, value: ValueId, op: OpId) -> bool {
        self.has_loops()
            && !self.is_moved(op)
            && program.defining_op(value).is_some_and(|made_by| {
                self.is_moved(made_by) && program.parent_block(made_by) == program.parent_block(op)
            })
    }
}

/// Finds the ops to hoist out of `body`, that of the loop `owner`.
fn look_at_body(
    program: &Program,
    works: &Works<'_>,
    (owner, body): (OpId, BlockId),
    known: &mut [Known],
    is_moved: &mut [bool],
) {
    for (at, value) in program.block_args(body).enumerate() {
        let is_same = is_only_read(program, owner, at);
        known[value.index()] = if is_same { Known::Same } else { Known::Varies };
    }
    let mut left = Vec::new();
    for op in program.block_ops(body) {
        let found = known_of(program, works, (op, body), known);
        for result in program.op_results(op) {
            known[result.index()] = found;
        }
        if found == Known::Same {
            is_moved[op.index()] = is_worth_it(program, op);
            if !is_moved[op.index()] {
                left.push(op);
            }
        }
    }
    // The others are moved with the ops that need them.
    for op in left.into_iter().rev() {
        let mut users = program.op_results(op).flat_map(|value| program.users(value)).peekable();
        is_moved[op.index()] = users.peek().is_some() && users.all(|user| is_moved[user.index()]);
    }
}

/// The property of the results of `op`, an op of `body`.
fn known_of(
    program: &Program,
    works: &Works<'_>,
    (op, body): (OpId, BlockId),
    known: &[Known],
) -> Known {
    if program.has_traits(op, OpTraits::CONSTANT_LIKE) {
        return Known::Constant;
    }
    if program.has_traits(op, OpTraits::TERMINATOR) || works.movement(op) == Movement::Inside {
        return Known::Varies;
    }
    let of = |value: ValueId| match program.def(value) {
        ValueDef::Result(def) if program.has_traits(def, OpTraits::CONSTANT_LIKE) => {
            Known::Constant
        }
        ValueDef::Result(def) if program.parent_block(def) == body => known[value.index()],
        ValueDef::Arg(block) if block == body => known[value.index()],
        // What a body captures it only reads.
        _ => Known::Same,
    };
    // What needs nothing, such as a count along a dim, is never folded.
    program.operands(op).map(of).max().unwrap_or(Known::Same)
}

/// Whether `op` is hoisted even if no hoisted op needs it.
fn is_worth_it(program: &Program, op: OpId) -> bool {
    !matches!(
        program.op_name(op),
        "stablehlo.broadcast_in_dim"
            | "stablehlo.custom_call"
            | "stablehlo.iota"
            | "stablehlo.reshape"
            | "stablehlo.reverse"
            | "stablehlo.slice"
            | "stablehlo.transpose"
    )
}
