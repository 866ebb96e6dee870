//! The types of values for shape functions, independent of the tables of a program.

use super::element::Element;
use crate::inline_list::InlineList;
use std::fmt;
use std::rc::Rc;

/// The size of a dim; `None` if it is dynamic.
pub type Size = Option<i64>;
/// The sizes of the dims of a tensor.
pub type Sizes = InlineList<Size, 4>;

/// A ranked tensor.
#[derive(Clone, PartialEq, Debug)]
pub struct Tensor {
    /// The sizes of its dims.
    pub shape: Sizes,
    /// The element type.
    pub element: Element,
    /// Its encoding, if any.
    pub encoding: Option<Box<Encoding>>,
}

/// The encoding of a tensor type.
#[derive(Clone, PartialEq, Debug)]
pub enum Encoding {
    /// Bounds of dynamic sizes: `#stablehlo.bounds<4, ?>`.
    Bounds(Sizes),
    /// Another encoding, as text.
    Other(Rc<str>),
}

/// The type of a value.
#[derive(Clone, PartialEq, Debug)]
pub enum ValueType {
    /// `tensor<2x?xf32>`
    Tensor(Tensor),
    /// `tensor<*xf32>`
    Unranked(Element),
    /// `tuple<...>`
    Tuple(Vec<ValueType>),
    /// `!stablehlo.token`
    Token,
    /// `memref<...>`: shape and element type, and its text.
    Buffer(Tensor, Rc<str>),
    /// `!stablehlo.future<...>`
    Future(Vec<ValueType>),
    /// Any other type, as text.
    Other(Rc<str>),
}

impl Tensor {
    /// A tensor without bounds and encoding.
    #[inline]
    pub fn new(shape: Sizes, element: Element) -> Self {
        Self { shape, element, encoding: None }
    }
    /// A tensor without dims.
    pub fn scalar(element: Element) -> Self {
        Self::new(Sizes::new(), element)
    }
    /// The number of dims.
    #[inline]
    pub fn rank(&self) -> usize {
        self.shape.len()
    }
    /// Whether the shape is static.
    pub fn is_static(&self) -> bool {
        self.shape.iter().all(Option::is_some)
    }
    /// The bounds of its dims; empty if it has none.
    pub fn bounds(&self) -> &[Size] {
        match self.encoding.as_deref() {
            Some(Encoding::Bounds(bounds)) => bounds,
            _ => &[],
        }
    }
    /// The bound of `dim`, if it has one.
    pub fn bound(&self, dim: usize) -> Size {
        self.bounds().get(dim).copied().flatten()
    }
    /// Whether it has exactly one dynamic dim and one bound.
    pub fn has_single_bound(&self) -> bool {
        self.bounds().iter().flatten().count() == 1
            && self.shape.iter().filter(|size| size.is_none()).count() == 1
    }
    /// The number of elements, where overflow wraps around as in MLIR; `None` if a size is dynamic.
    pub fn num_elements(&self) -> Option<i64> {
        self.shape.iter().try_fold(1_i64, |product, size| Some(product.wrapping_mul((*size)?)))
    }
    /// A tensor of this shape with another element type.
    #[must_use]
    pub fn with_element(&self, element: Element) -> Self {
        Self { element, ..self.clone() }
    }
    /// The tensor type with this element type and the dims `shape`, bounded by `bounds`. Without
    /// bounds, an encoding other than bounds is kept.
    #[must_use]
    #[inline]
    pub fn with_shape(&self, shape: Sizes, bounds: Sizes) -> Self {
        if bounds.is_empty() && self.encoding.is_none() {
            return Self::new(shape, self.element.clone());
        }
        let encoding = if bounds.iter().any(Option::is_some) {
            Some(Box::new(Encoding::Bounds(bounds)))
        } else {
            let is_other = matches!(self.encoding.as_deref(), Some(Encoding::Other(_)));
            self.encoding.clone().filter(|_| is_other)
        };
        Self { shape, element: self.element.clone(), encoding }
    }
}

