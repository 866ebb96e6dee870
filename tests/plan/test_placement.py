"""Meshes on machines: each placement of axes is tried once, and none that is better is missed."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator
from typing import Any

import pytest
import shardcore
from shardcore import Mesh
from shardcore.calculus.hardware import hardware
from shardcore.calculus.topology import Topology
from shardcore.plan.meshes import meshes
from shardcore.plan.objective import links
from shardcore.plan.placement import Placement, places

from tests.plan.programs import mlp_step

MACHINES: list[tuple[str, int, dict[str, Any]]] = [
    ("tpu-v5e", 8, {}),
    ("tpu-v5e", 16, {"slices": 2}),
    ("tpu-v5p", 16, {"topology": "2x2x4"}),
    ("h100", 16, {}),
]
MOST = 500
"""The annotations over a mesh that are compared; of more a random choice."""


def ordered(devices: int, axes: int) -> Iterator[tuple[int, ...]]:
    """All ordered ways to write ``devices`` as a product of ``axes`` sizes of two or more."""
    for sizes in itertools.product(range(2, devices + 1), repeat=axes):
        if math.prod(sizes) == devices:
            yield sizes


def considered(chip: str, devices: int, options: dict[str, Any]) -> list[Mesh]:
    found = hardware(chip)
    return meshes(mlp_step(64, 64, 64), None, devices, found, links(found, options))


def edits(mesh: Mesh) -> list[dict[str, str]]:
    """Annotations in which each axis shards one dim of each argument, or none."""
    targets = ("x", "p/w1", "p/w2")
    choices = list(itertools.product(range(3), repeat=len(mesh.axes) * len(targets)))
    chosen = choices if len(choices) <= MOST else random.Random(0).sample(choices, MOST)
    found = []
    for each in chosen:
        edit = {}
        for place, target in enumerate(targets):
            own = dict(zip(mesh.axis_names, each[place * len(mesh.axes) :], strict=False))
            dims = (tuple(name for name in own if own[name] == dim) for dim in (1, 2))
            edit[target] = f"P({', '.join(map(repr, dims))})"
        found.append(edit)
    return found


@pytest.mark.parametrize(("chip", "devices", "options"), MACHINES)
def test_no_mesh_of_three_axes_is_better(chip: str, devices: int, options: dict[str, Any]) -> None:
    module, limit = mlp_step(512, 2048, 8192), 150 * 2**20
    plan = shardcore.plan(module, chip, limit, devices=devices, **options)
    for axes in (1, 2, 3):
        for sizes in ordered(devices, axes):
            mesh = Mesh(dict(zip("xyz", sizes, strict=False)))
            rows = module.session(mesh=mesh).evaluate(edits(mesh), chip, **options)
            least = min(
                (row.serial_seconds or math.inf for row in rows if (row.peak_bytes or 0) <= limit),
                default=math.inf,
            )
            assert plan.value <= least * 1.001, (mesh, least)


@pytest.mark.parametrize(("chip", "devices", "options"), MACHINES)
def test_a_symmetric_placement_is_tried_once(
    chip: str, devices: int, options: dict[str, Any]
) -> None:
    found = considered(chip, devices, options)
    of = links(hardware(chip), options)
    keys = [places(of.topology(mesh)) for mesh in found]
    assert len(set(keys)) == len(keys)
    # Each ordered mesh of up to two axes lies as one of these.
    for axes in (1, 2):
        for sizes in ordered(devices, axes):
            mesh = Mesh(dict(zip("xyz", sizes, strict=False)))
            assert places(of.topology(mesh)) in keys


def test_an_axis_ends_where_slices_and_nodes_do() -> None:
    assert Mesh({"x": 2, "y": 4, "z": 4}) in considered("tpu-v5e", 32, {"slices": 2})
    assert Mesh({"x": 8, "y": 2, "z": 4}) in considered("h100", 64, {})


def placement(chip: str, sizes: dict[str, int], **options: Any) -> Placement:
    return Placement.of(Topology.of(Mesh(sizes), hardware(chip), **options))


def test_it_says_where_axes_lie() -> None:
    found = placement("h100", {"data": 8, "model": 4})
    assert str(found) == "data across 4 nodes and on 2 chips of a node; model on 4 chips of a node"
    found = placement("tpu-v5p", {"data": 8, "model": 16}, shape="4x4x4", slices=2)
    assert str(found) == (
        "data across 2 slices and on a ring of 4; model on a ring of 4 and on a ring of 4"
    )
    record = found.record()
    assert record["slices"] == 2
    assert record["axes"]["data"]["physical"] == [
        {"chips": 4, "ring": True, "stride": 1, "links": 1.0}
    ]


@pytest.mark.parametrize(
    ("chip", "sizes", "options", "code"),
    [
        (
            "h100",
            {"data": 8, "model": 4},
            {},
            "jax.make_mesh((8, 4), ('data', 'model'), "
            "axis_types=(jax.sharding.AxisType.Auto,) * 2)",
        ),
        (
            "tpu-v5e",
            {"data": 4, "model": 4, "expert": 4},
            {},
            "jax.sharding.Mesh(mesh_utils.create_device_mesh((4, 4, 4), "
            "allow_split_physical_axes=True), ('data', 'model', 'expert'))",
        ),
        (
            "tpu-v5e",
            {"data": 8, "model": 4},
            {"slices": 2},
            "jax.sharding.Mesh(mesh_utils.create_hybrid_device_mesh((4, 4), (2, 1)), "
            "('data', 'model'))",
        ),
    ],
)
def test_code_of_a_mesh(
    chip: str, sizes: dict[str, int], options: dict[str, Any], code: str
) -> None:
    assert placement(chip, sizes, **options).code == code


def test_whole_physical_axes_are_found_in_any_order() -> None:
    found = Topology.of(Mesh({"x": 64, "y": 4}), hardware("tpu-v5p"), "4x4x16")
    assert [part.size for part in found.axes["x"]] == [4, 16]
    assert [part.shared for part in found.axes["y"]] == [None]
