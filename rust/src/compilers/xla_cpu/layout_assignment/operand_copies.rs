//! Operands that XLA copies into another layout for the op that reads them.
//!
//! A dot reads its operands as matrices, batch dims first: rows, then contracting dims on the left, the reverse on the right.
//! Unbatched plain matrices are read as they are. A convolution reads its input batch first and features last, and its kernel
//! features last. A transpose before a dot is not materialized if the dot can read the operand of the transpose. An all-gather
//! along a dim other than the first reads and writes with that dim first. `bf16` that is computed as `f32` is copied as `f32`.
//!
//! Source: XLA's `DotDecomposer`, `TransposeFolding`, `YnnMatcher`, `ConvCanonicalization`, `CpuLayoutAssignment` and `FloatNormalization`.

use crate::compilers::target::Compiler;
use crate::compilers::xla_cpu::by_signature::BySignature;
use crate::compilers::xla_cpu::layout_assignment::carried_layouts::CarriedLayouts;
use crate::compilers::xla_cpu::layout_assignment::dim_orders::{
    gathered_first, is_moved, of_product, order_of_product, reader_of, DimOrder, Reader, Readers,
    Reading,
};
use crate::compilers::xla_gpu::merged_dots::MergedDots;
use crate::compilers::xla_gpu::splitk_rewriter::split_k;
use crate::index::{Id, OpId, TypeId, ValueId};
use crate::ir::{OpKind, OpTraits, Program};
use crate::work::cached::Works;
use crate::work::ops::contract::product;
use crate::work::ops::Movement;

/// The fewest input or output features of convolutions that a library computes.
const LEAST_FEATURES: i64 = 32;

/// The layouts in which ops read their operands.
pub struct Layouts {
    readers: Readers,
    /// How ops of a signature read operands, by index and type of the operand.
    readings: BySignature<Vec<(usize, TypeId, Reading)>>,
    /// The compiler whose layouts these are.
    compiler: Compiler,
    /// Dots that are merged into one.
    pub merged: MergedDots,
    /// What loops carry in other layouts.
    pub carried: CarriedLayouts,
}

