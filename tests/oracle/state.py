"""The sharding of every value, and the value that holds it."""

from __future__ import annotations

from .graph import GROUP, Op, Program, Value, edge_of
from .sharding import TensorSharding, fully_open


class State:
    """The shardings of a program while they are propagated.

    The shardings of the values of a data-flow op are held by its data-flow edges, if it has any.
    """

    def __init__(self, program: Program) -> None:
        self.program = program
        self.shardings: dict[Value, TensorSharding] = dict(program.shardings)
        self.result_shardings = list(program.result_shardings)
        self.groups = program.groups()

    def holder(self, value: Value) -> Value | None:
        """Return the value that holds the sharding of `value`; None if nothing can."""
        edge = edge_of(value)
        if edge is not None:
            return edge.results[0]
        if not value.is_argument or value.owner is None:
            return value
        # A block argument without an edge: the owner of the edge it would have.
        return value.owner.results[value.index] if value.owner.name == "stablehlo.while" else None

    def sharding(self, value: Value) -> TensorSharding | None:
        holder = self.holder(value)
        return None if holder is None else self.shardings.get(holder)

    def set_sharding(self, value: Value, sharding: TensorSharding) -> None:
        """Set the sharding of `value`. With the first result of an op all its results get one."""
        holder = self.holder(value)
        if holder is None:
            return
        if holder.owner is not None:
            for sibling in holder.owner.results:
                missing = sibling not in self.shardings and sibling is not holder
                if missing and not holder.is_argument:
                    self.shardings[sibling] = fully_open(sharding.mesh, len(sibling.shape))
        self.shardings[holder] = sharding

    def group_members(self, value: Value | None) -> list[Value]:
        return next((members for members in self.groups.values() if value in members), [])

    def synchronize_groups(self) -> None:
        """Give all members of a group the sharding that one or more of them have."""
        for members in self.groups.values():
            found = [self.sharding(member) for member in members]
            shardings = [s for s in found if s is not None and not _says_nothing(s)]
            if len(members) == 1 or not shardings:
                continue
            assert all(s == shardings[0] for s in shardings), "members must not disagree"
            for member in members:
                self.set_sharding(member, shardings[0])

    def annotations(self) -> list[tuple[str, list[TensorSharding | None]]]:
        """List the shardings in the order of the text: arguments, ops, function results."""
        program = self.program
        rows: list[tuple[str, list[TensorSharding | None]]] = [
            ("arguments", [self.shardings.get(value) for value in program.arguments])
        ]
        for op in program.walk():
            if op.results and op.name != GROUP:
                rows.append((op.name, self._op_row(op)))
        rows.append(("results", list(self.result_shardings)))
        return rows

    def _op_row(self, op: Op) -> list[TensorSharding | None]:
        return [self.shardings.get(value) for value in op.results]


def _says_nothing(sharding: TensorSharding) -> bool:
    return not any(dim.axes or dim.is_closed for dim in sharding.dims)
