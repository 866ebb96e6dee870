//! `shardcore.DataFlowEdge`, and the data-flow edges that users give to ops.

use super::arguments::Items;
use super::factor_table::PyFactorTable;
use super::names::Names;
use super::rule::PyOpShardingRule;
use super::rule_registry::{change, function_error, registry, signature_arguments};
use super::sharding::PyTensorSharding;
use super::user_code;
use super::value::PyValue;
use super::work::install_edges;
use crate::error::{Code, Diagnostic};
use crate::index::{FuncId, OpId, ValueId};
use crate::ir::{Edge, EdgeGroup, EdgeOwners, EdgeSpec, Order, Program, Regions};
use crate::rules::UserEdges;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use std::sync::Arc;

/// One data-flow edge of an op; see the stub.
#[pyclass(name = "DataFlowEdge", module = "shardcore", frozen)]
pub struct PyDataFlowEdge {
    program: Arc<Program>,
    /// The program with the users' data-flow edges, and with the shardings that ops store for them.
    given: Arc<Program>,
    names: Arc<Names>,
    filename: Arc<str>,
    function: FuncId,
    op: OpId,
    edge: Edge,
}

impl PyDataFlowEdge {
    /// The edges of all ops of `program`, including users' edges, in program order.
    pub(super) fn all(
        py: Python<'_>,
        program: &Arc<Program>,
        names: &Arc<Names>,
        filename: &Arc<str>,
    ) -> PyResult<Vec<Self>> {
        let with_edges = with_users_edges(py, program, filename)?;
        let given = with_edges.as_ref().unwrap_or(program);
        let mut edges = Vec::new();
        for function in program.functions_in_order() {
            for op in program.pre_order(program.func_op(function)) {
                let of_op = given.edge_spec(op).map(|spec| spec.edges(given, op));
                edges.extend(of_op.into_iter().flatten().map(|edge| Self {
                    program: program.clone(),
                    given: given.clone(),
                    names: names.clone(),
                    filename: filename.clone(),
                    function,
                    op,
                    edge,
                }));
            }
        }
        Ok(edges)
    }
    fn value(&self, value: ValueId) -> PyValue {
        PyValue::new(self.program.clone(), self.names.clone(), value, self.function)
    }
}

/// A copy of `program` with users' data-flow edges; `None` if there are none.
pub(super) fn with_users_edges(
    py: Python<'_>,
    program: &Arc<Program>,
    filename: &str,
) -> PyResult<Option<Arc<Program>>> {
    let rules = registry();
    if !rules.has_edges() {
        return Ok(None);
    }
    let mut copy = super::room::copy(py, program)?;
    install_edges(py, &rules, &mut copy, filename)?;
    Ok(Some(Arc::new(copy)))
}

#[pymethods]
impl PyDataFlowEdge {
    /// Name of the op that has the edge.
    #[getter]
    fn op(&self) -> &str {
        self.program.op_name(self.op)
    }
    #[getter]
    fn location(&self) -> Option<String> {
        self.names.call_sites(&self.program).op_location(&self.program, self.op)
    }
    /// The target that represents the edge.
    #[getter]
    fn owner(&self) -> PyValue {
        self.value(self.edge.owner)
    }
    /// The values that flow in.
    #[getter]
    fn sources<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let sources = self.edge.sources.iter();
        PyTuple::new(py, sources.map(|&slot| self.value(self.program.used_value(slot))))
    }
    /// The values that they flow to, the owner first.
    #[getter]
    fn targets<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let others = self.edge.targets.iter();
        let targets = [self.edge.owner].into_iter().chain(others.copied());
        PyTuple::new(py, targets.map(|value| self.value(value)).collect::<Vec<_>>())
    }
    /// The sharding that all targets have.
    #[getter]
    fn sharding(&self) -> Option<PyTensorSharding> {
        let program = &self.given;
        let holder = program.data_flow_edge(self.edge.owner);
        let holder = holder.map_or(self.edge.owner, |edge| program.result(edge, 0));
        let id = program.sharding(holder).get()?;
        Some(PyTensorSharding::from_program(program, id))
    }
    /// The rule along which shardings propagate between sources and targets.
    #[getter]
    fn rule(&self, py: Python<'_>) -> PyResult<PyOpShardingRule> {
        Ok(PyOpShardingRule { rule: self.factor_table(py)?.into_rule() })
    }
    /// The factor table of sources and targets.
    pub(super) fn factor_table(&self, py: Python<'_>) -> PyResult<PyFactorTable> {
        PyFactorTable::of_edge(py, &self.given, self.op, &self.edge, &self.filename)
    }
    fn __repr__(&self) -> String {
        let program = &*self.program;
        let name = |value| program.value_name(value);
        let sources = self.edge.sources.iter().map(|&slot| name(program.used_value(slot)));
        let others = self.edge.targets.iter().copied();
        let targets = [self.edge.owner].into_iter().chain(others).map(name);
        let join = |names: Vec<String>| names.join(", ");
        format!(
            "<shardcore.DataFlowEdge of {}: {} -> {}>",
            self.op(),
            join(sources.collect()),
            join(targets.collect())
        )
    }
}

