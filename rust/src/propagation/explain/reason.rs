//! The reasons why an axis is not on a dim, and the places that they name.

use super::steps::AxisName;
use crate::index::OpId;
use crate::propagation::observe::Slot;

/// Why an axis is not there.
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
    /// What has the axis is a factor of the op that no dim of the tensor has.
    NoFactor,
    /// What won propagates at an earlier user priority.
    Priority,
    /// What won propagates in an earlier op-priority step.
    OpPriority,
    /// The factor does not divide, or has another one within it.
    NonDivisible,
    /// The axis is manual in the computation, or would stand before one that is.
    Manual,
    /// Other axes are on the dim, or on one that is the same factor.
    Conflict,
    /// An op next to it, one of whose tensors has the axis, has no sharding rule.
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
    /// The dim at which the axis stopped: the one asked for, or one on the way there.
    pub at: Place,
    /// The op that does not pass it on; `None` where the tensor itself is the reason.
    pub op: Option<OpId>,
    /// What won instead: a dim, and the axes that it has.
    pub instead: Option<(Place, Vec<AxisName>)>,
}
