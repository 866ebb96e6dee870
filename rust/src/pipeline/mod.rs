//! Textual pipelines, as MLIR's pass manager has them.
//!
//! `builtin.module(symbol-dce,func.func(sdy-drop-sharding-rules),canonicalize{enable-patterns=sdy-reshard})`
//! names an op to run on and passes in order; a pass may have options, and an op name in place of a
//! pass nests: what is inside runs on each such op. Names of pipelines stand for the passes that
//! they are made of.
//!
//! [`table`] has every pass, [`expand`] every pipeline.
//!
//! Source: MLIR's pass infrastructure, "Textual Pass Pipeline Specification".

mod display;
mod expand;
mod flags;
mod options;
mod parse;
mod table;

pub use options::{OptionKind, OptionSpec, Options};
pub use table::{PassSpec, Run};

use crate::context::Context;
use crate::error::{Code, Diagnostic, Result};
use crate::index::OpId;
use crate::ir::Program;

/// The op that a pipeline for modules runs on.
const MODULE: &str = "builtin.module";
/// The op that a pipeline for functions runs on.
const FUNC: &str = "func.func";
/// Stands for whatever op there is.
const ANY: &str = "any";

/// A pass with the options that it runs with.
#[derive(Clone, Debug)]
struct Step {
    spec: &'static PassSpec,
    options: Options,
}

/// A pass, or passes on inner ops.
#[derive(Clone, Debug)]
enum Item {
    Step(Step),
    Nested(Pipeline),
}

/// Passes to run in order on ops of one kind.
#[derive(Clone, Debug)]
pub struct Pipeline {
    anchor: &'static str,
    items: Vec<Item>,
}

impl Pipeline {
    /// Parses `builtin.module(...)`. Spans in errors are into `text`.
    pub fn parse(text: &str) -> Result<Self> {
        parse::pipeline(text)
    }
    /// The pipeline of flags as `sdy_opt` takes them: `--sdy-propagation-pipeline`,
    /// `--sdy-basic-propagate=keep-sharding-rules=true`. Spans in errors are into the flags joined by
    /// single spaces.
    pub fn from_flags(flags: &[String]) -> Result<Self> {
        flags::pipeline(flags)
    }
    /// The pipeline that completes the shardings of a module: `sdy-propagation-pipeline`.
    /// With `up_to_priority` only user priorities up to that one take part; with
    /// `keep_sub_axes_on_io` inputs and outputs keep sub-axes, which are trimmed otherwise.
    pub fn propagation(
        dedup_functions_fully: bool,
        up_to_priority: Option<i64>,
        keep_sub_axes_on_io: bool,
    ) -> Self {
        let mut items = expand::propagation(dedup_functions_fully);
        for item in &mut items {
            if let (Item::Step(step), Some(priority)) = (&mut *item, up_to_priority) {
                step.options.set_number("up-to-priority", priority);
            }
        }
        items.retain(|item| {
            !(keep_sub_axes_on_io
                && matches!(item, Item::Step(step) if step.spec.name == expand::TRIM_SUB_AXES))
        });
        Self { anchor: MODULE, items }
    }
    /// The names of all passes and pipelines, sorted.
    pub fn pass_names() -> Vec<&'static str> {
        let mut names: Vec<&str> = table::PASSES.iter().map(|pass| pass.name).collect();
        names.extend(expand::PIPELINES.iter().map(|pipeline| pipeline.name));
        names.sort_unstable();
        names
    }
    /// Runs all passes on `program`, which is in an unknown state if one fails.
    pub fn run(&self, program: &mut Program, context: &mut Context<'_>) -> Result<()> {
        if self.anchor == FUNC {
            let message = "a pipeline for func.func cannot run on a module";
            return Err(Diagnostic::new(Code::InvalidPipeline, message)
                .with_hint("write builtin.module(func.func(...))")
                .into());
        }
        let total = self.num_steps();
        let mut done = 0;
        self.run_on_module(program, context, &mut done, total)
    }
    /// How many passes there are.
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
                    context.progress(step.spec.name, *done, total)?;
                    step.run_on_module(program, context)?;
                    *done += 1;
                }
                Item::Nested(inner) => {
                    // Modules in modules are not looked into; anything else is a function.
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
                context.progress(step.spec.name, done + index, total)?;
                step.run_on_functions(program, context)?;
            }
        }
        Ok(())
    }
}

impl Step {
    fn run_on_module(&self, program: &mut Program, context: &mut Context<'_>) -> Result<()> {
        match self.spec.run {
            Run::Module(run) | Run::Any(run) => run(program, context, &self.options),
            Run::Function(_) => Ok(()),
        }
    }
    /// Runs the pass on each function in order. Functions are isolated, so all passes on one and then
    /// all on the next would give the same.
    fn run_on_functions(&self, program: &mut Program, context: &mut Context<'_>) -> Result<()> {
        match self.spec.run {
            Run::Function(run) => {
                let functions = program.functions_in_order();
                let ops: Vec<OpId> =
                    functions.into_iter().map(|func| program.functions[func].op).collect();
                ops.into_iter().try_for_each(|op| run(program, context, op, &self.options))
            }
            Run::Any(run) => run(program, context, &self.options),
            Run::Module(_) => Ok(()),
        }
    }
}
