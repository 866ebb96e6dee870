//! Totals of a program's shardings: bytes, and the uses of each axis.
//!
//! A sharded dim of size `n` over `k` devices takes `ceil(n / k)` on each of them: the padded local
//! shape. Values without a known element size, such as tokens, count no bytes.

use crate::axis::total_size;
use crate::index::{FuncId, Id, MeshId, ShardingId, TypeId};
use crate::ir::{Program, Type, ValueDef};
use crate::layout::bytes_of;
use crate::sharding::TensorSharding;
use rustc_hash::FxHashMap;
use std::rc::Rc;

/// Bytes and counts over some set of values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// How many tensors.
    pub values: u64,
    /// How many of them are sharded over at least one axis of size above 1.
    pub sharded_values: u64,
    /// Bytes of all of them, unsharded; saturating, as all bytes here.
    pub bytes: u128,
    /// Bytes that one device holds of them.
    pub bytes_per_device: u128,
}

/// How much one mesh axis is used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AxisUse {
    /// The mesh.
    pub mesh: MeshId,
    /// The axis, by its place in the mesh.
    pub axis: usize,
    /// How many tensors are sharded over it or a part of it.
    pub values: u64,
    /// How many arguments of the entry function are.
    pub arguments: u64,
}

/// The totals of a program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProgramTotals {
    /// Over all values.
    pub all: Totals,
    /// Over the entry function's arguments.
    pub arguments: Totals,
    /// Over the entry function's results.
    pub results: Totals,
    /// Every axis of every mesh, in program order.
    pub axes: Vec<AxisUse>,
}

/// One tensor.
struct One {
    totals: Totals,
    /// The axes that shard it.
    axes: Vec<(MeshId, usize)>,
}

impl Program {
    /// The shape of `ty` on one device under `sharding`; `None` unless it is a static tensor.
    pub fn local_shape(&self, ty: TypeId, sharding: Option<&TensorSharding>) -> Option<Vec<i64>> {
        let mut shape = self.types()[ty].static_shape()?;
        if let Some(sharding) = sharding {
            let mesh = self.mesh(sharding.mesh);
            for (size, dim) in shape.iter_mut().zip(&sharding.dims) {
                *size = size.div_euclid(total_size(&dim.axes, mesh).max(1))
                    + i64::from(*size % total_size(&dim.axes, mesh).max(1) != 0);
            }
        }
        Some(shape)
    }
    /// Bytes that a tensor of type `ty` takes when its shape is `shape`, saturating.
    pub fn tensor_bytes(&self, ty: TypeId, shape: &[i64]) -> Option<u128> {
        let Type::RankedTensor { element, .. } = &self.types()[ty] else { return None };
        element.bits.map(|bits| bytes_of(shape, bits))
    }
    /// The entry function: `main`, else the first public one, else the first.
    pub fn entry_function(&self) -> Option<FuncId> {
        let is_main = |&id: &FuncId| self.str(self.func_name(id)) == "main";
        self.each_function()
            .find(is_main)
            .or_else(|| self.each_function().find(|&id| !self.is_private(id)))
            .or_else(|| self.each_function().next())
    }
    /// The totals of the program.
    pub fn totals(&self) -> ProgramTotals {
        let mut totals = ProgramTotals::default();
        let mut first_axis = vec![0; self.meshes().len()];
        for mesh in self.meshes().ids() {
            first_axis[mesh.index()] = totals.axes.len();
            let axes = 0..self.mesh(mesh).axes.len();
            totals.axes.extend(axes.map(|axis| AxisUse { mesh, axis, values: 0, arguments: 0 }));
        }
        let entry = self.entry_function();
        let entry_body = entry.map_or(crate::index::BlockId::NONE, |id| self.func_body(id));
        let mut known: FxHashMap<(TypeId, ShardingId), Option<Rc<One>>> = FxHashMap::default();
        for value in self.values_of(self.module_op()) {
            let is_argument = entry_body.is_some() && self.def(value) == ValueDef::Arg(entry_body);
            let ty = self.type_of(value);
            let count = || {
                let sharding = self.visible_sharding(value);
                let totals = self.value_totals(ty, sharding.as_deref())?;
                Some(Rc::new(One { totals, axes: self.sharded_axes(sharding.as_deref()) }))
            };
            let one = match self.visible_sharding_id(value) {
                Some(id) => known.entry((ty, id)).or_insert_with(count).clone(),
                None => count(),
            };
            let Some(one) = one else { continue };
            totals.all.add(one.totals);
            if is_argument {
                totals.arguments.add(one.totals);
            }
            for axis in &one.axes {
                let axis = &mut totals.axes[first_axis[axis.0.index()] + axis.1];
                axis.values += 1;
                axis.arguments += u64::from(is_argument);
            }
        }
        if let Some(entry) = entry {
            for result in self.func_results(entry) {
                if let Some(one) =
                    self.value_totals(result.ty, self.shardings().get(result.sharding))
                {
                    totals.results.add(one);
                }
            }
        }
        totals
    }
    /// The totals of one tensor of type `ty`; `None` unless it is a static one.
    pub fn value_totals(&self, ty: TypeId, sharding: Option<&TensorSharding>) -> Option<Totals> {
        let local = self.local_shape(ty, sharding)?;
        let shape = self.types()[ty].static_shape()?;
        Some(Totals {
            values: 1,
            sharded_values: u64::from(!self.sharded_axes(sharding).is_empty()),
            bytes: self.tensor_bytes(ty, &shape).unwrap_or(0),
            bytes_per_device: self.tensor_bytes(ty, &local).unwrap_or(0),
        })
    }
    /// The different axes of size above 1 that shard some dim, each once.
    fn sharded_axes(&self, sharding: Option<&TensorSharding>) -> Vec<(MeshId, usize)> {
        let Some(sharding) = sharding else { return Vec::new() };
        let mesh = self.mesh(sharding.mesh);
        let mut axes: Vec<(MeshId, usize)> = sharding
            .dims
            .iter()
            .flat_map(|dim| &dim.axes)
            .filter(|axis| axis.size(mesh) > 1)
            .map(|axis| (sharding.mesh, axis.axis.index()))
            .collect();
        axes.sort_unstable();
        axes.dedup();
        axes
    }
}

impl Totals {
    fn add(&mut self, other: Self) {
        self.values += other.values;
        self.sharded_values += other.sharded_values;
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.bytes_per_device = self.bytes_per_device.saturating_add(other.bytes_per_device);
    }
}
