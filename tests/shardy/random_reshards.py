"""Random reshards of one value: axes that do not all divide each other, sizes of all kinds."""

from __future__ import annotations

from random import Random

SIZES = {"a": 2, "b": 2, "c": 2, "d": 2, "e": 4, "f": 3, "g": 6}
MESH = ", ".join(f'"{name}"={size}' for name, size in SIZES.items())
DIMS = [1, 2, 3, 4, 5, 6, 8, 8, 10, 12, 16, 24, 48, 64]

Axis = tuple[str, int | None, int]
"""A name, a pre-size if it is a part of an axis, and a size."""


def _parts(rng: Random) -> list[Axis]:
    """All axes, some of them in two parts."""
    parts: list[Axis] = []
    for name, size in SIZES.items():
        if size in (4, 6) and rng.random() < 0.35:
            cut = 2 if size == 4 else rng.choice([2, 3])
            parts += [(name, 1, cut), (name, cut, size // cut)]
        else:
            parts.append((name, None, size))
    rng.shuffle(parts)
    return parts


def _push(axes: list[Axis], axis: Axis) -> None:
    """Appends a part of an axis, merged with the part before it."""
    name, pre_size, size = axis
    if axes and axes[-1][0] == name and axes[-1][1] is not None:
        _, before, size_before = axes[-1]
        if before * size_before == pre_size:
            size *= size_before
            axes[-1] = (name, None if size == SIZES[name] else before, size)
            return
    axes.append(axis)


def _sharding(rng: Random, rank: int, chance: float) -> str:
    dims: list[list[Axis]] = [[] for _ in range(rank)]
    for part in _parts(rng):
        if rng.random() < chance:
            _push(dims[rng.randrange(rank)], part)
    texts = (
        ", ".join(f'"{name}"' + (f":({pre}){size}" if pre else "") for name, pre, size in axes)
        for axes in dims
    )
    return ", ".join(f"{{{text}}}" for text in texts)


def make(seed: int) -> str:
    """A module with one reshard."""
    rng = Random(seed)
    rank, chance = rng.choice([1, 2, 2, 3, 3]), rng.choice([0.2, 0.35, 0.5])
    is_even = rng.random() < 0.3
    shape = [48 * rng.choice([1, 2, 4]) if is_even else rng.choice(DIMS) for _ in range(rank)]
    type = f"tensor<{'x'.join(map(str, shape))}xf32>"
    before, after = (_sharding(rng, rank, chance) for _ in range(2))
    return f"""
sdy.mesh @mesh = <[{MESH}]>
func.func @main(%a: {type} {{sdy.sharding = #sdy.sharding<@mesh, [{before}]>}}) -> {type} {{
  %0 = sdy.reshard %a <@mesh, [{after}]> : {type}
  return %0 : {type}
}}
"""
