"""The calculus of sharded arrays: what devices hold, what collectives cost, how to multiply.

========================  =====================================================================
:mod:`~.notation`         ``A[I_X, J_Y] {U_Z}``: parse, print, local shapes, bytes
:mod:`~.partition_spec`   the same as JAX writes it, ``P("X", None)``
:mod:`~.spellings`        an array in whichever notation it is written
:mod:`~.blocks`           which block of an array each device of a mesh holds
:mod:`~.hardware`         figures of chips, each with its source; users add their own in TOML
:mod:`~.topology`         how mesh axes lie on physical axes: rings and lines
:mod:`~.sub_axes`         collectives along a part of a mesh axis
:mod:`~.collectives`      what a collective does to a sharding, and its transpose
:mod:`~.collective_time`  how long it takes, what bounds it, and the formula
                          (:mod:`~.rates` is what that depends on, :mod:`~.switches` is for GPUs)
:mod:`~.contraction`      ``A[I, J_X] * B[J, K] -> C[I, K]``: an einsum and its case
:mod:`~.reshard`          every way from one sharding to another
:mod:`~.matmul`           every strategy for a sharded matmul, and the best one
                          (:mod:`~.plan` prices them, :mod:`~.strategy` is what comes out)
:mod:`~.chain`            the same for matmuls one after the other
:mod:`~.crossover`        the sizes at which the answer changes
:mod:`~.snippets`         a JAX program that runs and times a collective
========================  =====================================================================

Nothing here is imported with ``import shardcore``.

Source: "How to Scale Your Model", chapter 3, "Sharded Matrices and How to Multiply Them"; the
figures and formulas for GPUs, chapter 12. ``docs/calculus.md`` lists where this departs from it.
"""

from __future__ import annotations

from shardcore.calculus.blocks import block_table, blocks
from shardcore.calculus.chain import ChainStrategy, chain_strategies
from shardcore.calculus.collective_time import Estimate, TimeOptions, estimate
from shardcore.calculus.collectives import Collective, deferred, scatter_choices
from shardcore.calculus.contraction import Contraction, pairwise, parse_product
from shardcore.calculus.crossover import bound_changes, chain_crossovers, crossovers
from shardcore.calculus.hardware import Hardware, hardware, hardware_names
from shardcore.calculus.matmul import best_strategies, matmul_strategies
from shardcore.calculus.notation import NamedArray, NamedDim
from shardcore.calculus.partition_spec import UNCONSTRAINED, Spec, from_spec, to_jax, to_spec
from shardcore.calculus.snippets import snippet
from shardcore.calculus.spellings import parse_any, parse_spec
from shardcore.calculus.strategy import Strategy
from shardcore.calculus.topology import Topology

__all__ = [
    "UNCONSTRAINED",
    "ChainStrategy",
    "Collective",
    "Contraction",
    "Estimate",
    "Hardware",
    "NamedArray",
    "NamedDim",
    "Spec",
    "Strategy",
    "TimeOptions",
    "Topology",
    "best_strategies",
    "block_table",
    "blocks",
    "bound_changes",
    "chain_crossovers",
    "chain_strategies",
    "crossovers",
    "deferred",
    "estimate",
    "from_spec",
    "hardware",
    "hardware_names",
    "matmul_strategies",
    "pairwise",
    "parse_any",
    "parse_product",
    "parse_spec",
    "scatter_choices",
    "snippet",
    "to_jax",
    "to_spec",
]
