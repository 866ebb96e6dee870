//! Broadcasts of values that a single device holds to the devices that use them.
//!
//! As in XLA's partitioner, the other devices hold zeros, and an all-reduce adds them up, even for devices that need only a slice.
//!
//! Source: XLA's `PartitionedHlo::Broadcast`.

use crate::index::{FuncId, OpId, ShardingId, UseId, ValueId};
use crate::ir::{OpKind, Program};
use crate::spmd::digits::Digit;
use crate::spmd::emit::zero;
use crate::spmd::lower::{LocalValue, Lowering};
use crate::spmd::policy::Policy;
use crate::spmd::reducer::Reducer;
use crate::spmd::reshard_steps::Step;

impl Lowering<'_, '_, '_> {
    /// Whether values of this program may be on a single device, from which they are sent as XLA does.
    pub(in crate::spmd::lower) fn sends_from_single_devices(&self) -> bool {
        let program = &*self.emit.program;
        self.how.policy == Policy::Xla
            && self.how.global_to_local.is_none()
            && program.meshes().ids().any(|mesh| program.mesh(mesh).is_maximal())
    }
    /// Broadcasts those results of `op` that a single device holds and others use.
    pub(in crate::spmd::lower) fn broadcast_results(&mut self, op: OpId) {
        if self.emit.program.is_erased(op) {
            return;
        }
        let results: Vec<ValueId> = self.emit.program.op_results(op).collect();
        for result in results {
            let sharding = self.emit.program.sharding(result);
            if let Some((device, user)) = self.broadcast_for(result, sharding) {
                self.emit.go_after(op);
                self.broadcast_from(result, device, user);
            }
        }
    }
    /// Broadcasts those arguments of `func`, whose body starts with `first`, that a single device holds and others use.
    pub(in crate::spmd::lower) fn broadcast_arguments(
        &mut self,
        func: FuncId,
        args: &[ValueId],
        first: OpId,
    ) {
        for (index, &arg) in args.iter().enumerate() {
            let sharding = self.emit.program.func_arg_sharding(func, index);
            if let Some((device, user)) = self.broadcast_for(arg, sharding) {
                self.emit.go_before(first);
                self.broadcast_from(arg, device, user);
            }
        }
    }
    /// The device that alone holds `value`, with this sharding, and the first user that is not on that device.
    fn broadcast_for(&self, value: ValueId, sharding: ShardingId) -> Option<(i64, OpId)> {
        let program = &*self.emit.program;
        let device = program.single_device(sharding)?;
        let others = program.uses(value).filter(|&slot| !is_on(program, slot, device));
        // Uses are newest first.
        Some((device, program.user(others.last()?)))
    }
    /// Replaces the local value of `value` by its broadcast from `device`, for `user`.
    fn broadcast_from(&mut self, value: ValueId, device: i64, user: OpId) {
        let held = self.held(value);
        let Some(mesh) = self.emit.devices.mesh(0) else { return };
        let (count, position) = (mesh.device_count(), mesh.position_of_device(device));
        let (Some(position), true) = (position, self.has_shape(held.global)) else { return };
        if self.is_empty(held.global) || !self.placements[held.placement].is_replicated() {
            return;
        }
        let first = self.next_op_id();
        let all = [Digit { stride: 1, size: count }];
        let own = self.emit.number(0, &all);
        let wanted = self.emit.index(position);
        let is_there = self.emit.compare("EQ", own, wanted);
        let element = self.emit.element(held.global);
        let reducer = if element == "i1" { Reducer::Or } else { Reducer::Add };
        let zero = self.emit.scalar(zero(element), held.global);
        let others = self.emit.broadcast(zero, &[], held.global);
        let sent = self.emit.select(is_there, held.value, others);
        let sum = self.collectives.all_reduce(&mut self.emit, sent, reducer, (0, &all));
        if let Some(op) = self.emit.program.defining_op(sum) {
            self.emit.program.set_cause(op, user);
        }
        let (ops, at) = ((first, self.next_op_id()), held.placement);
        self.steps.push(Step { ops, before: at, after: at, rematerializes: true });
        self.set_held(value, LocalValue { value: sum, is_zero_padded: false, ..held });
    }
}

/// Whether the user at `slot` computes on `device` alone. If no result of a function has a sharding, results stay on the device
/// that computed them; otherwise those without one are replicated.
fn is_on(program: &Program, slot: UseId, device: i64) -> bool {
    let op = program.user(slot);
    let is_there = |sharding: ShardingId| program.single_device(sharding) == Some(device);
    if program.kind(op) == OpKind::FuncReturn {
        let results = program.func_results(program.function_of(program.top_level_op(op)));
        let port = results.get(program.operand_index(slot));
        return port.is_some_and(|port| is_there(port.sharding))
            || results.iter().all(|port| port.sharding.is_none());
    }
    program.num_results(op) > 0
        && program.op_results(op).all(|value| is_there(program.sharding(value)))
}
