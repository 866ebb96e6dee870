//! Readers of the dimension numbers of ops.

use crate::mlir::AttrValue;

/// Integers as dims; `None` if one is negative.
pub fn to_dims(values: &[i64]) -> Option<Vec<usize>> {
    values.iter().map(|&value| usize::try_from(value).ok()).collect()
}

/// `#stablehlo.dot`
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct DotDims {
    /// Batching dims of the left operand.
    pub lhs_batching: Vec<i64>,
    /// Batching dims of the right operand.
    pub rhs_batching: Vec<i64>,
    /// Contracting dims of the left operand.
    pub lhs_contracting: Vec<i64>,
    /// Contracting dims of the right operand.
    pub rhs_contracting: Vec<i64>,
}

impl DotDims {
    /// Reads `dot_dimension_numbers`, or the part of `ragged_dot_dimension_numbers` that is the same.
    pub fn read(numbers: &AttrValue<'_>) -> Option<Self> {
        Some(Self {
            lhs_batching: numbers.int_list_field("lhs_batching_dimensions")?,
            rhs_batching: numbers.int_list_field("rhs_batching_dimensions")?,
            lhs_contracting: numbers.int_list_field("lhs_contracting_dimensions")?,
            rhs_contracting: numbers.int_list_field("rhs_contracting_dimensions")?,
        })
    }
}

/// `#chlo.ragged_dot`
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct RaggedDotDims {
    /// The dims that `dot_general` has too.
    pub dot: DotDims,
    /// The dim of the left operand that is cut into groups.
    pub lhs_ragged: Vec<i64>,
    /// The dim of the right operand with an index for each group.
    pub rhs_group: Vec<i64>,
}

impl RaggedDotDims {
    /// Reads `ragged_dot_dimension_numbers`.
    pub fn read(numbers: &AttrValue<'_>) -> Option<Self> {
        Some(Self {
            dot: DotDims::read(numbers.field("dot_dimension_numbers").unwrap_or(numbers))?,
            lhs_ragged: numbers.int_list_field("lhs_ragged_dimensions")?,
            rhs_group: numbers.int_list_field("rhs_group_dimensions")?,
        })
    }
}

/// `#stablehlo.conv`
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct ConvDims {
    /// The batch dim of the input.
    pub input_batch: i64,
    /// The feature dim of the input.
    pub input_feature: i64,
    /// The other dims of the input.
    pub input_spatial: Vec<i64>,
    /// The dim of the kernel for features of the input.
    pub kernel_input_feature: i64,
    /// The dim of the kernel for features of the output.
    pub kernel_output_feature: i64,
    /// The other dims of the kernel.
    pub kernel_spatial: Vec<i64>,
    /// The batch dim of the output.
    pub output_batch: i64,
    /// The feature dim of the output.
    pub output_feature: i64,
    /// The other dims of the output.
    pub output_spatial: Vec<i64>,
}

impl ConvDims {
    /// Reads `dimension_numbers` of a convolution.
    pub fn read(numbers: &AttrValue<'_>) -> Option<Self> {
        let dim = |name| numbers.field(name).map_or(Some(0), AttrValue::as_int);
        let dims = |name| numbers.int_list_field(name);
        Some(Self {
            input_batch: dim("input_batch_dimension")?,
            input_feature: dim("input_feature_dimension")?,
            input_spatial: dims("input_spatial_dimensions")?,
            kernel_input_feature: dim("kernel_input_feature_dimension")?,
            kernel_output_feature: dim("kernel_output_feature_dimension")?,
            kernel_spatial: dims("kernel_spatial_dimensions")?,
            output_batch: dim("output_batch_dimension")?,
            output_feature: dim("output_feature_dimension")?,
            output_spatial: dims("output_spatial_dimensions")?,
        })
    }
}

/// `#stablehlo.gather` and `#stablehlo.scatter`. Slices are the result of a gather and the updates of a
/// scatter.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct IndexingDims {
    /// Dims of the slices that correspond to dims of the input.
    pub window: Vec<i64>,
    /// Dims of the input that slices do not have.
    pub collapsed: Vec<i64>,
    /// Batching dims of the input.
    pub input_batching: Vec<i64>,
    /// Batching dims of the indices.
    pub indices_batching: Vec<i64>,
    /// Which dim of the input each part of an index is for.
    pub index_map: Vec<i64>,
    /// The dim of the indices that holds the parts of an index.
    pub index_vector: i64,
}

impl IndexingDims {
    /// The names of the fields of `#stablehlo.gather`, in the order of this struct.
    const GATHER: [&'static str; 5] = [
        "offset_dims",
        "collapsed_slice_dims",
        "operand_batching_dims",
        "start_indices_batching_dims",
        "start_index_map",
    ];
    /// The fields of `#stablehlo.scatter`.
    const SCATTER: [&'static str; 5] = [
        "update_window_dims",
        "inserted_window_dims",
        "input_batching_dims",
        "scatter_indices_batching_dims",
        "scatter_dims_to_operand_dims",
    ];

    /// Reads `dimension_numbers` of a gather.
    pub fn of_gather(numbers: &AttrValue<'_>) -> Option<Self> {
        Self::read(numbers, Self::GATHER)
    }
    /// Reads `scatter_dimension_numbers`.
    pub fn of_scatter(numbers: &AttrValue<'_>) -> Option<Self> {
        Self::read(numbers, Self::SCATTER)
    }
    fn read(numbers: &AttrValue<'_>, names: [&str; 5]) -> Option<Self> {
        let dims = |at: usize| numbers.int_list_field(names[at]);
        Some(Self {
            window: dims(0)?,
            collapsed: dims(1)?,
            input_batching: dims(2)?,
            indices_batching: dims(3)?,
            index_map: dims(4)?,
            index_vector: numbers.field("index_vector_dim").map_or(Some(0), AttrValue::as_int)?,
        })
    }
}
