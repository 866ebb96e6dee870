"""Measures the accelerator at hand, then times programs on it and prints them beside their costs.

``python -m tests.measure [SECONDS] [FILE.toml]``: with a file that is there it measures no ops.
Programs are timed in rounds that go through all of them, each with the least of its times.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import jax
import numpy as np
import shardcore.jax
from shardcore.calculus.hardware import hardware, hardware_names
from shardcore.jax.measure import least_seconds

from tests.measure.programs import PROGRAMS

ROUNDS, SECONDS = 4, 0.3
LARGEST_INDEX = 1000


def arrays(shapes: Any) -> Any:
    """Numbers around 0, and indices."""
    draw = np.random.default_rng(0)

    def made(shape: Any) -> Any:
        if shape.dtype == np.int32:
            return jax.device_put(draw.integers(0, LARGEST_INDEX, shape.shape, np.int32))
        return jax.device_put((draw.standard_normal(shape.shape) * 0.1).astype(shape.dtype))

    return jax.tree.map(made, shapes)


def main(seconds: float, path: Path) -> None:
    if not path.exists():
        shardcore.jax.measure(seconds).save(path)
    chip = hardware(hardware_names(path)[-1], path)
    least: dict[str, float] = {}
    compiled = {}
    for name, make in PROGRAMS.items():
        function, shapes = make()
        compiled[name] = jax.jit(function).lower(*shapes).compile(), arrays(shapes)
    for _ in range(ROUNDS):
        for name, (function, arguments) in compiled.items():

            def run(count: int, function: Any = function, arguments: Any = arguments) -> None:
                for _ in range(count):
                    out = function(*arguments)
                jax.block_until_ready(out)

            least[name] = min(least.get(name, np.inf), least_seconds(run, SECONDS))
    print(f"{'program':20} {'measured':>10} {'cost':>10} {'error':>7} {'bound':>6}")
    errors = []
    for name, make in PROGRAMS.items():
        function, shapes = make()
        cost = shardcore.jax.lower(function, *shapes).propagate().cost(chip)
        took = least[name]
        error = cost.step_seconds / took - 1
        errors.append(abs(error))
        bound = cost.step_seconds_lower / took
        figures = f"{took * 1e3:7.2f} ms {cost.step_seconds * 1e3:7.2f} ms"
        print(f"{name:20} {figures} {error:+7.0%} {bound:6.2f}")
    errors.sort()
    within = sum(error <= 0.15 for error in errors)
    print(f"{len(errors)} programs on {chip.name}: median error {np.median(errors):.1%}, ", end="")
    print(f"{within} within 15 %, largest {errors[-1]:.0%}")


main(
    float(sys.argv[1]) if len(sys.argv) > 1 else 120.0,
    Path(sys.argv[2] if len(sys.argv) > 2 else "measured.toml"),
)
