"""The computation graph of a propagated program, drawn with shardings.

====================  ==========================================================================
:mod:`~.model`        tensors and ops as nodes, and the edges between them
:mod:`~.repeated`     merges repeated layers
:mod:`~.chains`       merges chains of elementwise ops
:mod:`~.grouped`      merges groups of ops
:mod:`~.naming`       which groups there are: scopes, source lines, ...
:mod:`~.folding`      which of these is done, so that a graph can be read
:mod:`~.nearby`       what is near a value, and what is in a scope
:mod:`~.dot`          as text for Graphviz
:mod:`~.ordering`     rows of nodes, and the order in each of them
:mod:`~.layout`       places of nodes
:mod:`~.rows`         places along the rows of a layout
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
from shardcore.expected import expect
from shardcore.report.graph.folding import MAX_NODES, fit
from shardcore.report.graph.model import Graph, build
from shardcore.report.graph.nearby import inside, near

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
    scope: str | None = None,
    folds: bool = True,
    max_nodes: int = MAX_NODES,
) -> Graph:
    """Return the computation graph, and write it; see :meth:`shardcore.Result.graph`."""
    write = None
    if path is not None:
        write = _WRITERS.get(Path(path).suffix.lower())
        if write is None:
            raise ValueError(
                f"a graph is written to a .svg, .dot or .gv file, not to {shown(Path(path).name)}"
            )
    for text in (around, scope):
        expect(text, str, type(None))
    _check_count("hops", "ops", hops)
    _check_count("max_nodes", "tensors and ops", max_nodes)
    if around is not None and scope is not None:
        raise ValueError("a graph is drawn around a value or of a scope, not both")
    whole = build(result)
    if around is not None:
        drawn = near(whole, around, hops)
    else:
        drawn = whole if scope is None else inside(whole, scope)
        drawn = fit(drawn, max_nodes) if folds else drawn
    if path is not None and write is not None:
        files.write(path, write(drawn))
    return drawn


def _check_count(name: str, what: str, count: int) -> None:
    if isinstance(count, bool) or not isinstance(count, int) or count < 0:
        raise ValueError(f"{name} is a number of {what}, 0 or more, not {shown(count)}")
