"""Kernels that the host launches one by one, beside those that it replays as CUDA graphs.

Megatron-LM captures parts of a layer (``cuda_graph_scope``): ``attn``, attention with its norm;
``moe_router``, the router with its norm and the shared expert; ``moe_preprocess``, what sorts
tokens by expert. Layers have scopes of these names. The exchanges of tokens and the experts are in
no graph, as the sizes of their arrays are read by the host.
"""

from __future__ import annotations

from collections.abc import Collection

from shardcore.calculus.hardware import Hardware
from shardcore.costs.compilers import compiler_of
from shardcore.costs.figures import WorkKind
from shardcore.costs.scopes import scope_of
from shardcore.partition.partitioned import Partitioned


def launched_share(program: Partitioned, chip: Hardware, graphs: Collection[str]) -> float:
    """Return the share of the kernels of ``program`` that are in none of the scopes ``graphs``."""
    if not graphs:
        return 1.0
    figures = program.figures(compiler_of(chip, None), chip.facts)
    kernels = [len(WorkKind.of(row).kernels or ()) for row in figures.work()[0]]
    launched = total = 0
    for row, stack in zip(figures.ops(), figures.name_stacks()[0], strict=True):
        runs = row["count"] * kernels[row["kind"]]
        total += runs
        if not set(scope_of(stack)[0].split("/")) & set(graphs):
            launched += runs
    return launched / total if total else 1.0
