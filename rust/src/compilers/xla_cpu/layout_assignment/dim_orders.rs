//! The dimension orders (layouts) in which ops read their operands.

use crate::compilers::xla_cpu::by_signature::BySignature;
use crate::index::{OpId, SignatureId};
use crate::ir::Program;
use crate::mlir::AttrValue;
use crate::rules::{Shapes, SignatureView};
use crate::stablehlo::dims::{ConvDims, DotDims};

/// The order in which dims are read, major to minor.
pub type DimOrder = Box<[usize]>;

/// The dims of an op that determine the layouts of its operands.
pub enum Reader {
    /// A dot.
    Dot(DotDims),
    /// A convolution, its `batch_group_count`, and whether its input is dilated.
    Convolution {
        /// Its dims.
        dims: ConvDims,
        /// The `batch_group_count`.
        groups: u128,
        /// Whether some `lhs_dilation` is larger than one.
        has_holes: bool,
    },
    /// An all-gather along a dim.
    Gather(usize),
    /// A transpose, by its permutation.
    Transpose(Box<[usize]>),
    /// A broadcast, by its `broadcast_dimensions`.
    Broadcast(Box<[usize]>),
    /// A concatenation along a dim.
    Concatenation(usize),
    /// A reduction over dims.
    Reduction(Box<[usize]>),
}

/// How an op reads an operand.
pub enum Reading {
    /// As it is.
    AsIs,
    /// As a batch of matrices, by a reshape that moves no elements.
    Reshaped,
    /// Transposed to this order of dims.
    Moved(DimOrder),
}

/// The layouts in which ops read their operands, by signature.
pub type Readers = BySignature<Option<Reader>>;

impl Reader {
    /// How the op reads operand `index`, which has `sizes`; `has_strides`: whether dots read matrices with any row and column
    /// strides.
    pub fn reads(&self, index: usize, sizes: &[i64], has_strides: bool) -> Reading {
        let (order, as_is): (Option<DimOrder>, Reading) = match (self, index) {
            (Self::Dot(dims), _) if has_strides && is_strided_matrix(dims, index, sizes.len()) => {
                (None, Reading::AsIs)
            }
            (Self::Dot(dims), _) => (of_product(dims, index, sizes.len()), Reading::Reshaped),
            (Self::Convolution { dims, .. }, 0) => {
                let ends = [dims.input_batch].into_iter().chain(dims.input_spatial.iter().copied());
                (Some(ends.chain([dims.input_feature]).collect()), Reading::AsIs)
            }
            (Self::Convolution { dims, .. }, _) => {
                let spatial = dims.kernel_spatial.iter().copied();
                let ends = [dims.kernel_input_feature, dims.kernel_output_feature];
                (Some(spatial.chain(ends).collect()), Reading::AsIs)
            }
            (&Self::Gather(dim), _) => (Some(gathered_first(dim, sizes.len())), Reading::AsIs),
            (
                Self::Transpose(_)
                | Self::Broadcast(_)
                | Self::Concatenation(_)
                | Self::Reduction(_),
                _,
            ) => (None, Reading::AsIs),
        };
        match order {
            Some(order) if is_moved(&order, sizes) => Reading::Moved(order),
            Some(_) => as_is,
            None => Reading::AsIs,
        }
    }
}

/// The layouts of the operands of `op`, looked up in or added to `readers`.
pub fn reader_of<'r>(readers: &'r mut Readers, program: &Program, op: OpId) -> Option<&'r Reader> {
    let id = program.signature(op).get()?;
    readers.of(id, || reader(program, op, id)).as_ref()
}

