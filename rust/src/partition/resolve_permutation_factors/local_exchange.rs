//! The exchange along one dim, inside the manual computation.

use super::devices::{shard_number, shift_pairs};
use super::exchange::{DimExchange, Start};
use super::manual::Body;
use super::Resolution;
use crate::axis::{total_size, AxisRef};
use crate::index::{ShardingId, TypeId, ValueId};
use crate::ir::{int_array, int_attr, NewOp, OpKind, Program};
use crate::layout::stride;
use crate::mesh::Mesh;

/// The exchange along one dim.
pub struct Along<'a> {
    /// The program.
    pub program: &'a mut Program,
    /// The channels and device ids for new ops.
    pub resolution: &'a mut Resolution,
    /// The body of the manual computation.
    pub body: &'a Body,
    /// The mesh.
    pub mesh: &'a Mesh,
    /// The dim.
    pub dim: &'a DimExchange,
    /// The axes along which the shards are numbered.
    pub axes: &'a [AxisRef],
}

impl Along<'_> {
    /// The device's shard of the result, in which `low` elements come before the operand, whose
    /// elements are `dilation` apart.
    pub fn exchange(&mut self, input: ValueId, low: i64, dilation: i64) -> ValueId {
        let mut sizes = self.program.value_type(input).static_shape().unwrap_or_default();
        let shard = sizes[self.dim.dim] * dilation;
        let edge = self.dim.size * dilation;
        let own = self.own_number();
        let parts = self.parts(input, own);
        let padded = self.concatenated(&parts, edge, dilation);
        let left = self.dim.hops[0];
        let (offset, zero) = if let Some((_, starts)) = &self.dim.split {
            let offset = |(target, start): (i64, &Start)| {
                let hops = left + start.shard.unwrap_or(target) - target;
                edge + hops * shard + start.place
            };
            let offsets: Vec<i64> = (0..).zip(starts).map(offset).collect();
            (self.looked_up(&offsets, own), self.number(0))
        } else {
            let step = self.number(self.dim.size - shard);
            let base = self.number(left * shard + edge - low);
            let offset = self.binary("stablehlo.multiply", own, step);
            let offset = self.binary("stablehlo.add", offset, base);
            let zero = self.number(0);
            (self.binary("stablehlo.maximum", offset, zero), zero)
        };
        let mut operands = vec![padded];
        let at = |dim| if dim == self.dim.dim { offset } else { zero };
        operands.extend((0..sizes.len()).map(at));
        sizes[self.dim.dim] = self.dim.size;
        let ty = self.program.tensor_type(&sizes, self.program.type_of(input));
        let slice = NewOp::of_kind(OpKind::DynamicSlice, &operands, &[ty])
            .sharding(self.body.sharding)
            .attr("slice_sizes", int_array(&sizes));
        self.build(slice)
    }
    /// The shards to the left, the device's own, and those to the right; those that do not exist
    /// are replaced by the padding.
    fn parts(&mut self, input: ValueId, own: ValueId) -> Vec<ValueId> {
        let [left, right] = self.dim.hops;
        let shards = total_size(self.axes, self.mesh);
        let mut parts = Vec::new();
        for hop in (1..=left).rev() {
            parts.push(self.part(input, hop, ("GE", own, hop)));
        }
        parts.push(input);
        for hop in 1..=right {
            parts.push(self.part(input, -hop, ("LT", own, shards - hop)));
        }
        parts
    }
    /// `input` of the device `hop` shards to the left if the comparison of `own` with `bound`
    /// holds, else the padding.
    fn part(
        &mut self,
        input: ValueId,
        hop: i64,
        (direction, own, bound): (&str, ValueId, i64),
    ) -> ValueId {
        let pairs = shift_pairs(self.mesh, self.axes, hop);
        let none = ShardingId::NONE;
        let sent = self.resolution.permute(self.program, input, &pairs, none, self.body.at);
        let bound = self.number(bound);
        let flag = self.program.tensor_type_of(&[], "i1");
        let compare = NewOp::new("stablehlo.compare", &[own, bound], &[flag]);
        let direction = format!("#stablehlo<comparison_direction {direction}>");
        let is_there = self.build(compare.attr("comparison_direction", direction));
        let ty = self.program.type_of(input);
        let shape = self.program.types()[ty].static_shape().unwrap_or_default();
        let flags = self.program.tensor_type_of(&shape, "i1");
        let padding = self.build(splat(self.body.padding, ty));
        let is_there = self.build(splat(is_there, flags));
        self.build(NewOp::new("stablehlo.select", &[is_there, sent, padding], &[ty]))
    }
    /// The parts, concatenated, dilated, and padded by `edge` elements on both sides.
    fn concatenated(&mut self, parts: &[ValueId], edge: i64, dilation: i64) -> ValueId {
        let dim = self.dim.dim;
        let ty = self.program.type_of(parts[0]);
        let mut shape = self.program.types()[ty].static_shape().unwrap_or_default();
        shape[dim] *= parts.len() as i64;
        let whole = self.program.tensor_type(&shape, ty);
        let concatenate = NewOp::of_kind(OpKind::Concatenate, parts, &[whole])
            .sharding(self.body.sharding)
            .attr("dimension", int_attr(dim as i64));
        let value = self.build(concatenate);
        let (mut edges, mut between) = (vec![0; shape.len()], vec![0; shape.len()]);
        edges[dim] = edge;
        between[dim] = dilation - 1;
        shape[dim] = (shape[dim] - 1) * dilation + 1 + 2 * edge;
        let padded = self.program.tensor_type(&shape, ty);
        let pad = NewOp::new("stablehlo.pad", &[value, self.body.padding], &[padded])
            .sharding(self.body.sharding)
            .attr("edge_padding_high", int_array(&edges))
            .attr("edge_padding_low", int_array(&edges))
            .attr("interior_padding", int_array(&between));
        self.build(pad)
    }
    /// The index of the device's shard: looked up in a table if the mesh lists its devices, else
    /// computed.
    fn own_number(&mut self) -> ValueId {
        let unsigned = self.program.tensor_type_of(&[], "ui32");
        let id = self.build(NewOp::new(self.resolution.id_op, &[], &[unsigned]));
        if !self.mesh.device_ids.is_empty() {
            let mut numbers = vec![0; self.mesh.device_ids.len()];
            for position in 0..self.mesh.num_devices() {
                let device = usize::try_from(self.mesh.device_at_position(position));
                if let Some(number) = device.ok().and_then(|device| numbers.get_mut(device)) {
                    *number = shard_number(position, self.axes, self.mesh);
                }
            }
            return self.looked_up(&numbers, id);
        }
        let signed = self.program.tensor_type_of(&[], "i32");
        let id = self.build(NewOp::new("stablehlo.convert", &[id], &[signed]));
        let mut number: Option<ValueId> = None;
        for &axis in self.axes {
            let digit = self.digit(id, axis);
            number = Some(match number {
                Some(major) => {
                    let size = self.number(axis.size(self.mesh));
                    let major = self.binary("stablehlo.multiply", major, size);
                    self.binary("stablehlo.add", major, digit)
                }
                None => digit,
            });
        }
        number.unwrap_or_else(|| self.number(0))
    }
    /// The device's index along `axis`.
    fn digit(&mut self, id: ValueId, axis: AxisRef) -> ValueId {
        let (size, stride) = (axis.size(self.mesh), stride(axis, self.mesh));
        let mut digit = id;
        if stride > 1 {
            let stride = self.number(stride);
            digit = self.binary("stablehlo.divide", digit, stride);
        }
        if size < self.mesh.num_devices() {
            let size = self.number(size);
            digit = self.binary("stablehlo.remainder", digit, size);
        }
        digit
    }
    /// The element of `list` at `index`.
    fn looked_up(&mut self, list: &[i64], index: ValueId) -> ValueId {
        let table = self.program.tensor_type_of(&[list.len() as i64], "i32");
        let one = self.program.tensor_type_of(&[1], "i32");
        let scalar = self.program.tensor_type_of(&[], "i32");
        let mut text: Vec<String> = list.iter().map(i64::to_string).collect();
        if list.iter().all(|number| *number == list[0]) {
            text.truncate(1);
        } else {
            text = vec![format!("[{}]", text.join(", "))];
        }
        let text = format!("dense<{}> : {}", text.concat(), self.program.type_text(table));
        let table = self.build(NewOp::of_kind(OpKind::Constant, &[], &[table]).attr("value", text));
        let slice = NewOp::of_kind(OpKind::DynamicSlice, &[table, index], &[one]);
        let found = self.build(slice.attr("slice_sizes", int_array(&[1])));
        self.build(NewOp::of_kind(OpKind::Reshape, &[found], &[scalar]))
    }
    fn number(&mut self, number: i64) -> ValueId {
        let ty = self.program.tensor_type_of(&[], "i32");
        let text = format!("dense<{number}> : tensor<i32>");
        self.build(NewOp::of_kind(OpKind::Constant, &[], &[ty]).attr("value", text))
    }
    fn binary(&mut self, name: &str, first: ValueId, second: ValueId) -> ValueId {
        let ty = self.program.type_of(first);
        self.build(NewOp::new(name, &[first, second], &[ty]))
    }
    fn build(&mut self, op: NewOp<'_>) -> ValueId {
        self.program.build_value(op, self.body.at)
    }
}

/// A tensor of type `ty` whose elements are all `scalar`.
pub fn splat(scalar: ValueId, ty: TypeId) -> NewOp<'static> {
    NewOp::of_kind(OpKind::BroadcastInDim, &[scalar], &[ty])
        .attr("broadcast_dimensions", int_array(&[]))
}
