"""Whether devices, each running its program on XLA, compute what the global program does."""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Sequence
from functools import cache

import jax
import ml_dtypes
import numpy as np
import shardcore
from shardcore.partition.partitioned import lowered as lowered_by
from shardcore.partition.placement import gather, scatter

from tests.spmd import generate, programs, runtime, texts

DTYPES = {
    "f64": np.float64, "f32": np.float32, "f16": np.float16, "i1": np.bool_,
    "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64,
    "ui8": np.uint8, "ui16": np.uint16, "ui32": np.uint32, "ui64": np.uint64,
    "complex<f32>": np.complex64, "bf16": ml_dtypes.bfloat16,
}  # fmt: skip


TPU = "xla-tpu"
"""Stands for the policy ``xla`` of programs that are simplified as XLA for TPUs does."""


def data(shape, name: str, rng: np.random.RandomState) -> np.ndarray:
    """Small integers, exact in every type: sums of them come out alike in any order."""
    kind = np.dtype(DTYPES[name])
    if kind == np.bool_:
        return rng.randint(0, 2, shape).astype(bool)
    if kind.kind == "f":
        return np.asarray(rng.randint(1, 5, shape) * rng.choice((-1, 1), shape)).astype(kind)
    low = 0 if kind.kind == "u" else -4
    return np.asarray(rng.randint(low, 5, shape)).astype(kind)


@cache
def lowered(name: str) -> str:
    """StableHLO of the program called ``name``."""
    if name in texts.TEXTS:
        return texts.TEXTS[name]
    fn, arguments = programs.OPS[name]
    return generate.lowered(fn, arguments)


@cache
def whole(name: str) -> object:
    """The executable of that program on one device."""
    return runtime.compile_replicas(lowered(name), 1)


def combinations(name: str) -> list[tuple[str, ...]]:
    """All shardings of the first two arguments of program ``name`` on a mesh of 2x4."""
    each = [generate.shardings(generate.MESHES[0], rank) for rank in generate.ranks(lowered(name))]
    return list(itertools.product(*each[:2]))


def problems(name: str, seed: int, policy: str, given: Sequence[str] = ()) -> list[str]:
    """What is wrong with program ``name`` under the shardings that ``seed`` gives, but for those of
    the first arguments that are ``given``, on a mesh of 2x4."""
    # Not `hash`, which differs from process to process.
    rng = np.random.RandomState(seed * 7919 + zlib.crc32(name.encode()) % 7919)
    mesh = generate.MESHES[0 if given else seed % len(generate.MESHES)]
    text = generate.annotated(lowered(name), mesh, rng, given)
    module = shardcore.Module.parse(text, filename=f"{name}-{seed}")
    partitioned = plan(module.propagate(), policy, seed)
    shardcore.Module.parse(str(partitioned.module))
    arrays = [data(port.shape, port.dtype, rng) for port in partitioned.arguments]
    count = partitioned.num_devices
    held = [
        spread(scatter(array, port, count), port, count)
        for array, port in zip(arrays, partitioned.arguments, strict=True)
    ]
    inputs = [[parts[device] for parts in held] for device in range(count)]
    if name in texts.SIMULATED:
        expected = shardcore.Module.parse(lowered(name)).simulate(*arrays)
    else:
        (expected,) = runtime.run_executable(whole(name), [arrays], 1)
    tolerance = programs.TOLERANCE.get(name, 0.0)
    wrong = []
    try:
        found = runtime.run(str(partitioned.module), inputs, count)
    except jax.errors.JaxRuntimeError as error:
        # XLA for hosts gives an FFT operands in a layout that it cannot transform.
        if "fft_thunk.cc" not in str(error):
            raise
        simulated = zip(partitioned.simulate(*arrays), expected, strict=True)
        return [f"{name}, seed {seed}" for mine, its in simulated if not same(mine, its, tolerance)]
    for index, port in enumerate(partitioned.results):
        try:
            mine = gather(np.stack([found[device][index] for device in range(count)]), port)
        except ValueError as error:
            wrong.append(str(error))
            continue
        if not same(mine, expected[index], tolerance):
            wrong.append(f"{port.name} differs")
    return [f"{name}, seed {seed}, policy {policy}: {problem}\n{text}" for problem in wrong]


def plan(result: shardcore.Result, policy: str, seed: int) -> shardcore.Partitioned:
    """The program of one device. Under ``least``, the plan in which results stay as they are
    computed is proven for every other seed, whether or not it sends the least."""
    if policy == "least" and seed % 2 == 0:
        return lowered_by(result, result.module, policy, None, keep_results=True)
    if policy == TPU:
        return result.partition("xla", compiler=policy)
    return result.partition(policy)


def spread(held: np.ndarray, port: shardcore.Port, count: int) -> list[np.ndarray]:
    """What each device gets; arguments without a sharding are the same for all."""
    return [held] * count if port.sharding is None else list(held)


def same(mine: np.ndarray, theirs: np.ndarray, tolerance: float) -> bool:
    """Whether two arrays agree: bit for bit, or as far as the arithmetic is exact."""
    if mine.shape != theirs.shape or mine.dtype != theirs.dtype:
        return False
    if tolerance and theirs.dtype.kind in "fc":
        return np.allclose(mine, theirs, rtol=tolerance, atol=tolerance, equal_nan=True)
    return np.array_equal(mine, theirs, equal_nan=theirs.dtype.kind in "fc")
