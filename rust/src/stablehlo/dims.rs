//! Parses the dimension numbers of ops, for verification, sharding rules, costs and per-device
//! programs.
//!
//! Each function is generic over the type of a dim. With `usize`, the default, attributes with
//! negative numbers are rejected; with `i64` any number is accepted, so that verification can
//! report it.

use crate::inline_list::InlineList;
use crate::ir::joined;
use crate::mlir::AttrValue;
use std::fmt;

/// The type of the number of a dim: `usize` or `i64`.
pub trait DimNumber: Copy + Default {
    /// The number in an attribute; `None` if this type does not have it.
    fn from_attribute(value: i64) -> Option<Self>;
}

impl DimNumber for usize {
    fn from_attribute(value: i64) -> Option<Self> {
        value.try_into().ok()
    }
}
impl DimNumber for i64 {
    fn from_attribute(value: i64) -> Option<Self> {
        Some(value)
    }
}

/// Integers as dims; `None` if one is negative and dims are `usize`.
pub fn to_dims<D: DimNumber>(values: &[i64]) -> Option<Vec<D>> {
    values.iter().map(|&value| D::from_attribute(value)).collect()
}

/// The dims in field `name`; empty if there is no such field.
fn dims<D: DimNumber, L: Default + Extend<D>>(numbers: &AttrValue<'_>, name: &str) -> Option<L> {
    let mut list = L::default();
    match numbers.field(name) {
        None => {}
        Some(AttrValue::Ints(ints)) => {
            for &int in ints {
                list.extend(Some(D::from_attribute(int)?));
            }
        }
        Some(field) => {
            for item in field.items()? {
                list.extend([D::from_attribute(item.as_int()?)?]);
            }
        }
    }
    Some(list)
}

/// The dim in field `name`; 0 if there is no such field.
fn dim<D: DimNumber>(numbers: &AttrValue<'_>, name: &str) -> Option<D> {
    D::from_attribute(numbers.field(name).map_or(Some(0), AttrValue::as_int)?)
}

/// Some dims of an operand, usually few.
pub type DimList<D> = InlineList<D, 4>;

/// `#stablehlo.dot`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DotDims<D = usize> {
    /// Batching dims of the left operand.
    pub lhs_batching: DimList<D>,
    /// Batching dims of the right operand.
    pub rhs_batching: DimList<D>,
    /// Contracting dims of the left operand.
    pub lhs_contracting: DimList<D>,
    /// Contracting dims of the right operand.
    pub rhs_contracting: DimList<D>,
}

impl<D: DimNumber> Default for DotDims<D> {
    fn default() -> Self {
        let none = DimList::new;
        Self {
            lhs_batching: none(),
            rhs_batching: none(),
            lhs_contracting: none(),
            rhs_contracting: none(),
        }
    }
}

impl<D: DimNumber> DotDims<D> {
    /// Reads `dot_dimension_numbers`, or the fields of `ragged_dot_dimension_numbers` with the same
    /// meaning.
    pub fn read(numbers: &AttrValue<'_>) -> Option<Self> {
        Some(Self {
            lhs_batching: dims::<D, _>(numbers, "lhs_batching_dimensions")?,
            rhs_batching: dims::<D, _>(numbers, "rhs_batching_dimensions")?,
            lhs_contracting: dims::<D, _>(numbers, "lhs_contracting_dimensions")?,
            rhs_contracting: dims::<D, _>(numbers, "rhs_contracting_dimensions")?,
        })
    }
}

impl fmt::Display for DotDims {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { lhs_batching, rhs_batching, lhs_contracting, rhs_contracting } = self;
        write!(
            formatter,
            "#stablehlo.dot<lhs_batching_dimensions = {:?}, rhs_batching_dimensions = {:?}, \
             lhs_contracting_dimensions = {:?}, rhs_contracting_dimensions = {:?}>",
            &lhs_batching[..],
            &rhs_batching[..],
            &lhs_contracting[..],
            &rhs_contracting[..]
        )
    }
}

/// `#chlo.ragged_dot`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RaggedDotDims<D = usize> {
    /// The dims that `dot_general` has too.
    pub dot: DotDims<D>,
    /// The dim of the left operand that is divided into groups.
    pub lhs_ragged: Vec<D>,
    /// The dim of the right operand that is indexed by group.
    pub rhs_group: Vec<D>,
}

impl<D: DimNumber> RaggedDotDims<D> {
    /// Reads `ragged_dot_dimension_numbers`.
    pub fn read(numbers: &AttrValue<'_>) -> Option<Self> {
        Some(Self {
            dot: DotDims::read(numbers.field("dot_dimension_numbers").unwrap_or(numbers))?,
            lhs_ragged: dims::<D, _>(numbers, "lhs_ragged_dimensions")?,
            rhs_group: dims::<D, _>(numbers, "rhs_group_dimensions")?,
        })
    }
}

/// `#stablehlo.conv`
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct ConvDims<D = usize> {
    /// The batch dim of the input.
    pub input_batch: D,
    /// The feature dim of the input.
    pub input_feature: D,
    /// The other dims of the input.
    pub input_spatial: Vec<D>,
    /// The input feature dim of the kernel.
    pub kernel_input_feature: D,
    /// The output feature dim of the kernel.
    pub kernel_output_feature: D,
    /// The other dims of the kernel.
    pub kernel_spatial: Vec<D>,
    /// The batch dim of the output.
    pub output_batch: D,
    /// The feature dim of the output.
    pub output_feature: D,
    /// The other dims of the output.
    pub output_spatial: Vec<D>,
}

