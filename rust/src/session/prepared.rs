//! A program with annotations that was imported and propagated once, and recorded: other annotations of its arguments and
//! results are replayed from it.
//!
//! Import looks at the annotations of arguments and results of the main function in few places, and where it does they
//! are not edited here ([`Prepared::slot`]). So editing the imported program is the same as importing the edited one.

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

/// The part of the arguments and results that a replay may start with other annotations of, and a number that is never too
/// many: beyond both, most visits would be other ones, which takes half of a run to find out.
const MOST_EDITS: (usize, usize) = (4, 64);

/// The result of preparing a program.
pub enum Preparation {
    /// The program is prepared.
    Ready(Box<(Prepared, Replayer)>),
    /// Its annotations have priorities, which replays do not cover; other annotations may do.
    HasPriorities,
    /// It has something else that replays do not cover.
    NotCovered,
}

/// The result of a replay.
pub enum Course {
    /// What the annotations lead to, and how the replay went.
    Followed(Replayed, Path),
    /// The program propagated from the annotations, which the replayer replays: much differs from the run that was replayed.
    Anew(Box<Prepared>),
}

/// Bytes of the arguments, and of the results of the main function, on one device.
pub type PortBytes = [u128; 2];

/// A program, imported and propagated.
pub struct Prepared {
    pub(super) how: Completion,
    /// The imported program, with annotations from which some run started, maybe another one.
    imported: Arc<Program>,
    /// The shardings of the program and of the recorded run.
    pub(super) shardings: ShardingTable,
    pub(super) recording: Recording,
    pub(super) main: FuncId,
    /// Whether export leaves arguments and results of the main function as [`Prepared::completed_port`] says.
    pub(super) is_readable: bool,
    /// The arguments whose annotations import looks at.
    fixed: Vec<bool>,
    /// What arguments and results take in the recorded run, once somebody asks.
    pub(super) recorded_bytes: OnceLock<PortBytes>,
    /// The constants and broadcasts that export may merge, once a program is completed; `None` if other passes before it change
    /// more than shardings.
    constants: Arc<OnceLock<Option<Arc<AlikeOps>>>>,
}

impl Prepared {
    /// Imports and propagates `program`.
    ///
    /// # Errors
    /// The program cannot be imported or propagated.
    pub fn prepare(
        program: &Program,
        how: Completion,
        context: &mut Context<'_>,
    ) -> Result<Preparation> {
        let Some(main) = program.entry_function() else { return Ok(Preparation::NotCovered) };
        let Some(body) = program.func_body(main).get() else { return Ok(Preparation::NotCovered) };
        if is_at_risk(program) || !are_meshes_kept(program) || is_called(program, main) {
            return Ok(Preparation::NotCovered);
        }
        if has_priorities(program, main) {
            return Ok(Preparation::HasPriorities);
        }
        let is_fixed = |value: ValueId| {
            let mut users = program.users(value);
            users.any(|user| program.kind(user) == OpKind::ShardingConstraint)
        };
        let fixed = program.block_args(body).map(is_fixed).collect();
        let recorded = Pipeline::record(how, program.clone(), context)?;
        let Some((recording, imported, replayer)) = recorded else {
            return Ok(Preparation::NotCovered);
        };
        if imported.main_function().ok() != Some(main) {
            return Ok(Preparation::NotCovered);
        }
        let is_readable = is_surely_exported(program, imported.shardings(), how);
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
    /// What has the sharding of `target`, if that may be edited.
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
    /// What the annotations lead to if those of `edits` are replaced; `None` if a new run has to say that.
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
    /// The program propagated from the annotations of a replay of this run that `replayer` made, `path` being how that went.
    /// `None` if it takes a new run.
    pub fn replayed(&self, replayer: &Replayer, path: &Path) -> Option<Self> {
        Some(self.of(replayer.recorded(&self.recording, path)?, replayer))
    }
    /// The program propagated once more, from annotations of which those of `edits` are replaced. `replayer`, one that
    /// replays this run, is to replay that one from now on. `None` if propagation does not end.
    pub fn rerun(
        &self,
        replayer: &mut Replayer,
        edits: impl IntoIterator<Item = (Slot, Option<TensorSharding>)>,
    ) -> Option<Self> {
        let edits = interned(replayer, edits);
        Some(self.of(replayer.rerun(&self.recording, &edits)?, replayer))
    }
    /// The program, propagated as `recording` says, which is about the program of `replayer`.
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
    /// The completed program that `replayed` leads to; `is_edited` is whether an argument or a result has been annotated
    /// since the program was parsed.
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

/// Whether export cannot refuse `program` with `shardings` once it is imported, and the shardings of arguments and results are
/// worked out as [`super::completed`] says: unreduced axes are checked and reduced by export, functions that are merged may be
/// mistyped, and what is on one device may be refused.
pub fn is_surely_exported(program: &Program, shardings: &ShardingTable, how: Completion) -> bool {
    !how.dedup_functions_fully
        && !program.has_any(&[OpKind::NamedComputation])
        && are_reduced(shardings)
        && !may_be_refused_on_one_device(program)
}

/// Whether something on one device, or constrained to be, may be refused: one of several results of an op, which has shardings
/// for all of them, while those on one device have no dims; or, in newer versions, an argument or a result of a function.
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

/// `edits` with the ids that their shardings have for `replayer`.
fn interned(
    replayer: &mut Replayer,
    edits: impl IntoIterator<Item = (Slot, Option<TensorSharding>)>,
) -> Vec<(Slot, ShardingId)> {
    let mut id = |sharding: Option<TensorSharding>| {
        sharding.map_or(ShardingId::NONE, |sharding| replayer.intern(sharding))
    };
    edits.into_iter().map(|(slot, sharding)| (slot, id(sharding))).collect()
}

/// Whether import leaves all meshes of `program`, and shardings over them, as they are.
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
