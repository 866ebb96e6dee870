//! How a compiler stores the values of a program: by the passes on single values, then by those that decide about kernels.

use crate::compilers::compilation::Known;
use crate::compilers::target::Compiler;
use crate::compilers::xla_cpu::fusion::materialization::Storage;
use crate::compilers::xla_cpu::layout_assignment::carried_layouts::CarriedLayouts;
use crate::compilers::xla_cpu::layout_assignment::operand_copies::Layouts;
use crate::compilers::xla_gpu::dot_merger::merged_dots;
use crate::compilers::xla_gpu::priority_fusion::fused as find_fused;
use crate::compilers::xla_tpu::product_fusion::{fused as products_fused, gathers_rows};
use crate::compilers::xla_tpu::shared_kernels::fuse_shared;
use crate::compilers::xla_tpu::small_results::is_small_result;
use crate::index::OpId;
use crate::ir::Program;
use crate::work::cached::Works;

/// How `compiler` stores the values of `functions`, given by their ops, and the layouts in which they are read; the matrix unit of
/// the chip sums over so many `lanes`.
pub fn stored(
    program: &Program,
    works: &mut Works<'_>,
    functions: &[OpId],
    (compiler, known, lanes): (Compiler, &Known, i64),
) -> (Layouts, Storage) {
    let mut layouts = Layouts::new(program, compiler);
    if compiler.fuses_by_priority() {
        layouts.merged = match known.fused.get() {
            Some(known) => known.merged.clone(),
            None => merged_dots(program, works, &mut layouts, functions),
        };
        layouts.carried = CarriedLayouts::new(program, works, &mut layouts, functions);
    }
    let mut storage = Storage::new(program, works, &mut layouts, functions);
    if compiler.fuses_by_priority() {
        let find = || find_fused(program, works, &mut layouts, &storage, functions);
        for it in &known.fused.get_or_init(find).stored {
            storage.store(it.value, it.is_written, it.is_fused);
        }
        for &value in &layouts.carried.sliced {
            storage.store(value, false, true);
        }
    }
    if compiler.fuses_products() {
        products_fused(program, (works, &mut layouts), &mut storage, (functions, lanes));
        fuse_shared(program, works, &mut storage, functions);
        store_results(program, works, (&mut storage, functions), gathers_rows);
        store_results(program, works, (&mut storage, functions), is_small_result);
    }
    (layouts, storage)
}

/// Stores the results of the ops in `functions`, given by their ops, of which `is_stored` holds.
fn store_results(
    program: &Program,
    works: &mut Works<'_>,
    (storage, functions): (&mut Storage, &[OpId]),
    is_stored: impl Fn(&Program, &mut Works<'_>, &Storage, OpId) -> bool,
) {
    for &func in functions {
        for &op in works.ops_inside(func).iter() {
            if is_stored(program, works, storage, op) {
                storage.store(program.result(op, 0), true, false);
            }
        }
    }
}
