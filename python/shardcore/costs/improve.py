"""Compiler passes on collectives that may run before a program is counted."""

from __future__ import annotations

import copy
import re
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary, WeakValueDictionary

from shardcore._core import collective_passes
from shardcore.bounded import shown

if TYPE_CHECKING:
    from shardcore.partition.partitioned import Partitioned

PASSES = (
    "all-gather-broadcast-reorder",
    "all-gather-dynamic-slice-simplifier",
    "all-reduce-folder",
    "all-reduce-reassociate",
    "all-reduce-to-reduce-scatter",
    "fuse-reshards",
    "hoist-loop-invariant-collectives",
    "merge-equal-collectives",
    "remove-unused-ops",
    "scatter-add-folder",
    "top-k-of-shards",
    "while-loop-all-reduce-code-motion",
)
"""Passes that keep the meaning of a per-device program, and send less."""

_alive: WeakValueDictionary[tuple[int, str], Partitioned] = WeakValueDictionary()
"""Programs that are in use, by the program before the passes, and the passes."""
_before: WeakKeyDictionary[Partitioned, Partitioned] = WeakKeyDictionary()
"""The programs before the passes, which live as long as those after them: so their ids are not
reused, and others that count the same result find them."""

_OPTIONS = re.compile(r"\{[^{}]*\}")


def check_passes(text: str) -> str:
    """Return ``text``, a comma-separated list of passes, if all of them are known.

    Raises:
        ValueError: a pass is not among :data:`PASSES`.
    """
    if not isinstance(text, str):
        raise TypeError(f"expected a list of passes as text, not {type(text).__name__}")
    for name in _OPTIONS.sub("", text).split(","):
        if name.strip() not in PASSES:
            raise ValueError(f"expected some of {', '.join(PASSES)}, got {shown(name.strip())}")
    return text


def passes_of(compiler: str, improve: str | None) -> str:
    """The passes of a modelled compiler, and the user's after them."""
    passes = [collective_passes(compiler), "" if improve is None else check_passes(improve)]
    return ",".join(filter(None, passes))


def improved(local: Partitioned, passes: str) -> Partitioned:
    """Return ``local`` after ``passes``, a comma-separated list, in this order; a copy, unless they
    ran on it already.

    Raises:
        PipelineError: a pass has no such option.
    """
    if passes == local.passes:
        return local
    key = (id(local), passes)
    known = _alive.get(key)
    if known is None:
        known = _alive[key] = _run(local, passes)
        _before[known] = local
    return known


def _run(local: Partitioned, passes: str) -> Partitioned:
    made = type(local)(
        local.source,
        copy.copy(local.module),
        local.policy,
        local.num_devices,
        local.origin,
        local.result,
        local.meshes,
    )
    made.keeps_ports, made.compiler = local.keeps_ports, local.compiler
    made.run_passes(passes)
    return made
