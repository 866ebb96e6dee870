"""What is read of a program once, for plans over whichever meshes."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from shardcore._core import Mesh, Port, TensorSharding
from shardcore.cached_property import cached_property
from shardcore.costs import Cost
from shardcore.errors import Diagnostic, PlanError
from shardcore.plan.classes import DimClasses, Work
from shardcore.plan.expert_routing import routed
from shardcore.plan.expressions import Expressions
from shardcore.plan.kinds import Meanings
from shardcore.plan.layers import shallow
from shardcore.plan.layouts import Dims
from shardcore.plan.objective import Wanted
from shardcore.plan.pins import pins
from shardcore.plan.product_values import product_values
from shardcore.plan.program import Program, Sessions, plain
from shardcore.plan.residual_stream import streamed
from shardcore.plan.roles import (
    Ports,
    Role,
    is_within,
    layers,
    of_arguments,
    of_results,
    of_states,
    wholes,
)
from shardcore.plan.scorers import Fewer, Whole, are_worth_it, fewer_layers
from shardcore.plan.states import states
from shardcore.plan.trials import Shardings, dims_of


class Reading:
    """A program, what its arguments and dims mean, and what it costs on one device."""

    def __init__(self, program: Program, wanted: Wanted) -> None:
        """Read ``program``, over the first of the meshes of ``wanted``.

        Raises:
            PlanError: there is nothing to shard (``nothing-to-plan``).
        """
        self.start = time.monotonic()
        self.program = program
        self.ports: Sequence[Port] = program.module.arguments()
        if not any(port.shape for port in self.ports if port.index not in program.kept):
            message = "no argument of the program has dims that could be sharded"
            raise PlanError(Diagnostic("nothing-to-plan", message, "plan a function of arrays"))
        self.sessions = Sessions(program)
        self._mesh: Mesh = wanted.meshes[0]
        self.alone = self._unannotated(wanted)
        """The cost of the program without annotations, also those that are kept."""
        self.work: Mapping[Work, int]
        self.roles: list[Role]
        self.arguments: list[Role]
        self._read()

    def scorers(self, wanted: Wanted, end: float) -> tuple[Whole, Fewer | None]:
        """Return what evaluates on the whole program, and on fewer layers where that does and it is
        not ``end`` yet."""
        where = wanted.chip, wanted.executor, wanted.counting
        whole = Whole(self.sessions, *where)
        if time.monotonic() >= end or self._fewer is None:
            return whole, None
        small, large, more = self._fewer
        return whole, fewer_layers((small, large), more, wanted.meshes[0], self.alone, *where)

    def given_by_role(self, meshes: Sequence[Mesh]) -> tuple[Mesh, Shardings] | None:
        """Return the annotations that the program came with, as far as the members of a role have
        the same; ``None`` if they are over another mesh than ``meshes``."""
        mesh, annotations = self.program.mesh, self.program.given.annotations
        if not annotations or mesh is None or mesh not in meshes:
            return None
        # The values of the program that it came with may have other names.
        ports = {name for role in self.roles for name in role.members}
        return mesh, self.by_role({name: annotations[name] for name in ports & {*annotations}})

    def by_role(self, annotations: Mapping[str, TensorSharding]) -> Shardings:
        """Return ``annotations`` as far as the members of a role have the same."""

        def of(role: Role) -> Dims | None:
            # Those that are states of others may have annotations of their own.
            names = [name for name in role.targets if name not in own] or role.targets
            first, *others = {annotations.get(name) for name in names}
            return None if others or first is None else dims_of(first, role)

        roles = self.roles
        own = {name for role in roles if is_within(role, roles) for name in role.members}
        found = [*map(of, roles)]
        return tuple(
            None if within is not None and found[within] == dims else dims
            for dims, within in zip(found, wholes(roles), strict=True)
        )

    @cached_property
    def _fewer(self) -> tuple[Sessions, Sessions, int] | None:
        """Sessions of two programs with fewer layers, and how many the whole one has more."""
        module = self.program.module
        found = shallow(module)
        if found is None or not are_worth_it(found[0].num_ops + found[1].num_ops, module.num_ops):
            return None
        small, large, more = found
        return Sessions(self.program, small), Sessions(self.program, large), more

    def _unannotated(self, wanted: Wanted) -> Cost:
        first = self.sessions[self._mesh]
        bare = first._copy(dict.fromkeys(first.annotations))
        return bare.cost(wanted.chip, **wanted.counting)

    def _read(self) -> None:
        """Find the roles of the arguments, and what their dims mean."""
        first = self.sessions[self._mesh]
        trips = [loop.trips or 1 for loop in self.alone.loops]
        program = self.program
        unnamed = [port.index for port in self.ports if not port.label]
        classes = DimClasses(plain(first), layers(self.ports), unnamed, trips)
        given = Ports(self.ports, program.kept, classes.arguments)
        results = Ports(program.module.results(), program.kept_results, classes.results)
        arguments = of_arguments(given, results)
        meanings = Meanings(classes.work, arguments)
        found = [*arguments, *of_results(given, results, meanings.batch)]
        values = classes.first_values()
        found += of_states(given, results, found, states(classes.module))
        batch, experts = meanings.batch, meanings.experts
        own = program.module, Expressions(program.module)
        found += pins(*own, values, batch, meanings.is_inside)
        ops = [*classes.ops()]
        places = [*routed(ops, classes.of, batch, experts)]
        places += streamed(ops, classes.of, batch, meanings.widths)
        found += product_values(*own, places, classes.of)
        self.roles, self.arguments, self.meanings = found, arguments, meanings
        self.work = classes.work
