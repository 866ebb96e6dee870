//! Parses windows, for verification, sharding rules, costs and per-device programs.

use super::attributes::dense_ints;
use super::types::Size;
use crate::mlir::AttrValue;

/// The names of the attributes with the dilations of the base and of the window.
pub type DilationNames = [&'static str; 2];
/// The dilations of `reduce_window`.
pub const REDUCTION: DilationNames = ["base_dilations", "window_dilations"];
/// The dilations of `select_and_scatter`, which has no such attributes.
pub const SELECTION: DilationNames = ["", ""];
/// The dilations of `convolution`.
pub const CONVOLUTION: DilationNames = ["lhs_dilation", "rhs_dilation"];

/// One dim of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowDim {
    /// The number of elements; `None` for a kernel of dynamic size.
    pub size: Size,
    /// The distance between windows, in elements of the base.
    pub stride: i64,
    /// Padding before and after the base, in elements.
    pub padding: [i64; 2],
    /// The dilation of the base.
    pub base_dilation: i64,
    /// The dilation of the window.
    pub window_dilation: i64,
    /// Whether the kernel of a convolution is reversed.
    pub is_reversed: bool,
}

impl WindowDim {
    /// Whether each window is one element of the base, in order, without padding.
    pub fn is_trivial(&self) -> bool {
        let is_dense = self.stride == 1 && self.base_dilation == 1 && self.window_dilation == 1;
        self.size == Some(1) && is_dense && self.padding == [0, 0]
    }
    /// The number of windows in a base of `base` elements.
    pub fn num_windows(&self, base: Size) -> Size {
        let [low, high] = self.padding;
        let base = dilated(base?, self.base_dilation).wrapping_add(low).wrapping_add(high);
        let extent = dilated(self.size?, self.window_dilation);
        Some(if base == 0 || extent > base { 0 } else { (base - extent) / self.stride + 1 })
    }
}

/// The attributes that describe windows; an empty list means the default for each dim.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WindowLists {
    /// The sizes of a window; for a convolution, those of its kernel.
    pub sizes: Vec<i64>,
    /// Strides.
    pub strides: Vec<i64>,
    /// Padding before and after.
    pub padding: Vec<[i64; 2]>,
    /// Dilations of the base.
    pub base_dilations: Vec<i64>,
    /// Dilations of the window.
    pub window_dilations: Vec<i64>,
    /// Whether dims of the kernel are reversed.
    pub reversals: Vec<bool>,
}

impl WindowLists {
    /// Reads the lists from attributes by name; `None` if an attribute is not a list of integers.
    pub fn read<'v, 'a: 'v>(
        attribute: impl Fn(&str) -> Option<&'v AttrValue<'a>>,
        [base_dilations, window_dilations]: DilationNames,
    ) -> Option<Self> {
        let ints = |name| attribute(name).map_or(Some(Vec::new()), integers);
        let reversals = attribute("window_reversal").and_then(AttrValue::as_ints);
        let padding = ints("padding")?;
        Some(Self {
            sizes: ints("window_dimensions")?,
            strides: ints("window_strides")?,
            padding: padding.chunks_exact(2).map(|pair| [pair[0], pair[1]]).collect(),
            base_dilations: ints(base_dilations)?,
            window_dilations: ints(window_dilations)?,
            reversals: reversals.unwrap_or_default().iter().map(|&item| item != 0).collect(),
        })
    }
    /// The window along dim `dim`, as an index of the lists; `None` if a list is too short.
    pub fn dim(&self, dim: usize) -> Option<WindowDim> {
        Some(WindowDim {
            size: Some(at(&self.sizes, dim, 1)?),
            stride: at(&self.strides, dim, 1)?,
            padding: at(&self.padding, dim, [0, 0])?,
            base_dilation: at(&self.base_dilations, dim, 1)?,
            window_dilation: at(&self.window_dilations, dim, 1)?,
            is_reversed: at(&self.reversals, dim, false)?,
        })
    }
}

/// The integers of an attribute; a splat is repeated for each element of its type.
fn integers(value: &AttrValue<'_>) -> Option<Vec<i64>> {
    match value {
        AttrValue::Dense { .. } => dense_ints(value).or_else(|| value.as_ints()),
        _ => value.as_ints(),
    }
}

fn at<T: Copy>(list: &[T], dim: usize, default: T) -> Option<T> {
    if list.is_empty() {
        return Some(default);
    }
    list.get(dim).copied()
}

/// The extent of `size` elements with this dilation.
const fn dilated(size: i64, dilation: i64) -> i64 {
    if size == 0 {
        0
    } else {
        (size - 1).wrapping_mul(dilation).wrapping_add(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_written_has_its_default_and_splats_are_repeated() {
        let padding = AttrValue::parse("dense<2> : tensor<3x2xi64>");
        let strides = AttrValue::parse("array<i64: 4, 5, 6>");
        let attribute = |name: &str| match name {
            "padding" => Some(&padding),
            "window_strides" => Some(&strides),
            _ => None,
        };
        let lists = WindowLists::read(attribute, REDUCTION).unwrap();
        let expected = WindowDim {
            size: Some(1),
            stride: 5,
            padding: [2, 2],
            base_dilation: 1,
            window_dilation: 1,
            is_reversed: false,
        };
        assert_eq!(lists.dim(1), Some(expected));
        assert_eq!(lists.dim(3), None);
    }
}
