//! The index maps of ops that move elements: which elements of a dim of the operand each element of the result reads.

use crate::index::OpId;
use crate::ir::{int_array, OpKind, Program};
use crate::mlir::{op_attribute, op_attributes};
use crate::spmd::lower::op_with_rule::OpWithRule;
use crate::spmd::movement::Windows;
use crate::stablehlo::dims::ConvDims;
use crate::stablehlo::windows::{WindowDim, WindowLists, CONVOLUTION, REDUCTION, SELECTION};

/// Along a dim, element `o` of the *partner* dim reads the `reach` positions from `o * stride - low` on; element `i` of the operand
/// is at position `i * dilation`. The partner is the dim of the result, or of the kernel of a convolution, that has the operand
/// dim's factor; if it is reversed, elements are counted from its end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::spmd::lower) struct Geometry {
    pub stride: i64,
    pub low: i64,
    pub reach: i64,
    pub dilation: i64,
    pub is_reversed: bool,
}

impl Geometry {
    /// The identity: element `o` reads element `o`.
    pub(in crate::spmd::lower) const SAME: Self =
        Self { stride: 1, low: 0, reach: 1, dilation: 1, is_reversed: false };

    /// The windows of a dim of `elements` that `count` shards of `shard` elements each need; the partner dim has `total`.
    pub(in crate::spmd::lower) fn windows(
        &self,
        elements: i64,
        (total, count, shard): (i64, i64, i64),
    ) -> Windows {
        let start = |number: i64| {
            let first = number * shard;
            let first = if self.is_reversed { total - first - shard } else { first };
            first * self.stride - self.low
        };
        Windows {
            elements,
            dilation: self.dilation,
            starts: (0..count).map(start).collect(),
            size: (shard - 1) * self.stride + self.reach,
            end: (total - 1) * self.stride - self.low + self.reach,
            dilates: false,
        }
    }
}

/// The geometries of the dims of the first operand of an op. Its attributes are read once.
pub(in crate::spmd::lower) struct Geometries<'a> {
    work: &'a OpWithRule<'a>,
    moves: Moves,
}

/// The index maps of all dims, by the attributes of an op.
enum Moves {
    Slice { strides: Vec<i64>, starts: Vec<i64> },
    Pad { low: Vec<i64>, interior: Vec<i64> },
    DynamicSlice,
    Windows(WindowLists),
    Convolution { dims: ConvDims, windows: WindowLists },
    Reverse { dims: Vec<i64> },
    None,
}

impl Moves {
    fn read(program: &Program, op: OpId) -> Self {
        let list = |name| ints(program, op, name);
        match program.kind(op) {
            OpKind::Slice => {
                Self::Slice { strides: list("strides"), starts: list("start_indices") }
            }
            OpKind::Pad => {
                Self::Pad { low: list("edge_padding_low"), interior: list("interior_padding") }
            }
            OpKind::DynamicSlice => Self::DynamicSlice,
            OpKind::ReduceWindow => window_lists(program, op).map_or(Self::None, Self::Windows),
            OpKind::Convolution => match (conv_dims(program, op), window_lists(program, op)) {
                (Some(dims), Some(windows)) => Self::Convolution { dims, windows },
                _ => Self::None,
            },
            OpKind::Other if program.op_name(op) == "stablehlo.reverse" => {
                let mut dims = list("dimensions");
                dims.sort_unstable();
                Self::Reverse { dims }
            }
            _ => Self::None,
        }
    }
}

