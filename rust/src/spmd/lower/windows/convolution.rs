//! Convolutions: along spatial dims shards fetch halos; along input features devices compute partial results; along feature or
//! batch groups each shard has some of the groups.

use crate::index::{FactorId, Id, OpId, ValueId};
use crate::ir::{OpKind, Program};
use crate::mlir::op_attribute;
use crate::op_sharding_rule::{OpShardingRule, TensorMapping};
use crate::spmd::lower::op_with_rule::OpWithRule;
use crate::spmd::lower::windows::cumulative::pairs_attr;
use crate::spmd::lower::windows::elements_needed::{array_of, conv_dims, window_dims};
use crate::spmd::lower::{LocalValue, Lowering};
use crate::spmd::strategy::{Ability, Strategy};
use crate::stablehlo::dims::ConvDims;
use crate::stablehlo::windows::WindowDim;

pub(in crate::spmd::lower) fn group_count(program: &Program, op: OpId, name: &str) -> i64 {
    op_attribute(program, op, name).and_then(|value| value.as_int()).unwrap_or(1)
}

/// Gives each spatial dim of the input and the result one factor, whatever their sizes, and that of the kernel its own. If the
/// kernel is longer than the result, as in the gradient with respect to the kernel, input and kernel share the factor instead.
pub(in crate::spmd::lower) fn part_dims(
    rule: &mut OpShardingRule,
    dims: &ConvDims,
    shapes: &[Vec<i64>],
) {
    if rule.operands.len() != 2 || rule.results.len() != 1 {
        return;
    }
    let spatial = dims.input_spatial.iter().zip(&dims.kernel_spatial).zip(&dims.output_spatial);
    for ((&input, &kernel), &output) in spatial {
        let size = |tensor: usize, dim: usize| shapes.get(tensor)?.get(dim).copied();
        let (Some(elements), Some(inside), Some(windows)) =
            (size(0, input), size(1, kernel), size(2, output))
        else {
            continue;
        };
        rule.factor_sizes.extend([elements, inside.min(windows)]);
        let last = rule.factor_sizes.len() - 1;
        let [elements, alone] = [last - 1, last].map(|at| vec![FactorId::from_index(at)]);
        let (inside, windows) =
            if inside > windows { (elements.clone(), alone) } else { (alone, elements.clone()) };
        let set = |mapping: &mut TensorMapping, dim: usize, factors| {
            if let Some(place) = mapping.dims.get_mut(dim) {
                *place = factors;
            }
        };
        set(&mut rule.operands[0], input, elements);
        set(&mut rule.operands[1], kernel, inside);
        set(&mut rule.results[0], output, windows);
    }
}

/// Whether `factor` is a spatial dim of the input of a convolution.
pub(in crate::spmd::lower) fn is_spatial(
    program: &Program,
    work: &OpWithRule,
    factor: FactorId,
) -> bool {
    let spatial = conv_dims(program, work.op).map_or_else(Vec::new, |dims| dims.input_spatial);
    spatial.iter().any(|&dim| work.rule.operands[0].dims[dim] == [factor])
}

/// Refines the abilities that follow from the rule of a convolution.
pub(in crate::spmd::lower) fn refine(
    program: &Program,
    work: &OpWithRule,
    abilities: &mut [Ability],
) {
    if program.kind(work.op) != OpKind::Convolution || work.shapes.len() != 3 {
        return;
    }
    let groups = ["feature_group_count", "batch_group_count"]
        .map(|name| group_count(program, work.op, name));
    for factor in (0..work.rule.num_factors()).map(FactorId::from_index) {
        let [input, kernel] = [0, 1].map(|index| work.rule.operands[index].contains(factor));
        let output = work.rule.results[0].contains(factor);
        let size = work.rule.factor_size(factor);
        if input && kernel && output && groups.contains(&size) {
            abilities[factor.index()] = Ability::Parts;
        } else if input
            && kernel
            && !output
            && (groups[0] == 1 || is_spatial(program, work, factor))
        {
            abilities[factor.index()] = Ability::Terms;
        }
    }
}

