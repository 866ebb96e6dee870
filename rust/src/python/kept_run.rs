//! A recorded run of a session, with what replays it from other annotations.
//!
//! The lock here is taken only by threads that hold the GIL, which keep it as long as they have the lock.

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

/// The annotations of targets, `None` where there is none.
pub(super) type Annotations = BTreeMap<Target, Option<PyTensorSharding>>;

/// Edits of annotations of a program that is prepared.
pub(super) type Edits = Vec<(Slot, Option<TensorSharding>)>;

/// What replays lead to, and how to make the completed program of it.
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
    /// What the annotations lead to, and how the replay went if a run may be made of it, see [`KeptRun::replayed`].
    Done(Outcome, Option<Path>),
    /// The run from the annotations, and what replays it alone if this run is replayed by several threads.
    Anew(Box<Prepared>, Option<Box<Replayer>>),
    /// Other threads replay.
    Busy,
    /// Other annotations differ than a replay can start from.
    NotPossible,
    /// It takes a new run.
    GivenUp(Edits),
}

/// A run that is kept, with the annotations that it started from.
pub(super) struct KeptRun {
    pub options: RunOptions,
    /// The version of the registry of rules.
    pub version: u64,
    pub annotations: Arc<Annotations>,
    /// Whether the program had another annotation of an argument or a result when it was imported than it came with.
    pub is_edited: bool,
    pub prepared: Arc<Prepared>,
    /// Those of the run that this one was made from, too, if they were not many.
    replayers: Arc<Mutex<Replayers>>,
    /// Whether so much is remembered of its replays that another run is due.
    is_full: AtomicBool,
    /// The originals of the clones in the program, if its calls were inlined.
    pub originals: Option<Arc<Originals>>,
}

/// The replayers of a run, one for each of the threads that replay it at a time.
struct Replayers {
    /// The replayers that no thread uses now.
    free: Vec<Replayer>,
    /// How many there are, those that threads have included.
    count: usize,
}

/// The most threads that replay a run at a time.
const MOST_REPLAYERS: usize = 16;

impl Replayers {
    /// `replayer` alone.
    fn shared(replayer: Replayer) -> Arc<Mutex<Self>> {
        Arc::new(Mutex::new(Self { free: vec![replayer], count: 1 }))
    }
}

impl KeptRun {
    /// A run of `prepared`, which `replayer` replays, from `annotations`.
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
    /// The run from `annotations`, which differ from those of this one by `edits`; `None` if it does not end, or other threads
    /// replay. It is replayed by what replays this one, whose table of shardings only grows, unless several threads do.
    pub fn rerun(
        &self,
        py: Python<'_>,
        annotations: Arc<Annotations>,
        edits: Edits,
    ) -> PyResult<Option<Self>> {
        let Some(replayer) = self.take(py)? else { return Ok(None) };
        // While this thread has the only one, no other thread can copy it.
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
    /// The run of `prepared` from `annotations`, which was made from this one; `own` replays it, or what replays this one.
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
    /// The run from `annotations`, to which a replay of this one led, `path` being how that went. `None` if it takes a new run.
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
    /// What `edits` of the annotations lead to; `is_edited` is whether one is another than the program came with.
    pub fn replay(&self, py: Python<'_>, edits: Edits, is_edited: bool) -> PyResult<Replay> {
        let Some(mut replayer) = self.take(py)? else { return Ok(Replay::Busy) };
        // While this thread has the only one, no other thread can copy it.
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
    /// Whether runs with `options` and the rules of this version may be replayed from this one.
    pub fn is_for(&self, options: &RunOptions, version: u64) -> bool {
        self.options == *options && self.version == version && !self.is_full()
    }
    pub fn is_full(&self) -> bool {
        self.is_full.load(Ordering::Relaxed)
    }
    fn replayers(&self) -> MutexGuard<'_, Replayers> {
        self.replayers.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// Takes a replayer; `None` if other threads have all for long, or had them when the process was forked. One that
    /// was waited for is copied, so that as many threads as now wait for none next time.
    fn take(&self, py: Python<'_>) -> PyResult<Option<Replayer>> {
        /// The interval between two looks, and the number of looks.
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
    /// `replayer`, of which a copy is free now, unless there are enough.
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
