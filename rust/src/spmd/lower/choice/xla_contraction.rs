//! The partitioning that XLA's SPMD partitioner chooses for `dot_general` and convolutions.
//!
//! By the sharding rule of a convolution, input and result share the factor of a spatial dim, or, if the kernel is longer than the
//! result, input and kernel. If the partitioner does the opposite, [`by_other_factors`](Lowering::by_other_factors) exchanges the
//! factors: each device then computes partial results with its part of the kernel, or windows of a result that is shorter than the
//! kernel.

use crate::index::{FactorId, Id, OpId};
use crate::ir::OpKind;
use crate::op_sharding_rule::{OpShardingRule, TensorMapping};
use crate::spmd::digits::{merged, Cuts, Digit};
use crate::spmd::lower::choice::candidates::has_whole_parts;
use crate::spmd::lower::choice::decision_cache::Decision as Decided;
use crate::spmd::lower::choice::factor_abilities::abilities;
use crate::spmd::lower::op_with_rule::{OpWithRule, Tensors};
use crate::spmd::lower::windows::convolution::group_count;
use crate::spmd::lower::windows::elements_needed::{conv_dims, window_dims};
use crate::spmd::lower::Lowering;
use crate::spmd::policy::Policy;
use crate::spmd::strategy::{Ability, Strategy};
use crate::spmd::xla::product::Product;
use crate::spmd::xla::shards::{Class, Decision, Shards};
use crate::spmd::xla::spatial::{Convolution, Groups, Spatial};
use crate::stablehlo::dims::ConvDims;
use crate::stablehlo::windows::WindowDim;

