"""shardcore completes the sharding of every value of a tensor program, exactly as Shardy does."""

from __future__ import annotations

from shardcore._core import (
    AxisRef,
    DimSharding,
    Mesh,
    MeshAxis,
    OpShardingRule,
    TensorSharding,
    __version__,
)
from shardcore.errors import (
    Diagnostic,
    ParseError,
    PipelineError,
    Place,
    ProgramTooLargeError,
    PropagationError,
    ShardcoreError,
    VerificationError,
)
from shardcore.rules import data_flow_edges, rule

__all__ = [
    "AxisRef",
    "Diagnostic",
    "DimSharding",
    "Mesh",
    "MeshAxis",
    "OpShardingRule",
    "ParseError",
    "PipelineError",
    "Place",
    "ProgramTooLargeError",
    "PropagationError",
    "ShardcoreError",
    "TensorSharding",
    "VerificationError",
    "__version__",
    "data_flow_edges",
    "rule",
]
