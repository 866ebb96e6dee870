//! The [`Expression`] of each op that fuses: what it computes from its operands, and how it is emitted.
//!
//! Source: XLA's `HloCostAnalysis` for how much of each operand is read.

use super::expression::{Expression, NONE};
use super::flops::flops_of_element;
use super::hero::{Hero, Reduction, Transposed, SIGNIFICANT};
use super::node::Kind;
use super::nodes::{Given, Nodes};
use crate::compilers::xla_cpu::fusion::instruction_fusion::splat;
use crate::compilers::xla_cpu::fusion::op_facts::Fact;
use crate::index::{OpId, ValueId};
use crate::ir::{OpKind, OpTraits};
use crate::work::cached::{Outcome, Works};

impl Nodes<'_, '_, '_> {
    /// The computation of `op`, whose result is `value`; `None` unless it fuses.
    pub fn expression(&mut self, op: OpId, value: ValueId, facts: Fact) -> Option<Expression> {
        let program = self.given.program;
        if program.has_traits(op, OpTraits::TERMINATOR) {
            return None;
        }
        let name = program.op_name(op);
        let elements = (self.given.works.tensors.of(value).elements as f64).max(1.0);
        if facts.has(Fact::NAME) {
            let mut made = Expression::new(0.0);
            made.is_tileable = true;
            let node = self.node(program.operand(op, 0));
            if node != NONE {
                made.read(node, 1.0, false);
                made.chain = node;
            }
            return Some(made);
        }
        if facts.has(Fact::POINTWISE) {
            let name = if self.is_product(op) { "stablehlo.multiply" } else { name };
            let flops = flops_of_element(name, self.given.works.tensors.element(value));
            let mut made = Expression::new(elements * flops);
            made.is_tileable = true;
            let mut operands = program.operands(op).map(|value| self.node(value));
            let nodes: Vec<u32> = operands.by_ref().filter(|&node| node != NONE).collect();
            for &node in &nodes {
                made.read_in_place(node);
            }
            if program.num_operands(op) == 1 {
                made.chain = nodes.first().copied().unwrap_or(NONE);
            }
            return Some(made);
        }
        self.moving(op, (name, elements))
    }
    /// Whether `op` is a division of floats that is computed as a multiplication: by a constant, or by a root or an exponential,
    /// whose inverse costs as much.
    ///
    /// Source: XLA's `AlgebraicSimplifier`.
    fn is_product(&mut self, op: OpId) -> bool {
        let program = self.given.program;
        if program.op_name(op) != "stablehlo.divide" {
            return false;
        }
        let value = program.operand(op, 1);
        let is_float = !self.given.works.tensors.element(value).contains('i');
        let made_by = program.defining_op(value).map(|op| program.op_name(op));
        let is_inverted =
            matches!(made_by, Some("stablehlo.sqrt" | "stablehlo.rsqrt" | "stablehlo.exponential"));
        is_float && (is_inverted || splat(program, value).is_some())
    }
    /// As [`Nodes::expression`], for an op that is not elementwise and whose result has `elements` elements.
    fn moving(&mut self, op: OpId, (name, elements): (&str, f64)) -> Option<Expression> {
        let program = self.given.program;
        let mut made = Expression::new(0.0);
        made.num_moving = 1;
        let operands: Vec<ValueId> = program.operands(op).collect();
        let is_broadcast = name == "stablehlo.broadcast_in_dim";
        let node =
            |&value: &ValueId| if is_broadcast { self.broadcast(value) } else { self.node(value) };
        let nodes: Vec<u32> = operands.iter().map(node).collect();
        let of = |works: &mut Works<'_>, index: usize| {
            operands
                .get(index)
                .map_or(1.0, |&value| (works.tensors.of(value).elements as f64).max(1.0))
        };
        let first = of(self.given.works, 0);
        let mut shares = vec![1.0; operands.len()];
        let mut is_strided = false;
        match name {
            "stablehlo.iota" => made.is_tileable = true,
            "stablehlo.broadcast_in_dim" => {
                made.is_tileable = true;
                shares[0] = elements / first;
            }
            "stablehlo.slice" | "stablehlo.dynamic_slice" | "stablehlo.gather" => {
                shares[0] = elements / first;
            }
            "stablehlo.pad" | "stablehlo.reverse" => {}
            "stablehlo.concatenate" => {
                if operands.len() <= 4 {
                    made.hero = Hero::Concatenation;
                }
            }
            "stablehlo.transpose" => is_strided = self.transpose(op, &mut made),
            "stablehlo.dynamic_update_slice" => {
                shares[0] = 1.0 - of(self.given.works, 1) / elements;
                made.updated = nodes[0];
            }
            "stablehlo.scatter" if operands.len() == 3 => {
                shares[0] = 0.0;
                made.updated = nodes[0];
                made.hero = Hero::Scatter;
            }
            "stablehlo.reduce" if operands.len() == 2 => self.reduce(op, elements, &mut made),
            "stablehlo.reduce_window" if operands.len() == 2 => {
                let flops = match self.given.works.of(op) {
                    Outcome::Counted(work) => work.flops as f64,
                    _ => elements,
                };
                shares[0] = (flops / first).max(1.0);
                made.flops = flops * flops_of_element("stablehlo.add", "f32");
            }
            _ => return None,
        }
        for (node, share) in nodes.into_iter().zip(shares) {
            if node != NONE {
                made.read(node, share, is_strided);
            }
        }
        Some(made)
    }
    /// The computation of `op` if it is a variadic reduction, which fuses only with its producers.
    pub fn reduction_of_several(&mut self, op: OpId) -> Option<Expression> {
        let program = self.given.program;
        if program.kind(op) != OpKind::Reduce {
            return None;
        }
        let result = program.op_results(op).next()?;
        let elements = (self.given.works.tensors.of(result).elements as f64).max(1.0);
        let mut made = Expression::new(0.0);
        made.num_moving = 1;
        self.reduce(op, elements, &mut made);
        for value in program.operands(op) {
            let node = self.node(value);
            if node != NONE {
                made.read(node, 1.0, false);
            }
        }
        Some(made)
    }
    /// Records the transpose `op`; returns whether elements that are adjacent in the operand are not in the result.
    fn transpose(&mut self, op: OpId, made: &mut Expression) -> bool {
        let Given { program, works, layouts, .. } = &mut *self.given;
        let tensor = works.tensors.of(program.operand(op, 0));
        let element = tensor.bytes as f64 / (tensor.elements as f64).max(1.0);
        let (Some(sizes), Some(order)) = (tensor.dims.as_deref(), layouts.permuted(program, op))
        else {
            return false;
        };
        let found = Transposed::of(sizes, order, element);
        made.is_transpose = true;
        made.has_transpose = found.shared_bytes.is_some() || found.moves_minor;
        if let Some(bytes) = found.shared_bytes {
            (made.hero, made.shared_bytes) = (Hero::Transpose(bytes), bytes);
        }
        found.moves_minor
    }
    /// Records the reduction `op`, whose result has `elements` elements.
    fn reduce(&mut self, op: OpId, elements: f64, made: &mut Expression) {
        let Given { program, works, layouts, .. } = &mut *self.given;
        let tensor = works.tensors.of(program.operand(op, 0)).clone();
        let all = tensor.elements as f64;
        let element = works.tensors.element(program.operand(op, 0));
        made.flops = (all - elements).max(0.0) * flops_of_element("stablehlo.add", element);
        made.has_reduction = all >= elements * SIGNIFICANT as f64;
        let (Some(sizes), Some(dims)) = (tensor.dims.as_deref(), layouts.reduced(program, op))
        else {
            return;
        };
        if let Some(reduction) = Reduction::of(sizes, dims).filter(Reduction::is_emitted) {
            let bytes = tensor.bytes as f64 / all.max(1.0);
            (made.hero, made.num_reductions) = (Hero::Reduction(reduction), 1);
            made.is_tileable = dims == [sizes.len() - 1];
            made.shared_bytes = reduction.shared_bytes(bytes);
        }
    }
    /// A sort numbers the elements that it sorts itself, if nothing else needs the numbers (`SortIotaFusion`).
    pub fn take_in_places(&mut self, op: OpId) {
        let program = self.given.program;
        for value in program.operands(op).filter(|&value| program.has_one_use(value)) {
            let is_number = |by: OpId| program.op_name(by) == "stablehlo.iota";
            let known = self.known_node(value);
            if let (true, Some(at)) = (program.defining_op(value).is_some_and(is_number), known) {
                let node = &mut self.nodes[at as usize];
                (node.is_gone, node.is_fused) = (true, true);
            }
        }
    }
    /// The node of `value`, which is broadcast: the kernel reads a scalar constant again for each element.
    fn broadcast(&mut self, value: ValueId) -> u32 {
        let known = self.node(value);
        if known == NONE {
            self.scalar(value)
        } else {
            known
        }
    }
    /// The node of one element of the constant `value`.
    pub fn scalar(&mut self, value: ValueId) -> u32 {
        let value = self.given.storage.equal.first(value);
        if let Some(&known) = self.scalars.get(&value) {
            return known;
        }
        let made = self.push(Kind::Outside, Some(value), Expression::new(0.0));
        let node = &mut self.nodes[made as usize];
        (node.bytes, node.written, node.launched, node.looped) =
            (node.element, node.element, 1.0, 1.0);
        self.scalars.insert(value, made);
        made
    }
}