impl<D: DimNumber> ConvDims<D> {
    /// Reads `dimension_numbers` of a convolution.
    pub fn read(numbers: &AttrValue<'_>) -> Option<Self> {
        Some(Self {
            input_batch: dim(numbers, "input_batch_dimension")?,
            input_feature: dim(numbers, "input_feature_dimension")?,
            input_spatial: dims::<D, _>(numbers, "input_spatial_dimensions")?,
            kernel_input_feature: dim(numbers, "kernel_input_feature_dimension")?,
            kernel_output_feature: dim(numbers, "kernel_output_feature_dimension")?,
            kernel_spatial: dims::<D, _>(numbers, "kernel_spatial_dimensions")?,
            output_batch: dim(numbers, "output_batch_dimension")?,
            output_feature: dim(numbers, "output_feature_dimension")?,
            output_spatial: dims::<D, _>(numbers, "output_spatial_dimensions")?,
        })
    }
}

impl ConvDims {
    /// The attribute as text: `#stablehlo.conv<[b, 0, f]x[0, i, o]->[b, 0, f]>`.
    pub fn text(&self) -> String {
        let list = |letters: [(usize, &str); 2], spatial: &[usize]| {
            let mut words = vec![String::new(); spatial.len() + 2];
            let numbers = spatial.iter().enumerate().map(|(at, &dim)| (dim, at.to_string()));
            let letters = letters.into_iter().map(|(dim, letter)| (dim, letter.to_owned()));
            for (dim, word) in numbers.chain(letters) {
                if let Some(place) = words.get_mut(dim) {
                    *place = word;
                }
            }
            format!("[{}]", words.join(", "))
        };
        let input = list([(self.input_batch, "b"), (self.input_feature, "f")], &self.input_spatial);
        let kernel = [(self.kernel_input_feature, "i"), (self.kernel_output_feature, "o")];
        let kernel = list(kernel, &self.kernel_spatial);
        let output = [(self.output_batch, "b"), (self.output_feature, "f")];
        let output = list(output, &self.output_spatial);
        format!("#stablehlo.conv<{input}x{kernel}->{output}>")
    }
}

/// `#stablehlo.gather` and `#stablehlo.scatter`. Slices are the result of a gather and the updates of a
/// scatter.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct IndexingDims<D = usize> {
    /// Dims of the slices that correspond to dims of the input.
    pub window: Vec<D>,
    /// Dims of the input that are not dims of the slices.
    pub collapsed: Vec<D>,
    /// Batching dims of the input.
    pub input_batching: Vec<D>,
    /// Batching dims of the indices.
    pub indices_batching: Vec<D>,
    /// The dim of the input that each component of an index vector indexes.
    pub index_map: Vec<D>,
    /// The dim of the indices along which index vectors are stored.
    pub index_vector: D,
}

/// The names of an attribute that has [`IndexingDims`] and of its fields.
#[derive(Clone, Copy, Debug)]
pub struct IndexingNames {
    /// The attribute of the op.
    pub attribute: &'static str,
    /// The mnemonic of the attribute: `gather` in `#stablehlo.gather`.
    pub mnemonic: &'static str,
    /// [`IndexingDims::window`].
    pub window: &'static str,
    /// [`IndexingDims::collapsed`].
    pub collapsed: &'static str,
    /// [`IndexingDims::input_batching`].
    pub input_batching: &'static str,
    /// [`IndexingDims::indices_batching`].
    pub indices_batching: &'static str,
    /// [`IndexingDims::index_map`].
    pub index_map: &'static str,
}

/// `#stablehlo.gather`
pub const GATHER: IndexingNames = IndexingNames {
    attribute: "dimension_numbers",
    mnemonic: "gather",
    window: "offset_dims",
    collapsed: "collapsed_slice_dims",
    input_batching: "operand_batching_dims",
    indices_batching: "start_indices_batching_dims",
    index_map: "start_index_map",
};
/// `#stablehlo.scatter`
pub const SCATTER: IndexingNames = IndexingNames {
    attribute: "scatter_dimension_numbers",
    mnemonic: "scatter",
    window: "update_window_dims",
    collapsed: "inserted_window_dims",
    input_batching: "input_batching_dims",
    indices_batching: "scatter_indices_batching_dims",
    index_map: "scatter_dims_to_operand_dims",
};

impl<D: DimNumber> IndexingDims<D> {
    /// Reads the attribute with these names.
    pub fn read(numbers: &AttrValue<'_>, names: &IndexingNames) -> Option<Self> {
        Some(Self {
            window: dims::<D, _>(numbers, names.window)?,
            collapsed: dims::<D, _>(numbers, names.collapsed)?,
            input_batching: dims::<D, _>(numbers, names.input_batching)?,
            indices_batching: dims::<D, _>(numbers, names.indices_batching)?,
            index_map: dims::<D, _>(numbers, names.index_map)?,
            index_vector: dim(numbers, "index_vector_dim")?,
        })
    }
}

impl IndexingDims {
    /// The attribute with these names as text, `#stablehlo.gather<offset_dims = [1], index_vector_dim = 1>`.
    pub fn text(&self, names: &IndexingNames) -> String {
        let fields = [
            (names.window, &self.window),
            (names.collapsed, &self.collapsed),
            (names.input_batching, &self.input_batching),
            (names.indices_batching, &self.indices_batching),
            (names.index_map, &self.index_map),
        ];
        let mut written: Vec<String> = fields
            .iter()
            .filter(|(_, dims)| !dims.is_empty())
            .map(|(name, dims)| format!("{name} = [{}]", joined(dims)))
            .collect();
        written.push(format!("index_vector_dim = {}", self.index_vector));
        format!("#stablehlo.{}<{}>", names.mnemonic, written.join(", "))
    }
}
