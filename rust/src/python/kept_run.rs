//! A recorded run of a session, with the replayers that replay it from other annotations.
//!
//! Only threads that hold the GIL take the lock, and they keep the GIL while they hold it.

use super::errors::raise;
use super::room::room_for_copy;
use super::run_options::RunOptions;
use super::sharding::PyTensorSharding;
use super::work::work;
use crate::context::Context;
use crate::error::{Error, Result as EngineResult};
use crate::inlining::call_inliner::Originals;
use crate::ir::Program;
use crate::propagation::observe::Slot;
use crate::propagation::replay::{Path, Replayed, Replayer};
use crate::session::{Course, Prepared, Target};
use crate::sharding::TensorSharding;
use crate::verify::verify_made;
use pyo3::prelude::*;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The annotation of each target, `None` if it has none.
pub(super) type Annotations = BTreeMap<Target, Option<PyTensorSharding>>;

/// Edits of the annotations of a prepared program.
pub(super) type Edits = Vec<(Slot, Option<TensorSharding>)>;

/// The result of a replay, from which the completed program can be made.
#[derive(Clone)]
pub(super) struct Outcome {
    pub prepared: Arc<Prepared>,
    pub replayed: Arc<Replayed>,
    is_edited: bool,
    pub options: RunOptions,
    pub originals: Option<Arc<Originals>>,
}

/// The result of a replay.
pub(super) enum Replay {
    /// The result for the annotations, and how the replay went, if a recorded run may be made from
    /// it; see [`KeptRun::replayed`].
    Done(Outcome, Option<Path>),
    /// A new recorded run from the annotations, and its own replayer if this run's replayers are
    /// shared by several threads.
    Anew(Box<Prepared>, Option<Box<Replayer>>),
    /// Other threads use all replayers.
    Busy,
    /// A replay is not possible: annotations differ that a replay cannot change.
    NotPossible,
    /// A new run is needed.
    GivenUp(Edits),
}

/// A recorded run that is kept, with the annotations that it started from.
pub(super) struct KeptRun {
    pub options: RunOptions,
    /// The version of the registry of rules.
    pub version: u64,
    pub annotations: Arc<Annotations>,
    /// Whether an argument or a result had another annotation than the original one when the
    /// program was imported.
    pub is_edited: bool,
    pub prepared: Arc<Prepared>,
    /// The replayers; shared with the run from which this one was made, unless several threads used
    /// them.
    replayers: Arc<Mutex<Replayers>>,
    /// Whether the tables of its replayers are so large that a new run should be recorded.
    is_full: AtomicBool,
    /// The originals of the clones in the program, if its calls were inlined.
    pub originals: Option<Arc<Originals>>,
}

/// The replayers of a run, one for each simultaneous thread.
struct Replayers {
    /// The replayers that are not in use.
    free: Vec<Replayer>,
    /// The number of replayers, including those in use.
    count: usize,
}

/// The most threads that replay a run simultaneously.
const MOST_REPLAYERS: usize = 16;

impl Replayers {
    /// A list with only `replayer`.
    fn shared(replayer: Replayer) -> Arc<Mutex<Self>> {
        Arc::new(Mutex::new(Self { free: vec![replayer], count: 1 }))
    }
}

