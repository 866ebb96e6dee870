"""Sharding rules of ops: which dims of operands and results are the same.

The ops of StableHLO have theirs built in; :func:`registered` lists them. Ops of your own get one
from a string or a function::

    shardcore.rule("my.matmul", "i k, k j -> i j")

    @shardcore.rule("my.pool")
    def pool(signature):
        return "batch ... -> batch ..." if signature.attributes["keep"] else None

A rule given at run time goes before the built-in one. Ops that only pass values on, through regions
or as they are, have data-flow edges instead: :func:`data_flow_edges`.
"""

from shardcore.rules.edges import EdgeGroup, data_flow_edges
from shardcore.rules.registry import Signature, TensorType, registered, rule, unregister

__all__ = [
    "EdgeGroup",
    "Signature",
    "TensorType",
    "data_flow_edges",
    "registered",
    "rule",
    "unregister",
]
