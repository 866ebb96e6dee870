//! Layouts of convolutions: their operands and results, and what has the same shape, have their features and their batch as minor dims,
//! in the order that needs less padding, where other arrays have the dims that need least.
//!
//! Elementwise ops and conversions keep shapes, so that what is between two convolutions has one layout.
//! Source: layouts of programs that XLA compiled for TPUs, as `f32[8,64,64,32]{3,0,2,1:T(8,128)}` of a result with 32 features.

use super::tiles::least_padded_bytes;
use crate::compilers::target::Compiler;
use crate::compilers::xla_cpu::layout_assignment::dim_orders::{reader_of, Reader, Readers};
use crate::index::OpId;
use crate::ir::{OpKind, Program};
use crate::stablehlo::dims::ConvDims;
use crate::work::cached::Works;
use crate::work::tensors::LocalTensor;
use rustc_hash::FxHashMap;

/// The minor dims of arrays that convolutions read or write, by their shape.
#[derive(Default)]
pub struct ConvolutionLayouts {
    minor: FxHashMap<Box<[i64]>, [usize; 2]>,
}

impl ConvolutionLayouts {
    /// As `compiler` lays out the convolutions of `functions`, given by their ops.
    pub fn new(
        program: &Program,
        works: &mut Works<'_>,
        functions: &[OpId],
        compiler: Compiler,
    ) -> Self {
        let mut layouts = Self::default();
        if !compiler.has_tiles() {
            return layouts;
        }
        let mut readers = None;
        for &func in functions {
            for &op in works.ops_inside(func).iter() {
                if program.kind(op) != OpKind::Convolution {
                    continue;
                }
                let readers = readers.get_or_insert_with(|| Readers::new(program));
                if let Some(Reader::Convolution { dims, .. }) = reader_of(readers, program, op) {
                    layouts.add(program, works, op, dims);
                }
            }
        }
        layouts
    }
    /// Adds the operands and the result of the convolution `op`, whose dims are `dims`.
    fn add(&mut self, program: &Program, works: &mut Works<'_>, op: OpId, dims: &ConvDims) {
        let pairs = [
            [dims.input_feature, dims.input_batch],
            [dims.kernel_output_feature, dims.kernel_input_feature],
            [dims.output_feature, dims.output_batch],
        ];
        let values = program.operands(op).chain([program.result(op, 0)]);
        for (value, pair) in values.zip(pairs) {
            let Some(shape) = works.tensors.of(value).dims.as_deref() else { continue };
            if !self.minor.contains_key(shape) && pair.iter().all(|&dim| dim < shape.len()) {
                self.minor.insert(shape.into(), pair);
            }
        }
    }
    /// The bytes that `tensor` takes inside of a program, if a convolution reads or writes one of its shape.
    pub fn bytes(&self, tensor: &LocalTensor) -> Option<u128> {
        if self.minor.is_empty() {
            return None;
        }
        let &[one, other] = self.minor.get(tensor.dims.as_deref()?)?;
        Some(least_padded_bytes(tensor, [(one, other), (other, one)]))
    }
}
