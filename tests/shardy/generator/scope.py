"""What a module under construction knows: its meshes and style, its values, the text so far."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from random import Random

from tests.shardy.generator import meshes, shardings

Shape = tuple[int, ...]


@dataclasses.dataclass(frozen=True)
class Value:
    """An SSA value that is a tensor."""

    name: str
    shape: Shape
    dtype: str = "f32"

    @property
    def type(self) -> str:
        return tensor(self.shape, self.dtype)


def tensor(shape: Sequence[int], dtype: str = "f32") -> str:
    return f"tensor<{''.join(f'{size}x' for size in shape)}{dtype}>"


def parse_tensor(text: str) -> tuple[Shape, str] | None:
    match = re.fullmatch(r"tensor<((?:\d+x)*)(.+)>", text)
    if match is None:
        return None
    return tuple(map(int, match[1].split("x")[:-1])), match[2]


@dataclasses.dataclass(frozen=True)
class Features:
    """What one module may contain."""

    regions: bool = False
    manual: bool = False
    calls: bool = False
    groups: bool = False
    tokens: bool = False
    named: bool = False
    inlined: bool = False
    rare: bool = False
    reductions: bool = False
    annotated: float = 0.2
    on_arguments: float = 0.4


@dataclasses.dataclass(frozen=True)
class Callee:
    name: str
    operands: list[Value]
    results: list[Value]


class Module:
    """What all scopes of a module share."""

    def __init__(self, rng: Random, features: Features, style: shardings.Style) -> None:
        self.rng = rng
        self.features = features
        self.style = style
        self.meshes = meshes.make(rng, features.inlined)
        self.callees: list[Callee] = []
        self.groups: dict[int, tuple[str, int]] = {}
        self.budget = 0
        self._names = 0
        self._scopes = 0

    def name(self) -> str:
        self._names += 1
        return f"%v{self._names}"

    def scope_number(self) -> int:
        self._scopes += 1
        return self._scopes

    def mesh(self) -> meshes.Mesh:
        other = len(self.meshes) > 1 and self.rng.random() < 0.2
        return self.rng.choice(self.meshes) if other else self.meshes[0]


class Scope:
    """A block under construction.

    `arguments` may be added to a function while its body is made; other blocks have theirs fixed.
    """

    def __init__(self, module: Module, depth: int, taken: tuple[str, ...] = ()) -> None:
        self.module = module
        self.rng = module.rng
        self.depth = depth
        self.taken = taken
        self.manual_scope = 0
        self.lines: list[str] = []
        self.pool: list[Value] = []
        self.inherited = 0
        self.tokens: list[str] = []
        self.may_add_arguments = False
        self.arguments: list[Value] = []

    def emit(self, line: str) -> None:
        self.lines.append(line)

    def define(self, shape: Sequence[int], dtype: str = "f32") -> Value:
        """A value that the next line defines."""
        value = Value(self.module.name(), tuple(shape), dtype)
        self.pool.append(value)
        return value

    def sharding(self, shape: Sequence[int]) -> str:
        mesh = self.module.meshes[0] if self.taken else self.module.mesh()
        return shardings.sharding(self.rng, mesh, shape, self.module.style, self.taken)

    def attribute(self, values: Sequence[Value], chance: float | None = None) -> str:
        """An attribute dictionary with a sharding for each value; often none."""
        wanted = self.module.features.annotated if chance is None else chance
        if not values or self.rng.random() > wanted:
            return ""
        listed = ", ".join(f"<{self.sharding(value.shape)}>" for value in values)
        return f" {{sdy.sharding = #sdy.sharding_per_value<[{listed}]>}}"

    def any(self, dtype: str = "f32", rank: int = 0) -> Value:
        """A value, more often a late one; made if there is none."""
        fitting = [
            v
            for v in self.pool
            if v.dtype == dtype and rank <= len(v.shape) < 7 and math.prod(v.shape) < 5000
        ]
        if not fitting:
            sizes = [2, 3, 4, 4, 6, 8, 8, 12, 16, 24, 5]
            shape = tuple(self.rng.choice(sizes) for _ in range(max(rank, self.rng.randint(1, 3))))
            return self.fresh(shape, dtype)
        return fitting[-1 - min(self.rng.randrange(len(fitting)) for _ in range(2))]

    def of(self, shape: Sequence[int], dtype: str = "f32") -> Value:
        """A value of this type: one there is, one made from another, or a fresh one."""
        shape = tuple(shape)
        same = [v for v in self.pool if (v.shape, v.dtype) == (shape, dtype)]
        if same and self.rng.random() < 0.9:
            return self.rng.choice(same)
        return self.fresh(shape, dtype)

    def fresh(self, shape: Sequence[int], dtype: str = "f32") -> Value:
        if self.may_add_arguments and self.rng.random() < 0.75:
            value = Value(self.module.name(), tuple(shape), dtype)
            self.arguments.append(value)
            self.pool.append(value)
            return value
        return self.constant(shape, dtype)

    def constant(self, shape: Sequence[int], dtype: str = "f32") -> Value:
        """A constant, an iota, or a broadcast scalar."""
        value = Value(self.module.name(), tuple(shape), dtype)
        roll = self.rng.random()
        sharding = self.attribute([value], 0.08)
        if roll < 0.2 and shape and dtype in ("f32", "i32"):
            dim = self.rng.randrange(len(shape))
            attributes = f"<{{iota_dimension = {dim} : i64}}>"
            self.emit(
                f'{value.name} = "stablehlo.iota"() {attributes}{sharding} : () -> {value.type}'
            )
        elif roll < 0.4 and shape and "complex" not in dtype:
            scalar = self.of((), dtype)
            attributes = "<{broadcast_dimensions = array<i64>}>"
            types = f"({scalar.type}) -> {value.type}"
            head = f'{value.name} = "stablehlo.broadcast_in_dim"({scalar.name})'
            self.emit(f"{head} {attributes}{sharding} : {types}")
        else:
            attributes = f"<{{value = dense<{self._splat(dtype)}> : {value.type}}}>"
            head = f'{value.name} = "stablehlo.constant"()'
            self.emit(f"{head} {attributes}{sharding} : () -> {value.type}")
        self.pool.append(value)
        return value

    def _splat(self, dtype: str) -> str:
        if "complex" in dtype:
            return "(0.0,1.0)"
        if dtype == "i1":
            return "true"
        number = self.rng.choice(["0", "1", "2"])
        return number + ".0" if dtype.startswith(("f", "bf")) else number

    @contextmanager
    def block(
        self, taken: tuple[str, ...] | None = None, isolated: bool = False
    ) -> Iterator[Scope]:
        """A block inside this one; unless isolated it sees the values out here."""
        inner = Scope(self.module, self.depth + 1, self.taken if taken is None else taken)
        inner.manual_scope = self.manual_scope if taken is None else self.module.scope_number()
        if not isolated:
            inner.pool = list(self.pool)
            inner.inherited = len(inner.pool)
        yield inner

    def keep_alive(self, returned: Sequence[Value] = ()) -> None:
        """Use what this block defines and does not use.

        The reference erases dead ops, and dies of those with priorities when their turn comes.
        """
        if not self.module.style.priorities:
            return
        used = set(re.findall(r"[(, :]%(v\d+(?:_r)?(?:#\d+)?)\b", self.body()))
        used |= {value.name[1:] for value in returned}
        for value in self.pool[self.inherited :]:
            if value.name[1:] not in used:
                self.emit(
                    f'"stablehlo.custom_call"({value.name}) <{{call_target_name = "keep", '
                    f"has_side_effect = true}}> : ({value.type}) -> ()"
                )

    def body(self) -> str:
        return "\n".join(self.lines)
