//! `shardcore.OpShardingRule`.

use super::arguments::Items;
use super::errors::{raise, raise_unlocated};
use crate::attribute::{
    factor_symbol, parse_lone_rule, parse_rule, print_rule, verify_rule, verify_rule_shapes,
};
use crate::error::{Code, Diagnostic, Error};
use crate::index::{FactorId, Id};
use crate::op_sharding_rule::{OpShardingRule, TensorMapping};
use crate::rules::notation::Notation;
use crate::rules::notation_text::notation;
use crate::rules::{self, SignatureView};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyTuple, PyType};

/// A rule; see the stub.
#[pyclass(name = "OpShardingRule", module = "shardcore", frozen, eq, hash, from_py_object)]
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct PyOpShardingRule {
    pub(super) rule: OpShardingRule,
}

/// Mappings as Python arguments: for each tensor, for each dim, its factors.
type Mappings = Items<Items<Items<usize>>>;

/// Shapes of tensors as Python arguments.
type Shapes = Items<Items<i64>>;

/// Converts shapes to those of the engine.
fn plain(shapes: Shapes) -> Vec<Vec<i64>> {
    shapes.0.into_iter().map(|Items(shape)| shape).collect()
}

impl PyOpShardingRule {
    fn mappings<'py>(py: Python<'py>, tensors: &[TensorMapping]) -> PyResult<Bound<'py, PyTuple>> {
        let dim = |factors: &Vec<FactorId>| PyTuple::new(py, indices(factors));
        let tensor = |tensor: &TensorMapping| {
            PyTuple::new(py, tensor.dims.iter().map(dim).collect::<PyResult<Vec<_>>>()?)
        };
        PyTuple::new(py, tensors.iter().map(tensor).collect::<PyResult<Vec<_>>>()?)
    }
    /// Fails if `problems` is not empty.
    fn check(py: Python<'_>, problems: Vec<Diagnostic>) -> PyResult<()> {
        if problems.is_empty() {
            return Ok(());
        }
        Err(raise_unlocated(py, problems))
    }
}

/// Factors as numbers.
fn indices(factors: &[FactorId]) -> impl ExactSizeIterator<Item = usize> + '_ {
    factors.iter().map(|factor| factor.index())
}

/// Numbers as factors; `num_factors` is the number of factors.
fn factors(
    indices: Vec<usize>,
    num_factors: usize,
    problems: &mut Vec<Diagnostic>,
) -> Vec<FactorId> {
    let known = |&index: &usize| {
        let is_known = index < num_factors;
        if !is_known {
            let message = format!("factor {index} has no size: there are {num_factors} factors");
            problems.push(Diagnostic::new(Code::InvalidRule, message));
        }
        is_known
    };
    indices.into_iter().filter(known).map(FactorId::from_index).collect()
}

/// The items of `factor_list`, sorted; empty for `None`.
fn sorted(factor_list: Option<Items<usize>>) -> Vec<usize> {
    let mut factor_list = factor_list.map_or_else(Vec::new, |Items(list)| list);
    factor_list.sort_unstable();
    factor_list
}

/// The errors of `rule` for an op with tensors of these shapes.
fn shape_problems(
    rule: &OpShardingRule,
    operands: Vec<Vec<i64>>,
    results: Vec<Vec<i64>>,
) -> Vec<Diagnostic> {
    let known = |shapes: Vec<Vec<i64>>| shapes.into_iter().map(Ok).collect::<Vec<_>>();
    verify_rule_shapes(rule, &known(operands), &known(results))
}

/// Parses `text`, a rule in short notation, for tensors of these shapes, or with the sizes in `text`.
fn parse_short(text: &str, shapes: Option<[Vec<Vec<i64>>; 2]>) -> Result<OpShardingRule, Error> {
    let short: Notation = text.parse()?;
    let Some([operands, results]) = shapes.or_else(|| short.given_shapes()) else {
        let message = format!("rule \"{text}\": the sizes of its factors are not known");
        let problem = Diagnostic::new(Code::InvalidRule, message);
        return Err(problem.with_hint("give the shapes, or the sizes: {i=8, j=16}").into());
    };
    let operands: Vec<_> = operands.iter().map(|shape| Some(&shape[..])).collect();
    let results: Vec<_> = results.iter().map(|shape| Some(&shape[..])).collect();
    let shapes = rules::Shapes::new(&operands, &results);
    short.instantiate(&SignatureView::new("", &shapes, Vec::new()))
}