impl Layouts {
    /// The layouts of `compiler`.
    pub fn new(program: &Program, compiler: Compiler) -> Self {
        let (readers, readings) = (BySignature::new(program), BySignature::new(program));
        let (merged, carried) = Default::default();
        Self { readers, readings, compiler, merged, carried }
    }
    /// The compiler whose layouts these are.
    pub const fn compiler(&self) -> Compiler {
        self.compiler
    }
    /// Whether the compiler targets CPUs.
    pub const fn is_on_host(&self) -> bool {
        self.compiler.is_for_hosts()
    }
    /// The number of splits of a dot along its contracting dims; 1 for other ops.
    pub fn split_k(&mut self, program: &Program, works: &mut Works<'_>, op: OpId) -> u128 {
        if !self.compiler.splits_contractions() || program.kind(op) != OpKind::DotGeneral {
            return 1;
        }
        match self.reader(program, op) {
            Some(Reader::Dot(dims)) => {
                let dims = dims.clone();
                let part = self.merged.parts.get(&op).map(|part| (part.side, part.all));
                split_k(program, works, op, (&dims, part))
            }
            _ => 1,
        }
    }
    /// Whether `value`, an operand or a result of `op`, is `bf16` that `op` reads or writes as `f32`.
    pub fn widens(
        &self,
        program: &Program,
        works: &mut Works<'_>,
        op: OpId,
        value: ValueId,
    ) -> bool {
        self.is_on_host()
            && works.movement(op) == Movement::Opaque
            && program.kind(op) != OpKind::CustomCall
            && !program.has_traits(op, OpTraits::TERMINATOR)
            && works.tensors.element(value) == "bf16"
    }
    /// The order of dims of the copy that `op` reads in place of operand `index`, if it does.
    pub fn order(
        &mut self,
        program: &Program,
        works: &mut Works<'_>,
        op: OpId,
        index: usize,
    ) -> Option<DimOrder> {
        let moved = self.moved(program, works, op, index);
        moved
            .cloned()
            .or_else(|| Some((0..self.widened_rank(program, works, op, index)?).collect()))
    }
    /// Whether `op` reads a copy of operand `index`.
    pub fn copies(
        &mut self,
        program: &Program,
        works: &mut Works<'_>,
        op: OpId,
        index: usize,
    ) -> bool {
        self.moved(program, works, op, index).is_some()
            || self.widened_rank(program, works, op, index).is_some()
    }
    /// The rank of operand `index` of `op`, if `op` reads a copy of it as `f32`.
    fn widened_rank(
        &self,
        program: &Program,
        works: &mut Works<'_>,
        op: OpId,
        index: usize,
    ) -> Option<usize> {
        if !self.is_on_host() {
            return None;
        }
        let value = program.operands(op).nth(index)?;
        if !self.widens(program, works, op, value) {
            return None;
        }
        Some(works.tensors.of(value).dims.as_deref()?.len())
    }
    /// The operand of a transpose that `op` reads instead of operand `index`, `value`: if `op` is a dot, and that operand needs no
    /// copy (transpose folding).
    #[inline]
    pub fn folded(
        &mut self,
        program: &Program,
        works: &mut Works<'_>,
        op: OpId,
        operand: (usize, ValueId),
    ) -> Option<ValueId> {
        if program.kind(op) != OpKind::DotGeneral {
            return None;
        }
        self.folded_into(program, works, op, operand)
    }
    /// As [`Layouts::folded`], for a dot.
    pub fn folded_into(
        &mut self,
        program: &Program,
        works: &mut Works<'_>,
        op: OpId,
        (index, value): (usize, ValueId),
    ) -> Option<ValueId> {
        if self.widens(program, works, op, value) {
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
    /// Whether `op` is a dot that reads operand `index` as a batch of matrices by a reshape; TPUs compute dots of any dims as
    /// convolutions.
    pub fn reshapes(
        &mut self,
        program: &Program,
        works: &mut Works<'_>,
        op: OpId,
        index: usize,
    ) -> bool {
        program.kind(op) == OpKind::DotGeneral
            && !self.compiler.fuses_products()
            && matches!(self.reading(program, works, op, index), Some(Reading::Reshaped))
    }
    /// The number of batch dims of operand `index` of `op`, a dot, and the number of rows of each of its matrices.
    pub fn matrix(
        &mut self,
        program: &Program,
        works: &mut Works<'_>,
        op: OpId,
        index: usize,
    ) -> Option<(u32, u128)> {
        let sizes = works.tensors.of(program.operand(op, index)).dims.as_deref()?;
        let Some(Reader::Dot(dims)) = self.reader(program, op) else { return None };
        let (batch, _) = order_of_product(dims, index, sizes.len());
        let contracting = if index == 0 { &dims.lhs_contracting } else { &dims.rhs_contracting };
        let columns = product(contracting.iter().filter_map(|&dim| sizes.get(dim)));
        let all = product(sizes.get(batch..)?);
        let rows = if index == 0 { all.checked_div(columns)? } else { columns };
        Some((batch as u32, rows))
    }
    /// The number of batch dims of `op`, and of free dims of its left operand, if it is a dot whose result is reshaped from a batch
    /// of matrices.
    #[inline]
    pub fn reshapes_result(&mut self, program: &Program, op: OpId) -> Option<(u32, u32)> {
        if program.kind(op) != OpKind::DotGeneral || self.compiler.fuses_products() {
            return None;
        }
        let Some(Reader::Dot(dims)) = self.reader(program, op) else { return None };
        let (batch, rows) = (dims.lhs_batching.len(), dims.lhs_contracting.len());
        let rank = |value: ValueId| program.value_type(value).rank();
        let rows = rank(program.operand(op, 0))?.checked_sub(batch + rows)?;
        (rank(program.result(op, 0))? > batch + 2).then_some((batch as u32, rows as u32))
    }
    /// Whether a library computes `op`, a dot or a convolution, so that a reduction can fuse it: a dot whose left matrix is
    /// row-major, or a 2-D convolution without input dilation.
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
    /// The dims of the result of `op`, a broadcast, to which the dims of its operand are mapped.
    pub fn broadcast(&mut self, program: &Program, op: OpId) -> Option<&[usize]> {
        match self.reader(program, op)? {
            Reader::Broadcast(places) => Some(places),
            _ => None,
        }
    }
    /// The permutation of `op`, a transpose.
    pub fn permuted(&mut self, program: &Program, op: OpId) -> Option<&[usize]> {
        match self.reader(program, op)? {
            Reader::Transpose(order) => Some(order),
            _ => None,
        }
    }
    /// The dims that determine the layouts of the operands of `op`.
    pub(super) fn reader(&mut self, program: &Program, op: OpId) -> Option<&Reader> {
        reader_of(&mut self.readers, program, op)
    }
    /// The batch, free and contracting dims of operand `index` of `op`, if that is a dot.
    pub fn dims_of_dot(
        &mut self,
        program: &Program,
        op: OpId,
        index: usize,
    ) -> Option<[Vec<usize>; 3]> {
        let rank = program.value_type(program.operand(op, index)).rank()?;
        let Some(Reader::Dot(dims)) = self.reader(program, op) else { return None };
        let (batch, order) = order_of_product(dims, index, rank);
        let contracting = if index == 0 { &dims.lhs_contracting } else { &dims.rhs_contracting };
        let contracting: Vec<usize> = contracting.iter().copied().collect();
        let rest = order[batch..].iter().copied();
        let free = rest.filter(|dim| !contracting.contains(dim)).collect();
        Some([order[..batch].to_vec(), free, contracting])
    }
    /// The order in which `op` reads operand `index`, if that differs from the operand's own.
    pub fn moved(
        &mut self,
        program: &Program,
        works: &Works<'_>,
        op: OpId,
        index: usize,
    ) -> Option<&DimOrder> {
        if program.kind(op) == OpKind::While {
            return self.carried.copied(op, index);
        }
        if works.movement(op) != Movement::Opaque
            || self.is_made_in_order(program, works, op, index)
        {
            return None;
        }
        if self.compiler.fuses_products() || self.carried.is_moved(program.operand(op, index)) {
            return None;
        }
        match self.reading(program, works, op, index)? {
            Reading::Moved(order) => Some(order),
            Reading::AsIs | Reading::Reshaped => None,
        }
    }
    /// Whether the producer of operand `index` of `op`, a collective or a convolution, writes it in the layout that `op` reads:
    /// GPUs compute elementwise ops, reductions, dots and convolutions in any layout.
    fn is_made_in_order(
        &self,
        program: &Program,
        works: &Works<'_>,
        op: OpId,
        index: usize,
    ) -> bool {
        self.compiler.fuses_by_priority()
            && program.kind(op) != OpKind::DotGeneral
            && program
                .defining_op(program.operand(op, index))
                .is_some_and(|made_by| has_any_order(program, works, made_by))
    }
    /// How `op` reads operand `index`.
    fn reading(
        &mut self,
        program: &Program,
        works: &Works<'_>,
        op: OpId,
        index: usize,
    ) -> Option<&Reading> {
        let ty = program.type_of(program.operand(op, index));
        let known = self.readings.of(program.signature(op).get()?, Vec::new);
        let at = known.iter().position(|&(place, of, _)| (place, of) == (index, ty));
        let at = at.unwrap_or_else(|| {
            let sizes = works.tensors.row(ty.index() as u32).dims.as_deref();
            let reader = reader_of(&mut self.readers, program, op).zip(sizes);
            let has_strides = self.compiler.fuses_by_priority();
            let reads =
                |(reader, sizes): (&Reader, &[i64])| reader.reads(index, sizes, has_strides);
            let reading = reader.map_or(Reading::AsIs, reads);
            known.push((index, ty, reading));
            known.len() - 1
        });
        Some(&known[at].2)
    }
    /// The `batch_group_count` of `op`, if it is a convolution on CPUs: these compute all pairs of groups, and keep the diagonal.
    pub fn image_groups(&mut self, program: &Program, op: OpId) -> u128 {
        if !self.is_on_host() || program.op_name(op) != "stablehlo.convolution" {
            return 1;
        }
        match self.reader(program, op) {
            Some(&Reader::Convolution { groups, .. }) => groups.max(1),
            _ => 1,
        }
    }
    /// Whether `op` writes its result in another layout than the result's own.
    pub fn moves_result(&mut self, program: &Program, works: &mut Works<'_>, op: OpId) -> bool {
        if self.compiler.fuses_products() {
            return false;
        }
        let Some(reader) = reader_of(&mut self.readers, program, op) else { return false };
        let mut users = program.users(program.result(op, 0));
        if self.compiler.fuses_by_priority()
            && users.all(|user| has_any_order(program, works, user))
        {
            return false;
        }
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

/// Whether a GPU computes `op` in any layout of its operands and its result.
pub(super) fn has_any_order(program: &Program, works: &Works<'_>, op: OpId) -> bool {
    matches!(works.movement(op), Movement::Pointwise | Movement::Reduce)
        || program.kind(op) == OpKind::DotGeneral
        || program.op_name(op) == "stablehlo.convolution"
}
