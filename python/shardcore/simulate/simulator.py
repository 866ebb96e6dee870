"""The public interface: runs a program on arrays."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence, Sized
from operator import index
from typing import TYPE_CHECKING, Any

import numpy as np

from shardcore._core import Module
from shardcore.bounded import shown
from shardcore.expected import expect
from shardcore.simulate.dtypes import (
    DTYPES,
    iinfo,
    in_type,
    is_complex,
    is_float,
    is_integer,
    widened,
)
from shardcore.simulate.memory import peak_bytes
from shardcore.simulate.mistakes import mistake
from shardcore.simulate.order import Order
from shardcore.simulate.prepare import Program
from shardcore.simulate.run import Grid, Run
from shardcore.simulate.site import TensorType
from shardcore.simulate.values import Array, Value, spread

if TYPE_CHECKING:
    from shardcore._core import Op
    from shardcore.errors import SimulationError

__all__ = ["Simulator"]

MOST_DEVICES = 1 << 24
"""The most devices that are simulated at once."""


class Simulator:
    """A module that is prepared for any number of runs.

    Args:
        module: the program.
        function: the function to run, by default the entry function.
        dtype: compute floats that are narrower in this type, ``"f32"`` or ``"f64"``, and complex
            numbers of such floats: results have it, and nothing is rounded to a narrower type,
            except by ``reduce_precision``. Constants keep their values. Ops on bits keep their
            meaning: ``bitcast_convert`` reads and writes the bits of the program's own types, and
            rounds its operand to them first. By default each type is computed as it is.
        order: the order of the terms of the sums of floats, which are rounded otherwise in another
            one; by default that of NumPy.

    Raises:
        ValueError: ``dtype`` is no such type.
        SimulationError: there is no such function (``unknown-symbol``), or it has an op that cannot
            be simulated (``unsupported-op``). Functions that it calls are prepared when they are
            first called.
    """

    def __init__(
        self,
        module: Module,
        function: str | None = None,
        *,
        dtype: str | None = None,
        order: Order | None = None,
    ) -> None:
        expect(module, Module)
        if function is not None:
            expect(function, str)
        self._attributes = module.attributes
        self._filename = module.filename
        self._program = Program(module, self._filename, widened(dtype), order)
        self.function = function or self._entry()
        body = self._program.body(self.function)
        if body is None:
            known = ", ".join(f"@{name}" for name in list(self._program.functions)[:6])
            hint = f"there is {known}" if known else None
            message = f"there is no function @{self.function} with a body"
            raise mistake("unknown-symbol", message, hint, (), self._filename)
        self._body = body
        self._op = self._program.functions[self.function]

    def _entry(self) -> str:
        names = list(self._program.functions)
        return "main" if "main" in names or not names else names[0]

    def __call__(
        self, *arrays: Any, devices: int | None = None, replicas: int | None = None
    ) -> list[Array]:
        """Run the program and return its results.

        Without ``devices`` it is run once, as a global program, whose manual computations run on
        all devices of their meshes. Arguments and results have the shapes in the program.

        With ``devices=n`` each of n devices runs it. An argument is an array of the shape in the
        program, the same for all devices, or has a leading dim of size n; results have that leading
        dim.

        Args:
            arrays: one for each argument: anything that ``numpy.asarray`` takes, of the program's
                element type or one that converts to it exactly.
            devices: the number of devices.
            replicas: the number of replicas; the devices of a replica are its partitions. By
                default ``mhlo.num_replicas`` of the module, or one.

        Raises:
            SimulationError: arguments do not fit (``invalid-argument``), a collective is not
                reached by all of its group (``diverging-collective``), a device of a group does not
                exist (``unknown-device``), an op cannot be simulated, or a loop
                has too many steps (``unsupported-op``).
            ProgramTooLargeError: there is no memory for a value.
        """
        return self.watched(None, *arrays, devices=devices, replicas=replicas)

    def watched(
        self,
        watch: Callable[[Op, Sequence[Value]], None] | None,
        *arrays: Any,
        devices: int | None = None,
        replicas: int | None = None,
    ) -> list[Array]:
        """Run the program, and call ``watch`` with each op that has run, and its results: arrays
        with a leading dim of devices, of size 1 where all have the same."""
        grid = self._grid(devices, replicas)
        count = grid.replicas * grid.partitions
        types = self._body.argument_types
        if len(arrays) != len(types):
            message = f"@{self.function} takes {len(types)} arguments, not {len(arrays)}"
            raise self._mistake(message)
        values = [
            self._argument(at, array, kind, devices)
            for at, (array, kind) in enumerate(zip(arrays, types, strict=True))
        ]
        run = Run(np.arange(count), grid, self._filename, watch=watch)
        with np.errstate(all="ignore"):
            found = run.call(self._body, values)
        return [_result(value, devices) for value in found]

    def peak_bytes(self, rows: Sequence[int] | None = None, devices: int = 1) -> int:
        """Return about how many bytes values take at once while the program runs, without its
        arguments.

        Args:
            rows: for each argument 1 if all devices have the same, else the number of devices;
                without it all have the same.
            devices: the number of devices.
        """
        rows = [1] * len(self._body.arguments) if rows is None else rows
        return peak_bytes(self._program, self._body, rows, devices)

    def _grid(self, devices: int | None, replicas: int | None) -> Grid:
        if devices is None:
            return Grid(1, 1)
        if replicas is None:
            replicas = int(self._attributes.get("mhlo.num_replicas", 1))
        devices, replicas = index(devices), index(replicas)
        if devices > MOST_DEVICES:
            raise self._mistake(f"{shown(devices)} devices are more than {MOST_DEVICES}")
        if replicas < 1 or devices < 1 or devices % replicas:
            raise self._mistake(
                f"{shown(devices)} devices are not {shown(replicas)} replicas of some partitions"
            )
        return Grid(replicas, devices // replicas)

    def _argument(self, at: int, array: Any, kind: TensorType | None, devices: int | None) -> Value:
        """The value of argument ``at``."""
        if kind is None:
            return None
        if isinstance(array, Sized) and not hasattr(array, "shape"):
            self._check_length(at, array, kind, devices)
        given = np.asarray(array)
        shape = given.shape
        if shape == kind.shape:
            given = given[None]
        elif devices is None or shape != (devices, *kind.shape):
            also = "" if devices is None else f" or {(devices, *kind.shape)}"
            message = f"argument {at} has shape {shape}, not {kind.shape}{also}"
            raise self._mistake(message)
        if given.dtype == kind.dtype:
            return given
        if given.dtype == DTYPES[kind.element]:
            return in_type(given, kind.dtype)
        if not _holds(kind.dtype, given):
            message = f"argument {at} has element type {given.dtype}, not {kind.dtype}"
            raise self._mistake(message)
        return in_type(given, kind.dtype)

    def _check_length(self, at: int, array: Sized, kind: TensorType, devices: int | None) -> None:
        """Check the length of argument ``at``, a list, before it is copied."""
        lengths = {kind.shape[0]} if kind.shape else set()
        if devices is not None:
            lengths.add(devices)
        try:
            has = len(array)
        except OverflowError:
            has = sys.maxsize
        if has > max(lengths, default=0) and has > MOST_DEVICES:
            message = f"argument {at} has {shown(has)} items, not those of shape {kind.shape}"
            raise self._mistake(message)

    def _mistake(self, message: str) -> SimulationError:
        return mistake("invalid-argument", message, None, (self._op,), self._filename)


def _holds(dtype: np.dtype[Any], array: Array) -> bool:
    """Whether Python numbers, which NumPy gives its widest types, fit ``dtype``."""
    if array.dtype == np.float64:
        return is_float(dtype) or is_complex(dtype)
    if array.dtype == np.int64:
        info = iinfo(dtype if is_integer(dtype) else np.dtype(np.int64))
        inside = array.size == 0 or (array.min() >= info.min and array.max() <= info.max)
        return (is_integer(dtype) or is_float(dtype)) and bool(inside)
    return array.dtype == np.complex128 and is_complex(dtype)


def _result(value: Value, devices: int | None) -> Any:
    """The value as it is returned to the user: arrays are writable copies."""
    if isinstance(value, tuple):
        return tuple(_result(part, devices) for part in value)
    if value is None:
        return None
    return np.array(value[0] if devices is None else spread(value, devices))
