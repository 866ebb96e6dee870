//! Cumulative reductions: each device scans its shard, and combines the result with the totals of the preceding shards, which are
//! gathered. JAX writes them as windows over the whole dim.

use crate::index::{Id, OpId, ValueId};
use crate::ir::{int_array, OpKind, Program, Type, ValueMap};
use crate::spmd::digits::Digit;
use crate::spmd::lower::op_with_rule::OpWithRule;
use crate::spmd::lower::reduction::log_add_exp;
use crate::spmd::lower::reduction::reduce::reducer;
use crate::spmd::lower::windows::elements_needed::{Geometries, Geometry};
use crate::spmd::lower::{LocalValue, Lowering};
use crate::spmd::reducer::Reducer;
use crate::spmd::strategy::{Ability, Strategy};

/// A cumulative reduction along a sharded dim.
pub(in crate::spmd::lower) struct Scan {
    pub dim: usize,
    pub digits: Vec<Digit>,
    /// Whether it runs from the end to the start.
    is_reversed: bool,
    combiner: Combiner,
    identity: String,
}

/// How a cumulative reduction combines two elements.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Combiner {
    Reducer(Reducer),
    LogAddExp,
}

impl Combiner {
    /// The reducer in the region of `work`, and the text of its identity.
    fn of(program: &Program, work: &OpWithRule) -> Option<(Self, String)> {
        if log_add_exp::is_region_of(program, work.op) {
            let Type::RankedTensor { element, .. } = &program.types()[work.operands[0].global]
            else {
                return None;
            };
            let identity = Reducer::Max.identity(program.str(element.text))?;
            return Some((Self::LogAddExp, identity));
        }
        reducer(program, work).map(|(reducer, identity)| (Self::Reducer(reducer), identity))
    }
}

