//! Textual pipelines, as in MLIR's pass manager.
//!
//! `builtin.module(symbol-dce,func.func(sdy-drop-sharding-rules),canonicalize{enable-patterns=sdy-reshard})`
//! has the op to run on and the passes in order. A pass may have options; an op name in place of a
//! pass starts a nested pipeline, which runs on each such op. The name of a pipeline is replaced by
//! its passes.
//!
//! [`pass_table`] has every pass, [`option_specs`] every option, [`pipeline_table`] every pipeline.
//! The engine refers to them as Rust items; their names are only for text.
//!
//! Source: MLIR's pass infrastructure, "Textual Pass Pipeline Specification".

mod display;
mod flags;
mod option_specs;
mod options;
mod parse;
mod pass_table;
mod per_instruction_partitioning;
mod pipeline_table;
mod propagate;
mod stage;
#[cfg(test)]
mod tests;

pub use options::{OptionKind, OptionSpec, Options, Specs};
pub use pass_table::{PassSpec, Run};

use crate::context::Context;
use crate::error::{Code, Diagnostic, Error, Result};
use crate::index::OpId;
use crate::ir::Program;
use crate::memory;
use crate::propagation::explain::Explanation;
use crate::propagation::replay::{Recorded, Recording};
use crate::propagation::{propagate_explained, Strategy};
use crate::rules::write_stored;
use crate::shardy::Version;
use crate::verify::{too_new_for, verify_after_pass};

/// The op that a pipeline for modules runs on.
const MODULE: &str = "builtin.module";
/// The op that a pipeline for functions runs on.
const FUNC: &str = "func.func";
/// The anchor for ops of any kind.
const ANY: &str = "any";

/// A pass with the options that it runs with.
#[derive(Clone, Debug)]
struct Step {
    spec: &'static PassSpec,
    options: Options,
}

/// A pass, or a pipeline on inner ops.
#[derive(Clone, Debug)]
enum Item {
    Step(Step),
    Nested(Passes),
}

/// The options for completing the shardings of a module.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Completion {
    /// Whether to propagate through function calls, instead of a clone of the function for each.
    pub dedup_functions_fully: bool,
    /// The last user priority that takes part.
    pub up_to_priority: Option<i64>,
    /// Whether to keep the axes of inputs and outputs that do not divide their dims, and sub-axes,
    /// instead of trimming them.
    pub keep_non_divisible_on_io: bool,
    /// How conflicts between axes are resolved.
    pub strategy: Strategy,
    /// Whether to insert all reshards, as collectives.
    pub collectives: bool,
}

/// Passes to run in order on ops of one kind.
#[derive(Clone, Debug)]
struct Passes {
    anchor: &'static str,
    items: Vec<Item>,
}

/// The passes to run in order, for one version of Shardy.
#[derive(Clone, Debug)]
pub struct Pipeline {
    passes: Passes,
    shardy: Version,
}

impl Pipeline {
    /// Parses `builtin.module(...)` for version `shardy`. Spans in errors are into `text`.
    pub fn parse(text: &str, shardy: Version) -> Result<Self> {
        memory::ensure_for_text(text)?;
        parse::pipeline(text, shardy)
    }
    /// The pipeline of flags as `sdy_opt` takes them: `--sdy-propagation-pipeline`,
    /// `--sdy-basic-propagate=keep-sharding-rules=true`. Spans in errors are into the flags joined
    /// by single spaces.
    pub fn from_flags(flags: &[String], shardy: Version) -> Result<Self> {
        flags::pipeline(flags, shardy)
    }
    fn on_module(items: Vec<Item>, shardy: Version) -> Self {
        Self { passes: Passes { anchor: MODULE, items }, shardy }
    }
    /// The version of Shardy of the passes.
    pub fn shardy(&self) -> Version {
        self.shardy
    }
    /// The pipeline that completes the shardings of a module: `sdy-propagation-pipeline` with `options`.
    pub fn propagation(options: Completion, shardy: Version) -> Result<Self> {
        Ok(Self::on_module(pipeline_table::Expansion { shardy }.propagation(options)?, shardy))
    }
    /// The pipeline that completes the shardings of a module and inserts all reshards, without
    /// turning them into collectives.
    pub fn with_reshards(how: Completion, shardy: Version) -> Result<Self> {
        let mut pipeline = Self::propagation(Completion { collectives: true, ..how }, shardy)?;
        pipeline.passes.remove(pass_table::RESHARD_TO_COLLECTIVES.name);
        Ok(pipeline)
    }
    /// Completes the shardings of `program` as [`Pipeline::propagation`] does, without the passes
    /// after propagation, and returns what explains them.
    pub fn explain(
        how: Completion,
        program: &mut Program,
        context: &mut Context<'_>,
    ) -> Result<Explanation> {
        Self::before_propagation(how, program.shardy()).run(program, context)?;
        let expansion = pipeline_table::Expansion { shardy: program.shardy() };
        let options = propagate::with_user_priority(&expansion.user_priority(how)?)?;
        propagate_explained(program, context, &options)
    }
    /// Completes the shardings of `program` as [`Pipeline::propagation`] does, without the passes
    /// after propagation, and records the run, if replays support the program; see
    /// [`Recording::new`].
    pub fn record(
        how: Completion,
        mut program: Program,
        context: &mut Context<'_>,
    ) -> Result<Option<Recorded>> {
        Self::before_propagation(how, program.shardy()).run(&mut program, context)?;
        let expansion = pipeline_table::Expansion { shardy: program.shardy() };
        let options = propagate::with_user_priority(&expansion.user_priority(how)?)?;
        Recording::new(program, context, &options)
    }
    /// The passes before propagation of the pipeline that completes the shardings of a module.
    fn before_propagation(how: Completion, shardy: Version) -> Self {
        Self::on_module(
            pipeline_table::Expansion { shardy }.before_propagation(how.dedup_functions_fully),
            shardy,
        )
    }
    /// The passes after propagation of the pipeline that completes the shardings of a module.
    pub fn after_propagation(how: Completion, shardy: Version) -> Result<Self> {
        Ok(Self::on_module(pipeline_table::Expansion { shardy }.after_propagation(how)?, shardy))
    }
    /// The names of all passes and pipelines of a version of Shardy, sorted.
    pub fn pass_names(shardy: Version) -> Vec<&'static str> {
        let mut names: Vec<&str> = pass_table::passes_of(shardy).map(|pass| pass.name).collect();
        names.extend(pipeline_table::PIPELINES.iter().map(|pipeline| pipeline.name));
        names.sort_unstable();
        names
    }
    /// Runs all passes on `program`, and sets its version of Shardy to that of the passes. If a
    /// pass fails, or if the context verifies and the program is invalid after a pass, `program` is
    /// in an unknown state.
    pub fn run(&self, program: &mut Program, context: &mut Context<'_>) -> Result<()> {
        if self.passes.anchor == FUNC {
            let message = "a pipeline for func.func cannot run on a module";
            return Err(Diagnostic::new(Code::InvalidPipeline, message)
                .with_hint("write builtin.module(func.func(...))")
                .into());
        }
        memory::ensure_for_program(program.num_op_ids())?;
        if let Some(problem) = too_new_for(program, self.shardy) {
            return Err(problem.into());
        }
        program.follow(self.shardy);
        let total = self.passes.num_steps();
        let mut done = 0;
        self.passes.run_on_module(program, context, &mut done, total)?;
        write_stored(program);
        Ok(())
    }
}

