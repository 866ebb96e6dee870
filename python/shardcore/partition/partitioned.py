"""A partitioned program, and how each op of the global program is computed in it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from shardcore._core import (
    Figures,
    Module,
    Origin,
    Originals,
    PassManager,
    Port,
    ReshardPlans,
    Result,
    partition_program,
    program_figures,
)
from shardcore.compilers import check_compiler
from shardcore.expected import expect
from shardcore.partition.outcome import Outcome
from shardcore.partition.policies import check_policy
from shardcore.rules.costs import cost_estimates, registered_cost_rules
from shardcore.rules.partitioners import local_program
from shardcore.rules.shards import shard_rules
from shardcore.units import plural

if TYPE_CHECKING:
    from shardcore._core import Mesh
    from shardcore.calculus.hardware import ChipFacts
    from shardcore.costs.records import CollectiveCost
    from shardcore.simulate import Simulator

NO_CHIP: ChipFacts = (0, False, None, (1, 1, 1), None, 1)
"""A chip of which compilers know nothing."""

MOST_OPS_KEPT = 1 << 16
"""For larger programs the best plan is not kept while the others are made; it is made again."""

MOST_OPS_COPIED = 1 << 18
"""Larger programs are lowered in place, without a copy; their source is rebuilt when it is read."""

MOST_OPS_AS_XLA = 4000
"""The largest program (in ops) for which ``least`` also tries the plan of ``xla``."""

_PLANS = ReshardPlans()
"""The reshard plans that were searched in this process."""


class Partitioned:
    """The per-device program and its source; made by :meth:`shardcore.Result.partition`."""

    def __init__(
        self,
        source: Module,
        module: Module,
        policy: str,
        num_devices: int,
        origin: Origin,
        result: Result,
        meshes: tuple[Mesh, ...] = (),
    ) -> None:
        self.result = result
        """The propagated program that was partitioned."""
        self.source = source
        """The global program, with the shardings used for partitioning.

        Under ``least`` its calls may be inlined; arguments and results are those of the result.
        """
        self.meshes = meshes
        """The meshes of :attr:`source`, which would be made again to ask it for them."""
        self.module = module
        """The per-device program: StableHLO with local types and collectives."""
        self.policy = policy
        """The policy that chose how ops are computed."""
        self.num_devices = num_devices
        """How many devices run the program."""
        self.origin = origin
        """Where the ops of the per-device program come from, in the engine's form."""
        self.passes = ""
        """The comma-separated passes that ran on :attr:`module`, as compilers do."""
        self.keeps_ports, self.compiler = True, "none"
        """Whether ports have the shardings of :attr:`result`; whose propagation is followed."""
        self._outcomes: tuple[Outcome, ...] | None = None
        self._whole: frozenset[int | None] | None = None
        self._forget_module()

    def _forget_module(self) -> None:
        """Forget what was computed from :attr:`module`."""
        self._figures: tuple[object, dict[tuple[str, ChipFacts], Figures]] = (None, {})
        self._collectives: tuple[CollectiveCost, ...] | None = None
        self._sent_bytes: int | None = None
        self._simulators: dict[str | None, Simulator] = {}

    @property
    def arguments(self) -> list[Port]:
        """The arguments: sharding, global and local shape.

        A dim that does not divide evenly is padded on the last devices by unspecified elements.
        """
        return self.source.arguments()

    @property
    def results(self) -> list[Port]:
        """The results: sharding, global and local shape; padded like the arguments."""
        return self.source.results()

    @property
    def outcomes(self) -> tuple[Outcome, ...]:
        """How each op of the global program is computed, in program order."""
        if self._outcomes is None:
            self._outcomes = tuple(Outcome(*row) for row in self.origin.outcomes())
        return self._outcomes

    def figures(self, compiler: str = "none", chip: ChipFacts = NO_CHIP) -> Figures:
        """Return the numbers that costs are computed from, under the cost rules registered now.
        Times and traffic are those of the kernels that ``compiler`` makes, where these are known;
        ``chip`` is what it knows of the chip.
        """
        rules = registered_cost_rules()
        if self._figures[0] != rules:
            self._figures = rules, {}
        known = self._figures[1]
        target = (compiler, NO_CHIP if compiler == "none" else chip)
        if target not in known:
            estimates = cost_estimates(self.module)
            known[target] = program_figures(self.module, self.origin, estimates, *target)
        return known[target]

    @property
    def collectives(self) -> tuple[CollectiveCost, ...]:
        """The collectives of the per-device program, in the form that a ``Cost`` lists them.

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
        """Return the per-device program as text; ``dialect`` is ``"stablehlo"`` or ``"hlo"``.

        Raises:
            ValueError: ``dialect`` is neither.
            ParseError: as for :func:`shardcore.hlo.text`.
        """
        from shardcore.hlo import in_dialect

        return in_dialect(self.module, dialect)

    def simulate(self, *arrays: Any, padding: Any = None, dtype: str | None = None) -> list[Any]:
        """Run all devices in this process, on NumPy, with global arrays as arguments and results.

        Args:
            arrays: one array for each argument, of its global shape.
            padding: the value of padding elements of arguments. By default NaN, the largest number
                of an integer type, and true.
            dtype: compute narrower floats in this type, ``"f32"`` or ``"f64"``, as
                :class:`shardcore.simulate.Simulator` does; results have this type.

        Raises:
            SimulationError: the arguments do not fit the program, or an op cannot be simulated.
            ValueError: replicas of a result differ between devices, or ``dtype`` is no such type.
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
        """The simulator of the per-device program, made once for each ``dtype``.

        Raises:
            SimulationError: an op cannot be simulated.
            ValueError: ``dtype`` is no such type.
        """
        from shardcore.simulate import Simulator
        from shardcore.simulate.dtypes import widened

        # Checked before the dictionary lookup, because not every value is hashable.
        widened(dtype)
        found = self._simulators.get(dtype)
        if found is None:
            found = self._simulators[dtype] = Simulator(self.module, dtype=dtype)
        return found

    def record(self) -> dict[str, Any]:
        """Return the counts and the outcomes as plain data."""
        return {
            "policy": self.policy,
            "num_devices": self.num_devices,
            "sent_bytes": self.sent_bytes,
            "collectives": [collective.record() for collective in self.collectives],
            "outcomes": [outcome.record() for outcome in self.outcomes],
        }

    def is_whole(self, op: int) -> bool:
        """Whether every device computes the whole op with this number in the global program."""
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
        """Another result, partitioned like this one, for counting only."""
        options: Any = {"keep_ports": self.keeps_ports, "passes": self.passes}
        options |= {"compiler": self.compiler, "replicates_unknown": True}
        return partition(result, self.policy, **options)

    def run_passes(self, passes: str) -> None:
        """Run ``passes``, a comma-separated list, on :attr:`module`, which nobody else may hold.

        Raises:
            PipelineError: a pass has no such option.
        """
        if passes:
            PassManager.parse(f"builtin.module({passes})").run(self.module)
            self.passes = passes
            self._forget_module()

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
    passes: str = "",
    compiler: str = "none",
) -> Partitioned:
    """Lower the program of ``result`` to the per-device program.

    Args:
        result: a propagated program.
        policy: how to choose among several ways to compute an op. ``shardy`` reshards as Shardy's
            ``sdy-insert-explicit-reshards`` plans (which ``result.with_collectives`` shows).
            ``least`` makes up to seven plans, runs the passes that merge, hoist and fuse
            collectives on each, and takes the plan that sends the fewest bytes in total. The plans
            are: 1. for each op the way that sends the fewest bytes, with results resharded to their
            shardings; 2. the same, but results keep the sharding in which they are computed until
            an op needs another; 3. the plan of ``shardy``; 4. and 5., where values are resharded
            for calls, plans 1 and 2 for the program propagated after its calls are inlined; and for
            programs of at most 4,000 ops 6. the plan of ``xla`` and 7. the plan that moves a result
            to the sharding that later elementwise ops reshard it to. ``xla`` chooses as XLA's SPMD
            partitioner does for products, convolutions, elementwise ops, reductions, gathers,
            scatters, reshapes, slices and concatenations; other ops are computed in the way that
            sends the fewest bytes.
        progress: called with the name of the current step and the share of the work done.
        replicates_unknown: compute ops that no rule can split on every device, on all of their
            operands; such a program can be counted, but not run.
        keep_ports: whether arguments and results are sharded as in ``result``. If not, those
            without annotation are sharded under ``xla`` as XLA would shard them.
        passes: a comma-separated list of passes to run on the per-device program.
        compiler: whose propagation ``xla`` follows: ``"xla-tpu"`` simplifies the program before.

    Raises:
        PartitionError: an op cannot be split over devices (``unpartitionable``).
        TypeError: ``result`` is no :class:`shardcore.Result`.
        ValueError: ``policy`` or ``compiler`` is unknown.
    """
    expect(result, Result)
    check_policy(policy)
    check_compiler(compiler)
    lower = partial(
        lowered, result, policy=policy, progress=progress, replicates_unknown=replicates_unknown
    )
    if policy == "least":
        best = least(result, lower)
        best.run_passes(passes)
        return best
    if policy == "shardy":
        return lower(result._resharded(), takes_source=True, passes=passes)
    completed, originals = result._as_xla(keep_ports, compiler)
    made = lower(completed, originals=originals, takes_source=True, passes=passes)
    made.keeps_ports, made.compiler = keep_ports, compiler
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
        # While the next plan is made, at most one other plan is in memory.
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
    passes: str = "",
) -> Partitioned:
    """Lower ``source``, a form of ``result``'s program, by one plan of ``policy``; see
    :func:`partition`.

    Ops are computed in the ways of ``policy``, or of the policy ``ways`` if it is given, and
    ``passes`` run on the per-device program. With ``takes_source`` a large program is lowered in
    place, and ``source`` is rebuilt when it is read.
    """
    rules, meshes = shard_rules(source), tuple(source.meshes.values())
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
        passes,
    )
    if rules and any(attributes for *_, attributes in rules):
        # Attributes of custom calls are copied from the user's text, which may not parse.
        Module.parse(str(module), filename="<local program>", shardy=module.shardy)
    made = Partitioned(source, module, policy, num_devices, origin, result, meshes)
    made.passes = passes
    return made
