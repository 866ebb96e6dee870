//! Traits: relations between the types of an op that are common to many ops.

use super::compatible::{compatible, compatible_shapes, of_compatible_shape, of_same_element};
use super::mistake::{of_op, Mistake};
use super::types::ValueType;
use super::view::OpView;

/// The index that means the first result in a list of operand indices.
pub const RESULT: usize = usize::MAX;

/// A relation between the types of an op.
#[derive(Clone, Copy, Debug)]
pub enum Trait {
    /// Operands and results have compatible shapes.
    SameShape,
    /// Operands and results have the same element type.
    SameElements,
    /// Operands have the same element type.
    SameOperandElements,
    /// Operands and results have compatible element types.
    CompatibleElements,
    /// Operands have compatible element types.
    CompatibleOperandElements,
    /// Operands and results have compatible types.
    CompatibleTypes,
    /// The `i`-th result has the type of the `i`-th operand.
    PairwiseTypes,
    /// The `i`-th result has the element type of the `i`-th operand.
    PairwiseElements,
    /// The op is elementwise.
    Elementwise,
    /// These operands, of which the last may be [`RESULT`], have the same element type; with their
    /// names as in MLIR's messages.
    SameElementsOf(&'static [usize], &'static str),
    /// These operands have the same type.
    SameTypesOf(&'static [usize], &'static str),
    /// These values have the same rank.
    SameRanksOf(&'static [usize], &'static str),
    /// These attributes are lists of equal length.
    SameSizesOf(&'static [&'static str]),
}

impl Trait {
    /// Whether it may depend on the sizes of dims, given the rank and the element type of each
    /// tensor.
    pub const fn is_of_sizes(self) -> bool {
        matches!(
            self,
            Self::SameShape
                | Self::CompatibleTypes
                | Self::PairwiseTypes
                | Self::Elementwise
                | Self::SameTypesOf(..)
        )
    }
    /// Whether it is a relation between attributes only.
    pub const fn is_of_attributes(self) -> bool {
        matches!(self, Self::SameSizesOf(_))
    }
    /// Checks that it holds for `op`.
    pub fn check(self, op: &OpView<'_>) -> Result<(), Mistake> {
        if self.holds_for_tensors(op) {
            return Ok(());
        }
        self.check_each(op)
    }
    /// A fast check for the usual case: whether there are operands and results, all are ranked
    /// tensors, and each has this relation to the first operand.
    #[inline]
    fn holds_for_tensors(self, op: &OpView<'_>) -> bool {
        let is_of_tensors = matches!(
            self,
            Self::SameShape
                | Self::Elementwise
                | Self::SameElements
                | Self::CompatibleElements
                | Self::CompatibleTypes
        );
        let ([first, ..], [_, ..], true) = (op.operands, op.results, is_of_tensors) else {
            return false;
        };
        let ValueType::Tensor(first) = first else { return false };
        for types in [op.operands, op.results] {
            for ty in types {
                let ValueType::Tensor(ty) = ty else { return false };
                if std::ptr::eq(first, ty) {
                    continue;
                }
                let holds = match self {
                    Self::SameShape => compatible_shapes(&first.shape, &ty.shape),
                    // Compatibility is not transitive, so sizes have to be equal here.
                    Self::Elementwise => first.shape == ty.shape,
                    Self::SameElements | Self::CompatibleElements => first.element == ty.element,
                    Self::CompatibleTypes => {
                        first.element == ty.element
                            && first.encoding.is_none()
                            && ty.encoding.is_none()
                            && compatible_shapes(&first.shape, &ty.shape)
                    }
                    _ => false,
                };
                if !holds {
                    return false;
                }
            }
        }
        true
    }
    fn check_each(self, op: &OpView<'_>) -> Result<(), Mistake> {
        let all = || op.types();
        let first = || op.types().next();
        let result = op.results.first();
        let value = |index: &usize| {
            if *index == RESULT { result } else { op.operands.get(*index) }.copied()
        };
        let (holds, says) = match self {
            Self::SameShape => {
                at_least_one(op)?;
                let holds = first().is_none_or(|a| all().all(|b| of_compatible_shape(a, b)));
                (holds, "requires the same shape for all operands and results")
            }
            Self::SameElements => {
                at_least_one(op)?;
                let holds = first().is_none_or(|a| all().all(|b| a.element() == b.element()));
                (holds, "requires the same element type for all operands and results")
            }
            Self::SameOperandElements => {
                at_least_one(op)?;
                let mut of = op.operands.iter().map(|ty| ty.element());
                let holds = of.next().is_none_or(|a| of.all(|b| a == b));
                (holds, "requires the same element type for all operands")
            }
            Self::CompatibleElements => {
                let holds = first().is_none_or(|a| all().all(|b| of_same_element(a, b)));
                (holds, "requires compatible element types for all operands and results")
            }
            Self::CompatibleOperandElements => {
                at_least_one(op)?;
                let first = op.operands[0];
                let holds = op.operands.iter().all(|ty| of_same_element(first, ty));
                (holds, "requires compatible element types for all operands")
            }
            Self::CompatibleTypes => {
                let holds = first().is_none_or(|a| all().all(|b| compatible(a, b)));
                (holds, "requires compatible types for all operands and results")
            }
            Self::PairwiseTypes => return pairwise(op, "type", |a, b| a == b),
            Self::PairwiseElements => {
                let same = |a: &ValueType, b: &ValueType| a.element() == b.element();
                return pairwise(op, "element type", same);
            }
            Self::Elementwise => return elementwise(op),
            Self::SameElementsOf(values, names) => {
                let mut of = values.iter().filter_map(value).filter_map(ValueType::element);
                let holds = of.next().is_none_or(|a| of.all(|b| a == b));
                return all_match(holds, names, "element type");
            }
            Self::SameTypesOf(values, names) => {
                let mut of = values.iter().filter_map(value);
                let holds = of.next().is_none_or(|a| of.all(|b| a == b));
                return all_match(holds, names, "type");
            }
            Self::SameRanksOf(values, names) => {
                let mut of = values.iter().filter_map(value).map(|ty| ty.shape().map(<[_]>::len));
                let holds = of.next().is_none_or(|a| of.all(|b| a == b));
                return all_match(holds, names, "rank");
            }
            Self::SameSizesOf(names) => {
                let mut of = names.iter().map(|name| op.attributes.ints(name).len());
                let holds = of.next().is_none_or(|a| of.all(|b| a == b));
                return if holds { Ok(()) } else { all_match(false, &names.join(", "), "size") };
            }
        };
        if holds {
            Ok(())
        } else {
            Err(of_op(says))
        }
    }
}

