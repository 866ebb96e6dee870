//! Type constraints on operands and results, with MLIR's description of them.

use super::element::{Element, Elements};
use super::types::{Tensor, ValueType};

/// One alternative of a [`Constraint`].
#[derive(Clone, Copy, Debug)]
pub enum Alternative {
    /// A tensor of this form with one of these element types.
    Tensor(Form, &'static [Elements]),
    /// A buffer with one of these element types.
    Buffer(&'static [Elements]),
    /// A token.
    Token,
    /// A future.
    Future,
    /// A tuple of these alternatives, or of nested tuples of them.
    Tuple(&'static [Alternative]),
}

/// A constraint on the dims of a tensor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Form {
    /// Any tensor, ranked or not.
    Any,
    /// A ranked tensor.
    Ranked,
    /// A tensor without dims.
    Scalar,
    /// A tensor with one dim.
    Vector,
    /// A static tensor.
    Static,
    /// A static tensor, or one with a single dynamic dim, which has a bound.
    StaticOrBounded,
    /// A static tensor with one dim.
    StaticVector,
    /// A static tensor with one dim and integer elements.
    StaticIntegerVector,
    /// A static tensor with two dims and integer elements.
    StaticIntegerMatrix,
}

impl Form {
    const fn name(self) -> &'static str {
        match self {
            Self::Any => "tensor",
            Self::Ranked => "ranked tensor",
            Self::Scalar => "0D tensor",
            Self::Vector => "1D tensor",
            Self::Static => "statically shaped tensor",
            Self::StaticOrBounded => "statically shaped or single bounded dimension tensor",
            Self::StaticVector => "statically shaped 1-dimensional tensor",
            Self::StaticIntegerVector => "statically shaped 1-dimensional integer tensor",
            Self::StaticIntegerMatrix => "statically shaped 2-dimensional integer tensor",
        }
    }
    #[inline]
    fn admits(self, tensor: &Tensor) -> bool {
        match self {
            Self::Any | Self::Ranked => true,
            Self::Scalar => tensor.rank() == 0,
            Self::Vector => tensor.rank() == 1,
            Self::Static => tensor.is_static(),
            Self::StaticOrBounded => tensor.is_static() || tensor.has_single_bound(),
            Self::StaticVector | Self::StaticIntegerVector => {
                tensor.rank() == 1 && tensor.is_static()
            }
            Self::StaticIntegerMatrix => tensor.rank() == 2 && tensor.is_static(),
        }
    }
}

/// The types that a value may have: those of any alternative.
pub type Constraint = &'static [Alternative];

/// Whether `ty` satisfies `constraint`.
#[inline]
pub fn admits(constraint: &[Alternative], ty: &ValueType) -> bool {
    // Most values are tensors, and most constraints begin with a tensor alternative.
    if let ([Alternative::Tensor(form, sets), ..], ValueType::Tensor(tensor)) = (constraint, ty) {
        if is_in(sets, &tensor.element) && form.admits(tensor) {
            return true;
        }
    }
    constraint.iter().any(|alternative| alternative.admits(ty))
}

/// Whether `element` is in one of `sets`.
#[inline]
fn is_in(sets: &[Elements], element: &Element) -> bool {
    let element = element.sets();
    for set in sets {
        if set.meets(element) {
            return true;
        }
    }
    false
}

impl Alternative {
    fn admits(&self, ty: &ValueType) -> bool {
        match (self, ty) {
            (Self::Tensor(form, sets), ValueType::Tensor(tensor)) => {
                is_in(sets, &tensor.element) && form.admits(tensor)
            }
            (Self::Tensor(Form::Any, sets), ValueType::Unranked(element)) => is_in(sets, element),
            (Self::Buffer(sets), ValueType::Buffer(tensor, _)) => is_in(sets, &tensor.element),
            (Self::Tuple(inner), ValueType::Tuple(types)) => {
                types.iter().all(|ty| self.admits(ty) || admits(inner, ty))
            }
            (Self::Token, ValueType::Token) | (Self::Future, ValueType::Future(_)) => true,
            // Constraints that admit more than tensors also admit types of dialects that
            // `StableHLO` does not know.
            (Self::Token, ValueType::Other(_)) => ty.is_foreign(),
            _ => false,
        }
    }
    fn name(&self) -> String {
        let values = |what: &str, sets: &[Elements]| {
            let sets: Vec<&str> = sets.iter().map(|set| set.name()).collect();
            format!("{what} of {} values", sets.join(" or "))
        };
        match self {
            Self::Tensor(form, sets) => values(form.name(), sets),
            Self::Buffer(sets) => values("memref", sets),
            Self::Token => "token".to_owned(),
            Self::Future => "future".to_owned(),
            Self::Tuple(inner) => {
                format!("nested tuple with any combination of {} values", name(inner))
            }
        }
    }
}

/// MLIR's name for the types of `constraint`.
pub fn name(constraint: &[Alternative]) -> String {
    constraint.iter().map(Alternative::name).collect::<Vec<_>>().join(" or ")
}

use Alternative::{Buffer, Future, Token, Tuple};
use Elements as E;

const fn ranked(sets: &'static [Elements]) -> Alternative {
    Alternative::Tensor(Form::Ranked, sets)
}

/// All element types except per-axis quantized ones.
pub const ALL: &[Elements] = &[E::FLOAT, E::BOOL, E::INTEGER, E::COMPLEX, E::QUANTIZED];
/// All element types, including per-axis quantized ones.
pub const ALL_PER_AXIS: &[Elements] =
    &[E::FLOAT, E::BOOL, E::INTEGER, E::COMPLEX, E::QUANTIZED, E::PER_AXIS];

/// Tensors of any elements except per-axis quantized ones.
pub const TENSOR: Constraint = &[ranked(ALL)];
/// Tensors of any elements.
pub const PER_AXIS_TENSOR: Constraint = &[ranked(ALL_PER_AXIS)];
/// Tensors of booleans.
pub const BOOL: Constraint = &[ranked(&[E::BOOL])];
/// Tensors of integers.
pub const INTEGER: Constraint = &[ranked(&[E::INTEGER])];
/// Tensors of integers and floats.
pub const INTEGER_OR_FLOAT: Constraint = &[ranked(&[E::INTEGER, E::FLOAT])];
/// Tensors of booleans and integers.
pub const BOOL_OR_INTEGER: Constraint = &[ranked(&[E::BOOL, E::INTEGER])];
/// Tensors of floats.
pub const FLOAT: Constraint = &[ranked(&[E::FLOAT])];
/// Tensors of floats and complex numbers.
pub const FLOAT_OR_COMPLEX: Constraint = &[ranked(&[E::FLOAT, E::COMPLEX])];
/// Tensors of floats and quantized integers.
pub const FLOAT_OR_QUANTIZED: Constraint = &[ranked(&[E::FLOAT, E::QUANTIZED])];
/// Tensors of floats, complex numbers and quantized integers.
pub const ANALYTIC: Constraint = &[ranked(&[E::FLOAT, E::COMPLEX, E::QUANTIZED])];
/// Tensors of numbers.
pub const NUMBER: Constraint = &[ranked(&[E::INTEGER, E::FLOAT, E::COMPLEX, E::QUANTIZED])];
/// Tensors of `i32`.
pub const I32: Constraint = &[ranked(&[E::I32])];
/// Tensors of `ui32`.
pub const UI32: Constraint = &[ranked(&[E::UI32])];
/// Tokens.
pub const TOKEN: Constraint = &[Token];
/// Futures.
pub const FUTURE: Constraint = &[Future];
/// Tensors and tokens.
pub const TENSOR_OR_TOKEN: Constraint = &[ranked(ALL), Token];
/// Tensors of any elements, and tokens.
pub const PER_AXIS_OR_TOKEN: Constraint = &[ranked(ALL), ranked(&[E::PER_AXIS]), Token];
/// Tensors, including per-axis quantized ones, tokens and buffers.
pub const PER_AXIS_TOKEN_OR_BUFFER: Constraint =
    &[ranked(ALL), ranked(&[E::PER_AXIS]), Token, Buffer(ALL)];
const IN_TUPLES: Constraint = &[ranked(ALL), Buffer(ALL), ranked(&[E::PER_AXIS]), Token];
/// Tuples.
pub const TUPLE: Constraint = &[Tuple(IN_TUPLES)];
/// The elements of tuples.
pub const IN_TUPLE: Constraint =
    &[ranked(ALL), ranked(&[E::PER_AXIS]), Token, Tuple(IN_TUPLES), Buffer(ALL)];
/// Operands and results of composites.
pub const IN_COMPOSITE: Constraint =
    &[ranked(ALL), ranked(&[E::PER_AXIS]), Token, Tuple(IN_TUPLES)];
const ANY_TENSOR: Alternative = Alternative::Tensor(Form::Any, ALL_PER_AXIS);
/// Operands and results of custom calls.
pub const IN_CUSTOM_CALL: Constraint =
    &[ANY_TENSOR, Buffer(ALL), Token, Tuple(&[ANY_TENSOR, Buffer(ALL), Token]), Future];
/// Results of `infeed` and `recv`.
pub const RECEIVED: Constraint = &[
    Alternative::Tensor(Form::Static, ALL),
    Alternative::Tensor(Form::Static, ALL_PER_AXIS),
    Token,
];
