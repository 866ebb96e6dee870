//! Compatibility of types: equality except for dynamic sizes.
//!
//! Source: `Base.cpp` of `StableHLO`, `verifyCompatibleShape` of MLIR.

use super::element::Element;
use super::mistake::{bare, Mistake};
use super::types::{Size, Sizes, Tensor, ValueType};
use std::borrow::Borrow;

/// Whether both may be the same size.
#[inline]
pub fn compatible_sizes(a: Size, b: Size) -> bool {
    a.is_none() || b.is_none() || a == b
}

/// Whether both may be the same shape.
#[inline]
pub fn compatible_shapes(a: &[Size], b: &[Size]) -> bool {
    a.len() == b.len() && (0..a.len()).all(|dim| compatible_sizes(a[dim], b[dim]))
}

/// Whether both are tensors or buffers of compatible shape, or neither is one and they are equal.
#[inline]
pub fn of_compatible_shape(a: &ValueType, b: &ValueType) -> bool {
    if let (ValueType::Tensor(a), ValueType::Tensor(b)) = (a, b) {
        return compatible_shapes(&a.shape, &b.shape);
    }
    are_of_compatible_shape(a, b)
}

/// [`of_compatible_shape`] for types that are not all ranked tensors.
fn are_of_compatible_shape(a: &ValueType, b: &ValueType) -> bool {
    match (a.element(), b.element()) {
        (None, None) => a == b,
        (Some(_), Some(_)) => match (a.shape(), b.shape()) {
            (Some(a), Some(b)) => compatible_shapes(a, b),
            _ => true,
        },
        _ => false,
    }
}

/// Whether element types are the same; a type without elements counts as its own element type.
#[inline]
pub fn of_same_element(a: &ValueType, b: &ValueType) -> bool {
    if let (ValueType::Tensor(a), ValueType::Tensor(b)) = (a, b) {
        return a.element == b.element;
    }
    are_of_same_element(a, b)
}

/// [`of_same_element`] for types that are not all ranked tensors.
fn are_of_same_element(a: &ValueType, b: &ValueType) -> bool {
    match (a.element(), b.element()) {
        (Some(a), Some(b)) => a == b,
        (None, None) => a == b,
        (Some(element), None) => element.to_string() == b.to_string(),
        (None, Some(element)) => element.to_string() == a.to_string(),
    }
}

/// Whether types are compatible.
pub fn compatible(a: &ValueType, b: &ValueType) -> bool {
    if let (ValueType::Tensor(a), ValueType::Tensor(b)) = (a, b) {
        if a.encoding.is_none() && b.encoding.is_none() && a.element == b.element {
            return compatible_shapes(&a.shape, &b.shape);
        }
    }
    if a.element().is_some() && b.element().is_some() && !of_compatible_shape(a, b) {
        return false;
    }
    let within = |tensor: &Tensor, bounds: &[Size]| {
        let pairs = tensor.shape.iter().zip(bounds);
        pairs.into_iter().all(|(size, bound)| !matches!((size, bound), (Some(s), Some(b)) if b < s))
    };
    if let (ValueType::Tensor(a), ValueType::Tensor(b)) = (a, b) {
        if !within(a, b.bounds()) || !within(b, a.bounds()) {
            return false;
        }
    }
    of_same_element(a, b)
}

/// Whether lists of types are compatible.
pub fn all_compatible(a: &[impl Borrow<ValueType>], b: &[&ValueType]) -> bool {
    a.len() == b.len() && (0..a.len()).all(|at| compatible(a[at].borrow(), b[at]))
}

/// Whether element types are the same, or both are floats.
pub fn same_elements_or_floats(a: &Element, b: &Element) -> bool {
    a == b || (a.is_float() && b.is_float())
}

/// Whether types have compatible shapes and equal element types.
pub fn same_but_for_unknown_sizes(a: &ValueType, b: &ValueType) -> bool {
    of_compatible_shape(a, b) && a.element().is_some() && a.element() == b.element()
}

/// Whether types have compatible shapes and equal element types except for the precision of floats.
pub fn same_but_for_precision(a: &ValueType, b: &ValueType) -> bool {
    of_compatible_shape(a, b)
        && a.element().zip(b.element()).is_some_and(|(a, b)| same_elements_or_floats(a, b))
}

/// Whether an element of type `from` can be promoted to type `to`: integers and complex numbers to
/// at least as many bits, floats to floats of any precision.
pub fn is_promotable(from: &Element, to: &Element) -> bool {
    match (from, to) {
        (Element::Integer { .. }, Element::Integer { .. })
        | (Element::Complex(_), Element::Complex(_)) => from.bits() <= to.bits(),
        _ => from.is_foreign() || to.is_foreign() || from.is_float() && to.is_float(),
    }
}

/// The size of a dim and its bound.
type Bounded = (Size, Size);

fn mismatch(dim: usize, left: i64, right: i64) -> Mistake {
    bare(format!("Mismatched dimension sizes {left} and {right} in dimension {dim}"))
}