impl<'a> Geometries<'a> {
    /// The geometries of `work`.
    pub(in crate::spmd::lower) fn of(program: &Program, work: &'a OpWithRule<'a>) -> Self {
        Self { work, moves: Moves::read(program, work.op) }
    }
    /// The geometry of dim `dim` of the first operand; `None` if the op does not move elements in this way.
    pub(in crate::spmd::lower) fn along(&self, dim: usize) -> Option<Geometry> {
        let at = |list: &[i64], or: i64| list.get(dim).copied().unwrap_or(or);
        match &self.moves {
            Moves::Slice { strides, starts } => {
                Some(Geometry { stride: at(strides, 1), low: -at(starts, 0), ..Geometry::SAME })
            }
            Moves::Pad { low, interior } => {
                Some(Geometry { low: at(low, 0), dilation: at(interior, 0) + 1, ..Geometry::SAME })
            }
            Moves::DynamicSlice => {
                let start = *self.work.facts.get(dim)?;
                (start >= 0).then_some(Geometry { low: -start, ..Geometry::SAME })
            }
            Moves::Windows(windows) => {
                let window = windows.dim(dim)?;
                Some(Geometry {
                    stride: window.stride,
                    low: window.padding[0],
                    reach: (window.size? - 1) * window.window_dilation + 1,
                    dilation: window.base_dilation,
                    is_reversed: false,
                })
            }
            Moves::Convolution { dims, windows } => of_convolution(self.work, dims, windows, dim),
            Moves::Reverse { dims } => {
                let is_reversed = dims.binary_search(&(dim as i64)).is_ok();
                Some(Geometry { is_reversed, ..Geometry::SAME })
            }
            Moves::None => None,
        }
    }
}

/// The dimension numbers of `op`.
pub(in crate::spmd::lower) fn conv_dims(program: &Program, op: OpId) -> Option<ConvDims> {
    if program.kind(op) != OpKind::Convolution {
        return None;
    }
    ConvDims::read(&op_attribute(program, op, "dimension_numbers")?)
}

/// The geometry along dim `dim` of the input; its partner is the dim of the kernel, if that is sharded with the input.
fn of_convolution(
    work: &OpWithRule,
    dims: &ConvDims,
    windows: &WindowLists,
    dim: usize,
) -> Option<Geometry> {
    let at = dims.input_spatial.iter().position(|&spatial| spatial == dim)?;
    let window = windows.dim(at)?;
    let (stride, inside, low) = (window.stride, window.window_dilation, window.padding[0]);
    let kernel = *dims.kernel_spatial.get(at)?;
    let size = |tensor: usize, dim: usize| work.shapes.get(tensor)?.get(dim).copied();
    let (dilation, reach) = (window.base_dilation, (size(1, kernel)? - 1) * inside + 1);
    if work.rule.operands[0].dims[dim] != work.rule.operands[1].dims[kernel] {
        return Some(Geometry { stride, low, reach, dilation, is_reversed: false });
    }
    let is_reversed = window.is_reversed;
    let windows = size(2, *dims.output_spatial.get(at)?)?;
    let reach = (windows - 1) * stride + 1;
    Some(Geometry { stride: inside, low, reach, dilation, is_reversed })
}

/// The windows of `op`: a windowed reduction, a `select_and_scatter` or a convolution.
pub(in crate::spmd::lower) fn window_lists(program: &Program, op: OpId) -> Option<WindowLists> {
    let dilations = match program.kind(op) {
        OpKind::Convolution => CONVOLUTION,
        OpKind::ReduceWindow => REDUCTION,
        _ => SELECTION,
    };
    let attributes = op_attributes(program, op);
    let value =
        |name: &str| attributes.iter().find(|(own, _)| *own == name).map(|(_, value)| value);
    WindowLists::read(value, dilations)
}

/// The windows along the first `rank` dims of `op`, which was verified.
pub(in crate::spmd::lower) fn window_dims(
    program: &Program,
    op: OpId,
    rank: usize,
) -> Vec<WindowDim> {
    let lists = window_lists(program, op).unwrap_or_default();
    (0..rank).map_while(|dim| lists.dim(dim)).collect()
}

/// The array attribute with one number for each window.
pub(in crate::spmd::lower) fn array_of(
    windows: &[WindowDim],
    number: fn(&WindowDim) -> i64,
) -> String {
    int_array(&windows.iter().map(number).collect::<Vec<_>>())
}

/// The integers of attribute `name` of `op`; empty if it has no such attribute.
pub(in crate::spmd::lower) fn ints(program: &Program, op: OpId, name: &str) -> Vec<i64> {
    op_attribute(program, op, name).and_then(|value| value.as_ints()).unwrap_or_default()
}