fn all_match(holds: bool, names: &str, what: &str) -> Result<(), Mistake> {
    if holds {
        return Ok(());
    }
    Err(of_op(format!("failed to verify that all of {{{names}}} have same {what}")))
}

fn at_least_one(op: &OpView<'_>) -> Result<(), Mistake> {
    if op.operands.is_empty() {
        return Err(of_op("expected 1 or more operands, but found 0"));
    }
    Ok(())
}

fn pairwise(
    op: &OpView<'_>,
    what: &str,
    same: impl Fn(&ValueType, &ValueType) -> bool,
) -> Result<(), Mistake> {
    if op.operands.len() != op.results.len() {
        return Err(of_op("requires the same number of operands and results"));
    }
    let pairs = op.operands.iter().zip(op.results);
    match pairs.into_iter().position(|(a, b)| !same(a, b)) {
        None => Ok(()),
        Some(at) => {
            let message = format!("requires the same {what} for operand and result at index {at}");
            Err(of_op(message))
        }
    }
}

fn elementwise(op: &OpView<'_>) -> Result<(), Mistake> {
    let num_tensors = |types: &[&ValueType]| types.iter().filter(|ty| ty.is_tensor()).count();
    let says = match (num_tensors(op.operands), num_tensors(op.results)) {
        (0, 0) => return Ok(()),
        (0, _) => "if a result is non-scalar, then at least one operand must be non-scalar",
        (_, 0) => "if an operand is non-scalar, then there must be at least one non-scalar result",
        (_, count) if count != op.results.len() => {
            "if an operand is non-scalar, then all results must be non-scalar"
        }
        _ => {
            let mut tensors = op.types().filter(|ty| ty.is_tensor());
            let mut is_same = true;
            while let Some(a) = tensors.next().filter(|_| is_same) {
                let has_rank = a.tensor().is_some();
                let same =
                    |b: &ValueType| b.tensor().is_some() == has_rank && of_compatible_shape(a, b);
                is_same = tensors.clone().all(same);
            }
            if is_same {
                return Ok(());
            }
            "all non-scalar operands/results must have the same shape and base type"
        }
    };
    Err(of_op(says))
}