impl Lowering<'_, '_, '_> {
    /// The cumulative reduction that `work` is, if it runs along a dim that is sharded under `strategy`, and elements move along no
    /// other dim.
    pub(in crate::spmd::lower) fn scan(
        &self,
        work: &OpWithRule,
        strategy: &Strategy,
    ) -> Option<Scan> {
        let program = &*self.emit.program;
        if program.kind(work.op) != OpKind::ReduceWindow {
            return None;
        }
        let is_moved = |dim: &usize| {
            let [factor] = work.rule.operands[0].dims[*dim][..] else { return false };
            work.abilities[factor.index()] == Ability::Moved
                && !strategy.factors[factor.index()].is_empty()
        };
        let mut moved = (0..work.shapes[0].len()).filter(is_moved);
        let (dim, None) = (moved.next()?, moved.next()) else { return None };
        let size = work.shapes[0][dim];
        let geometries = Geometries::of(program, work);
        let geometry = geometries.along(dim)?;
        let of_all = |low| Geometry { low, reach: size, ..Geometry::SAME };
        if geometry != of_all(size - 1) && geometry != of_all(0) {
            return None;
        }
        let mut others = (0..work.shapes[0].len()).filter(|&other| other != dim);
        if others.any(|other| geometries.along(other) != Some(Geometry::SAME)) {
            return None;
        }
        // Windows that are dilated reach as far with fewer elements.
        let sizes = crate::spmd::lower::windows::elements_needed::ints(
            program,
            work.op,
            "window_dimensions",
        );
        if sizes.get(dim) != Some(&size) {
            return None;
        }
        if work.shapes.last()?.get(dim) != Some(&size) || size == 1 {
            return None;
        }
        let (combiner, identity) = Combiner::of(program, work)?;
        if !self.is_constant(work.operands[1].value, &identity) {
            return None;
        }
        let factor = work.rule.operands[0].dims[dim][0];
        let digits = strategy.factors[factor.index()].clone();
        Some(Scan { dim, digits, is_reversed: geometry.low == 0, combiner, identity })
    }
    /// Bits that a device sends for `scan`: its total, once for each other shard.
    pub(in crate::spmd::lower) fn bits_of_scan(
        &self,
        work: &OpWithRule,
        strategy: &Strategy,
        scan: &Scan,
    ) -> i64 {
        let shape = self.result_shape(work, strategy, 0);
        let others = shape.iter().enumerate().filter(|&(dim, _)| dim != scan.dim);
        let others = others.fold(1i64, |product, (_, &size)| product.saturating_mul(size));
        let count = crate::spmd::digits::total_size(&scan.digits) - 1;
        others.saturating_mul(count).saturating_mul(self.bits(work.results[0].0))
    }
    /// Scans shards, and combines the results with the totals of the preceding shards.
    pub(in crate::spmd::lower) fn scan_locally(
        &mut self,
        work: &OpWithRule,
        strategy: &Strategy,
        scan: &Scan,
        input: LocalValue,
    ) {
        let &Scan { dim, combiner, is_reversed, .. } = scan;
        let identity = self.emit.scalar(&scan.identity, input.global);
        // From the end, the padding comes first.
        let input = if is_reversed { self.filled(input, &[dim], identity) } else { input };
        let local = self.scan_of_shard(work, scan, input.value, identity);
        let shape = self.emit.shape(local);
        let own = self.emit.type_of(local);
        let (mut starts, mut limits) = (vec![0; shape.len()], shape.clone());
        if is_reversed {
            limits[dim] = 1;
        } else {
            starts[dim] = shape[dim] - 1;
        }
        let total = self.emit.slice(local, &starts, &limits);
        let devices = (strategy.order, &scan.digits[..]);
        let totals = self.collectives.all_gather(&mut self.emit, total, dim, devices);
        let count = self.emit.shape(totals)[dim];
        let number = self.emit.number(strategy.order, &scan.digits);
        let indices = self.emit.indices(&[count], 0, None);
        let ty = self.emit.type_of(indices);
        let number = self.emit.broadcast(number, &[], ty);
        let is_before = self.emit.compare(if is_reversed { "GT" } else { "LT" }, indices, number);
        let mask = {
            let shape = self.emit.shape(totals);
            self.emit.along(is_before, dim, &shape)
        };
        let before = self.emit.masked(mask, totals, identity);
        let before = self.reduced(work, scan, before, identity);
        let dims: Vec<i64> =
            (0..shape.len()).filter(|&other| other != dim).map(|d| d as i64).collect();
        let before = self.emit.broadcast(before, &dims, own);
        let value = match combiner {
            Combiner::Reducer(reducer) => {
                self.emit.elementwise(reducer.op_name(), &[before, local])
            }
            Combiner::LogAddExp => log_add_exp::emit(&mut self.emit, before, local),
        };
        self.replace(work, strategy, &[value]);
    }
    /// `input` scanned on each shard separately.
    fn scan_of_shard(
        &mut self,
        work: &OpWithRule,
        scan: &Scan,
        input: ValueId,
        identity: ValueId,
    ) -> ValueId {
        let shape = self.emit.shape(input);
        let ty = self.emit.type_of(input);
        let (len, rank) = (shape[scan.dim], shape.len());
        let mut sizes = crate::spmd::lower::windows::elements_needed::ints(
            self.emit.program,
            work.op,
            "window_dimensions",
        );
        sizes[scan.dim] = len;
        let mut padding = vec![[0; 2]; rank];
        padding[scan.dim][usize::from(scan.is_reversed)] = len - 1;
        let attrs = [
            ("window_dimensions", int_array(&sizes)),
            ("window_strides", int_array(&vec![1; rank])),
            ("base_dilations", int_array(&vec![1; rank])),
            ("window_dilations", int_array(&vec![1; rank])),
            ("padding", pairs_attr(&padding)),
        ];
        let op =
            self.emit.op_with_results("stablehlo.reduce_window", &[input, identity], &[ty], &attrs);
        self.add_combiner(work, scan, op);
        self.emit.program.result(op, 0)
    }
    /// Adds the region that combines two elements to `op`.
    fn add_combiner(&mut self, work: &OpWithRule, scan: &Scan, op: OpId) {
        match scan.combiner {
            Combiner::Reducer(reducer) => {
                reducer.add_body(&mut self.emit, op, work.operands[0].global);
            }
            Combiner::LogAddExp => {
                let program = &mut *self.emit.program;
                program.add_regions(op, 1);
                let (from, to) = (program.region(work.op, 0), program.region(op, 0));
                program.clone_region(from, to, &mut ValueMap::default());
            }
        }
    }
    /// `input`, the totals of shards, reduced along the dim of the scan.
    fn reduced(
        &mut self,
        work: &OpWithRule,
        scan: &Scan,
        input: ValueId,
        identity: ValueId,
    ) -> ValueId {
        let dim = scan.dim;
        let own = self.emit.type_of(input);
        let mut shape = self.emit.shape(input);
        shape.remove(dim);
        let ty = self.emit.like(&shape, own);
        let attrs = [("dimensions", int_array(&[dim as i64]))];
        let op = self.emit.op_with_results("stablehlo.reduce", &[input, identity], &[ty], &attrs);
        self.add_combiner(work, scan, op);
        self.emit.program.result(op, 0)
    }
}

/// `dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>`
pub(in crate::spmd::lower) fn pairs_attr(pairs: &[[i64; 2]]) -> String {
    let rows: Vec<String> = pairs.iter().map(|[low, high]| format!("[{low}, {high}]")).collect();
    format!("dense<[{}]> : tensor<{}x2xi64>", rows.join(", "), pairs.len())
}
