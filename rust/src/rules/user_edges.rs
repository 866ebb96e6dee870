//! Data-flow edges that users give to ops: the same for all ops of a name, or as a function of the
//! signature.

use super::user_rule::{at_op, signature_key};
use super::view::{Shapes, SignatureView};
use crate::error::{Error, Result};
use crate::index::{OpId, SignatureId};
use crate::ir::{EdgeSpec, Program};
use rustc_hash::FxHashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A user's function from a signature to the edges of ops with it; `None` for no edges.
pub type EdgeFunction = dyn Fn(&SignatureView<'_>) -> Result<Option<EdgeSpec>> + Send + Sync;

/// The form in which a user gives the data-flow edges of an op.
#[derive(Clone)]
pub enum UserEdges {
    /// Edges for all ops of the name.
    Always(EdgeSpec),
    /// A function, which a run calls once for each signature.
    Function(Arc<EdgeFunction>),
}

impl fmt::Debug for UserEdges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Always(spec) => spec.fmt(f),
            Self::Function(_) => f.write_str("Function"),
        }
    }
}

/// The results of users' functions in a run that may be repeated. Repeating the run calls no
/// function.
#[derive(Clone, Debug, Default)]
pub(super) enum EdgeRecord {
    /// The run is not repeated.
    #[default]
    Off,
    /// The run records the results.
    On(Answers),
    /// The run uses the recorded results.
    Replayed(Answers),
}

type Answers = Arc<Mutex<FxHashMap<Vec<u8>, Option<EdgeSpec>>>>;

impl EdgeRecord {
    /// The record for repeating the run.
    pub fn replayed(&self) -> Self {
        match self {
            Self::Off => Self::Replayed(Answers::default()),
            Self::On(answers) | Self::Replayed(answers) => Self::Replayed(answers.clone()),
        }
    }
    /// The function's result for `view`, from the record or a call. No lock is held during the
    /// call, because the function may use the engine.
    fn ask(&self, function: &EdgeFunction, view: &SignatureView<'_>) -> Result<Option<EdgeSpec>> {
        match self {
            Self::Off => function(view),
            Self::On(answers) => {
                let answer = function(view)?;
                lock(answers).insert(signature_key(view), answer.clone());
                Ok(answer)
            }
            Self::Replayed(answers) => {
                lock(answers).get(&signature_key(view)).cloned().ok_or_else(|| {
                    Error::internal("edges are asked for that were not asked for before")
                })
            }
        }
    }
}

fn lock(answers: &Answers) -> MutexGuard<'_, FxHashMap<Vec<u8>, Option<EdgeSpec>>> {
    answers.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The edges, by signature, of the ops of `program` to which users have given edges by functions.
pub(super) fn by_signature(
    program: &mut Program,
    functions: &[(&str, &Arc<EdgeFunction>)],
    record: &EdgeRecord,
) -> Result<Vec<(SignatureId, EdgeSpec)>> {
    if functions.is_empty() {
        return Ok(Vec::new());
    }
    let functions: FxHashMap<&str, &Arc<EdgeFunction>> = functions.iter().copied().collect();
    let ops: Vec<OpId> = program
        .pre_order(program.module_op())
        .filter(|&op| functions.contains_key(program.op_name(op)))
        .collect();
    let mut found: FxHashMap<SignatureId, Option<EdgeSpec>> = FxHashMap::default();
    let mut shapes = Shapes::default();
    for op in ops {
        if program.signature(op).is_none() {
            program.sign_op(op);
        }
        let Some(id) = program.signature(op).get() else { continue };
        if found.contains_key(&id) || !shapes.read(program, id) {
            continue;
        }
        let view = SignatureView::of(program, id, &shapes);
        let Some(function) = functions.get(view.name) else { continue };
        let answer = record.ask(&***function, &view);
        let answer = answer.map_err(|error| at_op(&view, "data-flow edges", error))?;
        found.insert(id, answer);
    }
    Ok(found.into_iter().filter_map(|(id, spec)| Some((id, spec?))).collect())
}
