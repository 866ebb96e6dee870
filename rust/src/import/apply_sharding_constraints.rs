//! `sdy-apply-sharding-constraints`: gives the input of a sharding constraint the constraint's sharding,
//! if the input has none, the constraint is closed, and no other constraint on the input has another
//! sharding. In-shardings of manual computations are constraints too.
//!
//! Since [`Change::ConstraintsOnOpenValues`] a fully open sharding counts as none.
//!
//! If the input is a target of a data-flow edge, all of its other uses become uses of the
//! constraint instead, so that the constraint does not restrict the other targets of the edge.
//!
//! At the head of a chain of constraints, uses of the input that come after the end of the chain
//! become uses of its end, except in function returns. Since [`Change::ConstraintsInFunctions`],
//! only returns of the main function are excepted.

use super::CallGraph;
use crate::context::Context;
use crate::error::Result;
use crate::index::{BlockId, OpId, ShardingId, ValueId};
use crate::ir::{EdgeSpec, InsertPoint, OpKind, Place, Program, SymbolTable, ValueDef};
use crate::op_sharding_rule::OpShardingRule;
use crate::projection::Projection;
use crate::propagation::origins::{arrivals, Recorder, Settings, Subject, Visited};
use crate::sharding::TensorSharding;
use crate::shardy::Change;
use rustc_hash::FxHashMap;

/// Runs the pass.
pub fn run(program: &mut Program, context: &mut Context<'_>, debug: Settings) -> Result<()> {
    let recorder = Recorder::start(program, debug);
    let mut constraints =
        program.ops_in_post_order(&[OpKind::ShardingConstraint, OpKind::ManualComputation]);
    if recorder.is_some() && program.shardy().has(Change::ConstraintsInCallees) {
        let symbols = SymbolTable::new(program);
        let graph = CallGraph::new(program, &symbols);
        let places: FxHashMap<OpId, usize> =
            graph.post_order.iter().map(|&func| program.func_op(func)).zip(0..).collect();
        constraints.sort_by_key(|&op| places.get(&program.top_level_op(op)).copied());
    }
    let only_main = program.shardy().has(Change::ConstraintsInFunctions);
    let main = only_main.then(|| program.main_function().ok()).flatten();
    let main = main.map(|main| program.func_op(main));
    let users = FxHashMap::default();
    let mut pass = Pass { program, context, users, recorder, only_main, main };
    for op in constraints {
        if pass.program.kind(op) == OpKind::ShardingConstraint {
            pass.apply_chain(op);
            let (input, sharding) = (pass.program.operand(op, 0), pass.result_sharding(op));
            pass.apply(op, input, sharding);
        } else {
            pass.apply_manual_computation(op);
        }
    }
    if let Some(recorder) = pass.recorder.take() {
        recorder.finish(program);
    }
    Ok(())
}

/// The constraints on one value.
#[derive(Clone, Copy, Default)]
struct Constraints {
    /// The number of times that a constraint has the value as its operand.
    count: usize,
    /// The sharding of the first constraint.
    sharding: ShardingId,
    /// Whether another constraint has another sharding.
    differ: bool,
}

struct Pass<'a, 'c> {
    program: &'a mut Program,
    context: &'a mut Context<'c>,
    /// Constraints on the values queried so far; updated when uses move.
    users: FxHashMap<ValueId, Constraints>,
    recorder: Option<Recorder>,
    /// Whether only returns of the main function are excepted from chains.
    only_main: bool,
    /// The op of the main function, if `only_main`.
    main: Option<OpId>,
}

impl Pass<'_, '_> {
    fn result_sharding(&self, op: OpId) -> ShardingId {
        self.program.sharding(self.program.result(op, 0))
    }

    fn constraints_on(&mut self, value: ValueId) -> Constraints {
        if let Some(&known) = self.users.get(&value) {
            return known;
        }
        let mut found = Constraints::default();
        let program = &*self.program;
        for slot in program.uses(value) {
            let user = program.user(slot);
            let sharding = match program.kind(user) {
                OpKind::ShardingConstraint => program.sharding(program.result(user, 0)),
                OpKind::ManualComputation => {
                    in_sharding(program, user, program.operand_index(slot))
                }
                _ => continue,
            };
            if found.count == 0 {
                found.sharding = sharding;
            }
            found.count += 1;
            found.differ |= sharding != found.sharding;
        }
        self.users.insert(value, found);
        found
    }

    /// Redirects later uses of the input of a chain of constraints that starts at `head` to its
    /// end.
    fn apply_chain(&mut self, head: OpId) {
        let input = self.program.operand(head, 0);
        let Some(tail) = self.end_of_chain(head, input) else { return };
        let tail_result = self.program.result(tail, 0);
        let tail_block = self.program.parent_block(tail);
        self.program.number_block(tail_block);
        let func = self.program.block_parent_op(tail_block);
        let keeps_returned = !self.only_main || self.main == Some(func);
        self.program.replace_uses_if(input, tail_result, |program, slot| {
            let user = program.user(slot);
            user != head
                && !(keeps_returned && program.kind(user) == OpKind::FuncReturn)
                && program.parent_block(user) == tail_block
                && program.is_before(tail, user)
        });
    }

