//! Operands that XLA copies, since the op that reads them wants their dims in another order.
//!
//! A product reads its operands as matrices, with the dims of a batch first: those of rows, then those contracted. Two plain
//! matrices are read as they are. A convolution reads its input batch first and features last, and its kernel features last.
//! What a transpose makes for a product is not written if the product can read the operand of that.
//! An all-gather along a dim that is not the first reads and writes with that dim first. Where ops compute `bf16` as
//! `f32`, what they read is a copy of that type.
//!
//! Source: XLA's `DotDecomposer`, `TransposeFolding`, `YnnMatcher`, `ConvCanonicalization`, `CpuLayoutAssignment` and `FloatNormalization`.

use super::super::work::Movement;
use super::super::works::Works;
use crate::index::{OpId, SignatureId, ValueId};
use crate::ir::{OpKind, Program};
use crate::mlir::AttrValue;
use crate::rules::{Shapes, SignatureView};
use crate::stablehlo::dims::{ConvDims, DotDims};
use rustc_hash::FxHashMap;

/// The fewest features, on one side or the other, of convolutions that a library computes.
const LEAST_FEATURES: i64 = 32;

/// The order in which dims are read.
pub type DimOrder = Box<[usize]>;

/// What an op says of the dims of its operands.
enum Reader {
    Dot(DotDims),
    /// A convolution, its groups of images, and whether its images have holes.
    Convolution {
        dims: ConvDims,
        groups: u128,
        has_holes: bool,
    },
    /// An all-gather along a dim.
    Gather(usize),
    /// A transpose: for each dim of the result that of the operand.
    Transpose(Box<[usize]>),
    /// A broadcast: for each dim of the operand that of the result.
    Broadcast(Box<[usize]>),
    /// A concatenation along a dim.
    Concatenation(usize),
    /// A reduction over dims.
    Reduction(Box<[usize]>),
}

/// The orders in which ops read their operands, by signature.
pub struct Layouts {
    readers: FxHashMap<SignatureId, Option<Reader>>,
    /// Whether `bf16` is computed as `f32`, and other things are as on hosts.
    is_wide: bool,
}

