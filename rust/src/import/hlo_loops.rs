//! Reorders the operands of loops: first values that change, then loop-invariant ones.
//!
//! On the way to HLO, values that a `while` passes on unchanged become values that its regions
//! capture. Constants among them are cloned into the regions; the others become operands again,
//! after the carried ones, in the order of their uses. Shardings propagate along operands from the
//! first to the last, so the result may differ from that for the order in the text.
//!
//! Source: the canonicalization of `while` in MLIR, and `PrepareForExport` and `SinkConstantsToControlFlow` of
//! XLA. Both precede the inlining of calls.

use super::hlo_form::is_splat;
use crate::index::{BlockId, FuncId, Id, OpId, TypeId, ValueId};
use crate::inlining::call_graph::Calls;
use crate::inlining::call_inliner::Originals;
use crate::ir::{NewOp, OpKind, Place, Program, ValueDef, ValueMap};
use rustc_hash::{FxHashMap, FxHashSet};

/// What happens to an operand of a loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// It changes from iteration to iteration.
    Carried,
    /// It is loop-invariant, and an operand with this index.
    Same(usize),
    /// It is loop-invariant, and a constant.
    Constant,
    /// It is loop-invariant, and not read.
    Unread,
    /// It is loop-invariant, and captured by the regions.
    Captured,
}

/// The rewritten form of a loop: the role of each operand, and the indices of the operands that it
/// keeps, in their new order.
#[derive(Clone, Debug, Default)]
pub(super) struct Form {
    pub roles: Vec<Role>,
    pub order: Vec<usize>,
}

/// The new forms of the loops of a program.
pub struct Loops {
    forms: FxHashMap<OpId, Form>,
}

impl Loops {
    /// Computes the forms of the loops of `program`, whose calls are not inlined yet.
    pub fn of(program: &Program) -> Self {
        let mut this = Self { forms: FxHashMap::default() };
        let mut loops = program.ops_of(&[OpKind::While]);
        loops.retain(|&op| bodies(program, op).is_some());
        // Inner loops first.
        loops.reverse();
        for &op in &loops {
            let roles = this.roles(program, op);
            this.forms.insert(op, Form { roles, order: Vec::new() });
        }
        for &op in &loops {
            this.arrange(program, op);
        }
        this
    }
    /// Rewrites the loops of `program`, which is the program given to [`Loops::of`] with calls
    /// inlined.
    pub fn run(&self, program: &mut Program, originals: &mut Originals) {
        for op in reached(program) {
            if let Some(form) = self.forms.get(&originals.op(op)) {
                if !form.order.iter().copied().eq(0..form.roles.len()) {
                    rewrite(program, originals, op, form, &[]);
                }
            }
        }
    }
    /// Which operands of `op` are carried; the others are loop-invariant.
    fn roles(&self, program: &Program, op: OpId) -> Vec<Role> {
        let Some([_, body]) = bodies(program, op) else { return Vec::new() };
        let returned = program.operands(program.last_op(body));
        let pairs = program.block_args(body).zip(returned).enumerate();
        pairs
            .map(|(index, (arg, value))| {
                let is_kept = self.before_loops(program, value) == arg;
                if is_kept {
                    Role::Same(index)
                } else {
                    Role::Carried
                }
            })
            .collect()
    }
    /// The operand that `value` equals, if `value` is a loop-invariant result of a loop; else
    /// `value`.
    fn before_loops(&self, program: &Program, mut value: ValueId) -> ValueId {
        while let ValueDef::Result(op) = program.def(value) {
            let index = value.index() - program.result(op, 0).index();
            match self.forms.get(&op) {
                Some(form) if form.roles[index] != Role::Carried => {
                    value = program.operand(op, index);
                }
                _ => break,
            }
        }
        value
    }
    /// The value outside all loops that pass it on unchanged.
    fn outside(&self, program: &Program, value: ValueId) -> ValueId {
        let mut value = self.before_loops(program, value);
        while let ValueDef::Arg(block) = program.def(value) {
            let owner = program.block_parent_op(block);
            let index = value.index() - program.block_arg(block, 0).index();
            match self.forms.get(&owner) {
                Some(form) if form.roles[index] != Role::Carried => {
                    value = self.before_loops(program, program.operand(owner, index));
                }
                _ => break,
            }
        }
        value
    }
    /// Computes the form of `op`; the forms of loops inside it are known.
    fn arrange(&mut self, program: &Program, op: OpId) {
        let Some(blocks) = bodies(program, op) else { return };
        let mut form = self.forms[&op].clone();
        let is_carried = |&index: &usize| form.roles[index] == Role::Carried;
        form.order = (0..form.roles.len()).filter(is_carried).collect();
        let carried = form.order.clone();
        let mut places: FxHashMap<ValueId, usize> = FxHashMap::default();
        for block in blocks {
            for (index, arg) in program.block_args(block).enumerate() {
                if form.roles[index] != Role::Carried {
                    places.insert(arg, index);
                }
            }
            for user in program.block_ops(block).flat_map(|op| program.post_order(op)) {
                let is_end = user == program.last_op(block) && block == blocks[1];
                let order = match self.forms.get(&user) {
                    Some(inner) => inner.order.clone(),
                    None if is_end => carried.clone(),
                    None => (0..program.num_operands(user)).collect(),
                };
                for index in order {
                    let value = self.before_loops(program, program.operand(user, index));
                    if let Some(&index) = places.get(&value) {
                        form.order.push(index);
                    }
                }
            }
        }
        // Equal values become one operand, the first that is read.
        let mut known: FxHashMap<ValueId, usize> = FxHashMap::default();
        let mut seen: FxHashSet<usize> = FxHashSet::default();
        let reads = form.order.split_off(carried.len());
        form.roles.iter_mut().filter(|role| **role != Role::Carried).for_each(|role| {
            *role = Role::Unread;
        });
        for index in reads {
            if !seen.insert(index) {
                continue;
            }
            let value = self.outside(program, program.operand(op, index));
            if is_constant(program, value) {
                form.roles[index] = Role::Constant;
                continue;
            }
            let same = *known.entry(value).or_insert(index);
            form.roles[index] = Role::Same(same);
            if same == index {
                form.order.push(index);
            }
        }
        self.forms.insert(op, form);
    }
}

