//! Fusion of a softmax with the product that makes its argument, as in attention.
//!
//! A product with two batch dims or more writes the dim that the softmax reduces along the sublanes of tiles. There a reduction that is
//! broadcast again, such as the maximum, is computed in one kernel with what it is broadcast to, as a `reduce-window`; mostly in that of
//! the product. What is computed of both, the exponentials, is written: no other kernel computes it anew.

use crate::compilers::xla_cpu::by_signature::BySignature;
use crate::compilers::xla_cpu::fusion::materialization::Storage;
use crate::compilers::xla_cpu::fusion::op_facts::Fact;
use crate::compilers::xla_cpu::layout_assignment::operand_copies::Layouts;
use crate::index::{OpId, ValueId};
use crate::ir::{OpKind, Program, ValueDef};
use crate::mlir::op_attribute;
use crate::stablehlo::dims::DotDims;
use crate::work::cached::Works;

/// The most ops between a reduction and what it is broadcast to.
const MAX_STEPS: usize = 8;

/// Where a reduction of what a product makes is computed, if that is broadcast again.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Rows {
    /// In the kernel of the product.
    Inside,
    /// In one kernel with what it is broadcast to, behind that of the product.
    Behind,
    /// In a kernel of its own.
    Apart,
}

/// The dims of products by signature; `None` for those without dimension numbers.
pub type ProductDims = BySignature<Option<DotDims<usize>>>;

/// Where reductions of what `product` makes are computed; `known` are the dims of products. An argument that fills the `lanes` over
/// which the matrix unit sums is copied to another layout by the kernel of the product, which takes in no softmax then.
pub fn rows_of(
    program: &Program,
    works: &mut Works<'_>,
    (known, lanes): (&mut ProductDims, i64),
    product: OpId,
) -> Rows {
    let Some(id) = program.signature(product).get() else { return Rows::Apart };
    let find = || {
        let is_dot = program.kind(product) == OpKind::DotGeneral;
        let numbers = is_dot.then(|| op_attribute(program, product, "dot_dimension_numbers"));
        DotDims::read(&numbers.flatten()?)
    };
    let Some(dims) = known.of(id, find) else { return Rows::Apart };
    // Batch dims come first.
    let sizes = works.tensors.of(program.result(product, 0)).dims.as_deref().unwrap_or_default();
    let batch = sizes.iter().take(dims.lhs_batching.len());
    if batch.filter(|&&size| size > 1).count() < 2 {
        return Rows::Apart;
    }
    let sizes = works.tensors.of(program.operand(product, 0)).dims.as_deref().unwrap_or_default();
    let mut contracted = dims.lhs_contracting.iter().filter_map(|&dim| sizes.get(dim));
    let is_argument = |value| matches!(program.def(value), ValueDef::Arg(_));
    if contracted.all(|size| size % lanes.max(1) == 0) && program.operands(product).any(is_argument)
    {
        Rows::Behind
    } else {
        Rows::Inside
    }
}

/// The result of an elementwise op of `value` and of a reduction of it along the last dim, which is broadcast; with the result of the
/// reduction. `None` unless these two are the users of `value`.
pub fn of_rows(
    program: &Program,
    storage: &Storage,
    layouts: &mut Layouts,
    value: ValueId,
) -> Option<(ValueId, ValueId)> {
    let mut users = program.users(value);
    let (first, second) = (users.next()?, users.next()?);
    if users.next().is_some() {
        return None;
    }
    let is_reduce =
        |op: &OpId| program.kind(*op) == OpKind::Reduce && program.num_results(*op) == 1;
    let reduce = [first, second].into_iter().find(is_reduce)?;
    let user = if reduce == first { second } else { first };
    let last = program.types()[program.type_of(value)].rank()?.checked_sub(1)?;
    let is_row_by_row = layouts.reduced(program, reduce)? == [last]
        && program.num_results(user) == 1
        && storage.facts.has(user, Fact::POINTWISE);
    if !is_row_by_row {
        return None;
    }
    let reduced = program.result(reduce, 0);
    let mut at = reduced;
    for _ in 0..MAX_STEPS {
        let mut users = program.users(at);
        let next = users.next().filter(|_| users.next().is_none())?;
        if next == user {
            return Some((program.result(user, 0), reduced));
        }
        let passes = Fact::POINTWISE.or(Fact::EXPAND).or(Fact::NAME);
        if !storage.facts.of(next).has_any(passes) || program.num_results(next) != 1 {
            return None;
        }
        at = program.result(next, 0);
    }
    None
}
