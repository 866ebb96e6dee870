"""Evaluates annotations: on the whole program, or on two programs with fewer layers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import fields, replace
from functools import cache, partial, reduce
from typing import TYPE_CHECKING, Any

from shardcore._core import Mesh
from shardcore.calculus.hardware import Hardware
from shardcore.costs import Cost
from shardcore.costs.compilers import compiler_of
from shardcore.errors import LocationError
from shardcore.plan.layers import value_names
from shardcore.plan.peaks import Peaks
from shardcore.plan.program import Sessions, plain
from shardcore.session import Evaluation, Session
from shardcore.session.evaluate import evaluate
from shardcore.session.targets import listed

if TYPE_CHECKING:
    from shardcore.pipeline.layers import Layers

Edit = Mapping[str, str]
"""``PartitionSpec``s by pattern."""

_CLOSE = 0.03
"""The allowed relative error of figures that are extrapolated from fewer layers."""
_WORTH = 0.7
"""The two smaller programs together may have at most this part of the whole program's ops."""
_COUNTED = (
    "collectives",
    "comm_bytes",
    "slowest_link_bytes",
    "argument_bytes",
    "output_bytes",
    "peak_bytes",
)


class Whole:
    """Evaluates on the whole program."""

    def __init__(
        self,
        sessions: Sessions,
        hardware: Hardware,
        executor: Executor | None,
        options: Mapping[str, Any],
    ) -> None:
        self._sessions = sessions
        self._hardware, self._executor, self._options = hardware, executor, options
        self.compiler = compiler_of(hardware, options.get("compiler"))
        """The compiler that is modelled."""

    def session(self, mesh: Mesh, edit: Edit) -> Session:
        """Return a session over ``mesh`` with ``edit`` applied."""
        return self._sessions[mesh]._copy(self._known(mesh, edit))

    def rows(self, mesh: Mesh, edits: Sequence[Edit]) -> Iterator[Evaluation]:
        """Yield the figures of each of ``edits`` over ``mesh``."""
        known = [self._known(mesh, edit) for edit in edits]
        return self._sessions[mesh].evaluate(known, self._hardware, self._executor, **self._options)

    def layers(self, mesh: Mesh, edit: Edit) -> Layers:
        """Return the layers of the program with ``edit``.

        Raises:
            PlanError: it has none (``no-layers``).
        """
        from shardcore.pipeline.layers import find_layers

        options = {name: at for name, at in self._options.items() if name != "keep_ports"}
        return find_layers(plain(self.session(mesh, edit)), self._hardware, **options)

    def _known(self, mesh: Mesh, edit: Edit) -> Edit:
        return edit


class _Part(Whole):
    """Evaluates, with live ranges, on a program that may lack some of the edited names."""

    @property
    def names(self) -> frozenset[str]:
        """The names of the program's values."""
        return value_names(self._sessions.module)

    def rows(self, mesh: Mesh, edits: Sequence[Edit]) -> Iterator[Evaluation]:
        known = [self._known(mesh, edit) for edit in edits]
        where = self._hardware, self._executor, None, self._options
        return evaluate(self._sessions[mesh], known, *where, with_ranges=True)

    def _known(self, mesh: Mesh, edit: Edit) -> Edit:
        known = ((self._names(mesh, target), text) for target, text in edit.items())
        return {target: text for target, text in known if target}

    def _names(self, mesh: Mesh, target: str) -> str:
        """``target``, reduced to the names that the program has."""
        return ", ".join(name for name in listed(target) if self._has(mesh, name))

    def _has(self, mesh: Mesh, name: str) -> bool:
        try:
            self._sessions[mesh].check_targets([name])
        except LocationError:
            return False
        return True


