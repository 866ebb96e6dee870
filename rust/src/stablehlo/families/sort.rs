//! Definitions of sorting and top-k.

use crate::shardy::Change;
use crate::stablehlo::attribute_kinds::{Kind, I64};
use crate::stablehlo::constraint::{self as takes, Alternative, Constraint, Form};
use crate::stablehlo::definition::{
    chlo, many, one, optional, required, stablehlo, Definition, Family, Regions, NOTHING,
};
use crate::stablehlo::element::Element;
use crate::stablehlo::mistake::{bare, ensure, Mistake};
use crate::stablehlo::result_types::ResultTypes;
use crate::stablehlo::traits::Trait;
use crate::stablehlo::types::{Sizes, Tensor, ValueType};
use crate::stablehlo::view::OpView;

pub const FAMILIES: &[Family] = &[
    stablehlo(&["sort"], SORT),
    chlo(&["top_k"], TOP_K).since(Change::StableTopK, Some(&OLDER_TOP_K)),
];

const SORT: Definition = Definition {
    operands: &[many(takes::TENSOR)],
    results: &[many(takes::TENSOR)],
    attributes: &[optional("dimension", I64), optional("is_stable", Kind::Bool)],
    regions: Regions::Named(&["comparator"]),
    traits: &[Trait::SameShape],
    verify: Some(verify_sort),
    infer: Some(sort),
    ..NOTHING
};
const ANY_TENSOR: Constraint = &[Alternative::Tensor(Form::Any, takes::ALL_PER_AXIS)];
const TOP_K: Definition = Definition {
    operands: &[one(ANY_TENSOR)],
    results: &[one(ANY_TENSOR), one(ANY_TENSOR)],
    attributes: &[required("k", I64), optional("is_stable", Kind::Bool)],
    infer: Some(top_k),
    ..NOTHING
};
static OLDER_TOP_K: Definition = Definition { attributes: &[required("k", I64)], ..TOP_K };

fn sort(op: &OpView<'_>) -> Result<ResultTypes, Mistake> {
    let like = |operand: &Tensor| operand.clone().into();
    Ok(op.all_operands()?.into_iter().map(like).collect())
}

fn verify_sort(op: &OpView<'_>) -> Result<(), Mistake> {
    let operands = op.all_operands()?;
    if let Some(first) = operands.first() {
        let (rank, dim) = (first.rank() as i64, op.attributes.int("dimension").unwrap_or(-1));
        ensure((-rank..rank).contains(&dim), || {
            format!("dimension attribute value must be in range [-{rank}, {rank}), but found {dim}")
        })?;
    }
    let comparator = op.region(0)?;
    let count = 2 * operands.len();
    ensure(comparator.args.len() == count, || {
        format!("comparator block should have {count} arguments")
    })?;
    for (at, arg) in comparator.args.iter().enumerate() {
        let expected = ValueType::from(Tensor::scalar(operands[at / 2].element.clone()));
        ensure(**arg == expected, || {
            format!(
                "comparator block argument #{at} should be of type '{expected}' but got '{arg}'"
            )
        })?;
    }
    let count = comparator.returned.len();
    let [returned] = &comparator.returned[..] else {
        return Err(bare(format!("comparator must return single output but got {count}")));
    };
    ensure(**returned == Tensor::scalar(Element::BOOL).into(), || {
        format!("comparator must return tensor<i1> but got '{returned}'")
    })
}

fn top_k(op: &OpView<'_>) -> Result<ResultTypes, Mistake> {
    let k = op.attributes.int("k").unwrap_or(0);
    let operand = match op.operands.first().map(|ty| &**ty) {
        Some(ValueType::Tensor(operand)) => operand,
        Some(ValueType::Unranked(element)) => {
            let types = [element.clone(), Element::I32].map(ValueType::Unranked);
            return Ok(types.into_iter().collect());
        }
        _ => return Err(Mistake::silent()),
    };
    let Some((last, _)) = operand.shape.split_last() else {
        return Err(bare("operand's rank must be at least 1"));
    };
    ensure(last.is_none_or(|last| last >= k), || {
        format!("operand's last dimension must be at least {k}")
    })?;
    let mut shape = operand.shape.clone();
    let mut bounds = Sizes::of(operand.bounds());
    for (list, value) in [(&mut shape, Some(k)), (&mut bounds, None)] {
        if let Some(last) = list.last_mut() {
            *last = value;
        }
    }
    let values = operand.with_shape(shape, bounds);
    let indices = values.with_element(Element::I32);
    Ok([values, indices].into_iter().map(ValueType::Tensor).collect())
}
