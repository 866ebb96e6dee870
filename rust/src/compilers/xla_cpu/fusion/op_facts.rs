//! Properties of ops and types that fusion asks for often, computed once for each op.
//!
//! Ops in the computation of a reduction and the like, which are no kernels, are skipped, unless they capture values from outside.

use crate::compilers::accelerator::fusion::is_splat;
use crate::compilers::xla_cpu::fusion::instruction_fusion::{
    fuses, has_tail, is_apart, is_expensive,
};
use crate::compilers::xla_cpu::fusion::library_reductions::{is_for_sums, is_sum};
use crate::compilers::xla_cpu::fusion::op_names::{Expense, Named, Names};
use crate::compilers::xla_cpu::fusion::op_regions::{captures, first_inside};
use crate::compilers::xla_cpu::layout_assignment::operand_copies::Layouts;
use crate::compilers::xla_cpu::passes::common_subexpressions::may_be_equal;
use crate::compilers::xla_tpu::one_hot_scatter::is_one_hot;
use crate::index::{Id, OpId, SignatureId, StrId, TypeId, ValueId};
use crate::ir::{OpKind, OpTraits, Program};
use crate::work::cached::Works;
use crate::work::ops::Movement;

/// Properties of an op that fusion asks for, as a set of bits.
#[derive(Clone, Copy)]
pub struct Fact(u32);

impl Fact {
    /// It fuses with its producers.
    pub const FUSES: Self = Self(1);
    /// It is a concatenation that is a kernel of its own.
    pub const APART: Self = Self(1 << 1);
    /// Its result is an alias of its only operand.
    pub const NAME: Self = Self(1 << 2);
    /// It is elementwise: it reads an element only for the element of the result at the same index. Aliases and moves that keep the
    /// order count.
    pub const PLACE_BY_PLACE: Self = Self(1 << 3);
    /// XLA does not duplicate it.
    pub const EXPENSIVE: Self = Self(1 << 4);
    /// It is a reduction that a library computes.
    pub const SUM: Self = Self(1 << 5);
    /// A library reduction fuses it, if its result has no other use.
    pub const FOR_SUMS: Self = Self(1 << 6);
    /// It reads no operand of its result's size: it is a broadcast, an iota, or a splat constant.
    pub const OF_NOTHING: Self = Self(1 << 7);
    /// Its movement is [`Movement::Opaque`].
    pub const OPAQUE: Self = Self(1 << 8);
    /// It is a gather.
    pub const GATHER: Self = Self(1 << 9);
    /// It is elementwise or moves data, and has no side effect.
    pub const PURE: Self = Self(1 << 10);
    /// It is elementwise.
    pub const POINTWISE: Self = Self(1 << 11);
    /// It is a slice or a permutation.
    pub const WINDOW: Self = Self(1 << 12);
    /// It is a broadcast or the like.
    pub const EXPAND: Self = Self(1 << 13);
    /// It is a constant.
    pub const CONSTANT: Self = Self(1 << 14);
    /// It is a dot.
    pub const PRODUCT: Self = Self(1 << 15);
    /// It has one result.
    pub const SINGLE: Self = Self(1 << 16);
    /// An op inside it captures values from outside.
    pub const CAPTURES: Self = Self(1 << 17);
    /// Its result is computed from a larger intermediate that it writes: the `f32` of a `bf16` result, another layout, or partial
    /// sums.
    pub const TAIL: Self = Self(1 << 18);
    /// It is an all-reduce or a reduce-scatter.
    pub const REDUCES: Self = Self(1 << 19);
    /// It has the movement of the ops inside it.
    pub const INSIDE: Self = Self(1 << 20);
    /// It equals another op with the same attributes on equal operands.
    pub const ALIKE: Self = Self(1 << 21);
    /// None of them.
    pub const NONE: Self = Self(0);

