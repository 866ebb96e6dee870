//! Making ops of `stablehlo`, in generic form, and the types that they need.

use crate::index::{OpId, ShardingId, TypeId, ValueId};
use crate::ir::{element_bits, ElementType, Place, Program, Type};

/// `array<i64: 1, 2>`
pub fn int_array(numbers: &[i64]) -> String {
    if numbers.is_empty() {
        return "array<i64>".to_owned();
    }
    format!("array<i64: {}>", joined(numbers))
}

/// `1, 2`
pub fn joined(numbers: &[i64]) -> String {
    let numbers: Vec<String> = numbers.iter().map(i64::to_string).collect();
    numbers.join(", ")
}

impl Program {
    /// The tensor type of this shape with the element type of `like`.
    pub fn tensor_type(&mut self, shape: &[i64], like: TypeId) -> TypeId {
        let shape: Vec<Option<i64>> = shape.iter().copied().map(Some).collect();
        self.ranked_type(&shape, like)
    }
    /// The same where dims may be dynamic.
    pub fn ranked_type(&mut self, shape: &[Option<i64>], like: TypeId) -> TypeId {
        let Type::RankedTensor { element, .. } = &self.types[like] else { return like };
        let element = element.clone();
        self.ranked_type_of(shape, element)
    }
    /// The tensor type of this shape whose elements are called `element`.
    pub fn tensor_type_of(&mut self, shape: &[i64], element: &str) -> TypeId {
        let shape: Vec<Option<i64>> = shape.iter().copied().map(Some).collect();
        let element =
            ElementType { text: self.strings.intern(element), bits: element_bits(element) };
        self.ranked_type_of(&shape, element)
    }
    fn ranked_type_of(&mut self, shape: &[Option<i64>], element: ElementType) -> TypeId {
        let text = self.strings.get(element.text);
        let size = |size: &Option<i64>| size.map_or("?x".to_owned(), |size| format!("{size}x"));
        let sizes: String = shape.iter().map(size).collect();
        let text = format!("tensor<{sizes}{text}>");
        let ty = Type::RankedTensor { shape: shape.to_vec(), element, encoding: None };
        self.intern_type(ty, &text)
    }
    /// Makes an op with one result in `stablehlo`, from attributes in generic form. Where: the place, and
    /// the op whose location it has.
    pub fn create_stablehlo_op(
        &mut self,
        name: &str,
        operands: &[ValueId],
        (ty, sharding): (TypeId, ShardingId),
        attrs: &[(&str, String)],
        (place, like): (Place, OpId),
    ) -> ValueId {
        let op = self.create_op(name, operands, &[ty]);
        self.op_texts[op].loc = self.op_texts[like].loc;
        for (name, value) in attrs {
            self.set_attr(op, name, value);
        }
        self.insert_op(op, place);
        let result = self.result(op, 0);
        self.set_sharding(result, sharding);
        result
    }
    /// Makes a slice with strides of 1.
    pub fn create_slice(
        &mut self,
        input: ValueId,
        starts: &[i64],
        limits: &[i64],
        sharding: ShardingId,
        at: (Place, OpId),
    ) -> ValueId {
        let shape: Vec<i64> =
            limits.iter().zip(starts).map(|(limit, start)| limit - start).collect();
        let ty = self.tensor_type(&shape, self.values[input].ty);
        let attrs = [
            ("limit_indices", int_array(limits)),
            ("start_indices", int_array(starts)),
            ("strides", int_array(&vec![1; starts.len()])),
        ];
        self.create_stablehlo_op("stablehlo.slice", &[input], (ty, sharding), &attrs, at)
    }
    /// Pads `input` with `value` at the high ends, up to `shape`.
    pub fn create_pad(
        &mut self,
        input: ValueId,
        value: ValueId,
        shape: &[i64],
        sharding: ShardingId,
        at: (Place, OpId),
    ) -> ValueId {
        let ty = self.values[input].ty;
        let own = self.types[ty].static_shape().unwrap_or_default();
        let high: Vec<i64> = shape.iter().zip(&own).map(|(a, b)| a - b).collect();
        let none = int_array(&vec![0; high.len()]);
        let attrs = [
            ("edge_padding_high", int_array(&high)),
            ("edge_padding_low", none.clone()),
            ("interior_padding", none),
        ];
        let padded = self.tensor_type(shape, ty);
        self.create_stablehlo_op("stablehlo.pad", &[input, value], (padded, sharding), &attrs, at)
    }
    /// Makes a constant without dims that is zero in the element type of `like`.
    pub fn create_zero(&mut self, like: TypeId, at: (Place, OpId)) -> ValueId {
        let scalar = self.tensor_type(&[], like);
        let value =
            format!("dense<{}> : {}", self.zero(like), self.text.get(self.types.text(scalar)));
        let attrs = [("value", value)];
        self.create_stablehlo_op("stablehlo.constant", &[], (scalar, ShardingId::NONE), &attrs, at)
    }
    /// How zero is written in a tensor of type `ty`.
    fn zero(&self, ty: TypeId) -> &'static str {
        let Type::RankedTensor { element, .. } = &self.types[ty] else { return "0" };
        match self.strings.get(element.text) {
            "i1" => "false",
            text if text.starts_with("complex") => "(0.000000e+00,0.000000e+00)",
            text if text.starts_with(['f', 'b']) => "0.000000e+00",
            _ => "0",
        }
    }
}
