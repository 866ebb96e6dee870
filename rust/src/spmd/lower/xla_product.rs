//! The way that XLA's partitioner takes for products and convolutions.

use super::super::digits::{merged, Cuts, Digit};
use super::super::ways::Way;
use super::super::xla::product::Product;
use super::super::xla::shards::{Class, Decision, Shards};
use super::super::xla::spatial::{Convolution, Groups, Spatial};
use super::convolution::group_count;
use super::geometry::{conv_dims, window_dims};
use super::work::ByRule;
use super::Lowering;
use crate::index::{FactorId, Id};
use crate::rule::TensorMapping;
use crate::stablehlo::dims::ConvDims;
use crate::stablehlo::windows::WindowDim;

impl Lowering<'_, '_, '_> {
    /// The way of a product; none where its devices are in different orders, digits do not nest, or XLA's is not taken.
    pub(super) fn way_of_product(&mut self, work: &ByRule) -> Option<Way> {
        let (order, decision) = self.product_of_xla(work)?;
        let digits = decision.way.into_iter().map(merged).collect();
        let stages = decision.stages.map(|groups| groups.map_or(0, |groups| self.stage(groups)));
        let way = self.way(work, order, digits);
        let mut through = Vec::new();
        for (operand, reached) in decision.through.into_iter().enumerate() {
            let ways = reached.into_iter().map(|(groups, digits)| {
                let digits = digits.into_iter().map(merged).collect();
                (self.stage(groups), self.way(work, order, digits).operands[operand])
            });
            through.push(ways.collect());
        }
        let behind = decision.reduced_to.map(|digits| {
            let digits = digits.into_iter().map(merged).collect();
            self.way(work, order, digits).results[0]
        });
        let behind = behind.into_iter().collect();
        Some(Way { stages: stages.to_vec(), through, behind, ..way })
    }
    /// The stage of what is resharded within groups along `groups`: 0, that of other ops, without groups.
    fn stage(&mut self, groups: Vec<Digit>) -> u32 {
        if groups.is_empty() {
            return 0;
        }
        let next = self.shared.stages.len() as u32 + 1;
        *self.shared.stages.entry(groups).or_insert(next)
    }
    fn product_of_xla(&self, work: &ByRule) -> Option<(u32, Decision)> {
        let (rule, [left, right], [(_, target)]) = (work.rule, work.operands, work.results) else {
            return None;
        };
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
        let product = self.product(work)?;
        let shards = Shards {
            tensors,
            devices: cuts.split(&free),
            way: vec![Vec::new(); rule.num_factors()],
            stages: [None, None],
            through: [Vec::new(), Vec::new()],
        };
        Some((order, product.decide(&shards).ok()?))
    }
    /// What the partitioner looks at; none of convolutions that it sees otherwise than their rules.
    fn product(&self, work: &ByRule) -> Option<Product> {
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
    /// What is more of a convolution than of a product; none if a dim has several factors.
    fn convolution(
        &self,
        work: &ByRule,
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
        let groups = match counts {
            [1, 1] => None,
            [count, 1] if work.shapes[1][dims.kernel_input_feature] > 1 => {
                Some(Groups { factor: factor(0, dims.input_feature)?, count, is_dense: true })
            }
            [count, 1] | [1, count] => {
                let is_of_features = counts[1] == 1;
                let factor =
                    factor(0, if is_of_features { dims.input_feature } else { dims.input_batch })?;
                if classes[factor] != Class::Batch {
                    return None;
                }
                Some(Groups { factor, count, is_dense: false })
            }
            _ => return None,
        };
        Some(Convolution { spatial, groups })
    }
}

/// Whether a spatial dim with these sizes in the input, kernel and result is one that a product has, too: windows have one
/// element, or there is one that has all.
fn is_product_dim(window: &WindowDim, [input, kernel, _]: [i64; 3]) -> bool {
    let is_plain = window.base_dilation == 1
        && window.window_dilation == 1
        && window.padding == [0, 0]
        && !window.is_reversed;
    is_plain && (input == kernel || (kernel == 1 && window.stride == 1))
}
