"""An estimate of what a layer computes anew and keeps, to rank choices before they are lowered.

The forward pass of a layer, with what JAX keeps of it for the backward pass, is a graph: what is
not kept is computed anew from what is. Times are rooflines of the chip for one device that computes
the whole layer; only their proportions count.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import jax
from jax.extend.core import ClosedJaxpr, Literal, jaxpr_as_fun

from shardcore.remat.programs import HEAVY, size_of, sub_programs
from shardcore.remat.values import Value, names_of
from shardcore.remat.wrapping import named

if TYPE_CHECKING:
    from shardcore.calculus.hardware import Hardware

_FREE = (
    "broadcast_in_dim",
    "convert_element_type",
    "iota",
    "name",
    "pvary",
    "reshape",
    "squeeze",
    "stop_gradient",
)
_SCATTERED = ("cumsum", "dynamic_slice", "gather", "scatter", "scatter-add", "sort", "top_k")
_TRANSCENDENTAL = ("cos", "erf", "exp", "log", "logistic", "pow", "rsqrt", "sin", "sqrt", "tanh")
_FUSED = 0.5
"""The part of the time to write a value that an elementwise op takes, as it is fused."""


@dataclass(frozen=True)
class _Node:
    """An equation of the forward pass."""

    seconds: float
    operands: tuple[Any, ...]
    name: str | None
    """The name that it gives to its operand."""
    bytes: int
    is_written: bool
    """Whether what it makes is in memory anyway, as products are; what is elementwise is fused."""


class LayerModel:
    """What a layer computes anew, and keeps."""

    def __init__(
        self, layer: Any, values: tuple[Value, ...], chip: Hardware, *, is_scan: bool
    ) -> None:
        self._chip = chip
        self._copies = 2 if is_scan else 0
        """How often what is kept is written or read besides: a scan puts it side by side."""
        self._makers: dict[Any, _Node] = {}
        every = frozenset(value.name for value in values)
        own = [*layer.constvars, *layer.invars]
        forward = named(layer, every, names_of(values))
        run = jaxpr_as_fun(ClosedJaxpr(forward.replace(constvars=[], invars=own), ()))
        traced = jax.make_jaxpr(lambda *xs: jax.tree.leaves(jax.vjp(run, *xs)[1]))(
            *(variable.aval for variable in own)
        )
        for equation in traced.eqns:
            is_name = equation.primitive.name == "name"
            node = _Node(
                seconds(equation, chip),
                tuple(atom for atom in equation.invars if not isinstance(atom, Literal)),
                equation.params["name"] if is_name else None,
                size_of(equation.outvars[0].aval) if equation.outvars else 0,
                _is_written(equation, self._makers),
            )
            self._makers.update(dict.fromkeys(equation.outvars, node))
        atoms = traced.jaxpr.outvars
        self._residuals = [atom for atom in atoms if not isinstance(atom, Literal)]
        self.forward_seconds = sum(node.seconds for node in {*self._makers.values()})
        """Seconds of the forward pass."""

    def estimate(self, kept: frozenset[str], offloaded: frozenset[str]) -> tuple[float, int]:
        """Return the seconds that these choices take over a layer for which nothing has to be done
        but its two passes, and the bytes that it keeps on the device besides its arguments: fewer
        than none where these are on the host.
        """
        seen: set[Any] = set()
        left = list(self._residuals)
        again = 0.0
        held = {True: 0, False: 0}
        copied = left_out = 0
        nodes = set()
        while left:
            atom = left.pop()
            node = self._makers.get(atom)
            if node is None or atom in seen:
                continue
            seen.add(atom)
            if node.name in kept or node.name in offloaded:
                held[node.name in kept] += node.bytes
                if node.operands and node.operands[0] not in self._makers:
                    # What a layer starts with, which is kept in any case.
                    left_out += node.bytes
                copied += node.bytes * (self._copies + (not node.is_written))
                continue
            if node not in nodes:
                nodes.add(node)
                again += node.seconds
            left += node.operands
        chip = self._chip
        moved = copied / (chip.hbm_bytes_per_second * chip.achieved.memory)
        rate = chip.host_bytes_per_second
        if held[False] and rate:
            # Copies overlap with the pass that they are in.
            one_way = held[False] / (rate * chip.achieved.links)
            moved += 2 * max(0.0, one_way - self.forward_seconds)
        return again + moved, held[True] - left_out


def _is_written(equation: Any, makers: dict[Any, _Node]) -> bool:
    """Whether what ``equation`` makes, or names, is in memory anyway."""
    name = equation.primitive.name
    if name == "name":
        node = makers.get(equation.invars[0])
        return node is None or node.is_written
    return name in (*HEAVY, *_SCATTERED) or name.startswith("reduce")


def seconds(equation: Any, chip: Hardware) -> float:
    """Return the seconds that an equation takes on one device, about."""
    name = equation.primitive.name
    inner = sub_programs(equation)
    if inner:
        times = equation.params.get("length", 1)
        # A function with rules of its own is there with these.
        return float(times) * max(
            sum(seconds(each, chip) for each in program.eqns) for program in inner
        )
    if name in _FREE:
        return 0.0
    read: float = sum(size_of(getattr(atom, "aval", None)) for atom in equation.invars)
    written: float = sum(size_of(variable.aval) for variable in equation.outvars)
    rate: float = chip.hbm_bytes_per_second * chip.achieved.memory
    work = _flops(equation)
    if work:
        dtype = str(equation.invars[0].aval.dtype)
        flops = chip.flops_per_second(dtype) * chip.achieved.products_of(dtype)
        return max(work / flops, (read + written) / rate)
    if name in _SCATTERED:
        return (read + written) / (rate * chip.achieved.scattered / chip.achieved.memory)
    if name.startswith(("reduce", "arg")):
        return read / rate
    elements = sum(float(variable.aval.size) for variable in equation.outvars)
    flops = chip.achieved.transcendental_flops if name in _TRANSCENDENTAL else 1.0
    return max(_FUSED * written / rate, elements * flops / chip.achieved.vector_flops)


def _flops(equation: Any) -> float:
    """Operations of a product; 0 for other equations."""
    name = equation.primitive.name
    if name not in HEAVY:
        return 0.0
    left, right = equation.invars[0].aval, equation.invars[1].aval
    size = float(equation.outvars[0].aval.size)
    if name == "dot_general":
        (summed, _), _ = equation.params["dimension_numbers"]
        return 2 * size * float(math.prod(left.shape[dim] for dim in summed))
    if name == "conv_general_dilated":
        features = equation.params["dimension_numbers"].rhs_spec[0]
        return 2 * size * float(right.size / right.shape[features])
    return 2 * size * float(left.shape[-1])