/// The loops that the entry function reaches; those in functions whose calls were inlined are kept
/// as originals.
pub(super) fn reached(program: &Program) -> Vec<OpId> {
    let mut loops = program.ops_of(&[OpKind::While]);
    let Some(entry) = program.entry_function().filter(|_| !loops.is_empty()) else {
        return Vec::new();
    };
    let funcs = Calls::new(program).callees_first(program, entry);
    let funcs: FxHashSet<FuncId> = funcs.into_iter().collect();
    loops.retain(|&op| funcs.contains(&program.function_of(program.top_level_op(op))));
    loops
}

/// The blocks of the condition and the body of `op`, if each has as many arguments as `op` has
/// operands and results.
pub(super) fn bodies(program: &Program, op: OpId) -> Option<[BlockId; 2]> {
    let count = program.num_operands(op);
    let block = |index| program.region_entry(program.region(op, index)).get();
    let blocks = [block(0)?, block(1)?];
    let end = program.last_op(blocks[1]).get()?;
    let is_whole = program.num_regions(op) == 2
        && program.op_results(op).len() == count
        && program.num_operands(end) == count
        && blocks.iter().all(|&block| program.num_block_args(block) == count);
    is_whole.then_some(blocks)
}

/// Whether `value` is defined by a constant.
pub(super) fn is_constant(program: &Program, value: ValueId) -> bool {
    let is_constant = |op: OpId| program.kind(op) == OpKind::Constant;
    is_splat(program, value) || program.defining_op(value).is_some_and(is_constant)
}

