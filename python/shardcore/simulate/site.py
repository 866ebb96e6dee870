"""The attributes, types and bodies of an op, for the functions that prepare it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from shardcore.cached_property import cached_property
from shardcore.simulate.dtypes import DTYPES
from shardcore.simulate.mistakes import mistake, of_elements
from shardcore.simulate.order import Order

if TYPE_CHECKING:
    from shardcore import _core
    from shardcore.errors import SimulationError
    from shardcore.simulate.values import Array, Value

__all__ = ["Body", "Kernel", "Site", "Step", "TensorType", "dense_array"]

Kernel = Callable[..., "Value"]
"""Computes an op: takes the run, a value for each operand and each captured value; returns the
result, or a sequence of results unless there is exactly one."""


class TensorType(NamedTuple):
    """The type of a tensor on one device."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    element: str
    """The element type as MLIR writes it."""


class Step(NamedTuple):
    """An op that is ready to run."""

    kernel: Kernel
    operands: tuple[int, ...]
    """The slots of its operands, then of the values captured by its bodies."""
    results: tuple[int, ...]
    dead: tuple[int, ...]
    """The slots of values whose last use is this step."""
    op: _core.Op
    shape: tuple[int, ...] | None
    """The shape of its only result, if that is a tensor of static shape."""
    bodies: Sequence[Body] = ()
    """The bodies of its regions."""


@dataclass
class Body:
    """A block that is ready to run; its values have slots of the enclosing function."""

    arguments: tuple[int, ...]
    steps: list[Step]
    returned: tuple[int, ...]
    captured: tuple[int, ...]
    """The slots of captured values."""
    ops: tuple[_core.Op, ...]
    argument_types: list[TensorType | None]

    def only_op(self) -> str | None:
        """The name of the body's only op, if that is applied to its two arguments in order."""
        if len(self.steps) != 1 or len(self.arguments) != 2 or self.captured:
            return None
        [step] = self.steps
        is_all = step.results == self.returned and step.operands == self.arguments
        return step.op.name if is_all else None


@dataclass
class Site:
    """An op that is being prepared."""

    op: _core.Op
    around: tuple[_core.Op, ...]
    """The enclosing ops, innermost first."""
    filename: str
    bodies: list[Body] = field(default_factory=list)
    captured: tuple[int, ...] = ()
    function: Callable[[str], Body | None] = lambda name: None
    """Returns the body of a function, given its symbol."""
    meshes: dict[str, _core.Mesh] = field(default_factory=dict)
    dtypes: Mapping[str, np.dtype[Any]] = field(default_factory=lambda: DTYPES)
    """The types of computation, by element type."""
    entry: Callable[[_core.Module], Body | None] = lambda module: None
    """Returns the body of the entry function of another module, with the same types."""
    order: Order | None = None
    """The order of summation of floats; ``None`` for NumPy's."""

    @property
    def name(self) -> str:
        """The full name of the op."""
        return self.op.name

    @cached_property
    def attributes(self) -> dict[str, Any]:
        """The attributes by their names in the generic form."""
        return self.op.attributes

    @cached_property
    def operands(self) -> list[TensorType]:
        """The types of the operands; raises if one is no tensor."""
        return self._types(self.op.operands)

    @cached_property
    def results(self) -> list[TensorType]:
        """The types of the results; raises if one is no tensor."""
        return self._types(self.op.results)

    def _types(self, values: Sequence[_core.Value]) -> list[TensorType]:
        return [self.tensor_type(value) for value in values]

    def tensor_type(self, value: _core.Value) -> TensorType:
        """The type of ``value``; raises unless it is a tensor of static shape."""
        element, shape = value.dtype, value.shape
        if element is None or shape is None or None in shape:
            raise self.error(
                "unsupported-op", f"{self.name} has a value of type {value.type}", None
            )
        if element not in DTYPES:
            message = f"{self.name} has a value of element type {element}"
            raise self.error("unsupported-op", message, of_elements(element))
        return TensorType(tuple(size or 0 for size in shape), self.dtypes[element], element)

    def integers(self, name: str, default: Sequence[int] | int | None = None) -> tuple[int, ...]:
        """The integers of attribute ``name``, flattened; ``default`` if it is absent."""
        found = self.attributes.get(name, default)
        if found is None:
            raise self.error("invalid-op", f"{self.name} has no attribute {name}", None)
        return tuple(_flat(found))

    def split(self, values: Sequence[Value]) -> tuple[Sequence[Value], dict[int, Value]]:
        """Split the arguments of a kernel into operands, and captured values by slot."""
        count = len(self.op.operands)
        return values[:count], dict(zip(self.captured, values[count:], strict=True))

    def integer(self, name: str, default: int | None = None) -> int:
        """The integer of attribute ``name``; ``default`` if it is absent."""
        return self.integers(name, default)[0]

    def dense(self, name: str) -> Array | None:
        """The elements of dense attribute ``name``, in its shape; ``None`` if it is absent."""
        if name not in self.attributes:
            return None
        try:
            element, shape, data = self.op.elements(name)
        except KeyError:
            return None
        return dense_array(element, shape, data)

    def options(self) -> dict[str, Any]:
        """The configuration of a custom call, ``mhlo.backend_config``."""
        written = (self.attributes.get(name) for name in ("backend_config", "mhlo.backend_config"))
        return {
            key: value
            for config in written
            if isinstance(config, dict)
            for key, value in config.items()
        }

    def mesh(self, name: object) -> _core.Mesh:
        """The mesh that is called ``name``."""
        if name not in self.meshes:
            raise self.error("unknown-symbol", f"there is no mesh @{name}"[:160], None)
        return self.meshes[str(name)]

    def error(self, code: str, message: str, hint: str | None) -> SimulationError:
        """Return an error at this op."""
        return mistake(code, message, hint, (self.op, *self.around), self.filename)

    def unsupported(self, what: str, hint: str | None = None) -> SimulationError:
        """Return the error that this op cannot be simulated."""
        return self.error("unsupported-op", what, hint)


def _flat(found: Any) -> list[int]:
    if isinstance(found, (list, tuple)):
        return [number for item in found for number in _flat(item)]
    return [int(found)]


def dense_array(element: str, shape: Sequence[int], data: bytes) -> Array:
    """The array of ``shape`` with the bytes ``data``, from :meth:`shardcore.Op.elements`."""
    dtype = DTYPES[element]
    # An element narrower than a byte takes a byte.
    stored = np.dtype(np.int8) if element in ("i2", "i4") else dtype
    stored = np.dtype(np.uint8) if element in ("ui2", "ui4") else stored
    array = np.frombuffer(data, stored).astype(dtype, copy=False)
    size = int(np.prod(shape, dtype=np.int64))
    if array.size == 1 and size != 1:
        return np.broadcast_to(array.reshape((1,) * len(shape)), tuple(shape))
    return array.reshape(tuple(shape))
