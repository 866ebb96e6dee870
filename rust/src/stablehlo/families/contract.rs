//! Definitions of contractions, `dot_general` and others.

use crate::inline_list::InlineList;
use crate::mlir::AttrValue;
use crate::stablehlo::attribute_kinds::Kind;
use crate::stablehlo::compatible::{compatible_shapes, compatible_sizes, most_specific_size};
use crate::stablehlo::constraint as takes;
use crate::stablehlo::definition::{
    one, optional, required, stablehlo, Compares, Definition, Family, NOTHING,
};
use crate::stablehlo::dim_checks::distinct;
use crate::stablehlo::dims::DotDims;
use crate::stablehlo::mistake::{bare, ensure, Mistake};
use crate::stablehlo::types::{sizes, Size, Sizes, Tensor};
use crate::stablehlo::view::OpView;

pub const FAMILIES: &[Family] = &[
    stablehlo(&["dot"], DOT),
    stablehlo(&["dot_general"], DOT_GENERAL),
    stablehlo(&["einsum"], EINSUM),
    stablehlo(&["unary_einsum"], UNARY_EINSUM),
];

const DOT: Definition = Definition {
    operands: &[one(takes::TENSOR), one(takes::PER_AXIS_TENSOR)],
    results: &[one(takes::PER_AXIS_TENSOR)],
    attributes: &[optional("precision_config", Kind::Precisions("stablehlo"))],
    verify: Some(|op| check_shape(op, dot(op)?)),
    infer: Some(|op| op.shaped(dot(op)?)),
    compares: Compares::Nothing,
    ..NOTHING
};
const DOT_GENERAL: Definition = Definition {
    attributes: &[
        required("dot_dimension_numbers", DIMENSION_NUMBERS),
        optional("precision_config", Kind::Precisions("stablehlo")),
        optional("algorithm", ALGORITHM),
    ],
    verify: Some(verify_dot_general),
    infer: Some(|op| op.shaped(dot_general(op)?)),
    ..DOT
};
const DIMENSION_NUMBERS: Kind =
    Kind::Of("stablehlo", "dot", "Attribute that models the dimension information for dot.");
const ALGORITHM: Kind = Kind::Of(
    "stablehlo",
    "dot_algorithm",
    "Attribute that models the algorithm constraints to use for computing dot.",
);
const EINSUM: Definition = Definition {
    operands: &[one(takes::TENSOR), one(takes::TENSOR)],
    results: &[one(takes::TENSOR)],
    attributes: &[required("einsum_config", Kind::Str)],
    ..NOTHING
};
const UNARY_EINSUM: Definition = Definition { operands: &[one(takes::TENSOR)], ..EINSUM };
/// Sizes of the result's dims, and their bounds.
pub type Dims = (Sizes, Sizes);

/// Checks that the result has the inferred shape.
pub fn check_shape(op: &OpView<'_>, (shape, _): Dims) -> Result<(), Mistake> {
    let Some(result) = op.results.first() else { return Err(Mistake::silent()) };
    ensure(result.shape().is_some_and(|given| compatible_shapes(&shape, given)), || {
        let shape = sizes(&shape, "?");
        format!(
            "inferred shape '[{shape}]' is incompatible with return type of operation '{result}'"
        )
    })
}

/// Checks that a contraction has at most one precision for each operand.
pub fn check_precisions(op: &OpView<'_>) -> Result<(), Mistake> {
    let count =
        op.attributes.value("precision_config").and_then(AttrValue::items).map_or(0, <[_]>::len);
    ensure(count <= 2, || {
        format!("expects precision config to be empty or have <= 2 elements, got {count}")
    })
}

fn dot(op: &OpView<'_>) -> Result<Dims, Mistake> {
    check_precisions(op)?;
    let (lhs, rhs) = (op.operand(0)?, op.operand(1)?);
    let fits = matches!(lhs.rank(), 1 | 2)
        && matches!(rhs.rank(), 1 | 2)
        && compatible_sizes(lhs.shape[lhs.rank() - 1], rhs.shape[0]);
    ensure(fits, || "expected both lhs/rhs ranks to be either 1 or 2".to_owned())?;
    let free = [(lhs, 0, lhs.rank() == 2), (rhs, 1, rhs.rank() == 2)];
    let free = free.into_iter().filter(|(_, _, is_free)| *is_free);
    Ok(free.map(|(side, dim, _)| (side.shape[dim], side.bound(dim))).unzip())
}

/// Checks that the dims of one operand are distinct and in range.
fn check_dims(
    names: [&str; 2],
    rank: usize,
    batching: &[i64],
    contracting: &[i64],
) -> [Result<(), Mistake>; 2] {
    let distinct = distinct(batching, contracting, names[0], names[1]);
    let in_range =
        [(batching, names[0]), (contracting, names[1])].into_iter().try_for_each(|(dims, name)| {
            match dims.iter().find(|dim| !(0..rank as i64).contains(dim)) {
                Some(dim) => Err(bare(format!("{name} value: {dim} is out of range: [0, {rank})"))),
                None => Ok(()),
            }
        });
    [distinct, in_range]
}

