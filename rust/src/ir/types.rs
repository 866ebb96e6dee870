//! Types, as far as shardings depend on them: shapes and element types of tensors, elements of tuples.

use super::id_slots::IdSlots;
use super::{Interner, Span};
use crate::index::{Id, IdVec, StrId, TypeId};
use rustc_hash::FxBuildHasher;
use std::hash::BuildHasher;

/// The element type of a tensor.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct ElementType {
    /// Its text, `f32`, `complex<f32>`, `!quant.uniform<...>`.
    pub text: StrId,
    /// Bits of an element, if known (8 for `i1`, 4 for `i4`, 64 for `complex<f32>`).
    pub bits: Option<u32>,
}

/// Bits that an element of type `text` takes on a device: the number in the name of an integer or
/// float type, but 8 for `i1`, which is a byte in XLA; 64 for `index`; twice the bits of the part
/// for `complex<...>`; the bits of the storage type for quantized types. `None` for types without a
/// fixed size.
pub fn element_bits(text: &str) -> Option<u32> {
    if let Some(stored) = stored_type(text) {
        return element_bits(stored).or_else(|| stored.strip_prefix('u')?.parse().ok());
    }
    if let Some(part) = text.strip_prefix("complex<").and_then(|rest| rest.strip_suffix('>')) {
        return if part.starts_with("complex") {
            None
        } else {
            element_bits(part.trim())?.checked_mul(2)
        };
    }
    match text {
        "i1" => return Some(8),
        "index" => return Some(64),
        _ => {}
    }
    let prefixes = ["bf", "tf", "f", "si", "ui", "i"];
    let rest = prefixes.iter().find_map(|prefix| text.strip_prefix(prefix))?;
    // In `f8E4M3FN` the number of bits is followed by the layout of exponent and mantissa.
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    let is_layout = rest[digits..].is_empty() || rest.as_bytes()[digits] == b'E';
    rest[..digits].parse().ok().filter(|&bits| is_layout && bits > 0)
}

/// The storage type of the quantized type `text`: `i8` of `!quant.uniform<i8<-7:7>:f32, 2.0>`, `u4`
/// of `!quant.any<u4>`.
fn stored_type(text: &str) -> Option<&str> {
    let prefixes = ["!quant.uniform<", "!quant.any<"];
    let rest = prefixes.iter().find_map(|prefix| text.strip_prefix(prefix))?;
    rest.split(['<', ':', '>']).next().map(str::trim)
}

/// A type.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Type {
    /// `tensor<2x?x4xf32, encoding>`; a dynamic dim is `None`.
    RankedTensor {
        /// The dims.
        shape: Vec<Option<i64>>,
        /// The element type.
        element: ElementType,
        /// Text of the encoding.
        encoding: Option<StrId>,
    },
    /// `!mpmd.mesh_tensor<"mesh", tensor<...>, ...>`: a tensor on a mesh of a topology.
    MeshTensor {
        /// The dims of the tensor.
        shape: Vec<Option<i64>>,
        /// The type of the tensor.
        tensor: TypeId,
        /// Its text as MLIR prints it.
        text: StrId,
    },
    /// `tensor<*xf32>`.
    UnrankedTensor(StrId),
    /// `tuple<...>`, with its elements.
    Tuple(Vec<TypeId>),
    /// Any other type: tokens, scalars, function types, other dialects'.
    Other(StrId),
}

/// The shape of a ranked tensor whose dims are all known, or the text of another type.
pub type StaticShape = Result<Vec<i64>, String>;

impl Type {
    /// The dims of a ranked tensor, on a mesh of a topology or not.
    pub fn shape(&self) -> Option<&[Option<i64>]> {
        match self {
            Self::RankedTensor { shape, .. } | Self::MeshTensor { shape, .. } => Some(shape),
            _ => None,
        }
    }
    /// The shape of a ranked tensor whose dims are all known.
    pub fn static_shape(&self) -> Option<Vec<i64>> {
        self.shape()?.iter().copied().collect()
    }
    /// The number of dims of a ranked tensor.
    pub fn rank(&self) -> Option<usize> {
        self.shape().map(<[_]>::len)
    }
    /// Whether it is a ranked tensor with all dims known.
    pub fn is_static_tensor(&self) -> bool {
        self.shape().is_some_and(|shape| shape.iter().all(Option::is_some))
    }
    /// Whether it is a ranked tensor without dims.
    pub fn is_scalar(&self) -> bool {
        self.rank() == Some(0)
    }
}

/// Gives equal types equal ids.
#[derive(Clone, Debug, Default)]
pub struct TypeTable {
    types: IdVec<TypeId, Type>,
    ids: IdSlots<TypeId>,
    /// Text of a type as first seen: what the printer writes.
    texts: Vec<Span>,
    /// Whether it is a tensor whose dims are all known, and whether it is one without dims.
    shapes: Vec<(bool, bool)>,
}

impl TypeTable {
    /// The id of `ty`, new if it was never seen; `text` is how the source writes it.
    pub fn intern(&mut self, ty: Type, text: Span) -> TypeId {
        let hash = FxBuildHasher.hash_one(&ty);
        if let Some(id) = self.ids.find(hash, |id| self.types[id] == ty) {
            return id;
        }
        self.texts.push(text);
        self.shapes.push((ty.is_static_tensor(), ty.is_scalar()));
        let id = self.types.push(ty);
        self.ids.insert(hash, id);
        id
    }
    /// The id of `ty` if it was seen before.
    pub fn find(&self, ty: &Type) -> Option<TypeId> {
        self.ids.find(FxBuildHasher.hash_one(ty), |id| self.types[id] == *ty)
    }
    /// How `id` is written.
    pub fn text(&self, id: TypeId) -> Span {
        self.texts[id.index()]
    }
    /// Whether `id` is a ranked tensor with all dims known.
    #[inline]
    pub fn is_static_tensor(&self, id: TypeId) -> bool {
        self.shapes[id.index()].0
    }
    /// Whether `id` is a ranked tensor without dims.
    #[inline]
    pub fn is_scalar(&self, id: TypeId) -> bool {
        self.shapes[id.index()].1
    }
    /// The length of the longest known dim of all types.
    pub fn longest_dim(&self) -> i64 {
        let shapes = self.types.iter().filter_map(|ty| ty.shape()?.iter().flatten().copied().max());
        shapes.max().unwrap_or(0)
    }
    /// All types.
    pub fn ids(&self) -> impl Iterator<Item = TypeId> {
        (0..self.types.len()).map(TypeId::from_index)
    }
    /// How many different types there are.
    pub fn len(&self) -> usize {
        self.types.len()
    }
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.types.is_empty()
    }
    /// The text of an element type.
    pub fn element_text<'a>(&self, element: &ElementType, strings: &'a Interner) -> &'a str {
        strings.get(element.text)
    }
}

impl std::ops::Index<TypeId> for TypeTable {
    type Output = Type;
    fn index(&self, id: TypeId) -> &Type {
        &self.types[id]
    }
}
