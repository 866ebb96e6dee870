//! Lowers ops of `StableHLO` as Shardy's `sdy-convert-global-to-local` does, so that the text equals the reference's wherever that
//! is correct. Other ops and other shards are lowered as in any per-device program.
//!
//! Source: Shardy's `convert_global_to_local.cc`.

mod all_to_all;
mod convolution;
mod gather_scatter;
mod offsets;
mod pad;
mod replica_groups;
mod reverse;
mod windows;

use super::super::digits::{digits_of, merged};
use super::super::emit::int_array;
use super::super::outcome::OutcomeKind;
use super::{LocalValue, Lowering, Reducer};
use crate::axis::AxisRef;
use crate::index::{OpId, ValueId};
use crate::ir::OpKind;
use crate::mesh::Mesh;
use crate::mlir::op_attribute;
use crate::shardy::Change;
use crate::spmd::lower::windows::elements_needed::ints;
use std::sync::Arc;

impl Lowering<'_, '_, '_> {
    /// Lowers `op` as Shardy's pass does; false if it has to be lowered otherwise.
    pub(super) fn lower_as_shardy(&mut self, op: OpId) -> bool {
        if self.how.global_to_local.is_none() || self.emit.devices.are_unlisted() {
            return false;
        }
        let kind = self.emit.program.kind(op);
        let is_supported = matches!(
            kind,
            OpKind::Iota
                | OpKind::Slice
                | OpKind::Pad
                | OpKind::Convolution
                | OpKind::Gather
                | OpKind::ReduceWindow
                | OpKind::Scatter
                | OpKind::SelectAndScatter
        );
        let is_reversal = self.emit.program.op_name_id(op) == self.reverse;
        if !(is_reversal || is_supported && self.is_as_sharded(op)) {
            return false;
        }
        let lowered = match kind {
            _ if is_reversal => self.reverse_as_shardy(op),
            OpKind::Iota => self.iota_as_shardy(op),
            OpKind::Slice => self.slice_as_shardy(op),
            OpKind::Pad => self.pad_as_shardy(op),
            OpKind::Convolution => self.convolve_as_shardy(op),
            OpKind::Gather => self.gather_as_shardy(op),
            OpKind::ReduceWindow | OpKind::SelectAndScatter => self.windows_as_shardy(op),
            _ => self.scatter_as_shardy(op),
        };
        if lowered.is_some() {
            self.note(op, OutcomeKind::Local, Arc::default());
        }
        lowered.is_some()
    }
    /// Keeps `op`, on the shards of its operands, if it returns the id of its device, or its dialect or call target is unknown.
    /// Only this pass does so: it leaves to the author of the op whether that is correct.
    pub(super) fn keep_as_shardy(&mut self, op: OpId) -> bool {
        if self.how.global_to_local.is_none() {
            return false;
        }
        let program = &*self.emit.program;
        let name = program.op_name(op);
        let is_known = ["stablehlo.", "chlo.", "sdy.", "func.", "mhlo."]
            .iter()
            .any(|dialect| name.starts_with(dialect))
            || self.context.rules.rule(program, op).is_some();
        let asks = matches!(name, "stablehlo.partition_id" | "stablehlo.replica_id");
        let is_call = program.kind(op) == OpKind::CustomCall;
        let calls_unknown =
            is_call && !self.is_sharding_call(op) && self.custom_call_rule(op).is_none();
        if is_known && !asks && !calls_unknown || program.num_regions(op) > 0 {
            return false;
        }
        let operands: Vec<ValueId> = program.operands(op).collect();
        let results: Vec<ValueId> = program.op_results(op).collect();
        let local: Vec<ValueId> =
            operands.into_iter().map(|operand| self.held(operand).value).collect();
        self.set_operands(op, &local);
        for result in results {
            let target = self.target(result);
            self.keep(result, target);
        }
        self.note(op, OutcomeKind::Local, Arc::default());
        true
    }
    /// Whether the shards of the operands of `op` are those of their shardings, all over meshes of one order, and no dim of its
    /// operands and results is padded or empty.
    fn is_as_sharded(&mut self, op: OpId) -> bool {
        let program = &*self.emit.program;
        let num_operands = program.num_operands(op);
        let values: Vec<ValueId> = program.operands(op).chain(program.op_results(op)).collect();
        let mut order = None;
        values.into_iter().enumerate().all(|(index, value)| {
            let target = self.target(value);
            let target = self.with_terms_left(value, target);
            if index < num_operands && self.held(value).placement != target {
                return false;
            }
            let ty = self.global_type(value);
            let (Some(shape), placement) = (self.shape_of(ty), &self.placements[target]) else {
                return false;
            };
            if !placement.is_replicated() {
                let is_same = *order.get_or_insert(placement.order) == placement.order;
                if !is_same {
                    return false;
                }
            }
            let is_even = |dim: usize| !placement.is_padded(dim, shape[dim]) && shape[dim] != 0;
            (0..shape.len()).all(is_even)
        })
    }
    /// The axes along which each dim of `value` is sharded.
    fn axes_of(&self, value: ValueId) -> Vec<Vec<AxisRef>> {
        let program = &*self.emit.program;
        if let Some(sharding) = program.shardings().get(program.sharding(value)) {
            return sharding.dims.iter().map(|dim| dim.axes.clone()).collect();
        }
        let rank = program.types()[self.global_type(value)].rank().unwrap_or(0);
        vec![Vec::new(); rank]
    }
    /// The mesh of the shardings of the operands and results of `op`.
    fn mesh_of(&self, op: OpId) -> Option<Arc<Mesh>> {
        let program = &*self.emit.program;
        let mut values = program.operands(op).chain(program.op_results(op));
        let id = values.find_map(|value| program.mesh_of(program.sharding(value)).get())?;
        Some(program.meshes()[id].mesh.clone())
    }
    /// The shape of `value` in the source program.
    fn global_shape(&self, value: ValueId) -> Option<Vec<i64>> {
        self.shape_of(self.global_type(value))
    }
    /// Records `value` as the local value of the result of `op`, which is then dead; `reducer` reduces its partial results.
    fn replace_as_shardy(&mut self, op: OpId, value: ValueId, reducer: Reducer) {
        let result = self.emit.program.result(op, 0);
        let global = self.emit.program.type_of(result);
        let target = self.target(result);
        let placement = self.with_terms_left(result, target);
        self.set_held(
            result,
            LocalValue { value, global, placement, reducer, is_zero_padded: false },
        );
        self.dead.push(op);
    }
    /// Whether the results of `op` are partial along exactly `axes`.
    fn has_terms_along(&mut self, op: OpId, axes: &[AxisRef], mesh: &Mesh) -> bool {
        let mut digits = digits_of(axes, mesh);
        digits.sort_unstable_by_key(|digit| std::cmp::Reverse(digit.stride));
        let digits = merged(digits);
        let results: Vec<ValueId> = self.emit.program.op_results(op).collect();
        results.into_iter().all(|result| {
            let target = self.target(result);
            let target = self.with_terms_left(result, target);
            self.placements[target].partial == digits
        })
    }
    fn iota_as_shardy(&mut self, op: OpId) -> Option<()> {
        let result = self.emit.program.result(op, 0);
        let dim = op_attribute(self.emit.program, op, "iota_dimension")?.as_int()?;
        let dim = usize::try_from(dim).ok()?;
        let axes = self.axes_of(result).into_iter().nth(dim).filter(|axes| !axes.is_empty())?;
        let (mesh, target) = (self.mesh_of(op)?, self.target(result));
        let global = self.emit.program.type_of(result);
        let local = self.local_type(global, target);
        let size = *self.shape_of(local)?.get(dim)?;
        let attrs = [("iota_dimension", format!("{dim} : i64"))];
        let indices = self.emit.op("stablehlo.iota", &[], local, &attrs);
        let offset = self.offset(&mesh, &axes, size);
        let scalar = self.emit.like(&[], local);
        let offset = self.emit.op("stablehlo.convert", &[offset], scalar, &[]);
        let offset = self.emit.broadcast(offset, &[], local);
        let value = self.emit.elementwise("stablehlo.add", &[indices, offset]);
        self.replace_as_shardy(op, value, Reducer::Add);
        Some(())
    }
    /// Lowers slices that cover each sharded dim, possibly with strides.
    fn slice_as_shardy(&mut self, op: OpId) -> Option<()> {
        let program = &*self.emit.program;
        let (operand, result) = (program.operand(op, 0), program.result(op, 0));
        let (axes, shape) = (self.axes_of(operand), self.global_shape(operand)?);
        if axes.iter().all(Vec::is_empty) || axes != self.axes_of(result) {
            return None;
        }
        let list = |name| ints(self.emit.program, op, name);
        let (starts, strides) = (list("start_indices"), list("strides"));
        let mut limits = list("limit_indices");
        let held = self.held(operand);
        let local = self.emit.shape(held.value);
        for dim in (0..axes.len()).filter(|&dim| !axes[dim].is_empty()) {
            let takes_all = *starts.get(dim)? == 0 && *limits.get(dim)? == shape[dim];
            if !takes_all || local[dim] % strides.get(dim)? != 0 {
                return None;
            }
            limits[dim] = local[dim];
        }
        let target = self.target(result);
        let ty = self.local_type(self.emit.program.type_of(result), target);
        let attrs = [
            ("start_indices", int_array(&starts)),
            ("limit_indices", int_array(&limits)),
            ("strides", int_array(&strides)),
        ];
        let value = self.emit.op("stablehlo.slice", &[held.value], ty, &attrs);
        self.replace_as_shardy(op, value, Reducer::Add);
        Some(())
    }
    /// Drops the dictionary of `op`, a call or the `return` of a function, which Shardy's pass makes anew until
    /// [`Change::KeptDictionaries`].
    pub(super) fn drop_dict_as_shardy(&mut self, op: OpId) {
        let program = &mut *self.emit.program;
        let is_made_anew = matches!(program.kind(op), OpKind::Call | OpKind::FuncReturn);
        let keeps = program.shardy().has(Change::KeptDictionaries);
        if self.how.global_to_local.is_none() || !is_made_anew || keeps {
            return;
        }
        self.unsharded.extend(program.op_results(op));
        if !program.op_attrs(op).is_empty() {
            program.replace_attrs(op, &[]);
        }
    }
    /// Finishes the lowering of `op`, even if it was lowered as in any per-device program: Shardy's pass writes an attribute of
    /// gathers from sharded operands that may otherwise be omitted.
    pub(super) fn finish_as_shardy(&mut self, op: OpId) {
        let is_gather = self.emit.program.kind(op) == OpKind::Gather;
        if !is_gather || self.how.global_to_local.is_none() || self.dead.last() == Some(&op) {
            return;
        }
        let axes = self.axes_of(self.emit.program.operand(op, 0));
        if axes.iter().any(|axes| !axes.is_empty()) {
            self.write_default(op, "indices_are_sorted");
        }
    }
    /// Writes the boolean attribute `name` of `op`, with its default false unless it is present.
    fn write_default(&mut self, op: OpId, name: &str) {
        if op_attribute(self.emit.program, op, name).is_none() {
            self.emit.program.set_attr(op, name, "false");
        }
    }
}
