//! `shardcore.FactorTable`: the factor table of an op before and after one visit.

use super::errors::raise;
use super::room::copy;
use super::rule_registry::registry;
use super::user_code::own_function;
use super::work::install_edges;
use crate::attribute::print_rule;
use crate::index::{Id, OpId, ValueId};
use crate::ir::{Edge, Program};
use crate::op_sharding_rule::OpShardingRule;
use crate::propagation::factor_table::{edge_factor_table, factor_table, Cell, FactorTable, Row};
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use rustc_hash::FxHashSet;

/// The tensor × factor table of one op, before and after one visit.
#[pyclass(name = "FactorTable", module = "shardcore", frozen)]
pub struct PyFactorTable {
    op: String,
    /// The name of each row: the name of its value, with the operand's index if an earlier operand
    /// is the same value.
    names: Vec<String>,
    table: FactorTable,
}

impl PyFactorTable {
    /// The table of the op of `program` that defines `value`; `filename` names the program in errors.
    pub(super) fn of_value(
        py: Python<'_>,
        program: &Program,
        value: ValueId,
        filename: &str,
    ) -> PyResult<Self> {
        let mut program = copy(py, program)?;
        let mut rules = registry();
        install_edges(py, &rules, &mut program, filename)?;
        if let Some((op, edge)) = program.edge_of_target(value) {
            return Self::of_edge(py, &program, op, &edge, filename);
        }
        let op = program
            .defining_op(value)
            .ok_or_else(|| PyKeyError::new_err(of_argument(&program, value)))?;
        let table = factor_table(&mut program, &mut rules, op)
            .map_err(|error| raise(py, &error, program.text().source(), filename))?;
        Ok(Self::new(&program, op, table))
    }
    /// The table of a data-flow edge of `op`.
    pub(super) fn of_edge(
        py: Python<'_>,
        program: &Program,
        op: OpId,
        edge: &Edge,
        filename: &str,
    ) -> PyResult<Self> {
        let mut program = copy(py, program)?;
        let table = edge_factor_table(&mut program, op, edge)
            .map_err(|error| raise(py, &error, program.text().source(), filename))?;
        Ok(Self::new(&program, op, table))
    }
    fn new(program: &Program, op: OpId, table: FactorTable) -> Self {
        let mut seen = FxHashSet::default();
        let name = |(index, row): (usize, &Row)| {
            let name = program.value_name(row.value);
            if seen.insert(row.value) {
                name
            } else {
                format!("{name} (operand {index})")
            }
        };
        let names = table.rows.iter().enumerate().map(name).collect();
        Self { op: program.op_name(op).to_owned(), names, table }
    }
    /// The rule of the op.
    pub(super) fn into_rule(self) -> OpShardingRule {
        self.table.rule
    }
    /// `{tensor: {factor: axes}}`; factors that the tensor does not have are missing.
    fn cells<'py>(
        &self,
        py: Python<'py>,
        pick: fn(&Row) -> &[Cell],
    ) -> PyResult<Bound<'py, PyDict>> {
        let rows = PyDict::new(py);
        for (name, row) in self.names.iter().zip(&self.table.rows) {
            let cells = PyDict::new(py);
            for (factor, cell) in pick(row) {
                cells.set_item(&self.table.columns[factor.index()].symbol, cell)?;
            }
            rows.set_item(name, cells)?;
        }
        Ok(rows)
    }
    /// `{tensor: axes}` for the tensors with axes selected by `pick`.
    fn free<'py>(&self, py: Python<'py>, pick: fn(&Row) -> &str) -> PyResult<Bound<'py, PyDict>> {
        let rows = PyDict::new(py);
        for (name, row) in self.names.iter().zip(&self.table.rows) {
            if !pick(row).is_empty() {
                rows.set_item(name, pick(row))?;
            }
        }
        Ok(rows)
    }
    /// The drawn table, a line for each tensor; with columns for replicated and unreduced axes if a
    /// tensor has any.
    fn draw(&self, title: &str, pick: fn(&Row) -> &[Cell]) -> String {
        let mut grid: Vec<Vec<String>> = Vec::with_capacity(self.names.len() + 1);
        let mut header = vec![title.to_owned()];
        header.extend(self.table.columns.iter().map(|c| format!("{}={}", c.symbol, c.size)));
        let mut free: Vec<(&str, fn(&Row) -> &str)> =
            vec![("replicated", |row| &row.replicated), ("unreduced", |row| &row.unreduced)];
        free.retain(|(_, pick)| self.table.rows.iter().any(|row| !pick(row).is_empty()));
        header.extend(free.iter().map(|&(title, _)| title.to_owned()));
        grid.push(header);
        for (name, row) in self.names.iter().zip(&self.table.rows) {
            let mut line = vec![format!("{}{name}", if row.is_result { "-> " } else { "" })];
            let start = line.len();
            line.resize(start + self.table.columns.len(), "-".to_owned());
            for (factor, axes) in pick(row) {
                line[start + factor.index()] =
                    if axes.is_empty() { "{}".to_owned() } else { axes.clone() };
            }
            line.extend(free.iter().map(|(_, pick)| pick(row).to_owned()));
            grid.push(line);
        }
        let num_columns = grid.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column| {
            let cells = grid.iter().filter_map(|line| line.get(column));
            cells.map(|cell: &String| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..num_columns).map(width).collect();
        let lines = grid.iter().map(|line| {
            let cells = line.iter().zip(&widths).map(|(cell, &width)| format!("{cell:width$}"));
            cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
        });
        lines.collect::<Vec<_>>().join("\n")
    }
}

/// The message that `argument` is defined by no op, and which values are.
fn of_argument(program: &Program, argument: ValueId) -> String {
    /// The most values that are listed.
    const MOST: usize = 3;
    let mut users: Vec<OpId> = program.users(argument).collect();
    users.reverse();
    users.dedup();
    let results = users.into_iter().flat_map(|op| program.op_results(op));
    let results: Vec<String> = results.take(MOST).map(|value| program.value_name(value)).collect();
    let name = program.value_name(argument);
    let hint = if results.is_empty() {
        String::new()
    } else {
        format!("; ops that use it define {}", results.join(", "))
    };
    format!("{name} is an argument: no op defines it{hint}")
}

#[pymethods]
impl PyFactorTable {
    /// Name of the op.
    #[getter]
    fn op(&self) -> &str {
        &self.op
    }
    /// The factors as `(symbol, size, kind)`.
    #[getter]
    fn factors(&self) -> Vec<(String, i64, &'static str)> {
        let columns = self.table.columns.iter();
        columns.map(|column| (column.symbol.clone(), column.size, column.kind)).collect()
    }
    #[getter]
    fn before<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.cells(py, |row| &row.before)
    }
    #[getter]
    fn after<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.cells(py, |row| &row.after)
    }
    #[getter]
    fn replicated<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.free(py, |row| &row.replicated)
    }
    #[getter]
    fn unreduced<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.free(py, |row| &row.unreduced)
    }
    fn _repr_html_<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        own_function(slf.py(), "shardcore.report.html", "factor_table_html", (slf,), None)
    }
    fn __str__(&self) -> String {
        let title = format!("{}  {}", self.op, print_rule(&self.table.rule));
        let before = self.draw("before", |row| &row.before);
        format!("{title}\n\n{before}\n\n{}", self.draw("after", |row| &row.after))
    }
    fn __repr__(&self) -> String {
        self.__str__()
    }
}
