"""The calculus of sharded arrays: what devices hold, what collectives cost, how to multiply.

========================  =====================================================================
:mod:`~.notation`         ``A[I_X, J_Y] {U_Z}``: parse, print, local shapes, bytes
:mod:`~.partition_spec`   conversion to and from JAX's notation, ``P("X", None)``
:mod:`~.spellings`        parses an array in any of the notations
:mod:`~.pasted`           reads what JAX prints of its shardings
:mod:`~.blocks`           which block of an array each device of a mesh holds
:mod:`~.hardware`         figures of chips, each with its source; users add their own in TOML
:mod:`~.topology`         how mesh axes lie on physical axes: rings and lines
:mod:`~.physical_axes`    mesh axes that share a physical axis
:mod:`~.sub_axes`         collectives along a sub-axis of a mesh axis
:mod:`~.collectives`      what a collective does to a sharding, and its transpose
:mod:`~.collective_time`  the time of a collective, its bound, and the formula
                          (:mod:`~.rates` has the rates of links, :mod:`~.switches` is for GPUs)
:mod:`~.message_sizes`    bandwidth by the size of messages, from figures and measurements
:mod:`~.contraction`      ``A[I, J_X] * B[J, K] -> C[I, K]``: an einsum and its case
:mod:`~.reshard`          sequences of collectives from one sharding to another
:mod:`~.matmul`           every strategy for a sharded matmul, and the best one
                          (:mod:`~.plan` computes their costs, :mod:`~.strategy` has the results)
:mod:`~.chain`            strategies for a chain of matmuls
:mod:`~.crossover`        the sizes at which the best strategy changes
:mod:`~.numbers`          products on arrays: what every device holds at each step
:mod:`~.exchange`         collectives on arrays, and their matrices
:mod:`~.rings`            collectives on a ring hop by hop, as text and as animated SVG
                          (:mod:`~.rings_svg` draws them)
:mod:`~.programs`         a product as StableHLO, to be partitioned
                          (:mod:`~.collective_matmul` is a product and a collective as one loop,
                          :mod:`~.stablehlo_lines` writes the ops)
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
from shardcore.calculus.exchange import broadcast_matrix, matrix_of, perform, reduce_matrix
from shardcore.calculus.hardware import Hardware, hardware, hardware_names
from shardcore.calculus.matmul import best_strategies, matmul_strategies
from shardcore.calculus.message_sizes import SizeTime, by_size, measured
from shardcore.calculus.notation import NamedArray, NamedDim
from shardcore.calculus.numbers import Held, Run, outer_products, run
from shardcore.calculus.partition_spec import UNCONSTRAINED, Spec, from_spec, to_jax, to_spec
from shardcore.calculus.programs import program
from shardcore.calculus.rings import Ring, Send, ring
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
    "Held",
    "NamedArray",
    "NamedDim",
    "Ring",
    "Run",
    "Send",
    "SizeTime",
    "Spec",
    "Strategy",
    "TimeOptions",
    "Topology",
    "best_strategies",
    "block_table",
    "blocks",
    "bound_changes",
    "broadcast_matrix",
    "by_size",
    "chain_crossovers",
    "chain_strategies",
    "crossovers",
    "deferred",
    "estimate",
    "from_spec",
    "hardware",
    "hardware_names",
    "matmul_strategies",
    "matrix_of",
    "measured",
    "outer_products",
    "pairwise",
    "parse_any",
    "parse_product",
    "parse_spec",
    "perform",
    "program",
    "reduce_matrix",
    "ring",
    "run",
    "scatter_choices",
    "snippet",
    "to_jax",
    "to_spec",
]
