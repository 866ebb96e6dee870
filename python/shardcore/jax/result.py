"""The completed shardings of a JAX function, in the function's pytrees."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from os import PathLike
from typing import TYPE_CHECKING, Any

import jax
from jax.sharding import AbstractMesh, NamedSharding, PartitionSpec

from shardcore._core import AxisRef, Module, Port, Result, Value
from shardcore.cached_property import cached_property
from shardcore.errors import Diagnostic
from shardcore.expected import expect
from shardcore.jax.hlo import hlo_sharding, with_sub_axes
from shardcore.jax.mesh import abstract_mesh, is_same_mesh
from shardcore.jax.mistakes import mistake, mistakes
from shardcore.jax.specs import implicit_axes, trimmed_spec, unsayable
from shardcore.jax.trees import Trees, input_leaves, output_leaves

if TYPE_CHECKING:
    from shardcore.calculus.hardware import Hardware
    from shardcore.costs import Cost
    from shardcore.expect import Check
    from shardcore.partition import Partitioned
    from shardcore.report.graph import Graph
    from shardcore.report.page import Page
    from shardcore.why import Why, WhyNot
    from shardcore.why.steps import Steps

JaxMesh = AbstractMesh | jax.sharding.Mesh


class JaxResult:
    """A :class:`shardcore.Result`, with shardings as JAX has them.

    Arguments that JAX dropped because nothing uses them have the sharding ``None``. Specs have no
    trailing ``None``, as JAX writes them: ``P("data")``, not ``P("data", None)``.
    """

    def __init__(self, result: Result, trees: Trees, mesh: JaxMesh | None) -> None:
        expect(result, Result)
        expect(trees, Trees)
        expect(mesh, AbstractMesh, jax.sharding.Mesh, type(None))
        self.result = result
        """The result for the lowered module, without pytrees."""
        self._trees = trees
        self._mesh = mesh

    @property
    def module(self) -> Module:
        """The exported program, in which every value has its sharding and all dims are closed."""
        return self.result.module

    @property
    def in_specs(self) -> tuple[Any, ...]:
        """A ``PartitionSpec`` for each leaf of the positional arguments.

        Raises:
            LoweringError: a ``PartitionSpec`` cannot say some of the shardings
                (``unsayable-sharding``); ``.diagnostics`` lists all of them. The other properties
                of specs and shardings raise it too.
        """
        return self._inputs(trimmed)[0]  # type: ignore[no-any-return]

    @property
    def kwarg_specs(self) -> dict[str, Any]:
        """A ``PartitionSpec`` for each leaf of the keyword arguments."""
        return self._inputs(trimmed)[1]

    @property
    def out_specs(self) -> Any:
        """A ``PartitionSpec`` for each leaf of what the function returns."""
        return self._outputs(trimmed)

    @property
    def in_shardings(self) -> tuple[Any, ...]:
        """A ``NamedSharding`` for each leaf of the positional arguments."""
        return self._inputs(self._named)[0]  # type: ignore[no-any-return]

    @property
    def kwarg_shardings(self) -> dict[str, Any]:
        """A ``NamedSharding`` for each leaf of the keyword arguments."""
        return self._inputs(self._named)[1]

    @property
    def out_shardings(self) -> Any:
        """A ``NamedSharding`` for each leaf of what the function returns."""
        return self._outputs(self._named)

    @property
    def in_hlo_shardings(self) -> tuple[Any, ...]:
        """An :class:`~shardcore.HloSharding` for each leaf of the positional arguments.

        These are the shardings that propagation found, including the sub-axes that the export
        removes from inputs and outputs; :func:`shardcore.jax.named_sharding` converts them to
        shardings of JAX.
        """
        return self._hlo(input_leaves, self._trees.map_inputs)[0]  # type: ignore[no-any-return]

    @property
    def kwarg_hlo_shardings(self) -> dict[str, Any]:
        """An :class:`~shardcore.HloSharding` for each leaf of the keyword arguments."""
        return self._hlo(input_leaves, self._trees.map_inputs)[1]  # type: ignore[no-any-return]

    @property
    def out_hlo_shardings(self) -> Any:
        """An :class:`~shardcore.HloSharding` for each leaf of what the function returns."""
        return self._hlo(output_leaves, self._trees.map_outputs)

    @property
    def with_collectives(self) -> Module:
        """The program with explicit reshards; see :attr:`shardcore.Result.with_collectives`."""
        return self.result.with_collectives

    def arguments(self) -> list[Port]:
        """The arguments of the module, without those that JAX dropped."""
        return self.result.arguments()

    def results(self) -> list[Port]:
        """The results of the module."""
        return self.result.results()

    def values(self) -> list[Value]:
        """The values of :attr:`module`."""
        return self.result.values()

    def at(self, place: str) -> list[Value]:
        """The values that a source line computes; see :meth:`shardcore.Module.at`."""
        return self.result.at(place)

    def by_line(self) -> dict[str, list[Value]]:
        """The values that each source line computes, ``{"model.py:42": [...]}``, in program order.

        The line is that of the value's :attr:`~shardcore.Value.location`; files have their full
        paths.
        """
        lines: dict[str, list[Value]] = {}
        for value in self.values():
            place = value.location
            if place is not None and value.traceback:
                lines.setdefault(place.rpartition(":")[0], []).append(value)
        return lines

    def why(
        self, value: str | Value, axis: AxisRef | str | None = None, dim: int | None = None
    ) -> Why:
        """Where the axes of a value come from; see :meth:`shardcore.Result.why`."""
        return self.result.why(value, axis, dim)

    def why_not(self, value: str | Value, dim: int, axis: AxisRef | str) -> WhyNot:
        """Why an axis is not on a dim of a value; see :meth:`shardcore.Result.why_not`."""
        return self.result.why_not(value, dim, axis)

    def steps(self) -> Steps:
        """Which visit of which op changed which sharding; see :meth:`shardcore.Result.steps`."""
        return self.result.steps()

    def graph(
        self,
        path: str | PathLike[str] | None = None,
        *,
        around: str | None = None,
        hops: int = 3,
        scope: str | None = None,
        folds: bool = True,
        max_nodes: int = 250,
    ) -> Graph:
        """The computation graph, drawn with shardings; see :meth:`shardcore.Result.graph`."""
        return self.result.graph(
            path, around=around, hops=hops, scope=scope, folds=folds, max_nodes=max_nodes
        )

    def diagnostics(
        self, hardware: str | Hardware | None = None, **options: Any
    ) -> tuple[Diagnostic, ...]:
        """What a person should look at; see :meth:`shardcore.Result.diagnostics`."""
        return self.result.diagnostics(hardware, **options)

    def summary(self) -> dict[str, Any]:
        """Counts and bytes before and after propagation; see :meth:`shardcore.Result.summary`."""
        return self.result.summary()

    @property
    def warnings(self) -> tuple[Diagnostic, ...]:
        """Warnings about annotated axes that the export removed; see
        :attr:`shardcore.Result.warnings`.
        """
        return self.result.warnings

    def cost(self, hardware: str | Hardware = "tpu-v5p", **options: Any) -> Cost:
        """Time, memory and communication of one device; see :func:`shardcore.cost`."""
        return self.result.cost(hardware, **options)

    def report(
        self,
        path: str | PathLike[str],
        hardware: str | Hardware | None = None,
        *,
        against: JaxResult | Result | None = None,
        **options: Any,
    ) -> None:
        """Write a page about the result; see :meth:`shardcore.Result.report`."""
        self.result.report(path, hardware, against=against, **options)

    def show(
        self,
        hardware: str | Hardware | None = None,
        *,
        against: JaxResult | Result | None = None,
        **options: Any,
    ) -> Page:
        """The page, for a notebook to display; see :meth:`shardcore.Result.show`."""
        return self.result.show(hardware, against=against, **options)

    def partition(
        self,
        policy: str = "least",
        *,
        compiler: str = "none",
        progress: Callable[[str, float], object] | None = None,
    ) -> Partitioned:
        """The program of one device; see :meth:`shardcore.Result.partition`."""
        return self.result.partition(policy, compiler=compiler, progress=progress)

    def check(
        self, expect: str | PathLike[str] | Mapping[str, Any], *, update: bool = False
    ) -> Check:
        """Compare with expectations; see :meth:`shardcore.Result.check`."""
        return self.result.check(expect, update=update)

    def __getitem__(self, key: str | tuple[str, str]) -> Value:
        return self.result[key]

    def __str__(self) -> str:
        return str(self.result)

    def __repr__(self) -> str:
        return f"<shardcore.jax.JaxResult of {self.result!r}>"

    def _repr_html_(self) -> str:
        from shardcore.report.html import result_html

        return result_html(self.result)

    def _hlo(self, leaves: Callable[[Module], list[Port]], build: Callable[..., Any]) -> Any:
        return build([hlo_sharding(port) for port in leaves(self._whole.module)])

    @cached_property
    def _whole(self) -> Result:
        return with_sub_axes(self.result)

    def map_inputs(self, leaf: Callable[[Port], Any]) -> tuple[Any, dict[str, Any]]:
        """Return ``leaf(argument)`` for each argument, as ``(args, kwargs)`` of the function, with
        ``None`` for arguments that JAX dropped."""
        return self._trees.map_inputs([leaf(port) for port in input_leaves(self.module)])

    def map_outputs(self, leaf: Callable[[Port], Any]) -> Any:
        """Return ``leaf(result)`` for each result, in the tree that the function returns."""
        return self._trees.map_outputs(map(leaf, output_leaves(self.module)))

    def _inputs(self, leaf: Callable[[Port], Any]) -> tuple[Any, dict[str, Any]]:
        _sayable(input_leaves(self.module))
        return self.map_inputs(leaf)

    def _outputs(self, leaf: Callable[[Port], Any]) -> Any:
        _sayable(output_leaves(self.module))
        return self.map_outputs(leaf)

    def _named(self, port: Port) -> NamedSharding | None:
        """The sharding of ``port`` over its own mesh; ``None`` if there is no mesh."""
        mesh = self._mesh
        known = None if port.sharding is None else port.sharding.mesh
        if known is None and mesh is None:
            known = next(iter(self.module.meshes.values()), None)
        if known is not None and (mesh is None or not is_same_mesh(known, mesh)):
            mesh = abstract_mesh(known, like=mesh)
        if mesh is None:
            return None
        unreduced = port.sharding.unreduced if port.sharding is not None else ()
        implicit = implicit_axes([axis.name for axis in unreduced], mesh)
        if implicit:
            axes = ", ".join(f'"{axis}"' for axis in implicit)
            said = f"{port.label or port.name} is unreduced over {axes}, which is not explicit"
            raise mistake(
                "unsayable-sharding",
                f"no NamedSharding says that {said}",
                "take its spec, or give a mesh whose axis_types have AxisType.Explicit",
            )
        kind = port.attributes.get("mhlo.memory_kind", "").strip('"')
        return NamedSharding(mesh, trimmed(port), memory_kind=kind if "host" in kind else None)


def trimmed(port: Port) -> PartitionSpec:
    """The spec of ``port``, without trailing ``None``."""
    return trimmed_spec(port.sharding)  # type: ignore[no-any-return]


def _sayable(ports: list[Port]) -> None:
    """Raise if a ``PartitionSpec`` cannot say the sharding of one of ``ports``."""
    problems = [
        problem for port in ports for problem in unsayable(port.sharding, port.label or port.name)
    ]
    if problems:
        raise mistakes(*problems)
