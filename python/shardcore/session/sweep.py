"""All combinations of shardings and meshes, best first."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from shardcore.errors import Diagnostic, ProgramTooLargeError
from shardcore.session.evaluate import Evaluation
from shardcore.session.session import Session

if TYPE_CHECKING:
    from shardcore._core import Mesh, Module
    from shardcore.calculus.hardware import Hardware

MOST_COMBINATIONS = 1 << 20
"""How many combinations are tried at most."""


@dataclass(frozen=True)
class SweepRow:
    """One combination."""

    mesh: Mesh | None
    """The mesh; ``None`` for the program's own mesh."""
    row: Evaluation
    """The figures of the combination."""

    def record(self) -> dict[str, Any]:
        """Return the row as plain data."""
        return {"mesh": None if self.mesh is None else str(self.mesh), **self.row.record()}


def sweep(
    module: Module,
    choices: Mapping[str, Sequence[object]],
    meshes: Iterable[Mesh] = (),
    hardware: str | Hardware = "tpu-v5p",
    *,
    executor: Executor | None = None,
    progress: Callable[[str, float], object] | None = None,
    **options: Any,
) -> list[SweepRow]:
    """Return a row for each mesh and each combination of shardings, the shortest step first.

    Args:
        module: the program.
        choices: for each target of :meth:`Session.set` the shardings to try.
        meshes: the meshes to try, each in place of the program's only mesh.
        hardware: the chip.
        executor: as for :meth:`Session.evaluate`.
        progress: called with the current step and the fraction done.
        **options: those of :func:`shardcore.cost`.

    Raises:
        CalculusError: the chip is unknown (``unknown-hardware``).
        LocationError: a target denotes no argument, result or value.
        ProgramTooLargeError: there are more than :data:`MOST_COMBINATIONS` combinations.
        VerificationError: the program cannot use one of the meshes.
    """
    own: list[Mesh | None] = list(meshes) or [None]
    count = math.prod(map(len, choices.values()))
    if count * len(own) > MOST_COMBINATIONS:
        message = f"{count * len(own)} combinations are more than {MOST_COMBINATIONS}"
        raise ProgramTooLargeError(Diagnostic("program-too-large", message, "try fewer at a time"))
    if isinstance(hardware, str):
        # One error instead of one for each combination; the calculus is not imported before.
        from shardcore.calculus.hardware import hardware as find

        find(hardware, options.get("hardware_file"))
    sessions = [Session(module, mesh=mesh) for mesh in own]
    sessions[0].check_targets(choices)
    edits = [
        dict(zip(choices, chosen, strict=True)) for chosen in itertools.product(*choices.values())
    ]
    rows: list[SweepRow] = []
    for place, (mesh, session) in enumerate(zip(own, sessions, strict=True)):

        def report(what: str, fraction: float, place: int = place) -> None:
            if progress is not None:
                progress(what, (place + fraction) / len(own))

        found = session.evaluate(edits, hardware, executor, progress=report, **options)
        rows += (SweepRow(mesh, row) for row in found)
    return sorted(rows, key=_seconds)


def _seconds(row: SweepRow) -> float:
    seconds = row.row.step_seconds
    return math.inf if seconds is None else seconds
