//! The part of a chip that computes an op, which determines how fast it runs.

use super::contract;
use crate::index::OpId;
use crate::ir::{OpKind, Program};
use crate::rules::SignatureView;
use crate::work::ops::contract::Product;

/// The unit of a chip that computes an op.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Unit {
    /// The units for vectors: elementwise ops, reductions, and what moves data in order.
    #[default]
    Vector,
    /// As above, on data that is read or written out of order: gathers, scatters, transposes, sorts.
    Scattered,
    /// The matrix unit, for a product of these sizes.
    Product(Product),
    /// A custom call.
    Kernel,
}

impl Unit {
    /// The unit in reports.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Vector => "vector",
            Self::Scattered => "scattered",
            Self::Product(_) => "product",
            Self::Kernel => "kernel",
        }
    }
    /// Whether what computes `op` depends on its shapes.
    pub fn reads_shapes(program: &Program, op: OpId) -> bool {
        matches!(
            program.op_name(op),
            "stablehlo.dot_general" | "stablehlo.convolution" | "chlo.ragged_dot"
        )
    }
    /// What computes `op`; `view` are its signature and local shapes, where they are known.
    pub fn of(program: &Program, op: OpId, view: Option<&SignatureView<'_>>) -> Self {
        let product = |read: fn(&SignatureView<'_>) -> Option<Product>| {
            view.and_then(read).map_or(Self::Vector, Self::Product)
        };
        match program.op_name(op) {
            "stablehlo.dot_general" => product(contract::dot_sizes),
            "stablehlo.convolution" => product(contract::convolution_sizes),
            "chlo.ragged_dot" => product(contract::ragged_sizes),
            "stablehlo.gather"
            | "stablehlo.scatter"
            | "stablehlo.sort"
            | "stablehlo.transpose"
            | "stablehlo.reverse"
            | "stablehlo.select_and_scatter" => Self::Scattered,
            _ if program.kind(op) == OpKind::CustomCall => Self::Kernel,
            _ => Self::Vector,
        }
    }
}
