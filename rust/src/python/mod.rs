//! The Python extension `shardcore._core`: classes, conversions and errors. Nothing else uses pyo3.
//!
//! | module | Python classes |
//! | --- | --- |
//! | [`mesh`] | `Mesh`, `MeshAxis` |
//! | [`axis`] | `AxisRef` |
//! | [`dim_sharding`] | `DimSharding` |
//! | [`sharding`] | `TensorSharding` |
//! | [`rule`] | `OpShardingRule` |
//! | [`rule_registry`] | functions behind `shardcore/rules` |
//! | [`composites`] | replaces composites by their decompositions |
//! | [`hlo`] | `import_hlo_shardings` |
//! | [`module`] | `Module` |
//! | [`op`] | `Op`, `Block` |
//! | [`op_lists`] | lists of some ops of a module |
//! | [`op_table`] | `known_ops` |
//! | [`attribute`] | attributes as Python values |
//! | [`value`] | `Value` |
//! | [`partition`] | the function behind `Result.partition` |
//! | [`picture`] | pictures of shardings |
//! | [`port`] | `Port` |
//! | [`pass_manager`] | `PassManager` |
//! | [`result`] | `Result` |
//! | [`strategies`] | `StrategyProblem`, `StrategySolution` |
//! | [`session`] | the program behind `Session` |
//! | [`annotated`], [`edited`] | the same with annotations, made when first needed |
//! | [`session_runs`] | recorded runs, which are replayed for other annotations |
//! | [`why`] | the explanations behind `Result.why` |
//! | [`edges`] | `DataFlowEdge`, users' data-flow edges |
//! | [`factor_table`] | `FactorTable` |
//! | [`completion`] | the arguments of `Module.propagate` |
//! | [`figures`], [`cost_rows`], [`host`] | the figures behind `shardcore/costs`, their rows, and the host of a device |
//! | [`caches`] | functions behind `shardcore/caches.py` |
//! | [`source`] | converts texts, bytes and files to programs |
//! | [`arguments`] | converts sequences that users pass |
//! | [`work`] | runs the engine without the GIL |
//! | [`user_code`] | calls of users' functions |
//! | [`once`] | values that are computed once, on first use |
//! | [`errors`] | raises the exceptions of `shardcore/errors.py` |
//!
//! The stub `python/shardcore/_core.pyi` documents every class.

// Arguments from Python are converted and therefore owned; pickles are tuples of tuples.
#![allow(clippy::needless_pass_by_value, clippy::type_complexity)]

mod annotated;
mod arguments;
mod attribute;
mod axis;
mod caches;
mod checked_values;
mod combined_collectives;
mod compiled;
mod completion;
mod composites;
mod cost_rows;
mod dim_sharding;
mod edges;
mod edited;
mod errors;
mod factor_table;
mod figures;
mod hlo;
mod host;
mod inlined;
mod kept_run;
mod local_programs;
mod mesh;
mod mesh_argument;
mod mesh_devices;
mod module;
mod names;
mod once;
mod op;
mod op_lists;
mod op_table;
mod origin;
mod originals;
mod partition;
mod pass_manager;
mod pasted;
mod picture;
mod port;
mod replay;
mod reshard_plans;
mod result;
mod room;
mod rule;
mod rule_registry;
mod run_options;
mod session;
mod session_runs;
mod sharding;
mod sharding_hash;
mod sharding_parts;
mod sharding_repr;
mod shardy;
mod source;
mod strategies;
mod text;
mod totals;
mod user_code;
mod value;
mod why;
mod work;
mod work_rows;
mod xla_form;

use crate::error::Code;
use pyo3::prelude::*;

#[pymodule]
mod _core {
    #[pymodule_export]
    use super::annotated::PyAnnotatedProgram;
    #[pymodule_export]
    use super::axis::PyAxisRef;
    #[pymodule_export]
    use super::caches::{cache_sizes, clear_caches};
    #[pymodule_export]
    use super::compiled::collective_passes;
    #[pymodule_export]
    use super::dim_sharding::PyDimSharding;
    #[pymodule_export]
    use super::edges::{set_data_flow_edges, PyDataFlowEdge};
    #[pymodule_export]
    use super::factor_table::PyFactorTable;
    #[pymodule_export]
    use super::figures::{program_figures, PyFigures};
    #[pymodule_export]
    use super::hlo::import_hlo_shardings;
    #[pymodule_export]
    use super::host::values_on_host;
    #[pymodule_export]
    use super::mesh::{PyMesh, PyMeshAxis};
    #[pymodule_export]
    use super::module::PyModule;
    #[pymodule_export]
    use super::op::{PyBlock, PyOp};
    #[pymodule_export]
    use super::op_lists::{op_names, ops_named, ops_of_size};
    #[pymodule_export]
    use super::op_table::known_ops;
    #[pymodule_export]
    use super::origin::PyOrigin;
    #[pymodule_export]
    use super::originals::PyOriginals;
    #[pymodule_export]
    use super::partition::{collective_traffic, partition_program};
    #[pymodule_export]
    use super::pass_manager::PyPassManager;
    #[pymodule_export]
    use super::port::PyPort;
    #[pymodule_export]
    use super::reshard_plans::PyReshardPlans;
    #[pymodule_export]
    use super::result::PyPropagationResult;
    #[pymodule_export]
    use super::rule::PyOpShardingRule;
    #[pymodule_export]
    use super::rule_registry::{registered_rules, registry_version, set_rule};
    #[pymodule_export]
    use super::session::PySessionProgram;
    #[pymodule_export]
    use super::sharding::PyTensorSharding;
    #[pymodule_export]
    use super::shardy::{default_shardy, shardy_changes, shardy_versions};
    #[pymodule_export]
    use super::strategies::{PyStrategyProblem, PyStrategySolution};
    #[pymodule_export]
    use super::user_code::{after_fork_in_child, finish};
    #[pymodule_export]
    use super::value::PyValue;
    #[pymodule_export]
    use super::why::PyExplainer;
    #[pymodule_export]
    use super::{error_codes, is_installed};
    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, pyo3::types::PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}

/// Every code that a diagnostic may have.
#[pyfunction]
fn error_codes() -> Vec<&'static str> {
    Code::ALL.iter().map(|code| code.as_str()).collect()
}

/// Whether a source location, `file:line:column`, is in an installed package or in Python's
/// library.
#[pyfunction]
fn is_installed(place: &str) -> bool {
    crate::mlir::is_installed(place)
}
