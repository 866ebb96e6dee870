"""Annotations of one program that can be set, removed and undone."""

from __future__ import annotations

import copy
import uuid
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from shardcore._core import (
    AnnotatedProgram,
    Mesh,
    Module,
    Result,
    SessionProgram,
    TensorSharding,
    registry_version,
)
from shardcore.bounded import shown
from shardcore.errors import ShardcoreError
from shardcore.session.edits import Edited, Edits
from shardcore.session.evaluate import Evaluation, evaluate
from shardcore.session.pickled import pickled
from shardcore.session.result_cache import Remembered
from shardcore.session.shardings import NamedMesh, read_for
from shardcore.session.targets import Target, Targets
from shardcore.units import plural

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from shardcore.calculus.hardware import Hardware
    from shardcore.costs import Cost

_OPTIONS = {
    "up_to_priority",
    "keep_non_divisible_on_io",
    "keep_sub_axes_on_io",
    "dedup_functions_fully",
    "legalize_chlo",
    "strategy",
    "max_ops",
}

_MOST_KNOWN = 4096
"""How many sharding texts are remembered with their parsed shardings."""

_MOST_KNOWN_TARGETS = 1 << 16
"""How many names and patterns are remembered with their targets."""

V = TypeVar("V")

Edit = Mapping[str, object]
"""Shardings by target; ``None`` removes the annotation."""


