"""Random shardings for a program of JAX: constraints on what goes in and out, even or not."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import jax
import numpy as np


@dataclass(frozen=True)
class MeshCase:
    """A mesh, its axes and parts of axes."""

    text: str
    axes: dict[str, int]
    count: int


MESHES = [
    MeshCase('<["x"=2, "y"=4]>', {'"x"': 2, '"y"': 4, '"y":(1)2': 2, '"y":(2)2': 2}, 8),
    MeshCase(
        '<["x"=8]>', {'"x"': 8, '"x":(1)2': 2, '"x":(2)2': 2, '"x":(2)4': 4, '"x":(4)2': 2}, 8
    ),
    MeshCase('<["a"=2, "b"=2, "c"=2]>', {'"a"': 2, '"b"': 2, '"c"': 2}, 8),
    MeshCase('<["x"=3, "y"=2]>', {'"x"': 3, '"y"': 2}, 6),
    MeshCase(
        '<["x"=2, "y"=4], device_ids=[3, 1, 0, 7, 6, 5, 2, 4]>',
        {'"x"': 2, '"y"': 4, '"y":(1)2': 2},
        8,
    ),
]


EXTREMES = {
    "f32": ["0x7FC00000"],
    "bf16": ["0x7FC0"],
    "i1": ["false", "true"],
    "i8": ["-128", "127"],
    "i32": ["-2147483648", "2147483647"],
    "i64": ["-9223372036854775808", "9223372036854775807"],
    "ui8": ["0", "255"],
    "ui32": ["0", "4294967295"],
}
"""What elements of each type are in padding."""


def sharding(mesh: MeshCase, shape: Sequence[int], rng: np.random.RandomState, even=False) -> str:
    """A random sharding of a tensor of ``shape``."""
    free = list(mesh.axes)
    dims = []
    for size in shape:
        mine: list[str] = []
        shards = 1
        while free and rng.rand() < 0.55:
            axis = free[rng.randint(len(free))]
            if even and size % (shards * mesh.axes[axis]):
                break
            if mine and mergeable(mine[-1], axis):
                break
            mine.append(axis)
            shards *= mesh.axes[axis]
            name = axis.split(":")[0]
            free = [a for a in free if not overlap(a, axis, name)]
        dims.append("{" + ", ".join(mine) + "}")
    return f"<@mesh, [{', '.join(dims)}]>"


def shardings(mesh: MeshCase, rank: int) -> list[str]:
    """All shardings of a tensor by the whole axes of ``mesh``, in each order."""
    axes = [axis for axis in mesh.axes if ":" not in axis]
    found = []
    for order in itertools.permutations(axes):
        for places in itertools.product(range(rank + 1), repeat=len(axes)):
            dims: list[list[str]] = [[] for _ in range(rank + 1)]
            for axis, place in zip(order, places, strict=True):
                dims[place].append(axis)
            # The last place is that of axes that shard no dim.
            listed = ["{" + ", ".join(dim) + "}" for dim in dims[:rank]]
            found.append(f"<@mesh, [{', '.join(listed)}]>")
    return list(dict.fromkeys(found))


def part(axis: str) -> tuple[int, int] | None:
    found = re.search(r":\((\d+)\)(\d+)", axis)
    return (int(found[1]), int(found[2])) if found else None


def mergeable(first: str, second: str) -> bool:
    if first.split(":")[0] != second.split(":")[0]:
        return False
    a, b = part(first), part(second)
    return a is not None and b is not None and a[0] * a[1] == b[0]


def overlap(a: str, b: str, name: str) -> bool:
    if a.split(":")[0] != name:
        return False
    p, q = part(a), part(b)
    if p is None or q is None:
        return True
    return p[0] < q[0] * q[1] and q[0] < p[0] * p[1]


def lowered(fn: Callable, args: Sequence[jax.ShapeDtypeStruct]) -> str:
    """StableHLO of ``fn``."""
    return jax.jit(fn).lower(*args).as_text()


def ranks(text: str) -> list[int]:
    """The ranks of the arguments of the program."""
    head = re.search(r"func\.func public @main\((.*?)\) -> ", text, re.S)
    assert head, text[:500]
    types = re.findall(r"%arg\d+: (tensor<[^<>]*(?:<[^<>]*>)?[^<>]*>)", head[1])
    return [len(shape_of(type_)) for type_ in types]


def annotated(
    text: str, mesh: MeshCase, rng: np.random.RandomState, given: Sequence[str] = ()
) -> str:
    """The program with constraints on arguments and results, which are sharded evenly.

    The first arguments are constrained to the shardings ``given``, others at random.
    """
    head = re.search(r"func\.func public @main\((.*?)\) -> \((.*?)\) \{", text, re.S)
    assert head, text[:500]
    types = re.findall(r"%(arg\d+): (tensor<[^<>]*(?:<[^<>]*>)?[^<>]*>)", head[1])
    new_args, constraints = [], []
    for name, type_ in types:
        shape = shape_of(type_)
        entry = sharding(mesh, shape, rng, even=True)
        new_args.append(f"%{name}: {type_} {{sdy.sharding = #sdy.sharding{entry}}}")
        inner = sharding(mesh, shape, rng)
        if len(new_args) <= len(given):
            inner = given[len(new_args) - 1]
        constraints.append(f"    %lies_{name} = sdy.sharding_constraint %{name} {inner} : {type_}")
        constraints.append(poisoned(name, shape, type_, rng))
    results = re.findall(r"tensor<[^<>]*(?:<[^<>]*>)?[^<>]*>", head[2])
    body_start = head.end()
    body_end = text.index("\n    return ", body_start)
    line_end = text.index("\n", body_end + 1)
    body = text[body_start:body_end]
    body = re.sub(r"%(arg\d+)\b", lambda m: f"%in_{m[1]}" if (m[1] in dict(types)) else m[0], body)
    returned = text[body_end:line_end]
    values = re.findall(r"%[\w#]+", returned.split(":")[0])
    outs, out_types, tail = [], [], []
    for index, (value, type_) in enumerate(zip(values, results, strict=True)):
        value = re.sub(r"%(arg\d+)\b", r"%in_\1", value)
        inner = sharding(mesh, shape_of(type_), rng)
        tail.append(f"    %out_{index} = sdy.sharding_constraint {value} {inner} : {type_}")
        outs.append(f"%out_{index}")
        entry = sharding(mesh, shape_of(type_), rng, even=True)
        out_types.append(f"{type_} {{sdy.sharding = #sdy.sharding{entry}}}")
    new = (
        f"  sdy.mesh @mesh = {mesh.text}\n"
        f"  func.func public @main({', '.join(new_args)}) -> ({', '.join(out_types)}) {{\n"
        + "\n".join(constraints)
        + body
        + "\n"
        + "\n".join(tail)
        + f"\n    return {', '.join(outs)} : {', '.join(results)}"
    )
    start = text.rindex("\n", 0, head.start()) + 1
    return text[:start] + new + text[line_end:]


def poisoned(name: str, shape: tuple[int, ...], type_: str, rng: np.random.RandomState) -> str:
    """``%in_NAME``, which is ``%lies_NAME`` with other elements in its padding.

    Partitioners fill padding with zeros. Indices of padding are beyond the dim: there floats are
    NaN, integers the least or the greatest of their type, and booleans false or true.
    """
    element = type_[len("tensor<") : -1].split("x")[-1]
    if not shape or element not in EXTREMES:
        return f"    %in_{name} = stablehlo.optimization_barrier %lies_{name} : {type_}"
    extremes = EXTREMES[element]
    other = extremes[rng.randint(len(extremes))]
    mask, index = (f"{type_[: -len(element) - 1]}{kind}>" for kind in ("i1", "i32"))
    lines = [f"    %other_{name} = stablehlo.constant dense<{other}> : {type_}"]
    given = f"%lies_{name}"
    for dim, size in enumerate(shape):
        at = f"{name}_{dim}"
        lines += [
            f"    %at_{at} = stablehlo.iota dim = {dim} : {index}",
            f"    %end_{at} = stablehlo.constant dense<{size}> : {index}",
            f"    %is_{at} = stablehlo.compare LT, %at_{at}, %end_{at}"
            f" : ({index}, {index}) -> {mask}",
            f"    %in_{at} = stablehlo.select %is_{at}, {given}, %other_{name} : {mask}, {type_}",
        ]
        given = f"%in_{at}"
    lines.append(f"    %in_{name} = stablehlo.optimization_barrier {given} : {type_}")
    return "\n".join(lines)


def shape_of(type_: str) -> tuple[int, ...]:
    inner = type_[len("tensor<") : -1]
    found = re.match(r"((?:\d+x)*)", inner)
    return tuple(int(size) for size in found[1].split("x") if size)
