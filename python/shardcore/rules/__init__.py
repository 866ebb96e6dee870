"""Sharding rules of ops: which dims of operands and results are the same factor.

The ops of StableHLO have built-in rules; :func:`registered` lists them. Register a rule for another
op as a string or a function::

    shardcore.rule("my.matmul", "i k, k j -> i j")

    @shardcore.rule("my.pool")
    def pool(signature):
        return "batch ... -> batch ..." if signature.attributes["keep"] else None

A registered rule has precedence over the built-in one. Ops that only forward values, through
regions or directly, have data-flow edges instead: :func:`data_flow_edges`. How a custom call is
computed on shards is stated by :func:`partition_rule`, and what it costs by :func:`cost_rule`.
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
