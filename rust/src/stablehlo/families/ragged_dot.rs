//! Definition of `chlo.ragged_dot`: a contraction in which one dim is split into groups of different sizes.

use super::broadcast::ANY;
use super::contract::{check_contraction, check_precisions, check_shape, free_dims, Dims};
use crate::stablehlo::attribute_kinds::Kind;
use crate::stablehlo::compatible::compatible_sizes;
use crate::stablehlo::constraint as takes;
use crate::stablehlo::definition::{
    chlo, one, optional, required, Compares, Definition, Family, NOTHING,
};
use crate::stablehlo::dim_checks::{distinct, in_bounds};
use crate::stablehlo::dims::RaggedDotDims;
use crate::stablehlo::mistake::{bare, ensure, Mistake};
use crate::stablehlo::types::{sizes, Size, Sizes, Tensor, DYNAMIC};
use crate::stablehlo::view::OpView;

pub const FAMILIES: &[Family] = &[chlo(&["ragged_dot"], RAGGED_DOT)];

const RAGGED_DOT: Definition = Definition {
    operands: &[one(ANY), one(ANY), one(takes::INTEGER)],
    results: &[one(ANY)],
    attributes: &[
        required(
            "ragged_dot_dimension_numbers",
            Kind::Of(
                "chlo",
                "ragged_dot",
                "Attribute that models the dimension information for ragged dot.",
            ),
        ),
        optional("precision_config", Kind::Precisions("chlo")),
    ],
    verify: Some(|op| check_shape(op, ragged_dot(op)?)),
    infer: Some(|op| op.shaped(ragged_dot(op)?)),
    compares: Compares::Nothing,
    ..NOTHING
};

/// The role of the dim that is split into groups.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// A free dim of the left operand; the right one has a matrix for each group.
    Free,
    /// A contracting dim; the result has a matrix for each group.
    Contracting,
    /// A batching dim.
    Batching,
}

/// The dims of the result.
pub fn ragged_dot(op: &OpView<'_>) -> Result<Dims, Mistake> {
    check_precisions(op)?;
    let (lhs, rhs) = (op.operand(0)?, op.operand(1)?);
    let numbers = op.attributes.value("ragged_dot_dimension_numbers");
    let dims = numbers.and_then(RaggedDotDims::read).ok_or_else(Mistake::silent)?;
    check_contraction(lhs, rhs, &dims.dot)?;
    let groups = op.operand(2)?;
    let &[ragged] = &dims.lhs_ragged[..] else {
        return Err(bare("There must be exactly one ragged dimension in the lhs."));
    };
    in_bounds(ragged, lhs.rank(), "lhs_ragged_dim", "lhs_rank", false)?;
    let mode = if dims.dot.lhs_batching.contains(&ragged) {
        Mode::Batching
    } else if dims.dot.lhs_contracting.contains(&ragged) {
        Mode::Contracting
    } else {
        Mode::Free
    };
    check_group_sizes(lhs, groups, &dims, (mode, ragged))?;
    let Some(&num_groups) = groups.shape.last() else { return Err(Mistake::silent()) };
    check_group_dims(rhs, &dims, mode, num_groups)?;
    let mut result: Vec<(Size, Size)> = Vec::new();
    if mode == Mode::Contracting {
        result.push((num_groups, None));
    }
    let dot = &dims.dot;
    result.extend(dot.lhs_batching.iter().map(|&dim| (lhs.shape[dim as usize], None)));
    let free = free_dims(lhs, &[&dot.lhs_batching, &dot.lhs_contracting]);
    result.extend(free.iter().copied());
    let bound: [&[i64]; 3] = [&dot.rhs_batching, &dot.rhs_contracting, &dims.rhs_group];
    result.extend(free_dims(rhs, &bound).iter().copied());
    Ok((result.into_iter().map(|(size, _)| size).collect(), Sizes::new()))
}

/// Checks the shape of the group sizes: one list, or one for each index of the dims before the ragged one.
fn check_group_sizes(
    lhs: &Tensor,
    groups: &Tensor,
    dims: &RaggedDotDims<i64>,
    (mode, ragged): (Mode, i64),
) -> Result<(), Mistake> {
    if groups.rank() == 1 {
        return Ok(());
    }
    let dot = &dims.dot;
    let until = |list: &[i64]| list.iter().copied().take_while(|&dim| dim != ragged).collect();
    let mut prefix: Vec<i64> = match mode {
        Mode::Batching => until(&dot.lhs_batching),
        _ => dot.lhs_batching.to_vec(),
    };
    match mode {
        Mode::Batching => {}
        Mode::Contracting => prefix.extend::<Vec<i64>>(until(&dot.lhs_contracting)),
        Mode::Free => {
            prefix.extend((0..ragged).filter(|dim| {
                !dot.lhs_batching.contains(dim) && !dot.lhs_contracting.contains(dim)
            }));
        }
    }
    let (expected, rank) = (prefix.len() + 1, groups.rank());
    ensure(rank == expected, || {
        format!("expected group_sizes to have rank {expected}, got {rank}")
    })?;
    let prefix: Sizes = prefix.iter().map(|&dim| lhs.shape[dim as usize]).collect();
    ensure(groups.shape.starts_with(&prefix), || {
        let last = sizes(&groups.shape[rank - 1..], DYNAMIC);
        let (prefix, got) = (sizes(&prefix, DYNAMIC), sizes(&groups.shape, DYNAMIC));
        format!("group_sizes is expected to have shape [{prefix}, {last}], got [{got}]")
    })
}

fn check_group_dims(
    rhs: &Tensor,
    dims: &RaggedDotDims<i64>,
    mode: Mode,
    num_groups: Size,
) -> Result<(), Mistake> {
    for &dim in &dims.rhs_group {
        in_bounds(dim, rhs.rank(), "rhs_group_dim", "rhs_rank", false)?;
    }
    let group = "rhs_group_dimensions";
    distinct(&dims.rhs_group, &dims.dot.rhs_batching, group, "rhs_batching_dimensions")?;
    distinct(&dims.rhs_group, &dims.dot.rhs_contracting, group, "rhs_contracting_dimensions")?;
    if mode != Mode::Free {
        return ensure(dims.rhs_group.is_empty(), || {
            "There must be zero group dimensions in the rhs when the ragged dimension is batch or \
             contracting."
                .to_owned()
        });
    }
    let &[dim] = &dims.rhs_group[..] else {
        return Err(bare(
            "There must be exactly one group dimension in the rhs when the lhs ragged dimension is \
             non-contracting.",
        ));
    };
    let size = rhs.shape[dim as usize];
    ensure(compatible_sizes(num_groups, size), || {
        let (groups, size) = (sizes(&[num_groups], DYNAMIC), sizes(&[size], DYNAMIC));
        format!("rhs group dimension is expected to have size={groups}, got {size}")
    })
}
