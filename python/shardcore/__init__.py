"""shardcore completes the sharding of every value of a tensor program, exactly as Shardy does."""

from __future__ import annotations

from importlib import import_module as _import_module
from types import ModuleType as _ModuleType

from shardcore import _process as _process
from shardcore._core import (
    AnnotatedProgram,
    AxisRef,
    Block,
    DataFlowEdge,
    DimSharding,
    Explainer,
    FactorTable,
    Figures,
    Mesh,
    MeshAxis,
    Module,
    Op,
    OpShardingRule,
    Origin,
    Originals,
    PassManager,
    Port,
    ReshardPlans,
    Result,
    SessionProgram,
    StrategyProblem,
    StrategySolution,
    TensorSharding,
    Value,
    __version__,
    import_hlo_shardings,
)
from shardcore.caches import CacheInfo, cache_info, clear_caches
from shardcore.costs import Comparison, Cost, compare, cost
from shardcore.diagnose import DIAGNOSTICS
from shardcore.diff import Diff, diff
from shardcore.errors import (
    BusyError,
    CalculusError,
    CompilerError,
    Diagnostic,
    ExpectationError,
    LocationError,
    LoweringError,
    ParseError,
    PartitionError,
    PipelineError,
    Place,
    PlanError,
    ProgramTooLargeError,
    PropagationError,
    ShardcoreError,
    SimulationError,
    VerificationError,
)
from shardcore.explain import Explained, explain
from shardcore.gspmd import HloSharding
from shardcore.partition import Partitioned, Proof, prove
from shardcore.plan import Plan, plan
from shardcore.remat import Remat, remat
from shardcore.rules import (
    CostEstimate,
    PartitionRule,
    cost_rule,
    data_flow_edges,
    partition_rule,
    rule,
)
from shardcore.session import Evaluation, Session
from shardcore.shardy import SHARDY_VERSIONS
from shardcore.why import WHY_NOT, Why, WhyNot

__all__ = [
    "DIAGNOSTICS",
    "SHARDY_VERSIONS",
    "WHY_NOT",
    "AnnotatedProgram",
    "AxisRef",
    "Block",
    "BusyError",
    "CacheInfo",
    "CalculusError",
    "Comparison",
    "CompilerError",
    "Cost",
    "CostEstimate",
    "DataFlowEdge",
    "Diagnostic",
    "Diff",
    "DimSharding",
    "Evaluation",
    "ExpectationError",
    "Explained",
    "Explainer",
    "FactorTable",
    "Figures",
    "HloSharding",
    "LocationError",
    "LoweringError",
    "Mesh",
    "MeshAxis",
    "Module",
    "Op",
    "OpShardingRule",
    "Origin",
    "Originals",
    "ParseError",
    "PartitionError",
    "PartitionRule",
    "Partitioned",
    "PassManager",
    "PipelineError",
    "Place",
    "Plan",
    "PlanError",
    "Port",
    "ProgramTooLargeError",
    "Proof",
    "PropagationError",
    "Remat",
    "ReshardPlans",
    "Result",
    "Session",
    "SessionProgram",
    "ShardcoreError",
    "SimulationError",
    "StrategyProblem",
    "StrategySolution",
    "TensorSharding",
    "Value",
    "VerificationError",
    "Why",
    "WhyNot",
    "__version__",
    "cache_info",
    "clear_caches",
    "compare",
    "cost",
    "cost_rule",
    "data_flow_edges",
    "diff",
    "explain",
    "import_hlo_shardings",
    "partition_rule",
    "plan",
    "prove",
    "remat",
    "rule",
]


def __getattr__(name: str) -> _ModuleType:
    # `shardcore.jax` loads JAX, so users import it themselves.
    if name == "jax":
        return _import_module("shardcore.jax")
    raise AttributeError(f"module 'shardcore' has no attribute {name!r}")
