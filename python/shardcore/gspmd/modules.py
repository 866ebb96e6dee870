"""Modules annotated with GSPMD's notation, as modules annotated with ``sdy`` shardings.

All shardings of the module are said over one mesh, ``@mesh``. Arguments, results and ops have
shardings as they had; a ``@Sharding`` call becomes a constraint, its unspecified dims open;
the calls around a manual body become a manual computation, with the body in it.

This is how JAX itself writes both: see its lowerings with and without Shardy.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from shardcore._core import AxisRef, DimSharding, Mesh, Module, TensorSharding
from shardcore.errors import ShardcoreError
from shardcore.gspmd.annotations import (
    SHARDING,
    CustomCall,
    Source,
    custom_call,
    logical_lines,
    rank_of_type,
)
from shardcore.gspmd.convert import manual_axes, to_sharding
from shardcore.gspmd.cursor import invalid
from shardcore.gspmd.infer import infer_mesh
from shardcore.gspmd.manual import inline_bodies

if TYPE_CHECKING:
    from shardcore.gspmd.hlo_sharding import HloSharding

__all__ = ["import_hlo_shardings", "import_located"]

_PARTITIONS = re.compile(r"mhlo\.num_partitions = ([0-9]+)")
_RESULTS = re.compile(r"\s*%([\w$.-]+)(?::([0-9]+))? = ")
_FUNCTION = re.compile(r"\s*func\.func (?:\w+ )?@\"?([^\"(]+)\"?\(")
_GENERIC = ('"Sharding"', '"SPMDFullToShardShape"', '"SPMDShardToFullShape"')
_SYMBOL = "mesh"


def import_hlo_shardings(module: Module, mesh: Mesh | None = None) -> Module:
    """Return ``module`` with its ``mhlo.sharding`` strings as ``sdy`` shardings over ``mesh``.

    Without ``mesh`` its axes are those that the shardings need, as for
    :meth:`HloSharding.to_sharding`.

    Raises:
        ParseError: a string is no sharding.
        VerificationError: no mesh, or not ``mesh``, says all of the shardings.
    """
    return import_located(module, str(module), "<string>", mesh)


def import_located(module: Module, source: str, filename: str, mesh: Mesh | None = None) -> Module:
    """Import a module that was read from ``source``, which errors point into."""
    text = str(module)
    origin = Source(source, filename)
    written = {match[1]: origin.parse(match[1]) for match in SHARDING.finditer(text)}
    if not written:
        return module
    if mesh is None:
        mesh = _common_mesh(written, text, origin)
    importer = _Importer(mesh, written, origin)
    importer.ranks = {
        (value.function, value.name.removeprefix("%")): None
        if value.shape is None
        else len(value.shape)
        for value in module.values()
    }
    lines = importer.lines(logical_lines(text))
    lines = inline_bodies(lines, importer)
    return Module.parse("\n".join(lines), filename=filename)


def _flat(shardings: list[HloSharding]) -> list[HloSharding]:
    return [part for whole in shardings for part in (whole.elements or (whole,))]


def _common_mesh(written: dict[str, HloSharding], text: str, origin: Source) -> Mesh:
    named = [part.named for part in _flat(list(written.values())) if part.named is not None]
    if named and named[0].sharding.mesh is not None:
        return named[0].sharding.mesh
    tiled = [part for part in _flat(list(written.values())) if part.kind == "tiled"]
    if not tiled:
        count = _PARTITIONS.search(text)
        return Mesh({"x": max(int(count[1]), 1) if count else 1})
    try:
        return infer_mesh(tiled)
    except ShardcoreError as error:
        raise origin.error(
            error, next(t for t, h in written.items() if h.kind == "tiled")
        ) from None


class _Importer:
    """Replaces annotations, line by line."""

    def __init__(self, mesh: Mesh, written: dict[str, HloSharding], origin: Source) -> None:
        self.mesh = mesh
        self.written = written
        self.origin = origin
        self.ranks: dict[tuple[str, str], int | None] = {}
        self.function = ""

    def lines(self, lines: list[str]) -> list[str]:
        """Replace what is said of arguments, results and ops; add the mesh."""
        done: list[str] = []
        for line in lines:
            function = _FUNCTION.match(line)
            if function:
                self.function = function[1]
            done.append(self._line(line, is_function=function is not None))
        at = next((at for at, line in enumerate(done) if _FUNCTION.match(line)), 0)
        done.insert(at, f"  sdy.mesh @{_SYMBOL} = {self.mesh}")
        return done

    def _line(self, line: str, *, is_function: bool) -> str:
        match = SHARDING.search(line)
        if match is None:
            return line
        if is_function:
            return SHARDING.sub(lambda found: self._on_type(line, found), line)
        call = custom_call(line)
        if call is None:
            if any(target in line for target in _GENERIC):
                message = "this call is written in generic form"
                raise self.origin.error(invalid(message, "print it as stablehlo does"), match[1])
            return line[: match.start()] + self._on_op(line, match[1]) + line[match.end() :]
        if call.target != "Sharding":
            return line
        if self.written[call.written].kind == "manual":
            # Inside a manual body nothing is left to shard.
            return line
        indent = line[: len(line) - len(line.lstrip())]
        said = self.text_of(call)
        return (
            f"{indent}%{call.result} = sdy.sharding_constraint %{call.operand} {said} : {call.type}"
        )

    def _on_type(self, line: str, match: re.Match[str]) -> str:
        before = line[: line.rindex("{", 0, match.start())].rstrip()
        written = before[before.rfind("tensor<") :] if "tensor<" in before else ""
        said = self._text(match[1], rank_of_type(written), ())
        return f"sdy.sharding = #sdy.sharding{said}"

    def _on_op(self, line: str, written: str) -> str:
        results = _RESULTS.match(line)
        sharding = self.written[written]
        names = []
        if results:
            count = int(results[2]) if results[2] else 1
            many = results[2] is not None
            names = [f"{results[1]}#{at}" if many else results[1] for at in range(count)]
        parts = sharding.elements or (sharding,) * len(names)
        if not names or len(parts) != len(names):
            message = f"{len(parts)} shardings of an op with {len(names)} results"
            raise self.origin.error(invalid(message), written)
        said = [
            self._said(part, written, self.ranks.get((self.function, name)), ())
            for part, name in zip(parts, names, strict=True)
        ]
        return f"sdy.sharding = #sdy.sharding_per_value<[{', '.join(said)}]>"

    def text_of(self, call: CustomCall) -> str:
        """Return the sharding of a call as ``sdy`` text, unspecified dims open."""
        whole = call.operand_type if call.target == "Sharding" else call.type
        return self._text(call.written, rank_of_type(whole), call.open_dims)

    def region(self, call: CustomCall) -> tuple[str, ...]:
        """Return the manual axes, quoted, of the body that ``call`` starts."""
        sharding = self.written[call.written]
        if sharding.kind == "manual":
            return tuple(f'"{axis.name}"' for axis in self.mesh.axes)
        try:
            axes, _ = manual_axes(sharding, self.mesh)
            if not axes or any(not axis.is_full for axis in axes):
                raise invalid("the manual devices are not whole axes of the mesh")
        except ShardcoreError as error:
            raise self.origin.error(error, call.written) from None
        return tuple(f'"{axis.name}"' for axis in axes)

    def refused(self, call: CustomCall, message: str) -> ShardcoreError:
        """Return the error of a call that makes no sense."""
        return self.origin.error(invalid(message), call.written)

    def _text(self, written: str, rank: int | None, open_dims: tuple[int, ...]) -> str:
        return self._said(self.written[written], written, rank, open_dims)

    def _said(
        self, sharding: HloSharding, written: str, rank: int | None, open_dims: tuple[int, ...]
    ) -> str:
        try:
            found = self._convert(sharding, rank)
            dims = [
                DimSharding(dim.axes, dim.is_closed and at not in open_dims)
                for at, dim in enumerate(found.dims)
            ]
            unreduced: list[AxisRef] = list(found.unreduced)
            return str(TensorSharding(self.mesh, dims, unreduced=unreduced, mesh_name=_SYMBOL))
        except ShardcoreError as error:
            raise self.origin.error(error, written) from None

    def _convert(self, sharding: HloSharding, rank: int | None) -> TensorSharding:
        if sharding.kind == "tiled" and "manual" in sharding.subgroups:
            # Inside a manual computation: its axes are not to be said again.
            _, dims = manual_axes(sharding, self.mesh)
            return TensorSharding(self.mesh, dims)
        return to_sharding(sharding, self.mesh, rank)
