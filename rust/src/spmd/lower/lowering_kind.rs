//! The kind of lowering of each kind of op: by its sharding rule, as control flow, as a reshard, as a constant, or refused.

use super::super::legalize::is_legalized;
use crate::ir::OpKind;
use crate::rules::legalized_families;
use crate::rules::table::Family;

/// How ops of a kind are lowered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LoweringKind {
    /// Operands are resharded to the placements that the enclosing op expects.
    Return,
    /// Operands and results get the placements of the callee's arguments and results.
    Call,
    /// Arguments and returned values of regions get the placements of operands and results.
    Branches,
    /// Operands keep their placements.
    Barrier,
    /// The body is local along the manual axes already, and is inlined.
    Manual,
    /// The op is a reshard of its operand.
    Reshard,
    /// The op is an annotation, and is erased.
    Drop,
    /// Each device has its slice of the elements.
    Constant,
    /// Each device starts at the offset of its shard.
    Iota,
    /// The op is gone after export.
    NotExported,
    /// By the sharding rule of the op, or on replicated operands if it has none.
    OpWithRule,
}

impl LoweringKind {
    /// How ops of `kind` are lowered.
    #[inline]
    pub fn of(kind: OpKind) -> Self {
        match kind {
            OpKind::FuncReturn | OpKind::StablehloReturn | OpKind::SdyReturn => Self::Return,
            OpKind::Call => Self::Call,
            OpKind::While | OpKind::Case | OpKind::If => Self::Branches,
            OpKind::OptimizationBarrier => Self::Barrier,
            OpKind::ManualComputation => Self::Manual,
            OpKind::Reshard
            | OpKind::ShardingConstraint
            | OpKind::PropagationBarrier
            | OpKind::DataFlowEdge => Self::Reshard,
            kind if kind.is_collective() => Self::Reshard,
            OpKind::ShardingGroup | OpKind::Mesh => Self::Drop,
            OpKind::Constant | OpKind::SdyConstant => Self::Constant,
            OpKind::Iota => Self::Iota,
            OpKind::NamedComputation | OpKind::FuncDataFlowEdge => Self::NotExported,
            _ => Self::OpWithRule,
        }
    }
    /// How ops called `name` are lowered, in a word or two; `None` if they are always refused.
    pub fn name_of(name: &str) -> Option<&'static str> {
        match Self::of(OpKind::from_name(name)) {
            Self::Return => Some("return"),
            Self::Call => Some("call"),
            Self::Branches => Some("branches"),
            Self::Barrier => Some("barrier"),
            Self::Manual => Some("manual"),
            Self::Reshard => Some("reshard"),
            Self::Drop => Some("dropped"),
            Self::Constant => Some("constant"),
            Self::Iota => Some("iota"),
            Self::NotExported => None,
            Self::OpWithRule if refused(name).is_some() => None,
            Self::OpWithRule if Family::of(name).is_some() => Some("by rule"),
            Self::OpWithRule if !is_computed_whole(name) => None,
            Self::OpWithRule if has_legalized_rule(name) => Some("by rule"),
            Self::OpWithRule if name == "stablehlo.composite" || is_legalized(name) => {
                Some("legalized")
            }
            Self::OpWithRule => Some("whole"),
        }
    }
}

/// Whether ops called `name` have the sharding rule of the op that XLA legalizes them to.
fn has_legalized_rule(name: &str) -> bool {
    legalized_families().iter().any(|family| family.ops.contains(&name))
}

/// The error message and the hint for ops called `name`, if these are always refused.
pub(super) fn refused(name: &str) -> Option<(&'static str, &'static str)> {
    match name {
        "stablehlo.infeed" | "stablehlo.outfeed" | "stablehlo.send" | "stablehlo.recv" => {
            Some(("it talks to the host, once in the source program", "take it out of the program"))
        }
        _ if name.starts_with("mpmd.") => Some((
            "it is part of a pipeline, which has a program of its own for each mesh",
            "partition the computation of one mesh",
        )),
        _ => None,
    }
}

/// Whether ops called `name`, if they have no sharding rule, are computed on replicated operands: those with known semantics.
pub(super) fn is_computed_whole(name: &str) -> bool {
    name.starts_with("stablehlo.") || name.starts_with("chlo.")
}
