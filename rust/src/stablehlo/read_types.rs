//! Converts the types of a program to those of shape functions, each once.

use super::element::Element;
use super::types::{Size, Tensor, ValueType};
use crate::index::{Id, TypeId, ValueId};
use crate::ir::{Program, Type};
use std::cell::{Cell, OnceCell};

/// The converted types of a program, filled in when first needed.
#[derive(Debug)]
pub struct TypeCache<'p> {
    program: &'p Program,
    /// The types by id.
    types: Vec<OnceCell<ValueType>>,
    has_foreign: Cell<bool>,
}

impl<'p> TypeCache<'p> {
    /// The types of `program`.
    pub fn new(program: &'p Program) -> Self {
        let types = std::iter::repeat_with(OnceCell::new).take(program.types().len()).collect();
        Self { program, types, has_foreign: Cell::new(false) }
    }
    /// The type that `id` is.
    #[inline]
    pub fn get(&self, id: TypeId) -> &ValueType {
        self.types[id.index()].get_or_init(|| {
            let read = self.read(id);
            self.has_foreign.set(self.has_foreign.get() || read.is_foreign());
            read
        })
    }
    /// The types of `values`.
    pub fn of(&self, values: impl ExactSizeIterator<Item = ValueId>) -> Vec<&ValueType> {
        values.map(|value| self.get(self.program.type_of(value))).collect()
    }
    /// Whether one of the types converted so far is foreign, see [`Element::is_foreign`].
    pub fn has_foreign(&self) -> bool {
        self.has_foreign.get()
    }
    fn read(&self, id: TypeId) -> ValueType {
        let program = self.program;
        match &program.types()[id] {
            Type::RankedTensor { shape, element, encoding } => {
                let element = Element::parse(program.str(element.text));
                let mut tensor = Tensor::new(shape.clone(), element);
                if let Some(encoding) = encoding {
                    read_encoding(program, program.str(*encoding), &mut tensor);
                }
                tensor.into()
            }
            Type::UnrankedTensor(element) => {
                ValueType::Unranked(Element::parse(program.str(*element)))
            }
            Type::Tuple(elements) => {
                ValueType::Tuple(elements.iter().map(|&id| self.get(id).clone()).collect())
            }
            Type::Other(text) => other(program.str(*text)),
        }
    }
}

/// A type that is no tensor or tuple, from its text without spaces.
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
    let mut shape = Vec::new();
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

/// Reads `#stablehlo.bounds<4, ?>`, or an alias of it, and keeps any other encoding as text.
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
        list.split(',').map(bound).collect::<Option<Vec<Size>>>()
    });
    match bounds {
        Some(bounds) => tensor.bounds = bounds,
        None => tensor.encoding = Some(text.into()),
    }
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
