//! The shard of each value on one device: its local shape, elements and bytes.
//!
//! A dim of size `n` over `k` devices has local size `ceil(n / k)`. Inside a manual computation types are local
//! along the manual axes already, so only the other axes divide.

use crate::axis::total_size;
use crate::index::{Id, ShardingId, StrId, TypeId, ValueId};
use crate::ir::{Program, Type};
use crate::layout::{bytes_of, elements_of};
use crate::sharding::TensorSharding;
use rustc_hash::FxHashMap;
use std::borrow::Cow;

/// The shard of a value on one device.
#[derive(Clone, Debug, Default)]
pub struct LocalTensor {
    /// The local shape; `None` unless it is a tensor whose dims are all known.
    pub dims: Option<Box<[i64]>>,
    /// The element type.
    pub element: StrId,
    /// Elements, up to [`MAX_COUNTED`].
    pub elements: u128,
    /// Bytes, up to [`MAX_COUNTED`]; 0 where the size of an element is not known.
    pub bytes: u128,
    /// Whether it is a tensor whose bytes are not known.
    pub is_unknown: bool,
}

/// The local tensors of a program, equal ones once.
pub struct Tensors<'a> {
    program: &'a Program,
    rows: Vec<LocalTensor>,
    ids: FxHashMap<(TypeId, ShardingId), u32>,
    of_values: Vec<u32>,
}

/// The largest count of elements or bytes of one value, so that sums over a program cannot overflow.
const MAX_COUNTED: u128 = 1 << 96;

const UNSEEN: u32 = u32::MAX;

impl<'a> Tensors<'a> {
    /// The local tensors of `program`, computed lazily.
    pub fn new(program: &'a Program) -> Self {
        let of_values = vec![UNSEEN; program.num_value_ids()];
        Self { program, rows: Vec::new(), ids: FxHashMap::default(), of_values }
    }
    /// The row of `value`: equal rows are equal tensors.
    pub fn id(&mut self, value: ValueId) -> u32 {
        let known = self.of_values[value.index()];
        if known != UNSEEN {
            return known;
        }
        let id = self.work_out(value);
        self.of_values[value.index()] = id;
        id
    }
    /// The local tensor of `value`.
    pub fn of(&mut self, value: ValueId) -> &LocalTensor {
        let id = self.id(value);
        &self.rows[id as usize]
    }
    /// The tensor of a row.
    pub fn row(&self, id: u32) -> &LocalTensor {
        &self.rows[id as usize]
    }
    /// Bytes of `value` on one device.
    pub fn bytes(&mut self, value: ValueId) -> u128 {
        self.of(value).bytes
    }
    /// Whether some value has [`MAX_COUNTED`] elements or bytes, or more.
    pub fn are_saturated(&self) -> bool {
        self.rows.iter().any(|row| row.elements.max(row.bytes) == MAX_COUNTED)
    }
    fn work_out(&mut self, value: ValueId) -> u32 {
        let ty = self.program.type_of(value);
        match sharding_of(self.program, value) {
            Where::Nowhere => self.intern(ty, ShardingId::NONE),
            Where::Stored(sharding) => self.intern(ty, sharding),
            Where::Inside(sharding) => {
                self.rows.push(local_tensor(self.program, ty, Some(&sharding)));
                self.rows.len() as u32 - 1
            }
        }
    }
    fn intern(&mut self, ty: TypeId, sharding: ShardingId) -> u32 {
        let (program, rows) = (self.program, &mut self.rows);
        *self.ids.entry((ty, sharding)).or_insert_with(|| {
            rows.push(local_tensor(program, ty, program.shardings().get(sharding)));
            rows.len() as u32 - 1
        })
    }
}

/// The sharding of a value.
enum Where {
    /// It has none.
    Nowhere,
    /// A row of the table of shardings.
    Stored(ShardingId),
    /// That of an argument of a manual computation without the manual axes, which is in no table.
    Inside(TensorSharding),
}

fn sharding_of(program: &Program, value: ValueId) -> Where {
    match program.visible_sharding(value) {
        None => Where::Nowhere,
        Some(Cow::Borrowed(_)) => {
            let holder = program.sharding_holder(value).unwrap_or(value);
            Where::Stored(program.sharding(holder))
        }
        Some(Cow::Owned(sharding)) => Where::Inside(sharding),
    }
}

/// The local tensor of a value of type `ty`.
pub fn local_tensor(
    program: &Program,
    ty: TypeId,
    sharding: Option<&TensorSharding>,
) -> LocalTensor {
    let Type::RankedTensor { shape, element, .. } = &program.types()[ty] else {
        let is_unknown = matches!(program.types()[ty], Type::UnrankedTensor(_));
        return LocalTensor { is_unknown, ..LocalTensor::default() };
    };
    let dims: Option<Box<[i64]>> = shape.iter().copied().collect();
    let Some(mut dims) = dims else {
        return LocalTensor { element: element.text, is_unknown: true, ..LocalTensor::default() };
    };
    if let Some(sharding) = sharding {
        let mesh = program.mesh(sharding.mesh);
        for (size, dim) in dims.iter_mut().zip(&sharding.dims) {
            let shards = total_size(&dim.axes, mesh).max(1);
            *size = size.div_euclid(shards) + i64::from(*size % shards != 0);
        }
    }
    let elements = elements_of(&dims);
    let bytes = element.bits.map(|bits| bytes_of(&dims, bits));
    LocalTensor {
        dims: Some(dims),
        element: element.text,
        elements: elements.min(MAX_COUNTED),
        bytes: bytes.unwrap_or(0).min(MAX_COUNTED),
        is_unknown: bytes.is_none(),
    }
}
