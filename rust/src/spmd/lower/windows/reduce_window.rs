//! Windowed reductions, on the windows that shards need.

use crate::index::{FactorId, Id};
use crate::ir::{OpKind, Program};
use crate::layout::ceil_div;
use crate::spmd::digits::{total_size, Digit};
use crate::spmd::lower::op_with_rule::OpWithRule;
use crate::spmd::lower::windows::cumulative::pairs_attr;
use crate::spmd::lower::windows::elements_needed::{array_of, ints, window_dims};
use crate::spmd::lower::{LocalValue, Lowering};
use crate::spmd::placement::PlacementId;
use crate::spmd::policy::Policy;
use crate::spmd::strategy::Strategy;
use crate::spmd::xla::halos::Halos;
use crate::stablehlo::windows::WindowDim;

/// The factors of the dims of a windowed reduction that are as long as its windows, as in cumulative sums: XLA's partitioner
/// replicates these dims.
pub(in crate::spmd::lower) fn over_all(program: &Program, work: &OpWithRule) -> Vec<FactorId> {
    let (OpKind::ReduceWindow, Some(shape)) = (program.kind(work.op), work.shapes.first()) else {
        return Vec::new();
    };
    let windows = window_dims(program, work.op, shape.len());
    let sizes = windows.iter().zip(shape).zip(&work.rule.operands[0].dims);
    let is_over_all = |((window, size), _): &((&WindowDim, &i64), &Vec<FactorId>)| {
        **size > 1 && window.size == Some(**size)
    };
    sizes.filter(is_over_all).flat_map(|(_, factors)| factors.iter().copied()).collect()
}

/// The windows along all dims of a windowed reduction or a pad; empty for other ops.
fn windows_over(program: &Program, work: &OpWithRule) -> Vec<WindowDim> {
    let rank = work.shapes.first().map_or(0, Vec::len);
    match program.kind(work.op) {
        OpKind::ReduceWindow => window_dims(program, work.op, rank),
        OpKind::Pad => {
            let [low, high, interior] =
                ["edge_padding_low", "edge_padding_high", "interior_padding"]
                    .map(|name| ints(program, work.op, name));
            let window = |dim: usize| WindowDim {
                size: Some(1),
                stride: 1,
                padding: [low[dim], high[dim]],
                base_dilation: interior[dim] + 1,
                window_dilation: 1,
                is_reversed: false,
            };
            let is_whole = [&low, &high, &interior].iter().all(|list| list.len() == rank);
            if is_whole {
                (0..rank).map(window).collect()
            } else {
                Vec::new()
            }
        }
        _ => Vec::new(),
    }
}

