//! Definitions of linear algebra, Fourier transforms and random numbers.

use crate::stablehlo::attribute_kinds::{Kind, I64};
use crate::stablehlo::compatible::{compatible_shapes, compatible_sizes};
use crate::stablehlo::constraint::{self as takes, Alternative, Constraint, Form};
use crate::stablehlo::definition::{
    one, optional, required, stablehlo, Definition, Family, NOTHING,
};
use crate::stablehlo::dim_checks::list;
use crate::stablehlo::element::{Element, Elements as E, Float};
use crate::stablehlo::mistake::{bare, ensure, Mistake};
use crate::stablehlo::result_types::ResultTypes;
use crate::stablehlo::traits::{Trait, RESULT};
use crate::stablehlo::types::{sizes, Size, Sizes, Tensor, DYNAMIC};
use crate::stablehlo::view::OpView;

pub const FAMILIES: &[Family] = &[
    stablehlo(&["cholesky"], CHOLESKY),
    stablehlo(&["triangular_solve"], TRIANGULAR_SOLVE),
    stablehlo(&["fft"], FFT),
    stablehlo(&["rng"], RNG),
    stablehlo(&["rng_bit_generator"], RNG_BIT_GENERATOR),
    stablehlo(&["torch_index_select"], TORCH_INDEX_SELECT),
];

const CHOLESKY: Definition = Definition {
    operands: &[one(takes::ANALYTIC)],
    results: &[one(takes::ANALYTIC)],
    attributes: &[optional("lower", Kind::Bool)],
    traits: &[Trait::CompatibleElements],
    infer: Some(cholesky),
    ..NOTHING
};
const TRIANGULAR_SOLVE: Definition = Definition {
    operands: &[one(takes::FLOAT_OR_COMPLEX), one(takes::FLOAT_OR_COMPLEX)],
    results: &[one(takes::FLOAT_OR_COMPLEX)],
    attributes: &[
        required("left_side", Kind::Bool),
        required("lower", Kind::Bool),
        required("unit_diagonal", Kind::Bool),
        required("transpose_a", Kind::Of("stablehlo", "transpose", "Transpose options")),
    ],
    traits: &[Trait::CompatibleElements],
    infer: Some(triangular_solve),
    ..NOTHING
};
const FFT: Definition = Definition {
    operands: &[one(takes::FLOAT_OR_COMPLEX)],
    results: &[one(takes::FLOAT_OR_COMPLEX)],
    attributes: &[
        required("fft_type", Kind::Of("stablehlo", "fft_type", "XLA fast fourier transform type.")),
        required("fft_length", Kind::I64Array),
    ],
    infer: Some(fft),
    ..NOTHING
};
const SCALAR: Constraint = &[Alternative::Tensor(Form::Scalar, &[E::BOOL, E::INTEGER, E::FLOAT])];
/// Vectors with the sizes of a tensor's dims.
pub const SIZES: Constraint = &[Alternative::Tensor(Form::StaticVector, &[E::INDEX, E::INTEGER])];
const RNG: Definition = Definition {
    operands: &[one(SCALAR), one(SCALAR), one(SIZES)],
    results: &[one(&[Alternative::Tensor(Form::Ranked, &[E::BOOL, E::INTEGER, E::FLOAT])])],
    attributes: &[required(
        "rng_distribution",
        Kind::Of("stablehlo", "rng_distribution", "XLA PRNG distribution to be used."),
    )],
    traits: &[Trait::SameElementsOf(&[0, 1, RESULT], "a, b, result")],
    infer: Some(rng),
    looks_around: true,
    ..NOTHING
};
const RNG_BIT_GENERATOR: Definition = Definition {
    operands: &[one(takes::INTEGER_OR_FLOAT)],
    results: &[
        one(takes::INTEGER_OR_FLOAT),
        one(&[Alternative::Tensor(Form::Static, &[E::INTEGER, E::FLOAT])]),
    ],
    attributes: &[required(
        "rng_algorithm",
        Kind::Of("stablehlo", "rng_algorithm", "XLA PRNG algorithm to be used."),
    )],
    verify: Some(verify_rng_bit_generator),
    ..NOTHING
};
const TORCH_INDEX_SELECT: Definition = Definition {
    operands: &[one(takes::TENSOR), one(takes::TENSOR)],
    results: &[one(takes::TENSOR)],
    attributes: &[required("dim", I64), required("batch_dims", I64)],
    ..NOTHING
};

fn cholesky(op: &OpView<'_>) -> Result<ResultTypes, Mistake> {
    let operand = op.operand(0)?;
    let shape = || sizes(&operand.shape, DYNAMIC);
    let [.., rows, columns] = operand.shape[..] else {
        return Err(bare(format!("argument 'a' must have rank >= 2, got shape {}.", shape())));
    };
    ensure(compatible_sizes(rows, columns), || {
        format!("minor dimensions of 'a' must have equal size, got shape {}.", shape())
    })?;
    Ok(operand.clone().into())
}

