"""hypothesis strategies: meshes, axis lists, shardings and rules, as the oracle's values.

Everything drawn is valid. Sizes are small, and often not powers of two, so that axes split,
overlap and fail to divide all the time.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from tests.oracle import axis
from tests.oracle.axis import AxisRef
from tests.oracle.mesh import Mesh
from tests.oracle.rule import OpShardingRule
from tests.oracle.sharding import DimSharding, TensorSharding

AXIS_NAMES = ("x", "y", "z", "w")
MAX_DEVICES = 256
DIM_SIZES = (1, 2, 3, 4, 6, 8, 12, 16, 24, 30)


def one_in(n: int) -> SearchStrategy[bool]:
    """True once in `n` draws or so; shrinks to False."""
    return st.integers(0, n - 1).map(lambda drawn: drawn == n - 1)


@st.composite
def meshes(draw: DrawFn, device_orders: bool = False) -> Mesh:
    """Draw a mesh of 1 to 4 axes."""
    axes: list[tuple[str, int]] = []
    for name in AXIS_NAMES[: draw(st.integers(1, 4))]:
        size = draw(st.sampled_from((2, 4, 8, 3, 6, 12, 24, 16, 1)))
        if math.prod(other for _, other in axes) * size <= MAX_DEVICES:
            axes.append((name, size))
    mesh = Mesh(tuple(axes))
    if not device_orders or draw(st.booleans()):
        return mesh
    order = tuple(draw(st.permutations(range(mesh.num_devices))))
    return mesh if list(order) == sorted(order) else Mesh(mesh.axes, order)


def _divisors(size: int) -> list[int]:
    return [n for n in range(2, size + 1) if size % n == 0]


@st.composite
def axis_refs(draw: DrawFn, mesh: Mesh) -> AxisRef:
    """Draw a full axis or any sub-axis of one."""
    name, size = draw(st.sampled_from(mesh.axes))
    pre_size = draw(st.sampled_from([1, *_divisors(size)]))
    sub_size = draw(st.sampled_from([0, *_divisors(size // pre_size)]))
    if sub_size in (0, size):
        return AxisRef(name)
    return AxisRef(name, pre_size, sub_size)


@st.composite
def disjoint_axes(draw: DrawFn, mesh: Mesh) -> list[AxisRef]:
    """Draw axes and sub-axes that do not overlap, in any order."""
    refs: list[AxisRef] = []
    for name, size in mesh.axes:
        if draw(one_in(12)):
            # Anything that fits, such as (1)2 and (3)4, which have no split in common.
            for ref in draw(st.lists(axis_refs(Mesh(((name, size),))), max_size=3)):
                if not any(axis.overlaps(ref, other) for other in refs):
                    refs.append(ref)
            continue
        pre_size = 1
        while pre_size < size:
            part = draw(st.sampled_from([size // pre_size, *_divisors(size // pre_size)]))
            if part == size:
                refs.append(AxisRef(name))
            else:
                refs.append(AxisRef(name, pre_size, part))
            pre_size *= part
        if size == 1 and draw(st.booleans()):
            refs.append(AxisRef(name))
    return list(draw(st.permutations(refs)))


@st.composite
def shardings(
    draw: DrawFn,
    mesh: Mesh,
    rank: int,
    mesh_name: str | Mesh = "mesh",
    priorities: bool = False,
    unreduced: bool = False,
) -> TensorSharding:
    """Draw a sharding of a tensor of `rank` that uses some of the axes of `mesh`."""
    if mesh.is_maximal:
        return TensorSharding(mesh_name)
    lists: list[list[AxisRef]] = [[] for _ in range(rank)]
    replicated: list[AxisRef] = []
    summed: list[AxisRef] = []
    for ref in draw(disjoint_axes(mesh)):
        place = draw(st.integers(-3, rank))
        if 0 <= place < rank:
            axis.append_or_merge(lists[place], ref, mesh)
        elif place == rank and draw(one_in(3)):
            (summed if unreduced and draw(one_in(3)) else replicated).append(ref)
    return TensorSharding(
        mesh_name,
        tuple(draw(_dim_shardings(axes, priorities)) for axes in lists),
        tuple(axis.sort_and_merge(replicated, mesh)),
        tuple(axis.sort_and_merge(summed, mesh)),
    )


@st.composite
def _dim_shardings(draw: DrawFn, axes: Sequence[AxisRef], priorities: bool) -> DimSharding:
    is_closed = draw(one_in(4))
    priority = None
    if priorities and (axes or not is_closed) and draw(st.booleans()):
        priority = draw(st.sampled_from((0, 1, 2, 5)))
    return DimSharding(tuple(axes), is_closed, priority)


def shapes(max_rank: int = 3) -> SearchStrategy[tuple[int, ...]]:
    return st.lists(st.sampled_from(DIM_SIZES), max_size=max_rank).map(tuple)


class RuleBuilder:
    """Collects factors while the tensors of one rule are drawn."""

    def __init__(self, draw: DrawFn) -> None:
        self.draw = draw
        self.sizes: list[int] = []

    def mapping(self, shape: Sequence[int]) -> tuple[tuple[int, ...], ...]:
        """Map every dim to factors, of which many are those of other tensors too."""
        used: set[int] = set()
        mapping = []
        for size in shape:
            factors = []
            for part in self._parts(size):
                same = [f for f, s in enumerate(self.sizes) if s == part and f not in used]
                if same and not self.draw(one_in(5)):
                    factor = self.draw(st.sampled_from(same))
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
        while len(parts) < 2 and size > 1 and self.draw(one_in(3)):
            part = self.draw(st.sampled_from(_divisors(size)))
            if part < size:
                parts.append(part)
                size //= part
        return [*parts, size]

    def any_mapping(self, max_rank: int = 3) -> tuple[tuple[int, ...], ...]:
        """Make a tensor of some of the factors there are, and a new one now and then."""
        if not self.sizes or self.draw(one_in(6)):
            self.sizes.append(self.draw(st.sampled_from(DIM_SIZES)))
        factors = self.draw(st.permutations(range(len(self.sizes))))
        factors = factors[: self.draw(st.integers(0, 4))]
        dims: list[list[int]] = []
        for factor in factors:
            last = dims[-1] if dims else []
            compound = last and self.sizes[factor] > 1 and self.sizes[last[0]] > 1
            if compound and (len(dims) == max_rank or self.draw(one_in(3))):
                last.append(factor)
            elif len(dims) < max_rank:
                dims.append([factor])
        return tuple(map(tuple, dims))


@st.composite
def rules(
    draw: DrawFn,
    operand_shapes: Sequence[Sequence[int]] | None = None,
    result_shapes: Sequence[Sequence[int]] | None = None,
) -> OpShardingRule:
    """Draw a rule for operands, and if given results, of these shapes."""
    if operand_shapes is None:
        operand_shapes = draw(st.lists(shapes(), min_size=1, max_size=3))
    builder = RuleBuilder(draw)
    operands = tuple(builder.mapping(shape) for shape in operand_shapes)
    if result_shapes is None:
        results = tuple(builder.any_mapping() for _ in range(draw(st.sampled_from((1, 1, 2)))))
    else:
        results = tuple(builder.mapping(shape) for shape in result_shapes)
    return draw(_with_special_factors(operands, results, builder.sizes))


@st.composite
def _with_special_factors(
    draw: DrawFn,
    operands: tuple[tuple[tuple[int, ...], ...], ...],
    results: tuple[tuple[tuple[int, ...], ...], ...],
    sizes: Sequence[int],
) -> OpShardingRule:
    used = sorted({f for mapping in operands + results for dim in mapping for f in dim})

    def renumber(
        mappings: tuple[tuple[tuple[int, ...], ...], ...],
    ) -> tuple[tuple[tuple[int, ...], ...], ...]:
        return tuple(
            tuple(tuple(used.index(f) for f in dim) for dim in mapping) for mapping in mappings
        )

    operands, results = renumber(operands), renumber(results)
    in_results = {f for mapping in results for dim in mapping for f in dim}
    kinds: dict[str, list[int]] = {"reduction": [], "need_replication": [], "permutation": []}
    blocked = []
    for factor in range(len(used)):
        kind = draw(st.sampled_from((None, None, "need_replication", "permutation")))
        if factor not in in_results and draw(st.booleans()):
            kind = "reduction"
        if kind is not None:
            kinds[kind].append(factor)
        if draw(one_in(12)):
            blocked.append(factor)
    return OpShardingRule(
        tuple(sizes[f] for f in used),
        operands,
        results,
        tuple(kinds["reduction"]),
        tuple(kinds["need_replication"]),
        tuple(kinds["permutation"]),
        tuple(blocked),
        is_custom=True,
    )