impl Lowering<'_, '_, '_> {
    /// Convolves the window of each shard.
    pub(in crate::spmd::lower) fn convolve_locally(
        &mut self,
        work: &OpWithRule,
        strategy: &Strategy,
        mut operands: Vec<LocalValue>,
    ) {
        let op = work.op;
        self.mask_terms(work, strategy, &mut operands);
        let moves = self.moves(work, strategy);
        let shards = Self::group_shards(work, strategy);
        let dims = conv_dims(self.emit.program, op);
        let Some(dims) =
            dims.filter(|_| !moves.is_empty() || shards > 1 || !strategy.copies.is_empty())
        else {
            return self.in_place(work, strategy, &operands);
        };
        let zero = crate::spmd::emit::zero(self.emit.element(operands[0].global));
        let zero = self.emit.scalar(zero, operands[0].global);
        self.move_operands(work.op, strategy, &moves, &mut operands, |_| Some(zero));
        let rank = dims.input_spatial.len();
        let mut windows = window_dims(self.emit.program, op, rank);
        for step in &moves {
            let at = dims.input_spatial.iter().position(|&spatial| spatial == step.dim);
            if let Some(window) = at.and_then(|at| windows.get_mut(at)) {
                step.update(window);
                if step.thinned.is_some() {
                    (window.stride, window.window_dilation) = (1, 1);
                }
            }
        }
        let attrs = self.conv_attrs(op, &dims, &windows, shards);
        let values = [operands[0].value, operands[1].value];
        let ty = self.local_type(work.results[0].0, strategy.results[0]);
        let value = self.emit.op("stablehlo.convolution", &values, ty, &attrs);
        let value = self.added_once(strategy, value);
        self.replace_with_terms(work, strategy, value, crate::spmd::lower::Reducer::Add);
    }
    /// `value`, a partial result, on the first of the devices that have copies of it, and zeros on the others.
    fn added_once(&mut self, strategy: &Strategy, value: ValueId) -> ValueId {
        if strategy.copies.is_empty() {
            return value;
        }
        let ty = self.emit.type_of(value);
        let number = self.emit.number(strategy.order, &strategy.copies);
        let is_first = self.emit.are_below(number, 1);
        let zeros = self.emit.splat(crate::spmd::emit::zero(self.emit.element(ty)), ty);
        self.emit.select(is_first, value, zeros)
    }
    /// The number of shards that the groups are divided into.
    fn group_shards(work: &OpWithRule, strategy: &Strategy) -> i64 {
        let factors = 0..work.rule.num_factors();
        let parts = factors.filter(|&factor| work.abilities[factor] == Ability::Parts);
        parts.map(|factor| crate::spmd::digits::total_size(&strategy.factors[factor])).product()
    }
    /// The attributes of `op` with these windows, and with its groups divided by `shards`.
    fn conv_attrs(
        &self,
        op: OpId,
        dims: &ConvDims,
        windows: &[WindowDim],
        shards: i64,
    ) -> Vec<(&'static str, String)> {
        let program = &*self.emit.program;
        let padding: Vec<[i64; 2]> = windows.iter().map(|window| window.padding).collect();
        let reversal: Vec<String> =
            windows.iter().map(|window| window.is_reversed.to_string()).collect();
        let count = |name: &str| {
            let count = group_count(program, op, name);
            format!("{} : i64", if count == 1 { 1 } else { count / shards })
        };
        let mut attrs = vec![
            ("window_strides", array_of(windows, |window| window.stride)),
            ("padding", pairs_attr(&padding)),
            ("lhs_dilation", array_of(windows, |window| window.base_dilation)),
            ("rhs_dilation", array_of(windows, |window| window.window_dilation)),
            ("window_reversal", format!("array<i1: {}>", reversal.join(", "))),
            ("dimension_numbers", dims.text()),
            ("feature_group_count", count("feature_group_count")),
            ("batch_group_count", count("batch_group_count")),
        ];
        if let Some(precision) = program.attr(op, "precision_config") {
            attrs.push(("precision_config", precision.to_owned()));
        }
        attrs
    }
}