/// Replaces `op` by a loop with the operands of `form`, followed by `captured`, values from outside
/// that do not change.
pub(super) fn rewrite(
    program: &mut Program,
    originals: &mut Originals,
    op: OpId,
    form: &Form,
    captured: &[ValueId],
) -> OpId {
    let Some(blocks) = bodies(program, op) else { return op };
    let all: Vec<ValueId> = program.operands(op).collect();
    let kept = form.order.iter().map(|&index| all[index]);
    let operands: Vec<ValueId> = kept.chain(captured.iter().copied()).collect();
    let types: Vec<TypeId> = operands.iter().map(|&value| program.type_of(value)).collect();
    let attrs = program.op_attrs(op).to_vec();
    let new =
        program.create_op(NewOp::of_kind(OpKind::While, &operands, &types).regions(blocks.len()));
    program.replace_attrs(new, &attrs);
    program.set_loc(new, program.loc(op));
    program.insert_op(new, Place::Before(op));
    originals.note_op(new, op);
    let mut places = vec![None; all.len()];
    for (place, &index) in form.order.iter().enumerate() {
        places[index] = Some(place);
    }
    for (number, old_block) in blocks.into_iter().enumerate() {
        let block = program.add_block(program.region(new, number), &types);
        for inner in program.block_ops(old_block).collect::<Vec<_>>() {
            program.move_op(inner, Place::End(block));
        }
        if number == 1 {
            let end = program.last_op(block);
            let returned: Vec<ValueId> = program.operands(end).collect();
            let returned = |(place, arg): (usize, ValueId)| match form.order.get(place) {
                Some(&index) if form.roles[index] == Role::Carried => returned[index],
                _ => arg,
            };
            let returned: Vec<ValueId> =
                program.block_args(block).enumerate().map(returned).collect();
            program.set_operands(end, &returned);
        }
        let inside: FxHashSet<OpId> = match captured {
            [] => FxHashSet::default(),
            _ => program.block_ops(block).flat_map(|op| program.pre_order(op)).collect(),
        };
        for (place, &value) in captured.iter().enumerate() {
            let arg = program.block_arg(block, form.order.len() + place);
            program.set_sharding(arg, program.sharding(value));
            originals.note_value(arg, value);
            program
                .replace_uses_if(value, arg, |program, slot| inside.contains(&program.user(slot)));
        }
        for index in 0..all.len() {
            let old = program.block_arg(old_block, index);
            let image = match form.roles[index] {
                Role::Carried => places[index].map(|place| program.block_arg(block, place)),
                Role::Same(same) => places[same].map(|place| program.block_arg(block, place)),
                Role::Constant if program.has_uses(old) => {
                    Some(cloned_constant(program, originals, all[index], block))
                }
                Role::Captured => Some(all[index]),
                Role::Constant | Role::Unread => None,
            };
            let Some(image) = image else { continue };
            if places[index].is_some() {
                program.copy_name(old, image);
                program.set_sharding(image, program.sharding(old));
                originals.note_value(image, old);
            }
            program.replace_all_uses(old, image);
        }
    }
    for (index, &operand) in all.iter().enumerate() {
        let old = program.result(op, index);
        let image = match (form.roles[index], places[index]) {
            (Role::Carried, Some(place)) => {
                let image = program.result(new, place);
                program.set_sharding(image, program.sharding(old));
                originals.note_value(image, old);
                image
            }
            _ => operand,
        };
        program.replace_all_uses(old, image);
    }
    for (place, &value) in captured.iter().enumerate() {
        let result = program.result(new, form.order.len() + place);
        program.set_sharding(result, program.sharding(value));
        originals.note_value(result, value);
    }
    program.erase_op(op);
    new
}

/// A clone of `value`, a constant, at the start of `block`.
fn cloned_constant(
    program: &mut Program,
    originals: &mut Originals,
    value: ValueId,
    block: BlockId,
) -> ValueId {
    let mut map = ValueMap::default();
    let mut todo: Vec<OpId> = program.defining_op(value).into_iter().collect();
    let mut ops: Vec<OpId> = Vec::new();
    while let Some(op) = todo.pop() {
        ops.push(op);
        todo.extend(program.operands(op).filter_map(|value| program.defining_op(value)));
    }
    let mut at = Place::Start(block);
    for &op in ops.iter().rev() {
        let clone = program.clone_op(op, &mut map, false);
        program.insert_op(clone, at);
        at = Place::After(clone);
        originals.note_op(clone, op);
        originals.note_value(program.result(clone, 0), program.result(op, 0));
    }
    map.get(value).unwrap_or(value)
}
