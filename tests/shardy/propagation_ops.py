"""Random shardings and ops as text, for ``propagation_programs``."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass, field

Shape = tuple[int, ...]
Piece = tuple[str, int, int]
Pool = list[tuple[str, Shape]]

MESHES = (
    (("a", 2), ("b", 2), ("c", 4)),
    (("a", 4), ("b", 8)),
    (("a", 6), ("b", 4)),
    (("a", 12), ("b", 2), ("c", 3)),
    (("a", 2), ("b", 2), ("c", 2), ("d", 2), ("e", 2)),
    (("a", 16),),
    (("a", 8), ("b", 3)),
)
DIMS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32)
MOST_ELEMENTS = 2**20
FACTORS = "ijklmnopqrstuvwxyz"


@dataclass(frozen=True)
class Features:
    """What programs may contain."""

    ops: int = 20
    priorities: bool = False
    groups: bool = False
    regions: bool = False
    meshes: bool = False
    calls: bool = False
    dead: bool = False
    wide: bool = False


@dataclass
class Ops:
    """Draws shardings and single ops.

    Each method of an op takes the values in scope, and returns lines and new values.
    """

    rng: random.Random
    features: Features
    mesh: tuple[tuple[str, int], ...] = ()
    names: list[str] = field(default_factory=lambda: ["mesh"])
    count: int = 0
    density: float = 0.3
    manual: dict[str, int] = field(default_factory=dict)
    functions: list[tuple[str, list[Shape], list[Shape]]] = field(default_factory=list)

    def one_in(self, n: float) -> bool:
        return self.rng.random() * n < 1

    def fresh(self) -> str:
        self.count += 1
        return f"%v{self.count}"

    def shape(self) -> Shape:
        rank = self.rng.choice((0, 1, 1, 2, 2, 2, 3))
        return tuple(self.rng.choice(DIMS) for _ in range(rank))

    def pieces(self, name: str, size: int) -> list[Piece]:
        """The axis whole, or cut into sub-axes."""
        if not self.one_in(3):
            return [(name, 1, size)]
        cut, pre = [], 1
        while pre < size:
            options = [k for k in range(2, size // pre + 1) if (size // pre) % k == 0]
            part = self.rng.choice(options)
            cut.append((name, pre, part))
            pre *= part
        return cut

    def sharding(self, rank: int, priorities: bool = True) -> str:
        mesh = self.rng.choice(self.names) if self.one_in(4) else self.names[0]
        return self.sharding_over(mesh, [[] for _ in range(rank)], priorities)

    def sharding_over(self, mesh: str, start: list[list[Piece]], priorities: bool = True) -> str:
        """A sharding whose dims start with the pieces in ``start``, of axes that are manual."""
        rank = len(start)
        if mesh == "maximal":
            return "<@maximal, []>"
        if mesh == "empty":
            return f"<@empty, [{', '.join(self.rng.choice(('{}', '{?}')) for _ in range(rank))}]>"
        sizes = dict(self.mesh)
        axes_left = [axis for axis in self.mesh if axis[0] not in self.manual]
        free = [piece for name, size in axes_left for piece in self.pieces(name, size)]
        self.rng.shuffle(free)
        dims = [list(axes) for axes in start]
        replicated: list[Piece] = []
        for piece in free:
            if dims and self.rng.random() < 0.45:
                append(self.rng.choice(dims), piece)
            elif self.one_in(8):
                replicated.append(piece)
        order = [name for name, _ in self.mesh]
        replicated.sort(key=lambda piece: (order.index(piece[0]), piece[1]))
        merged: list[Piece] = []
        for piece in replicated:
            append(merged, piece)
        written = []
        for axes in dims:
            parts = [ref(piece, sizes) for piece in axes]
            if self.rng.random() < 0.6:
                parts.append("?")
            priority = ""
            if priorities and self.features.priorities and parts and self.one_in(3):
                priority = f"p{self.rng.choice((0, 1, 2, 5))}"
            written.append("{" + ", ".join(parts) + "}" + priority)
        tail = f", replicated={{{', '.join(ref(p, sizes) for p in merged)}}}" if merged else ""
        return f"<@{mesh}, [{', '.join(written)}]{tail}>"

    def attribute(
        self, ranks: list[int], rule: str = "", more: str = "", priorities: bool = False
    ) -> str:
        """An attribute dictionary with shardings for all results, or for none."""
        entries = [more] if more else []
        if rule:
            entries.append(f"sdy.sharding_rule = {rule}")
        if ranks and self.rng.random() < self.density:
            shardings = ", ".join(self.sharding(rank, priorities) for rank in ranks)
            entries.append(f"sdy.sharding = #sdy.sharding_per_value<[{shardings}]>")
        return " {" + ", ".join(entries) + "}" if entries else ""

    def custom_call(self, pool: Pool, num_operands: int = 0) -> tuple[list[str], Pool]:
        """An op with a random rule."""
        num_operands = num_operands or self.rng.choice((1, 1, 2, 2, 3))
        operands = [self.pick(pool) for _ in range(num_operands)]
        sizes: list[int] = []
        mappings = [self.mapping(shape, sizes) for _, shape in operands]
        results: list[list[list[int]]] = []
        shapes: list[Shape] = []
        for _ in range(self.rng.choice((1, 1, 1, 2))):
            result = self.result_mapping(len(sizes))
            while product(sizes[f] for dim in result for f in dim) > MOST_ELEMENTS:
                result.pop()
            result = [
                [f for f in dim if len(dim) == 1 or sizes[f] > 1] or dim[:1] for dim in result
            ]
            results.append(result)
            shapes.append(tuple(product(sizes[f] for f in dim) for dim in result))
        rule = write_rule(self.rng, sizes, mappings, results)
        side_effect = "" if self.features.dead and self.one_in(2) else "has_side_effect = true"
        # The reference erases dead ops, and dies when the turn of their priorities comes.
        is_kept = bool(side_effect)
        attributes = self.attribute([len(shape) for shape in shapes], rule, side_effect, is_kept)
        name = self.fresh()
        types = ", ".join(tensor(shape) for _, shape in operands)
        left = f"{name}:{len(shapes)}" if len(shapes) > 1 else name
        right = ", ".join(tensor(shape) for shape in shapes)
        right = f"({right})" if len(shapes) > 1 else right
        arguments = ", ".join(value for value, _ in operands)
        target = self.rng.choice(("foo", "foo", "foo", "foo", "MoveToHost", "MoveToDevice"))
        line = f"{left} = stablehlo.custom_call @{target}({arguments}){attributes}"
        line += f" : ({types}) -> {right}"
        values = [name] if len(shapes) == 1 else [f"{name}#{i}" for i in range(len(shapes))]
        return [line], list(zip(values, shapes, strict=True))

    def mapping(self, shape: Shape, sizes: list[int]) -> list[list[int]]:
        """Factors for each dim: one seen before, a new one, or several new ones."""
        dims: list[list[int]] = []
        for size in shape:
            used = [factor for dim in dims for factor in dim]
            same = [f for f, s in enumerate(sizes) if s == size and f not in used]
            if same and not self.one_in(3):
                dims.append([self.rng.choice(same)])
                continue
            parts = [size]
            while 3 < parts[-1] < 1000 and len(parts) < 3 and self.one_in(3):
                options = [k for k in range(2, parts[-1]) if parts[-1] % k == 0]
                if not options:
                    break
                first = self.rng.choice(options)
                parts[-1:] = [first, parts[-1] // first]
            sizes.extend(parts)
            dims.append(list(range(len(sizes) - len(parts), len(sizes))))
        return dims

    def result_mapping(self, num_factors: int) -> list[list[int]]:
        chosen = [f for f in range(num_factors) if not self.one_in(4)]
        self.rng.shuffle(chosen)
        del chosen[5:]
        dims: list[list[int]] = []
        for factor in chosen:
            if dims and self.one_in(4):
                dims[-1].append(factor)
            else:
                dims.append([factor])
        return dims[:4]

    def single(
        self, name: str, operands: Pool, result: Shape, rule: str, details: str = ""
    ) -> tuple[list[str], Pool]:
        """An op with one result."""
        attributes = self.attribute([len(result)], rule)
        types = ", ".join(tensor(shape) for _, shape in operands)
        signature = f"({types}) -> {tensor(result)}"
        if all(shape == result for _, shape in operands) and not details:
            signature = tensor(result)
        if name.startswith("chlo."):
            signature = f"{types} -> {tensor(result)}"
        value = self.fresh()
        values = ", ".join(value for value, _ in operands)
        line = f"{value} = {name} {values}{details}{attributes} : {signature}"
        return [line], [(value, result)]

    def elementwise(self, pool: Pool) -> tuple[list[str], Pool]:
        value = self.pick(pool)
        shape = value[1]
        mapping = [[i] for i in range(len(shape))]
        if self.one_in(2):
            rule = write_rule(None, list(shape), [mapping], [mapping])
            name = self.rng.choice(("stablehlo.tanh", "stablehlo.negate", "chlo.erf"))
            return self.single(name, [value], shape, rule)
        other = self.rng.choice([v for v in pool if v[1] == shape])
        rule = write_rule(None, list(shape), [mapping, mapping], [mapping])
        return self.single("stablehlo.add", [value, other], shape, rule)

    def transpose(self, pool: Pool) -> tuple[list[str], Pool]:
        value = self.pick(pool)
        order = list(range(len(value[1])))
        mapping = [[i] for i in order]
        self.rng.shuffle(order)
        rule = write_rule(None, list(value[1]), [mapping], [[[i] for i in order]])
        result = tuple(value[1][dim] for dim in order)
        return self.single("stablehlo.transpose", [value], result, rule, f", dims = {order}")

    def broadcast(self, pool: Pool) -> tuple[list[str], Pool]:
        value = self.pick([v for v in pool if len(v[1]) < 3] or pool)
        result = (self.rng.choice(DIMS), *value[1])
        every = [[i] for i in range(len(result))]
        rule = write_rule(None, list(result), [every[1:]], [every])
        dims = f", dims = {list(range(1, len(result)))}"
        return self.single("stablehlo.broadcast_in_dim", [value], result, rule, dims)

    def constraint(self, pool: Pool) -> tuple[list[str], Pool]:
        value, shape = self.pick(pool)
        name, sharding = self.fresh(), self.sharding(len(shape))
        line = f"{name} = sdy.sharding_constraint {value} {sharding} : {tensor(shape)}"
        return [line], [(name, shape)]

    def barrier(self, pool: Pool) -> tuple[list[str], Pool]:
        value, shape = self.pick(pool)
        direction = self.rng.choice(("NONE", "FORWARD", "BACKWARD"))
        name = self.fresh()
        details = f"allowed_direction={direction}{self.attribute([len(shape)])}"
        line = f"{name} = sdy.propagation_barrier {value} {details} : {tensor(shape)}"
        return [line], [(name, shape)]

    def pick(self, pool: Pool) -> tuple[str, Shape]:
        return pool[max(self.rng.randrange(len(pool)), self.rng.randrange(len(pool)))]


def append(axes: list[Piece], piece: Piece) -> None:
    """Append an axis, or join it to the last one."""
    if axes:
        name, pre, size = axes[-1]
        if name == piece[0] and pre * size == piece[1]:
            axes[-1] = (name, pre, size * piece[2])
            return
    axes.append(piece)


def ref(piece: Piece, sizes: dict[str, int]) -> str:
    name, pre, size = piece
    return f'"{name}"' if size == sizes[name] else f'"{name}":({pre}){size}'


def product(numbers: Iterable[int]) -> int:
    total = 1
    for number in numbers:
        total *= number
    return total


def tensor(shape: Shape) -> str:
    return "tensor<" + "".join(f"{size}x" for size in shape) + "f32>"


def names(values: Pool) -> str:
    return ", ".join(value for value, _ in values)


def types(values: Pool) -> str:
    return ", ".join(tensor(shape) for _, shape in values)


def typed(values: Pool) -> str:
    return ", ".join(f"{value}: {tensor(shape)}" for value, shape in values)


def result_types(shapes: list[Shape]) -> str:
    joined = ", ".join(tensor(shape) for shape in shapes)
    return joined if len(shapes) == 1 else f"({joined})"


def group(name: str, shapes: list[Shape]) -> tuple[str, Pool]:
    """The left side of an op with these results, and the results."""
    if len(shapes) == 1:
        return name, [(name, shapes[0])]
    return f"{name}:{len(shapes)}", [(f"{name}#{i}", shape) for i, shape in enumerate(shapes)]


def write_rule(
    rng: random.Random | None,
    sizes: list[int],
    operands: list[list[list[int]]],
    results: list[list[list[int]]],
) -> str:
    """A rule as text, with kinds of factors at random."""

    def name(factor: int) -> str:
        return FACTORS[factor] if factor < len(FACTORS) else f"z_{factor - len(FACTORS) + 1}"

    def tensors(mappings: list[list[list[int]]]) -> str:
        return ", ".join(
            "[" + ", ".join("".join(name(f) for f in dim) for dim in mapping) + "]"
            for mapping in mappings
        )

    kinds: dict[str, list[int]] = {}
    if rng:
        for factor in range(len(sizes)):
            kind = rng.choice((None, None, "reduction", "need_replication", "permutation"))
            in_result = any(factor in dim for mapping in results for dim in mapping)
            if kind and not (kind == "reduction" and in_result):
                kinds.setdefault(kind, []).append(factor)
            if rng.random() < 0.1:
                kinds.setdefault("blocked_propagation", []).append(factor)
    written = ", ".join(f"{name(factor)}={size}" for factor, size in enumerate(sizes))
    text = f"({tensors(operands)})->({tensors(results)}) {{{written}}}"
    for kind in ("reduction", "need_replication", "permutation", "blocked_propagation"):
        if kind in kinds:
            text += f" {kind}={{{', '.join(name(f) for f in kinds[kind])}}}"
    return f"#sdy.op_sharding_rule<{text}>"
