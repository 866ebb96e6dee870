"""shardcore completes the sharding of every value of a tensor program, exactly as Shardy does."""

from __future__ import annotations

from shardcore._core import (
    AxisRef,
    DimSharding,
    FactorTable,
    Mesh,
    MeshAxis,
    Module,
    OpShardingRule,
    PassManager,
    Result,
    TensorSharding,
    Value,
    __version__,
)
from shardcore.errors import (
    CalculusError,
    Diagnostic,
    ParseError,
    PipelineError,
    Place,
    ProgramTooLargeError,
    PropagationError,
    ShardcoreError,
    VerificationError,
)
from shardcore.gspmd import HloSharding, import_hlo_shardings
from shardcore.rules import data_flow_edges, rule

__all__ = [
    "AxisRef",
    "CalculusError",
    "Diagnostic",
    "DimSharding",
    "FactorTable",
    "HloSharding",
    "Mesh",
    "MeshAxis",
    "Module",
    "OpShardingRule",
    "ParseError",
    "PassManager",
    "PipelineError",
    "Place",
    "ProgramTooLargeError",
    "PropagationError",
    "Result",
    "ShardcoreError",
    "TensorSharding",
    "Value",
    "VerificationError",
    "__version__",
    "data_flow_edges",
    "import_hlo_shardings",
    "rule",
]
