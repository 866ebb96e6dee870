//! The tensor × factor table of one op, before and after a visit: for people to look at.

use super::direction::OpClass;
use super::input::{common_mesh, Subset, VisitInput};
use super::spec::VisitSpec;
use super::strategy::VisitStrategy;
use super::workspace::visit;
use crate::attribute::{factor_symbol, write_axes};
use crate::axis::AxisRef;
use crate::context::RuleSource;
use crate::error::{Code, Diagnostic, Result};
use crate::index::{FactorId, Id, MeshId, OpId, ShardingId, ValueId};
use crate::ir::{Direction, OpInfo, OpTraits, Program};
use crate::projection::{FactorSharding, Projection, TensorFactorShardings};
use crate::rule::{OpShardingRule, TensorMapping};

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
    /// The sharding after the visit; absent if there is none.
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

/// The table of `op` with its present shardings, and after one aggressive visit in all directions
/// that the rule does not block. `program` only gets new entries in its tables; no sharding changes.
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
    let before: Vec<ShardingId> = tensors.iter().map(|&value| program.sharding(value)).collect();
    let after = visit_once(program, rule_id, op, &before);
    let rule = program.rules()[rule_id].clone();
    let num_operands = program.num_operands(op);
    let cells_before = cells(program, &rule, &before);
    let cells_after = cells(program, &rule, &after);
    let mut rows = Vec::with_capacity(tensors.len());
    for (before, after_visit) in cells_before.into_iter().zip(cells_after) {
        let index = rows.len();
        rows.push(Row {
            value: tensors[index],
            is_result: index >= num_operands,
            before,
            after: after_visit,
            sharding: after[index],
        });
    }
    Ok(FactorTable { columns: columns(&rule), rows, rule })
}

/// The shardings of `op`'s tensors after one visit.
fn visit_once(
    program: &mut Program,
    rule: crate::index::RuleId,
    op: OpId,
    before: &[ShardingId],
) -> Vec<ShardingId> {
    let is_elementwise = OpInfo::by_name(program.op_name(op))
        .is_some_and(|info| info.traits.has(OpTraits::ELEMENTWISE));
    let spec = VisitSpec {
        rule,
        class: OpClass::Fixed(Direction::Both),
        has_single_uses: true,
        is_elementwise,
        is_conservative: false,
    };
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

/// `"x", "y":(1)2`, with the overflow axes after a bar and `?` where propagation may add axes.
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
