//! The view of an op that its definition checks: operands, results, attributes and regions.

use super::attributes::Attributes;
use super::element::Element;
use super::mistake::Mistake;
use super::result_types::ResultTypes;
use super::types::{Sizes, Tensor, ValueType};
use crate::inline_list::InlineList;

/// The parts of an op that its definition is checked against; the op may not exist yet.
pub struct OpView<'a> {
    /// Its full name.
    pub name: &'a str,
    /// The types of its operands.
    pub operands: &'a [&'a ValueType],
    /// The types of its results; for an op that does not exist yet, types with the right element
    /// types.
    pub results: &'a [&'a ValueType],
    /// Its attributes.
    pub attributes: &'a Attributes<'a>,
    /// Its regions.
    pub regions: Vec<RegionView<'a>>,
    /// The values of an operand that is a constant of integers.
    pub constants: &'a dyn Fn(usize) -> Option<Vec<i64>>,
    /// Whether an op of this name with these attributes was found valid, so that the attributes
    /// need no check.
    pub has_known_attributes: bool,
    /// Whether an op of this name with as many operands, results and regions, whose types differ
    /// only in sizes, was found valid, so that only sizes, regions and attributes need checks.
    pub differs_in_sizes: bool,
}

/// The parts of a region that the definition of its op is checked against.
#[derive(Clone, Debug, Default)]
pub struct RegionView<'a> {
    /// How many blocks it has.
    pub num_blocks: usize,
    /// The types of the arguments of its first block.
    pub args: TypeList<'a>,
    /// The names of the first and the last op of its first block.
    pub ends: Option<[&'a str; 2]>,
    /// How many ops its first block has.
    pub num_ops: usize,
    /// The types of the operands of the last op in its first block.
    pub returned: TypeList<'a>,
}

/// Types of values, usually few.
pub type TypeList<'a> = InlineList<&'a ValueType, 4>;

impl<'a> OpView<'a> {
    /// The type of an operand that has to be a ranked tensor; a silent [`Mistake`] if it is not.
    pub fn operand(&self, index: usize) -> Result<&'a Tensor, Mistake> {
        self.operands.get(index).and_then(|ty| ty.tensor()).ok_or_else(Mistake::silent)
    }
    /// The type of a result that has to be a ranked tensor; a silent [`Mistake`] if it is not.
    pub fn result(&self, index: usize) -> Result<&'a Tensor, Mistake> {
        self.results.get(index).and_then(|ty| ty.tensor()).ok_or_else(Mistake::silent)
    }
    /// The types of consecutive operands that have to be ranked tensors.
    pub fn operands(&self, range: std::ops::Range<usize>) -> Result<Vec<&'a Tensor>, Mistake> {
        range.map(|index| self.operand(index)).collect()
    }
    /// The types of all operands, which have to be ranked tensors.
    pub fn all_operands(&self) -> Result<Vec<&'a Tensor>, Mistake> {
        self.operands(0..self.operands.len())
    }
    /// The types of operands, then of results; consecutive values of one type are listed once.
    pub fn types(&self) -> impl Iterator<Item = &'a ValueType> + Clone + '_ {
        let mut last: Option<&ValueType> = None;
        self.operands.iter().chain(self.results).copied().filter(move |&ty| {
            let is_new = last.is_none_or(|last| !std::ptr::eq(last, ty));
            last = Some(ty);
            is_new
        })
    }
    /// A region; a silent [`Mistake`] if the op does not have it.
    pub fn region(&self, index: usize) -> Result<&RegionView<'a>, Mistake> {
        self.regions.get(index).ok_or_else(Mistake::silent)
    }
    /// The element type of a result, for ops whose operands do not determine it.
    pub fn result_element(&self, index: usize) -> Result<Element, Mistake> {
        let element = self.results.get(index).and_then(|ty| ty.element());
        element.cloned().ok_or_else(Mistake::silent)
    }
    /// The type of the only result, with inferred sizes and bounds, and its given element type.
    pub fn shaped(&self, (shape, bounds): (Sizes, Sizes)) -> Result<ResultTypes, Mistake> {
        let tensor = Tensor::new(Sizes::new(), self.result_element(0)?);
        Ok(tensor.with_shape(shape, bounds).into())
    }
}