impl Layouts {
    /// `is_wide` says whether `bf16` is computed as `f32`.
    pub fn new(is_wide: bool) -> Self {
        Self { readers: FxHashMap::default(), is_wide }
    }
    /// Whether things are as on hosts.
    pub fn is_on_host(&self) -> bool {
        self.is_wide
    }
    /// Whether `value`, an operand or a result of `op`, is `bf16` that `op` reads or writes as `f32`.
    pub fn widens(
        &self,
        program: &Program,
        works: &mut Works<'_>,
        op: OpId,
        value: ValueId,
    ) -> bool {
        self.is_wide
            && works.movement(op) == Movement::Opaque
            && program.kind(op) != OpKind::CustomCall
            && works.tensors.element(value) == "bf16"
    }
    /// The order in which `op` reads operand `index`, if it reads a copy.
    pub fn order(
        &mut self,
        program: &Program,
        works: &mut Works<'_>,
        op: OpId,
        index: usize,
    ) -> Option<DimOrder> {
        let moved = self.moved(program, works, op, index);
        if moved.is_some() {
            return moved;
        }
        let value = program.operands(op).nth(index)?;
        if !self.widens(program, works, op, value) {
            return None;
        }
        let rank = works.tensors.of(value).dims.as_deref()?.len();
        Some((0..rank).collect())
    }
    /// What `op` reads in the place of operand `index`, `value`: the operand of a transpose, if `op` is a product that reads that
    /// as it is, or as the other of two orders of a matrix.
    pub fn folded(
        &mut self,
        program: &Program,
        works: &mut Works<'_>,
        op: OpId,
        (index, value): (usize, ValueId),
    ) -> Option<ValueId> {
        if program.kind(op) != OpKind::DotGeneral || self.widens(program, works, op, value) {
            return None;
        }
        let made = program.defining_op(value)?;
        if program.parent_block(made) != program.parent_block(op) {
            return None;
        }
        let Reader::Transpose(turned) = self.reader(program, made)? else { return None };
        let turned = turned.clone();
        let Reader::Dot(dims) = self.reader(program, op)? else { return None };
        let (batch, order) = order_of_product(dims, index, turned.len());
        let mut order: Vec<usize> = order.iter().map(|&dim| turned[dim]).collect();
        if order.len() == batch + 2 {
            order[batch..].sort_unstable();
        }
        let source = program.operand(made, 0);
        let sizes = works.tensors.of(source).dims.as_deref()?;
        (!is_moved(&order, sizes)).then_some(source)
    }
    /// Whether `op` is a product that reads operand `index` as a matrix, for each element of a batch, that it has in other dims.
    pub fn reshapes(
        &mut self,
        program: &Program,
        works: &mut Works<'_>,
        op: OpId,
        index: usize,
    ) -> bool {
        if program.kind(op) != OpKind::DotGeneral {
            return false;
        }
        let Some(Reader::Dot(dims)) = self.reader(program, op) else { return false };
        let value = program.operands(op).nth(index);
        let sizes = value.and_then(|value| works.tensors.of(value).dims.as_deref());
        let Some(sizes) = sizes else { return false };
        of_product(dims, index, sizes.len()).is_some_and(|order| !is_moved(&order, sizes))
    }
    /// The number of dims of the batch of `op`, and of those of its left operand that its result has, if it is a product whose
    /// result is reshaped from that of matrices.
    pub fn reshapes_result(&mut self, program: &Program, op: OpId) -> Option<(usize, usize)> {
        if program.kind(op) != OpKind::DotGeneral {
            return None;
        }
        let Some(Reader::Dot(dims)) = self.reader(program, op) else { return None };
        let (batch, rows) = (dims.lhs_batching.len(), dims.lhs_contracting.len());
        let rank = |value: ValueId| program.value_type(value).rank();
        let rows = rank(program.operand(op, 0))?.checked_sub(batch + rows)?;
        (rank(program.result(op, 0))? > batch + 2).then_some((batch, rows))
    }
    /// Whether `op` is a transpose that leaves all elements where they are, or a broadcast that only adds dims of size one.
    pub fn keeps_places(&mut self, program: &Program, works: &mut Works<'_>, op: OpId) -> bool {
        if !matches!(program.op_name(op), "stablehlo.transpose" | "stablehlo.broadcast_in_dim") {
            return false;
        }
        let (operand, result) = (program.operand(op, 0), program.result(op, 0));
        match self.reader(program, op) {
            Some(Reader::Transpose(turned)) => {
                let sizes = works.tensors.of(operand).dims.as_deref();
                sizes.is_some_and(|sizes| !is_moved(turned, sizes))
            }
            Some(Reader::Broadcast(places)) => {
                let elements = works.tensors.of(operand).elements;
                let sizes = works.tensors.of(result).dims.as_deref();
                sizes.is_some_and(|sizes| !is_moved(places, sizes))
                    && works.tensors.of(result).elements == elements
            }
            _ => false,
        }
    }
    /// Whether a library computes `op`, a product or a convolution, so that a reduction may take it in. It reads the matrix on
    /// the left by rows, and images of two dims without holes.
    pub fn is_of_library(&mut self, program: &Program, works: &mut Works<'_>, op: OpId) -> bool {
        if works.tensors.element(program.result(op, 0)) != "f32" {
            return false;
        }
        if program.kind(op) == OpKind::DotGeneral {
            let left = program.operand(op, 0);
            let is_turned = self.folded(program, works, op, (0, left)).is_some();
            let Some(sizes) = works.tensors.of(left).dims.as_deref() else { return false };
            let Some(Reader::Dot(dims)) = self.reader(program, op) else { return false };
            let by_rows =
                dims.lhs_contracting.last() == Some(&(sizes.len() - 1)) && !sizes.is_empty();
            return of_product(dims, 0, sizes.len()).is_some() && !is_turned
                || by_rows != is_turned;
        }
        let Some(Reader::Convolution { dims, has_holes, .. }) = self.reader(program, op) else {
            return false;
        };
        let features = [dims.kernel_input_feature, dims.kernel_output_feature];
        let is_plain = dims.input_spatial.len() == 2 && !has_holes;
        let kernel = works.tensors.of(program.operand(op, 1)).dims.as_deref();
        let is_wide = |sizes: &[i64]| features.iter().any(|&dim| sizes[dim] >= LEAST_FEATURES);
        is_plain && kernel.is_some_and(is_wide)
    }
    /// The dim along which `op` concatenates its operands.
    pub fn concatenated(&mut self, program: &Program, op: OpId) -> Option<usize> {
        if program.op_name(op) != "stablehlo.concatenate" {
            return None;
        }
        match self.reader(program, op)? {
            &Reader::Concatenation(dim) => Some(dim),
            _ => None,
        }
    }
    /// The dims that `op` reduces.
    pub fn reduced(&mut self, program: &Program, op: OpId) -> Option<&[usize]> {
        match self.reader(program, op)? {
            Reader::Reduction(dims) => Some(dims),
            _ => None,
        }
    }
    /// What `op` says of the dims of its operands.
    fn reader(&mut self, program: &Program, op: OpId) -> Option<&Reader> {
        let id = program.signature(op).get()?;
        self.readers.entry(id).or_insert_with(|| reader(program, op, id)).as_ref()
    }
    /// The order in which `op` reads operand `index`, if that is not the one that it has.
    pub fn moved(
        &mut self,
        program: &Program,
        works: &mut Works<'_>,
        op: OpId,
        index: usize,
    ) -> Option<DimOrder> {
        if works.movement(op) != Movement::Opaque {
            return None;
        }
        let reader = self.reader(program, op)?;
        let sizes = works.tensors.of(program.operands(op).nth(index)?).dims.as_deref()?;
        let order: DimOrder = match (reader, index) {
            (Reader::Dot(dims), _) => of_product(dims, index, sizes.len())?,
            (
                Reader::Transpose(_)
                | Reader::Broadcast(_)
                | Reader::Concatenation(_)
                | Reader::Reduction(_),
                _,
            ) => return None,
            (Reader::Convolution { dims, .. }, 0) => {
                let ends = [dims.input_batch].into_iter().chain(dims.input_spatial.iter().copied());
                ends.chain([dims.input_feature]).collect()
            }
            (Reader::Convolution { dims, .. }, _) => {
                let spatial = dims.kernel_spatial.iter().copied();
                spatial.chain([dims.kernel_input_feature, dims.kernel_output_feature]).collect()
            }
            (&Reader::Gather(dim), _) => gathered_first(dim, sizes.len()),
        };
        is_moved(&order, sizes).then_some(order)
    }
    /// How many groups of images `op` has, if it is a convolution of hosts: these compute all pairs of them, and keep the diagonal.
    pub fn image_groups(&mut self, program: &Program, op: OpId) -> u128 {
        if !self.is_wide || program.op_name(op) != "stablehlo.convolution" {
            return 1;
        }
        match self.reader(program, op) {
            Some(&Reader::Convolution { groups, .. }) => groups.max(1),
            _ => 1,
        }
    }
    /// Whether `op` writes its result in another order than the one that it has.
    pub fn moves_result(&mut self, program: &Program, works: &mut Works<'_>, op: OpId) -> bool {
        let Some(id) = program.signature(op).get() else { return false };
        let Some(Some(reader)) = self.readers.get(&id) else { return false };
        let Some(sizes) = works.tensors.of(program.result(op, 0)).dims.as_deref() else {
            return false;
        };
        let order = match reader {
            Reader::Dot(_)
            | Reader::Transpose(_)
            | Reader::Broadcast(_)
            | Reader::Concatenation(_)
            | Reader::Reduction(_) => return false,
            Reader::Convolution { dims, .. } => {
                let spatial = dims.output_spatial.iter().copied();
                [dims.output_batch]
                    .into_iter()
                    .chain(spatial)
                    .chain([dims.output_feature])
                    .collect()
            }
            Reader::Gather(dim) => gathered_first(*dim, sizes.len()),
        };
        is_moved(&order, sizes)
    }
}

