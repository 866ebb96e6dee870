//! Builds ops that change the shapes of tensors.

use super::emit::{int_array, zero, Emitter};
use crate::index::{TypeId, ValueId};

impl Emitter<'_> {
    /// `input` broadcast to `ty`; its dims are mapped to `dims` of the result.
    pub fn broadcast(&mut self, input: ValueId, dims: &[i64], ty: TypeId) -> ValueId {
        let attrs = [("broadcast_dimensions", int_array(dims))];
        self.op("stablehlo.broadcast_in_dim", &[input], ty, &attrs)
    }
    /// The part of `input` from `starts` to `limits`.
    pub fn slice(&mut self, input: ValueId, starts: &[i64], limits: &[i64]) -> ValueId {
        self.strided_slice(input, starts, limits, &vec![1; starts.len()])
    }
    /// The strided slice of `input` from `starts` to `limits`.
    pub fn strided_slice(
        &mut self,
        input: ValueId,
        starts: &[i64],
        limits: &[i64],
        strides: &[i64],
    ) -> ValueId {
        let sizes = starts.iter().zip(limits).zip(strides);
        let shape: Vec<i64> = sizes
            .map(|((start, limit), stride)| crate::layout::ceil_div(limit - start, *stride))
            .collect();
        if strides.iter().all(|&stride| stride == 1) && shape == self.shape(input) {
            return input;
        }
        let ty = self.type_of(input);
        let ty = self.like(&shape, ty);
        let attrs = [
            ("limit_indices", int_array(limits)),
            ("start_indices", int_array(starts)),
            ("strides", int_array(strides)),
        ];
        self.op("stablehlo.slice", &[input], ty, &attrs)
    }
    /// The slice of `input` of shape `shape` that starts at `starts`; `None` stands for 0.
    pub fn dynamic_slice(
        &mut self,
        input: ValueId,
        starts: &[Option<ValueId>],
        shape: &[i64],
    ) -> ValueId {
        let mut operands = vec![input];
        for &start in starts {
            operands.push(match start {
                Some(start) => start,
                None => self.index(0),
            });
        }
        let ty = self.type_of(input);
        let ty = self.like(shape, ty);
        let attrs = [("slice_sizes", int_array(shape))];
        self.op("stablehlo.dynamic_slice", &operands, ty, &attrs)
    }
    /// `input` padded by `low` and `high` elements in each dim with `fill`, or zero; negative numbers remove
    /// elements.
    pub fn pad(
        &mut self,
        input: ValueId,
        fill: Option<ValueId>,
        low: &[i64],
        high: &[i64],
    ) -> ValueId {
        self.pad_between(input, fill, [low, high, &vec![0; low.len()]])
    }
    /// `input` padded by `low` and `high` elements in each dim, and `interior` between elements, with `fill`, or zero.
    pub fn pad_between(
        &mut self,
        input: ValueId,
        fill: Option<ValueId>,
        [low, high, interior]: [&[i64]; 3],
    ) -> ValueId {
        let sizes = self.shape(input);
        if low.iter().chain(high).chain(interior).all(|&count| count == 0) {
            return input;
        }
        let between = |dim: usize| (sizes[dim] - 1).max(0) * interior[dim];
        let shape: Vec<i64> =
            (0..sizes.len()).map(|dim| low[dim] + sizes[dim] + between(dim) + high[dim]).collect();
        let own = self.type_of(input);
        let fill = if let Some(fill) = fill {
            fill
        } else {
            let zero = zero(self.element(own));
            self.scalar(zero, own)
        };
        let ty = self.like(&shape, own);
        let attrs = [
            ("edge_padding_high", int_array(high)),
            ("edge_padding_low", int_array(low)),
            ("interior_padding", int_array(interior)),
        ];
        self.op("stablehlo.pad", &[input, fill], ty, &attrs)
    }
    /// `mask`, which has one dim, broadcast to `shape` along dim `dim`.
    pub fn along(&mut self, mask: ValueId, dim: usize, shape: &[i64]) -> ValueId {
        if shape.len() == 1 {
            return mask;
        }
        let ty = self.type_of(mask);
        let ty = self.like(shape, ty);
        self.broadcast(mask, &[dim as i64], ty)
    }
    /// `values` concatenated along `dim`.
    pub fn concatenate(&mut self, values: &[ValueId], dim: usize) -> ValueId {
        let mut shape = self.shape(values[0]);
        shape[dim] = values.iter().map(|&value| self.shape(value)[dim]).sum();
        let ty = self.type_of(values[0]);
        let ty = self.like(&shape, ty);
        let attrs = [("dimension", format!("{dim} : i64"))];
        self.op("stablehlo.concatenate", values, ty, &attrs)
    }
    /// `input` with its dims in `order`.
    pub fn transpose(&mut self, input: ValueId, order: &[usize]) -> ValueId {
        if order.is_sorted() {
            return input;
        }
        let own = self.shape(input);
        let shape: Vec<i64> = order.iter().map(|&dim| own[dim]).collect();
        let ty = self.type_of(input);
        let ty = self.like(&shape, ty);
        let order: Vec<i64> = order.iter().map(|&dim| dim as i64).collect();
        self.op("stablehlo.transpose", &[input], ty, &[("permutation", int_array(&order))])
    }
    /// `input` reshaped to `shape`.
    pub fn reshape(&mut self, input: ValueId, shape: &[i64]) -> ValueId {
        if self.shape(input) == shape {
            return input;
        }
        let ty = self.type_of(input);
        let ty = self.like(shape, ty);
        self.op("stablehlo.reshape", &[input], ty, &[])
    }
}
