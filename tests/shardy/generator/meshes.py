"""The meshes of a module: axes of all sizes, device ids, maximal meshes, meshes alike."""

from __future__ import annotations

import dataclasses
import math
from random import Random

SIZES = (2, 2, 2, 2, 3, 4, 4, 4, 6, 8, 12, 5, 7, 16)
NAMES = ("x", "y", "z", "w", "data", "model")


@dataclasses.dataclass(frozen=True)
class Mesh:
    """A mesh and how shardings refer to it: by symbol, or written in place."""

    reference: str
    axes: tuple[tuple[str, int], ...]
    text: str

    @property
    def is_maximal(self) -> bool:
        return not self.axes and "device_ids" in self.text

    def size(self, axis: str) -> int:
        return dict(self.axes)[axis]


def make(rng: Random, inlined: bool = False) -> list[Mesh]:
    """The meshes of one module, the first of which most shardings are on."""
    names = rng.sample(NAMES, rng.choice([1, 2, 2, 2, 3, 3, 4]))
    sizes = [rng.choice(SIZES) for _ in names]
    if rng.random() < 0.15:
        sizes[rng.randrange(len(sizes))] = 1
    axes = tuple(zip(names, sizes, strict=True))
    while math.prod(size for _, size in axes) > 600:
        axes = axes[:-1]
    meshes = [_mesh("mesh", axes, rng if rng.random() < 0.1 else None)]
    if rng.random() < 0.25:
        meshes += _others(rng, meshes[0])
    if inlined:
        meshes += [dataclasses.replace(mesh, reference=f"mesh<{mesh.text}>") for mesh in meshes]
    return meshes


def _mesh(name: str, axes: tuple[tuple[str, int], ...], rng: Random | None = None) -> Mesh:
    text = "[" + ", ".join(f'"{axis}"={size}' for axis, size in axes) + "]"
    if rng and axes:
        ids = list(range(math.prod(size for _, size in axes)))
        while ids == sorted(ids) and len(ids) > 1:
            rng.shuffle(ids)
        if ids != sorted(ids):
            text += f", device_ids={ids}"
    return Mesh(f"@{name}", axes, text)


def _others(rng: Random, first: Mesh) -> list[Mesh]:
    others = [
        Mesh("@same", first.axes, first.text),
        _mesh("turned", first.axes, rng),
        _mesh("other", (("a", rng.choice(SIZES)), ("x", rng.choice(SIZES)))),
        Mesh("@on_three", (), "[], device_ids=[3]"),
        Mesh("@empty", (), "[]"),
        _mesh("reversed", first.axes[::-1]),
    ]
    return rng.sample(others, rng.randint(1, 3))
