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
"""How many devices are simulated at most."""


class Simulator:
    """A module that is prepared once and can run any number of times.

    Args:
        module: the program.
        function: the function to run; by default the entry function.
        dtype: compute narrower floats, and complex numbers of these, in this type, ``"f32"`` or
            ``"f64"``: results have this type, and only ``reduce_precision`` rounds to a narrower
            one. Constants keep their values. ``bitcast_convert`` still uses the bits of the
            program's own types, and rounds its operand to them first. By default each type is
            computed as it is.
        order: the order of summation of floats, which affects rounding; by default NumPy's.

    Raises:
        ValueError: ``dtype`` is neither of these.
        SimulationError: there is no such function (``unknown-symbol``), or it has an op that cannot
            be simulated (``unsupported-op``). Functions that it calls are checked at the first
            call.
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

        Without ``devices``, it runs once, as a global program; its manual computations run on all
        devices of their meshes. Arguments and results have the shapes in the program. With
        ``devices=n``, each of n devices runs it. An argument has the shape in the program, for a
        value that is the same on all devices, or that shape with a leading dim of size n; results
        have that leading dim.

        Args:
            arrays: one for each argument: anything that ``numpy.asarray`` accepts, of the program's
                element type or one that converts to it exactly.
            devices: the number of devices.
            replicas: the number of replicas; the devices of a replica are its partitions. By
                default the module's ``mhlo.num_replicas``, or one.

        Raises:
            SimulationError: the arguments do not fit (``invalid-argument``), not all devices of a
                group reach a collective (``diverging-collective``), a device of a group does not
                exist (``unknown-device``), or an op cannot be simulated or a loop has too many
                iterations (``unsupported-op``).
            ProgramTooLargeError: there is not enough memory for a value.
        """
        return self.watched(None, *arrays, devices=devices, replicas=replicas)

    def watched(
        self,
        watch: Callable[[Op, Sequence[Value]], None] | None,
        *arrays: Any,
        devices: int | None = None,
        replicas: int | None = None,
    ) -> list[Array]:
        """Run the program, and call ``watch`` with each op after it has run, and its results:
        arrays with a leading device dim, which has size 1 if all devices have the same value."""
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
        """Return an estimate of the peak bytes of live values during a run, without the arguments.

        Args:
            rows: for each argument 1 if all devices have the same value, else the number of
                devices; by default 1 for all.
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
        """Check the length of argument ``at``, a list, before it is converted."""
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
    """Whether Python numbers, which NumPy converts to its widest types, fit into ``dtype``."""
    if array.dtype == np.float64:
        return is_float(dtype) or is_complex(dtype)
    if array.dtype == np.int64:
        info = iinfo(dtype if is_integer(dtype) else np.dtype(np.int64))
        inside = array.size == 0 or (array.min() >= info.min and array.max() <= info.max)
        return (is_integer(dtype) or is_float(dtype)) and bool(inside)
    return array.dtype == np.complex128 and is_complex(dtype)


def _result(value: Value, devices: int | None) -> Any:
    """The value in the form returned to the user: arrays are writable copies."""
    if isinstance(value, tuple):
        return tuple(_result(part, devices) for part in value)
    if value is None:
        return None
    return np.array(value[0] if devices is None else spread(value, devices))
