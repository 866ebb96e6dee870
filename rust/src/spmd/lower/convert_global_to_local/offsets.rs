//! Values that differ between devices, such as offsets, as constant tables that are indexed by the id of the device.

use super::super::super::emit::int_array;
use super::super::Lowering;
use crate::axis::AxisRef;
use crate::index::ValueId;
use crate::mesh::Mesh;
use crate::shardy::Change;
use crate::spmd::digits::{digits_of, number_at};

impl Lowering<'_, '_, '_> {
    /// The offset of the device's shard along `axes`, of `size` elements each, looked up in a table.
    pub(in crate::spmd::lower) fn offset(
        &mut self,
        mesh: &Mesh,
        axes: &[AxisRef],
        size: i64,
    ) -> ValueId {
        let device = self.device_as_shardy();
        let digits = digits_of(axes, mesh);
        let mut offsets = vec![0; mesh.device_count() as usize];
        for position in 0..mesh.device_count() {
            let device = mesh.device_at_position(position) as usize;
            offsets[device] = number_at(&digits, position) * size;
        }
        self.own_number(device, &offsets)
    }
    /// The element type of these tables.
    pub(in crate::spmd::lower) fn offset_element(&self) -> &'static str {
        let is_raw = self.emit.program.shardy().has(Change::RawDeviceIds);
        if is_raw {
            "i32"
        } else {
            "i64"
        }
    }
    /// The id of the device, by which tables are indexed.
    pub(in crate::spmd::lower) fn device_as_shardy(&mut self) -> ValueId {
        let unsigned = self.emit.program.tensor_type_of(&[], "ui32");
        let id = self.emit.op(self.emit.devices.id_op(), &[], unsigned, &[]);
        if self.emit.program.shardy().has(Change::RawDeviceIds) {
            return id;
        }
        let scalar = self.emit.program.tensor_type_of(&[], "i64");
        self.emit.op("stablehlo.convert", &[id], scalar, &[])
    }
    /// The element of `table` for `device`, as a scalar.
    pub(in crate::spmd::lower) fn own_number(&mut self, device: ValueId, table: &[i64]) -> ValueId {
        let element = self.offset_element();
        let own = self.own_element(device, table, element);
        let scalar = self.emit.program.tensor_type_of(&[], element);
        self.emit.op("stablehlo.reshape", &[own], scalar, &[])
    }
    /// The element of `table` for `device`, of type `element`, as a tensor of one element.
    pub(in crate::spmd::lower) fn own_element(
        &mut self,
        device: ValueId,
        table: &[i64],
        element: &str,
    ) -> ValueId {
        let list = if element == "i1" {
            elements(&table.iter().map(|&number| number != 0).collect::<Vec<_>>())
        } else {
            elements(table)
        };
        let ty = self.emit.program.tensor_type_of(&[table.len() as i64], element);
        let one = self.emit.program.tensor_type_of(&[1], element);
        let table = self.emit.splat(&list, ty);
        let sizes = [("slice_sizes", int_array(&[1]))];
        self.emit.op("stablehlo.dynamic_slice", &[table, device], one, &sizes)
    }
}

/// `[1, 2]`, the elements of a constant; one element if all are the same.
pub(super) fn elements<T: PartialEq + ToString>(list: &[T]) -> String {
    if list.iter().all(|element| *element == list[0]) {
        return list[0].to_string();
    }
    let texts: Vec<String> = list.iter().map(T::to_string).collect();
    format!("[{}]", texts.join(", "))
}
