//! The propagation of host memory from values to their users, to a fixpoint.

use super::marks::Marks;
use super::Space;
use crate::bitset::BitSet;
use crate::index::{BlockId, OpId, ValueId};
use crate::ir::{OpKind, OpTraits, Program, ValueDef};
use crate::work::ops::{Family, Measure, Movement};

/// The longest chain of forwarding ops between a slice and its placement.
const MAX_PASSED: usize = 32;

/// The state of the propagation.
pub(super) struct Flow<'p> {
    pub program: &'p Program,
    pub marks: &'p Marks,
    /// The values in the host's memory.
    pub host: BitSet<ValueId>,
    /// The ops that the host computes.
    pub computed: BitSet<OpId>,
    /// Values in host memory that are slices of other buffers there.
    pub within: BitSet<ValueId>,
    /// The values whose users are yet to be visited.
    open: Vec<ValueId>,
}

impl<'p> Flow<'p> {
    pub fn new(program: &'p Program, marks: &'p Marks) -> Self {
        Self {
            program,
            marks,
            host: BitSet::new(program.num_value_ids()),
            computed: marks.computed.clone(),
            within: BitSet::new(program.num_value_ids()),
            open: Vec::new(),
        }
    }
    /// Propagates all statements of the program.
    pub fn run(&mut self) {
        let (program, marks) = (self.program, self.marks);
        for op in marks.computed.iter() {
            // Who needs it elsewhere moves it.
            for value in program.op_results(op).chain(block_args_inside(program, op)) {
                self.host.insert(value);
            }
        }
        for &value in &marks.arguments {
            self.reach(value);
        }
        for (&op, _) in marks.placements.iter().filter(|(_, &space)| space == Space::Host) {
            self.reach(program.result(op, 0));
        }
        while let Some(value) = self.open.pop() {
            let uses: Vec<(OpId, usize)> = self.uses(value).collect();
            for (op, index) in uses {
                self.follow(op, index);
            }
        }
        self.find_within();
    }
    /// The ops that use `value`, each with the index of the operand.
    pub fn uses(&self, value: ValueId) -> impl Iterator<Item = (OpId, usize)> + 'p {
        let program = self.program;
        program.uses(value).map(|slot| (program.user(slot), program.operand_index(slot)))
    }
    /// Adds `value` to host memory.
    fn reach(&mut self, value: ValueId) {
        if self.host.insert(value) {
            self.open.push(value);
        }
    }
    /// Propagates that operand `index` of `op` is in host memory.
    fn follow(&mut self, op: OpId, index: usize) {
        let program = self.program;
        if self.marks.placements.contains_key(&op) || self.marks.computed.contains(op) {
            return;
        }
        if program.has_traits(op, OpTraits::TERMINATOR) {
            return self.leave(op, index);
        }
        match program.kind(op) {
            OpKind::While => self.enter(op, index),
            OpKind::DynamicUpdateSlice if index < 2 => {
                self.reach(program.result(op, 0));
                self.allocate(program.operand(op, 0));
            }
            OpKind::DynamicSlice | OpKind::Slice if index == 0 => {
                if !self.is_for_device(program.result(op, 0)) {
                    self.computed.insert(op);
                }
                self.reach(program.result(op, 0));
            }
            // Where to read or to write is for the device to know; so is what to run.
            OpKind::DynamicUpdateSlice
            | OpKind::DynamicSlice
            | OpKind::CustomCall
            | OpKind::Call
            | OpKind::Composite
            | OpKind::Case
            | OpKind::If
            | OpKind::ManualComputation
            | OpKind::NamedComputation => {}
            _ if is_collective(program, op) => {}
            _ => {
                if let Some(result) = self.passed_on(op, index) {
                    self.reach(result);
                } else {
                    self.computed.insert(op);
                    program.op_results(op).for_each(|result| self.reach(result));
                }
            }
        }
    }
    /// The result of `op` that forwards its operand `index` unchanged.
    fn passed_on(&self, op: OpId, index: usize) -> Option<ValueId> {
        let program = self.program;
        let family = Family::of(program.op_name(op))?;
        let is_one_to_one = program.num_operands(op) == program.num_results(op);
        (family.movement == Movement::Alias && is_one_to_one).then(|| program.result(op, index))
    }
    /// Propagates operand `index` of the loop `op`, in host memory, to the arguments and result of the loop.
    fn enter(&mut self, op: OpId, index: usize) {
        let program = self.program;
        for block in blocks_inside(program, op) {
            if index < program.num_block_args(block) {
                self.reach(program.block_arg(block, index));
            }
        }
        if index < program.num_results(op) {
            self.reach(program.result(op, index));
        }
    }
    /// Propagates operand `index` of the terminator `op`, in host memory, to the value that it becomes.
    fn leave(&mut self, op: OpId, index: usize) {
        let program = self.program;
        let Some(owner) = program.parent_op(op) else { return };
        match program.kind(owner) {
            OpKind::While => {
                let body = program.op_regions(owner).nth(1);
                if body == Some(program.block_region(program.parent_block(op))) {
                    self.enter(owner, index);
                    if index < program.num_operands(owner) {
                        self.allocate(program.operand(owner, index));
                    }
                }
            }
            OpKind::Case | OpKind::If if index < program.num_results(owner) => {
                self.reach(program.result(owner, index));
            }
            _ => {}
        }
    }
    /// Puts `value`, the initial value of an updated buffer on the host, there, too, if it reads no data.
    fn allocate(&mut self, mut value: ValueId) {
        let program = self.program;
        for _ in 0..MAX_PASSED {
            let Some(op) = program.defining_op(value) else { return };
            if is_of_nothing(program, value) {
                self.host.insert(value);
                return;
            }
            if program.num_operands(op) != 1 || self.passed_on(op, 0).is_none() {
                return;
            }
            value = program.operand(op, 0);
        }
    }
    /// Whether the only use of `value`, a slice of a buffer on the host, is a placement on the device.
    fn is_for_device(&self, value: ValueId) -> bool {
        let is_end = |op: OpId, _| self.marks.placements.get(&op) == Some(&Space::Device);
        self.ends(value, &is_end).is_some()
    }
    /// `value` and the values that forward it, if `is_end` holds for all other users of these; it gets the op and the operand
    /// index.
    fn ends(&self, value: ValueId, is_end: &dyn Fn(OpId, usize) -> bool) -> Option<Vec<ValueId>> {
        let mut found = vec![value];
        let mut at = 0;
        while let Some(&value) = found.get(at) {
            at += 1;
            if !self.program.has_uses(value) || at > MAX_PASSED {
                return None;
            }
            for (op, index) in self.uses(value) {
                if is_end(op, index) {
                    continue;
                }
                if self.program.has_traits(op, OpTraits::TERMINATOR) {
                    return None;
                }
                found.push(self.passed_on(op, index)?);
            }
        }
        Some(found)
    }
    /// Finds the slices that are read from host memory into device memory, and the updates that are written into buffers on the
    /// host.
    fn find_within(&mut self) {
        let program = self.program;
        let mut found = Vec::new();
        for value in self.host.iter() {
            let Some(op) = program.defining_op(value) else { continue };
            let is_slice = matches!(program.kind(op), OpKind::DynamicSlice | OpKind::Slice);
            if is_slice && !self.computed.contains(op) {
                let is_end = |op: OpId, _| self.marks.placements.get(&op) == Some(&Space::Device);
                found.extend(self.ends(value, &is_end).into_iter().flatten());
            }
            let is_placed = self.marks.placements.contains_key(&op);
            let is_asked = self.marks.computed.contains(op);
            if is_placed || is_asked && program.num_regions(op) == 0 {
                let is_end = |op: OpId, index| {
                    let is_update = program.kind(op) == OpKind::DynamicUpdateSlice && index == 1;
                    let to = self.marks.placements.get(&op);
                    is_update && !self.computed.contains(op) || is_asked && to == Some(&Space::Host)
                };
                found.extend(self.ends(value, &is_end).into_iter().flatten());
            }
        }
        for value in found {
            self.within.insert(value);
        }
    }
    /// The ops that the chip does not execute.
    pub fn off_chip(&self) -> BitSet<OpId> {
        let program = self.program;
        let mut found = self.computed.clone();
        for &op in self.marks.placements.keys() {
            found.insert(op);
        }
        for value in self.host.iter() {
            if let ValueDef::Result(op) = program.def(value) {
                if program.num_regions(op) == 0 && !is_of_nothing(program, value) {
                    found.insert(op);
                }
            }
        }
        found
    }
}

