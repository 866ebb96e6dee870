"""Prepares the functions of a module as bodies that are ready to run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from shardcore.errors import ShardcoreError
from shardcore.simulate.dtypes import DTYPES, in_type
from shardcore.simulate.families import PREPARERS
from shardcore.simulate.mistakes import mistake, too_large
from shardcore.simulate.order import Order
from shardcore.simulate.site import Body, Kernel, Site, Step, TensorType

if TYPE_CHECKING:
    from shardcore import _core
    from shardcore.simulate.values import Value

__all__ = ["Program"]

DIALECTS = ("chlo", "func", "sdy", "stablehlo")
QUANTIZING = ("stablehlo.uniform_quantize", "stablehlo.uniform_dequantize")
RETURNS = ("func.return", "stablehlo.return", "sdy.return", "chlo.return")
IN_OWN_TYPES = (
    "chlo.broadcast_next_after",
    "chlo.constant_like",
    "chlo.next_after",
    "stablehlo.bitcast_convert",
    "stablehlo.rng_bit_generator",
)
"""Ops on the bits of their types: they are computed in the program's own types even if floats are
computed in a wider type; their results are then converted to that."""


class Program:
    """The functions of a module, each prepared when it is first called.

    module: the program.
    filename: its name in errors.
    dtypes: the types of computation, by element type.
    order: the order of summation.
    """

    def __init__(
        self,
        module: _core.Module,
        filename: str,
        dtypes: Mapping[str, np.dtype[Any]] = DTYPES,
        order: Order | None = None,
    ) -> None:
        self.filename = filename
        self.dtypes = dtypes
        self.order = order
        functions = (op for op in module.ops() if op.name == "func.func")
        self.functions = {op.attributes["sym_name"]: op for op in functions}
        self.meshes = module.meshes
        self._bodies: dict[str, Body] = {}
        self._kernels: dict[int, Kernel] = {}

    def body(self, name: str) -> Body | None:
        """The body of function ``name``; ``None`` if there is no such function."""
        if name not in self._bodies:
            function = self.functions.get(name)
            if function is None or not function.regions[0]:
                return None
            try:
                self._bodies[name] = _Scope(self).region(function, 0, ())
            except RecursionError:
                message, hint = "regions nest too deeply to be simulated", None
                raise mistake("unsupported-op", message, hint, (function,), self.filename) from None
        return self._bodies[name]

    def entry(self) -> Body | None:
        """The body of the entry function."""
        return self.body("main" if "main" in self.functions else next(iter(self.functions), ""))

    def kernel(self, site: Site) -> Kernel:
        """The kernel of the op at ``site``; equal ops share one."""
        signature = site.op.signature
        is_shared = signature is not None and not site.bodies and "call" not in site.name
        if is_shared and signature in self._kernels:
            return self._kernels[signature]
        prepare = PREPARERS.get(site.name)
        if prepare is None:
            hint = None
            if site.name in QUANTIZING:
                hint = "quantized types are not simulated"
            elif site.name.split(".")[0] not in DIALECTS:
                hint = "ops of StableHLO, CHLO, func and sdy can be simulated"
            raise site.unsupported(f"{site.name} cannot be simulated", hint)
        try:
            kernel = self._prepared(site, prepare)
        except ShardcoreError:
            raise
        except MemoryError as error:
            raise too_large(f"{site.name} cannot be computed: {error}") from None
        # NumPy refuses arrays with too many elements, such as a huge iota.
        except ValueError as error:
            message = f"{site.name} cannot be computed: {error}"
            raise mistake(
                "invalid-op", message, None, (site.op, *site.around), self.filename
            ) from error
        if is_shared and signature is not None:
            self._kernels[signature] = kernel
        return kernel

    def _prepared(self, site: Site, prepare: Callable[[Site], Kernel]) -> Kernel:
        if self.dtypes is DTYPES:
            return prepare(site)
        if site.name in IN_OWN_TYPES:
            own = replace(site, dtypes=DTYPES)
            return _converting(prepare(own), own.operands, site.results)
        if site.name == "stablehlo.custom_call":
            # A user's function may return values of the program's own types.
            results = [_type_of(site, value) for value in site.op.results]
            return _converting(prepare(site), None, results)
        return prepare(site)


def _converting(
    kernel: Kernel,
    operands: Sequence[TensorType | None] | None,
    results: Sequence[TensorType | None],
) -> Kernel:
    """``kernel`` with operands converted to the types of its computation, and results converted to
    the program's types."""

    def in_types(values: Sequence[Value], kinds: Sequence[TensorType | None]) -> list[Value]:
        pairs = zip(values, kinds, strict=True)
        return [value if kind is None else in_type(value, kind.dtype) for value, kind in pairs]

    def converting(run: object, *values: Value) -> Value:
        found = kernel(run, *(values if operands is None else in_types(values, operands)))
        if len(results) == 1:
            return in_types([found], results)[0]
        return in_types(found, results)

    return converting


