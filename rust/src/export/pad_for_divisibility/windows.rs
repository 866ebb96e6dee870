//! Pads `stablehlo.pad` and convolutions.

use super::conversion::{Conversion, Padding};
use super::mask::with_padding;
use super::shapes::{padded_type, windows};
use crate::index::{OpId, ValueId};
use crate::ir::{int_array, ConstantValue, NewOp, OpKind, Program};
use crate::mlir::op_attribute;
use crate::stablehlo::dims::ConvDims;
use crate::stablehlo::windows::{WindowDim, CONVOLUTION};

impl Conversion {
    /// Pads the pad `op` at its high ends, so that its result has the padded size. If it removes
    /// elements at the high end, the padding of the input takes their place, and gets the padding
    /// value. Returns `None` and does nothing if its operands are not tensors of static shape.
    pub(super) fn pad_pad(&mut self, program: &mut Program, op: OpId) -> Option<()> {
        let list = |name| op_attribute(program, op, name)?.as_ints();
        let (low, high) = (list("edge_padding_low")?, list("edge_padding_high")?);
        let interior = list("interior_padding")?;
        let result = program.result(op, 0);
        let sharding = program.sharding(result);
        let padded = padded_type(program, program.type_of(result), sharding);
        let source = program.operand(op, 0);
        let old = self.original_type(program, source);
        let mut input = self.adapted(program, source);
        let padding = self.adapted(program, program.operand(op, 1));
        let from = program.value_type(input).static_shape()?;
        let to = program.types()[padded].static_shape()?;
        let size = |dim: usize| from[dim] + low[dim] + (from[dim] - 1).max(0) * interior[dim];
        let new_high: Vec<i64> = (0..from.len()).map(|dim| to[dim] - size(dim)).collect();
        let mut known = constant_padding(program, program.operand(op, 1));
        if new_high.iter().zip(&high).any(|(new, old)| new < old) {
            input = with_padding(program, op, (input, old), Some(padding), |_| true);
        } else if program.type_of(input) != old {
            known = known.filter(|&known| self.padding_of(input) == Some(known));
        }
        let pad = NewOp::new("stablehlo.pad", &[input, padding], &[padded])
            .sharding(sharding)
            .attr("edge_padding_high", int_array(&new_high))
            .attr("edge_padding_low", int_array(&low))
            .attr("interior_padding", int_array(&interior));
        let new = program.build_value(pad, program.before(op));
        self.set_padding(new, known);
        self.replaced.insert(result, new);
        self.erased.insert(result);
        self.converted.insert(op);
        Some(())
    }
    /// Pads the convolution `op`, with zeros along the dims that it contracts, and slices its
    /// result along dims with windows. Returns `None` and does nothing if it has padded groups, or
    /// too few windows.
    pub(super) fn pad_convolution(&mut self, program: &mut Program, op: OpId) -> Option<()> {
        let dims: ConvDims = ConvDims::read(&op_attribute(program, op, "dimension_numbers")?)?;
        let mut operands = self.adapted_operands(program, op);
        let shape = inferred_shape(program, op, &operands, &dims)?;
        let result = program.result(op, 0);
        let own = program.type_of(result);
        let wanted = padded_type(program, own, program.sharding(result));
        let wanted = program.types()[wanted].static_shape()?;
        let is_wanted = |dim: usize| {
            let has_windows = dims.output_spatial.contains(&dim);
            shape[dim] == wanted[dim] || (has_windows && shape[dim] > wanted[dim])
        };
        if !(0..shape.len()).all(is_wanted) || self.has_padded_groups(program, op, &operands, &dims)
        {
            return None;
        }
        let summed = [
            [&[dims.input_feature], &dims.input_spatial[..]].concat(),
            [&[dims.kernel_input_feature], &dims.kernel_spatial[..]].concat(),
        ];
        for (index, dims) in summed.iter().enumerate() {
            operands[index] = self.zero_padded(program, (op, index), operands[index], dims);
        }
        let ty = program.tensor_type(&shape, own);
        self.set_padded(program, op, &operands, &[ty]);
        self.trim_to(program, op, &wanted, Some(Padding::Zeros), |dim| {
            dims.output_spatial.contains(&dim)
        });
        Some(())
    }
    /// Whether `op` has batch or feature groups, and a dim that is divided into groups is padded.
    fn has_padded_groups(
        &self,
        program: &Program,
        op: OpId,
        operands: &[ValueId],
        dims: &ConvDims,
    ) -> bool {
        let count = |name| op_attribute(program, op, name).and_then(|value| value.as_int());
        let is_one = |name| count(name).is_none_or(|count| count <= 1);
        if is_one("feature_group_count") && is_one("batch_group_count") {
            return false;
        }
        let is_padded = |operand: usize, dim: usize| {
            let old = self.original_type(program, program.operand(op, operand));
            let old = program.types()[old].static_shape();
            old.is_none_or(|old| {
                program
                    .value_type(operands[operand])
                    .static_shape()
                    .is_none_or(|new| old[dim] != new[dim])
            })
        };
        let grouped = [
            (0, dims.input_batch),
            (0, dims.input_feature),
            (1, dims.kernel_input_feature),
            (1, dims.kernel_output_feature),
        ];
        grouped.into_iter().any(|(operand, dim)| is_padded(operand, dim))
    }
}

/// The contents of padding with `value`, if known.
pub(super) fn constant_padding(program: &Program, value: ValueId) -> Option<Padding> {
    let op = program.defining_op(value).filter(|&op| program.kind(op) == OpKind::Constant)?;
    match program.constant_value(op) {
        ConstantValue::Splat(bits) if bits << 1 == 0 => Some(Padding::Zeros),
        ConstantValue::Splat(bits) if bits == 1_f64.to_bits() => Some(Padding::Ones),
        ConstantValue::Element("0" | "false") => Some(Padding::Zeros),
        ConstantValue::Element("1" | "true") => Some(Padding::Ones),
        _ => None,
    }
}

/// The shape of the result of convolution `op` with these operands; `None` if they do not fit together.
fn inferred_shape(
    program: &Program,
    op: OpId,
    operands: &[ValueId],
    dims: &ConvDims,
) -> Option<Vec<i64>> {
    let [lhs, rhs] = operands else { return None };
    let (lhs, rhs) =
        (program.value_type(*lhs).static_shape()?, program.value_type(*rhs).static_shape()?);
    let groups =
        |name| op_attribute(program, op, name).and_then(|value| value.as_int()).unwrap_or(1).max(1);
    let (batches, features) = (groups("batch_group_count"), groups("feature_group_count"));
    if lhs[dims.input_feature] != rhs[dims.kernel_input_feature] * features {
        return None;
    }
    let lists = windows(program, op, CONVOLUTION)?;
    let window =
        |(at, &dim): (usize, &usize)| Some(WindowDim { size: Some(rhs[dim]), ..lists.dim(at)? });
    let mut shape = vec![0; lhs.len()];
    let spatial = dims.input_spatial.iter().zip(&dims.output_spatial);
    for (kernel, (&input, &output)) in dims.kernel_spatial.iter().enumerate().zip(spatial) {
        shape[output] = window(kernel)?.num_windows(Some(lhs[input]))?;
    }
    shape[dims.output_batch] = lhs[dims.input_batch] / batches;
    shape[dims.output_feature] = rhs[dims.kernel_output_feature];
    Some(shape)
}
