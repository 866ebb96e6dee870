//! Convolutions that are sharded along batch, features or groups, or along spatial dims whose windows have one element: the op
//! itself, with fewer groups.

use super::super::Lowering;
use crate::index::OpId;
use crate::mlir::op_attribute;
use crate::spmd::digits::{digits_of, total_size};
use crate::spmd::lower::windows::elements_needed::window_lists;
use crate::stablehlo::dims::ConvDims;
use crate::stablehlo::windows::WindowDim;

impl Lowering<'_, '_, '_> {
    pub(super) fn convolve_as_shardy(&mut self, op: OpId) -> Option<()> {
        let program = &*self.emit.program;
        let [lhs, rhs] = [program.operand(op, 0), program.operand(op, 1)];
        let result = program.result(op, 0);
        let dims: ConvDims = ConvDims::read(&op_attribute(program, op, "dimension_numbers")?)?;
        let count = |name| op_attribute(program, op, name).map_or(Some(1), |value| value.as_int());
        let mut features = count("feature_group_count")?;
        let mut batches = count("batch_group_count")?;
        let (left, right, out) = (self.axes_of(lhs), self.axes_of(rhs), self.axes_of(result));
        if [&left, &right, &out].iter().all(|axes| axes.iter().all(Vec::is_empty)) {
            return None;
        }
        let mesh = self.mesh_of(op)?;
        let kernel = program.value_type(rhs).static_shape()?;
        let windows = window_lists(program, op)?;
        let stays = |at: usize| {
            let places = (dims.input_spatial[at], dims.kernel_spatial[at], dims.output_spatial[at]);
            let (image, kernel_axes, made) = (&left[places.0], &right[places.1], &out[places.2]);
            let is_one = || {
                let window = WindowDim { size: Some(kernel[places.1]), ..windows.dim(at)? };
                Some(window.is_trivial())
            };
            kernel_axes.is_empty() && image == made && (image.is_empty() || is_one() == Some(true))
        };
        if !(0..dims.input_spatial.len()).all(stays) {
            return None;
        }
        let (batch, feature) = (&left[dims.input_batch], &left[dims.input_feature]);
        let (contracted, made) =
            (&right[dims.kernel_input_feature], &right[dims.kernel_output_feature]);
        let (out_batch, out_feature) = (&out[dims.output_batch], &out[dims.output_feature]);
        let shards = total_size(&digits_of(made, &mesh));
        let are_features_split = features > 1 && !made.is_empty();
        let are_batches_split = batches > 1 && !made.is_empty();
        if made != out_feature {
            return None;
        }
        if are_features_split {
            if feature != made || features % shards != 0 || !contracted.is_empty() {
                return None;
            }
            features /= shards;
        } else if feature != contracted || (features > 1 && !contracted.is_empty()) {
            return None;
        }
        if are_batches_split {
            if batch != made || batches % shards != 0 || !out_batch.is_empty() {
                return None;
            }
            batches /= shards;
        } else if batch != out_batch || (batches > 1 && !batch.is_empty()) {
            return None;
        }
        let contracted = contracted.clone();
        if !self.has_terms_along(op, &contracted, &mesh) {
            return None;
        }
        let values = [self.held(lhs).value, self.held(rhs).value];
        self.set_operands(op, values);
        self.emit.program.set_attr(op, "feature_group_count", &format!("{features} : i64"));
        self.emit.program.set_attr(op, "batch_group_count", &format!("{batches} : i64"));
        let target = self.target(result);
        let placement = self.with_terms_left(result, target);
        self.keep(result, placement);
        self.unsharded.push(result);
        Some(())
    }
}
