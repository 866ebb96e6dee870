//! A program with annotations whose import and propagation was recorded: the shardings for other annotations of its arguments and
//! results are computed by replays.
//!
//! Import reads few annotations of arguments and results of the main function, and those cannot be edited here
//! ([`Prepared::slot`]). So editing the imported program is equivalent to importing the edited program.

use super::Target;
use crate::context::Context;
use crate::error::Result;
use crate::export::constant_or_scalar_merger;
use crate::index::{FuncId, Id, ShardingId, ValueId};
use crate::ir::{AlikeOps, OpKind, Payload, Program};
use crate::pipeline::{Completion, Pipeline};
use crate::propagation::observe::Slot;
use crate::propagation::replay::{
    has_priorities, has_priority, Followed, Path, Recording, Replayed, Replayer,
};
use crate::sharding::{ShardingTable, TensorSharding};
use crate::shardy::Change;
use crate::verify::is_at_risk;
use rustc_hash::FxHashSet;
use std::sync::{Arc, OnceLock};

/// A replay may edit one port in so many, or at least that number of ports: beyond both, most visits would differ from the recorded
/// ones, and it takes half of a run to find that out.
const MOST_EDITS: (usize, usize) = (4, 64);

/// The result of preparing a program.
pub enum Preparation {
    /// The program is prepared.
    Ready(Box<(Prepared, Replayer)>),
    /// Its annotations have priorities, which replays do not support; without these it could be replayed.
    HasPriorities,
    /// It has another feature that replays do not support.
    NotCovered,
}

/// The result of a replay.
pub enum Course {
    /// The shardings for the annotations, and the path that the replay took.
    Followed(Replayed, Path),
    /// The program propagated from the annotations, as a new recording: it differed too much from the old one.
    Anew(Box<Prepared>),
}

/// Bytes of the arguments, and of the results of the main function, on one device.
pub type PortBytes = [u128; 2];

/// A program, imported and propagated.
pub struct Prepared {
    pub(super) how: Completion,
    /// The imported program, with the annotations of some run, not necessarily the recorded one.
    imported: Arc<Program>,
    /// The shardings of the program and of the recorded run.
    pub(super) shardings: ShardingTable,
    pub(super) recording: Recording,
    pub(super) main: FuncId,
    /// Whether [`Prepared::completed_port`] gives the shardings of ports after export.
    pub(super) is_readable: bool,
    /// For each argument whether import reads its annotation, so that it cannot be edited.
    fixed: Vec<bool>,
    /// The bytes of arguments and results in the recorded run, computed at the first request.
    pub(super) recorded_bytes: OnceLock<PortBytes>,
    /// The constants and broadcasts that export may merge, known once a program was completed; `None` if earlier export passes
    /// change more than shardings.
    constants: Arc<OnceLock<Option<Arc<AlikeOps>>>>,
}