impl KeptRun {
    /// A run of `prepared` from `annotations`, with its replayer.
    pub fn new(
        (options, version): (RunOptions, u64),
        (annotations, is_edited): (Arc<Annotations>, bool),
        (prepared, replayer): (Prepared, Replayer),
        originals: Option<Arc<Originals>>,
    ) -> Self {
        let prepared = Arc::new(prepared);
        let is_full = AtomicBool::new(false);
        let replayers = Replayers::shared(replayer);
        Self { options, version, annotations, is_edited, prepared, replayers, is_full, originals }
    }
    /// A recorded run from `annotations`, which differ from those of this run by `edits`; `None` if
    /// it does not converge, or if other threads use all replayers. It shares the replayers of this
    /// run, whose table of shardings only grows, unless several threads use them.
    pub fn rerun(
        &self,
        py: Python<'_>,
        annotations: Arc<Annotations>,
        edits: Edits,
    ) -> PyResult<Option<Self>> {
        let Some(replayer) = self.take(py)? else { return Ok(None) };
        // While this thread has the only replayer, no other thread can copy it.
        let is_only = self.replayers().count == 1;
        let prepared = self.prepared.clone();
        let (prepared, replayer, own) = py.detach(move || {
            let (kept, mut replayer) =
                if is_only { (None, replayer) } else { (Some(replayer.clone()), replayer) };
            let prepared = prepared.rerun(&mut replayer, edits);
            match kept {
                None => (prepared, replayer, None),
                Some(kept) => (prepared, kept, Some(replayer)),
            }
        });
        self.replayers().free.push(replayer);
        Ok(prepared.map(|prepared| self.next(annotations, prepared, own)))
    }
    /// The run of `prepared` from `annotations`, made from this run; with the replayer `own`, or
    /// the replayers of this run.
    pub fn next(
        &self,
        annotations: Arc<Annotations>,
        prepared: Prepared,
        own: Option<Replayer>,
    ) -> Self {
        Self {
            options: self.options.clone(),
            version: self.version,
            annotations,
            is_edited: self.is_edited,
            prepared: Arc::new(prepared),
            replayers: own.map_or_else(|| self.replayers.clone(), Replayers::shared),
            is_full: AtomicBool::new(false),
            originals: self.originals.clone(),
        }
    }
    /// A recorded run from `annotations`, made from a replay of this run; `path` is how the replay
    /// went. `None` if a new run is needed.
    pub fn replayed(
        &self,
        py: Python<'_>,
        annotations: Arc<Annotations>,
        path: &Path,
    ) -> PyResult<Option<Self>> {
        let Some(replayer) = self.take(py)? else { return Ok(None) };
        let is_only = self.replayers().count == 1;
        let prepared =
            if is_only { py.detach(|| self.prepared.replayed(&replayer, path)) } else { None };
        self.replayers().free.push(replayer);
        Ok(prepared.map(|prepared| self.next(annotations, prepared, None)))
    }
    /// The result of `edits` of the annotations; `is_edited` is whether any annotation differs from
    /// the original one.
    pub fn replay(&self, py: Python<'_>, edits: Edits, is_edited: bool) -> PyResult<Replay> {
        let Some(mut replayer) = self.take(py)? else { return Ok(Replay::Busy) };
        // While this thread has the only replayer, no other thread can copy it.
        let is_only = self.replayers().count == 1;
        let prepared = self.prepared.clone();
        let (course, own, edits, replayer) = py.detach(|| {
            let course = prepared.replay(&mut replayer, edits.iter().cloned());
            let is_shared = !is_only && matches!(course, Some(Course::Anew(_)));
            let own = is_shared.then(|| Box::new(replayer.clone()));
            (course, own, edits, replayer)
        });
        self.is_full.fetch_or(replayer.is_full(), Ordering::Relaxed);
        self.replayers().free.push(replayer);
        if self.is_full() {
            return Ok(Replay::NotPossible);
        }
        Ok(match course {
            Some(Course::Followed(replayed, path)) => {
                let path = Some(path).filter(|path| is_only && path.is_long());
                Replay::Done(self.outcome(replayed, is_edited), path)
            }
            Some(Course::Anew(prepared)) => Replay::Anew(prepared, own),
            None => Replay::GivenUp(edits),
        })
    }
    pub fn outcome(&self, replayed: Replayed, is_edited: bool) -> Outcome {
        let (prepared, options) = (self.prepared.clone(), self.options.clone());
        let originals = self.originals.clone();
        Outcome { prepared, replayed: Arc::new(replayed), is_edited, options, originals }
    }
    /// Whether runs with `options` and this version of the rules may be replayed from this one.
    pub fn is_for(&self, options: &RunOptions, version: u64) -> bool {
        self.options == *options && self.version == version && !self.is_full()
    }
    pub fn is_full(&self) -> bool {
        self.is_full.load(Ordering::Relaxed)
    }
    fn replayers(&self) -> MutexGuard<'_, Replayers> {
        self.replayers.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// Takes a replayer; `None` if other threads use all of them for too long, or used them when
    /// the process was forked. If it had to wait, the replayer is copied, so that the same number
    /// of threads need not wait next time.
    fn take(&self, py: Python<'_>) -> PyResult<Option<Replayer>> {
        /// The pause between two attempts, and the number of attempts.
        const PAUSE: Duration = Duration::from_micros(100);
        const LOOKS: usize = 200;
        for look in 0..LOOKS {
            let found = self.replayers().free.pop();
            if let Some(replayer) = found {
                let replayer = if look == 0 { replayer } else { self.copied(py, replayer) };
                return Ok(Some(replayer));
            }
            py.detach(|| std::thread::sleep(PAUSE));
            py.check_signals()?;
        }
        Ok(None)
    }
    /// Returns `replayer`, after adding a copy of it to the free ones, unless there are enough.
    fn copied(&self, py: Python<'_>, replayer: Replayer) -> Replayer {
        {
            let mut replayers = self.replayers();
            if replayers.count >= MOST_REPLAYERS || !replayers.free.is_empty() {
                return replayer;
            }
            replayers.count += 1;
        }
        let (replayer, copy) = py.detach(|| {
            let copy = replayer.clone();
            (replayer, copy)
        });
        self.replayers().free.push(copy);
        replayer
    }
}

impl Outcome {
    /// The completed program, which is verified if `verifies`.
    pub fn complete(&self, py: Python<'_>, filename: &str, verifies: bool) -> PyResult<Program> {
        let Self { prepared, replayed, is_edited, options, .. } = self;
        let complete = |context: &mut Context<'_>| -> EngineResult<Program> {
            let program = prepared.complete(replayed, *is_edited, context)?;
            if verifies {
                Error::check(verify_made(&program))?;
            }
            Ok(program)
        };
        room_for_copy(py, prepared.imported())?;
        let completed = work(py, options.rules(), options.limits(), None, complete)?;
        let text = prepared.imported().text().source();
        completed.map_err(|error| raise(py, &error, text, filename))
    }
}
