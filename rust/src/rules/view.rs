//! The input of rule families: the name, shapes and attributes of an op.

use crate::index::SignatureId;
use crate::ir::{Program, Type};
use crate::mlir::signature_attributes;
use crate::mlir::{AttrValue, Fields};
use crate::shardy::{Change, Version};
use crate::stablehlo::dims::to_dims;
use std::cell::OnceCell;

/// The shapes of an op's operands and results, in buffers that are reused for the next op.
#[derive(Clone, Debug, Default)]
pub struct Shapes {
    dims: Vec<i64>,
    /// For each value the end of its dims, and whether it is a tensor.
    ends: Vec<(u32, bool)>,
    num_operands: usize,
}

impl Shapes {
    /// Shapes given one by one; `None` is a value that is not a tensor.
    pub fn new(operands: &[Option<&[i64]>], results: &[Option<&[i64]>]) -> Self {
        let mut shapes = Self { num_operands: operands.len(), ..Self::default() };
        for shape in operands.iter().chain(results) {
            shapes.push(shape.map(|shape| shape.iter().copied()));
        }
        shapes
    }
    /// Reads the shapes of a signature; false if one is not static.
    pub fn read(&mut self, program: &Program, id: SignatureId) -> bool {
        let signature = &program.signatures()[id];
        self.dims.clear();
        self.ends.clear();
        self.num_operands = signature.operand_types.len();
        for &ty in signature.operand_types.iter().chain(&signature.result_types) {
            match &program.types()[ty] {
                Type::RankedTensor { shape, .. } | Type::MeshTensor { shape, .. } => {
                    if shape.iter().any(Option::is_none) {
                        return false;
                    }
                    self.push(Some(shape.iter().copied().flatten()));
                }
                Type::UnrankedTensor(_) => return false,
                Type::Tuple(_) | Type::Other(_) => self.push(None::<std::iter::Empty<i64>>),
            }
        }
        true
    }
    fn push(&mut self, shape: Option<impl Iterator<Item = i64>>) {
        let is_tensor = shape.is_some();
        self.dims.extend(shape.into_iter().flatten());
        self.ends.push((self.dims.len() as u32, is_tensor));
    }
    fn get(&self, index: usize) -> Option<(&[i64], bool)> {
        let &(end, is_tensor) = self.ends.get(index)?;
        let start = if index == 0 { 0 } else { self.ends[index - 1].0 };
        Some((&self.dims[start as usize..end as usize], is_tensor))
    }
}

/// The name, shapes and attributes of an op.
#[derive(Debug)]
pub struct SignatureView<'a> {
    /// The op's full name.
    pub name: &'a str,
    /// Whether propagation is conservative.
    pub conservative: bool,
    /// Whether the op meets its family's condition on surrounding ops; see [`super::surroundings`].
    pub surroundings: bool,
    /// The version of Shardy.
    pub shardy: Version,
    shapes: &'a Shapes,
    source: Option<(&'a Program, SignatureId)>,
    attributes: OnceCell<Fields<'a>>,
}

impl<'a> SignatureView<'a> {
    /// The view of a signature of `program`, whose shapes `shapes` has read.
    pub fn of(program: &'a Program, id: SignatureId, shapes: &'a Shapes) -> Self {
        let name = program.str(program.signatures()[id].name);
        let source = Some((program, id));
        let attributes = OnceCell::new();
        let shardy = program.shardy();
        Self { name, conservative: false, surroundings: false, shardy, shapes, source, attributes }
    }
    /// A view of an op that is in no program, for the newest version.
    pub fn new(name: &'a str, shapes: &'a Shapes, attributes: Fields<'a>) -> Self {
        let (attributes, shardy, source) = (OnceCell::from(attributes), Version::NEWEST, None);
        Self { name, conservative: false, surroundings: false, shardy, shapes, source, attributes }
    }
    /// Whether the version of Shardy has `change`.
    pub fn has(&self, change: Change) -> bool {
        self.shardy.has(change)
    }
    /// The program and the signature of the view.
    pub fn source(&self) -> Option<(&'a Program, SignatureId)> {
        self.source
    }
    /// How many operands there are.
    pub fn num_operands(&self) -> usize {
        self.shapes.num_operands
    }
    /// How many results there are.
    pub fn num_results(&self) -> usize {
        self.shapes.ends.len() - self.shapes.num_operands
    }
    /// The shape of an operand; `None` if there is no such operand or it is not a tensor.
    pub fn operand(&self, index: usize) -> Option<&'a [i64]> {
        let is_operand = index < self.shapes.num_operands;
        let (shape, is_tensor) = self.shapes.get(index).filter(|_| is_operand)?;
        is_tensor.then_some(shape)
    }
    /// The shape of a result; `None` if there is no such result or it is not a tensor.
    pub fn result(&self, index: usize) -> Option<&'a [i64]> {
        let (shape, is_tensor) = self.shapes.get(self.shapes.num_operands + index)?;
        is_tensor.then_some(shape)
    }
    /// The ranks of operands, then results; 0 for values that are not tensors.
    pub fn ranks(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.shapes.ends.len())
            .map(|index| self.shapes.get(index).map_or(0, |(dims, _)| dims.len()))
    }
    /// All attributes by their names in the generic form.
    pub fn attributes(&self) -> &[(&'a str, AttrValue<'a>)] {
        self.attributes.get_or_init(|| match self.source {
            Some((program, id)) => signature_attributes(program, id),
            None => Vec::new(),
        })
    }
    /// The attribute `name`.
    pub fn attribute(&self, name: &str) -> Option<&AttrValue<'a>> {
        self.attributes().iter().find(|(other, _)| *other == name).map(|(_, value)| value)
    }
    /// The integer of attribute `name`.
    pub fn int(&self, name: &str) -> Option<i64> {
        self.attribute(name)?.as_int()
    }
    /// The dim in attribute `name`.
    pub fn dim(&self, name: &str) -> Option<usize> {
        usize::try_from(self.int(name)?).ok()
    }
    /// The dims in attribute `name`.
    pub fn dims(&self, name: &str) -> Option<Vec<usize>> {
        to_dims(&self.attribute(name)?.as_ints()?)
    }
}

/// For each of `rank` dims, whether it is in `dims`.
pub fn membership<'a>(dims: impl IntoIterator<Item = &'a usize>, rank: usize) -> Vec<bool> {
    let mut is_one = vec![false; rank];
    for &dim in dims {
        if let Some(is_one) = is_one.get_mut(dim) {
            *is_one = true;
        }
    }
    is_one
}