/// What `op`, whose signature is `id`, says of the dims of its operands.
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

/// The order in which a product reads operand `index` of so many dims; `None` if in any.
fn of_product(dims: &DotDims, index: usize, rank: usize) -> Option<DimOrder> {
    let (batch, order) = order_of_product(dims, index, rank);
    let contracting = if index == 0 { &dims.lhs_contracting } else { &dims.rhs_contracting };
    let is_matrix = contracting.len() == 1 && rank <= batch + 2;
    let is_first = order[..batch].iter().copied().eq(0..batch);
    (!is_matrix || !is_first).then_some(order)
}

/// The number of dims of the batch of operand `index` of a product, and the order of all of its `rank` dims: first those.
fn order_of_product(dims: &DotDims, index: usize, rank: usize) -> (usize, DimOrder) {
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

/// All of so many dims, `dim` first.
fn gathered_first(dim: usize, rank: usize) -> DimOrder {
    [dim].into_iter().chain((0..rank).filter(|&other| other != dim)).collect()
}

/// Whether reading dims of `sizes` in this order is reading elements in another. Dims of size one move freely.
fn is_moved(order: &[usize], sizes: &[i64]) -> bool {
    let moved = order.iter().filter(|&&dim| sizes.get(dim).is_some_and(|&size| size > 1));
    !moved.is_sorted()
}
