//! The part of a chip that computes an op, which determines how fast it runs.

use super::contract;
use crate::index::OpId;
use crate::ir::{OpKind, Program};
use crate::rules::SignatureView;
use crate::work::ops::contract::{Groups, Product};

/// The unit of a chip that computes an op.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Unit {
    /// The vector units: elementwise ops, reductions, and data movement in order.
    #[default]
    Vector,
    /// The vector units, on data that is read or written out of order: gathers, scatters, transposes.
    Scattered,
    /// The vector units, in many passes over the data.
    Sort,
    /// The matrix unit, for a dot of these sizes.
    Product(Product),
    /// The matrix unit, for a convolution that is a dot of these sizes.
    Convolution(Product),
    /// The matrix unit, for a grouped product of these sizes, each group with rows of its own.
    Grouped(Product),
    /// The matrix unit, for a grouped product of these sizes, each group with a part of the contracting dim.
    GroupedContraction(Product),
    /// A custom call.
    Kernel,
}

impl Unit {
    /// The unit in reports.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Vector => "vector",
            Self::Scattered => "scattered",
            Self::Sort => "sort",
            Self::Product(_) => "product",
            Self::Convolution(_) => "convolution",
            Self::Grouped(_) => "grouped",
            Self::GroupedContraction(_) => "grouped-contraction",
            Self::Kernel => "kernel",
        }
    }
    /// The sizes of the dot that the matrix unit computes; `None` for other units.
    pub const fn product(self) -> Option<Product> {
        match self {
            Self::Product(sizes)
            | Self::Convolution(sizes)
            | Self::Grouped(sizes)
            | Self::GroupedContraction(sizes) => Some(sizes),
            Self::Vector | Self::Scattered | Self::Sort | Self::Kernel => None,
        }
    }
    /// Whether the unit of `op` depends on its shapes.
    pub fn reads_shapes(program: &Program, op: OpId) -> bool {
        matches!(
            program.op_name(op),
            "stablehlo.dot_general" | "stablehlo.convolution" | "chlo.ragged_dot"
        )
    }
    /// The unit of `op`; `view` has its signature and local shapes, if they are known.
    pub fn of(program: &Program, op: OpId, view: Option<&SignatureView<'_>>) -> Self {
        let of = |unit: fn(Product) -> Self, read: fn(&SignatureView<'_>) -> Option<Product>| {
            view.and_then(read).map_or(Self::Vector, unit)
        };
        match program.op_name(op) {
            "stablehlo.dot_general" => of(Self::Product, contract::dot_sizes),
            "stablehlo.convolution" => of(Self::Convolution, contract::convolution_sizes),
            "chlo.ragged_dot" => match view.and_then(contract::ragged_sizes) {
                Some((sizes, Groups::Batch)) => Self::Product(sizes),
                Some((sizes, Groups::Rows)) => Self::Grouped(sizes),
                Some((sizes, Groups::Contraction)) => Self::GroupedContraction(sizes),
                None => Self::Vector,
            },
            "stablehlo.sort" => Self::Sort,
            "stablehlo.gather"
            | "stablehlo.scatter"
            | "stablehlo.transpose"
            | "stablehlo.reverse"
            | "stablehlo.select_and_scatter" => Self::Scattered,
            _ if program.kind(op) == OpKind::CustomCall => Self::Kernel,
            _ => Self::Vector,
        }
    }
}