class Fewer:
    """Evaluates on two programs with fewer layers, the second with one layer more."""

    def __init__(self, small: _Part, large: _Part, layers: int) -> None:
        """Take the two programs, and how many layers the whole has more than the first."""
        self._small, self._large, self._layers = small, large, layers
        self.compiler = small.compiler
        self._peaks = Peaks(small.names, large.names, layers - 1)

    def session(self, mesh: Mesh, edit: Edit) -> Session:
        """Return a session for the first program."""
        return self._small.session(mesh, edit)

    def rows(self, mesh: Mesh, edits: Sequence[Edit]) -> Iterator[Evaluation]:
        """Yield the figures of each edit, extrapolated to the whole program."""
        rows = zip(self._small.rows(mesh, edits), self._large.rows(mesh, edits), strict=True)
        for edit, (small, large) in zip(edits, rows, strict=True):
            yield self._extended(edit, small, large)

    def layers(self, mesh: Mesh, edit: Edit) -> Layers | None:
        """Return the layers of the whole program: all but the first are what the second program
        has more; ``None`` if that is nothing.

        Raises:
            PlanError: it has none (``no-layers``).
        """
        small, large = (each.layers(mesh, edit) for each in (self._small, self._large))
        found = self._joined(small, large, 1, False)
        is_more = len(large.layers) == len(small.layers) + 1 and found.layers[-1].seconds
        return found if is_more else None

    def _joined(self, small: Layers, large: Layers, micro_batches: int, once: bool) -> Layers:
        from shardcore.pipeline.part import Part

        small, large = (each.split(micro_batches, once=once) for each in (small, large))
        inside, more = (reduce(Part.__add__, each.layers) for each in (small, large))
        one = (more - inside).at_least_nothing()
        others = [one] * (len(small.layers) - 1)
        first = reduce(Part.__sub__, others, inside).at_least_nothing()
        layers = (first, *others, *[one] * self._layers)
        split = cache(partial(self._joined, small, large))
        return replace(large, layers=layers, in_micro_batches=split)

    def _extended(self, edit: Edit, small: Evaluation, large: Evaluation) -> Evaluation:
        error = small.error or large.error
        if error is not None:
            return Evaluation(edit, error=error)
        figures: dict[str, Any] = {}
        for field in fields(Evaluation):
            one, other = getattr(small, field.name), getattr(large, field.name)
            if isinstance(one, (int, float)) and other is not None:
                figure = one + max(other - one, 0) * self._layers
                figures[field.name] = int(figure) if field.name in _COUNTED else figure
        if small.live_ranges is not None and large.live_ranges is not None:
            figures["peak_bytes"] = self._peaks.of(small.live_ranges, large.live_ranges)
        return Evaluation(edit, **figures)


def are_worth_it(ops: int, of: int) -> bool:
    """Return whether programs with fewer layers, of ``ops`` ops together, save enough of those of
    the whole program."""
    return ops <= of * _WORTH


def fewer_layers(
    programs: tuple[Sessions, Sessions],
    layers: int,
    mesh: Mesh,
    alone: Cost,
    hardware: Hardware,
    executor: Executor | None,
    options: Mapping[str, Any],
) -> Fewer | None:
    """Return a scorer on fewer layers; ``None`` if its figures disagree with ``alone``.

    Args:
        programs: sessions of two programs with fewer layers.
        layers: how many layers more than the first the whole program has.
        mesh: a mesh to compare them over.
        alone: the cost of the whole program without annotations, over ``mesh``.
        hardware: the chip.
        executor: where evaluations run.
        options: those of :func:`shardcore.cost`.
    """
    small, large = (_Part(each, hardware, executor, options) for each in programs)
    fewer = Fewer(small, large, layers)
    [row] = fewer.rows(mesh, [{}])
    if row.compute_seconds is None or row.argument_bytes is None:
        return None
    is_close = (
        abs(row.compute_seconds / max(alone.compute_seconds, 1e-30) - 1) <= _CLOSE
        and abs(row.argument_bytes / max(alone.argument_bytes, 1) - 1) <= _CLOSE
    )
    return fewer if is_close else None
