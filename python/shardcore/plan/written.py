"""The annotations of a layout as people write them: of arguments, and of values with these."""

from __future__ import annotations

from collections.abc import Sequence

from shardcore.plan.candidates import Candidate
from shardcore.plan.classes import NO_CLASS
from shardcore.plan.kinds import Meanings
from shardcore.plan.layouts import Dims, Layout, or_none, with_axis
from shardcore.plan.roles import Role
from shardcore.plan.trials import Shardings


class Written:
    """Annotations of ``roles``; those that are not ``large`` are left to propagation."""

    def __init__(self, roles: Sequence[Role], meanings: Meanings, large: Sequence[bool]) -> None:
        self._roles, self._meanings, self._large = roles, meanings, large

    def shardings(self, candidate: Candidate) -> Shardings:
        """Return the annotations of a layout, for the roles that it shards."""
        return tuple(
            or_none(candidate.layout.of(role.classes, role.shape, even=True))
            if large and role.what == "argument"
            else None
            for role, large in zip(self._roles, self._large, strict=True)
        )

    def pinned(
        self, shardings: Shardings, candidate: Candidate, *, along_all: bool = False
    ) -> Shardings:
        """``shardings`` with activations constrained to their batch axes, if these axes also shard
        something else, no argument has the batch, or the layout is a commonly written one. With
        ``along_all``, also along the other axes of the layout, so that nothing need be gathered at
        the constraint."""
        batch, layout = self._meanings.batch, candidate.layout
        least = 0 if self._meanings.is_inside or candidate.is_usual else 1
        if not any(batch in classes and len(classes) > least for classes in layout.axes):
            return shardings
        axes = ((batch,) if batch in c else c if along_all else () for c in layout.axes)
        whole = Layout(layout.mesh, tuple(axes))
        return tuple(
            or_none(whole.of(role.classes, role.shape, even=True)) if role.what == "begun" else dims
            for role, dims in zip(self._roles, shardings, strict=True)
        )

    def states_apart(self, layout: Layout) -> Shardings:
        """The annotations of a layout in which axes of the batch store nothing but optimizer
        states."""
        batch = self._meanings.batch
        alone = [(batch,) if batch in classes else classes for classes in layout.axes]
        used = Layout(layout.mesh, tuple(alone))
        of_states = {name for role in self._roles if role.what == "states" for name in role.members}

        def of(role: Role) -> Dims | None:
            dims = used.of(role.classes, role.shape, even=True)
            stored = layout.of(role.classes, role.shape, even=True)
            if role.what == "states":
                return stored if stored != dims else None
            if role.what != "argument":
                return None
            # Without an annotation, a parameter would be sharded as its states are.
            is_closed = stored != dims and not of_states.isdisjoint(role.members)
            return dims if is_closed else or_none(dims)

        large = zip(self._roles, self._large, strict=True)
        return tuple(of(role) if is_large else None for role, is_large in large)

    def along_tokens(
        self, shardings: Shardings, layout: Layout, *, within: bool = False
    ) -> Shardings:
        """``shardings`` with first activations constrained to their batch axes, and along dims that
        products do not multiply with weights, such as tokens, to the axes that cut products; with
        ``within`` also what these make of the residual stream, as they are cut."""
        batch, weights = self._meanings.batch, self._meanings.of_products
        tokens = [
            number
            for role in self._roles
            if role.what == "begun"
            for number in role.classes
            if number not in (batch, NO_CLASS) and number not in weights
        ]
        if not tokens:
            return shardings
        whole = [(batch,) if batch in classes else () for classes in layout.axes]
        cut = [
            own or ((*tokens,) if weights & {*classes} else ())
            for own, classes in zip(whole, layout.axes, strict=True)
        ]
        used = {"begun": Layout(layout.mesh, (*cut,))}
        if within and cut != whole:
            used["cut"] = layout
        return tuple(
            or_none(used[role.what].of(role.classes, role.shape, even=True))
            if role.what in used
            else dims
            for role, dims in zip(self._roles, shardings, strict=True)
        )

    def exchanged(self, shardings: Shardings, layout: Layout) -> Shardings:
        """``shardings`` with constraints along the axes that shard both batch and experts: tokens
        sent to experts are sharded by expert, returned ones by batch."""
        batch, experts = self._meanings.batch, self._meanings.experts
        if not any(map(self._meanings.exchanges, layout.axes)):
            return shardings
        back = [(batch,) if batch in classes else () for classes in layout.axes]
        sent = [
            (*(number for number in classes if number in experts), *own)
            for classes, own in zip(layout.axes, back, strict=True)
        ]
        layouts = {
            "sent": Layout(layout.mesh, tuple(sent)),
            "returned": Layout(layout.mesh, tuple(back)),
        }
        return tuple(
            or_none(layouts[role.what].of(role.classes, role.shape, even=True))
            if role.what in layouts
            else dims
            for role, dims in zip(self._roles, shardings, strict=True)
        )

    def lean(self, shardings: Shardings, layout: Layout) -> Shardings:
        """``shardings`` in which each annotated argument is sharded along all axes that divide one
        of its dims, unsharded dims first."""
        found = list(shardings)
        for index, role in enumerate(self._roles):
            for axis in layout.mesh.axes:
                dims = found[index]
                if dims is None or any(axis.name in axes for axes in dims):
                    continue
                for dim in sorted(range(len(dims)), key=lambda dim: len(dims[dim])):
                    moved = with_axis(dims, role.shape, layout.mesh, axis.name, dim)
                    if moved is not None:
                        found[index] = moved
                        break
        return tuple(found)
