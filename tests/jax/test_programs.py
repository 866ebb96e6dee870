"""Every program's results are sharded as XLA shards them on devices."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import jax
import pytest
import shardcore.jax

from tests.conftest import FLAGS
from tests.jax.programs import CASES, Case, spec_entries
from tests.jax.versions import since, use_abstract_mesh

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def compiled() -> dict[str, Any]:
    """What XLA says, from a process of its own: the number of devices is set when jax starts."""
    env = {
        **os.environ,
        "JAX_PLATFORMS": "cpu",
        "XLA_FLAGS": " ".join(FLAGS),
        # JAX 0.7 has it off.
        "JAX_USE_SHARDY_PARTITIONER": "1",
    }
    done = subprocess.run(
        [sys.executable, "-m", "tests.jax.programs"],
        cwd=ROOT,
        env=env,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)  # type: ignore[no-any-return]


def propagated(case: Case) -> shardcore.jax.JaxResult:
    given = {"in_shardings": case.in_shardings, "out_shardings": case.out_shardings}
    options = {name: tree for name, tree in given.items() if tree is not None}
    lowered = shardcore.jax.lower(case.fn, *case.args, mesh=case.mesh, **options, **case.jit)
    return lowered.propagate()


def parameter(name: str) -> Any:
    """A parameter; those that JAX 0.7 has over devices only are skipped there."""
    on_devices = ("constraint", "unconstrained", "reshard", "explicit_gradient", "explicit")
    why = "it takes no specs in constraints and no explicit axes without devices"
    return pytest.param(name, marks=[since("0.8", why)] if name in on_devices else [])


@pytest.mark.parametrize("name", [*map(parameter, CASES)])
def test_results_are_sharded_as_on_devices(name: str, compiled: dict[str, Any]) -> None:
    case = CASES[name]
    if any("GSPMDSharding" in str(spec) for spec in compiled[name]):
        pytest.skip("Shardy leaves parts of axes on results; JAX 0.10 and later do not")
    specs = propagated(case).out_specs
    assert [spec_entries(spec) for spec in jax.tree.leaves(specs)] == compiled[name]


@pytest.mark.parametrize("name", [*map(parameter, CASES)])
def test_trees_are_those_of_the_function(name: str) -> None:
    case = CASES[name]
    result = propagated(case)
    is_leaf = lambda node: node is None  # noqa: E731
    wanted = jax.tree.structure(case.args)
    assert jax.tree.structure(result.in_specs, is_leaf=is_leaf) == wanted
    assert jax.tree.structure(result.in_shardings, is_leaf=is_leaf) == wanted
    with use_abstract_mesh(case.mesh):
        returned = jax.eval_shape(case.fn, *case.args)
    assert jax.tree.structure(result.out_shardings) == jax.tree.structure(returned)
    shapes = [leaf.shape for leaf in jax.tree.leaves(case.args)]
    for shape, sharding in zip(
        shapes, jax.tree.leaves(result.in_shardings, is_leaf=is_leaf), strict=True
    ):
        if sharding is not None:
            assert len(sharding.shard_shape(shape)) == len(shape)


def test_arguments_that_jax_drops_have_no_sharding() -> None:
    result = propagated(CASES["unused"])
    x, y, z = result.in_specs
    assert (spec_entries(x), y, spec_entries(z)) == (["data", "model"], None, ["data"])


def test_donation_stays_in_the_program() -> None:
    result = propagated(CASES["donated"])
    attributes = [port.attributes for port in result.module.arguments()]
    assert ["tf.aliasing_output" in attribute for attribute in attributes] == [True, True, False]
