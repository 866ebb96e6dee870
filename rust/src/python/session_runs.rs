//! The results for a session's annotations: replayed from a recorded run, or, if that is not
//! possible, from a new run, which is recorded too.
//!
//! Only threads that hold the GIL take the lock, and they keep the GIL while they hold it.

use super::checked_values::CheckedValues;
use super::edited::Edited;
use super::errors::raise;
use super::kept_run::{Annotations, Edits, KeptRun, Outcome, Replay};
use super::rule_registry::RulesThen;
use super::run_options::RunOptions;
use super::sharding::PyTensorSharding;
use super::work::{install_edges, work};
use crate::compilers::target::Compiler;
use crate::inlining::call_inliner::Originals;
use crate::ir::Program;
use crate::propagation::replay::{Path, Replayed};
use crate::session::{Preparation, Prepared, Target};
use crate::sharding::TensorSharding;
use pyo3::prelude::*;
use std::cmp::Ordering;
use std::sync::{Arc, Mutex, PoisonError};

/// The recorded runs of a session.
#[derive(Default)]
pub(super) struct SessionRuns {
    /// The runs of the program as it is.
    pub given: Runs,
    /// The runs of the program in the form of XLA's compilers, and of those that simplify it before;
    /// see [`super::xla_form`].
    as_xla: [Runs; 2],
    pub checked: CheckedValues,
}

impl SessionRuns {
    /// The runs of the program in the form of `compiler`.
    pub const fn of(&self, compiler: Compiler) -> &Runs {
        let [plain, simplified] = &self.as_xla;
        if compiler.simplifies_before_partitioning() {
            simplified
        } else {
            plain
        }
    }
}

/// The recorded runs of one form of the program.
#[derive(Default)]
pub(super) struct Runs {
    kept: Mutex<KeptRuns>,
    last: Mutex<Option<Arc<Last>>>,
}

/// The last replay, from which a recorded run can be made.
struct Last {
    run: Arc<KeptRun>,
    annotations: Arc<Annotations>,
    path: Path,
}

#[derive(Clone)]
enum KeptRuns {
    /// The runs, the most recently used one last.
    Runs(Vec<Arc<KeptRun>>),
    /// Replays do not support the program.
    NotCovered,
}

impl Default for KeptRuns {
    fn default() -> Self {
        Self::Runs(Vec::new())
    }
}

/// The most recorded runs, and the most values in all of them; one run is always kept.
const MOST_KEPT: (usize, usize) = (4, 1 << 19);

/// If at most this many annotations differ, the most recently used run is taken without looking at
/// others.
const NEAR: usize = 2;

/// A recorded run is made from the last replay if at least this many times fewer annotations differ
/// from its annotations than from those of any recorded run.
const NEARER: usize = 2;

/// A program, and the originals of clones if its calls were inlined.
pub(super) type Made = (Program, Option<Arc<Originals>>);

/// The annotations to propagate, and the program with them.
pub(super) struct Annotated<'a> {
    edited: &'a Edited,
    annotations: Arc<Annotations>,
    /// The rules for propagation.
    rules: RulesThen,
    /// Makes the annotated program.
    program: &'a dyn Fn() -> PyResult<Made>,
}

impl<'a> Annotated<'a> {
    /// The annotations of `edited`, propagated with `rules`; `program` makes the form of the
    /// program that is propagated.
    pub fn new(
        edited: &'a Edited,
        rules: RulesThen,
        program: &'a dyn Fn() -> PyResult<Made>,
    ) -> Self {
        let edits = edited.edits().iter();
        let annotations: Annotations =
            edits.map(|edit| (edit.target, edit.sharding.clone())).collect();
        Self { edited, annotations: Arc::new(annotations), rules, program }
    }
}

