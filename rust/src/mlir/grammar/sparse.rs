//! Checks the indices and values of `sparse<...>` against its type.

use super::literal::{problem, Found, ShapedType};
use super::number::Number;
use crate::error::{Result, Span};
use crate::ir::joined;
use crate::mlir::cursor::syntax;

/// Checks that the type at `ty` can have the indices and values at `span`; `None` for empty lists.
pub(super) fn check_sparse(
    text: &str,
    found: Option<&(Found<'_>, Found<'_>)>,
    span: Span,
    ty: Span,
) -> Result<()> {
    let Some(ty) = ShapedType::read(text, span, ty)? else { return Ok(()) };
    let Some((indices, values)) = found else { return Ok(()) };
    let (at, problem) = match elements_problem(text, indices, values, &ty) {
        Some(found) => found,
        None => match shape_problem(indices, values, &ty) {
            Some(problem) => (None, problem),
            None => return Ok(()),
        },
    };
    Err(syntax(at.unwrap_or(span), problem).into())
}

/// The shape of the indices: a number for each dim or, for tensors of one dim, for each element. A
/// single number is used for all dims of one index.
fn shape_of_indices(indices: &Found<'_>, rank: usize) -> Vec<usize> {
    if indices.shape.is_empty() {
        vec![1, rank]
    } else {
        indices.shape.clone()
    }
}

/// The shape of the values; a single value is used for all indices.
fn shape_of_values(values: &Found<'_>, num_indices: usize) -> Vec<usize> {
    if values.shape.is_empty() {
        vec![num_indices]
    } else {
        values.shape.clone()
    }
}

/// The error message for an index or value that is wrong by itself, with its span if it is about
/// one of them.
fn elements_problem(
    text: &str,
    indices: &Found<'_>,
    values: &Found<'_>,
    ty: &ShapedType,
) -> Option<(Option<Span>, String)> {
    if let Some((at, problem)) = indices.wrong_element(text, "i64") {
        return Some((Some(at), problem));
    }
    let num_indices = shape_of_indices(indices, ty.shape.len())[0];
    let shape: Vec<i64> =
        shape_of_values(values, num_indices).into_iter().map(|size| size as i64).collect();
    let of_values = format!("tensor<{}x{}>", x_joined(&shape), ty.element);
    problem((text, Some(values)), &shape, &ty.element, &of_values)
}

/// `2x3`
fn x_joined(shape: &[i64]) -> String {
    shape.iter().map(i64::to_string).collect::<Vec<_>>().join("x")
}

/// The error message if the shapes of indices and values do not fit, or an index is out of bounds.
fn shape_problem(indices: &Found<'_>, values: &Found<'_>, ty: &ShapedType) -> Option<String> {
    let rank = ty.shape.len();
    let of_indices = shape_of_indices(indices, rank);
    let of_values = shape_of_values(values, of_indices[0]);
    let [num_values] = of_values[..] else {
        return Some("expected 1-d tensor for sparse element values".to_owned());
    };
    let is_right = match of_indices[..] {
        [_, components] => components == rank,
        [_] => rank == 1,
        _ => false,
    };
    if !is_right || num_values != of_indices[0] {
        let (ty, indices) = (joined(&ty.shape), joined(&of_indices));
        let values = joined(&of_values);
        return Some(format!(
            "expected shape ([{ty}]); inferred shape of indices literal ([{indices}]); inferred \
             shape of values literal ([{values}])"
        ));
    }
    let all: Vec<i128> = indices.all.iter().flatten().map(|number| value(*number)).collect();
    let is_splat = all.windows(2).all(|pair| pair[0] == pair[1]);
    let repeated = all.first().map(|&index| vec![index; rank]);
    let mut each: Vec<&[i128]> = all.chunks_exact(rank.max(1)).collect();
    if let Some(repeated) = repeated.as_ref().filter(|_| is_splat) {
        each = vec![repeated];
    }
    let is_inside = |index: &[i128]| {
        index.iter().zip(&ty.shape).all(|(at, &size)| (0..i128::from(size)).contains(at))
    };
    let number = each.iter().position(|index| !is_inside(index))?;
    // MLIR prints indices as unsigned numbers.
    let index: Vec<u64> = each[number].iter().map(|&at| at as u64).collect();
    let (index, name) = (joined(&index), &ty.name);
    Some(format!(
        "sparse index #{number} is not contained within the value shape, with index=[{index}], and \
         type='{name}'"
    ))
}

fn value(number: Number) -> i128 {
    match number {
        Number::Integer(is_negative, value) | Number::Hex(is_negative, value) => {
            let value = i128::try_from(value).unwrap_or(i128::MAX);
            if is_negative {
                -value
            } else {
                value
            }
        }
        Number::Float(_) => -1,
    }
}