/// Whether `op` is a collective.
pub(super) fn is_collective(program: &Program, op: OpId) -> bool {
    let family = Family::of(program.op_name(op));
    family.is_some_and(|family| matches!(family.measure, Measure::Collective))
}

/// Whether `value` reads no data: it is a constant, a splat, an iota, or uninitialized memory.
pub(super) fn is_of_nothing(program: &Program, value: ValueId) -> bool {
    let mut value = value;
    for _ in 0..MAX_PASSED {
        let Some(op) = program.defining_op(value) else { return false };
        match program.kind(op) {
            OpKind::Iota => return true,
            OpKind::BroadcastInDim | OpKind::Reshape => value = program.operand(op, 0),
            _ => {
                return program.num_operands(op) == 0
                    && (program.has_traits(op, OpTraits::CONSTANT_LIKE)
                        || program.kind(op) == OpKind::CustomCall)
            }
        }
    }
    false
}

/// The blocks of the regions of `op`.
fn blocks_inside(program: &Program, op: OpId) -> impl Iterator<Item = BlockId> + '_ {
    program.op_regions(op).flat_map(|region| program.region_blocks(region))
}

/// The arguments of those blocks.
fn block_args_inside(program: &Program, op: OpId) -> impl Iterator<Item = ValueId> + '_ {
    blocks_inside(program, op).flat_map(|block| program.block_args(block))
}