impl Prepared {
    /// Imports and propagates `program`, which it takes, since a copy takes as long as a replay.
    ///
    /// # Errors
    /// The program cannot be imported or propagated.
    pub fn prepare(
        program: Program,
        how: Completion,
        context: &mut Context<'_>,
    ) -> Result<Preparation> {
        let Some(main) = program.entry_function() else { return Ok(Preparation::NotCovered) };
        let Some(body) = program.func_body(main).get() else { return Ok(Preparation::NotCovered) };
        if is_at_risk(&program) || !are_meshes_kept(&program) || is_called(&program, main) {
            return Ok(Preparation::NotCovered);
        }
        if has_priorities(&program, main) {
            return Ok(Preparation::HasPriorities);
        }
        let is_fixed = |value: ValueId| {
            let mut users = program.users(value);
            users.any(|user| program.kind(user) == OpKind::ShardingConstraint)
        };
        let fixed = program.block_args(body).map(is_fixed).collect();
        let is_exported = is_surely_exported(&program, program.shardings(), how);
        let recorded = Pipeline::record(how, program, context)?;
        let Some((recording, imported, replayer)) = recorded else {
            return Ok(Preparation::NotCovered);
        };
        if imported.main_function().ok() != Some(main) {
            return Ok(Preparation::NotCovered);
        }
        let is_readable = is_exported && are_reduced(imported.shardings());
        let (shardings, imported) = (imported.shardings().clone(), Arc::new(imported));
        let prepared = Self {
            how,
            imported,
            shardings,
            recording,
            main,
            is_readable,
            fixed,
            recorded_bytes: OnceLock::new(),
            constants: Arc::default(),
        };
        Ok(Preparation::Ready(Box::new((prepared, replayer))))
    }
    /// The imported program.
    pub fn imported(&self) -> &Arc<Program> {
        &self.imported
    }
    /// The slot with the sharding of `target`, if it can be edited.
    pub fn slot(&self, target: Target) -> Option<Slot> {
        match target {
            Target::Argument(func, index) if func == self.main && !*self.fixed.get(index)? => {
                let body = self.imported.func_body(func).get()?;
                self.imported.block_args(body).nth(index).map(Slot::Value)
            }
            Target::Result(func, index) if func == self.main => Some(Slot::FuncResult(func, index)),
            _ => None,
        }
    }
    /// Whether an argument or a result may have `sharding`.
    pub fn may_have(&self, sharding: &TensorSharding) -> bool {
        !has_priority(sharding) && sharding.mesh.index() < self.imported.meshes().len()
    }
    /// The shardings for the annotations with those of `edits` replaced; `None` if that takes a new run.
    pub fn replay(
        &self,
        replayer: &mut Replayer,
        edits: impl IntoIterator<Item = (Slot, Option<TensorSharding>)>,
    ) -> Option<Course> {
        let edits = interned(replayer, edits);
        let num_ports = self.fixed.len() + self.imported.func_results(self.main).len();
        if edits.len() > (num_ports / MOST_EDITS.0).max(MOST_EDITS.1) {
            return None;
        }
        Some(match replayer.replay(&self.recording, &edits)? {
            Followed::ToEnd(replayed, path) => Course::Followed(replayed, path),
            Followed::InPart(recording) => Course::Anew(Box::new(self.of(*recording, replayer))),
        })
    }
    /// The program propagated from the annotations of a replay of this run; `replayer` made it, and `path` is the path that it
    /// took. `None` if it takes a new run.
    pub fn replayed(&self, replayer: &Replayer, path: &Path) -> Option<Self> {
        Some(self.of(replayer.recorded(&self.recording, path)?, replayer))
    }
    /// The program propagated once more, with the annotations of `edits` replaced. `replayer`, which replays this run, replays the
    /// new one from then on. `None` if propagation does not terminate.
    pub fn rerun(
        &self,
        replayer: &mut Replayer,
        edits: impl IntoIterator<Item = (Slot, Option<TensorSharding>)>,
    ) -> Option<Self> {
        let edits = interned(replayer, edits);
        Some(self.of(replayer.rerun(&self.recording, &edits)?, replayer))
    }
    /// The program with the propagation `recording`, which refers to the program of `replayer`.
    fn of(&self, recording: Recording, replayer: &Replayer) -> Self {
        let shardings = replayer.shardings().clone();
        let is_readable = self.is_readable && are_reduced(&shardings);
        let (how, main, fixed) = (self.how, self.main, self.fixed.clone());
        let imported = self.imported.clone();
        let recorded_bytes = OnceLock::new();
        // They are those of the imported program.
        let constants = Arc::clone(&self.constants);
        Self {
            how,
            imported,
            shardings,
            recording,
            main,
            is_readable,
            fixed,
            recorded_bytes,
            constants,
        }
    }
    /// The completed program of `replayed`; `is_edited`: whether an argument or a result has been annotated since the program was
    /// parsed.
    ///
    /// # Errors
    /// The program cannot be exported.
    pub fn complete(
        &self,
        replayed: &Replayed,
        is_edited: bool,
        context: &mut Context<'_>,
    ) -> Result<Program> {
        let mut program = Program::clone(&self.imported);
        program.adopt_shardings(&self.shardings);
        for sharding in replayed.added() {
            program.intern_sharding(sharding.clone());
        }
        let (values, results) = self.recording.shardings(replayed);
        program.set_shardings(&values);
        for (index, sharding) in results.into_iter().enumerate() {
            program.set_func_result_sharding(self.main, index, sharding);
        }
        if is_edited {
            program.mark_attrs_changed(program.func_op(self.main));
        }
        if let Some(constants) = self.constants.get_or_init(|| self.find_constants()) {
            program.hand_on(Arc::clone(constants));
        }
        Pipeline::after_propagation(self.how, program.shardy())?.run(&mut program, context)?;
        Ok(program)
    }
    fn find_constants(&self) -> Option<Arc<AlikeOps>> {
        // Before constants are merged calls and what they call are exported; functions that nobody calls may be erased.
        let calls = [OpKind::Call, OpKind::NamedComputation, OpKind::FuncDataFlowEdge];
        (!self.imported.has_any(&calls))
            .then(|| Arc::new(constant_or_scalar_merger::find(&self.imported)))
    }
}

