//! Properties of ops that follow from the op's name, such as whether it is expensive to recompute.

use crate::index::{Id, OpId};
use crate::ir::Program;
use crate::work::cached::Works;
use crate::work::ops::Measure;

/// Properties of an op that follow from its name.
#[derive(Clone, Copy)]
#[allow(clippy::struct_excessive_bools)] // Each is asked for by itself.
pub struct Named {
    /// It is a transpose or a broadcast.
    pub spreads: bool,
    /// It is a concatenation.
    pub joins: bool,
    /// It is a gather.
    pub is_gather: bool,
    /// It is an all-reduce or a reduce-scatter.
    pub reduces: bool,
    /// It is a select.
    pub is_select: bool,
    /// It is a broadcast or an iota, which reads next to nothing.
    pub is_of_nothing: bool,
    /// A library reduction can fuse it.
    pub is_known_to_library: bool,
    /// It converts elements to another type.
    pub converts: bool,
    /// The element types for which XLA does not duplicate it into each consumer.
    pub expense: Expense,
}

/// The element types for which XLA does not duplicate an op into each consumer, as it is expensive.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Expense {
    /// Of none.
    Never,
    /// Of complex numbers.
    OfComplex,
    /// A division, unless it becomes a multiplication with the reciprocal.
    Division,
    /// A remainder: of integers, unless the divisor is constant.
    Remainder,
    /// Of all.
    Always,
}

/// The properties of the ops of a program that follow from their names.
pub struct Names(Vec<Option<Named>>);

impl Names {
    /// Of `program`, none of which were asked for yet.
    pub fn new(program: &Program) -> Self {
        Self(vec![None; program.strings().len()])
    }
    /// The properties of `op` that follow from its name.
    #[inline]
    pub fn of(&mut self, program: &Program, works: &Works<'_>, op: OpId) -> Named {
        let known = &mut self.0[program.op_name_id(op).index()];
        *known.get_or_insert_with(|| named(program.op_name(op), works, op))
    }
}

fn named(name: &str, works: &Works<'_>, op: OpId) -> Named {
    let expense = match name {
        "stablehlo.abs" | "stablehlo.cosine" | "stablehlo.sign" | "stablehlo.sine"
        | "stablehlo.tan" => Expense::OfComplex,
        "stablehlo.divide" => Expense::Division,
        "stablehlo.remainder" => Expense::Remainder,
        "stablehlo.gather" | "stablehlo.map" => Expense::Always,
        _ => {
            let measure = works.family(op).map(|family| &family.measure);
            match measure {
                Some(Measure::PerElement(_, 1..)) => Expense::Always,
                _ => Expense::Never,
            }
        }
    };
    Named {
        spreads: matches!(name, "stablehlo.transpose" | "stablehlo.broadcast_in_dim"),
        joins: name == "stablehlo.concatenate",
        is_gather: name == "stablehlo.gather",
        reduces: matches!(name, "stablehlo.all_reduce" | "stablehlo.reduce_scatter"),
        is_select: name == "stablehlo.select",
        is_of_nothing: matches!(name, "stablehlo.broadcast_in_dim" | "stablehlo.iota"),
        is_known_to_library: is_known_to_library(name),
        converts: name == "stablehlo.convert",
        expense,
    }
}

/// Whether a library reduction can fuse the op of this name.
fn is_known_to_library(name: &str) -> bool {
    let name = if name == "chlo.square" { "stablehlo.multiply" } else { name };
    matches!(
        name.strip_prefix("stablehlo.").unwrap_or_default(),
        "abs"
            | "add"
            | "broadcast_in_dim"
            | "cbrt"
            | "ceil"
            | "constant"
            | "convert"
            | "cosine"
            | "divide"
            | "exponential"
            | "floor"
            | "log"
            | "logistic"
            | "maximum"
            | "minimum"
            | "multiply"
            | "negate"
            | "power"
            | "reshape"
            | "round_nearest_even"
            | "rsqrt"
            | "sign"
            | "sine"
            | "sqrt"
            | "subtract"
            | "tanh"
    )
}
