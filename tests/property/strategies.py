"""Random meshes, axis lists, shardings and rules, as the oracle's values.

Everything made is valid. Sizes are small, and often not powers of two, so that axes split,
overlap and fail to divide all the time.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

from tests.oracle import axis
from tests.oracle.axis import AxisRef
from tests.oracle.mesh import Mesh
from tests.oracle.rule import OpShardingRule, TensorMapping
from tests.oracle.sharding import DimSharding, TensorSharding
from tests.property.choices import Choices

AXIS_NAMES = ("x", "y", "z", "w")
AXIS_SIZES = (2, 4, 8, 3, 6, 12, 24, 16, 1)
DIM_SIZES = (8, 12, 2, 3, 4, 6, 16, 24, 30, 1)
PRIORITIES = (0, 1, 2, 5)
MAX_DEVICES = 256


def make_mesh(c: Choices, device_orders: bool = False) -> Mesh:
    """Make a mesh of 1 to 4 axes."""
    axes: list[tuple[str, int]] = []
    for name in AXIS_NAMES[: c.integer(1, 4)]:
        size = c.of(AXIS_SIZES)
        if math.prod(other for _, other in axes) * size <= MAX_DEVICES:
            axes.append((name, size))
    mesh = Mesh(tuple(axes))
    if not device_orders or c.one_in(2):
        return mesh
    order = c.permutation(range(mesh.num_devices))
    return mesh if order == sorted(order) else Mesh(mesh.axes, tuple(order))


def divisors(size: int) -> list[int]:
    """List the divisors above 1."""
    return [n for n in range(2, size + 1) if size % n == 0]


def make_axis_ref(c: Choices, mesh: Mesh) -> AxisRef:
    """Make a full axis, or any sub-axis of one."""
    name, size = c.of(mesh.axes)
    if c.one_in(2) or size == 1:
        return AxisRef(name)
    pre_size = c.of([1, *divisors(size)[:-1]])
    sub_size = c.of(divisors(size // pre_size))
    return AxisRef(name) if sub_size == size else AxisRef(name, pre_size, sub_size)


def make_axis_list(c: Choices, mesh: Mesh, taken: Sequence[AxisRef] = ()) -> list[AxisRef]:
    """Make a list of axes that overlap neither each other nor those `taken`."""
    refs: list[AxisRef] = []
    for _ in range(c.integer(1, 3) if mesh.axes else 0):
        ref = make_axis_ref(c, mesh)
        if not any(axis.overlaps(ref, other) for other in [*refs, *taken]):
            axis.append_or_merge(refs, ref, mesh)
    return refs


def make_start(c: Choices, refs: Sequence[AxisRef], mesh: Mesh) -> list[AxisRef]:
    """Take some first axes of `refs`, of which the last may be cut shorter."""
    start = list(refs[: c.integer(1, len(refs))])
    parts = divisors(start[-1].size_in(mesh))[:-1]
    if parts and c.one_in(3):
        start[-1], _ = axis.split(start[-1], c.of(parts), mesh)
    return start


def make_sharding(
    c: Choices,
    mesh: Mesh,
    rank: int,
    mesh_name: str | Mesh = "mesh",
    priorities: bool = False,
    unreduced: bool = False,
    models: Sequence[Sequence[AxisRef]] = (),
) -> TensorSharding:
    """Make a sharding of a tensor of `rank` that uses some of the axes of `mesh`.

    Its dims often start as one of the axis lists in `models` does, so that the dims of several
    tensors agree up to a point.
    """
    if mesh.is_maximal:
        return TensorSharding(mesh_name)
    taken: list[AxisRef] = []
    dims = []
    for _ in range(rank):
        axes = _make_dim_axes(c, mesh, taken, models)
        taken += axes
        is_closed = c.one_in(4)
        can_wait = priorities and (axes or not is_closed)
        priority = c.of(PRIORITIES) if can_wait and c.one_in(2) else None
        dims.append(DimSharding(tuple(axes), is_closed, priority))
    replicated = make_axis_list(c, mesh, taken) if c.one_in(6) else []
    taken += replicated
    summed = make_axis_list(c, mesh, taken) if unreduced and c.one_in(4) else []
    return TensorSharding(
        mesh_name,
        tuple(dims),
        tuple(axis.sort_and_merge(replicated, mesh)),
        tuple(axis.sort_and_merge(summed, mesh)),
    )


def _make_dim_axes(
    c: Choices, mesh: Mesh, taken: Sequence[AxisRef], models: Sequence[Sequence[AxisRef]]
) -> list[AxisRef]:
    refs: list[AxisRef] = []
    free = [m for m in models if not any(axis.overlaps(r, t) for r in m for t in taken)]
    if free and not c.one_in(3):
        refs = make_start(c, c.of(free), mesh)
    if c.one_in(4):
        for ref in make_axis_list(c, mesh, [*taken, *refs]):
            axis.append_or_merge(refs, ref, mesh)
    return refs


def make_any_sharding(c: Choices, mesh: Mesh, rank: int) -> TensorSharding:
    """Make a valid sharding, and put an axis ref into it that may break anything."""
    sharding = make_sharding(c, mesh, rank, priorities=True, unreduced=True)
    extra = make_axis_ref(c, mesh)
    if c.one_in(2):
        extra = AxisRef(extra.name, c.integer(1, 6), c.integer(1, 6))
    lists = [list(dim.axes) for dim in sharding.dims]
    lists += [list(sharding.replicated), list(sharding.unreduced)]
    changed = c.of(lists)
    changed.insert(c.integer(0, len(changed)), extra)
    *dim_axes, replicated, unreduced = map(tuple, lists)
    dims = tuple(
        dataclasses.replace(dim, axes=axes)
        for dim, axes in zip(sharding.dims, dim_axes, strict=True)
    )
    return TensorSharding("mesh", dims, replicated, unreduced)


def make_shape(c: Choices) -> tuple[int, ...]:
    rank = 0 if c.one_in(12) else c.integer(1, 3)
    return tuple(c.of(DIM_SIZES) for _ in range(rank))


class RuleBuilder:
    """Collects factors while the tensors of one rule are made."""

    def __init__(self, c: Choices) -> None:
        self.c = c
        self.sizes: list[int] = []

    def mapping(self, shape: Sequence[int]) -> TensorMapping:
        """Map every dim to factors, of which many are those of other tensors too."""
        used: set[int] = set()
        mapping = []
        for size in shape:
            factors = []
            for part in self._parts(size):
                same = [f for f, s in enumerate(self.sizes) if s == part and f not in used]
                if same and not self.c.one_in(5):
                    factor = self.c.of(same)
                else:
                    factor = len(self.sizes)
                    self.sizes.append(part)
                used.add(factor)
                factors.append(factor)
            mapping.append(tuple(factors))
        return tuple(mapping)

    def _parts(self, size: int) -> list[int]:
        """Write `size` as a product of up to three sizes."""
        parts = []
        while len(parts) < 2 and len(divisors(size)) > 1 and self.c.one_in(3):
            parts.append(self.c.of(divisors(size)[:-1]))
            size //= parts[-1]
        return [*parts, size]

    def any_mapping(self, max_rank: int = 3) -> TensorMapping:
        """Make a tensor of some of the factors there are, and a new one now and then."""
        if not self.sizes or self.c.one_in(6):
            self.sizes.append(self.c.of(DIM_SIZES))
        factors = self.c.permutation(range(len(self.sizes)))
        dims: list[list[int]] = []
        for factor in factors[: 0 if self.c.one_in(12) else self.c.integer(1, 5)]:
            last = dims[-1] if dims else []
            compound = last and self.sizes[factor] > 1 and self.sizes[last[0]] > 1
            if compound and (len(dims) == max_rank or self.c.one_in(3)):
                last.append(factor)
            elif len(dims) < max_rank:
                dims.append([factor])
        return tuple(map(tuple, dims))


def make_rule(
    c: Choices,
    operand_shapes: Sequence[Sequence[int]] | None = None,
    result_shapes: Sequence[Sequence[int]] | None = None,
) -> OpShardingRule:
    """Make a rule for operands, and if given results, of these shapes."""
    if operand_shapes is None:
        operand_shapes = [make_shape(c) for _ in range(c.integer(1, 3))]
    builder = RuleBuilder(c)
    operands = [builder.mapping(shape) for shape in operand_shapes]
    if result_shapes is None:
        results = [builder.any_mapping() for _ in range(c.of((1, 1, 2)))]
    else:
        results = [builder.mapping(shape) for shape in result_shapes]
    return _with_special_factors(c, operands, results, builder.sizes)


def _with_special_factors(
    c: Choices,
    operands: Sequence[TensorMapping],
    results: Sequence[TensorMapping],
    sizes: Sequence[int],
) -> OpShardingRule:
    """Drop unused factors, and make some of the others special."""
    used = sorted({f for mapping in [*operands, *results] for dim in mapping for f in dim})

    def renumber(mappings: Sequence[TensorMapping]) -> tuple[TensorMapping, ...]:
        return tuple(tuple(tuple(map(used.index, dim)) for dim in mapping) for mapping in mappings)

    in_results = {f for mapping in renumber(results) for dim in mapping for f in dim}
    kinds: dict[str | None, list[int]] = {
        None: [],
        "reduction": [],
        "need_replication": [],
        "permutation": [],
    }
    blocked = []
    for factor in range(len(used)):
        kind = c.of((None, None, "need_replication", "permutation"))
        if factor not in in_results and c.one_in(2):
            kind = "reduction"
        kinds[kind].append(factor)
        if c.one_in(12):
            blocked.append(factor)
    return OpShardingRule(
        tuple(sizes[f] for f in used),
        renumber(operands),
        renumber(results),
        tuple(kinds["reduction"]),
        tuple(kinds["need_replication"]),
        tuple(kinds["permutation"]),
        tuple(blocked),
        is_custom=True,
    )
