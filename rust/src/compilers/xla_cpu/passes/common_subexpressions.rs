//! Common subexpressions: values of equal ops on equal operands, which XLA computes once.
//!
//! XLA:CPU drops barriers after partitioning, before it merges equal ops: an op that rematerialization recomputes then equals the
//! original one, unless it depends on a collective. Collectives are never equal: each has a channel of its own.
//!
//! Source: XLA's `HloCSE`, `OptimizationBarrierExpander`; `AlgebraicSimplifier` for a `reduce_precision` to the precision of its
//! operand.

use super::algebraic_simplifier::AlgebraicSimplifier;
use crate::index::{BlockId, Id, OpId, SignatureId, StrId, TypeId, ValueId};
use crate::ir::{OpKind, Program};
use crate::mlir::op_attribute;
use crate::work::cached::Works;
use crate::work::ops::Movement;
use rustc_hash::{FxHashMap, FxHasher};
use std::hash::{Hash, Hasher};
use std::rc::Rc;

/// Block, name, signature, result type, elements of a constant, and the only op in the computation of a reduction.
type Makes<'a> = (BlockId, StrId, SignatureId, TypeId, Option<&'a str>, Option<StrId>);

/// For each value the first value in its block that is equal to it.
pub struct Equal(Vec<ValueId>);

/// Finds equal values, op by op.
pub struct Search<'p> {
    program: &'p Program,
    known: Known,
    /// The name of `reduce_precision`, which is dropped if it keeps the precision of its operand.
    rounding: Option<StrId>,
    drops_barriers: bool,
    simplifier: Option<AlgebraicSimplifier>,
    equal: Equal,
}

impl<'p> Search<'p> {
    /// For the values of `program`. `drops_barriers`: whether barriers are dropped, as on CPUs; `simplifies`: whether what equals an
    /// operand is dropped, as is modelled for GPUs.
    pub fn new(program: &'p Program, drops_barriers: bool, simplifies: bool) -> Self {
        Self {
            program,
            known: Known::new(program.num_op_ids()),
            rounding: program.strings().find("stablehlo.reduce_precision"),
            drops_barriers,
            simplifier: simplifies.then(|| AlgebraicSimplifier::new(program)),
            equal: Equal((0..program.num_value_ids()).map(ValueId::from_index).collect()),
        }
    }
    /// Whether the result of `op` differs from those of all earlier ops, in pre-order. It is called only for ops that
    /// [`may_be_equal`], and for barriers that are dropped.
    pub fn is_new(&mut self, works: &mut Works<'_>, op: OpId) -> bool {
        let (program, equal) = (self.program, &mut self.equal);
        let is_dropped = self.drops_barriers && program.kind(op) == OpKind::OptimizationBarrier;
        let is_rounded = Some(program.op_name_id(op)) == self.rounding;
        if is_dropped || is_rounded && keeps_precision(program, works, op) {
            for (operand, result) in program.operands(op).zip(program.op_results(op)) {
                equal.0[result.index()] = equal.first(operand);
            }
            return false;
        }
        if let Some(same) = self.simplifier.as_ref().and_then(|it| it.same_as(program, op)) {
            equal.0[program.result(op, 0).index()] = equal.first(same);
            return false;
        }
        let makes = makes(program, op, function(program, op));
        let hash = equal.hash(program, op, &makes);
        let result = program.result(op, 0);
        let is_equal = |first| equal.are_made_alike(program, first, (op, &makes));
        let first = self.known.first(hash, result, is_equal);
        equal.0[result.index()] = first;
        first == result
    }
    /// The equal ops that were found.
    pub fn finish(self) -> Equal {
        self.equal
    }
}

