"""Explains the collectives of a compiled program by source lines and annotations.

=======================  ========================================================================
:mod:`~.hlo_text`        reads the text of a compiled module
:mod:`~.device_groups`   the groups of devices of a collective, in all notations
:mod:`~.reach`           the arguments a value is computed from, the results it leads to
:mod:`~.compiled`        the records of compiled collectives and their parts
:mod:`~.calls`           what the entry of a module runs, and how often
:mod:`~.neighbours`      metadata of the collective and of what is beside it
:mod:`~.concatenated`    collectives of arrays that a compiler concatenated
:mod:`~.collectives`     all collectives of a module
:mod:`~.planned`         the collectives of our plan
:mod:`~.matching`        which of these are which of those
:mod:`~.attribution`     both brought together
:mod:`~.explained`       :class:`Explained`, the answer
=======================  ========================================================================
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from shardcore.explain.explained import CHANGES, REASONS, Explained

if TYPE_CHECKING:
    from pathlib import Path

    from shardcore._core import Result
    from shardcore.calculus.hardware import Hardware

__all__ = ["CHANGES", "REASONS", "Explained", "explain"]

_CHIPS = {"tpu": ("tpu-v5e", None), "gpu": ("h100", None), "cpu": ("tpu-v5e", "xla-cpu")}
"""For each platform the chip for which edits are ranked, and the compiler if it is not that for the
chip."""


def explain(
    compiled: Any,
    program: Any = None,
    profile: str | os.PathLike[str] | None = None,
    *,
    hardware: str | Hardware | None = None,
    hardware_file: str | Path | None = None,
    filename: str | None = None,
) -> Explained:
    """Return where the collectives of a compiled program come from.

    Args:
        compiled: what ``jax.jit(f).lower(...).compile()`` returns; the text of a compiled module,
            as from ``compiled.as_text()``; its bytes, or those of an ``HloProto``; the path of a
            file with one of these, gzipped or not; or the path of a folder that XLA dumped to.
        program: the program that was compiled: a :class:`Module`, a :class:`Result`, or what
            ``shardcore.jax.lower``, ``.propagate`` or ``jax.jit(f).lower`` return. Without it, ops,
            lines and scopes come from the metadata only.
        profile: a trace of a run: ``.xplane.pb``, a Perfetto trace, or a folder of these.
        hardware: the chip for which edits are ranked; by default one that the compiler is for.
        hardware_file: as for :func:`shardcore.cost`.
        filename: the name of the dump in errors.

    Raises:
        ParseError: the dump is no HLO, or is cut off (``syntax``), or is a proto that cannot be
            read (``bytecode``).
        LocationError: it is the dump of another program (``other-program``).
        ShardcoreError: as for :meth:`Module.propagate` and :func:`shardcore.cost`; or the trace is
            damaged (``invalid-trace``).
        OSError: a file cannot be read, or its compressed contents are damaged.
        TypeError: ``compiled`` or ``program`` is none of these.
    """
    from shardcore.explain.attribution import attributed, check_same_program, platform_of
    from shardcore.explain.hlo_text import read
    from shardcore.explain.inputs import completed, dump_text

    text, name = dump_text(compiled, filename)
    modules = read(text, name)
    times = None
    if profile is not None:
        from shardcore.profiles.profile import read_profile

        times = read_profile(profile)
    platform = platform_of(text)
    cost, places = None, frozenset[str]()
    result: Result | None = completed(program)
    if result is not None:
        places = check_same_program(modules, result)
        chip, compiler = _CHIPS[platform]
        cost = result.cost(hardware or chip, hardware_file=hardware_file, compiler=compiler)
    return attributed(modules, platform, cost, places, times)
