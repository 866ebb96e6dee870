//! Manual computations: their bodies are already local along manual axes. They are lowered along the other axes, and inlined.

use crate::bitset::BitSet;
use crate::index::{AxisId, OpId, ShardingId, ValueId};
use crate::ir::{OpKind, Payload, Place};
use crate::mesh::Mesh;
use crate::spmd::digits;
use crate::spmd::digits::Digit;
use crate::spmd::lower::{LocalValue, Lowering, Task};
use crate::spmd::placement::PlacementId;

impl Lowering<'_, '_, '_> {
    /// Starts to lower a manual computation: operands are resharded to its in-shardings and bound to its arguments.
    pub fn lower_manual(&mut self, op: OpId) {
        let operands: Vec<ValueId> = self.emit.program.operands(op).collect();
        let results: Vec<ValueId> = self.emit.program.op_results(op).collect();
        let region = self.emit.program.region(op, 0);
        let Some(block) = self.emit.program.region_entry(region).get() else { return };
        let args: Vec<ValueId> = self.emit.program.block_args(block).collect();
        for (&operand, &arg) in operands.iter().zip(&args) {
            let held = self.held(operand);
            let sharding = self.emit.program.sharding(arg);
            let outer = self.placement_of(sharding, held.global);
            self.note_sent(op, held, outer);
            let local = self.reshard(held, outer);
            let inner = self.free_placement(op, sharding, arg);
            let global = self.emit.program.type_of(arg);
            self.set_held(
                arg,
                LocalValue { value: local.value, global, placement: inner, ..local },
            );
        }
        let wanted: Vec<PlacementId> = results
            .iter()
            .map(|&result| {
                let sharding = self.emit.program.sharding(result);
                self.free_placement(op, sharding, result)
            })
            .collect();
        let free = self.digits_free_in(op);
        self.free_digits.push(free);
        self.plans.clear();
        self.tasks.push(Task::Finish(op));
        self.tasks.push(Task::EndReturns);
        self.tasks.push(Task::Ops(self.emit.program.first_op(block)));
        self.tasks.push(Task::BeginReturns(wanted));
    }
    /// Inlines the body of `op`; its results are the returned values.
    pub fn finish_manual(&mut self, op: OpId) {
        self.free_digits.pop();
        self.plans.clear();
        let region = self.emit.program.region(op, 0);
        let Some(block) = self.emit.program.region_entry(region).get() else { return };
        let end = self.emit.program.last_op(block);
        let returned: Vec<ValueId> = self.emit.program.operands(end).collect();
        let results: Vec<ValueId> = self.emit.program.op_results(op).collect();
        for (&result, &value) in results.iter().zip(&returned) {
            let global = self.emit.program.type_of(result);
            let placement = self.target(result);
            let reducer = crate::spmd::lower::Reducer::Add;
            let held = LocalValue { value, global, placement, reducer, is_zero_padded: false };
            self.set_held(result, held);
        }
        let inside: Vec<OpId> = self.emit.program.block_ops(block).collect();
        for inner in inside {
            if inner != end {
                self.emit.program.move_op(inner, Place::Before(op));
            }
        }
        self.dead.push(op);
    }
    /// The placement of a value with `sharding` along the axes that are not manual in `op`, a manual computation.
    fn free_placement(&mut self, op: OpId, sharding: ShardingId, value: ValueId) -> PlacementId {
        let program = &*self.emit.program;
        let rank = program.value_type(value).rank().unwrap_or(0);
        let outer = match program.shardings().get(sharding) {
            Some(outer) => outer.clone(),
            None => return self.placements.replicated(rank),
        };
        let mesh = program.mesh(outer.mesh);
        if mesh.is_maximal() || mesh.device_count() <= 1 {
            return self.placements.replicated(rank);
        }
        let mut manual = BitSet::new(mesh.axes.len());
        for axis in self.manual_axes(op, mesh) {
            manual.insert(axis);
        }
        let inner = outer.without_manual_axes(&manual);
        let order = self.emit.devices.known_order(mesh).unwrap_or(0);
        let placement = crate::spmd::Placement::of(&inner, mesh, order);
        self.placements.intern(placement)
    }
    /// The axes of `mesh` that are manual in `op`, a manual computation.
    pub(in crate::spmd::lower) fn manual_axes(&self, op: OpId, mesh: &Mesh) -> Vec<AxisId> {
        let program = &*self.emit.program;
        match (program.kind(op), program.payload(op)) {
            (OpKind::ManualComputation, Some(Payload::ManualComputation(axes))) => {
                axes.iter().filter_map(|&name| mesh.axis_by_name(program.str(name))).collect()
            }
            _ => Vec::new(),
        }
    }
    /// The digits of devices that are manual neither in `op`, a manual computation, nor around it.
    fn digits_free_in(&self, op: OpId) -> Vec<Digit> {
        let mut free = self.devices();
        for digit in self.manual_digits(op) {
            // A digit that is not free any more was manual before.
            let _ = digits::remove(&mut free, digit);
        }
        free
    }
    /// The digits of the devices among which values are resharded at the current op.
    pub(in crate::spmd::lower) fn devices(&self) -> Vec<Digit> {
        let all = || vec![Digit { stride: 1, size: self.emit.devices.count() }];
        self.free_digits.last().cloned().unwrap_or_else(all)
    }
    /// Whether the current op is in a manual computation, or in a function that is called in one.
    pub(in crate::spmd::lower) fn is_in_manual(&self) -> bool {
        !self.free_digits.is_empty()
    }
}
