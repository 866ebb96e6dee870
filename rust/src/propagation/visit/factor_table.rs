//! The tensor × factor table of one op, before and after a visit, for display.

use super::direction::OpClass;
use super::input::{common_mesh, Subset, VisitInput};
use super::spec::VisitSpec;
use super::strategy::VisitStrategy;
use super::workspace::visit;
use crate::attribute::{factor_symbol, write_axes};
use crate::axis::AxisRef;
use crate::context::RuleSource;
use crate::error::{Code, Diagnostic, Result};
use crate::index::{FactorId, Id, MeshId, OpId, RuleId, ShardingId, ValueId};
use crate::ir::{Direction, Edge, OpInfo, OpKind, OpTraits, Program, ValueDef};
use crate::op_sharding_rule::{OpShardingRule, TensorMapping};
use crate::projection::{FactorSharding, Projection, TensorFactorShardings};

/// One factor: a column of the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its symbol in the rule, `i`, `j`, ...
    pub symbol: String,
    /// Its size.
    pub size: i64,
    /// `pass-through`, `reduction`, `need-replication` or `permutation`.
    pub kind: &'static str,
}

/// One operand or result: a row of the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The tensor.
    pub value: ValueId,
    /// Whether it is a result.
    pub is_result: bool,
    /// The axes of each factor that the tensor has before the visit, in order.
    pub before: Vec<Cell>,
    /// The axes of each factor that the tensor has after the visit, in order.
    pub after: Vec<Cell>,
    /// The axes that may shard no factor of the tensor, `"x", "y":(1)2`; no visit changes them.
    pub replicated: String,
    /// The unreduced axes of the tensor.
    pub unreduced: String,
    /// The sharding after the visit; `NONE` if there is none.
    pub sharding: ShardingId,
}

/// A factor of a tensor, and its axes.
pub type Cell = (FactorId, String);

/// The factor table of one op.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FactorTable {
    /// The rule.
    pub rule: OpShardingRule,
    /// The factors.
    pub columns: Vec<Column>,
    /// Operands, then results.
    pub rows: Vec<Row>,
}

/// The table of `op` with its current shardings, before and after one aggressive visit in all
/// directions that the rule does not block. `program` only gets new table entries; no sharding
/// changes.
pub fn factor_table(
    program: &mut Program,
    rules: &mut dyn RuleSource,
    op: OpId,
) -> Result<FactorTable> {
    rules.prepare(program, false)?;
    let rule_id = rules.rule(program, op);
    if rule_id.is_none() {
        let message = format!("{} has no sharding rule", program.op_name(op));
        let hint = "register one with @shardcore.rule, or ask for another op";
        let problem = Diagnostic::new(Code::InvalidRule, message).at_op(program, op);
        return Err(problem.with_hint(hint).into());
    }
    let operands = program.operands(op);
    let tensors: Vec<ValueId> = operands.chain(program.op_results(op)).collect();
    let before: Vec<ShardingId> = tensors.iter().map(|&value| program.sharding_of(value)).collect();
    let is_elementwise = OpInfo::by_name(program.op_name(op))
        .is_some_and(|info| info.traits.has(OpTraits::ELEMENTWISE));
    let spec = spec(rule_id, is_elementwise);
    Ok(table(program, spec, &tensors, &before, program.num_operands(op)))
}

/// The table of a data-flow edge of `op`, whose rule is the identity: its sources, then its
/// targets, the owner first. For a manual computation, the shardings are those outside for
/// arguments, and those inside for results.
pub fn edge_factor_table(program: &mut Program, op: OpId, edge: &Edge) -> Result<FactorTable> {
    let sources: Vec<ValueId> = edge.sources.iter().map(|&slot| program.used_value(slot)).collect();
    let mut tensors = sources.clone();
    tensors.push(edge.owner);
    tensors.extend(&edge.targets);
    let shape = program.types()[program.type_of(tensors[0])].static_shape();
    let rank = |value: &ValueId| program.types()[program.type_of(*value)].rank();
    let shape = shape.filter(|shape| tensors.iter().all(|value| rank(value) == Some(shape.len())));
    let Some(shape) = shape else {
        let message =
            format!("an edge of {} is not between tensors of one static rank", program.op_name(op));
        return Err(Diagnostic::new(Code::InvalidRule, message).at_op(program, op).into());
    };
    let rule = OpShardingRule::identity(&shape, sources.len(), tensors.len() - sources.len());
    let rule_id = program.intern_rule(rule);
    let mut before: Vec<ShardingId> =
        sources.iter().map(|&value| program.sharding_of(value)).collect();
    let target = edge_sharding(program, op, edge.owner);
    before.resize(tensors.len(), target);
    Ok(table(program, spec(rule_id, false), &tensors, &before, sources.len()))
}