/// Merges the sizes and bounds of a dim that satisfies both `left` and `right`.
pub fn most_specific_size(dim: usize, left: Bounded, right: Bounded) -> Result<Bounded, Mistake> {
    let ((left, left_bound), (right, right_bound)) = (left, right);
    let bound = left_bound.or(right_bound);
    match (left, right) {
        (Some(left), Some(right)) if left != right => Err(mismatch(dim, left, right)),
        (Some(size), _) | (_, Some(size)) => match bound {
            Some(bound) if size > bound => Err(bare(format!(
                "Mismatched dimension size {size} and bound {bound} in dimension {dim}"
            ))),
            _ => Ok((Some(size), None)),
        },
        (None, None) => Ok((None, left_bound.zip(right_bound).map(|(a, b)| a.min(b)).or(bound))),
    }
}

/// Merges the sizes and bounds of a dim that satisfies `left` or `right`.
pub fn least_specific_size(dim: usize, left: Bounded, right: Bounded) -> Result<Bounded, Mistake> {
    let bound = match (left, right) {
        ((Some(left), _), (Some(right), _)) if left != right => {
            return Err(mismatch(dim, left, right));
        }
        ((Some(size), _), (Some(_), _)) => return Ok((Some(size), None)),
        ((Some(size), _), (None, bound)) | ((None, bound), (Some(size), _)) => {
            bound.map(|bound| bound.max(size))
        }
        ((None, left), (None, right)) => left.zip(right).map(|(a, b)| a.max(b)),
    };
    Ok((None, bound))
}

type Merge = fn(usize, Bounded, Bounded) -> Result<Bounded, Mistake>;

/// Merges tensor types of one rank.
fn merged_tensors(tensors: &[&Tensor], merge: Merge) -> Result<Tensor, Mistake> {
    let Some((first, others)) = tensors.split_first() else { return Err(Mistake::silent()) };
    let mut merged = (*first).clone();
    let has_bounds = tensors.iter().any(|tensor| !tensor.bounds().is_empty());
    for other in others {
        if other.rank() != merged.rank() {
            let (a, b) = (first.rank(), other.rank());
            return Err(bare(format!("Mismatched ranks of types{a} vs {b}")));
        }
        if !has_bounds && other.shape == merged.shape {
            continue;
        }
        let bounded = |tensor: &Tensor, dim: usize| (tensor.shape[dim], tensor.bound(dim));
        let sizes: Result<Vec<Bounded>, Mistake> = (0..merged.rank())
            .map(|dim| merge(dim, bounded(&merged, dim), bounded(other, dim)))
            .collect();
        let (shape, bounds) = sizes?.into_iter().unzip();
        merged = first.with_shape(shape, if has_bounds { bounds } else { Sizes::new() });
    }
    Ok(merged)
}

/// The first of `types` if all are tensors of its shape without encodings, so that merging gives
/// that type.
fn common_tensor<'t>(types: &[&'t ValueType]) -> Option<&'t Tensor> {
    let (first, others) = types.split_first()?;
    let first = first.tensor().filter(|first| first.encoding.is_none())?;
    for other in others {
        let other = other.tensor()?;
        if other.encoding.is_some() || !std::ptr::eq(first, other) && first.shape != other.shape {
            return None;
        }
    }
    Some(first)
}

/// The most specific type compatible with all of `types`: each size is that of the first type in
/// which it is static.
pub fn most_specific(types: &[&ValueType]) -> Result<ValueType, Mistake> {
    if let Some(first) = common_tensor(types) {
        return Ok(ValueType::Tensor(first.clone()));
    }
    merged(types, &|types| {
        let tensors: Vec<&Tensor> = types.iter().filter_map(|ty| ty.tensor()).collect();
        match types.first() {
            Some(first) if tensors.is_empty() => Ok((*first).clone()),
            _ => merged_tensors(&tensors, most_specific_size).map(ValueType::Tensor),
        }
    })
}

/// The least specific type: a size is static only if it is the same in all of `types`.
pub fn least_specific(types: &[&ValueType]) -> Result<ValueType, Mistake> {
    if let Some(first) = common_tensor(types) {
        return Ok(ValueType::Tensor(first.clone()));
    }
    merged(types, &|types| {
        if let Some(other) = types.iter().find(|ty| ty.tensor().is_none()) {
            return Ok((*other).clone());
        }
        let tensors: Vec<&Tensor> = types.iter().filter_map(|ty| ty.tensor()).collect();
        merged_tensors(&tensors, least_specific_size).map(ValueType::Tensor)
    })
}

type MergeTypes<'m> = &'m dyn Fn(&[&ValueType]) -> Result<ValueType, Mistake>;

/// Merges types, tuples element by element.
fn merged<'t>(types: &[&'t ValueType], merge: MergeTypes<'_>) -> Result<ValueType, Mistake> {
    let elements = |&ty: &&'t ValueType| match ty {
        ValueType::Tuple(elements) => Some(elements),
        _ => None,
    };
    let tuples: Vec<&Vec<ValueType>> = types.iter().filter_map(elements).collect();
    let Some(first) = tuples.first() else { return merge(types) };
    if tuples.len() != types.len() {
        let message =
            "Mismatched type kinds: either all types must be tuples, or no types must be \
                       tuples";
        return Err(bare(message.to_owned()));
    }
    if tuples.iter().any(|tuple| tuple.len() != first.len()) {
        let message = "Mismatched tuple sizes: all tuple sizes must be the same";
        return Err(bare(message.to_owned()));
    }
    let element = |at: usize| {
        let types: Vec<&ValueType> = tuples.iter().map(|tuple| &tuple[at]).collect();
        merge(&types)
    };
    (0..first.len()).map(element).collect::<Result<_, _>>().map(ValueType::Tuple)
}
