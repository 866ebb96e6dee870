//! Batch normalization as reductions and elementwise ops: along a sharded batch dim devices all-reduce the sums of each feature,
//! and nothing else is sent.
//!
//! The variance is the mean of the squared deviations from the mean, as `StableHLO` specifies; XLA subtracts the square of the mean
//! from the mean of the squares, which sends as much and rounds worse. `f16` and `bf16` are computed as `f32`.

use super::build;
use super::sums::{splat, sum, with_dims};
use crate::index::{OpId, ShardingId, TypeId, ValueId};
use crate::ir::{int_array, Program};
use crate::mlir::{op_attribute, AttrValue};

/// `batch_norm_training`: the normalized batch, its means and its variances.
pub(super) fn training(program: &mut Program, op: OpId) -> Option<[ValueId; 3]> {
    let mut norm = Normalization::of(program, op)?;
    let [x, scale, offset] = norm.operands()?;
    let mean = norm.mean(x);
    let centred = norm.centred(x, mean);
    let squares = norm.elementwise("multiply", &[centred, centred]);
    let variance = norm.mean(squares);
    let factor = norm.inverse_deviation(variance);
    let factor = norm.elementwise("multiply", &[factor, scale]);
    let [factor, offset] = [factor, offset].map(|value| norm.broadcast(value));
    let scaled = norm.elementwise("multiply", &[centred, factor]);
    let found = norm.elementwise("add", &[scaled, offset]);
    Some(norm.results([found, mean, variance]))
}

/// `batch_norm_grad`: the gradients with respect to the batch, the scale and the offset.
pub(super) fn grad(program: &mut Program, op: OpId) -> Option<[ValueId; 3]> {
    let mut norm = Normalization::of(program, op)?;
    let [x, scale, mean, variance, grad] = norm.operands()?;
    let centred = norm.centred(x, mean);
    let inverse = norm.inverse_deviation(variance);
    let spread = norm.broadcast(inverse);
    let normal = norm.elementwise("multiply", &[centred, spread]);
    let of_scale = norm.elementwise("multiply", &[grad, normal]);
    let [grad_scale, grad_offset] = [of_scale, grad].map(|value| norm.sum(value));
    let [scale_part, offset_part] = [grad_scale, grad_offset].map(|value| norm.over_count(value));
    let [scale_part, offset_part] = [scale_part, offset_part].map(|value| norm.broadcast(value));
    let scale_part = norm.elementwise("multiply", &[normal, scale_part]);
    let rest = norm.elementwise("subtract", &[grad, offset_part]);
    let rest = norm.elementwise("subtract", &[rest, scale_part]);
    let factor = norm.elementwise("multiply", &[inverse, scale]);
    let factor = norm.broadcast(factor);
    let grad_x = norm.elementwise("multiply", &[rest, factor]);
    Some(norm.results([grad_x, grad_scale, grad_offset]))
}

/// A normalization that is being built.
struct Normalization<'a> {
    program: &'a mut Program,
    op: OpId,
    /// The dim of features.
    feature: usize,
    /// The type of the batch, of at least `f32`, and that of one element for each feature.
    types: [TypeId; 2],
    /// The sharding of the batch, and that of its features.
    shardings: [ShardingId; 2],
    /// The other dims, and the number of elements of each feature.
    batch: Vec<usize>,
    count: i64,
    epsilon: String,
}