    /// Whether all facts of `other` hold.
    #[inline]
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
    /// Whether any fact of `other` holds.
    #[inline]
    pub const fn has_any(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
    /// The union of two sets.
    pub const fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
    /// `self` and, if `is_so`, `other`.
    pub const fn with(self, other: Self, is_so: bool) -> Self {
        if is_so {
            Self(self.0 | other.0)
        } else {
            self
        }
    }
}

/// The inputs that determine the facts of most ops: name, signature, number of operands, types of the first operand and of the only
/// result, and name of the first op inside.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Like {
    name: StrId,
    signature: SignatureId,
    num_operands: u32,
    operand: TypeId,
    result: TypeId,
    inner: StrId,
}

/// The ops inside a function that fusion looks at.
pub struct Inside {
    /// In pre-order.
    pub ops: Vec<OpId>,
    /// Whether all are in one block.
    pub is_flat: bool,
}

/// The properties of the ops of a program.
pub struct Facts {
    ops: Vec<Fact>,
    /// For each type the number of its dims larger than one.
    ranks: Vec<u32>,
}

impl Facts {
    /// The facts of the ops of `functions`, given by their ops; and for each function the ops for which `is_left` holds.
    pub fn new(
        program: &Program,
        works: &mut Works<'_>,
        layouts: &mut Layouts,
        functions: &[OpId],
        mut is_left: impl FnMut(&mut Works<'_>, OpId, Fact) -> bool,
    ) -> (Self, Vec<Inside>) {
        let mut finder = Finder {
            program,
            names: Names::new(program),
            known: vec![None; program.signatures().len() + program.types().len()],
            as_signed: vec![None; program.signatures().len()],
        };
        let mut ops = vec![Fact::NONE; program.num_op_ids()];
        let mut inside = Vec::with_capacity(functions.len());
        for &func in functions {
            let (mut found, mut is_flat) = (Vec::new(), true);
            let mut next = program.next_in_pre_order(func, func);
            while let Some(op) = next {
                let fact = finder.of(works, layouts, op);
                ops[op.index()] = fact;
                if is_left(works, op, fact) {
                    found.push(op);
                }
                let is_closed = !fact.has_any(Fact::CAPTURES.or(Fact::INSIDE));
                is_flat &= is_closed;
                next = if is_closed {
                    program.next_outside(op, func)
                } else {
                    program.next_in_pre_order(op, func)
                };
            }
            inside.push(Inside { ops: found, is_flat });
        }
        let rank = |row| {
            let dims = works.tensors.row(row).dims.as_deref().unwrap_or_default();
            dims.iter().filter(|&&size| size > 1).count() as u32
        };
        let ranks = (0..program.types().len() as u32).map(rank).collect();
        (Self { ops, ranks }, inside)
    }
    /// The properties of `op`.
    #[inline]
    pub fn of(&self, op: OpId) -> Fact {
        self.ops[op.index()]
    }
    /// Whether `fact` holds for `op`.
    #[inline]
    pub fn has(&self, op: OpId, fact: Fact) -> bool {
        self.of(op).has(fact)
    }
    /// Whether `op` has at most one operand of as many dims as its result, or reads fewer elements than it writes.
    pub fn reads_little(&self, program: &Program, works: &mut Works<'_>, op: OpId) -> bool {
        let rank = |value: ValueId| self.ranks[program.type_of(value).index()];
        let result = program.result(op, 0);
        let least = rank(result);
        let operands = program.operands(op);
        let mut num_large = 0;
        for value in operands.clone() {
            if rank(value) >= least {
                let made_by = program.defining_op(value);
                let is_made = made_by.is_some_and(|made| self.has(made, Fact::OF_NOTHING));
                num_large += u32::from(!is_made);
            }
        }
        if num_large < 2 {
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

/// Computes the facts of ops, once for all ops that are alike.
struct Finder<'p> {
    program: &'p Program,
    names: Names,
    /// The last op of each signature, and, for constants, of each type.
    known: Vec<Option<(Like, Fact)>>,
    /// The facts of ops without regions whose signature determines them, by signature.
    as_signed: Vec<Option<Fact>>,
}

impl Finder<'_> {
    /// The properties of `op`.
    #[inline]
    fn of(&mut self, works: &mut Works<'_>, layouts: &mut Layouts, op: OpId) -> Fact {
        let signature = self.program.signature(op).get().filter(|_| works.is_as_signed(op));
        if let Some(known) = signature.and_then(|id| self.as_signed[id.index()]) {
            return known;
        }
        self.find(works, layouts, op)
    }
    /// The properties of `op`, where those of its signature are not known.
    fn find(&mut self, works: &mut Works<'_>, layouts: &mut Layouts, op: OpId) -> Fact {
        let program = self.program;
        let is_constant = program.has_traits(op, OpTraits::CONSTANT_LIKE);
        let is_merged = layouts.merged.parts.contains_key(&op);
        let fact = match like(program, op, is_constant).filter(|_| !is_merged) {
            Some(like) => self.of_alike(works, layouts, (op, like)),
            None => self.of_op(works, layouts, op).0,
        };
        if is_constant {
            return fact.with(Fact::OF_NOTHING, is_splat(program, op));
        }
        if layouts.swaps_product(program, op) {
            return fact.with(Fact::NAME, true).with(Fact::PLACE_BY_PLACE, true);
        }
        if program.num_regions(op) == 0 {
            return fact;
        }
        if reduces_nothing(program, works, layouts, op) {
            let is_alike = may_be_equal(program, works, op);
            return fact
                .with(Fact::NAME.or(Fact::PLACE_BY_PLACE), true)
                .with(Fact::ALIKE, is_alike);
        }
        let is_selected = layouts.compiler().fuses_products() && is_one_hot(program, op);
        fact.with(Fact::CAPTURES, captures(program, op))
            .with(Fact::FUSES.or(Fact::POINTWISE).or(Fact::PURE), is_selected)
            .with(Fact::ALIKE, may_be_equal(program, works, op))
    }
    /// The properties of `op`, taken from those of the ops that it is `like`.
    #[inline]
    fn of_alike(
        &mut self,
        works: &mut Works<'_>,
        layouts: &mut Layouts,
        (op, like): (OpId, Like),
    ) -> Fact {
        let of_type = self.program.signatures().len() + like.result.index();
        let at = like.signature.get().map_or(of_type, SignatureId::index);
        let fact = match self.known[at] {
            Some((other, fact)) if other == like => fact,
            _ => {
                let (fact, expense) = self.of_op(works, layouts, op);
                // Of a division it matters what makes the divisor.
                if matches!(expense, Expense::Division | Expense::Remainder) {
                    return fact;
                }
                self.known[at] = Some((like, fact));
                fact
            }
        };
        // On GPUs it matters what products and transposes are next to.
        let is_alone = !layouts.compiler().fuses_by_priority()
            || self.program.kind(op) != OpKind::DotGeneral
                && self.program.op_name(op) != "stablehlo.transpose";
        if is_alone && works.is_as_signed(op) {
            self.as_signed[at] = Some(fact);
        }
        fact
    }
    /// The facts of `op` that depend neither on the elements of a constant nor on its regions.
    fn of_op(&mut self, works: &mut Works<'_>, layouts: &mut Layouts, op: OpId) -> (Fact, Expense) {
        let named = self.names.of(self.program, works, op);
        (of_op(self.program, works, layouts, (op, &named)), named.expense)
    }
}

/// The inputs that determine the facts of `op`, except the elements of a constant and its regions; `None` if there are others.
/// Constants have no signature.
#[inline]
fn like(program: &Program, op: OpId, is_constant: bool) -> Option<Like> {
    let signature = program.signature(op);
    if signature.is_none() != is_constant || program.num_results(op) != 1 {
        return None;
    }
    let mut operands = program.operands(op);
    let num_operands = operands.len() as u32;
    let operand = operands.next().map_or(TypeId::NONE, |value| program.type_of(value));
    let result = program.type_of(program.result(op, 0));
    let inner = if program.num_regions(op) > 0 { first_inside(program, op) } else { OpId::NONE };
    let inner = inner.get().map_or(StrId::NONE, |inner| program.op_name_id(inner));
    Some(Like { name: program.op_name_id(op), signature, num_operands, operand, result, inner })
}

/// Whether `op` is a reduction of dims of size one, which XLA reshapes; modelled for GPUs.
fn reduces_nothing(
    program: &Program,
    works: &mut Works<'_>,
    layouts: &mut Layouts,
    op: OpId,
) -> bool {
    let is_modelled = layouts.compiler().fuses_by_priority();
    if !is_modelled || program.kind(op) != OpKind::Reduce || program.num_results(op) != 1 {
        return false;
    }
    let Some(sizes) = works.tensors.of(program.operand(op, 0)).dims.as_deref() else {
        return false;
    };
    let is_one = |&dim: &usize| sizes.get(dim) == Some(&1);
    layouts.reduced(program, op).is_some_and(|dims| dims.iter().all(is_one))
}

/// The facts of `op` that do not depend on the elements of a constant.
fn of_op(
    program: &Program,
    works: &mut Works<'_>,
    layouts: &mut Layouts,
    (op, named): (OpId, &Named),
) -> Fact {
    let movement = works.movement(op);
    let keeps = named.spreads && layouts.keeps_places(program, works, op);
    let is_apart = named.joins && is_apart(program, works, layouts, op);
    let stays =
        program.kind(op) == OpKind::OptimizationBarrier && layouts.compiler().aliases_barriers();
    let is_single = program.num_operands(op) == 1 && program.num_results(op) == 1 && !stays;
    let has_library = layouts.compiler().sums_by_library();
    let is_element_by_element = matches!(movement, Movement::Pointwise | Movement::Alias);
    let is_pure = is_element_by_element || matches!(movement, Movement::Expand | Movement::Window);
    Fact::NONE
        .with(Fact::FUSES, fuses(program, works, layouts, (op, is_apart)))
        .with(Fact::APART, is_apart)
        .with(Fact::NAME, is_single && (movement == Movement::Alias || keeps))
        .with(Fact::PLACE_BY_PLACE, is_element_by_element || keeps)
        .with(Fact::EXPENSIVE, is_expensive(program, works, layouts, (op, named)))
        .with(Fact::SUM, has_library && is_sum(program, works, op))
        .with(Fact::FOR_SUMS, has_library && is_for_sums(program, works, (op, named)))
        .with(Fact::OF_NOTHING, named.is_of_nothing)
        .with(Fact::OPAQUE, movement == Movement::Opaque)
        .with(Fact::GATHER, named.is_gather)
        .with(Fact::PURE, is_pure)
        .with(Fact::POINTWISE, movement == Movement::Pointwise)
        .with(Fact::WINDOW, movement == Movement::Window)
        .with(Fact::EXPAND, movement == Movement::Expand)
        .with(Fact::CONSTANT, program.has_traits(op, OpTraits::CONSTANT_LIKE))
        .with(Fact::PRODUCT, program.kind(op) == OpKind::DotGeneral)
        .with(Fact::SINGLE, program.num_results(op) == 1)
        .with(Fact::TAIL, movement == Movement::Opaque && has_tail(program, works, layouts, op))
        .with(Fact::REDUCES, named.reduces)
        .with(Fact::INSIDE, movement == Movement::Inside)
        .with(Fact::ALIKE, program.num_regions(op) == 0 && may_be_equal(program, works, op))
}

/// The `case` or `if` whose branch the terminator `op` ends.
#[inline]
pub fn ended_branch(program: &Program, op: OpId) -> Option<OpId> {
    if !program.has_traits(op, OpTraits::TERMINATOR) {
        return None;
    }
    let owner = program.parent_op(op)?;
    (is_branching(program, owner) && program.num_results(owner) == program.num_operands(op))
        .then_some(owner)
}

/// Whether `op` is a `case` or an `if`.
pub fn is_branching(program: &Program, op: OpId) -> bool {
    matches!(program.kind(op), OpKind::Case | OpKind::If)
}