impl Passes {
    /// Removes the pass called `name`.
    fn remove(&mut self, name: &str) {
        self.items.retain_mut(|item| match item {
            Item::Step(step) => step.spec.name != name,
            Item::Nested(inner) => {
                inner.remove(name);
                !inner.items.is_empty()
            }
        });
    }
    /// The number of passes.
    fn num_steps(&self) -> usize {
        let count = |item: &Item| match item {
            Item::Step(_) => 1,
            Item::Nested(inner) => inner.num_steps(),
        };
        self.items.iter().map(count).sum()
    }
    fn run_on_module(
        &self,
        program: &mut Program,
        context: &mut Context<'_>,
        done: &mut usize,
        total: usize,
    ) -> Result<()> {
        for item in &self.items {
            match item {
                Item::Step(step) => {
                    context.begin(step.spec.name, *done, total)?;
                    step.run_on_module(program, context)?;
                    step.verify(program, context)?;
                    *done += 1;
                }
                Item::Nested(inner) => {
                    // Passes do not run on nested modules; any other anchor is a function.
                    if inner.anchor != MODULE {
                        inner.run_on_functions(program, context, *done, total)?;
                    }
                    *done += inner.num_steps();
                }
            }
        }
        Ok(())
    }
    fn run_on_functions(
        &self,
        program: &mut Program,
        context: &mut Context<'_>,
        done: usize,
        total: usize,
    ) -> Result<()> {
        for (index, item) in self.items.iter().enumerate() {
            if let Item::Step(step) = item {
                context.begin(step.spec.name, done + index, total)?;
                step.run_on_functions(program, context)?;
                step.verify(program, context)?;
            }
        }
        Ok(())
    }
}

impl Step {
    /// Verifies the program after a pass, if the context asks for it.
    fn verify(&self, program: &Program, context: &Context<'_>) -> Result<()> {
        if !context.verifies_each {
            return Ok(());
        }
        let pass = self.spec.name;
        let mut problems = verify_after_pass(program);
        for problem in &mut problems {
            problem.hint = Some(format!("{pass} has left the program like this"));
        }
        Error::check(problems)
    }
    fn run_on_module(&self, program: &mut Program, context: &mut Context<'_>) -> Result<()> {
        match self.spec.run {
            Run::Module(run) | Run::Any(run) => run(program, context, &self.options),
            Run::Function(_) | Run::Functions(_) => Ok(()),
        }
    }
    /// Runs the pass on each function in order. Functions are isolated, so running all passes on
    /// one function and then on the next would give the same result.
    fn run_on_functions(&self, program: &mut Program, context: &mut Context<'_>) -> Result<()> {
        let ops = |program: &Program| -> Vec<OpId> {
            let functions = program.functions_in_order();
            functions.into_iter().map(|func| program.func_op(func)).collect()
        };
        match self.spec.run {
            Run::Function(run) => {
                let ops = ops(program);
                ops.into_iter().try_for_each(|op| run(program, context, op, &self.options))
            }
            Run::Functions(run) => {
                let ops = ops(program);
                run(program, context, &ops, &self.options)
            }
            Run::Any(run) => run(program, context, &self.options),
            Run::Module(_) => Ok(()),
        }
    }
}
