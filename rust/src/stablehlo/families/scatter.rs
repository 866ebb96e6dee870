//! Definition of scatters.

use super::reducer::{accumulators, check_reducer};
use crate::stablehlo::attribute_kinds::Kind;
use crate::stablehlo::compatible::{compatible_shapes, compatible_sizes};
use crate::stablehlo::constraint::{self as takes, Alternative, Constraint, Form};
use crate::stablehlo::definition::{
    many, one, optional, required, stablehlo, Definition, Family, Regions, NOTHING,
};
use crate::stablehlo::dim_checks::{all_in_bounds, distinct, in_bounds, is_unique, list};
use crate::stablehlo::dims::{self, IndexingDims};
use crate::stablehlo::element::Elements as E;
use crate::stablehlo::mistake::{ensure, Mistake};
use crate::stablehlo::result_types::ResultTypes;
use crate::stablehlo::types::{sizes, Size, Tensor, DYNAMIC};
use crate::stablehlo::view::OpView;

pub const FAMILIES: &[Family] = &[stablehlo(&["scatter"], SCATTER)];

const INDICES: Constraint = &[Alternative::Tensor(Form::Ranked, &[E::ANY_INTEGER, E::INDEX])];
const SCATTER: Definition = Definition {
    operands: &[many(takes::TENSOR), one(INDICES), many(takes::TENSOR)],
    results: &[many(takes::TENSOR)],
    attributes: &[
        required(
            "scatter_dimension_numbers",
            Kind::Of(
                "stablehlo",
                "scatter",
                "Attribute that models the dimension information for scatter",
            ),
        ),
        optional("indices_are_sorted", Kind::Bool),
        optional("unique_indices", Kind::Bool),
    ],
    regions: Regions::Named(&["update_computation"]),
    verify: Some(verify),
    infer: Some(infer),
    ..NOTHING
};

/// The number of inputs, which is also that of updates.
fn num_inputs(op: &OpView<'_>) -> usize {
    op.operands.len().saturating_sub(1) / 2
}

fn infer(op: &OpView<'_>) -> Result<ResultTypes, Mistake> {
    let inputs = op.operands(0..num_inputs(op))?;
    let elements = accumulators(op.region(0)?, &inputs);
    let results = inputs.iter().zip(elements);
    Ok(results.map(|(input, element)| input.with_element(element).into()).collect())
}

fn all_alike(tensors: &[&Tensor], what: &str) -> Result<(), Mistake> {
    let alike = |other: &&Tensor| compatible_shapes(&tensors[0].shape, &other.shape);
    ensure(tensors.iter().all(alike), || format!("Not all {what} have compatible shapes."))
}

fn verify(op: &OpView<'_>) -> Result<(), Mistake> {
    let count = num_inputs(op);
    let (inputs, indices) = (op.operands(0..count)?, op.operand(count)?);
    let updates = op.operands(count + 1..2 * count + 1)?;
    let numbers = op.attributes.value(dims::SCATTER.attribute).ok_or_else(Mistake::silent)?;
    let dims = IndexingDims::read(numbers, &dims::SCATTER).ok_or_else(Mistake::silent)?;
    all_alike(&inputs, "inputs")?;
    all_alike(&updates, "updates")?;
    let vector = dims.index_vector;
    in_bounds(vector, indices.rank(), "index_vector_dim", "rank-of('scatter_indices')", true)?;
    let init_values: Vec<Tensor> =
        updates.iter().map(|update| Tensor::scalar(update.element.clone())).collect();
    check_reducer(op.region(0)?, &inputs, &init_values.iter().collect::<Vec<_>>(), &[])?;
    let mut shape = indices.shape.clone();
    if vector == shape.len() as i64 {
        shape.push(Some(1));
    }
    let expected = shape.len() - 1 + dims.window.len();
    for update in &updates {
        let rank = update.rank();
        ensure(rank == expected, || {
            format!(
                "expects updates tensor must be of rank {expected} ( == rank-of('scatter_indices') \
                 - 1 + size-of('update_window_dims'), where 'scatter_indices' is expanded by a \
                 trailing 1 dimension if 'index_vector_dim' == rank-of('scatter_indices')), but got \
                 {rank}."
            )
        })?;
    }
    for (input, update) in inputs.iter().zip(&updates) {
        check_dims(input, &shape, update, &dims)?;
    }
    inputs.iter().zip(&updates).try_for_each(|(a, b)| check_update(a, &shape, b, &dims))
}