impl Equal {
    /// For the values of `functions`, given by their ops.
    pub fn new(
        program: &Program,
        works: &mut Works<'_>,
        functions: &[OpId],
        drops_barriers: bool,
    ) -> Self {
        let mut search = Search::new(program, drops_barriers, false);
        for &func in functions {
            for &op in works.ops_inside(func).iter() {
                let is_dropped = drops_barriers && program.kind(op) == OpKind::OptimizationBarrier;
                if is_dropped || may_be_equal(program, works, op) {
                    let _ = search.is_new(works, op);
                }
            }
        }
        search.finish()
    }
    /// A hash of everything that [`Equal::are_made_alike`] compares: name, attributes, operands.
    #[inline]
    fn hash(&self, program: &Program, op: OpId, makes: &Makes<'_>) -> u64 {
        let mut hasher = FxHasher::default();
        // Two ids at once: most of the time is spent here.
        let (block, name, signature, ty, elements, function) = *makes;
        hasher.write_u64((block.index() as u64) << 32 | name.index() as u64);
        hasher.write_u64((signature.index() as u64) << 32 | ty.index() as u64);
        if elements.is_some() || function.is_some() {
            (elements, function).hash(&mut hasher);
        }
        for value in program.operands(op) {
            self.first(value).hash(&mut hasher);
        }
        hasher.finish()
    }
    /// Whether the op that defines `value` has the block, name, signature, result type and operands of `op`.
    fn are_made_alike(
        &self,
        program: &Program,
        value: ValueId,
        (op, made_by): (OpId, &Makes<'_>),
    ) -> bool {
        program.defining_op(value).is_some_and(|other| {
            let operands = |op| program.operands(op).map(|value| self.first(value));
            operands(other).eq(operands(op))
                && makes(program, other, function(program, other)) == *made_by
        })
    }
    /// The first value that is equal to `value`.
    #[inline]
    pub fn first(&self, value: ValueId) -> ValueId {
        self.0[value.index()]
    }
    /// The values that equal each other, for each value that equals another one.
    pub fn classes(&self) -> FxHashMap<ValueId, Rc<[ValueId]>> {
        let mut classes: Vec<Vec<ValueId>> = Vec::new();
        let mut of_first: FxHashMap<ValueId, usize> = FxHashMap::default();
        for (&first, at) in self.0.iter().zip(0..) {
            let value = ValueId::from_index(at);
            if first != value {
                let class = *of_first.entry(first).or_insert(classes.len());
                if class == classes.len() {
                    classes.push(vec![first]);
                }
                classes[class].push(value);
            }
        }
        let classes = classes.into_iter().map(Rc::<[ValueId]>::from);
        let of_each = |class: Rc<[ValueId]>| {
            let values = class.to_vec();
            values.into_iter().map(move |value| (value, Rc::clone(&class)))
        };
        classes.flat_map(of_each).collect()
    }
    /// Whether `op` computes what an earlier op has computed.
    #[inline]
    pub fn is_repeated(&self, program: &Program, op: OpId) -> bool {
        program.op_results(op).next().is_some_and(|result| self.first(result) != result)
    }
}

/// The first of equal values, in a hash table of the ops that compute them.
struct Known {
    /// The upper half of the hash, with the value. Probing starts at the lower bits of the hash.
    places: Vec<(u32, ValueId)>,
}

impl Known {
    /// A table for the results of at most this number of ops; at least half of it stays free.
    fn new(num_ops: usize) -> Self {
        Self { places: vec![(0, ValueId::NONE); (2 * num_ops).next_power_of_two()] }
    }
    /// The first value with this hash for which `is_equal` holds; if there is none, `value`, which is added.
    #[inline]
    fn first(&mut self, hash: u64, value: ValueId, is_equal: impl Fn(ValueId) -> bool) -> ValueId {
        let (tag, last) = ((hash >> 32) as u32, self.places.len() - 1);
        let mut at = hash as usize & last;
        loop {
            let place = &mut self.places[at];
            if place.1.is_none() {
                *place = (tag, value);
                return value;
            }
            if place.0 == tag && is_equal(place.1) {
                return place.1;
            }
            at = (at + 1) & last;
        }
    }
}

/// Whether `op` can equal another op on equal operands.
pub fn may_be_equal(program: &Program, works: &Works<'_>, op: OpId) -> bool {
    let kind = program.kind(op);
    let is_constant = kind == OpKind::Constant;
    if program.num_results(op) != 1 || program.signature(op).is_none() && !is_constant {
        return false;
    }
    let is_pure = function(program, op).is_some()
        || program.num_regions(op) == 0
            && (matches!(kind, OpKind::DotGeneral | OpKind::Convolution)
                || is_constant
                || is_moved(works.movement(op)));
    let needs_something =
        program.num_operands(op) > 0 || is_constant || program.op_name(op) == "stablehlo.iota";
    is_pure && needs_something
}

/// Whether ops with this movement are equal if their operands are.
const fn is_moved(movement: Movement) -> bool {
    matches!(movement, Movement::Pointwise | Movement::Window | Movement::Expand | Movement::Alias)
}

/// What equal ops with one result have in common, besides their operands; `function` is the only op in the computation of `op`.
#[inline]
fn makes(program: &Program, op: OpId, function: Option<StrId>) -> Makes<'_> {
    let ty = program.type_of(program.result(op, 0));
    let is_constant = program.kind(op) == OpKind::Constant;
    let elements = is_constant.then(|| program.constant_text(op));
    (
        program.parent_block(op),
        program.op_name_id(op),
        program.signature(op),
        ty,
        elements,
        function,
    )
}

/// The only op in the computation of `op`, a reduction of one operand.
#[inline]
pub fn function(program: &Program, op: OpId) -> Option<StrId> {
    if program.kind(op) != OpKind::Reduce || program.num_results(op) != 1 {
        return None;
    }
    only_op(program, op)
}

/// The only op in the region of `op` besides its terminator.
pub(in crate::compilers::xla_cpu) fn only_op(program: &Program, op: OpId) -> Option<StrId> {
    let block = program.region_entry(program.op_regions(op).next()?).get()?;
    let mut inner = program.block_ops(block);
    let (first, last) = (inner.next()?, inner.next()?);
    let is_whole = inner.next().is_none()
        && program.operands(first).eq(program.block_args(block))
        && program.operands(last).eq(program.op_results(first));
    is_whole.then(|| program.op_name_id(first))
}

/// Whether `op`, a `reduce_precision`, converts to the precision that its operand has.
fn keeps_precision(program: &Program, works: &mut Works<'_>, op: OpId) -> bool {
    let bits = |name| op_attribute(program, op, name)?.as_int();
    let own = match works.tensors.element(program.result(op, 0)) {
        "bf16" => (8, 7),
        "f16" => (5, 10),
        "f32" => (8, 23),
        "f64" => (11, 52),
        _ => return false,
    };
    bits("exponent_bits").zip(bits("mantissa_bits")) == Some(own)
}
