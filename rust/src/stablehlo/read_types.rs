//! Converts the types of a program to those of shape functions, each type once.

use super::element::Element;
use super::types::{Encoding, Size, Sizes, Tensor, ValueType};
use crate::index::{Id, StrId, TypeId, ValueId};
use crate::ir::{Program, Type};
use std::cell::{OnceCell, RefCell};

/// A type without the sizes of its dims. If two types have equal outlines, they are equal, or both
/// are static tensors without encodings that have the same element type and rank.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Outline {
    /// The text of the element type; `NONE` if it is not such a tensor.
    element: StrId,
    /// The rank of such a tensor, or the id of another type.
    rank_or_type: u32,
}

impl Default for Outline {
    /// An outline of no type.
    fn default() -> Self {
        Self { element: StrId::NONE, rank_or_type: u32::MAX }
    }
}

/// A converted type.
#[derive(Debug)]
pub struct ReadType {
    /// The type.
    pub ty: ValueType,
    /// Its outline.
    pub outline: Outline,
}

/// The converted types of a program, computed when first needed.
#[derive(Debug)]
pub struct TypeCache<'p> {
    program: &'p Program,
    /// The types by id.
    types: Vec<OnceCell<ReadType>>,
    /// The last element type that was read, and its text.
    last_element: RefCell<(StrId, Element)>,
}

impl<'p> TypeCache<'p> {
    /// The types of `program`.
    pub fn new(program: &'p Program) -> Self {
        let types = std::iter::repeat_with(OnceCell::new).take(program.types().len()).collect();
        let last_element = RefCell::new((StrId::NONE, Element::Index));
        Self { program, types, last_element }
    }
    /// The type with this id.
    #[inline]
    pub fn get(&self, id: TypeId) -> &ReadType {
        let read = &self.types[id.index()];
        read.get().unwrap_or_else(|| read.get_or_init(|| self.read(id)))
    }
    /// The type of `value`.
    #[inline]
    pub fn of(&self, value: ValueId) -> &ReadType {
        self.get(self.program.type_of(value))
    }
    /// The element type with the text `text`.
    fn element(&self, text: StrId) -> Element {
        let mut last = self.last_element.borrow_mut();
        if last.0 != text {
            *last = (text, Element::parse(self.program.str(text)));
        }
        last.1.clone()
    }
    fn read(&self, id: TypeId) -> ReadType {
        let program = self.program;
        let alone = Outline { element: StrId::NONE, rank_or_type: id.index() as u32 };
        let (ty, outline) = match &program.types()[id] {
            Type::RankedTensor { shape, element, encoding } => {
                let mut tensor = Tensor::new(Sizes::of(shape), self.element(element.text));
                let is_static = program.types().is_static_tensor(id);
                let outline = Outline { element: element.text, rank_or_type: shape.len() as u32 };
                if let Some(encoding) = encoding {
                    read_encoding(program, program.str(*encoding), &mut tensor);
                }
                (tensor.into(), if is_static && encoding.is_none() { outline } else { alone })
            }
            Type::UnrankedTensor(element) => {
                (ValueType::Unranked(Element::parse(program.str(*element))), alone)
            }
            Type::Tuple(elements) => {
                let elements = elements.iter().map(|&id| self.get(id).ty.clone());
                (ValueType::Tuple(elements.collect()), alone)
            }
            Type::Other(text) | Type::MeshTensor { text, .. } => (other(program.str(*text)), alone),
        };
        ReadType { ty, outline }
    }
}

/// A type that is neither a tensor nor a tuple, from its text without white space.
fn other(text: &str) -> ValueType {
    if matches!(text, "!stablehlo.token" | "!stablehlo<token>") {
        return ValueType::Token;
    }
    if let Some(tensor) = inside(text, "memref<").and_then(|body| tensor(body.split(',').next()?)) {
        return ValueType::Buffer(tensor, text.into());
    }
    if text == "!stablehlo.future" {
        return ValueType::Future(Vec::new());
    }
    if let Some(types) = inside(text, "!stablehlo.future<").and_then(tensors) {
        return ValueType::Future(types);
    }
    ValueType::Other(text.into())
}

fn inside<'t>(text: &'t str, prefix: &str) -> Option<&'t str> {
    text.strip_prefix(prefix)?.strip_suffix('>')
}

/// `tensor<...>,tensor<...>`
fn tensors(list: &str) -> Option<Vec<ValueType>> {
    let mut types = Vec::new();
    for part in list.split("tensor<").skip(1) {
        let body = part.trim_end_matches(',').strip_suffix('>')?;
        types.push(tensor(body)?.into());
    }
    (!types.is_empty()).then_some(types)
}

/// `2x?xf32`
fn tensor(body: &str) -> Option<Tensor> {
    let mut rest = body;
    let mut shape = Sizes::new();
    while let Some((size, after)) = rest.split_once('x') {
        let size: Size = match size {
            "?" => None,
            digits => match digits.parse() {
                Ok(size) => Some(size),
                // The `x` is part of the element type.
                Err(_) => break,
            },
        };
        shape.push(size);
        rest = after;
    }
    (!rest.starts_with('*')).then(|| Tensor::new(shape, Element::parse(rest)))
}

/// Reads `#stablehlo.bounds<4, ?>`, or an alias of it; any other encoding is kept as text.
fn read_encoding(program: &Program, text: &str, tensor: &mut Tensor) {
    let text = program.resolved_alias(text).trim();
    let list = ["#stablehlo.bounds<", "#stablehlo.type_extensions<bounds"]
        .into_iter()
        .find_map(|prefix| inside(text, prefix));
    let bounds = list.and_then(|list| {
        let list = list.trim_start_matches([' ', '=']).trim();
        let list = list.strip_prefix('[').and_then(|list| list.strip_suffix(']')).unwrap_or(list);
        let bound = |bound: &str| match bound.trim() {
            "?" => Some(None),
            digits => digits.parse().ok().map(Some),
        };
        list.split(',').map(bound).collect::<Option<Sizes>>()
    });
    let encoding = bounds.map_or_else(|| Encoding::Other(text.into()), Encoding::Bounds);
    tensor.encoding = Some(Box::new(encoding));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_other_types() {
        assert_eq!(other("!stablehlo.token"), ValueType::Token);
        let buffer = other("memref<2x?xf32>");
        assert_eq!(buffer.shape(), Some(&[Some(2), None][..]));
        assert_eq!(buffer.to_string(), "memref<2x?xf32>");
        let future = other("!stablehlo.future<tensor<2xf32>,tensor<i1>>");
        assert!(matches!(&future, ValueType::Future(types) if types.len() == 2));
        assert!(matches!(other("index"), ValueType::Other(_)));
        assert!(matches!(other("memref<*xf32>"), ValueType::Other(_)));
    }
}
