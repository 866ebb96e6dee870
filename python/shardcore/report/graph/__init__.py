"""The computation graph of a completed program, drawn with shardings.

====================  ==========================================================================
:mod:`~.model`        tensors and ops as nodes, and the edges between them
:mod:`~.repeated`     repeated layers as one
:mod:`~.nearby`       what is near a value
:mod:`~.dot`          as text for Graphviz
:mod:`~.layout`       places of nodes, by ``fast-sugiyama``
:mod:`~.svg`          as a picture
====================  ==========================================================================

Source: the figures of "GSPMD: General and Scalable Parallelization for ML Computation Graphs".
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from shardcore import files
from shardcore.bounded import shown
from shardcore.report.graph.model import Graph, build
from shardcore.report.graph.nearby import near
from shardcore.report.graph.repeated import fold

if TYPE_CHECKING:
    from shardcore._core import Result

__all__ = ["Graph", "graph"]

_WRITERS = {".dot": Graph.dot, ".gv": Graph.dot, ".svg": Graph.svg}


def graph(
    result: Result,
    path: str | os.PathLike[str] | None = None,
    *,
    around: str | None = None,
    hops: int = 3,
    folds: bool = True,
) -> Graph:
    """Return the computation graph, and write it; see :meth:`shardcore.Result.graph`."""
    write = None
    if path is not None:
        write = _WRITERS.get(Path(path).suffix.lower())
        if write is None:
            raise ValueError(
                f"a graph is written to a .svg, .dot or .gv file, not to {shown(Path(path).name)}"
            )
    if isinstance(hops, bool) or not isinstance(hops, int) or hops < 0:
        raise ValueError(f"hops is a number of ops, 0 or more, not {shown(hops)}")
    whole = build(result)
    drawn = whole if around is None else near(whole, around, hops)
    if folds and around is None:
        drawn = fold(drawn)
    if path is not None and write is not None:
        files.write(path, write(drawn))
    return drawn
