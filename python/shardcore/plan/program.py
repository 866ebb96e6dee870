"""The program that is planned: without its annotations, but for those that are kept."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from shardcore._core import Mesh, Module, Result
from shardcore.bounded import items
from shardcore.session import Session


@dataclass(frozen=True)
class Program:
    """A program to plan."""

    given: Session
    """With the annotations that it came with."""
    module: Module
    """With those that are kept only."""
    kept: frozenset[int]
    """The arguments that are not to be annotated."""
    kept_results: frozenset[int]
    """The results that are not to be annotated."""
    wrap: Callable[[Result, Mesh], Any] | None
    """What a result over a mesh is made into."""
    source: Any
    """What the user gave."""
    keeps_values: bool
    """Whether constraints of values are kept."""

    @property
    def mesh(self) -> Mesh | None:
        """The one mesh of several devices that the program came with, if there is one."""
        own = [mesh for mesh in self.given.module.meshes.values() if mesh.num_devices > 1]
        return own[0] if len(own) == 1 else None

    def session(self, mesh: Mesh, module: Module | None = None) -> Session:
        """Return a session without the annotations that are not kept, over ``mesh``.

        ``module`` is another program in its place.

        Raises:
            VerificationError: an annotation that is kept names axes that ``mesh`` does not have.
        """
        replaced = None if list(self.module.meshes.values()) == [mesh] else mesh
        wrap = self.wrap if module is None else None
        return Session(
            module or self.module,
            mesh=replaced,
            wrap=None if wrap is None else lambda result: wrap(result, mesh),
            **self.given._options,
        )


class Sessions:
    """Sessions for one program over several meshes, each made when it is first asked for."""

    def __init__(self, program: Program, module: Module | None = None) -> None:
        """Take ``program``, or ``module`` in its place."""
        self._program, self._module = program, module
        self._made: dict[Mesh, Session] = {}

    def __getitem__(self, mesh: Mesh) -> Session:
        """Return the session over ``mesh``.

        Raises:
            VerificationError: as for :meth:`Program.session`.
        """
        if mesh not in self._made:
            self._made[mesh] = self._program.session(mesh, self._module)
        return self._made[mesh]


def read(given: Any, keep: str | Iterable[str]) -> Program:
    """Return ``given``, a ``Module`` or a lowered JAX function, without its annotations.

    Args:
        given: the program.
        keep: targets or patterns whose annotations stay, and that get none where they have none.

    Raises:
        LocationError: nothing is called like one of ``keep``.
        TypeError: ``given`` is no program.
    """
    wrap: Callable[[Result, Mesh], Any] | None = None
    if isinstance(given, Module):
        session = Session(given)
    elif isinstance(getattr(given, "module", None), Module) and hasattr(given, "over"):
        session, wrap = given.session(), given.over
    else:
        raise TypeError(f"expected a Module or a lowered function, not {type(given).__name__}")
    wanted = [keep] if isinstance(keep, str) else items(keep, "targets")
    stays = {name for target in wanted for name in session.targets(target)}
    edits = {name: None for name in session.annotations if name not in stays}
    bare = session._copy(edits).module if edits else session.module
    kept, kept_results = (
        frozenset(port.index for port in ports if (port.label or port.name) in stays)
        for ports in (bare.arguments(), bare.results())
    )
    names = {port.label or port.name for port in (*bare.arguments(), *bare.results())}
    return Program(session, bare, kept, kept_results, wrap, given, not stays <= names)


def plain(session: Session) -> Result:
    """Return the result of ``session``, which may be one of JAX, as one of a module."""
    result = session.result
    return result if isinstance(result, Result) else result.result