impl Lowering<'_, '_, '_> {
    /// The strategy of a dot or convolution; `None` if devices are in different orders, digits do not nest, or XLA's strategy is
    /// not taken.
    pub(in crate::spmd::lower) fn strategy_of_product(
        &mut self,
        work: &OpWithRule,
    ) -> Option<Strategy> {
        let (order, decision) = self.product_of_xla(work)?;
        // By another rule; see `by_other_factors`.
        if decision.exchanged.is_empty() {
            Some(self.strategy_decided(work, work, order, decision))
        } else {
            None
        }
    }
    /// The strategy of `decision`, which is by the rule of `of`, for `work`, which may have another rule.
    pub(in crate::spmd::lower) fn strategy_decided(
        &mut self,
        of: &OpWithRule,
        work: &OpWithRule,
        order: u32,
        decision: Decision,
    ) -> Strategy {
        let digits = decision.strategy.into_iter().map(merged).collect();
        let stages = decision.stages.map(|groups| groups.map_or(0, |groups| self.stage(groups)));
        let mut strategy = self.strategy(work, order, digits);
        let mut through = Vec::new();
        for (operand, reached) in decision.through.into_iter().enumerate() {
            let strategies = reached.into_iter().map(|(groups, digits)| {
                let digits = digits.into_iter().map(merged).collect();
                (self.stage(groups), self.strategy(of, order, digits).operands[operand])
            });
            through.push(strategies.collect());
        }
        let behind = decision.reduced_to.map(|digits| {
            let digits = digits.into_iter().map(merged).collect();
            self.strategy(of, order, digits).results[0]
        });
        let behind = behind.into_iter().collect();
        if !decision.copies.is_empty() {
            let mut terms = self.placements[strategy.results[0]].clone();
            terms.order = order;
            terms.partial.extend(&decision.copies);
            terms.partial.sort_unstable_by_key(|digit| std::cmp::Reverse(digit.stride));
            terms.partial = merged(terms.partial);
            strategy.results[0] = self.placements.intern(terms);
        }
        Strategy {
            stages: stages.to_vec(),
            through,
            behind,
            copies: merged(decision.copies),
            ..strategy
        }
    }
    /// `decision` about `op`, revised by the rule that XLA's strategy needs; `None` if that is the same.
    pub(in crate::spmd::lower) fn by_other_factors(
        &mut self,
        decision: &Decided,
        op: OpId,
        tensors: &Tensors,
    ) -> Option<Decided> {
        let is_possible = self.how.policy == Policy::Xla
            && self.emit.program.kind(op) == OpKind::Convolution
            && !self.emit.devices.are_unlisted();
        if !is_possible {
            return None;
        }
        let of = OpWithRule::of(decision, op, tensors);
        let (order, taken) = self.product_of_xla(&of)?;
        if taken.exchanged.is_empty() {
            return None;
        }
        let mut rule = decision.rule.clone();
        for &factors in &taken.exchanged {
            exchange(&mut rule, factors, &decision.shapes);
        }
        let mut other = Decided { rule, ..decision.clone() };
        other.abilities = abilities(self.emit.program, &OpWithRule::of(&other, op, tensors));
        if taken.exchanged.iter().any(|&(input, _)| other.abilities[input] == Ability::Whole) {
            return None;
        }
        let work = OpWithRule::of(&other, op, tensors);
        let strategy = self.strategy_decided(&of, &work, order, taken);
        if !has_whole_parts(&work, &strategy) {
            return None;
        }
        Some(self.with_strategy(other, op, tensors, strategy))
    }
    /// The stage of reshards within groups of devices along `groups`; 0 without groups, as for other ops.
    fn stage(&mut self, groups: Vec<Digit>) -> u32 {
        if groups.is_empty() {
            return 0;
        }
        let next = self.shared.stages.len() as u32 + 1;
        *self.shared.stages.entry(groups).or_insert(next)
    }
    pub(in crate::spmd::lower) fn product_of_xla(
        &self,
        work: &OpWithRule,
    ) -> Option<(u32, Decision)> {
        let (rule, [left, right], [(_, target)]) = (work.rule, work.operands, work.results) else {
            return None;
        };
        let mut abilities = work.abilities.to_vec();
        let product = self.product(work)?;
        for spatial in product.convolution.iter().flat_map(|convolution| &convolution.spatial) {
            // Along these the strategy may be by other factors.
            for factor in [spatial.kernel, spatial.output] {
                abilities[factor] = Ability::Local;
            }
        }
        let work = &OpWithRule { abilities: &abilities, ..*work };
        let (order, left_digits) = self.led_by(work, &rule.operands[0], left.placement);
        let (right_order, right_digits) = self.led_by(work, &rule.operands[1], right.placement);
        let (result_order, result_digits) = self.led_by(work, &rule.results[0], *target);
        let given =
            [(order, left_digits), (right_order, right_digits), (result_order, result_digits)];
        let mut orders = given.iter().filter(|(_, digits)| !digits.iter().all(Vec::is_empty));
        let order = orders.next().map_or(0, |(order, _)| *order);
        if orders.any(|(other, _)| *other != order) {
            return None;
        }
        // What devices hold along manual axes is not one tensor, and is not cut along these.
        let mut free = self.devices();
        free.retain(|digit| digit.size > 1);
        let used = given.iter().flat_map(|(_, digits)| digits.iter().flatten().copied());
        let used = used.filter(|digit| digit.size > 1).chain(free.iter().copied());
        let cuts = Cuts::of(used.collect::<Vec<_>>())?;
        let cuts = cuts.into_primes();
        let tensors =
            given.map(|(_, digits)| digits.iter().map(|digits| cuts.split(digits)).collect());
        let shards = Shards {
            tensors,
            devices: cuts.split(&free),
            strategy: vec![Vec::new(); rule.num_factors()],
            stages: [None, None],
            through: [Vec::new(), Vec::new()],
        };
        Some((order, product.decide(&shards)))
    }
    /// The inputs of the partitioner's decision; `None` for convolutions that it treats differently from their rules.
    fn product(&self, work: &OpWithRule) -> Option<Product> {
        let rule = work.rule;
        let class = |factor: usize| {
            let factor = FactorId::from_index(factor);
            let is_in = |tensor: &TensorMapping| tensor.contains(factor);
            match (is_in(&rule.operands[0]), is_in(&rule.operands[1]), is_in(&rule.results[0])) {
                (true, true, true) => Class::Batch,
                (true, true, false) => Class::Contracted,
                (true, false, true) => Class::Left,
                (false, true, true) => Class::Right,
                _ => Class::Other,
            }
        };
        let mut classes: Vec<Class> = (0..rule.num_factors()).map(class).collect();
        let convolution = match conv_dims(self.emit.program, work.op) {
            Some(dims) => Some(self.convolution(work, &dims, &classes)?),
            None => None,
        };
        for spatial in convolution.iter().flat_map(|convolution| &convolution.spatial) {
            for factor in [spatial.input, spatial.kernel, spatial.output] {
                classes[factor] = Class::Other;
            }
        }
        let elements = |tensor: usize| {
            work.shapes[tensor].iter().fold(1i64, |product, &size| product.saturating_mul(size))
        };
        let factors = |tensor: &TensorMapping| {
            tensor.dims.iter().flatten().map(|factor| factor.index()).collect::<Vec<usize>>()
        };
        Some(Product {
            classes,
            convolution,
            factors: [
                factors(&rule.operands[0]),
                factors(&rule.operands[1]),
                factors(&rule.results[0]),
            ],
            elements: [elements(0), elements(1), elements(2)],
            bits: [
                self.bits(work.operands[0].global),
                self.bits(work.operands[1].global),
                self.bits(work.results[0].0),
            ],
        })
    }
    /// The properties of a convolution besides those of a dot; `None` if a dim has several factors.
    fn convolution(
        &self,
        work: &OpWithRule,
        dims: &ConvDims,
        classes: &[Class],
    ) -> Option<Convolution> {
        let program = &*self.emit.program;
        let factor = |tensor: usize, dim: usize| match work.rule.tensors().nth(tensor)?.dims[dim][..]
        {
            [factor] => Some(factor.index()),
            _ => None,
        };
        let windows = window_dims(program, work.op, dims.input_spatial.len());
        let mut spatial = Vec::new();
        for (at, window) in windows.into_iter().enumerate() {
            let (input, kernel) = (*dims.input_spatial.get(at)?, *dims.kernel_spatial.get(at)?);
            let output = *dims.output_spatial.get(at)?;
            let sizes = [work.shapes[0][input], work.shapes[1][kernel], work.shapes[2][output]];
            let window = WindowDim { size: Some(sizes[1]), ..window };
            if !is_product_dim(&window, sizes) {
                let [input, kernel, output] =
                    [factor(0, input)?, factor(1, kernel)?, factor(2, output)?];
                spatial.push(Spatial { input, kernel, output, window, sizes });
            }
        }
        let counts = ["feature_group_count", "batch_group_count"]
            .map(|name| group_count(program, work.op, name));
        let kernel = &self.placements[work.operands[1].placement];
        let features = kernel.local_shape(&work.shapes[1])[dims.kernel_input_feature];
        let is_dense = counts[0] > 1 && features > 1;
        let groups = match counts {
            [1, 1] => None,
            _ if is_dense => None,
            [count, 1] | [1, count] => {
                let is_of_features = counts[1] == 1;
                let factor =
                    factor(0, if is_of_features { dims.input_feature } else { dims.input_batch })?;
                if classes[factor] != Class::Batch {
                    return None;
                }
                Some(Groups { factor, count })
            }
            _ => return None,
        };
        Some(Convolution { spatial, groups, is_dense })
    }
}

/// Exchanges two factors in the kernel and the result of a convolution.
fn exchange(rule: &mut OpShardingRule, (input, other): (usize, usize), shapes: &[Vec<i64>]) {
    let (input, other) = (FactorId::from_index(input), FactorId::from_index(other));
    let tensors = rule.operands.iter_mut().chain(&mut rule.results).zip(shapes).skip(1);
    for (tensor, shape) in tensors {
        for (dim, &size) in tensor.dims.iter_mut().zip(shape) {
            if dim[..] == [other] {
                *dim = vec![input];
            } else if dim[..] == [input] {
                *dim = vec![other];
                rule.factor_sizes[other.index()] = size;
            }
        }
    }
}

/// Whether a spatial dim with these sizes in the input, kernel and result is like a dim of a dot: windows have one element, or the
/// only window covers the dim.
fn is_product_dim(window: &WindowDim, [input, kernel, _]: [i64; 3]) -> bool {
    let is_plain = window.base_dilation == 1
        && window.window_dilation == 1
        && window.padding == [0, 0]
        && !window.is_reversed;
    is_plain && (input == kernel || (kernel == 1 && window.stride == 1))
}
