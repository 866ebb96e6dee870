//! The part of a chip that computes an op, which determines how fast it runs.

use super::contract;
use crate::index::OpId;
use crate::ir::{OpKind, Program};
use crate::rules::SignatureView;
use crate::work::ops::contract::{product, Groups, Product};

/// The lines along which an op sorts or transforms an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Lines {
    /// Their number.
    pub count: u128,
    /// The elements of each.
    pub length: u128,
    /// The dims that a transform works along, one after the other; the arrays that a sort moves; 1 for columns.
    pub times: u128,
}

impl Lines {
    /// Those of a `sort`.
    fn of_sort(view: &SignatureView<'_>) -> Option<Self> {
        let shape = view.operand(0)?;
        let last = shape.len().checked_sub(1)?;
        let length = shape.get(view.dim("dimension").unwrap_or(last))?;
        let length = u128::from(length.unsigned_abs()).max(1);
        let count = product(shape) / length;
        Some(Self { count, length, times: view.num_operands() as u128 })
    }
    /// Those of a `cholesky` or a `triangular_solve`: the columns of square matrices.
    fn of_columns(view: &SignatureView<'_>) -> Option<Self> {
        let shape = view.operand(0)?;
        let length = u128::from(shape.last()?.unsigned_abs()).max(1);
        Some(Self { count: product(shape) / length / length, length, times: 1 })
    }
    /// Those of an `fft`, by its longest dim.
    fn of_transform(view: &SignatureView<'_>) -> Option<Self> {
        let lengths = view.dims("fft_length")?;
        let length = lengths.iter().copied().max()?.max(1) as u128;
        let elements = product(view.operand(0)?).max(product(view.result(0)?));
        Some(Self { count: elements / length, length, times: lengths.len() as u128 })
    }
}

/// The unit of a chip that computes an op.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Unit {
    /// The vector units: elementwise ops, reductions, and data movement in order.
    #[default]
    Vector,
    /// The vector units, on data that is read or written out of order: gathers, scatters, transposes.
    Scattered,
    /// The vector units, where a kernel holds whole rows between a reduction of them and what reads its result.
    Rows,
    /// The vector units, over windows that overlap.
    Windows,
    /// The vector units, one of these columns after the other.
    Columns(Lines),
    /// The vector units, in many passes over these lines.
    Sort(Lines),
    /// The vector units, in one pass over these lines for each dim or in several.
    Transform(Lines),
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
            Self::Rows => "rows",
            Self::Windows => "windows",
            Self::Columns(_) => "columns",
            Self::Sort(_) => "sort",
            Self::Transform(_) => "transform",
            Self::Product(_) => "product",
            Self::Convolution(_) => "convolution",
            Self::Grouped(_) => "grouped",
            Self::GroupedContraction(_) => "grouped-contraction",
            Self::Kernel => "kernel",
        }
    }
    /// Whether it is a product that compilers make kernels of, and no kernel of a library.
    pub const fn is_product(self) -> bool {
        matches!(self, Self::Product(_) | Self::Convolution(_))
    }
    /// The sizes of the dot that the matrix unit computes; `None` for other units.
    pub const fn product(self) -> Option<Product> {
        match self {
            Self::Product(sizes)
            | Self::Convolution(sizes)
            | Self::Grouped(sizes)
            | Self::GroupedContraction(sizes) => Some(sizes),
            Self::Vector
            | Self::Scattered
            | Self::Rows
            | Self::Windows
            | Self::Columns(_)
            | Self::Sort(_)
            | Self::Transform(_)
            | Self::Kernel => None,
        }
    }
    /// What its time depends on: the sizes of [`Self::product`], or the number and length of lines, and how often.
    pub fn sizes(self) -> Option<[u128; 4]> {
        match self {
            Self::Columns(lines) | Self::Sort(lines) | Self::Transform(lines) => {
                Some([lines.count, lines.length, lines.times, 1])
            }
            _ => self.product().map(Product::as_array),
        }
    }
    /// Whether the unit of `op` depends on its shapes.
    pub fn reads_shapes(program: &Program, op: OpId) -> bool {
        matches!(
            program.op_name(op),
            "stablehlo.dot_general"
                | "stablehlo.convolution"
                | "chlo.ragged_dot"
                | "stablehlo.cholesky"
                | "stablehlo.triangular_solve"
                | "stablehlo.sort"
                | "stablehlo.fft"
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
            "stablehlo.cholesky" | "stablehlo.triangular_solve" => {
                view.and_then(Lines::of_columns).map_or(Self::Vector, Self::Columns)
            }
            "stablehlo.reduce_window" => Self::Windows,
            "stablehlo.sort" => view.and_then(Lines::of_sort).map_or(Self::Vector, Self::Sort),
            "stablehlo.fft" => {
                view.and_then(Lines::of_transform).map_or(Self::Vector, Self::Transform)
            }
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