class _Scope:
    """The slots of the values of one function."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.places: dict[_core.Value, int] = {}

    def place(self, value: _core.Value) -> int:
        return self.places.setdefault(value, len(self.places))

    def region(self, op: _core.Op, index: int, around: tuple[_core.Op, ...]) -> Body:
        """The body of region ``index`` of ``op``; ``around`` are the ops that enclose ``op``."""
        ops = (op, *around)
        blocks = op.regions[index]
        if len(blocks) != 1:
            message = f"{op.name} has a region of {len(blocks)} blocks"
            hint = "control flow is simulated as ops with regions of one block"
            raise mistake("unsupported-op", message, hint, ops, self.program.filename)
        [block] = blocks
        arguments = tuple(self.place(value) for value in block.arguments)
        defined = set(arguments)
        captured: dict[int, None] = {}
        steps: list[Step] = []
        returned: tuple[int, ...] = ()
        for inner in block.ops:
            operands = tuple(self.place(value) for value in inner.operands)
            if inner.name in RETURNS:
                returned = operands
            else:
                steps.append(self.step(inner, operands, ops))
                operands = steps[-1].operands
            captured.update(dict.fromkeys(place for place in operands if place not in defined))
            defined.update(steps[-1].results if steps else ())
        site = Site(op, around, self.program.filename, dtypes=self.program.dtypes)
        types = [_type_of(site, value) for value in block.arguments]
        steps = _with_deaths(steps, returned, arguments)
        return Body(arguments, steps, returned, tuple(captured), ops, types)

    def step(self, op: _core.Op, operands: tuple[int, ...], around: tuple[_core.Op, ...]) -> Step:
        """``op``, enclosed by the ops ``around``, ready to run."""
        bodies = [self.region(op, index, around) for index in range(len(op.regions))]
        captured = tuple(dict.fromkeys(place for body in bodies for place in body.captured))
        program = self.program
        site = Site(
            op,
            around,
            program.filename,
            bodies,
            captured,
            program.body,
            program.meshes,
            program.dtypes,
            lambda module: Program(module, module.filename, program.dtypes, program.order).entry(),
            program.order,
        )
        results = tuple(self.place(value) for value in op.results)
        kernel, shape = program.kernel(site), _static_shape(op)
        return Step(kernel, (*operands, *captured), results, (), op, shape, bodies)


def _static_shape(op: _core.Op) -> tuple[int, ...] | None:
    """The shape of the only result of ``op``; ``None`` unless that is a tensor of static shape."""
    if len(op.results) != 1 or op.results[0].shape is None:
        return None
    sizes = tuple(size for size in op.results[0].shape if size is not None)
    return sizes if len(sizes) == len(op.results[0].shape) else None


def _type_of(site: Site, value: _core.Value) -> TensorType | None:
    """The type of an argument; ``None`` if it is no tensor."""
    return site.tensor_type(value) if value.dtype is not None else None


def _with_deaths(
    steps: list[Step], returned: tuple[int, ...], arguments: tuple[int, ...]
) -> list[Step]:
    """``steps`` with, for each, the values that are no longer used after it."""
    own = {place for step in steps for place in step.results} | set(arguments)
    alive = set(returned)
    found = []
    for step in reversed(steps):
        touched = dict.fromkeys((*step.operands, *step.results))
        dead = tuple(place for place in touched if place in own and place not in alive)
        alive.update(touched)
        found.append(step._replace(dead=dead))
    return found[::-1]