/// Whether the dims of one operand are distinct and in range, as a fast check for few dims: `false`
/// means unknown.
fn are_right(rank: usize, batching: &[i64], contracting: &[i64]) -> bool {
    let mut seen = 0_u64;
    for dims in [batching, contracting] {
        for &dim in dims {
            if !(0..(rank as i64).min(64)).contains(&dim) || seen & 1 << dim != 0 {
                return false;
            }
            seen |= 1 << dim;
        }
    }
    true
}

/// Checks the dimension numbers of a contraction of `lhs` and `rhs`.
pub fn check_contraction(lhs: &Tensor, rhs: &Tensor, dims: &DotDims<i64>) -> Result<(), Mistake> {
    let same_len = |a: &[i64], b: &[i64], what: &str| {
        ensure(a.len() == b.len(), || {
            format!("lhs and rhs should have the same number of {what} dimensions")
        })
    };
    same_len(&dims.lhs_batching, &dims.rhs_batching, "batching")?;
    same_len(&dims.lhs_contracting, &dims.rhs_contracting, "contracting")?;
    let sides = [
        (lhs.rank(), &dims.lhs_batching, &dims.lhs_contracting),
        (rhs.rank(), &dims.rhs_batching, &dims.rhs_contracting),
    ];
    if !sides.iter().all(|&(rank, batching, contracting)| are_right(rank, batching, contracting)) {
        let [left, right] = sides;
        let names = ["lhs_batching_dimensions", "lhs_contracting_dimensions"];
        let [left_distinct, left_in_range] = check_dims(names, left.0, left.1, left.2);
        let names = ["rhs_batching_dimensions", "rhs_contracting_dimensions"];
        let [right_distinct, right_in_range] = check_dims(names, right.0, right.1, right.2);
        left_distinct.and(right_distinct).and(left_in_range).and(right_in_range)?;
    }
    for (a, b, what) in [
        (&dims.lhs_batching, &dims.rhs_batching, "batching"),
        (&dims.lhs_contracting, &dims.rhs_contracting, "contracting"),
    ] {
        let mut pairs = a.iter().zip(b);
        let fits =
            pairs.all(|(&a, &b)| compatible_sizes(lhs.shape[a as usize], rhs.shape[b as usize]));
        ensure(fits, || format!("{what} dimension sizes must match for lhs/rhs"))?;
    }
    Ok(())
}

/// The dims of `side` that are in none of `bound`, with their bounds.
pub fn free_dims(side: &Tensor, bound: &[&[i64]]) -> InlineList<(Size, Size), 4> {
    let mut free = InlineList::new();
    for (dim, &size) in side.shape.iter().enumerate() {
        if !bound.iter().any(|dims| dims.contains(&(dim as i64))) {
            free.push((size, side.bound(dim)));
        }
    }
    free
}

fn dot_general(op: &OpView<'_>) -> Result<Dims, Mistake> {
    check_precisions(op)?;
    let (lhs, rhs) = (op.operand(0)?, op.operand(1)?);
    let numbers = op.attributes.value("dot_dimension_numbers");
    let dims = numbers.and_then(DotDims::read).ok_or_else(Mistake::silent)?;
    check_contraction(lhs, rhs, &dims)?;
    let mut result: InlineList<(Size, Size), 4> = InlineList::new();
    for (at, (&a, &b)) in dims.lhs_batching.iter().zip(&dims.rhs_batching).enumerate() {
        let (a, b) = (a as usize, b as usize);
        let (left, right) = ((lhs.shape[a], lhs.bound(a)), (rhs.shape[b], rhs.bound(b)));
        result.push(most_specific_size(at, left, right)?);
    }
    for free in [
        free_dims(lhs, &[&dims.lhs_batching, &dims.lhs_contracting]),
        free_dims(rhs, &[&dims.rhs_batching, &dims.rhs_contracting]),
    ] {
        result.extend(free.iter().copied());
    }
    let (mut sizes, mut bounds) = (Sizes::new(), Sizes::new());
    for &(size, bound) in &result {
        sizes.push(size);
        bounds.push(bound);
    }
    Ok((sizes, bounds))
}

fn verify_dot_general(op: &OpView<'_>) -> Result<(), Mistake> {
    check_shape(op, dot_general(op)?)?;
    let precisions = op.attributes.value("precision_config").and_then(AttrValue::items);
    let is_default = |item: &AttrValue<'_>| item.as_str() == Some("DEFAULT");
    let is_default = precisions.is_none_or(|items| items.iter().all(is_default));
    ensure(is_default || op.attributes.value("algorithm").is_none(), || {
        "must specify DEFAULT precision config when algorithm is set.".to_owned()
    })
}
