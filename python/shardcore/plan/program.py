"""The program to plan, without its annotations except those kept."""

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
    """The program with its own annotations."""
    module: Module
    """The program with only the kept annotations."""
    kept: frozenset[int]
    """The numbers of the arguments that may not be annotated."""
    kept_results: frozenset[int]
    """The numbers of the results that may not be annotated."""
    wrap: Callable[[Result, Mesh], Any] | None
    """A function that converts a result over a mesh to what the user gets."""
    source: Any
    """The program that the user gave."""
    keeps_values: bool
    """Whether constraints of values are kept."""
    keep: tuple[str, ...] = ()
    """The targets whose annotations are kept."""

    @property
    def mesh(self) -> Mesh | None:
        """The program's only mesh with several devices, if there is exactly one."""
        own = [mesh for mesh in self.given.module.meshes.values() if mesh.num_devices > 1]
        return own[0] if len(own) == 1 else None

    def session(self, mesh: Mesh, module: Module | None = None) -> Session:
        """Return a session over ``mesh`` with only the kept annotations.

        ``module`` is used in place of the program if it is given.

        Raises:
            VerificationError: a kept annotation names axes that ``mesh`` lacks.
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
    """Sessions for one program over several meshes, each created when it is first used."""

    def __init__(self, program: Program, module: Module | None = None) -> None:
        """Use ``program``, or ``module`` in its place."""
        self._program, self._module = program, module
        self.module = program.module if module is None else module
        """The program, without its annotations except those kept."""
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
        keep: targets or patterns; their annotations stay, and those without an annotation get none.

    Raises:
        LocationError: an entry of ``keep`` denotes nothing.
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
    return Program(session, bare, kept, kept_results, wrap, given, not stays <= names, (*wanted,))


def plain(session: Session) -> Result:
    """Return the result of ``session``, which may be one of JAX, as one of a module."""
    result = session.result
    return result if isinstance(result, Result) else result.result