    /// Whether `value` has a sharding that constraints do not replace.
    fn has_sharding(&mut self, value: ValueId) -> bool {
        let sharding = self.program.sharding_of(value);
        let Some(sharding) = self.program.shardings().get(sharding) else { return false };
        let has_dims = !sharding.dims.is_empty() || is_one_of_many_results(self.program, value);
        let is_open = has_dims && is_fully_open(sharding);
        !is_open || !self.program.shardy().has(Change::ConstraintsOnOpenValues)
    }

    /// The last constraint of the chain that starts at `head`, if the chain has at least two and
    /// there are no other constraints on `input`.
    fn end_of_chain(&mut self, head: OpId, input: ValueId) -> Option<OpId> {
        let defining_kind = self.program.defining_op(input).map(|op| self.program.kind(op));
        if defining_kind == Some(OpKind::ShardingConstraint)
            || self.has_sharding(input)
            || self.constraints_on(input).count > 1
        {
            return None;
        }
        let mut tail = head;
        while let Some(next) = only_user(self.program, self.program.result(tail, 0)) {
            if self.program.kind(next) != OpKind::ShardingConstraint {
                break;
            }
            tail = next;
        }
        let tail_result = self.program.result(tail, 0);
        (tail != head && self.constraints_on(tail_result).count == 0).then_some(tail)
    }

    fn apply_manual_computation(&mut self, op: OpId) {
        for index in 0..self.program.num_operands(op) {
            let operand = self.program.operand(op, index);
            let sharding = in_sharding(self.program, op, index);
            self.apply(op, operand, sharding);
        }
    }

    /// Gives `input` the sharding `id` of the constraint `op`.
    fn apply(&mut self, op: OpId, input: ValueId, id: ShardingId) {
        let Some(sharding) = self.program.shardings().get(id) else { return };
        let is_closed = sharding.dims.iter().all(|dim| dim.is_closed);
        if !is_closed || self.program.shardable_value(input).is_none() || self.has_sharding(input) {
            return;
        }
        let others = self.constraints_on(input);
        if others.count > 0 && (others.differ || others.sharding != id) {
            return;
        }
        if is_edge_target(self.program, self.context, input) {
            self.replace_by_constraint(op, input, id);
        } else {
            attach_rule(self.program, op);
            let old = self.recorder.as_ref().and_then(|_| factors(self.program, op));
            self.set_sharding(input, id);
            if let Some(old) = old {
                self.record(op, &old);
            }
        }
    }

    /// Sets the sharding of `input`. For an argument of a manual computation, that is a constraint
    /// on the operand.
    fn set_sharding(&mut self, input: ValueId, id: ShardingId) {
        if let Some(op) = self.program.manual_computation_of_arg(input) {
            let operand = self.program.operand(op, self.program.value_index(input));
            self.users.remove(&operand);
        }
        set_sharding(self.program, input, id);
    }

    /// Records what has changed since the factor table of the constraint `op` was `old`.
    fn record(&mut self, op: OpId, old: &Projection) {
        let Some(new) = factors(self.program, op).filter(|new| new != old) else { return };
        let Some(recorder) = &mut self.recorder else { return };
        let (operand, result) = (self.program.operand(op, 0), self.program.result(op, 0));
        let values = [operand, result].map(|value| self.program.shardable_value(value));
        let mesh = self.program.mesh_of(self.program.sharding(result));
        let mesh = &*self.program.meshes()[mesh].mesh.clone();
        let rule = &self.program.rules()[self.program.op_rules().get(op)];
        let arrivals = &arrivals(rule.tensors(), mesh, old, &new);
        let visited = Visited { subject: Subject::Op(op), num_operands: 1, mesh, arrivals };
        recorder.record(self.program.strings_mut(), &visited, |tensor| values[tensor]);
    }

    /// Replaces all uses of `input` by a new constraint right after it.
    fn replace_by_constraint(&mut self, op: OpId, input: ValueId, id: ShardingId) {
        let program = &mut *self.program;
        let place = match program.def(input) {
            ValueDef::Result(op) => Place::After(op),
            ValueDef::Arg(block) => Place::Start(block),
        };
        let constraint = if program.kind(op) == OpKind::ShardingConstraint {
            program.move_op(op, place);
            op
        } else {
            let at = InsertPoint { place, loc: program.loc(op) };
            program.build_unary(OpKind::ShardingConstraint, input, id, at)
        };
        let result = program.result(constraint, 0);
        program.replace_all_uses_except(input, result, constraint);
        self.users.remove(&input);
        self.users.remove(&result);
        let TensorSharding { mesh, unreduced, reduction_op, .. } = program.shardings()[id].clone();
        if !unreduced.is_empty() {
            // These axes do not propagate, so the input has to have them itself.
            let ty = program.type_of(input);
            let found = program.sharding_of(input).get();
            let open = found.unwrap_or_else(|| program.replicated(mesh, ty, false));
            let open = program.shardings()[open].clone();
            let with_unreduced = TensorSharding { unreduced, reduction_op, ..open };
            let with_unreduced = program.intern_sharding(with_unreduced);
            set_sharding(program, input, with_unreduced);
        }
    }
}

