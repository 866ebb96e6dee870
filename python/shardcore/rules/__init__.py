"""Sharding rules of ops: which dims of operands and results belong to the same factor.

The ops of StableHLO have built-in rules; :func:`registered` lists them. Register a rule for another
op as a string or a function::

    shardcore.rule("my.matmul", "i k, k j -> i j")

    @shardcore.rule("my.pool")
    def pool(signature):
        return "batch ... -> batch ..." if signature.attributes["keep"] else None

A registered rule has precedence over a built-in one. Ops that pass values through unchanged,
directly or through regions, have data-flow edges instead: :func:`data_flow_edges`.
:func:`partition_rule` states how a custom call is computed on shards, and :func:`cost_rule` what it
costs.
"""

from shardcore.rules.costs import CostEstimate, cost_rule, unregister_cost_rule
from shardcore.rules.edges import EdgeGroup, data_flow_edges
from shardcore.rules.registry import Signature, TensorType, registered, rule, unregister
from shardcore.rules.shards import PartitionRule, partition_rule, unregister_partition_rule

__all__ = [
    "CostEstimate",
    "EdgeGroup",
    "PartitionRule",
    "Signature",
    "TensorType",
    "cost_rule",
    "data_flow_edges",
    "partition_rule",
    "registered",
    "rule",
    "unregister",
    "unregister_cost_rule",
    "unregister_partition_rule",
]