impl<'a> Normalization<'a> {
    fn of(program: &'a mut Program, op: OpId) -> Option<Self> {
        let epsilon = match op_attribute(program, op, "epsilon")? {
            AttrValue::Float(value) => value as f32,
            AttrValue::Int(bits) => f32::from_bits(u32::try_from(bits).ok()?),
            _ => return None,
        };
        let feature = op_attribute(program, op, "feature_index")?.as_int()?;
        let feature = usize::try_from(feature).ok()?;
        let whole = program.operand(op, 0);
        let shape = program.value_type(whole).static_shape()?;
        let own = program.type_of(whole);
        let wide = {
            let scalar = program.tensor_type(&[], own);
            match &*program.type_text(scalar).to_string() {
                "tensor<f64>" => "f64",
                "tensor<f32>" | "tensor<f16>" | "tensor<bf16>" => "f32",
                _ => return None,
            }
        };
        let batch: Vec<usize> = (0..shape.len()).filter(|&dim| dim != feature).collect();
        let count = batch.iter().map(|&dim| shape[dim]).product();
        let features = [*shape.get(feature)?];
        if count == 0 || features == [0] {
            return None;
        }
        let types = [&shape[..], &features].map(|shape| program.tensor_type_of(shape, wide));
        let sharding = program.sharding(whole);
        let shardings = [sharding, with_dims(program, sharding, &[feature])];
        let epsilon = if wide == "f64" {
            format!("0x{:016X}", f64::from(epsilon).to_bits())
        } else {
            format!("0x{:08X}", epsilon.to_bits())
        };
        Some(Self { program, op, feature, types, shardings, batch, count, epsilon })
    }
    /// The operands, converted to the types of the computation.
    fn operands<const N: usize>(&mut self) -> Option<[ValueId; N]> {
        let operands: Vec<ValueId> = self.program.operands(self.op).collect();
        let operands: [ValueId; N] = operands.try_into().ok()?;
        Some(operands.map(|value| {
            let rank = self.program.value_type(value).static_shape().map_or(0, |it| it.len());
            let ty =
                self.types[usize::from(rank == 1 && value != self.program.operand(self.op, 0))];
            if self.program.type_of(value) == ty {
                return value;
            }
            let sharding = self.program.sharding(value);
            let new = build(self.program, self.op, "stablehlo.convert", &[value], ty, &[]);
            self.program.set_sharding(new, sharding);
            new
        }))
    }
    /// `values`, converted to the types of the results.
    fn results(&mut self, values: [ValueId; 3]) -> [ValueId; 3] {
        let results: Vec<ValueId> = self.program.op_results(self.op).collect();
        let mut values = values;
        for (value, result) in values.iter_mut().zip(results) {
            let ty = self.program.type_of(result);
            if self.program.type_of(*value) != ty {
                *value = build(self.program, self.op, "stablehlo.convert", &[*value], ty, &[]);
            }
        }
        values
    }
    /// An elementwise op.
    fn elementwise(&mut self, name: &str, operands: &[ValueId]) -> ValueId {
        let (ty, sharding) =
            (self.program.type_of(operands[0]), self.program.sharding(operands[0]));
        let name = format!("stablehlo.{name}");
        let value = build(self.program, self.op, &name, operands, ty, &[]);
        self.program.set_sharding(value, sharding);
        value
    }
    /// The sum of each feature.
    fn sum(&mut self, value: ValueId) -> ValueId {
        let sum = sum(self.program, self.op, value, &self.batch);
        self.program.set_sharding(sum, self.shardings[1]);
        sum
    }
    /// The mean of each feature.
    fn mean(&mut self, value: ValueId) -> ValueId {
        let sum = self.sum(value);
        self.over_count(sum)
    }
    /// `value`, one element for each feature, divided by the number of elements of a feature.
    fn over_count(&mut self, value: ValueId) -> ValueId {
        let count = self.splat(&format!("{}.0", self.count));
        self.elementwise("divide", &[value, count])
    }
    /// `value`, one element for each feature, broadcast to all elements.
    fn broadcast(&mut self, value: ValueId) -> ValueId {
        let attrs = [("broadcast_dimensions", int_array(&[self.feature as i64]))];
        let name = "stablehlo.broadcast_in_dim";
        let found = build(self.program, self.op, name, &[value], self.types[0], &attrs);
        self.program.set_sharding(found, self.shardings[0]);
        found
    }
    fn centred(&mut self, value: ValueId, mean: ValueId) -> ValueId {
        let mean = self.broadcast(mean);
        let value = self.elementwise("subtract", &[value, mean]);
        self.program.set_sharding(value, self.shardings[0]);
        value
    }
    /// The reciprocal square root of `variance` plus epsilon.
    fn inverse_deviation(&mut self, variance: ValueId) -> ValueId {
        let epsilon = self.epsilon.clone();
        let epsilon = self.splat(&epsilon);
        let sum = self.elementwise("add", &[variance, epsilon]);
        self.elementwise("rsqrt", &[sum])
    }
    fn splat(&mut self, element: &str) -> ValueId {
        let value = splat(self.program, self.op, self.types[1], element);
        self.program.set_sharding(value, self.shardings[1]);
        value
    }
}
