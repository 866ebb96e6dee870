"""A lowered JAX function, ready to propagate."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any

import jax
from jax.sharding import AbstractMesh, NamedSharding, PartitionSpec

from shardcore._core import (
    Mesh,
    Module,
    Port,
    Result,
    SessionProgram,
    TensorSharding,
    import_hlo_shardings,
)
from shardcore.bounded import shown
from shardcore.errors import VerificationError
from shardcore.expected import expect
from shardcore.hlo import in_dialect
from shardcore.jax.custom_partitioning import keep_own_calls
from shardcore.jax.mesh import abstract_mesh, is_same_mesh, mesh_with_devices, our_mesh
from shardcore.jax.mistakes import mistake
from shardcore.jax.private import kept_arguments, name_of, shardings_of
from shardcore.jax.result import JaxMesh, JaxResult
from shardcore.jax.shardings import ours
from shardcore.jax.signatures import UNDEFINED, Definition, signature
from shardcore.jax.trees import Trees, input_leaves, output_leaves
from shardcore.session import Session
from shardcore.session.shardings import read_for
from shardcore.signature import Signature


class Lowered:
    """What :func:`shardcore.jax.lower` returns: a module, and the pytrees of the function."""

    def __init__(
        self,
        module: Module,
        trees: Trees | None,
        mesh: JaxMesh | None,
        traced: Any = None,
        retrace: Callable[[], Any] | None = None,
        lower: Callable[..., Lowered] | None = None,
        defined: Definition = UNDEFINED,
    ) -> None:
        expect(module, Module)
        expect(trees, Trees, type(None))
        expect(mesh, AbstractMesh, jax.sharding.Mesh, type(None))
        if mesh is not None and not module.meshes:
            # A program lowered without Shardy has no axis names; those of the given mesh are used.
            module = import_hlo_shardings(module, our_mesh(mesh))
        if mesh is not None and not module.meshes:
            # JAX writes the mesh only where something is annotated.
            module = module.session(mesh=our_mesh(mesh)).module
        self.module = module
        """The program before propagation, with the shardings that the user gave."""
        self._trees = Trees.flat(module) if trees is None else trees.check(module)
        self._mesh = mesh
        self._traced, self._retrace, self._lower = traced, retrace, lower
        self._defined = defined

    def propagate(self, **options: Any) -> JaxResult:
        """Complete the shardings; options and errors are those of :meth:`Module.propagate`.

        ``legalize_chlo`` is true by default here: CHLO ops get the rules of the ops that XLA
        legalizes them to.
        """
        result = self.module.propagate(**{"legalize_chlo": True, **options})
        return JaxResult(result, self._trees, self._mesh)

    def annotated(self, in_shardings: Any, out_shardings: Any) -> Lowered:
        """Return the program with the shardings in these trees (or prefixes of trees) that JAX does
        not take: ``TensorSharding``s, text, and specs with ``UNCONSTRAINED`` dims.

        Raises:
            VerificationError: a sharding does not fit its argument or result.
        """
        inputs = self._trees.inputs
        args, _ = jax.tree.unflatten(inputs, range(inputs.num_leaves))
        every = ours(in_shardings, args, self._mesh)
        given = [every[place] if place < len(every) else None for place in self._trees.kept]
        values = self._trees.map_outputs(range(self._trees.outputs.num_leaves))
        outputs = ours(out_shardings, values, self._mesh)
        return self._edited(
            [
                *self._edits(0, input_leaves(self.module), given),
                *self._edits(1, output_leaves(self.module), outputs),
            ]
        )

    def with_unreduced_results(self, out_info: Any) -> Lowered:
        """Return the program with those results unreduced that are unreduced in ``out_info``.

        JAX writes this into the module only if there are devices; otherwise the results would be
        reduced at the end.
        """
        shardings = [getattr(leaf, "sharding", None) for leaf in jax.tree.leaves(out_info)]
        if not any(map(_is_unreduced, shardings)):
            return self
        ports = output_leaves(self.module)
        given = [
            sharding if _is_unreduced(sharding) and port.sharding is None else None
            for port, sharding in zip(ports, shardings, strict=True)
        ]
        return self._edited(list(self._edits(1, ports, given)))

    def _edited(self, edits: list[Any]) -> Lowered:
        if not edits:
            return self
        module = SessionProgram(self.module).annotated(edits).module()
        own = self._traced, self._retrace, self._lower, self._defined
        return Lowered(module, self._trees, self._mesh, *own)

    def _edits(
        self, kind: int, ports: list[Port], shardings: list[Any]
    ) -> Iterator[tuple[tuple[int, int], str, TensorSharding | None]]:
        for port, sharding in zip(ports, shardings, strict=True):
            if sharding is None:
                continue
            if not isinstance(sharding, TensorSharding):
                sharding = self._read(sharding, port)
            if self._mesh is not None:
                sharding = self._named(sharding, our_mesh(self._mesh))
            yield (kind, port.index), port.label or port.name, sharding

    def _named(self, sharding: TensorSharding, mesh: Mesh) -> TensorSharding:
        """``sharding`` over ``mesh``, the program's mesh, unless it names another mesh."""
        if sharding.mesh is None:
            return sharding.with_mesh(mesh)
        if sharding.mesh_name is not None or sharding.mesh != mesh:
            return sharding
        meshes = {"mesh": mesh, **self.module.meshes}
        named = next((name for name, each in meshes.items() if each == mesh), None)
        return TensorSharding(
            mesh,
            sharding.dims,
            replicated=sharding.replicated,
            unreduced=sharding.unreduced,
            reduction_op=sharding.reduction_op,
            mesh_name=named,
        )

    def _read(self, sharding: str | PartitionSpec | NamedSharding, port: Port) -> TensorSharding:
        """The sharding that ``sharding`` gives to ``port``, read as in a session."""
        meshes = self.module.meshes
        mesh = sharding.mesh if isinstance(sharding, NamedSharding) else self._mesh
        if mesh is not None:
            own = our_mesh(mesh)
            named = next((name for name, mesh in meshes.items() if mesh == own), "mesh")
            meshes = {named: own, **meshes}
        # JAX's shardings of PRNG keys are over a mesh without axes.
        first = next((each for each in meshes.items() if each[1].axes), None)
        if first is None:
            hint = 'give one, mesh={"data": 8}'
            raise mistake("missing-mesh", f"{shown(sharding)} is over no mesh", hint)
        rank = None if port.shape is None else len(port.shape)
        name = port.label or port.name
        # The axes of the spec are those of the program's mesh; sizes in the spec's own mesh are
        # ignored.
        sharding = sharding.spec if isinstance(sharding, NamedSharding) else sharding
        return read_for(name, sharding, rank, first, meshes)

    def as_text(self, dialect: str = "stablehlo") -> str:
        """Return the program as text, like ``jax.stages.Lowered.as_text``; ``dialect`` is
        ``"stablehlo"`` or ``"hlo"``.

        Raises:
            ValueError: ``dialect`` is neither.
            ParseError: as for :func:`shardcore.hlo.text`.
        """
        return in_dialect(self.module, dialect)

    def session(self, **options: Any) -> Session:
        """Return a session in which the annotations can be edited.

        Targets are paths of the function's arguments and results; the session's ``result`` is a
        :class:`JaxResult`. Options are those of :meth:`Module.session`; ``legalize_chlo`` is true
        by default, as in :meth:`propagate`.
        """
        options = {"legalize_chlo": True, **options}
        given = options.pop("mesh", None)
        if given is not None:
            mesh = given if isinstance(given, Mesh) else Mesh(given)
            return Session(self.module, mesh=mesh, wrap=self._wrap(mesh), **options)
        wrap = functools.partial(JaxResult, trees=self._trees, mesh=self._mesh)
        has_axes = any(mesh.axes for mesh in self.module.meshes.values())
        if not has_axes and self._mesh is not None:
            own = our_mesh(self._mesh)
            # All its shardings may be over other meshes, which they name.
            with contextlib.suppress(VerificationError):
                return Session(self.module, mesh=own, wrap=wrap, **options)
        return Session(self.module, wrap=wrap, **options)

    def _wrap(self, mesh: Mesh) -> Callable[[Result], JaxResult]:
        """The function that makes a :class:`JaxResult` of a result over ``mesh``."""
        own = self._mesh
        if own is None or not is_same_mesh(mesh, own):
            own = abstract_mesh(mesh)
        return functools.partial(JaxResult, trees=self._trees, mesh=own)

    def over(self, result: Result, mesh: Mesh) -> JaxResult:
        """Return ``result``, of this program over ``mesh``, in the pytrees of the function."""
        expect(mesh, Mesh)
        return self._wrap(mesh)(result)

    def of_traced(
        self,
        traced: Any,
        retrace: Callable[[], Any] | None = None,
        lower: Callable[..., Lowered] | None = None,
        defined: Definition = UNDEFINED,
    ) -> Lowered:
        """Return the program with the ``jax.stages.Traced`` that it was lowered from, which
        :meth:`applied` runs, what traces the function anew, what lowers that, and where the
        function is defined."""
        return Lowered(self.module, self._trees, self._mesh, traced, retrace, lower, defined)

    def signature(self) -> Signature:
        """Return where the function is defined, and the trees of what it takes and returns."""
        return signature(self.module, self._trees, self._defined)

    def retraced(self, context: Callable[[], AbstractContextManager[None]]) -> Any:
        """Return what the function is traced to within ``context``.

        Raises:
            LoweringError: it was lowered from no function (``not-a-function``).
        """
        if self._retrace is None:
            hint = "lower a function by shardcore.jax.lower"
            raise mistake("not-a-function", "the program was traced before it was given", hint)
        with context():
            return self._retrace()

    def anew(self, context: Callable[[], AbstractContextManager[None]]) -> Lowered:
        """Return the function lowered anew, traced within ``context``.

        Raises:
            LoweringError: as for :meth:`retraced`.
        """
        traced = self.retraced(context)
        assert self._lower is not None
        return self._lower(traced, retrace=functools.partial(self.retraced, context))

    def applied(
        self,
        mesh: Mesh,
        shardings: tuple[Any, Any],
        constraints: Iterable[tuple[str, str, tuple[int | None, ...], PartitionSpec]] = (),
        *,
        devices: Sequence[Any] | None = None,
        keeps_constraints: bool = False,
        pipeline: tuple[str, int, int] | None = None,
        wrap: Callable[[Any], Any] | None = None,
    ) -> Any:
        """Return the function, jitted over ``mesh`` with these shardings instead of its own.

        Args:
            shardings: two trees of ``PartitionSpec``, one of the positional arguments and one of
                the results; ``None`` leaves a sharding open.
            constraints: the values to constrain: for each the location ``file:line:column`` of the
                expression that computes it, its primitive, its shape and its spec.
            devices: the devices to run on; by default the first of ``jax.devices()``.
            keeps_constraints: whether the function's own constraints stay.
            pipeline: the code of a pipeline, of :func:`shardcore.pipeline.to_python`, that takes
                the place of the scan over the layers; their number, and that of micro-batches.
                Values in the layers are not constrained.
            wrap: makes a layer of it that keeps what is chosen for the backward pass.

        Raises:
            LoweringError: the program was not lowered from a function (``not-a-function``), the
                function does not compute a value that is to be constrained (``lowering``), or there
                are too few devices (``devices``).
        """
        from shardcore.jax.apply import Wanted, applied, mesh_on_devices

        if self._traced is None:
            hint = "lower a function or a Traced by shardcore.jax.lower"
            raise mistake("not-a-function", "the program was lowered before it was given", hint)
        wanted = [Wanted(*each) for each in constraints]
        over = mesh_on_devices(mesh, self._mesh, devices)
        own = self._traced
        if pipeline is not None:
            own = self._pipelined(pipeline, over, wrap)
        found = applied(own, shardings, wanted, over, keeps_constraints=keeps_constraints)
        missing = next((each for each in wanted if not each.is_found), None)
        if missing is not None and pipeline is None:
            said = f"no {missing.primitive} of shape {missing.shape} is traced"
            raise mistake("lowering", f"{said} at {missing.location}", "plan the function anew")
        return found

    def _pipelined(
        self, pipeline: tuple[str, int, int], mesh: Any, wrap: Callable[[Any], Any] | None
    ) -> Any:
        from shardcore.jax.pipelined import Pipelined, traced

        code, layers, micro_batches = pipeline
        names: dict[str, Any] = {}
        exec(compile(code, "<pipeline>", "exec"), names)
        retrace = functools.partial(self.retraced, contextlib.nullcontext)
        return traced(retrace, Pipelined(layers, micro_batches, names["pipelined"], mesh, wrap))

    def _repr_html_(self) -> str:
        from shardcore.report.html import module_html

        return module_html(self.module)

    def __repr__(self) -> str:
        return f"<shardcore.jax.Lowered of {self.module!r}>"


def from_jax_lowered(
    lowered: Any, mesh: JaxMesh | None, devices: jax.sharding.Mesh | None = None
) -> Lowered:
    """Return a ``jax.stages.Lowered`` as a :class:`Lowered`; ``devices`` is the arguments' mesh.

    Raises:
        LoweringError: it was not made by ``jax.jit`` (``not-a-function``), or JAX does not tell
            which arguments it dropped (``lowering``, ``jax-version``).
    """
    text = lowered.as_text(debug_info=True)
    keep_own_calls(text)
    module = Module.parse(text, filename=f"<{name_of(lowered)}>")
    inputs: Any = jax.tree.structure(lowered.args_info)
    trees = Trees(
        inputs,
        lowered.out_tree,
        kept_arguments(lowered, inputs.num_leaves),
        tuple(jax.tree.leaves(lowered.in_avals)),
        tuple(jax.tree.leaves(lowered.out_info)),
        devices or mesh_with_devices(shardings_of(lowered)),
    )
    return Lowered(module, trees, mesh)


def _is_unreduced(sharding: Any) -> bool:
    return isinstance(sharding, NamedSharding) and bool(sharding.spec.unreduced)