/// The sharding of the edge of `op` that `owner` owns, as seen by its sources.
fn edge_sharding(program: &mut Program, op: OpId, owner: ValueId) -> ShardingId {
    let edge = program.data_flow_edge(owner);
    let is_arg = matches!(program.def(owner), ValueDef::Arg(_));
    let own =
        edge.map_or(program.sharding(owner), |edge| program.sharding(program.result(edge, 0)));
    let is_manual = program.kind(op) == OpKind::ManualComputation;
    match (is_arg, edge) {
        (true, Some(_)) if is_manual => program.with_manual_axes(op, owner, own),
        (false, _) if is_manual => program.inside_manual(op, own),
        _ => own,
    }
}

/// The spec of a visit by this rule in all directions that it does not block.
fn spec(rule: RuleId, is_elementwise: bool) -> VisitSpec {
    let class = OpClass::Fixed(Direction::Both);
    VisitSpec { rule, class, has_single_uses: true, is_elementwise, is_conservative: false }
}

/// The table of `tensors`, the first `num_operands` of which are operands, with the shardings `before` a visit.
fn table(
    program: &mut Program,
    spec: VisitSpec,
    tensors: &[ValueId],
    before: &[ShardingId],
    num_operands: usize,
) -> FactorTable {
    let after = visit_once(program, spec, before);
    let rule = program.rules()[spec.rule].clone();
    let cells_before = cells(program, &rule, before);
    let cells_after = cells(program, &rule, &after);
    let mut rows = Vec::with_capacity(tensors.len());
    for (before, after_visit) in cells_before.into_iter().zip(cells_after) {
        let index = rows.len();
        let [replicated, unreduced] = free_axes(program, after[index]);
        rows.push(Row {
            value: tensors[index],
            is_result: index >= num_operands,
            before,
            after: after_visit,
            replicated,
            unreduced,
            sharding: after[index],
        });
    }
    FactorTable { columns: columns(&rule), rows, rule }
}

/// The shardings after one visit.
fn visit_once(program: &mut Program, spec: VisitSpec, before: &[ShardingId]) -> Vec<ShardingId> {
    let directions = spec.directions(program.rules());
    let mut tables = program.tables();
    let site = VisitInput { spec, subset: Subset::ALL, shardings: before };
    let mut after = before.to_vec();
    for (index, sharding) in visit(&mut tables, site, directions.of(0), VisitStrategy::Aggressive) {
        after[index as usize] = sharding;
    }
    after
}

fn columns(rule: &OpShardingRule) -> Vec<Column> {
    let column = |index| {
        let factor = FactorId::from_index(index);
        let kind = if rule.reduction.contains(&factor) {
            "reduction"
        } else if rule.need_replication.contains(&factor) {
            "need-replication"
        } else if rule.permutation.contains(&factor) {
            "permutation"
        } else {
            "pass-through"
        };
        Column { symbol: factor_symbol(index), size: rule.factor_size(factor), kind }
    };
    (0..rule.num_factors()).map(column).collect()
}

/// The rows of operands and results.
fn cells(program: &mut Program, rule: &OpShardingRule, shardings: &[ShardingId]) -> Vec<Vec<Cell>> {
    let tables = program.tables();
    let Some(mesh) = common_mesh(&tables, shardings) else {
        let cells = |mapping: &TensorMapping| {
            let mut factors: Vec<FactorId> = mapping.dims.iter().flatten().copied().collect();
            factors.sort_unstable();
            factors.into_iter().map(|factor| (factor, "?".to_owned())).collect()
        };
        return rule.tensors().map(cells).collect();
    };
    let rows = shardings.iter().map(|&id| program.shardings().get(id));
    let projection = Projection::build(rule, rows, program.mesh(mesh), false);
    let cells = |row: &TensorFactorShardings| {
        row.factors.iter().map(|(factor, cell)| (factor, cell_text(program, mesh, cell))).collect()
    };
    projection.tensors.iter().map(cells).collect()
}

/// The replicated and the unreduced axes of a sharding.
fn free_axes(program: &Program, sharding: ShardingId) -> [String; 2] {
    let Some(sharding) = program.shardings().get(sharding) else { return Default::default() };
    [&sharding.replicated, &sharding.unreduced].map(|axes| {
        let mut text = String::new();
        write_axes(&mut text, axes, program.mesh(sharding.mesh));
        text
    })
}

/// `"x", "y":(1)2`, followed by the overflow axes after a bar, and by `?` if propagation may add
/// axes.
fn cell_text(program: &Program, mesh: MeshId, cell: &FactorSharding) -> String {
    let names = |axes: &[AxisRef]| {
        let mut text = String::new();
        write_axes(&mut text, axes, program.mesh(mesh));
        text
    };
    let mut text = names(&cell.axes);
    if !cell.overflow.is_empty() {
        let bar = if text.is_empty() { "| " } else { " | " };
        text = text + bar + &names(&cell.overflow);
    }
    if !cell.is_closed {
        text.push_str(if text.is_empty() { "?" } else { ", ?" });
    }
    text
}
