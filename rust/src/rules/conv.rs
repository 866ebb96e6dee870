//! The rule of convolutions.

use super::builder::{FactorKind, RuleBuilder};
use super::view::SignatureView;
use crate::op_sharding_rule::OpShardingRule;
use crate::shardy::Change;
use crate::stablehlo::dims::ConvDims;

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

/// Adds the factors of a spatial dim of the input: one for the windows, which is also the output's
/// dim, and one for the elements of a window, which is also the kernel's dim. The larger of the two
/// is the major factor. If one factor has the whole size of the input dim, the other does not fit
/// into it; since [`Change::WindowsApart`], the dim of the output or of the kernel then has that
/// factor alone.
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
        let windows = (num_windows, None, output_dim, FactorKind::Permutation);
        let inside = (window_size, kernel_dim, None, FactorKind::Reduction);
        let order = if num_windows >= window_size { [windows, inside] } else { [inside, windows] };
        for (whole, kernel_dim, output_dim, kind) in order {
            let size = whole.min(left);
            if size > 1 {
                builder.factor(&[input_dim, kernel_dim], &[output_dim], size, kind);
                left /= size;
            } else if whole > 1 && view.has(Change::WindowsApart) {
                let kind = FactorKind::Permutation;
                builder.factor(&[None, kernel_dim], &[output_dim], whole, kind);
            }
        }
    }
    Some(())
}