fn check_dims(
    input: &Tensor,
    indices: &[Size],
    update: &Tensor,
    dims: &IndexingDims<i64>,
) -> Result<(), Mistake> {
    let rank = input.rank();
    let window = dims.window.len() + dims.collapsed.len() + dims.input_batching.len();
    ensure(rank == window, || {
        format!(
            "Expects rank-of operand to match size-of('update_window_dims') + \
             size-of('inserted_window_dims') + size-of('input_batching_dims') i.e. {window} but got \
             {rank}."
        )
    })?;
    let sorted = |dims: &[i64], name: &str| {
        ensure(dims.is_sorted(), || format!("Expects {name} to be sorted; got: [{}].", list(dims)))
    };
    let unique = |dims: &[i64], name: &str| {
        ensure(is_unique(dims), || format!("Expects {name} to not repeat; got: [{}].", list(dims)))
    };
    sorted(&dims.window, "update_window_dims")?;
    unique(&dims.window, "update_window_dims")?;
    all_in_bounds(&dims.window, update.rank(), "update_window_dims", "rank-of('updates')")?;
    let (inserted, batching) = ("inserted_window_dims", "input_batching_dims");
    distinct(&dims.collapsed, &dims.input_batching, inserted, batching)?;
    sorted(&dims.collapsed, inserted)?;
    all_in_bounds(&dims.collapsed, rank, inserted, "rank-of('operand')")?;
    sorted(&dims.input_batching, batching)?;
    all_in_bounds(&dims.input_batching, rank, batching, "rank-of('operand')")?;
    let name = "scatter_indices_batching_dims";
    unique(&dims.indices_batching, name)?;
    all_in_bounds(&dims.indices_batching, indices.len(), name, "rank-of('scatter_indices')")?;
    check_batching(input, indices, dims)?;
    check_index_vector(indices, dims)?;
    let name = "scatter_dims_to_operand_dims";
    distinct(&dims.index_map, &dims.input_batching, name, batching)?;
    all_in_bounds(&dims.index_map, rank, name, "rank-of('operand')")
}

fn check_batching(
    input: &Tensor,
    indices: &[Size],
    dims: &IndexingDims<i64>,
) -> Result<(), Mistake> {
    let vector = dims.index_vector;
    ensure(!dims.indices_batching.contains(&vector), || {
        format!("expects scatter_indices_batching_dims not to include index_vector_dim {vector}.")
    })?;
    ensure(dims.input_batching.len() == dims.indices_batching.len(), || {
        "input_batching_dims and scatter_indices_batching_dims should have the same size."
            .to_owned()
    })?;
    for (at, (&a, &b)) in dims.input_batching.iter().zip(&dims.indices_batching).enumerate() {
        let (a, b) = (input.shape[a as usize], indices[b as usize]);
        ensure(compatible_sizes(a, b), || {
            let (a, b) = (sizes(&[a], DYNAMIC), sizes(&[b], DYNAMIC));
            format!(
                "input_batching_dims[{at}] and scatter_indices_batching_dims[{at}] must have \
                 compatible sizes, but got {a} and {b}."
            )
        })?;
    }
    Ok(())
}

fn check_index_vector(indices: &[Size], dims: &IndexingDims<i64>) -> Result<(), Mistake> {
    let (count, vector) = (dims.index_map.len(), dims.index_vector);
    let size = usize::try_from(vector).ok().and_then(|dim| indices.get(dim).copied()).flatten();
    ensure(size.is_none_or(|size| size == count as i64), || {
        let size = sizes(&[size], DYNAMIC);
        format!(
            "Scatter op has {count} elements in scatter_dims_to_operand_dims and the bound of \
             dimension index_vector_dim={vector} of scatter_indices is {size}. These two numbers \
             must be equal."
        )
    })
}

/// Checks the sizes of an update: window dims are at most as large as those of the input, scatter
/// dims have the sizes of the indices.
fn check_update(
    input: &Tensor,
    indices: &[Size],
    update: &Tensor,
    dims: &IndexingDims<i64>,
) -> Result<(), Mistake> {
    let is_left_out =
        |dim: i64| dims.collapsed.contains(&dim) || dims.input_batching.contains(&dim);
    let most = (0..input.rank()).filter(|&dim| !is_left_out(dim as i64));
    for (&dim, most) in dims.window.iter().zip(most.map(|dim| input.shape[dim])) {
        let size = update.shape[dim as usize];
        if let Some((size, most)) = size.zip(most) {
            ensure(size <= most, || {
                format!(
                    "expects bounds of the window dimensions of updates to not exceed the bounds of \
                     the corresponding dimensions of operand. For dimension {dim}, updates bound is \
                     {size}, operand bound is {most}."
                )
            })?;
        }
    }
    let of_indices = (0..indices.len()).filter(|&dim| dim as i64 != dims.index_vector);
    let of_update = (0..update.rank()).filter(|&dim| !dims.window.contains(&(dim as i64)));
    for (dim, from) in of_update.zip(of_indices) {
        let (size, expected) = (update.shape[dim], indices[from]);
        ensure(compatible_sizes(size, expected), || {
            let (size, expected) = (sizes(&[size], DYNAMIC), sizes(&[expected], DYNAMIC));
            format!(
                "expects bounds of the scatter dimensions of updates to be same as the bounds of the \
                 corresponding dimensions of scatter indices. For scatter dimension {dim}, updates \
                 bound is {size} , scatter_indices bound is {expected}."
            )
        })?;
    }
    Ok(())
}