/// One group of edges as Python gives it: the region whose arguments own the edges (`None` for the
/// results); the first operand; the regions whose returned values and arguments take part (`None`
/// for all); the positions of the edges among operands, returned values and arguments; and the
/// attribute with the shardings of block arguments that own edges.
type GroupArguments = (
    Option<u32>,
    Option<u32>,
    Option<Items<u32>>,
    Option<Items<u32>>,
    Option<Items<u32>>,
    Option<Items<u32>>,
    Option<Items<u32>>,
    Option<String>,
);

fn regions(list: Option<Items<u32>>) -> PyResult<Regions> {
    let Some(Items(list)) = list else { return Ok(Regions::ALL) };
    if let Some(large) = list.iter().find(|&&region| region > 62) {
        let message = format!("region {large} is out of reach: name all regions, or below 63");
        return Err(PyValueError::new_err(message));
    }
    Ok(list.into_iter().fold(Regions::NONE, |set, region| set.or(Regions::only(region))))
}

fn order(list: Option<Items<u32>>) -> PyResult<Order> {
    let Some(Items(list)) = list else { return Ok(Order::Same) };
    let mut sorted = list.clone();
    sorted.sort_unstable();
    if let Some([twice, _]) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        let message = format!("position {twice} is in two edges of the group");
        return Err(PyValueError::new_err(message));
    }
    Ok(Order::Listed(list.into()))
}

fn group(arguments: GroupArguments) -> PyResult<EdgeGroup> {
    let (owner, first_operand, returns, block_args, operands, returned, args, stored_in) =
        arguments;
    if owner.is_none() && stored_in.is_some() {
        let message = "results have their shardings in sdy.sharding: stored_in needs owner_region";
        return Err(PyValueError::new_err(message));
    }
    Ok(EdgeGroup {
        owners: owner.map_or(EdgeOwners::Results, EdgeOwners::BlockArgs),
        first_operand,
        returns: regions(returns)?,
        block_args: regions(block_args)?,
        operand_order: order(operands)?,
        return_order: order(returned)?,
        arg_order: order(args)?,
        stored_in: stored_in.map(Into::into),
    })
}

fn spec(groups: &Bound<'_, PyAny>) -> PyResult<EdgeSpec> {
    let Items(groups): Items<GroupArguments> = groups.extract()?;
    let groups = groups.into_iter().map(group).collect::<PyResult<Vec<_>>>()?;
    Ok(EdgeSpec { groups: groups.into() })
}

/// Sets the data-flow edges of an op: groups, or a function from a signature to groups; `None`
/// removes them.
#[pyfunction]
#[pyo3(signature = (name, groups))]
pub fn set_data_flow_edges(name: &str, groups: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
    let edges = match groups {
        None => None,
        Some(groups) if groups.is_callable() => Some(by_function(groups.clone().unbind())),
        Some(groups) => Some(UserEdges::Always(spec(groups)?)),
    };
    change(|registry| registry.set_edges(name, edges));
    Ok(())
}

fn by_function(function: Py<PyAny>) -> UserEdges {
    UserEdges::Function(Arc::new(move |view| {
        user_code::check_depth()?;
        user_code::attach(|py| {
            let asked = signature_arguments(py, view)
                .and_then(|arguments| function.bind(py).call1(arguments))
                .and_then(
                    |answer| if answer.is_none() { Ok(None) } else { spec(&answer).map(Some) },
                );
            asked.map_err(|error| {
                if error.is_instance_of::<PyTypeError>(py) && error.traceback(py).is_none() {
                    let message = "the function returned neither edge groups nor None";
                    return Diagnostic::new(Code::InvalidRule, message).into();
                }
                function_error(py, &error)
            })
        })
    }))
}