fn triangular_solve(op: &OpView<'_>) -> Result<ResultTypes, Mistake> {
    let (a, b) = (op.operand(0)?, op.operand(1)?);
    let [ref a_batch @ .., rows, columns] = a.shape[..] else {
        return Err(bare(format!("operand 'a' must have rank >= 2, but got '{a}'")));
    };
    ensure(compatible_sizes(rows, columns), || {
        format!("two minor dimensions of operand 'a' must be compatible, but got '{a}'")
    })?;
    let [ref b_batch @ .., b_rows, b_columns] = b.shape[..] else {
        return Err(bare(format!("operands must have equal rank, but got '{a}' and '{b}'")));
    };
    ensure(a.rank() == b.rank(), || {
        format!("operands must have equal rank, but got '{a}' and '{b}'")
    })?;
    let shared = if op.attributes.is_true("left_side") { b_rows } else { b_columns };
    ensure(compatible_sizes(columns, shared), || {
        format!(
            "shared dimension of operands 'a' and 'b' must be compatible, but got '{a}' and '{b}'"
        )
    })?;
    ensure(compatible_shapes(a_batch, b_batch), || {
        format!("batch dimensions of the operands must be compatible, but got '{a}' and '{b}'")
    })?;
    ensure(op.attributes.word("transpose_a") != Some("TRANSPOSE_INVALID"), || {
        "Invalid transpose option value for triangular solve".to_owned()
    })?;
    Ok(b.clone().into())
}

fn fft(op: &OpView<'_>) -> Result<ResultTypes, Mistake> {
    let operand = op.operand(0)?;
    let kind = op.attributes.word("fft_type").unwrap_or_default();
    let length = op.attributes.ints("fft_length");
    let count = length.len();
    ensure((1..=3).contains(&count), || format!("rank must be between 1 and 3, but got {count}."))?;
    let element = &operand.element;
    let result = if kind == "RFFT" {
        ensure(matches!(element, Element::Float(Float::F32 | Float::F64)), || {
            format!("RFFT requires f32 or f64 input type, but is given '{element}'.")
        })?;
        element.clone().into_complex()
    } else {
        ensure(matches!(element, Element::Complex(_)), || {
            format!("FFT/IFFT/IRFFT take a complex tensor as input, but is given '{operand}'.")
        })?;
        if kind == "IRFFT" {
            element.real_part().clone()
        } else {
            element.clone()
        }
    };
    let rank = operand.rank();
    ensure(rank >= count, || {
        format!(
            "operand rank must not be less than fft rank of {count} for operand of type '{operand}'."
        )
    })?;
    let mut shape = operand.shape.clone();
    let inner = &operand.shape[rank - count..];
    let last_length = length[count - 1];
    match kind {
        "RFFT" => {
            check_lengths(operand, inner, length, "RFFT requires innermost dimensions", false)?;
            if last_length != 0 {
                shape[rank - 1] = Some(last_length / 2 + 1);
            }
        }
        "IRFFT" => {
            let inner = &inner[..count - 1];
            check_lengths(operand, inner, length, "IRFFT requires non-final dimensions", true)?;
            let last = operand.shape[rank - 1];
            let is_empty = compatible_sizes(last, Some(0)) && last_length == 0;
            ensure(is_empty || compatible_sizes(last, Some(last_length / 2 + 1)), || {
                let (last, length) = (sizes(&[last], DYNAMIC), list(length));
                format!(
                    "IRFFT requires innermost dimension to be compatible with fft_length[-1]/2+1. \
                     Got: {last} but fft_length is {length}."
                )
            })?;
            shape[rank - 1] = Some(last_length);
        }
        _ => {}
    }
    let mut bounds = Sizes::of(operand.bounds());
    if let Some(last) = bounds.last_mut().filter(|_| kind.ends_with("RFFT")) {
        *last = None;
    }
    Ok(operand.with_element(result).with_shape(shape, bounds).into())
}

/// Checks the dims of an FFT against its lengths.
fn check_lengths(
    operand: &Tensor,
    dims: &[Size],
    length: &[i64],
    says: &str,
    names_dims: bool,
) -> Result<(), Mistake> {
    let mut pairs = dims.iter().zip(length);
    let Some((&dim, wanted)) = pairs.find(|(&dim, &size)| !compatible_sizes(dim, Some(size)))
    else {
        return Ok(());
    };
    let (shape, all) = (sizes(&operand.shape, DYNAMIC), list(length));
    let dim = sizes(&[dim], DYNAMIC);
    let detail = if names_dims { format!(", and {dim} != {wanted}") } else { String::new() };
    Err(bare(format!(
        "{says} to be compatible with fft_length. Got: {shape} but wanted {all}{detail}."
    )))
}

fn rng(op: &OpView<'_>) -> Result<ResultTypes, Mistake> {
    let (a, b) = (op.operand(0)?, op.operand(1)?);
    let is_uniform = op.attributes.word("rng_distribution") == Some("UNIFORM");
    ensure(is_uniform || (a.element.is_float() && b.element.is_float()), || {
        "mu and sigma must be floats".to_owned()
    })?;
    let count = op.operand(2)?.shape.first().copied().flatten().unwrap_or(0);
    let shape = match (op.constants)(2) {
        Some(sizes) => sizes.into_iter().map(Some).collect(),
        None => Sizes::repeat(None, usize::try_from(count).unwrap_or(0).min(MAX_RANK)),
    };
    Ok(Tensor::new(shape, b.element.clone()).into())
}

/// Shapes with more dims than this are not inferred.
const MAX_RANK: usize = 1 << 12;

fn verify_rng_bit_generator(op: &OpView<'_>) -> Result<(), Mistake> {
    let (before, after) = (op.operand(0)?, op.result(0)?);
    ensure(compatible_shapes(&before.shape, &after.shape), || {
        format!(
            "output state shape must be compatible with initial state shape. Got: '{before}' and \
             '{after}'"
        )
    })
}