impl Default for &ValueType {
    /// A placeholder for unused list entries.
    fn default() -> Self {
        &ValueType::Token
    }
}

impl ValueType {
    /// The tensor, if it is a ranked one.
    pub const fn tensor(&self) -> Option<&Tensor> {
        match self {
            Self::Tensor(tensor) => Some(tensor),
            _ => None,
        }
    }
    /// The element type of a tensor or buffer.
    pub const fn element(&self) -> Option<&Element> {
        match self {
            Self::Tensor(tensor) | Self::Buffer(tensor, _) => Some(&tensor.element),
            Self::Unranked(element) => Some(element),
            _ => None,
        }
    }
    /// The sizes of a ranked tensor or buffer.
    pub fn shape(&self) -> Option<&[Size]> {
        match self {
            Self::Tensor(tensor) | Self::Buffer(tensor, _) => Some(&tensor.shape),
            _ => None,
        }
    }
    /// Whether it is a type of a dialect that is neither MLIR's nor `StableHLO`'s.
    pub fn is_foreign(&self) -> bool {
        matches!(self, Self::Other(text) if text.starts_with('!') && !text.starts_with("!stablehlo"))
    }
    /// Whether it is a tensor, ranked or not.
    pub const fn is_tensor(&self) -> bool {
        matches!(self, Self::Tensor(_) | Self::Unranked(_))
    }
}

impl From<Tensor> for ValueType {
    fn from(tensor: Tensor) -> Self {
        Self::Tensor(tensor)
    }
}

impl fmt::Display for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("tensor<")?;
        for size in &self.shape {
            write_size(f, *size)?;
            f.write_str("x")?;
        }
        write!(f, "{}", self.element)?;
        match self.encoding.as_deref() {
            Some(Encoding::Bounds(bounds)) => {
                f.write_str(", #stablehlo.bounds<")?;
                for (at, bound) in bounds.iter().enumerate() {
                    f.write_str(if at == 0 { "" } else { ", " })?;
                    write_size(f, *bound)?;
                }
                f.write_str(">")?;
            }
            Some(Encoding::Other(text)) => write!(f, ", {text}")?,
            None => {}
        }
        f.write_str(">")
    }
}

fn write_size(f: &mut fmt::Formatter<'_>, size: Size) -> fmt::Result {
    match size {
        Some(size) => write!(f, "{size}"),
        None => f.write_str("?"),
    }
}

impl fmt::Display for ValueType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tensor(tensor) => tensor.fmt(f),
            Self::Unranked(element) => write!(f, "tensor<*x{element}>"),
            Self::Tuple(elements) => write!(f, "tuple<{}>", list(elements)),
            Self::Token => f.write_str("!stablehlo.token"),
            Self::Future(types) => write!(f, "!stablehlo.future<{}>", list(types)),
            // Types are stored without spaces.
            Self::Buffer(_, text) | Self::Other(text) => {
                f.write_str(&text.replace("->", " -> ").replace(',', ", "))
            }
        }
    }
}

fn list(types: &[ValueType]) -> String {
    types.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// Types in quotes joined by commas, as in MLIR's messages.
pub fn quoted(types: &[impl fmt::Display]) -> String {
    types.iter().map(|ty| format!("'{ty}'")).collect::<Vec<_>>().join(", ")
}

/// Sizes as in MLIR's messages, `2, ?, 3`, with `unknown` for dynamic ones.
pub fn sizes(shape: &[Size], unknown: &str) -> String {
    let size = |size: &Size| size.map_or_else(|| unknown.to_owned(), |size| size.to_string());
    shape.iter().map(size).collect::<Vec<_>>().join(", ")
}

/// MLIR's number for a dynamic size (`ShapedType::kDynamic`), as some messages print it.
pub const DYNAMIC: &str = "-9223372036854775808";