/// Whether export certainly accepts the imported `program` with `shardings`, and the shardings of ports follow as in
/// [`super::completed`]. Not certain are: unreduced axes, which export checks and reduces; functions that it merges, whose types
/// may mismatch; and single-device shardings.
pub fn is_surely_exported(program: &Program, shardings: &ShardingTable, how: Completion) -> bool {
    !how.dedup_functions_fully
        && !program.has_any(&[OpKind::NamedComputation])
        && are_reduced(shardings)
        && !may_be_refused_on_one_device(program)
}

/// Whether a value with a single-device sharding may be refused: one of several results of an op, which has shardings for all of
/// them, while single-device ones have no dims; or, in newer versions, an argument or a result of a function.
fn may_be_refused_on_one_device(program: &Program) -> bool {
    if !program.meshes().iter().any(|row| row.mesh.is_maximal()) {
        return false;
    }
    if program.shardy().has(Change::SingleDeviceReshards) {
        // Any edit may put an argument on the device.
        return true;
    }
    let is_maximal = |value: ValueId| {
        let mesh = program.mesh_of(program.sharding(value)).get();
        mesh.is_some_and(|mesh| program.mesh(mesh).is_maximal())
    };
    let is_constrained = |value: ValueId| {
        let constraints =
            program.users(value).filter(|&op| program.kind(op) == OpKind::ShardingConstraint);
        constraints.into_iter().any(|op| is_maximal(program.result(op, 0)))
    };
    program.pre_order(program.module_op()).filter(|&op| program.num_results(op) > 1).any(|op| {
        program.op_results(op).into_iter().any(|value| is_maximal(value) || is_constrained(value))
    })
}

/// Whether no sharding of `table` has unreduced axes.
fn are_reduced(table: &ShardingTable) -> bool {
    table.ids().all(|id| table[id].unreduced.is_empty())
}

/// `edits` with their shardings interned in `replayer`.
fn interned(
    replayer: &mut Replayer,
    edits: impl IntoIterator<Item = (Slot, Option<TensorSharding>)>,
) -> Vec<(Slot, ShardingId)> {
    let mut id = |sharding: Option<TensorSharding>| {
        sharding.map_or(ShardingId::NONE, |sharding| replayer.intern(sharding))
    };
    edits.into_iter().map(|(slot, sharding)| (slot, id(sharding))).collect()
}

/// Whether import leaves all meshes of `program`, and the shardings over them, unchanged.
fn are_meshes_kept(program: &Program) -> bool {
    let mut seen = FxHashSet::default();
    program.meshes().iter().all(|row| {
        row.symbol.is_some()
            && row.mesh.axes.iter().all(|axis| axis.size != 1)
            && seen.insert(&row.mesh)
    })
}

/// Whether `func` is called.
fn is_called(program: &Program, func: FuncId) -> bool {
    let name = program.func_name(func);
    let calls = program.repeated_ops_of(OpKind::Call);
    let mut callees = calls.into_iter().map(|call| program.payload(call));
    callees.any(|payload| payload == Some(&Payload::Call(name)))
}