impl Lowering<'_, '_, '_> {
    /// The strategy of a windowed reduction or a pad in XLA's partitioner: an operand is resharded to the sharding of the result;
    /// if windows are then too long for halos, all dims with windows are replicated. If devices are not listed, `strategy` already
    /// replicates them.
    pub(in crate::spmd::lower) fn windows_of_xla(
        &mut self,
        work: &OpWithRule,
        strategy: Strategy,
    ) -> Strategy {
        if self.emit.devices.are_unlisted() {
            return strategy;
        }
        let (&[(_, target), ..], [dims, ..]) = (work.results, &work.rule.operands[..]) else {
            return strategy;
        };
        let windows = windows_over(self.emit.program, work);
        let result = work.shapes.len() - work.results.len();
        let is_far = |(dim, window): (usize, &WindowDim)| {
            let count = self.placements[target].num_shards(dim);
            let sizes = [work.shapes[0][dim], window.size.unwrap_or(1), work.shapes[result][dim]];
            let halos = Halos::of_windows(window, sizes, count);
            count > 1 && !window.is_trivial() && halos.is_some_and(|halos| !halos.reach())
        };
        if !windows.iter().enumerate().any(is_far) {
            return strategy;
        }
        let mut digits = strategy.factors;
        for (window, factors) in windows.iter().zip(&dims.dims) {
            if !window.is_trivial() {
                for factor in factors {
                    digits[factor.index()].clear();
                }
            }
        }
        let strategy = self.strategy(work, strategy.order, digits);
        let between = |(held, &placement): (&LocalValue, &PlacementId)| {
            let is_there = held.placement == placement
                || self.placements[held.placement].is_replicated()
                || self.placements[held.placement].dims.is_empty();
            (!is_there).then_some((0, target)).into_iter().collect()
        };
        let through = work.operands.iter().zip(&strategy.operands).map(between).collect();
        Strategy { through, ..strategy }
    }
    /// XLA's strategy for replicated operands: each device reduces the windows of its own shard of the result. Operands are padded,
    /// and a device slices out the elements that its windows read. `windows` are the windows that remain for the op. `None` if
    /// there is no such dim.
    fn cut_windows(
        &mut self,
        work: &OpWithRule,
        strategy: &Strategy,
        operands: &mut [LocalValue],
        windows: &mut [WindowDim],
    ) -> Option<Strategy> {
        if self.how.policy != Policy::Xla || self.emit.devices.are_unlisted() {
            return None;
        }
        let target = self.placements[work.results.first()?.1].clone();
        let mut placement = self.placements[*strategy.results.first()?].clone();
        let same = |dim: usize, own: &[Digit]| own.is_empty() || own == target.dims[dim];
        let is_part = placement.dims.iter().enumerate().all(|(dim, own)| same(dim, own));
        let is_same_order = placement.order == target.order || placement.is_replicated();
        if !is_part || !is_same_order || !placement.partial.is_empty() {
            return None;
        }
        let sizes = work.shapes[work.operands.len()].clone();
        let rank = sizes.len();
        let (mut low, mut high, mut interior) = (vec![0; rank], vec![0; rank], vec![0; rank]);
        let (mut starts, mut lens) = (vec![None; rank], self.emit.shape(operands[0].value));
        for (dim, window) in windows.iter_mut().enumerate() {
            let digits = &target.dims[dim];
            if window.is_trivial() || digits.is_empty() || !placement.dims[dim].is_empty() {
                continue;
            }
            let count = total_size(digits);
            let shard = ceil_div(sizes[dim], count);
            let reach = (window.size? - 1) * window.window_dilation + 1;
            let base = (lens[dim] - 1) * window.base_dilation + 1;
            low[dim] = window.padding[0];
            high[dim] = (count * shard - 1) * window.stride + reach - low[dim] - base;
            interior[dim] = window.base_dilation - 1;
            lens[dim] = (shard - 1) * window.stride + reach;
            let number = self.emit.number(target.order, digits);
            starts[dim] = Some(self.emit.times(number, shard * window.stride));
            placement.dims[dim].clone_from(digits);
            (window.padding, window.base_dilation) = ([0, 0], 1);
        }
        if starts.iter().all(Option::is_none) {
            return None;
        }
        placement.order = target.order;
        let (inputs, inits) = operands.split_at_mut(work.results.len());
        for (held, init) in inputs.iter_mut().zip(inits) {
            let edges: [&[i64]; 3] = [&low, &high, &interior];
            let padded = self.emit.pad_between(held.value, Some(init.value), edges);
            held.value = self.emit.dynamic_slice(padded, &starts, &lens);
        }
        let placement = self.placements.intern(placement);
        let results = strategy.results.iter().map(|_| placement).collect();
        Some(Strategy { results, ..strategy.clone() })
    }
    /// Reduces the windows of each shard. Fetched operands are already padded and dilated.
    pub(in crate::spmd::lower) fn reduce_windows_locally(
        &mut self,
        work: &OpWithRule,
        strategy: &Strategy,
        mut operands: Vec<LocalValue>,
    ) {
        if let Some(scan) = self.scan(work, strategy) {
            return self.scan_locally(work, strategy, &scan, operands[0]);
        }
        let moves = self.moves(work, strategy);
        let inits: Vec<_> = operands.iter().map(|held| held.value).collect();
        let num_inputs = operands.len() / 2;
        self.move_operands(work.op, strategy, &moves, &mut operands, |index| {
            Some(inits[num_inputs + index])
        });
        let rank = work.shapes[0].len();
        let mut windows = window_dims(self.emit.program, work.op, rank);
        for step in &moves {
            let window = &mut windows[step.dim];
            step.update(window);
            if step.thinned.is_some() {
                window.stride = 1;
            }
        }
        let cut = self.cut_windows(work, strategy, &mut operands, &mut windows);
        if !moves.is_empty() || cut.is_some() {
            self.set_windows(work, &windows);
        }
        self.in_place(work, cut.as_ref().unwrap_or(strategy), &operands);
    }
    /// Sets the windows of the op.
    fn set_windows(&mut self, work: &OpWithRule, windows: &[WindowDim]) {
        let attrs = [
            ("window_strides", array_of(windows, |window| window.stride)),
            (
                "padding",
                pairs_attr(&windows.iter().map(|window| window.padding).collect::<Vec<_>>()),
            ),
            ("base_dilations", array_of(windows, |window| window.base_dilation)),
        ];
        for (name, text) in attrs {
            self.emit.program.set_attr(work.op, name, &text);
        }
    }
}
