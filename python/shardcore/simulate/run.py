"""Runs bodies on a set of devices."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from shardcore.errors import ShardcoreError
from shardcore.simulate.mistakes import mistake, too_large
from shardcore.simulate.site import Body, Step
from shardcore.simulate.values import Array, Value, rows

if TYPE_CHECKING:
    from shardcore._core import Op

__all__ = ["Grid", "Run"]


class Grid(NamedTuple):
    """The devices of a program: ``r * partitions + p`` is partition ``p`` of replica ``r``."""

    replicas: int
    partitions: int


@dataclass(frozen=True)
class Run:
    """Devices that run the same ops together.

    Where devices take different branches, each set of devices has its own run, and values have rows
    for these devices only.
    """

    devices: Array
    """The ids of the devices, one for each row of the values that differ between them."""
    grid: Grid
    filename: str
    manual: frozenset[str] = frozenset()
    """The mesh axes that are manual at the running ops."""
    watch: Callable[[Op, Sequence[Value]], None] | None = None
    """Called with each op after it has run, and its results."""

    def subset(self, index: Array) -> Run:
        """The run of the devices in the rows ``index``."""
        return replace(self, devices=self.devices[index])

    def call(
        self, body: Body, arguments: Sequence[Value], captured: Mapping[int, Value] | None = None
    ) -> list[Value]:
        """Run ``body`` and return its results; ``captured`` has the captured values by slot."""
        places = dict(zip(body.arguments, arguments, strict=True))
        for place in body.captured:
            places[place] = (captured or {})[place]
        step = None
        try:
            for step in body.steps:
                found = step.kernel(self, *[places[place] for place in step.operands])
                if len(step.results) == 1:
                    if step.shape is not None and found.shape[1:] != step.shape:
                        raise ValueError(
                            f"its result has the shape {found.shape[1:]}, not {step.shape}"
                        )
                    places[step.results[0]] = found
                else:
                    places.update(zip(step.results, found, strict=True))
                if self.watch is not None:
                    self.watch(step.op, [places[place] for place in step.results])
                for place in step.dead:
                    del places[place]
        except ShardcoreError:
            raise
        except MemoryError as error:
            # NumPy's message says how large the array was that could not be allocated.
            why = str(error) or "the program needs more memory than there is"
            raise too_large(f"{_name(step, body)} cannot be computed: {why}") from None
        except RecursionError:
            raise self._failed(step, body, "functions call each other too deeply") from None
        except Exception as error:
            raise self._failed(step, body, str(error) or type(error).__name__) from error
        return [places[place] for place in body.returned]

    def _failed(self, step: Step | None, body: Body, why: str) -> ShardcoreError:
        assert step is not None
        message = f"{step.op.name} cannot be computed: {why}"
        return mistake("invalid-op", message, None, (step.op, *body.ops), self.filename)

    def each(
        self,
        body: Body,
        arguments: Sequence[Array],
        captured: Mapping[int, Value],
        row: Array | None,
    ) -> list[Array]:
        """``body``, a function of scalars, applied to each element of equally long vectors.

        ``row`` gives for each element the row of this run that it belongs to; ``None`` if the
        arguments are the same on all devices.
        """
        size = len(arguments[0])
        if row is None:
            row = np.zeros(size, np.intp)
        inner = self.subset(row if len(self.devices) > 1 else np.zeros(size, np.intp))
        inner = inner if inner.watch is None else replace(inner, watch=None)
        mine = {place: rows(value, row) for place, value in captured.items()}
        if size == 1:
            return inner.call(body, arguments, mine)
        found: list[Any] = inner.call(body, arguments, mine)
        return [np.broadcast_to(value, (size,)) for value in found]


def _name(step: Step | None, body: Body) -> str:
    return step.op.name if step is not None else body.ops[0].name
