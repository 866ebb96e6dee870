"""What kernels and collectives take of one micro-batch.

A product of fewer rows fills less of the tiles of a matrix unit, and reads the same weights; a
kernel takes as long to start; a collective has the same latency, and sends all of what does not
depend on the batch. Gradients of parameters are summed over the micro-batches: what computes them
also reads the sum so far.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from shardcore._core import AxisRef, Mesh, Op
from shardcore.costs.figures import KernelKind
from shardcore.costs.links import OPS, Links
from shardcore.costs.rates import MATRIX_UNITS, Rates
from shardcore.errors import CalculusError, VerificationError
from shardcore.pipeline.labels import ACTIVATION, GRADIENT, Assigned

if TYPE_CHECKING:
    from shardcore.calculus.hardware import Hardware

_PRODUCTS = ("stablehlo.dot_general", "stablehlo.convolution")
_BATCH, _ROWS, _COLUMNS, _DEPTH = range(4)
"""The sizes of a product, as in :class:`KernelKind`."""


class Share(NamedTuple):
    """What of a kernel depends on the batch."""

    size: int | None = None
    """The size of a product that is divided among micro-batches."""
    read: int = 0
    """Bytes that every micro-batch reads: those of parameters."""
    written: int = 0
    """Bytes that every micro-batch writes: those of gradients of parameters."""

    def of(self, kind: KernelKind, micro_batches: int) -> KernelKind:
        """Return what one of ``micro_batches`` takes of ``kind``."""
        if micro_batches == 1:
            return kind

        def part(whole: int, fixed: int) -> int:
            fixed = min(fixed, whole)
            return fixed - -(whole - fixed) // micro_batches

        sizes = kind.sizes
        if sizes is not None and self.size is not None:
            parts = [1] * len(sizes)
            parts[self.size] = micro_batches
            batch, rows, columns, depth = (-(-a // n) for a, n in zip(sizes, parts, strict=True))
            sizes = batch, rows, columns, depth
        read = part(kind.read_bytes, self.read)
        return kind._replace(
            sizes=sizes,
            flops=kind.flops // micro_batches,
            transcendentals=kind.transcendentals // micro_batches,
            read_bytes=read + self.written,
            cached_bytes=min(kind.cached_bytes, read),
            written_bytes=part(kind.written_bytes, self.written),
        )


def shares(ops: Iterable[Op], kinds: Mapping[str, str]) -> dict[str, Share]:
    """Return what of the kernel that writes a value depends on the batch, by the value's name: of
    what is computed from a product, that of the product, which the same kernel may compute.

    Args:
        ops: those of a block.
        kinds: the kinds of its values.
    """
    found: dict[str, Share] = {}
    for op in ops:
        known = _of_product(op, kinds) if op.name in _PRODUCTS else None
        if known is None:
            known = next((found[v.name] for v in op.operands if v.name in found), None)
        if known is not None:
            found.update((value.name, known) for value in op.results)
    return found


def _of_product(op: Op, kinds: Mapping[str, str]) -> Share:
    left, right = op.operands[:2]
    if kinds.get(op.results[0].name) == GRADIENT:
        return Share(_DEPTH, written=op.results[0].bytes or 0)
    if kinds.get(right.name) != ACTIVATION:
        return Share(_ROWS, read=right.bytes or 0)
    if kinds.get(left.name) != ACTIVATION:
        return Share(_COLUMNS, read=left.bytes or 0)
    return Share(_BATCH)


class Collective(NamedTuple):
    """A collective for which something may wait."""

    kind: str
    axes: tuple[AxisRef, ...]
    bytes: int
    """Of the whole batch, with those of collectives that are combined with it."""
    runs: float
    """The number of runs; of a combined one its share of them."""
    exposed: float
    """Seconds of all runs, for the whole batch, in which nothing is computed."""


@dataclass
class _Hidden:
    """Seconds of the collectives of a pass beside which something is computed."""

    each: float = 0.0
    """Of one micro-batch."""
    whole: float = 0.0
    """Of the same collectives, if the whole batch is one."""
    once: float = 0.0
    """Of those that run once a step: they reduce the gradients, or gather parameters."""

    def more(self, computed: float, micro_batches: int, contention: float) -> float:
        """Return what all micro-batches wait, and compute longer, than the whole batch does.

        Args:
            computed: seconds in which one micro-batch computes.
            micro_batches: their number.
            contention: the share of the time of a collective that what is computed beside it loses.
        """
        waits = max(0.0, self.each - computed)
        beside = (self.each - waits) * micro_batches
        return waits * micro_batches + contention * max(0.0, beside - self.whole)


class Times:
    """The kernels and collectives of each label."""

    def __init__(self, chip: Hardware, links: Links, mesh: Mesh | None) -> None:
        """Take the chip, and the mesh over whose links collectives run."""
        self._rates, self._links, self._mesh = Rates(chip, 1), links, mesh
        self._kernels: Counter[tuple[Assigned, Share, KernelKind]] = Counter()
        self._collectives: list[tuple[Assigned, Collective]] = []

    def add_kernel(self, at: Assigned, share: Share | None, kind: KernelKind, runs: int) -> None:
        """Add ``runs`` of a kernel for the whole batch."""
        if share is None or kind.unit not in MATRIX_UNITS:
            share = Share()
        self._kernels[at, share, kind] += runs

    def add_collective(self, at: Assigned, of: Collective) -> None:
        """Add what waits for a collective."""
        self._collectives.append((at, of))

    def seconds(
        self, micro_batches: int, *, once: bool = False
    ) -> dict[int | None, dict[str, Any]]:
        """Return the seconds of each label by the names of :class:`Part`: of all micro-batches, or
        of one where they are the same however small it is. With ``once`` parameters are gathered
        and converted once a step.
        """
        found: dict[int | None, dict[str, Any]] = defaultdict(lambda: defaultdict(float))
        computed: dict[tuple[int | None, bool], float] = defaultdict(float)
        for (at, share, kind), runs in self._kernels.items():
            count = 1 if at.is_fixed or at.phase == "U" else micro_batches
            one = self._rates.kernel(share.of(kind, count)).achieved * runs
            found[at.label][field_of(at, once)] += one * count
            is_each = at.phase != "U" and not (once and at.is_fixed)
            computed[at.label, at.phase == "F"] += one if is_each else 0.0
        hidden: dict[tuple[int | None, bool], _Hidden] = defaultdict(_Hidden)
        for at, of in self._collectives:
            count = 1 if at.is_fixed or at.phase == "U" else micro_batches
            exposed, beside = self._waited(of, count)
            found[at.label][field_of(at, once)] += exposed * count
            own = hidden[at.label, at.phase == "F"]
            if at.phase == "U" or (once and at.is_fixed):
                own.once += beside
            else:
                own.each += beside
                own.whole += self._waited(of, 1)[1]
        if micro_batches > 1:
            contention = self._rates.chip.achieved.contention
            for (label, is_forward), own in hidden.items():
                beside = computed[label, is_forward]
                name = "forward" if is_forward else "backward_input"
                found[label][name] += own.more(beside, micro_batches, contention)
                # Gradients are reduced beside the backward pass of the last micro-batch alone, and
                # parameters gathered beside the first pass.
                if label is not None:
                    found[label]["update"] += max(0.0, own.once - beside)
        return found

    def _waited(self, of: Collective, count: int) -> tuple[float, float]:
        """Seconds of one of ``count`` micro-batches in which nothing is computed, and those beside
        which something is: as large a share as for the whole batch."""
        whole, part = (self._achieved(of, of.bytes), self._achieved(of, -(-of.bytes // count)))
        if not whole:
            return of.exposed / count, 0.0
        share = min(of.exposed / (whole * of.runs), 1.0) if of.runs else 0.0
        exposed = of.exposed * part / whole
        return exposed, part * of.runs * (1 - share)

    def _achieved(self, of: Collective, num_bytes: int) -> float:
        """Seconds of one run; 0 if they are not known."""
        if self._mesh is None or of.kind not in OPS or not of.axes:
            return 0.0
        try:
            return self._links.cost(of.kind, self._mesh, of.axes, num_bytes).achieved
        except (CalculusError, VerificationError):
            return 0.0


def field_of(at: Assigned, once: bool) -> str:
    """Return the name of the seconds of :class:`Part` that an op counts for; with ``once`` what
    uses only parameters runs once a step."""
    if at.phase == "U" or (once and at.is_fixed):
        return "update"
    if at.is_fixed:
        return "fixed_forward" if at.phase == "F" else "fixed_backward"
    return {"F": "forward", "B": "backward_input"}.get(at.phase, "backward_weight")
