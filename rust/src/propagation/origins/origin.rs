//! Origins of axes, and their flows through ops.

use crate::attribute::EdgeValueRef;
use crate::axis::{AxisRef, SubAxis};
use crate::index::{AxisId, FuncId, OpId, StrId, ValueId};
use rustc_hash::FxHashMap;

/// Which records propagation keeps.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Settings {
    /// Origins: Shardy's `debug-sharding-origins`.
    pub sharding_origins: bool,
    /// Flows: Shardy's `debug-propagation-edge-sharding`.
    pub propagation_edges: bool,
}

impl Settings {
    /// Whether any record is kept.
    pub fn is_any(self) -> bool {
        self.sharding_origins || self.propagation_edges
    }
}

/// The user's sharding that an axis came from. Indices are those of arguments or results of the
/// function or manual computation; constraints and manual computations are numbered separately, in
/// the order of a post-order walk.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Origin {
    /// An argument of the function.
    Input(u32),
    /// A result of the function.
    Output(u32),
    /// An `sdy.sharding_constraint`.
    Constraint(u32),
    /// An in-sharding of an `sdy.manual_computation`.
    ManualInput {
        /// Which manual computation.
        id: u32,
        /// Which in-sharding.
        index: u32,
    },
    /// An out-sharding of an `sdy.manual_computation`.
    ManualOutput {
        /// Which manual computation.
        id: u32,
        /// Which out-sharding.
        index: u32,
    },
    /// An annotation of another op. The reference keeps no origin for it and prints an empty name.
    Unnamed,
}

impl std::fmt::Display for Origin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Input(index) => write!(f, "input: {index}"),
            Self::Output(index) => write!(f, "output: {index}"),
            Self::Constraint(id) => write!(f, "constraint_{id}"),
            Self::Unnamed => f.write_str(": 0"),
            Self::ManualInput { id, index } => write!(f, "mc_{id}_input: {index}"),
            Self::ManualOutput { id, index } => write!(f, "mc_{id}_output: {index}"),
        }
    }
}

/// An axis or sub-axis by name, so that meshes with the same axes share it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct NamedAxis {
    /// The name.
    pub name: StrId,
    /// Which part, or `None` for all of it.
    pub sub: Option<SubAxis>,
}

impl NamedAxis {
    /// Whether every part of `other` is in `self`.
    pub fn contains(self, other: Self) -> bool {
        let part = |axis: Self| AxisRef { axis: AxisId::new(0), sub: axis.sub };
        self.name == other.name && part(self).contains(part(other))
    }
}

/// One axis going from one operand or result of an op to another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Flow {
    /// The step.
    pub step: i64,
    /// The axis.
    pub axis: NamedAxis,
    /// The operand or result that had it. For a data-flow edge, operands are the sources of the
    /// edge.
    pub source: EdgeValueRef,
    /// The operand or result that got it.
    pub target: EdgeValueRef,
}

/// The record: origins of axes, and flows.
///
/// A value stands for all values that share its sharding; if there is a data-flow edge, it is the
/// result of the edge op.
#[derive(Clone, Debug, Default)]
pub struct Origins {
    /// Origins of the axes of values, in the order in which they were found.
    pub(super) values: FxHashMap<ValueId, Vec<(NamedAxis, Origin)>>,
    /// Flows through ops, in order.
    pub(super) ops: FxHashMap<OpId, Vec<Flow>>,
    /// Flows between returned values and results of functions. `operand-0` is the value and
    /// `result-0` the result, for every result.
    pub(super) func_results: FxHashMap<FuncId, Vec<Flow>>,
}

impl Origins {
    /// The origins of the axes of `value`.
    pub fn of_value(&self, value: ValueId) -> &[(NamedAxis, Origin)] {
        self.values.get(&value).map_or(&[], Vec::as_slice)
    }
    /// The origin of `axis` of `value`, or else of an axis that overlaps it, since axes are split
    /// and merged at reshapes.
    pub fn of_axis(&self, value: ValueId, axis: NamedAxis) -> Option<Origin> {
        let known = self.of_value(value);
        let exact = known.iter().find(|(other, _)| *other == axis);
        let related =
            |(other, _): &&(NamedAxis, Origin)| other.contains(axis) || axis.contains(*other);
        exact.or_else(|| known.iter().find(related)).map(|&(_, origin)| origin)
    }
    /// Flows through `op`.
    pub fn flows(&self, op: OpId) -> &[Flow] {
        self.ops.get(&op).map_or(&[], Vec::as_slice)
    }
    /// Flows between the values that `func` returns and the shardings of its results.
    pub fn func_result_flows(&self, func: FuncId) -> &[Flow] {
        self.func_results.get(&func).map_or(&[], Vec::as_slice)
    }
}
