"""Lines of StableHLO: the text of the programs of :mod:`~shardcore.calculus.programs`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from shardcore._core import AxisRef, Mesh, TensorSharding
from shardcore.calculus.contraction import Contraction, names
from shardcore.calculus.dtypes import canonical_dtype

MESH = "mesh"
"""The name of the mesh in a program."""

_OUTER = ", contracting_dims = [] x []"
_SPECIAL = {"bool": "i1", "fp8": "f8E4M3FN", "fp4": "f4E2M1FN"}
_COMPLEX = {"complex64": "complex<f32>", "complex128": "complex<f64>"}


class Tensor(NamedTuple):
    """A value of a program."""

    name: str
    shape: tuple[int, ...]
    element: str
    """The element type as MLIR writes it."""

    @property
    def type(self) -> str:
        """Its type as MLIR writes it."""
        return f"tensor<{''.join(f'{size}x' for size in self.shape)}{self.element}>"


def mlir_type(dtype: str) -> str:
    """Return the element type as MLIR writes it.

    Raises:
        CalculusError: there is no such type (``unknown-dtype``).
    """
    name = canonical_dtype(dtype)
    special = {**_SPECIAL, **_COMPLEX}
    return special.get(name) or name.replace("uint", "ui").replace("int", "i").replace("fp", "f")


class Lines:
    """Lines of one function; its values are numbered consecutively."""

    def __init__(self, mesh: Mesh) -> None:
        self.mesh = mesh
        self.text: list[str] = []
        self._count = 0

    def name(self) -> str:
        """Return an unused name."""
        self._count += 1
        return f"%{self._count - 1}"

    def op(self, text: str, shape: Sequence[int], element: str) -> Tensor:
        """Add an op with one result; ``text`` ends before the result type. Return the result."""
        tensor = Tensor(self.name(), tuple(shape), element)
        self.text.append(f"{tensor.name} = {text}{tensor.type}")
        return tensor

    def constant(self, value: str, shape: Sequence[int] = (), element: str = "i32") -> Tensor:
        """Add a constant whose elements are all ``value``, or which is the list ``value``."""
        return self.op(f"stablehlo.constant dense<{value}> : ", shape, element)

    def zero(self, shape: Sequence[int], element: str) -> Tensor:
        """Add a tensor of zeros."""
        is_float = element.startswith(("f", "bf"))
        kind = "0.0" if is_float else "false" if element == "i1" else "0"
        return self.constant("(0.0,0.0)" if element in _COMPLEX.values() else kind, shape, element)

    def binary(self, op: str, left: Tensor, right: Tensor) -> Tensor:
        """Add an elementwise op of StableHLO."""
        return self.op(f"stablehlo.{op} {left.name}, {right.name} : ", left.shape, left.element)

    def sharding(self, layout: Sequence[Sequence[AxisRef]]) -> str:
        """Return the text of a sharding, ``<@mesh, [{"X"}, {}]>``."""
        return str(TensorSharding(self.mesh, [list(axes) for axes in layout], mesh_name=MESH))

    def constrained(self, tensor: Tensor, layout: Sequence[Sequence[AxisRef]]) -> Tensor:
        """Add a sharding constraint."""
        sharding = self.sharding(layout)
        return self.op(
            f"sdy.sharding_constraint {tensor.name} {sharding} : ", tensor.shape, tensor.element
        )

    def slice(self, tensor: Tensor, dim: int, start: Tensor, size: int) -> Tensor:
        """Add a slice of ``size`` elements, starting at ``start``, along ``dim``."""
        shape = [size if at == dim else extent for at, extent in enumerate(tensor.shape)]
        starts = self._starts(tensor, dim, start)
        indices = ", ".join(["tensor<i32>"] * len(shape))
        return self.op(
            f"stablehlo.dynamic_slice {tensor.name}, {starts}, sizes = {shape} : "
            f"({tensor.type}, {indices}) -> ",
            shape,
            tensor.element,
        )

    def updated(self, tensor: Tensor, part: Tensor, dim: int, start: Tensor) -> Tensor:
        """Add ``tensor`` with ``part`` written into it, starting at ``start``, along ``dim``."""
        starts = self._starts(tensor, dim, start)
        indices = ", ".join(["tensor<i32>"] * len(tensor.shape))
        return self.op(
            f"stablehlo.dynamic_update_slice {tensor.name}, {part.name}, {starts} : "
            f"({tensor.type}, {part.type}, {indices}) -> ",
            tensor.shape,
            tensor.element,
        )

    def product(
        self, contraction: Contraction, left: Tensor, right: Tensor, element: str
    ) -> Tensor:
        """Add the product of two operands, global arrays or shards."""
        one, two = map(names, contraction.operands)
        output = names(contraction.output)
        left, one = self._summed(left, one, {*two, *output})
        right, two = self._summed(right, two, {*one, *output})
        batch = [dim for dim in one if dim in two and dim in output]
        summed = [dim for dim in one if dim in two and dim not in output]
        free = [dim for dim in (*one, *two) if dim not in batch and dim not in summed]
        sizes = {
            **dict(zip(one, left.shape, strict=True)),
            **dict(zip(two, right.shape, strict=True)),
        }
        pairs = {
            "batching_dims": ([one.index(dim) for dim in batch], [two.index(dim) for dim in batch]),
            "contracting_dims": (
                [one.index(dim) for dim in summed],
                [two.index(dim) for dim in summed],
            ),
        }
        dims = "".join(f", {name} = {a} x {b}" for name, (a, b) in pairs.items() if a)
        found = [*batch, *free]
        tensor = self.op(
            f"stablehlo.dot_general {left.name}, {right.name}{dims or _OUTER}"
            f" : ({left.type}, {right.type}) -> ",
            [sizes[dim] for dim in found],
            element,
        )
        order = [found.index(dim) for dim in output]
        if order == sorted(order):
            return tensor
        return self.op(
            f"stablehlo.transpose {tensor.name}, dims = {order} : ({tensor.type}) -> ",
            [sizes[dim] for dim in output],
            element,
        )

    def _summed(
        self, tensor: Tensor, dims: tuple[str, ...], kept: set[str]
    ) -> tuple[Tensor, tuple[str, ...]]:
        """Add the sum of ``tensor`` over the dims that occur nowhere else."""
        gone = [at for at, dim in enumerate(dims) if dim not in kept]
        if not gone:
            return tensor, dims
        zero = self.zero((), tensor.element)
        left = [at for at in range(len(dims)) if at not in gone]
        found = self.op(
            f"stablehlo.reduce({tensor.name} init: {zero.name}) applies stablehlo.add across "
            f"dimensions = {gone} : ({tensor.type}, {zero.type}) -> ",
            [tensor.shape[at] for at in left],
            tensor.element,
        )
        return found, tuple(dims[at] for at in left)

    def _starts(self, tensor: Tensor, dim: int, start: Tensor) -> str:
        zero = self.constant("0")
        return ", ".join(start.name if at == dim else zero.name for at in range(len(tensor.shape)))
