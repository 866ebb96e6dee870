//! The reasons why an axis is not on a dim, and the places that they name.

use super::steps::AxisName;
use crate::index::OpId;
use crate::propagation::observe::Slot;

/// The reason why an axis is not on a dim.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Code {
    /// The axis, or a part of it, is on another dim of the tensor.
    Taken,
    /// The axis, or a part of it, is kept free on the tensor, as a replicated or unreduced axis.
    Replicated,
    /// The dim is closed.
    Closed,
    /// The op's rule blocks propagation along the factor.
    Blocked,
    /// The op propagates in the other direction only.
    Direction,
    /// The mesh of the tensor has no such axis, or the tensors of the op are over different meshes.
    OtherMesh,
    /// Another factor of the op has the axis.
    OtherFactor,
    /// The dim with the axis has a factor that no dim of the tensor has.
    NoFactor,
    /// The axes that won propagate at an earlier user priority.
    Priority,
    /// The axes that won propagate in an earlier op-priority step.
    OpPriority,
    /// The number of shards does not divide the size of the factor, or a minor factor of the dim is
    /// sharded already.
    NonDivisible,
    /// The axis is manual in the computation, or would be major to a manual axis.
    Manual,
    /// The dim, or a dim with the same factor, has other axes.
    Conflict,
    /// An op that defines or uses the tensor has no sharding rule; another tensor of that op has
    /// the axis.
    NoRule,
    /// No dim that it could have come from has the axis.
    NeverArrived,
}

impl Code {
    /// All codes.
    pub const ALL: [Self; 15] = [
        Self::Taken,
        Self::Replicated,
        Self::Closed,
        Self::Blocked,
        Self::Direction,
        Self::OtherMesh,
        Self::OtherFactor,
        Self::NoFactor,
        Self::Priority,
        Self::OpPriority,
        Self::NonDivisible,
        Self::Manual,
        Self::Conflict,
        Self::NoRule,
        Self::NeverArrived,
    ];
    /// The name in records.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Taken => "taken",
            Self::Replicated => "replicated",
            Self::Closed => "closed",
            Self::Blocked => "blocked",
            Self::Direction => "direction",
            Self::OtherMesh => "other-mesh",
            Self::OtherFactor => "other-factor",
            Self::NoFactor => "no-factor",
            Self::Priority => "priority",
            Self::OpPriority => "op-priority",
            Self::NonDivisible => "non-divisible",
            Self::Manual => "manual",
            Self::Conflict => "conflict",
            Self::NoRule => "no-rule",
            Self::NeverArrived => "never-arrived",
        }
    }
}

/// A dim of a tensor.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Place {
    /// The tensor.
    pub slot: Slot,
    /// The dim.
    pub dim: usize,
}

/// Why an axis is not on a dim.
#[derive(Clone, Debug)]
pub struct Absence {
    /// The reason.
    pub code: Code,
    /// The dim at which the axis stopped: the one in question, or one on the way there.
    pub at: Place,
    /// The op that does not propagate it; `None` if the tensor itself is the reason.
    pub op: Option<OpId>,
    /// A dim that won, and its axes.
    pub instead: Option<(Place, Vec<AxisName>)>,
}