#[pymethods]
impl PyOpShardingRule {
    #[new]
    #[pyo3(signature = (factor_sizes, operand_mappings, result_mappings, *, reduction = None,
                        need_replication = None, permutation = None, blocked_propagation = None,
                        is_custom = false))]
    #[allow(clippy::too_many_arguments)]
    fn new(
        py: Python<'_>,
        factor_sizes: Items<i64>,
        operand_mappings: Mappings,
        result_mappings: Mappings,
        reduction: Option<Items<usize>>,
        need_replication: Option<Items<usize>>,
        permutation: Option<Items<usize>>,
        blocked_propagation: Option<Items<usize>>,
        is_custom: bool,
    ) -> PyResult<Self> {
        let mut problems = Vec::new();
        let mut list = |indices| factors(indices, factor_sizes.len(), &mut problems);
        let mut tensors = |mappings: Mappings| -> Vec<TensorMapping> {
            let tensor = |Items(dims): Items<Items<usize>>| TensorMapping {
                dims: dims.into_iter().map(|Items(dim)| list(dim)).collect(),
            };
            mappings.0.into_iter().map(tensor).collect()
        };
        let (operands, results) = (tensors(operand_mappings), tensors(result_mappings));
        let [reduction, need_replication, permutation, blocked] =
            [reduction, need_replication, permutation, blocked_propagation]
                .map(|indices| list(sorted(indices)));
        Self::check(py, problems)?;
        let rule = OpShardingRule {
            factor_sizes: factor_sizes.0,
            operands,
            results,
            reduction,
            need_replication,
            permutation,
            blocked,
            is_custom,
        };
        Self::check(py, verify_rule(&rule))?;
        Ok(Self { rule })
    }

    #[staticmethod]
    #[pyo3(signature = (text, operand_shapes = None, result_shapes = None))]
    fn parse(
        py: Python<'_>,
        text: &str,
        operand_shapes: Option<Shapes>,
        result_shapes: Option<Shapes>,
    ) -> PyResult<Self> {
        let shapes = match (operand_shapes, result_shapes) {
            (None, None) => None,
            (Some(operands), Some(results)) => Some([operands, results].map(plain)),
            _ => return Err(PyTypeError::new_err("operand_shapes and result_shapes go together")),
        };
        let is_short = text.contains("->") && !text.trim_start().starts_with(['<', '#']);
        let parsed = if is_short {
            parse_short(text, shapes)
        } else {
            parse_lone_rule(text).and_then(|rule| {
                if let Some([operands, results]) = shapes {
                    Error::check(shape_problems(&rule, operands, results))?;
                }
                Ok(rule)
            })
        };
        let rule = parsed.map_err(|error| raise(py, &error, text, "<rule>"))?;
        Ok(Self { rule })
    }

    /// For pickles: a rule of a program, in which factors may have size 0.
    #[staticmethod]
    fn _restore(py: Python<'_>, text: &str) -> PyResult<Self> {
        let rule = parse_rule(text, 0).map_err(|error| raise(py, &error, text, "<rule>"))?;
        Ok(Self { rule })
    }

    #[getter]
    fn notation(&self) -> String {
        notation(&self.rule)
    }
    #[getter]
    fn num_factors(&self) -> usize {
        self.rule.num_factors()
    }
    #[getter]
    fn factor_names(&self) -> Vec<String> {
        (0..self.rule.num_factors()).map(factor_symbol).collect()
    }
    #[getter]
    fn factor_sizes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, &self.rule.factor_sizes)
    }
    #[getter]
    fn operand_mappings<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        Self::mappings(py, &self.rule.operands)
    }
    #[getter]
    fn result_mappings<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        Self::mappings(py, &self.rule.results)
    }
    #[getter]
    fn reduction<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, indices(&self.rule.reduction))
    }
    #[getter]
    fn need_replication<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, indices(&self.rule.need_replication))
    }
    #[getter]
    fn permutation<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, indices(&self.rule.permutation))
    }
    #[getter]
    fn blocked_propagation<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, indices(&self.rule.blocked))
    }
    #[getter]
    fn pass_through<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let ids = (0..self.rule.num_factors()).map(FactorId::from_index);
        let pass_through = ids.filter(|&factor| self.rule.is_pass_through(factor));
        PyTuple::new(py, pass_through.map(Id::index).collect::<Vec<_>>())
    }
    #[getter]
    fn is_custom(&self) -> bool {
        self.rule.is_custom
    }
    fn check_shapes(
        &self,
        py: Python<'_>,
        operand_shapes: Shapes,
        result_shapes: Shapes,
    ) -> PyResult<()> {
        Self::check(py, shape_problems(&self.rule, plain(operand_shapes), plain(result_shapes)))
    }

    fn __str__(&self) -> String {
        print_rule(&self.rule)
    }
    fn __repr__(&self) -> String {
        format!("OpShardingRule.parse('{}')", print_rule(&self.rule))
    }
    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, (String,))> {
        let class: Bound<'py, PyType> = slf.get_type();
        Ok((class.getattr("_restore")?, (print_rule(&slf.get().rule),)))
    }
}
