//! Pads whose operand and result are sharded alike, where no shard needs elements of another.

use super::super::super::emit::int_array;
use super::super::{Lowering, Reducer};
use crate::axis::AxisRef;
use crate::index::{OpId, TypeId, ValueId};
use crate::mesh::Mesh;
use crate::spmd::digits::{digits_of, number_at, total_size};
use crate::spmd::lower::windows::elements_needed::ints;

/// The padding of a dim: the sizes of the operand and the result, those of their shards, and the low and interior padding.
#[derive(Clone, Copy)]
struct Dim {
    size: i64,
    padded: i64,
    local: i64,
    local_padded: i64,
    low: i64,
    between: i64,
}

impl Dim {
    /// The distance from the start of shard `number` of the result to the first element of that shard of the operand.
    const fn offset(self, number: i64) -> i64 {
        number * self.local * (self.between + 1) + self.low - number * self.local_padded
    }
    /// Whether each device's shard of the result needs only elements of its own shard of the operand.
    fn stays(self, num_shards: i64) -> bool {
        let place = |index: i64| index * (self.between + 1) + self.low;
        // The first element that is not cut off at the start, and the one after the last.
        let step = self.between + 1;
        let first = (-self.low).max(0).div_euclid(step) + i64::from((-self.low).max(0) % step != 0);
        let end = (self.padded - self.low - 1).div_euclid(step) + 1;
        (0..num_shards).all(|number| {
            let from = (number * self.local).max(first);
            let to = ((number + 1) * self.local).min(end).min(self.size);
            from >= to
                || (place(from) >= number * self.local_padded
                    && place(to - 1) < (number + 1) * self.local_padded)
        })
    }
    /// The size of a shard of the operand after interior padding.
    const fn spread(self) -> i64 {
        (self.local - 1) * (self.between + 1) + 1
    }
}

impl Lowering<'_, '_, '_> {
    pub(super) fn pad_as_shardy(&mut self, op: OpId) -> Option<()> {
        let program = &*self.emit.program;
        let (operand, fill) = (program.operand(op, 0), program.operand(op, 1));
        let result = program.result(op, 0);
        let axes = self.axes_of(operand);
        if axes.iter().all(Vec::is_empty) || axes != self.axes_of(result) {
            return None;
        }
        let mesh = self.mesh_of(op)?;
        let (size, padded) = (self.global_shape(operand)?, self.global_shape(result)?);
        let list = |name| ints(self.emit.program, op, name);
        let (low, between) = (list("edge_padding_low"), list("interior_padding"));
        let (held, fill) = (self.held(operand), self.held(fill).value);
        let local = self.emit.shape(held.value);
        let target = self.target(result);
        let ty = self.local_type(self.emit.program.type_of(result), target);
        let local_padded = self.shape_of(ty)?;
        let dims = (0..axes.len()).map(|dim| {
            let (low, between) = (*low.get(dim)?, *between.get(dim)?);
            let (size, padded) = (size[dim], padded[dim]);
            let (local, local_padded) = (local[dim], local_padded[dim]);
            Some(Dim { size, padded, local, local_padded, low, between })
        });
        let dims: Vec<Dim> = dims.collect::<Option<_>>()?;
        for (dim, axes) in dims.iter().zip(&axes) {
            if !axes.is_empty() && !dim.stays(total_size(&digits_of(axes, &mesh))) {
                return None;
            }
        }
        let offsets: Vec<Vec<i64>> =
            dims.iter().zip(&axes).map(|(dim, axes)| offsets(*dim, axes, &mesh)).collect();
        let is_same = |list: &Vec<i64>| list.iter().all(|offset| *offset == list[0]);
        if offsets.iter().all(is_same) {
            let low: Vec<i64> = offsets.iter().map(|list| list[0]).collect();
            let high = dims.iter().zip(&low);
            let high: Vec<i64> =
                high.map(|(dim, low)| dim.local_padded - (dim.spread() + low)).collect();
            let value = self.padded(held.value, fill, ty, [&low, &high, &between]);
            self.replace_as_shardy(op, value, Reducer::Add);
            return Some(());
        }
        // Padded so far that the part of each device is in bounds, which it then slices.
        let (mut before, mut after, mut shape) = (Vec::new(), Vec::new(), Vec::new());
        for (dim, list) in dims.iter().zip(&offsets) {
            let (least, most) = (*list.iter().min()?, *list.iter().max()?);
            before.push(most.max(0));
            after.push((dim.local_padded - least - dim.spread()).max(0));
            shape.push(most.max(0) + dim.spread() + after.last()?);
        }
        let wide = self.emit.like(&shape, ty);
        let wide = self.padded(held.value, fill, wide, [&before, &after, &between]);
        let device = self.device_as_shardy();
        let scalar = self.emit.program.tensor_type_of(&[], self.offset_element());
        let mut operands = vec![wide];
        for (list, before) in offsets.iter().zip(&before) {
            let table: Vec<i64> = list.iter().map(|offset| before - offset).collect();
            operands.push(if is_same(list) {
                self.emit.splat(&table[0].to_string(), scalar)
            } else {
                self.own_number(device, &table)
            });
        }
        let sizes = [("slice_sizes", int_array(&local_padded))];
        let value = self.emit.op("stablehlo.dynamic_slice", &operands, ty, &sizes);
        self.replace_as_shardy(op, value, Reducer::Add);
        Some(())
    }
    fn padded(
        &mut self,
        value: ValueId,
        fill: ValueId,
        ty: TypeId,
        [low, high, between]: [&[i64]; 3],
    ) -> ValueId {
        let attrs = [
            ("edge_padding_low", int_array(low)),
            ("edge_padding_high", int_array(high)),
            ("interior_padding", int_array(between)),
        ];
        self.emit.op("stablehlo.pad", &[value, fill], ty, &attrs)
    }
}

/// For each device the offset of its shard along a dim.
fn offsets(dim: Dim, axes: &[AxisRef], mesh: &Mesh) -> Vec<i64> {
    let digits = digits_of(axes, mesh);
    let mut list = vec![0; mesh.device_count() as usize];
    for position in 0..mesh.device_count() {
        let device = mesh.device_at_position(position) as usize;
        list[device] = dim.offset(number_at(&digits, position));
    }
    list
}
