"""The layers of a training step, with their times and bytes in each phase."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial, reduce
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from shardcore._core import Module, Op, Result, Value
from shardcore.cached_property import cached_property
from shardcore.errors import Diagnostic, PlanError
from shardcore.pipeline.delayed import delayed
from shardcore.pipeline.labels import (
    BEFORE,
    GRADIENT,
    Assigned,
    Labels,
    state_of,
)
from shardcore.pipeline.micro_batches import Collective, Times, shares
from shardcore.pipeline.part import Part
from shardcore.pipeline.prepared import prepared
from shardcore.pipeline.units import COLLECTIVES, LEAST_LAYERS, read

if TYPE_CHECKING:
    from shardcore.calculus.hardware import Hardware
    from shardcore.costs.kernels import Kernel
    from shardcore.costs.program import Cost
    from shardcore.costs.records import CollectiveCost


@dataclass(frozen=True, repr=False)
class Layers:
    """The layers of a program, and the ops before and after them."""

    before: Part
    """The ops before the first layer, such as an embedding, and their gradient."""
    layers: tuple[Part, ...]
    after: Part
    """The ops after the last layer, such as logits and loss, and their gradient."""
    rest: Part
    """All other ops: each stage has an equal part of their time, and all of their memory."""
    boundary_bytes: int
    """Bytes of the activations between two layers on one device, for the whole batch."""
    batch: int | None
    """The first dim of these activations, which micro-batches divide."""
    working_bytes: int
    """Bytes at the peak other than parameters, gradients, and activations kept for the backward
    pass."""
    gathered_bytes: int
    """Bytes of the parameters that a device gathers for one pass of a layer."""
    is_looped: bool
    """Whether the layers are in loops."""
    cost: Cost = field(repr=False, compare=False)
    """The cost of the whole program."""
    in_micro_batches: Callable[[int, bool], Layers] | None = field(
        default=None, repr=False, compare=False
    )
    """Makes the layers of a number of micro-batches, with parameters prepared once or each time."""

    def split(self, micro_batches: int, *, once: bool = False) -> Layers:
        """Return them with the seconds of so many micro-batches one after the other; with ``once``
        parameters are gathered and converted once a step, and kept. Without
        :attr:`in_micro_batches` these take as long as the whole batch."""
        if self.in_micro_batches is None:
            return self
        return self.in_micro_batches(micro_batches, once)

    @cached_property
    def are_prepared(self) -> bool:
        """Whether something that needs memory is computed from parameters alone."""
        return any(part.prepared_bytes for part in (self.before, *self.layers, self.after))

    @cached_property
    def sums(self) -> tuple[Part, ...]:
        """The sum of the first layers, for each number of them from 0 on."""
        return tuple(accumulate(self.layers, Part.__add__, initial=Part()))

    @property
    def seconds(self) -> float:
        """The sum of the seconds of all parts, which is the step time."""
        return sum(part.seconds for part in (self.before, *self.layers, self.after, self.rest))

    def record(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {
            "before": self.before.record(),
            "layers": [part.record() for part in self.layers],
            "after": self.after.record(),
            "rest": self.rest.record(),
            "boundary_bytes": self.boundary_bytes,
            "batch": self.batch,
            "working_bytes": self.working_bytes,
            "gathered_bytes": self.gathered_bytes,
            "is_looped": self.is_looped,
        }

    def __repr__(self) -> str:
        return f"<shardcore.pipeline.Layers: {len(self.layers)} layers, {self.seconds:.4g} s>"


def find_layers(
    program: Module | Result, hardware: str | Hardware = "tpu-v5p", **options: Any
) -> Layers:
    """Return the layers of a training step, with their cost on one device.

    Layers are the iterations of a loop with a known trip count, or consecutive blocks of equal ops.
    The backward pass of a layer is the loop that reads what the layer's loop stacked, or the ops
    that use what the layer computed.

    Args:
        program: a program, which is propagated first, or a propagation result.
        hardware: the chip.
        options: those of :func:`shardcore.cost`, except ``policy`` and ``improve``.

    Raises:
        PlanError: the program has no layers (``no-layers``).
        ShardcoreError: as for :func:`shardcore.cost`.
    """
    result = program.propagate() if isinstance(program, Module) else program
    whole = result.cost(hardware, **options)
    # A per-device program has no calls, and in its printed form the names of values in a block are
    # unique; the mesh is not part of it.
    from shardcore.costs import cost
    from shardcore.costs.improve import passes_of
    from shardcore.costs.links import links
    from shardcore.partition.counted import local_program

    ports = options.get("keep_ports", False)
    passes = passes_of(whole.compiler, None)
    given = local_program(result, whole.policy, ports, passes, whole.compiler).module
    local = Module.parse(str(given), shardy=given.shardy)
    counted = cost(local, hardware, **options)
    body = read(local, counted.loops)
    if sum(unit.count for unit in body.units) < LEAST_LAYERS:
        raise PlanError(
            Diagnostic(
                "no-layers",
                "the program has neither a loop with a known number of trips that runs products, "
                "nor blocks of equal ops",
                "a pipeline is cut between layers: scan over them, or repeat them",
            )
        )
    # Results may be divided otherwise than the arguments that they are the next state of.
    labels = Labels(body, state_of(result.arguments(), result.results()))
    over = [mesh for mesh in result.module.meshes.values() if mesh.num_devices > 1]
    times = Times(whole.hardware, links(whole.hardware, options), over[0] if over else None)
    parts = _Parts(labels, times)
    parts.add_kernels(counted.kernels)
    names = {
        was.results[0].name: now.results[0].name
        for was, now in zip(given.ops(), local.ops(), strict=True)
        if was.name in COLLECTIVES
    }
    parts.add_waits((names.get(row.op or ""), row) for row in whole.collectives)
    parts.add_memory()
    return parts.layers(whole, _peak_bytes(result, whole, body.is_looped, options))


def _peak_bytes(result: Result, whole: Cost, is_looped: bool, options: Mapping[str, Any]) -> int:
    """The peak of a program in which no collectives of several layers are combined: stages run one
    layer after the other, so what those collectives read is not in memory at a time."""
    if is_looped or all(row.combined == 1 for row in whole.collectives):
        return whole.peak_bytes
    apart = result.cost(replace(whole.hardware, combine_bytes=0), **options)
    return min(whole.peak_bytes, apart.peak_bytes)


_GATHER = "stablehlo.all_gather"
_UNKNOWN = 0, Assigned(None, "U", False)
"""Where something is whose op is not known: the block and the label."""


class _Parts:
    """Sums by label."""

    def __init__(self, labels: Labels, times: Times) -> None:
        self._labels = labels
        self._body = labels.body
        self._times = times
        self._of: dict[int | None, Part] = defaultdict(Part)
        self._peak_bytes = 0
        self._reduced = 0
        """Bytes of the gradients in the program, where loops reduce those of a layer at once."""
        self._by_name: dict[str, list[tuple[int, Assigned]]] = defaultdict(list)
        """For the op that defines a value, by the value's name: its block and its label. Blocks of
        different loops may use the same name."""
        for place, op in enumerate(self._body.ops):
            for value in op.results:
                self._by_name[value.name].append((0, labels.ops[place]))
        for block, assigned in enumerate(labels.inner, 1):
            for name, at in assigned.items():
                self._by_name[name].append((block, at))
        of_blocks = [(self._body.ops, labels.kinds), *labels.kinds_inside]
        self._shares = [shares(ops, kinds) for ops, kinds in of_blocks]
        """For each block what of its kernels depends on the batch."""

    def add_kernels(self, kernels: Sequence[Kernel]) -> None:
        """Add the times and bytes of kernels, which come block by block."""
        known = [self._by_name.get(kernel.value or "", []) for kernel in kernels]
        # If several blocks have a name, the enclosing block's is meant.
        blocks = [found[0][0] if len(found) == 1 else None for found in known]
        ahead = list(blocks)
        for place in range(len(blocks) - 2, -1, -1):
            ahead[place] = blocks[place] if blocks[place] is not None else ahead[place + 1]
        last = _UNKNOWN
        block: int | None = None
        for kernel, found, own, following in zip(kernels, known, blocks, ahead, strict=True):
            if own is not None:
                block = own
            if kernel.is_collective:
                continue
            chosen = [each for each in found if each[0] in (block, following)]
            # A kernel of an op that the compiler inserted belongs to the kernel before it.
            last = (chosen or found or [last])[0]
            place, at = last
            share = self._shares[place].get(kernel.value or "")
            self._times.add_kernel(at, share, kernel.work, kernel.count)
            moved, flops = kernel.bytes * kernel.count, kernel.flops * kernel.count
            self._add(at.label, Part(flops=flops, moved_bytes=moved))

    def add_waits(self, waits: Iterable[tuple[str | None, CollectiveCost]]) -> None:
        """Add what waits for collectives, by the names of their results."""
        for name, row in waits:
            found = self._by_name.get(name or "")
            at = found[0][1] if found else _UNKNOWN[1]
            sent, runs = row.bytes * row.combined, row.count / row.combined
            of = Collective(row.kind, row.axis_refs, sent, runs, row.exposed_seconds)
            self._times.add_collective(at, of)

    def add_memory(self) -> None:
        """Add the bytes of parameters, gradients and activations."""
        labels, body = self._labels, self._body
        users: dict[str, set[int]] = defaultdict(set)
        late: dict[str, set[int]] = defaultdict(set)
        for place, op in enumerate(body.ops):
            at = labels.ops[place]
            if at.label is None:
                continue
            for value in op.operands:
                (users if at.phase == "F" else late)[value.name].add(at.label)
        for argument in body.arguments:
            if argument.name in labels.state:
                owners: Iterable[int | None] = users[argument.name] or late[argument.name] or [None]
                # What both ends use, such as an embedding table that also computes the logits, is
                # in the memory of both.
                for label in owners:
                    self._add(label, Part(parameter_bytes=argument.bytes or 0))
        for place, op in enumerate(body.ops):
            at = labels.ops[place]
            if place in labels.backward or at.phase == "W":
                grads = [v for v in op.results if labels.kinds.get(v.name) == GRADIENT]
                self._reduced += _bytes(grads)
                held = max(_bytes(grads), self._sums(place))
                self._add(at.label, Part(gradient_bytes=held))
            elif at.phase == "F":
                loop = labels.loop_at(place)
                made = list(op.results)
                if loop is not None:
                    made = [v for v in made if labels.label_of_value.get(v.name) == loop]
                kept = labels.saved(made)
                self._add(at.label, Part(activation_bytes=_bytes(kept)))
        for label, num_bytes in prepared(labels).items():
            self._add(label, Part(prepared_bytes=num_bytes))
        for label, num_bytes in delayed(labels).items():
            self._add(label, Part(delayed_bytes=num_bytes))

    def _sums(self, place: int) -> int:
        """Bytes of the gradients that the loop at ``place`` sums over the batch, of all its layers,
        as they are until they are reduced over devices."""
        labels = self._labels
        if place not in labels.backward:
            return 0
        number = labels.loops.index(place)
        (ops, kinds), assigned = labels.kinds_inside[number], labels.inner[number]
        made = (value for op in ops for value in op.results)
        sums = [v for v in made if kinds[v.name] == GRADIENT and assigned[v.name].phase == "W"]
        return _bytes(sums) * self._body.units[labels.backward[place]].count

    def _gathered(self) -> int:
        """Bytes of the parameters of a layer that a device gathers in a pass, at most."""
        labels = self._labels
        found: Counter[tuple[int, int | None, str]] = Counter()

        def add(block: int, op: Op, at: Assigned) -> None:
            if op.name == _GATHER and at.is_fixed:
                found[block, at.label, at.phase] += _bytes(op.results)

        for place, op in enumerate(self._body.ops):
            add(0, op, labels.ops[place])
        of_loops = zip(labels.kinds_inside, labels.inner, strict=True)
        for block, ((ops, _), assigned) in enumerate(of_loops, 1):
            for op in ops:
                if op.results:
                    add(block, op, assigned[op.results[0].name])
        return max(found.values(), default=0)

    def layers(self, whole: Cost, peak_bytes: int) -> Layers:
        """The parts, scaled so that their times add up to the step of ``whole``, with the memory of
        a peak."""
        self._peak_bytes = peak_bytes
        total = sum(sum(each.values()) for each in self._times.seconds(1).values())
        return self._layers(whole, whole.step_seconds / total if total else 1.0, 1, False)

    def _layers(self, whole: Cost, factor: float, micro_batches: int, once: bool) -> Layers:
        labels, units = self._labels, self._body.units
        of = {label: replace(part) for label, part in self._of.items()}
        for label, found in self._times.seconds(micro_batches, once=once).items():
            of[label] = replace(of.get(label, Part()), **found).scaled(factor)
        layers = [
            of.get(number, Part()).divided(unit.count)
            for number, unit in enumerate(units)
            for _ in range(unit.count)
        ]
        before, after = of.get(BEFORE, Part()), of.get(len(units), Part())
        rest = of.get(None, Part())
        kept = reduce(Part.__add__, [before, *layers, after, rest])
        known = whole.argument_bytes + self._reduced + kept.activation_bytes
        crossing = [labels.boundary(number) for number in range(len(units))]
        shapes = [value.shape for values in crossing for value in values if value.shape]
        return Layers(
            before,
            tuple(layers),
            after,
            rest,
            boundary_bytes=max(map(_bytes, crossing[1:] or crossing)),
            batch=shapes[-1][0] if shapes else None,
            working_bytes=max(self._peak_bytes - known, 0),
            gathered_bytes=self._gathered(),
            is_looped=self._body.is_looped,
            cost=whole,
            in_micro_batches=cache(partial(self._layers, whole, factor)),
        )

    def _add(self, label: int | None, part: Part) -> None:
        self._of[label] = self._of[label] + part


def _bytes(values: Iterable[Value]) -> int:
    return sum(value.bytes or 0 for value in values)
