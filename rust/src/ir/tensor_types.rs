//! Tensor types for ops that passes make.

use super::{element_bits, ElementType, Program, Type};
use crate::index::TypeId;

impl Program {
    /// Whether `ty` is a tensor of quantized elements.
    pub fn is_quantized(&self, ty: TypeId) -> bool {
        self.quantized(ty).is_some()
    }
    /// Whether `ty` is a tensor of quantized elements whose scales differ along dims.
    pub fn is_quantized_along_dims(&self, ty: TypeId) -> bool {
        self.quantized(ty).is_some_and(|element| element.contains('{'))
    }
    /// The element type of `ty`, if it is a quantized one.
    fn quantized(&self, ty: TypeId) -> Option<&str> {
        match &self.types[ty] {
            Type::RankedTensor { element, .. } => {
                Some(self.str(element.text)).filter(|text| text.starts_with("!quant."))
            }
            _ => None,
        }
    }
    /// The tensor type of this shape with the element type of `like`.
    pub fn tensor_type(&mut self, shape: &[i64], like: TypeId) -> TypeId {
        let shape: Vec<Option<i64>> = shape.iter().copied().map(Some).collect();
        self.ranked_type(&shape, like)
    }
    /// The tensor type of this shape, where dims may be dynamic, with the element type of `like`.
    pub fn ranked_type(&mut self, shape: &[Option<i64>], like: TypeId) -> TypeId {
        let Type::RankedTensor { element, .. } = &self.types[like] else { return like };
        let element = element.clone();
        self.ranked_type_of(shape, element)
    }
    /// The tensor type of this shape whose elements are called `element`.
    pub fn tensor_type_of(&mut self, shape: &[i64], element: &str) -> TypeId {
        let shape: Vec<Option<i64>> = shape.iter().copied().map(Some).collect();
        let element = ElementType { text: self.intern(element), bits: element_bits(element) };
        self.ranked_type_of(&shape, element)
    }
    fn ranked_type_of(&mut self, shape: &[Option<i64>], element: ElementType) -> TypeId {
        let name = element.text;
        let ty = Type::RankedTensor { shape: shape.to_vec(), element, encoding: None };
        if let Some(known) = self.types.find(&ty) {
            return known;
        }
        let size = |size: &Option<i64>| size.map_or("?x".to_owned(), |size| format!("{size}x"));
        let sizes: String = shape.iter().map(size).collect();
        let text = format!("tensor<{sizes}{}>", self.str(name));
        self.intern_type(ty, &text)
    }
}
