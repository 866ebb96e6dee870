"""Random edits of any program, and what they have to lead to."""

from __future__ import annotations

import json
import re
from random import Random
from unittest.mock import patch

from shardcore import AxisRef, DimSharding, Mesh, Module, Session, ShardcoreError, TensorSharding
from shardcore._core import ReshardPlans
from shardcore.partition import partitioned


def random_sharding(rng: Random, mesh: Mesh, name: str, rank: int) -> TensorSharding:
    """A valid sharding of a tensor of ``rank``, with all that a sharding can have."""
    if mesh.is_maximal:
        return TensorSharding(mesh, [], mesh_name=name)
    free = [part for axis in mesh.axes for part in _parts(rng, axis.name, axis.size)]
    rng.shuffle(free)
    dims = []
    for _ in range(rank):
        count = rng.choice((0, 0, 1, 1, 2))
        axes, free = mesh.merge_axes(free[:count]), free[count:]
        is_closed = rng.random() < 0.6
        has_priority = rng.random() < 0.2 and (axes or not is_closed)
        dims.append(DimSharding(axes, is_closed, rng.randrange(3) if has_priority else None))
    replicated = free[: rng.randrange(2)] if rng.random() < 0.2 else []
    return TensorSharding(mesh, dims, replicated=replicated, mesh_name=name)


def _parts(rng: Random, name: str, size: int) -> list[AxisRef]:
    """The axis, or two parts of it."""
    halves = [part for part in range(2, size) if size % part == 0]
    if not halves or rng.random() < 0.8:
        return [AxisRef(name)]
    first = rng.choice(halves)
    return [AxisRef(name, 1, first), AxisRef(name, first, size // first)]


class Editor:
    """Edits a session at random."""

    def __init__(self, rng: Random, session: Session) -> None:
        self._rng, self._session = rng, session
        module = session.module
        self._meshes = list(module.meshes.items())
        ports = [*module.arguments(), *module.results()]
        self._ranks = {port.name: len(port.shape) for port in ports if port.shape is not None}
        for value in module.values():
            if value.shape is not None and value.op is not None:
                name = f"@{value.function} {value.name}"
                self._ranks[name] = len(value.shape)
        self._names = list(self._ranks)
        self._num_ports = sum(not name.startswith("@") for name in self._names)

    def edit(self) -> str:
        """Make an edit, which may be refused, and say what it was."""
        rng, session = self._rng, self._session
        kind = rng.choice(("set", "set", "set", "set", "many", "unset", "undo", "reset", "bad"))
        name = self._name()
        before = session.annotations
        try:
            if kind == "set":
                session.set(name, self._sharding(name))
            elif kind == "many":
                session.set({name: self._sharding(name) for name in (self._name(), self._name())})
            elif kind == "unset":
                session.unset(name)
            elif kind == "undo":
                session.undo()
            elif kind == "reset":
                session.reset()
            else:
                session.set(name, TensorSharding("no_such_mesh", [["no_such_axis"]]))
        except ValueError as error:
            refusal = error
        else:
            return f"{kind} {name}"
        assert session.annotations == before, f"{kind} {name}: {refusal}"
        return f"{kind} {name}: refused, {refusal}"

    def _name(self) -> str:
        if self._num_ports and self._rng.random() < 0.7:
            return self._names[self._rng.randrange(self._num_ports)]
        return self._rng.choice(self._names)

    def _sharding(self, name: str) -> TensorSharding:
        symbol, mesh = self._rng.choice(self._meshes)
        return random_sharding(self._rng, mesh, symbol, self._ranks[name])


def outcome(run: Session | Module) -> str:
    """The text of the completed program that ``run``, a session or a module, leads to, or the code
    of its error.
    """
    try:
        result = run.result if isinstance(run, Session) else run.propagate()
        port_bytes = result._port_bytes()
    except ShardcoreError as error:
        return f"error {error.code}"
    # What has bytes can be completed, and has these then.
    totals = result.module.totals()
    names = ("argument_bytes_per_device", "result_bytes_per_device")
    assert port_bytes == [totals[name] for name in names]
    # Text that no edit changes is printed as the source has it, in some modules like this.
    return re.sub(r"} ([,)])", r"}\1", str(result.module))


def new_outcome(session: Session) -> str:
    """What a new run on the text of the annotated program leads to."""
    return outcome(Module.parse(str(session.module)))


def figures(run: Session | Module) -> str:
    """All that the cost of ``run`` says, or the code of its error; that of a module takes nothing
    from what was partitioned before.
    """
    try:
        if isinstance(run, Session):
            return json.dumps(run.cost("tpu-v5e").record())
        with patch.object(partitioned, "_PLANS", ReshardPlans()):
            return json.dumps(run.propagate().cost("tpu-v5e").record())
    except ShardcoreError as error:
        return f"error {error.code}"
