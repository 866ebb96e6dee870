"""Whole programs as global programs: what models compute, against XLA and against JAX on devices.

Most are run with their 32-bit floats made 64-bit ones: sums in another order then differ by nothing
that a mistake could hide behind.
"""

from __future__ import annotations

import re
from typing import Any

import jax
import numpy as np
import pytest
import shardcore.jax
from jaxlib.mlir import ir, passmanager
from shardcore import Module, SimulationError
from shardcore.simulate import Simulator
from shardcore.simulate.dtypes import DTYPES, is_complex, is_float

import tests.shardy.programs
from tests.deep import IS_DEEP
from tests.jax.programs import CASES
from tests.shardy import reference
from tests.shardy.programs import registry
from tests.simulate import xla

_ = tests.shardy.programs
SLOW = ("gpt", "resnet", "unet", "encoder", "vision", "state", "lstm", "moe", "convolutions")
"""What XLA takes seconds for."""
ERASED = ("sdy.sharding_constraint", "sdy.reshard", "sdy.sharding_group", "sdy.propagation_barrier")


def families() -> list[str]:
    """The first program of each family that takes little time to compile, or all."""
    if IS_DEEP:
        return registry.names()
    first: dict[str, str] = {}
    for name in registry.names():
        if not name.startswith(SLOW):
            first.setdefault(name.split("-")[0], name)
    return list(first.values())


def without_shardy(text: str) -> str:
    """``text`` without what XLA's parser of programs for one device does not take."""
    with reference.context():
        module = ir.Module.parse(text)
        found = [op for op in reference.walk(module.operation) if op.name in ERASED]
        for op in found:
            for result in op.results:
                result.replace_all_uses_with(op.operands[0])
            op.erase()
        drop = "builtin.module(sdy-drop-sharding-and-mesh)"
        passmanager.PassManager.parse(drop).run(module.operation)
        # How arrays lie in memory is not what they are.
        return str(module).replace("mhlo.layout_mode", "jax.layout_mode")


BITS = ("bitcast_convert", "rng_bit_generator", "shift_right_logical", "reduce_precision")


def doubled(text: str) -> str:
    """``text`` with 64-bit floats, if nothing in it looks at the bits of its floats."""
    if any(f"stablehlo.{name}" in text for name in BITS) or "lapack" in text or '"0x' in text:
        return text
    special = {"0x7F800000": "0x7FF0000000000000", "0xFF800000": "0xFFF0000000000000"}
    special["0x7FC00000"] = "0x7FF8000000000000"
    for short, long in special.items():
        text = text.replace(short, long)
    return re.sub(r"(?<=[x<])f32(?=[>,])", "f64", text)


def inputs(module: Module) -> list[Any]:
    rng = np.random.default_rng(0)
    found = []
    for port in module.arguments():
        if port.dtype is None:
            found.append(None)
            continue
        dtype, shape = DTYPES[port.dtype], tuple(size or 0 for size in port.shape or ())
        numbers = rng.standard_normal(shape) * 0.5
        if is_complex(dtype):
            found.append((numbers + 1j * rng.standard_normal(shape)).astype(dtype))
        elif is_float(dtype):
            found.append(numbers.astype(np.float32).astype(dtype))
        else:
            found.append(rng.integers(0, 2 if dtype == np.bool_ else 4, shape).astype(dtype))
    return found


def distance(got: Any, want: Any) -> float:
    """How far apart two results are, in terms of the largest number; integers not at all."""
    assert (got.shape, got.dtype) == (want.shape, want.dtype)
    if got.dtype.kind in "biu":
        return 0.0 if np.array_equal(got, want) else np.inf
    wide = np.complex128 if got.dtype.kind == "c" else np.float64
    got, want = got.astype(wide), want.astype(wide)
    if not np.array_equal(np.isnan(got), np.isnan(want)):
        return np.inf
    same = got == want
    with np.errstate(invalid="ignore"):
        apart = np.where(same, 0, np.nan_to_num(np.abs(got - want), posinf=np.inf))
    return float(apart.max(initial=0) / max(np.abs(want[np.isfinite(want)]).max(initial=0), 1e-3))


REFUSED = re.compile("CustomSPMDPartitioning|_callback|@my_kernel|@tpu_custom_call|@cu")
FREE = ("Eigh", "gesdd", "syevd")
"""Vectors that are determined up to a sign."""


@pytest.mark.parametrize("name", families())
def test_programs_are_what_xla_computes(name: str) -> None:
    text = doubled(registry.text(name))
    module = Module.parse(text)
    arrays = inputs(module)
    if REFUSED.search(text):
        with pytest.raises(SimulationError, match="unsupported-op"):
            Simulator(module)(*arrays)
        return
    got = Simulator(module)(*arrays)
    if "sdy.manual_computation" in text or any(target in text for target in FREE):
        return  # These are held against JAX on devices, and against their factors.
    bound = 1e-9 if "f64" in text else 1e-3
    for at, pair in enumerate(zip(got, xla.run(without_shardy(text), *arrays), strict=True)):
        assert distance(*pair) < bound, at


@pytest.mark.parametrize("name", CASES if IS_DEEP else [*list(CASES)[::3], "shard_map", "ring"])
def test_programs_are_what_jax_computes_on_devices(name: str) -> None:
    case = CASES[name]
    given = {"in_shardings": case.in_shardings, "out_shardings": case.out_shardings}
    options = {key: tree for key, tree in given.items() if tree is not None}
    lowered = shardcore.jax.lower(case.fn, *case.args, mesh=case.mesh, **options, **case.jit)
    rng = np.random.default_rng(0)

    def array(leaf: Any) -> Any:
        if jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key):
            return jax.random.key(7)
        if leaf.dtype == np.int32:
            return rng.integers(0, 4, leaf.shape).astype(np.int32)
        return (rng.standard_normal(leaf.shape) * 0.1).astype(np.float32)

    trees = jax.tree.map(array, case.args)
    leaves = [np.asarray(data_of(leaf)) for leaf in jax.tree.leaves(trees)]
    kept = [leaves[at] for at in kept_arguments(lowered.module, leaves)]
    got = lowered.module.simulate(*kept)
    mesh = jax.make_mesh(
        case.mesh.axis_sizes, case.mesh.axis_names, axis_types=case.mesh.axis_types
    )
    with jax.set_mesh(mesh):
        want = jax.tree.leaves(jax.jit(case.fn)(*trees))
    for pair in zip(got, (np.asarray(leaf) for leaf in want), strict=True):
        assert distance(*pair) < 1e-4


def data_of(leaf: Any) -> Any:
    """The words of a random key; anything else itself."""
    is_key = jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key)
    return jax.random.key_data(leaf) if is_key else leaf


def kept_arguments(module: Module, leaves: list[Any]) -> list[int]:
    """Which arguments the program has: JAX leaves those out that nothing needs."""
    shapes = [port.shape for port in module.arguments()]
    found: list[int] = []
    for at, leaf in enumerate(leaves):
        if len(found) < len(shapes) and leaf.shape == shapes[len(found)]:
            found.append(at)
    assert len(found) == len(shapes)
    return found