/// The layouts of the operands of `op`, whose signature is `id`.
fn reader(program: &Program, op: OpId, id: SignatureId) -> Option<Reader> {
    let shapes = Shapes::new(&[], &[]);
    let view = SignatureView::of(program, id, &shapes);
    match program.op_name(op) {
        "stablehlo.dot_general" => {
            Some(Reader::Dot(DotDims::read(view.attribute("dot_dimension_numbers")?)?))
        }
        "stablehlo.convolution" => {
            let groups = u128::try_from(view.int("batch_group_count").unwrap_or(1)).unwrap_or(1);
            let dims = ConvDims::read(view.attribute("dimension_numbers")?)?;
            let holes = view.attribute("lhs_dilation").and_then(AttrValue::as_ints);
            let has_holes = holes.is_some_and(|holes| holes.iter().any(|&step| step > 1));
            Some(Reader::Convolution { dims, groups, has_holes })
        }
        "stablehlo.all_gather" => {
            // Its own attribute is found without reading the others, the groups of devices among them.
            let own = program.attr(op, "all_gather_dim").map(AttrValue::parse);
            let dim = own.and_then(|value| value.as_int()).or_else(|| view.int("all_gather_dim"));
            Some(Reader::Gather(usize::try_from(dim?).ok()?))
        }
        "stablehlo.transpose" => Some(Reader::Transpose(view.dims("permutation")?.into())),
        "stablehlo.broadcast_in_dim" => {
            Some(Reader::Broadcast(view.dims("broadcast_dimensions")?.into()))
        }
        "stablehlo.concatenate" => Some(Reader::Concatenation(view.dim("dimension")?)),
        "stablehlo.reduce" => Some(Reader::Reduction(view.dims("dimensions")?.into())),
        _ => None,
    }
}

/// The order of dims in which a dot reads operand `index`, of this rank; `None` if it can read any.
pub fn of_product(dims: &DotDims, index: usize, rank: usize) -> Option<DimOrder> {
    let (batch, order) = order_of_product(dims, index, rank);
    let contracting = if index == 0 { &dims.lhs_contracting } else { &dims.rhs_contracting };
    let is_matrix = contracting.len() == 1 && rank <= batch + 2;
    let is_first = order[..batch].iter().copied().eq(0..batch);
    (!is_matrix || !is_first).then_some(order)
}

/// Whether operand `index` of a dot, of this rank, is a strided batch of matrices: batch, row and column dims are each contiguous,
/// and the batch dims are not minor-most.
///
/// Source: XLA's `MatrixLayout::For`.
fn is_strided_matrix(dims: &DotDims, index: usize, rank: usize) -> bool {
    let (batch, order) = order_of_product(dims, index, rank);
    let contracting = if index == 0 { &dims.lhs_contracting } else { &dims.rhs_contracting };
    let Some(free) = rank.checked_sub(batch + contracting.len()) else { return false };
    if order.len() != rank {
        return false;
    }
    let split = batch + if index == 0 { free } else { contracting.len() };
    let groups = [&order[..batch], &order[batch..split], &order[split..]];
    let is_one = |dims: &[usize]| dims.windows(2).all(|pair| pair[1] == pair[0] + 1);
    let last = groups[0].last().map(|&dim| dim + 1);
    groups.iter().all(|group| is_one(group)) && (last != Some(rank) || rank == batch)
}

/// The number of batch dims of operand `index` of a dot, and the order of all of its `rank` dims, batch dims first.
pub fn order_of_product(dims: &DotDims, index: usize, rank: usize) -> (usize, DimOrder) {
    let (batch, contracting) = match index {
        0 => (&dims.lhs_batching, &dims.lhs_contracting),
        _ => (&dims.rhs_batching, &dims.rhs_contracting),
    };
    let is_free = |dim: &usize| !batch.contains(dim) && !contracting.contains(dim);
    let free: Vec<usize> = (0..rank).filter(is_free).collect();
    let (first, second) =
        if index == 0 { (&free[..], &contracting[..]) } else { (&contracting[..], &free[..]) };
    (batch.len(), batch.iter().chain(first).chain(second).copied().collect())
}

/// The order of all dims of a tensor of this rank with `dim` first.
pub fn gathered_first(dim: usize, rank: usize) -> DimOrder {
    [dim].into_iter().chain((0..rank).filter(|&other| other != dim)).collect()
}

/// Whether this order of dims, of `sizes`, changes the order of elements. Dims of size one do not matter.
pub fn is_moved(order: &[usize], sizes: &[i64]) -> bool {
    let moved = order.iter().filter(|&&dim| sizes.get(dim).is_some_and(|&size| size > 1));
    !moved.is_sorted()
}
