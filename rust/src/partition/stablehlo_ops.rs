//! Builds `stablehlo` ops that several passes need.

use crate::index::{ShardingId, TypeId, ValueId};
use crate::ir::{int_array, InsertPoint, NewOp, OpKind, Program, Type};

impl Program {
    /// Makes a slice with strides of 1.
    pub fn build_slice(
        &mut self,
        input: ValueId,
        starts: &[i64],
        limits: &[i64],
        sharding: ShardingId,
        at: InsertPoint,
    ) -> ValueId {
        let shape: Vec<i64> =
            limits.iter().zip(starts).map(|(limit, start)| limit - start).collect();
        let ty = self.tensor_type(&shape, self.type_of(input));
        let slice = NewOp::new("stablehlo.slice", &[input], &[ty])
            .sharding(sharding)
            .attr("limit_indices", int_array(limits))
            .attr("start_indices", int_array(starts))
            .attr("strides", int_array(&vec![1; starts.len()]));
        self.build_value(slice, at)
    }
    /// Pads `input` with `value` at the high ends, to `shape`.
    pub fn build_pad(
        &mut self,
        input: ValueId,
        value: ValueId,
        shape: &[i64],
        sharding: ShardingId,
        at: InsertPoint,
    ) -> ValueId {
        let ty = self.type_of(input);
        let own = self.types()[ty].static_shape().unwrap_or_default();
        let high: Vec<i64> = shape.iter().zip(&own).map(|(a, b)| a - b).collect();
        let none = int_array(&vec![0; high.len()]);
        let padded = self.tensor_type(shape, ty);
        let pad = NewOp::new("stablehlo.pad", &[input, value], &[padded])
            .sharding(sharding)
            .attr("edge_padding_high", int_array(&high))
            .attr("edge_padding_low", none.clone())
            .attr("interior_padding", none);
        self.build_value(pad, at)
    }
    /// Makes a scalar constant that is zero in the element type of `like`.
    pub fn build_zero(&mut self, like: TypeId, at: InsertPoint) -> ValueId {
        let scalar = self.tensor_type(&[], like);
        self.build_zeros(scalar, at)
    }
    /// Makes a constant of type `ty` whose elements are zero.
    pub fn build_zeros(&mut self, ty: TypeId, at: InsertPoint) -> ValueId {
        self.build_constant(self.zero_text(ty), ty, at)
    }
    /// Zero as an element of the tensor type `ty`.
    pub fn zero_text(&self, ty: TypeId) -> &'static str {
        match self.element_text(ty) {
            "i1" => "false",
            text if text.starts_with("complex") => "(0.000000e+00,0.000000e+00)",
            text if text.starts_with(['f', 'b']) => "0.000000e+00",
            _ => "0",
        }
    }
    /// Makes a scalar constant that is one in the element type of `like`, which is not complex.
    pub fn build_one(&mut self, like: TypeId, at: InsertPoint) -> ValueId {
        let one = match self.element_text(like) {
            "i1" => "true",
            text if text.starts_with(['f', 'b']) => "1.000000e+00",
            _ => "1",
        };
        let scalar = self.tensor_type(&[], like);
        self.build_constant(one, scalar, at)
    }
    fn build_constant(&mut self, text: &str, ty: TypeId, at: InsertPoint) -> ValueId {
        let value = format!("dense<{text}> : {}", self.type_text(ty));
        let constant = NewOp::of_kind(OpKind::Constant, &[], &[ty]).attr("value", value);
        self.build_value(constant, at)
    }
    /// The element type of the tensor type `ty`.
    fn element_text(&self, ty: TypeId) -> &str {
        match &self.types()[ty] {
            Type::RankedTensor { element, .. } => self.str(element.text),
            _ => "",
        }
    }
}