/// Whether `sharding` constrains nothing: all dims are open, without axes and priorities.
fn is_fully_open(sharding: &TensorSharding) -> bool {
    let mut dims = sharding.dims.iter();
    sharding.replicated.is_empty()
        && sharding.unreduced.is_empty()
        && dims.all(|dim| !dim.is_closed && dim.axes.is_empty() && dim.priority.is_none())
}

/// Whether `value` is one of several results of an op, and may have got its sharding when another
/// result did.
fn is_one_of_many_results(program: &Program, value: ValueId) -> bool {
    program.defining_op(value).is_some_and(|op| program.num_results(op) > 1)
}

/// The in-sharding of manual computation `op` for its `index`-th operand.
fn in_sharding(program: &Program, op: OpId, index: usize) -> ShardingId {
    let block = program.region_entry(program.region(op, 0));
    let arg = block.get().and_then(|block| program.block_args(block).nth(index));
    arg.map_or(ShardingId::NONE, |arg| program.sharding(arg))
}

/// The op that has the only use of `value`.
fn only_user(program: &Program, value: ValueId) -> Option<OpId> {
    let slot = program.newest_use(value).get()?;
    program.has_one_use(value).then(|| program.user(slot))
}

/// Whether `value` is the result of a data-flow edge op, or a target of an edge that has one.
fn is_edge_target(program: &Program, context: &Context<'_>, value: ValueId) -> bool {
    let owning_op = match program.def(value) {
        ValueDef::Result(op) => match program.kind(op) {
            OpKind::DataFlowEdge => return true,
            OpKind::FuncDataFlowEdge => {
                return program.shardy().has(Change::ConstraintsOnOpenValues);
            }
            _ => op,
        },
        ValueDef::Arg(block) => program.block_parent_op(block),
    };
    let owner = |spec: &EdgeSpec| spec.owner_of_target(program, owning_op, value);
    let owner = context.rules.edges(program, owning_op).and_then(owner);
    owner.is_some_and(|owner| program.data_flow_edge(owner).is_some())
}

/// Sets the sharding of `value` on its [`Program::shardable_value`].
fn set_sharding(program: &mut Program, value: ValueId, id: ShardingId) {
    let Some(value) = program.shardable_value(value) else { return };
    match program.def(value) {
        ValueDef::Result(_) => program.set_result_sharding(value, id),
        ValueDef::Arg(block) => match program.manual_computation_of_arg(value) {
            Some(op) => program.set_manual_arg_sharding(op, value, id),
            None => set_arg_sharding(program, value, block, id),
        },
    }
}

/// Sets the sharding of `value`, an argument of `block`. Either all arguments of a named
/// computation have shardings, or none.
fn set_arg_sharding(program: &mut Program, value: ValueId, block: BlockId, id: ShardingId) {
    program.set_sharding(value, id);
    let op = program.block_parent_op(block);
    if program.kind(op) != OpKind::NamedComputation {
        return;
    }
    let mesh = program.mesh_of(id);
    for arg in program.block_args(block) {
        if program.sharding(arg).is_none() {
            let open = program.replicated(mesh, program.type_of(arg), false);
            program.set_sharding(arg, open);
        }
    }
}

/// The factor table of the constraint `op`, if it has a rule.
fn factors(program: &mut Program, op: OpId) -> Option<Projection> {
    if program.kind(op) != OpKind::ShardingConstraint {
        return None;
    }
    let rule = program.op_rules().get(op).get()?;
    let (operand, result) = (program.operand(op, 0), program.result(op, 0));
    let shardings = [program.sharding_of(operand), program.sharding(result)];
    let mesh = &program.meshes()[program.mesh_of(shardings[1]).get()?].mesh;
    let rows = shardings.iter().map(|&sharding| program.shardings().get(sharding));
    Some(Projection::build(&program.rules()[rule], rows, mesh, false))
}

/// Attaches the sharding rule of the constraint `op` to it, as the reference does here.
fn attach_rule(program: &mut Program, op: OpId) {
    if program.kind(op) != OpKind::ShardingConstraint || program.op_rules().get(op).is_some() {
        return;
    }
    let ty = program.value_type(program.result(op, 0));
    if let Some(shape) = ty.static_shape() {
        let rule = program.intern_rule(OpShardingRule::identity(&shape, 1, 1));
        program.set_op_rule(op, rule);
        program.mark_attrs_changed(op);
    }
}
