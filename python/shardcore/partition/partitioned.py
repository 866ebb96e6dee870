"""A partitioned program, and how each op of its source is computed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from shardcore._core import (
    Figures,
    Module,
    Origin,
    Originals,
    Port,
    ReshardPlans,
    Result,
    partition_program,
    program_figures,
)
from shardcore.bounded import shown
from shardcore.expected import expect
from shardcore.rules.costs import cost_estimates, registered_cost_rules
from shardcore.rules.partitioners import local_program
from shardcore.rules.shards import shard_rules
from shardcore.units import plural

if TYPE_CHECKING:
    from shardcore.costs.records import CollectiveCost
    from shardcore.simulate import Simulator

POLICIES = ("least", "shardy", "xla")
"""How to choose where an op can be computed in more than one way; see :func:`partition`."""

MOST_OPS_KEPT = 1 << 16
"""Of larger programs the best plan is not kept while others are made, but made again."""

MOST_OPS_COPIED = 1 << 18
"""Of larger programs what is lowered is no copy: the source is made again if it is asked for."""

MOST_OPS_AS_XLA = 4000
"""The most ops of a program for which ``least`` makes the plan of ``xla`` too."""

_PLANS = ReshardPlans()
"""The plans of reshards that were searched for in this process."""


@dataclass(frozen=True)
class Outcome:
    """How an op of the source program is computed."""

    name: str
    """The op's name, ``stablehlo.add``."""
    kind: str
    """``local``, ``collective`` or ``gathered``."""
    reason: str
    """What is sent or gathered, and why; empty for a local op."""
    location: str | None
    """Where the op comes from in the source."""
    number: int | None = field(default=None, repr=False, compare=False)
    """The number of the op in the source program."""

    @property
    def is_whole(self) -> bool:
        """Whether every device computes the whole op, since nobody knows how to do so on shards."""
        return self.kind == "gathered" and self.reason.startswith("made whole")

    def record(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {
            "name": self.name,
            "kind": self.kind,
            "reason": self.reason,
            "location": self.location,
        }


class Partitioned:
    """The program of one device, with its source; made by :meth:`shardcore.Result.partition`."""

    def __init__(
        self,
        source: Module,
        module: Module,
        policy: str,
        num_devices: int,
        origin: Origin,
        result: Result,
    ) -> None:
        self.result = result
        """What was partitioned."""
        self.source = source
        """The program of all devices, with the shardings by which it was partitioned.

        Under ``least`` its calls may be inlined; arguments and results are those of the result.
        """
        self.module = module
        """The program of one device: ``StableHLO`` with local types and collectives."""
        self.policy = policy
        """How ways were chosen."""
        self.num_devices = num_devices
        """How many devices run the program."""
        self.origin = origin
        """Where the ops of the per-device program come from, as the engine has it."""
        self.keeps_ports = True
        """Whether arguments and results are sharded as those of the result."""
        self._figures: tuple[object, dict[tuple[str, int], Figures]] = (None, {})
        self._outcomes: tuple[Outcome, ...] | None = None
        self._whole: frozenset[int | None] | None = None
        self._collectives: tuple[CollectiveCost, ...] | None = None
        self._sent_bytes: int | None = None
        self._simulators: dict[str | None, Simulator] = {}

    @property
    def arguments(self) -> list[Port]:
        """The arguments: sharding, global and local shape.

        A dim that does not divide is padded at its end on the last devices; the elements of the
        padding are unspecified.
        """
        return self.source.arguments()

    @property
    def results(self) -> list[Port]:
        """The results: sharding, global and local shape; padded as the arguments."""
        return self.source.results()

    @property
    def outcomes(self) -> tuple[Outcome, ...]:
        """How the ops of the source program are computed, in program order."""
        if self._outcomes is None:
            self._outcomes = tuple(Outcome(*row) for row in self.origin.outcomes())
        return self._outcomes

    def figures(self, compiler: str = "none", cache_bytes: int = 0) -> Figures:
        """Return the figures that costs are computed from, by the cost rules that are registered
        now; times and traffic are those of the kernels of ``compiler`` where these are known, on a
        chip with a cache of ``cache_bytes``.
        """
        rules = registered_cost_rules()
        if self._figures[0] != rules:
            self._figures = rules, {}
        known = self._figures[1]
        # Kernels are followed on GPUs and hosts; TPUs have tiles.
        own = (compiler, 0 if compiler == "xla-tpu" else cache_bytes)
        target = ("none", 0) if compiler == "none" else own
        if target not in known:
            estimates = cost_estimates(self.module)
            known[target] = program_figures(self.module, self.origin, estimates, *target)
        return known[target]

    @property
    def collectives(self) -> tuple[CollectiveCost, ...]:
        """The collectives that a device takes part in, as those of a ``Cost``.

        ``seconds`` is 0, because times depend on the hardware.
        """
        if self._collectives is None:
            from shardcore.partition.collectives import collectives

            self._collectives = collectives(self)
        return self._collectives

    @property
    def sent_bytes(self) -> int:
        """Bytes that a device sends in one run of the program."""
        if self._sent_bytes is None:
            from shardcore.partition.collectives import sent_bytes

            self._sent_bytes = sent_bytes(self.module)
        return self._sent_bytes

    def as_text(self, dialect: str = "stablehlo") -> str:
        """Return the program of one device as text of ``dialect``, ``"stablehlo"`` or ``"hlo"``.

        Raises:
            ValueError: there is no such dialect.
            ParseError: as for :func:`shardcore.hlo.text`.
        """
        from shardcore.hlo import in_dialect

        return in_dialect(self.module, dialect)

    def simulate(self, *arrays: Any, padding: Any = None, dtype: str | None = None) -> list[Any]:
        """Run all devices in this process, on NumPy: global arrays in, global arrays out.

        Args:
            arrays: one for each argument, of its global shape.
            padding: the elements of the padding of arguments. By default NaN, the largest number
                of an integer type, and true.
            dtype: compute floats that are narrower in this type, ``"f32"`` or ``"f64"``, as
                :class:`shardcore.simulate.Simulator` does; results have it.

        Raises:
            SimulationError: arguments do not fit, or an op cannot be simulated.
            ValueError: devices that should hold the same part of a result hold different ones, or
                ``dtype`` is no such type.
        """
        from shardcore.partition.placement import gather, scatter

        simulator = self.simulator(dtype)
        ports = self.arguments
        if len(arrays) != len(ports):
            raise TypeError(f"the program takes {len(ports)} arguments, not {len(arrays)}")
        given = [
            scatter(array, port, self.num_devices, padding)
            for array, port in zip(arrays, ports, strict=True)
        ]
        found = simulator(*given, devices=self.num_devices)
        return [gather(array, port) for array, port in zip(found, self.results, strict=True)]

    def simulator(self, dtype: str | None = None) -> Simulator:
        """What runs the program of one device, made once for each ``dtype``.

        Raises:
            SimulationError: an op cannot be simulated.
            ValueError: there is no such ``dtype``.
        """
        from shardcore.simulate import Simulator
        from shardcore.simulate.dtypes import widened

        # Before the dictionary is asked: not everything has a hash.
        widened(dtype)
        found = self._simulators.get(dtype)
        if found is None:
            found = self._simulators[dtype] = Simulator(self.module, dtype=dtype)
        return found

    def record(self) -> dict[str, Any]:
        """Return figures and outcomes as plain data."""
        return {
            "policy": self.policy,
            "num_devices": self.num_devices,
            "sent_bytes": self.sent_bytes,
            "collectives": [collective.record() for collective in self.collectives],
            "outcomes": [outcome.record() for outcome in self.outcomes],
        }

    def is_whole(self, op: int) -> bool:
        """Whether every device computes the whole op with this number in the source program."""
        if self._whole is None:
            self._whole = frozenset(each.number for each in self.outcomes if each.is_whole)
        return bool(self._whole) and self.origin.original(op) in self._whole

    def count_outcomes(self) -> dict[str, int]:
        """Return the number of ops of each kind of outcome."""
        counts: dict[str, int] = defaultdict(int)
        for outcome in self.outcomes:
            counts[outcome.kind] += 1
        return dict(counts)

    def _of(self, result: Result) -> Partitioned:
        """Another result, partitioned as this one was, to be counted."""
        return partition(result, self.policy, replicates_unknown=True, keep_ports=self.keeps_ports)

    def _repr_html_(self) -> str:
        from shardcore.report.html import parts_html
        from shardcore.report.partition_table import partition_parts

        return parts_html(partition_parts(self))

    def __repr__(self) -> str:
        kinds = ", ".join(f"{count} {kind}" for kind, count in self.count_outcomes().items())
        sends = "sends" if len(self.collectives) == 1 else "send"
        sent = plural(self.sent_bytes, "byte")
        return (
            f"<shardcore.Partitioned: {plural(self.num_devices, 'device')}, policy {self.policy}, "
            f"{plural(len(self.collectives), 'collective')} that {sends} {sent} a device; "
            f"ops: {kinds or 'none'}>"
        )


def partition(
    result: Result,
    policy: str = "least",
    *,
    progress: Callable[[str, float], object] | None = None,
    replicates_unknown: bool = False,
    keep_ports: bool = True,
) -> Partitioned:
    """Lower the program of ``result`` to the program of one device.

    Args:
        result: a program whose shardings are complete.
        policy: how to choose where an op can be computed in more than one way. ``shardy`` reshards
            as Shardy's ``sdy-insert-explicit-reshards`` plans (what ``result.with_collectives``
            shows). ``least`` makes up to seven plans and takes the one that sends the fewest bytes
            in total: the way that sends the fewest bytes for each op, with results resharded to
            their shardings; the same with results that stay as they are computed until an op needs
            them otherwise; that of ``shardy``; where values are resharded for calls, the first two
            for the program completed once its calls are inlined; and, of programs of at most 4,000
            ops, that of ``xla``, and that in which results go to where elementwise ops behind them
            are resharded to. On each it runs the passes that merge, hoist and fuse collectives.
            ``xla`` chooses as XLA's SPMD partitioner does for products, convolutions, elementwise
            ops, reductions, gathers, scatters, reshapes, slices and concatenations, and takes the
            way that sends the fewest bytes for other ops.
        progress: called from time to time with the name of the current step and the fraction of the
            work that is done, from 0 to 1.
        replicates_unknown: let every device compute the ops of which nothing is known, on all of
            their operands; such a program can be counted, but not run.
        keep_ports: arguments and results are sharded as in ``result``; otherwise those without
            annotation are sharded as XLA shards them under ``xla``.

    Raises:
        PartitionError: an op cannot be split over devices (``unpartitionable``).
        TypeError: ``result`` is no :class:`shardcore.Result`.
        ValueError: there is no such policy.
    """
    expect(result, Result)
    if policy not in POLICIES:
        raise ValueError(f"policy is 'shardy', 'least' or 'xla', not {shown(policy)}")
    lower = partial(
        lowered, result, policy=policy, progress=progress, replicates_unknown=replicates_unknown
    )
    if policy == "least":
        return least(result, lower)
    if policy == "shardy":
        return lower(result._resharded(), takes_source=True)
    completed, originals = result._as_xla(keep_ports)
    made = lower(completed, originals=originals, takes_source=True)
    made.keeps_ports = keep_ports
    return made


def least(result: Result, lower: Callable[..., Partitioned]) -> Partitioned:
    """Lower ``result`` by the plan that sends the fewest bytes; see :func:`partition`."""

    source = result._legalized()

    def plans() -> Iterator[Callable[[], Partitioned]]:
        yield partial(lower, source)
        yield partial(lower, source, keep_results=True)
        yield lambda: lower(result._resharded(), takes_source=True)
        inlined = result._inlined()
        if inlined is not None:
            yield partial(lower, inlined, keep_results=True)
            yield partial(lower, inlined)
        if source.num_ops <= MOST_OPS_AS_XLA:
            completed, originals = result._as_xla(keep_ports=True)
            yield partial(lower, completed, originals=originals, ways="xla")
            far = source if inlined is None else inlined
            yield partial(lower, far, keep_results=True, looks_ahead=True)

    of_best: Callable[[], Partitioned] | None = None
    best: Partitioned | None = None
    sent = 0
    for make in plans():
        if source.num_ops > MOST_OPS_KEPT:
            best = None
        plan = make()
        if of_best is None or plan.sent_bytes < sent:
            best, of_best, sent = plan, make, plan.sent_bytes
        # While the next plan is made, there is one other at most.
        del plan
        if sent == 0:
            break
    assert of_best is not None
    return of_best() if best is None else best


def lowered(
    result: Result,
    source: Module,
    policy: str,
    progress: Callable[[str, float], object] | None,
    replicates_unknown: bool = False,
    keep_results: bool = False,
    originals: Originals | None = None,
    ways: str | None = None,
    looks_ahead: bool = False,
    takes_source: bool = False,
) -> Partitioned:
    """Lower ``source``, a form of ``result``, by one plan of ``policy``; see :func:`partition`.

    Ops are computed in the ways of that policy, or of the policy ``ways``. With ``takes_source``
    ``source`` is made again when it is read, if the program is large.
    """
    rules = shard_rules(source)
    module, num_devices, origin = partition_program(
        source,
        progress,
        rules,
        ways or policy,
        keep_results,
        replicates_unknown,
        _PLANS,
        originals,
        policy == "least",
        looks_ahead,
        takes_source and source.num_ops > MOST_OPS_COPIED,
        local_program,
    )
    if rules and any(attributes for *_, attributes in rules):
        # Attributes of custom calls are the user's text, which may not parse.
        Module.parse(str(module), filename="<local program>", shardy=module.shardy)
    return Partitioned(source, module, policy, num_devices, origin, result)