impl Runs {
    fn kept(&self) -> KeptRuns {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
    fn keep(&self, next: KeptRuns) {
        let old =
            std::mem::replace(&mut *self.kept.lock().unwrap_or_else(PoisonError::into_inner), next);
        drop(old);
    }
    /// Marks `run` as the most recently used one.
    fn use_run(&self, run: Arc<KeptRun>) {
        let KeptRuns::Runs(mut runs) = self.kept() else { return };
        if runs.last().is_some_and(|last| Arc::ptr_eq(last, &run)) {
            return;
        }
        runs.retain(|other| {
            !Arc::ptr_eq(other, &run)
                && !other.is_full()
                && other.options == run.options
                && other.version == run.version
                && other.annotations != run.annotations
        });
        let size = run.prepared.imported().num_value_ids().max(1);
        let most = (MOST_KEPT.1 / size).clamp(1, MOST_KEPT.0);
        runs.push(run);
        runs.drain(..runs.len().saturating_sub(most));
        self.keep(KeptRuns::Runs(runs));
    }
    /// Adds `run`, which started from `annotated`, as the most recently used one; returns its
    /// outcome.
    fn used(&self, run: KeptRun, annotated: &Annotated<'_>) -> Outcome {
        let is_edited = is_edited(annotated, &run.prepared);
        let outcome = run.outcome(Replayed::default(), is_edited);
        self.use_run(Arc::new(run));
        outcome
    }
    fn keep_last(&self, next: Option<Arc<Last>>) {
        let old = {
            let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::replace(&mut *last, next)
        };
        drop(old);
    }
    /// A recorded run of the last replay, if much fewer than `count` annotations differ from its
    /// annotations.
    fn nearer(
        &self,
        py: Python<'_>,
        annotated: &Annotated<'_>,
        (options, version): (&RunOptions, u64),
        count: usize,
    ) -> PyResult<Option<Arc<KeptRun>>> {
        if count <= NEAR {
            return Ok(None);
        }
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let Some(last) = last.filter(|last| {
            last.run.is_for(options, version)
                && num_differing(&last.annotations, annotated) * NEARER <= count
        }) else {
            return Ok(None);
        };
        let made = last.run.replayed(py, last.annotations.clone(), &last.path)?;
        Ok(made.map(Arc::new))
    }

    /// Whether there is a recorded run with `options` and `rules`, which may be replayed.
    pub fn has(&self, options: &RunOptions, rules: &RulesThen) -> bool {
        let KeptRuns::Runs(runs) = self.kept() else { return false };
        runs.iter().any(|run| run.is_for(options, rules.version))
    }
    /// The outcome for `annotated`; `None` if a new run is needed.
    pub fn outcome(
        &self,
        py: Python<'_>,
        annotated: &Annotated<'_>,
        options: &RunOptions,
    ) -> PyResult<Option<Outcome>> {
        let version = annotated.rules.version;
        match self.kept() {
            KeptRuns::NotCovered => return Ok(None),
            KeptRuns::Runs(mut runs) => {
                runs.retain(|run| run.is_for(options, version));
                if let Some((nearest, count)) = nearest(runs, annotated) {
                    let nearer = self.nearer(py, annotated, (options, version), count)?;
                    let kept = nearer.unwrap_or(nearest);
                    match replay(py, &kept, annotated)? {
                        Replay::Done(outcome, path) => {
                            self.use_run(kept.clone());
                            self.keep_last(path.map(|path| {
                                let annotations = annotated.annotations.clone();
                                Arc::new(Last { run: kept, annotations, path })
                            }));
                            return Ok(Some(outcome));
                        }
                        Replay::Anew(prepared, own) => {
                            let (annotations, own) =
                                (annotated.annotations.clone(), own.map(|own| *own));
                            let run = kept.next(annotations, *prepared, own);
                            return Ok(Some(self.used(run, annotated)));
                        }
                        Replay::Busy => return Ok(None),
                        Replay::NotPossible => {}
                        Replay::GivenUp(edits) => {
                            let annotations = annotated.annotations.clone();
                            if let Some(run) = kept.rerun(py, annotations, edits)? {
                                return Ok(Some(self.used(run, annotated)));
                            }
                        }
                    }
                }
            }
        }
        let (mut program, originals) = (annotated.program)()?;
        let rules = options.rules_of(annotated.rules.registry.clone());
        install_edges(py, &rules, &mut program, &annotated.edited.filename)?;
        let text = program.text().shared_source();
        let made = work(py, rules, options.limits(), None, |context| {
            Prepared::prepare(program, options.how, context)
        })?;
        let made =
            made.map_err(|error| raise(py, &error, (*text).as_ref(), &annotated.edited.filename))?;
        let (prepared, replayer) = match made {
            Preparation::Ready(prepared) => *prepared,
            Preparation::HasPriorities => return Ok(None),
            Preparation::NotCovered => {
                self.keep(KeptRuns::NotCovered);
                return Ok(None);
            }
        };
        let annotations = (annotated.annotations.clone(), is_edited(annotated, &prepared));
        let run =
            KeptRun::new((options.clone(), version), annotations, (prepared, replayer), originals);
        let outcome = run.outcome(Replayed::default(), false);
        self.use_run(Arc::new(run));
        Ok(Some(outcome))
    }
    /// The outcome if the arguments and results of the main function are annotated with `ports`,
    /// replayed from the run of `outcome`; `None` if a new run is needed.
    pub fn placed(
        &self,
        py: Python<'_>,
        outcome: &Outcome,
        ports: &[Option<TensorSharding>],
    ) -> PyResult<Option<Outcome>> {
        let KeptRuns::Runs(runs) = self.kept() else { return Ok(None) };
        let mut runs = runs.into_iter();
        let Some(kept) = runs.find(|run| Arc::ptr_eq(&run.prepared, &outcome.prepared)) else {
            return Ok(None);
        };
        let Some(edits) = kept.prepared.placed(ports) else { return Ok(None) };
        match kept.replay(py, edits, true)? {
            Replay::Done(outcome, _) => Ok(Some(outcome)),
            Replay::Anew(prepared, _) => {
                let ports = kept.next(kept.annotations.clone(), *prepared, None);
                Ok(Some(ports.outcome(Replayed::default(), true)))
            }
            Replay::Busy | Replay::NotPossible | Replay::GivenUp(_) => Ok(None),
        }
    }
}

/// Whether an argument or a result has another annotation than the original one.
fn is_edited(annotated: &Annotated<'_>, prepared: &Prepared) -> bool {
    annotated.annotations.iter().any(|(&target, sharding)| {
        prepared.slot(target).is_some() && *sharding != annotated.edited.original(target)
    })
}

/// The run whose annotations differ least, and the number of differences; the most recently used of
/// several.
fn nearest(
    mut runs: Vec<Arc<KeptRun>>,
    annotated: &Annotated<'_>,
) -> Option<(Arc<KeptRun>, usize)> {
    let last = runs.pop()?;
    let mut least = num_differing(&last.annotations, annotated);
    let mut nearest = last;
    while let Some(run) = runs.pop().filter(|_| least > NEAR) {
        let count = num_differing(&run.annotations, annotated);
        if count < least {
            (least, nearest) = (count, run);
        }
    }
    Some((nearest, least))
}

/// The number of annotations of `annotated` that differ from `annotations`.
fn num_differing(annotations: &Annotations, annotated: &Annotated<'_>) -> usize {
    let mut own = annotations.iter().peekable();
    let mut other = annotated.annotations.iter().peekable();
    let mut count = 0;
    loop {
        let order = match (own.peek(), other.peek()) {
            (Some((first, _)), Some((second, _))) => first.cmp(second),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (None, None) => return count,
        };
        let first = own.next_if(|_| order.is_le());
        let second = other.next_if(|_| order.is_ge());
        count += usize::from(first != second);
    }
}

/// The outcome for `annotated`, replayed from `kept`.
fn replay(py: Python<'_>, kept: &KeptRun, annotated: &Annotated<'_>) -> PyResult<Replay> {
    let Some(edits) = edits(kept, annotated) else { return Ok(Replay::NotPossible) };
    let is_edited = is_edited(annotated, &kept.prepared);
    if kept.is_edited && !is_edited {
        // All annotations are the original ones, so that function headers are those of the source.
        return Ok(Replay::NotPossible);
    }
    kept.replay(py, edits, is_edited)
}

/// The slots whose annotations differ from those of `kept`, with their annotations; `None` if
/// others differ too.
fn edits(kept: &KeptRun, annotated: &Annotated<'_>) -> Option<Edits> {
    let mut edits = Vec::new();
    let mut add = |target: Target, sharding: Option<&PyTensorSharding>| {
        let slot = kept.prepared.slot(target)?;
        let sharding = match sharding {
            None => None,
            Some(sharding) => {
                let sharding = annotated.edited.resolved(sharding)?;
                Some(kept.prepared.may_have(&sharding).then_some(sharding)?)
            }
        };
        edits.push((slot, sharding));
        Some(())
    };
    for (&target, sharding) in &*annotated.annotations {
        if kept.annotations.get(&target) != Some(sharding) {
            add(target, sharding.as_ref())?;
        }
    }
    for &target in kept.annotations.keys() {
        if !annotated.annotations.contains_key(&target) {
            add(target, annotated.edited.original(target).as_ref())?;
        }
    }
    Some(edits)
}
