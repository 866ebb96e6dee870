//! The rule of convolutions.

use super::builder::{FactorKind, RuleBuilder};
use super::view::{to_dims, SignatureView};
use crate::mlir::AttrValue;
use crate::rule::OpShardingRule;

/// The dimension numbers of a convolution.
#[derive(Clone, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub struct ConvDims {
    pub input_batch: usize,
    pub input_feature: usize,
    pub input_spatial: Vec<usize>,
    pub kernel_input_feature: usize,
    pub kernel_output_feature: usize,
    pub kernel_spatial: Vec<usize>,
    pub output_batch: usize,
    pub output_feature: usize,
    pub output_spatial: Vec<usize>,
}

impl ConvDims {
    /// Reads attribute `dimension_numbers`; none if it is not well formed.
    pub fn read(numbers: &AttrValue<'_>) -> Option<Self> {
        let dim =
            |name| usize::try_from(numbers.field(name).map_or(Some(0), AttrValue::as_int)?).ok();
        let dims = |name| to_dims(&numbers.int_list_field(name)?);
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

/// `convolution`: factors for batch groups, batch, spatial dims, feature groups, input features and output
/// features.
pub fn convolution(view: &SignatureView<'_>) -> Option<OpShardingRule> {
    let dims = ConvDims::read(view.attribute("dimension_numbers")?)?;
    let (kernel, result) = (view.operand(1)?, view.result(0)?);
    let batch_groups = view.int("batch_group_count")?;
    let feature_groups = view.int("feature_group_count")?;
    let pass = FactorKind::PassThrough;
    let mut builder = RuleBuilder::new(view);
    let output_feature = [Some(dims.output_feature)];
    if batch_groups > 1 {
        let operand_dims = [Some(dims.input_batch), Some(dims.kernel_output_feature)];
        builder.factor(&operand_dims, &output_feature, batch_groups, pass);
    }
    let batch = *result.get(dims.output_batch)?;
    builder.factor(&[Some(dims.input_batch), None], &[Some(dims.output_batch)], batch, pass);
    if !view.conservative {
        spatial_factors(view, &dims, &mut builder)?;
    }
    if feature_groups > 1 {
        let operand_dims = [Some(dims.input_feature), Some(dims.kernel_output_feature)];
        builder.factor(&operand_dims, &output_feature, feature_groups, pass);
    }
    let operand_dims = [Some(dims.input_feature), Some(dims.kernel_input_feature)];
    let input_features = *kernel.get(dims.kernel_input_feature)?;
    builder.factor(&operand_dims, &[None], input_features, FactorKind::Reduction);
    let groups = batch_groups.checked_mul(feature_groups).filter(|&groups| groups > 0)?;
    let output_features = *result.get(dims.output_feature)? / groups;
    if output_features > 1 {
        let operand_dims = [None, Some(dims.kernel_output_feature)];
        builder.factor(&operand_dims, &output_feature, output_features, pass);
    }
    builder.build()
}

/// Adds the factors of a spatial dim of the input: one for the windows, which is the output's dim, and one for
/// the elements of a window, which is the kernel's dim. The larger of the two is the major factor.
fn spatial_factors(
    view: &SignatureView<'_>,
    dims: &ConvDims,
    builder: &mut RuleBuilder,
) -> Option<()> {
    let (input, kernel, result) = (view.operand(0)?, view.operand(1)?, view.result(0)?);
    let num_spatial = dims.input_spatial.len();
    if dims.kernel_spatial.len() != num_spatial || dims.output_spatial.len() != num_spatial {
        return None;
    }
    for index in 0..num_spatial {
        let input_dim = Some(dims.input_spatial[index]);
        let kernel_dim = Some(dims.kernel_spatial[index]);
        let output_dim = Some(dims.output_spatial[index]);
        let num_windows = *result.get(dims.output_spatial[index])?;
        let window_size = *kernel.get(dims.kernel_spatial[index])?;
        let mut left = *input.get(dims.input_spatial[index])?;
        let windows = (num_windows, [input_dim, None], output_dim, FactorKind::Permutation);
        let inside = (window_size, [input_dim, kernel_dim], None, FactorKind::Reduction);
        let order = if num_windows >= window_size { [windows, inside] } else { [inside, windows] };
        for (size, operand_dims, result_dim, kind) in order {
            let size = size.min(left);
            if size > 1 {
                builder.factor(&operand_dims, &[result_dim], size, kind);
                left /= size;
            }
        }
    }
    Some(())
}
