//! Shape, elements and bytes of the values of a per-device program.

use crate::index::{Id, StrId, TypeId, ValueId};
use crate::ir::{Program, Type};
use crate::layout::{bytes_of, elements_of};
use std::cell::OnceCell;

/// A value on one device.
#[derive(Clone, Debug, Default)]
pub struct LocalTensor {
    /// The local shape; `None` unless it is a tensor whose dims are all known.
    pub dims: Option<Box<[i64]>>,
    /// The element type; `NONE` unless it is a tensor.
    pub element: StrId,
    /// Elements, up to [`MAX_COUNTED`].
    pub elements: u128,
    /// Bytes, up to [`MAX_COUNTED`]; 0 where the size of an element is not known.
    pub bytes: u128,
    /// Whether it is a tensor whose bytes are not known.
    pub is_unknown: bool,
    /// Bytes in tiles of the memory of a chip that has them, known once they were asked for.
    pub in_tiles: OnceCell<u128>,
}

/// The tensors of a per-device program, one row for each type.
pub struct Tensors<'a> {
    program: &'a Program,
    /// By type.
    rows: Vec<LocalTensor>,
    /// Whether some value that was asked for has the type.
    is_used: Vec<bool>,
}

/// The largest count of elements or bytes of one value, so that sums over a program cannot overflow.
pub const MAX_COUNTED: u128 = 1 << 96;

impl<'a> Tensors<'a> {
    /// The tensors of `program`.
    pub fn new(program: &'a Program) -> Self {
        let rows: Vec<LocalTensor> = (0..program.types().len())
            .map(|row| local_tensor(program, TypeId::from_index(row)))
            .collect();
        let is_used = vec![false; rows.len()];
        Self { program, rows, is_used }
    }
    /// The row of `value`; tensors of equal type share one.
    pub fn id(&mut self, value: ValueId) -> u32 {
        let row = self.program.type_of(value).index();
        self.is_used[row] = true;
        row as u32
    }
    /// The tensor of `value`.
    pub fn of(&mut self, value: ValueId) -> &LocalTensor {
        let id = self.id(value);
        self.row(id)
    }
    /// The element type of `value`; empty unless it is a tensor.
    pub fn element(&mut self, value: ValueId) -> &'a str {
        let element = self.of(value).element;
        element.get().map_or("", |element| self.program.str(element))
    }
    /// The tensor of a type of the program.
    pub fn of_type(&self, ty: TypeId) -> &LocalTensor {
        &self.rows[ty.index()]
    }
    /// The tensor of a row.
    pub fn row(&self, id: u32) -> &LocalTensor {
        &self.rows[id as usize]
    }
    /// Bytes of `value`.
    pub fn bytes(&mut self, value: ValueId) -> u128 {
        self.of(value).bytes
    }
    /// Whether some value has [`MAX_COUNTED`] elements or bytes, or more.
    pub fn are_saturated(&self) -> bool {
        let used = self.rows.iter().zip(&self.is_used).filter(|(_, &is_used)| is_used);
        used.map(|(row, _)| row).any(|row| row.elements.max(row.bytes) == MAX_COUNTED)
    }
}

/// The tensor of type `ty`.
fn local_tensor(program: &Program, ty: TypeId) -> LocalTensor {
    let Type::RankedTensor { shape, element, .. } = &program.types()[ty] else {
        let is_unknown = matches!(program.types()[ty], Type::UnrankedTensor(_));
        return LocalTensor { is_unknown, ..LocalTensor::default() };
    };
    let dims: Option<Box<[i64]>> = shape.iter().copied().collect();
    let Some(dims) = dims else {
        return LocalTensor { element: element.text, is_unknown: true, ..LocalTensor::default() };
    };
    let elements = elements_of(&dims);
    let bytes = element.bits.map(|bits| bytes_of(&dims, bits));
    LocalTensor {
        dims: Some(dims),
        element: element.text,
        elements: elements.min(MAX_COUNTED),
        bytes: bytes.unwrap_or(0).min(MAX_COUNTED),
        is_unknown: bytes.is_none(),
        in_tiles: OnceCell::new(),
    }
}
