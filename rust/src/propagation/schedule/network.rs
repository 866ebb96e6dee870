//! The state and the queue together: sets shardings, and notifies the ops that depend on them.

use super::budget::VisitBudget;
use super::queue::Queue;
use crate::index::{Id, ShardingId, ValueId};
use crate::propagation::notices::{self, Notice};
use crate::propagation::observe::Slot;
use crate::propagation::state::State;

/// The state and the queue of a propagation.
pub struct Network<'p> {
    /// The shardings.
    pub state: State<'p>,
    /// The order of visits.
    pub queue: Queue,
    /// The limit of visits.
    pub budget: VisitBudget,
    /// Number of tensors that visits have updated.
    pub updates: usize,
    /// The dependents of the value that is being changed.
    notices: Vec<Notice>,
}

impl<'p> Network<'p> {
    /// A network whose ops are visited in `num_runs` kinds of greedy runs. At first, the dependents
    /// of shardings with axes are marked: other visits cannot change anything.
    pub fn new(state: State<'p>, num_runs: usize) -> Self {
        let mut queue = Queue::new(state.plan.order().len(), num_runs);
        for &position in &state.plan.unused {
            queue.mark(position);
        }
        let budget = VisitBudget::default();
        let mut network = Self { state, queue, budget, updates: 0, notices: Vec::new() };
        network.mark_sharded();
        network
    }

    /// A network that continues with `queue`, in which nothing is queued.
    pub fn with_queue(state: State<'p>, queue: Queue) -> Self {
        Self { state, queue, budget: VisitBudget::default(), updates: 0, notices: Vec::new() }
    }

    fn mark_sharded(&mut self) {
        let table = self.state.program().shardings();
        let has_axes = |id| table[id].dims.iter().any(|dim| !dim.axes.is_empty());
        let has_axes: Vec<bool> = table.ids().map(has_axes).collect();
        for value in self.state.program().value_ids() {
            let sharding = self.state.program().sharding(value);
            if sharding.is_some() && has_axes[sharding.index()] {
                self.notify(value, None);
            }
        }
    }

    /// Marks the ops that depend on the sharding that `holder` holds, which has changed. If a visit
    /// made the change, that of the op at position `by`, also queues them.
    #[inline]
    pub fn notify(&mut self, holder: ValueId, by: Option<u32>) {
        let Self { state, queue, notices, .. } = self;
        notices::list(state.program(), &state.plan, holder, notices);
        queue.notify(notices, by);
    }

    /// Sets the sharding of the tensor at `index` of the op at `position`, whose tensors are plain;
    /// returns false if other tensors may have changed too. There must be no sharding groups.
    #[inline]
    pub fn update_plain(&mut self, position: u32, index: usize, sharding: ShardingId) -> bool {
        self.updates += 1;
        let value = self.state.plan.tensor(position, index);
        let opens_siblings = self.state.program().sharding(value).is_none()
            && self.state.plan.has_siblings.contains(value);
        if opens_siblings {
            self.open_siblings(value, sharding);
        }
        self.state.set(value, sharding);
        self.notify(value, Some(position));
        !opens_siblings
    }

    /// Sets the sharding of the tensor at `index` of the op at `position`, whatever holds it.
    pub fn update_tensor(&mut self, position: u32, index: usize, sharding: ShardingId) {
        let (program, plan) = self.state.program_and_plan();
        let own = match plan.edges.manual_end(plan.op(position)) {
            Some(end) if index + 1 == plan.row(position).tensors.len() => {
                if end.is_arg {
                    program.inside_manual(end.op, sharding)
                } else {
                    program.with_manual_axes(end.op, end.owner, sharding)
                }
            }
            _ => sharding,
        };
        let value = plan.tensor(position, index);
        self.update(value, own, sharding, Some(position));
    }

    /// Sets the sharding of `value` to `own`, and that of the other members of its sharding group
    /// to `sharding`; notifies the ops that depend on them, see [`Network::notify`].
    pub fn update(
        &mut self,
        value: ValueId,
        own: ShardingId,
        sharding: ShardingId,
        by: Option<u32>,
    ) {
        self.updates += 1;
        let Some(holder) = self.set(value, own) else { return };
        self.notify(holder, by);
        let Some(group) = self.state.groups.group_of(holder) else { return };
        for index in 0..self.state.groups.members(group).len() {
            let member = self.state.groups.members(group)[index];
            if member == holder {
                continue;
            }
            let held_by = self.set(member, sharding);
            self.notify(member, by);
            if let Some(other) = held_by.filter(|&other| other != member) {
                self.notify(other, None);
            }
        }
    }

    /// Sets the sharding of `slot`, a result of a function, on which only the value returned as it
    /// depends.
    pub fn update_func_result(&mut self, slot: Slot, sharding: ShardingId) {
        self.updates += 1;
        self.set_slot(slot, sharding);
    }

    /// Sets the sharding of `value` where it is held, and returns what holds it; does not notify.
    fn set(&mut self, value: ValueId, sharding: ShardingId) -> Option<ValueId> {
        let (holder, sharding) = self.state.held(value, sharding)?;
        self.set_held(holder, sharding);
        Some(holder)
    }

    /// Sets the sharding that `holder` holds; does not notify.
    fn set_held(&mut self, holder: ValueId, sharding: ShardingId) {
        if self.state.program().sharding(holder).is_none() {
            self.open_siblings(holder, sharding);
        }
        self.state.set(holder, sharding);
    }

    /// Opens the other results of an op whose result `value` got its first sharding, since an op
    /// has shardings for all of its results or for none.
    fn open_siblings(&mut self, value: ValueId, sharding: ShardingId) {
        let siblings = self.state.program().siblings(value);
        if siblings.len() < 2 {
            return;
        }
        let mesh = self.state.program().mesh_of(sharding);
        for other in siblings.map(ValueId::from_index) {
            if other != value && self.state.program().sharding(other).is_none() {
                let (program, _) = self.state.program_and_plan();
                let ty = program.type_of(other);
                let open = program.replicated(mesh, ty, false);
                self.state.set(other, open);
                self.notify(other, None);
            }
        }
    }

    /// Sets the sharding of `slot` as it is stored, with manual axes; marks the dependents.
    pub fn set_slot(&mut self, slot: Slot, sharding: ShardingId) {
        match slot {
            Slot::Value(value) => {
                self.set_held(value, sharding);
                self.notify(value, None);
            }
            Slot::FuncResult(func, index) => {
                self.state.set_result(func, index, sharding);
            }
        }
    }
    /// Sets the sharding of `slot`; inside a manual computation, `sharding` has the manual axes
    /// removed. Marks the dependents.
    pub fn replace(&mut self, slot: Slot, sharding: ShardingId) {
        match slot {
            Slot::Value(value) => {
                if let Some(holder) = self.set(value, sharding) {
                    self.notify(holder, None);
                }
            }
            Slot::FuncResult(..) => self.set_slot(slot, sharding),
        }
    }
}