class Session:
    """A program, imported once, whose annotations can be edited.

    A *target* is an argument or a result by its path in the user's program,
    ``"params['layers'][3]['w']"`` or ``"params/layers/3/w"``, or by its name in the module,
    ``"%arg3"``, ``"result 0"``; a pattern of such paths, ``"params/**/w"``, in which ``*`` stands
    for any characters of one step and ``**`` for any number of steps; an argument or a result of
    another function, ``"@helper %arg0"``, ``"@helper result 0"``; or a value, ``"%12"`` or
    ``"@helper %12"``, which is then constrained as by ``with_sharding_constraint``. Values have the
    names that the program before propagation is printed with, whatever is set later. If sibling
    regions use a name twice, ``"%0 do %12"`` denotes the one in region ``do`` of the op that
    computes ``%0`` (:attr:`Value.qualified_name`).

    A *sharding* is ``sdy`` text with or without a mesh, ``'[{"data"}, {?}p1]'``; the text of a
    ``PartitionSpec`` or one of JAX; or a :class:`TensorSharding`.

    An edit that is refused changes nothing.
    """

    def __init__(
        self,
        module: Module,
        *,
        mesh: Mesh | Mapping[str, int] | None = None,
        wrap: Callable[[Result], Any] | None = None,
        **options: Any,
    ) -> None:
        """Start with the annotations of ``module``.

        Args:
            module: the program before propagation.
            mesh: replaces the program's mesh; or the mesh of a program without one.
            wrap: applied to a :class:`Result` to get :attr:`result`.
            **options: those of :meth:`Module.propagate`, but for ``progress``.

        Raises:
            VerificationError: ``mesh`` is given for a program with several meshes, or the program's
                shardings name axes that ``mesh`` does not have.
        """
        if mesh is not None and not isinstance(mesh, Mesh):
            mesh = Mesh(mesh)
        unknown = options.keys() - _OPTIONS
        if unknown:
            raise TypeError(f"a session has no option {shown(min(unknown))}")
        self._program = SessionProgram(module, mesh, options.get("legalize_chlo", False))
        self._targets = Targets(self._program)
        self._options = options
        self._wrap = wrap
        self._key = uuid.uuid4().hex
        self._edits = Edits(self._targets.is_annotated)
        self._made: tuple[int, AnnotatedProgram] | None = None
        """The annotated program, and the version of the edits that it has."""
        self._completed: tuple[AnnotatedProgram, int, Result] | None = None
        """The annotated program, the version of the registered rules, and the result."""
        self._meshes = self._program.meshes
        self._known: dict[tuple[str, int | None], TensorSharding] = {}
        self._known_edits: dict[tuple[str, str], dict[Target, TensorSharding]] = {}
        self._num_known_targets = 0
        self._remembered = Remembered(module.num_ops)
        self._counted_for: tuple[str | Hardware, dict[str, Any]] = ("tpu-v5p", {})
        """The chip and the options of the last requested cost."""
        self._executors: weakref.WeakSet[Executor] = weakref.WeakSet()
        """Executors that have been sent the program."""

    def set(self, target: str | Edit, sharding: object = None) -> None:
        """Annotate ``target`` with ``sharding``, or each target of a mapping with its own.

        Raises:
            LocationError: ``target`` names or matches no argument, result or value.
            VerificationError, ParseError: the sharding is malformed, or does not fit the target.
        """
        if isinstance(target, Mapping):
            if sharding is not None:
                raise TypeError("a mapping has the shardings itself")
            self._change(self._read(target))
            return
        if sharding is None:
            raise TypeError("a sharding is missing; unset(target) removes the annotation")
        self._change(self._read({target: sharding}))

    def unset(self, target: str) -> None:
        """Remove the annotation of ``target``, even one of the original program.

        Raises:
            LocationError: ``target`` names or matches no argument, result or value.
        """
        self._change(dict.fromkeys(self._targets.find(target)))

    def reset(self) -> None:
        """Restore the annotations of the original program; can be undone."""
        self._edits.clear()

    def undo(self) -> None:
        """Undo the last :meth:`set`, :meth:`unset` or :meth:`reset`.

        Raises:
            ValueError: there is nothing to undo, or the edit is too old
                (:data:`~shardcore.session.edits.MOST_UNDOS`).
        """
        if not self._edits.steps:
            raise ValueError("there is nothing to undo")
        self._edits.undo()

    @property
    def annotations(self) -> dict[str, TensorSharding]:
        """The current annotations: shardings of arguments, results and values by target."""
        found: dict[str, TensorSharding] = {}
        for target, sharding in self._targets.annotated():
            if target not in self._edits.now:
                found[self._targets.name(target)] = sharding
        for target, edit in self._edits.now.items():
            if edit is not None:
                found[self._targets.name(target)] = edit
        return found

    @property
    def module(self) -> Module:
        """The program with the current annotations, before propagation."""
        return self._annotated().module()

    @property
    def result(self) -> Any:
        """The propagation result: what :meth:`Module.propagate` returns for :attr:`module`.

        Raises:
            ShardcoreError: as for :meth:`Module.propagate`.
        """
        result = self._propagated()
        return result if self._wrap is None else self._wrap(result)

    def cost(self, hardware: str | Hardware = "tpu-v5p", **options: Any) -> Cost:
        """Return the :class:`Cost` of :attr:`result`; options are those of :func:`shardcore.cost`.

        Costs of recent annotations are remembered: after :meth:`undo` it is the same object.

        Raises:
            ShardcoreError: as for :func:`shardcore.cost`.
        """
        found = self._remembered.cost(
            self._edits.now,
            hardware,
            options,
            lambda: self._propagated().cost(hardware, **options),
        )
        self._counted_for = (hardware, options)
        return found

    def evaluate(
        self,
        edits: Iterable[Edit],
        hardware: str | Hardware | None = None,
        executor: Executor | None = None,
        *,
        progress: Callable[[str, float], object] | None = None,
        **options: Any,
    ) -> Iterator[Evaluation]:
        """Yield a row for each of ``edits``, in order; each is applied to the current annotations.

        If an edit is refused, its row has the error. The session does not change.

        Args:
            edits: mappings as in :meth:`set`; ``None`` removes an annotation. The iterable is read
                only as far ahead as the workers need.
            hardware: the chip for times and peak memory; without it rows have neither.
            executor: a ``concurrent.futures.Executor`` that does the work; by default threads of
                this process. The program is sent once to each worker. If a worker fails, its edits
                are computed in this process.
            progress: called with the current step and, if ``edits`` has a length, the fraction.
            **options: those of :func:`shardcore.cost`.
        """
        return evaluate(self, edits, hardware, executor, progress, options)

    def _repr_html_(self) -> str:
        from shardcore.report.session_html import session_html

        return session_html(self)

    def __repr__(self) -> str:
        annotations = plural(len(self.annotations), "annotation")
        return f"<shardcore.Session: {annotations}, {plural(len(self._edits.now), 'edit')}>"

    def check_targets(self, targets: Iterable[str]) -> None:
        """Check that each of ``targets`` denotes an argument, result or value.

        Raises:
            LocationError: one of them denotes none.
        """
        for target in targets:
            self._targets.find(target)

    def targets(self, target: str) -> list[str]:
        """Return everything that ``target`` denotes, by the names that :attr:`annotations` uses.

        Raises:
            LocationError: ``target`` names or matches no argument, result or value.
        """
        return [self._targets.name(found) for found in self._targets.find(target)]

    def __copy__(self) -> Session:
        """A session for the same program with the same annotations; it is edited independently."""
        twin = type(self).__new__(type(self))
        twin.__dict__.update(self.__dict__)
        twin._edits = self._edits.copy()
        return twin

    def __deepcopy__(self, memo: object) -> Session:
        return copy.copy(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return pickled(self)

    def _before(self) -> Session | None:
        """The session before the last edit that still applies."""
        if not self._edits.steps:
            return None
        twin = copy.copy(self)
        twin.undo()
        return twin

    # For evaluate(): other workers may do the work.

    def _copy(self, edits: Edit | None = None) -> Session:
        """A session for the same program, with a copy of the edits, or with ``edits`` instead."""
        twin = copy.copy(self)
        if edits is not None:
            twin.reset()
            twin.set(edits)
        twin._edits.steps.clear()
        return twin

    def _edits_by_name(self) -> dict[str, TensorSharding | None]:
        """The edits by names that are valid in every session for the same program text."""
        return self._by_exact_names(self._edits.now)

    def _by_exact_names(self, of: Mapping[Target, V]) -> dict[str, V]:
        exact = self._targets.exact_name
        return {exact(target): each for target, each in of.items()}

    def _is_new_to(self, executor: Executor) -> bool:
        """Whether ``executor`` has not been sent the program before; marks it as sent."""
        try:
            if executor in self._executors:
                return False
            self._executors.add(executor)
        except TypeError:
            pass  # It has no hash, or takes no weak references.
        return True

    def _snapshot(self) -> tuple[str, str, str, dict[str, Any]]:
        """A key of the program, its text, its Shardy version and the session's options."""
        module = self._program.annotated([]).module()
        return self._key, str(module), module.shardy, self._options

    def _merged(self, edit: Edit) -> Edited:
        return self._edits.after(self._read(edit))

    def _propagate(self, edits: Edited) -> Result:
        return self._with(edits).propagate(**self._options)

    def _annotated(self) -> AnnotatedProgram:
        """The program with the current annotations."""
        made, version = self._made, self._edits.version
        if made is None or made[0] != version:
            made = self._made = (version, self._with(self._edits.now))
        return made[1]

    def _propagated(self) -> Result:
        annotated, version, completed = self._annotated(), registry_version(), self._completed
        if completed is None or completed[0] is not annotated or completed[1] != version:
            result = annotated.propagate(**self._options)
            completed = self._completed = (annotated, version, result)
        return completed[2]

    def _with(self, edits: Edited) -> AnnotatedProgram:
        return self._program.annotated(self._listed(edits))

    def _read(self, edit: Edit) -> Edited:
        """The targets of ``edit`` with their shardings; later entries win."""
        if not isinstance(edit, Mapping):
            raise TypeError(f"an edit is a mapping, not a {type(edit).__name__}")
        found: Edited = {}
        for name, sharding in edit.items():
            if type(name) is str and type(sharding) is str:
                known = self._known_edits.get((name, sharding))
                found.update(self._read_text(name, sharding) if known is None else known)
                continue
            mesh = self._program.mesh()
            for target in self._targets.find(name):
                found[target] = None if sharding is None else self._sharding(target, sharding, mesh)
        return found

    def _read_text(self, name: str, sharding: str) -> dict[Target, TensorSharding]:
        """The targets of ``name`` with the sharding of this text; both are remembered."""
        mesh = self._program.mesh()
        found = {
            target: self._sharding(target, sharding, mesh) for target in self._targets.find(name)
        }
        if any(each.mesh_name and each.mesh_name not in self._meshes for each in found.values()):
            return found
        self._num_known_targets += 1 + len(found)
        if self._num_known_targets > _MOST_KNOWN_TARGETS:
            self._known_edits.clear()
            self._num_known_targets = 1 + len(found)
        self._known_edits[name, sharding] = found
        return found

    def _sharding(self, target: Target, sharding: object, mesh: NamedMesh | None) -> TensorSharding:
        rank = self._targets.rank(target)
        known = self._known.get((sharding, rank)) if isinstance(sharding, str) else None
        if known is not None:
            return known
        name = self._targets.name(target)
        try:
            found = read_for(name, sharding, rank, mesh, self._meshes)
        except ShardcoreError as error:
            edits = (edit for edit in self._edits.now.values() if edit is not None)
            added = {edit.mesh_name: edit.mesh for edit in edits if edit.mesh and edit.mesh_name}
            if error.code != "unknown-mesh" or not added:
                raise
            # The program owns the target as long as such an edit exists.
            first: NamedMesh = mesh or next(iter(added.items()))
            return read_for(name, sharding, rank, first, {**added, **self._meshes})
        if isinstance(sharding, str):
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            self._known[sharding, rank] = found
        return found

    def _listed(self, edits: Edited) -> list[tuple[Target, str, TensorSharding | None]]:
        name = self._targets.name
        # Another thread may edit in the meantime.
        return [(target, name(target), sharding) for target, sharding in tuple(edits.items())]

    def _change(self, edited: Edited) -> None:
        """Apply ``edited``; if it is refused, the session does not change."""
        edits = self._edits
        if edits.are_plain and self._program.are_plain(self._listed(edited)):
            # The program with all edits is built when it is first requested.
            edits.apply(edited, are_plain=True)
            return
        annotated = self._with(edits.after(edited))
        edits.apply(edited, are_plain=False)
        self._made = (edits.version, annotated)
