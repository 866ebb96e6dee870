"""``shardcore.jax.measure``: times a table of ops on JAX's devices, and makes a chip of them."""

from __future__ import annotations

import math
import os
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from shardcore.calculus.achieved import Achieved
from shardcore.calculus.hardware import Hardware, hardware, hardware_names
from shardcore.costs.fit import Fit, MeasuredOp, fit
from shardcore.jax.lower import lower
from shardcore.jax.measured_ops import Op, families
from shardcore.jax.mistakes import mistake
from shardcore.partition.counted import local_program

BATCH_SECONDS = 2e-3
"""Runs are started one after the other for about so long before they are waited for, as a program
starts its steps."""
_MOST_RUNS = 1000
ROUNDS = 3
"""How often the table is gone through."""
GROWTH = 8
"""The next op of a family takes at most so many times as long."""
_WARM_UP = 2
_LEAST_BATCHES = 3
_PATTERN = 1 << 20
"""So many numbers are made, and repeated."""
_SHARE_OF_MEMORY = 8
"""Arguments take at most one part in so many of the memory."""

_LIKE = {"cpu": None, "gpu": "h100", "cuda": "h100", "rocm": "mi300x", "tpu": "tpu-v5e"}
"""The chip whose figures stand for those that are not measured, where the chip is not known."""
_COMPILERS = {"cpu": "xla-cpu", "tpu": "xla-tpu"}
_ALSO_CALLED = {
    "v2": None, "v3": "tpu-v3", "v4": "tpu-v4p", "v5lite": "tpu-v5e", "v5e": "tpu-v5e",
    "v5": "tpu-v5p", "v5p": "tpu-v5p", "v6lite": "tpu-v6e", "v6e": "tpu-v6e", "7x": "tpu-v7x",
}  # fmt: skip
"""TPUs by what JAX calls them, without spaces."""

_wait: Any = jax.block_until_ready

Clock = Callable[[], float]
Timer = Callable[[Op, MeasuredOp, float], float]
"""Seconds of an op, which may take so many to be measured; the row has its program."""


@dataclass(frozen=True)
class Measurements:
    """What was measured, and what follows from it."""

    fit: Fit
    device: str
    """What JAX calls the device."""
    num_devices: int
    seconds: float
    """How long that took."""
    refused: tuple[tuple[str, str], ...] = ()
    """Ops that the device did not run, and why."""

    @property
    def chip(self) -> Hardware:
        """The chip, for the ``hardware`` of :func:`shardcore.cost`."""
        return self.fit.chip

    def to_toml(self) -> str:
        """Return the chip as a hardware file."""
        from shardcore.calculus.hardware_text import hardware_text

        return hardware_text(self.chip)

    def save(self, path: str | Path) -> None:
        """Write the hardware file ``path``."""
        Path(path).write_text(self.to_toml(), encoding="utf-8")

    def record(self) -> dict[str, Any]:
        """Return it as plain data."""
        chip = self.chip
        return {
            "hardware": chip.name,
            "device": self.device,
            "devices": self.num_devices,
            "seconds": self.seconds,
            "flops": dict(chip.flops),
            "hbm_bytes": chip.hbm_bytes,
            "hbm_bytes_per_second": chip.hbm_bytes_per_second,
            "median_error": self.fit.error(),
            "ops": [
                {
                    "name": row.name,
                    "group": row.group,
                    "measured_seconds": row.step_seconds,
                    "seconds": seconds,
                }
                for row, seconds in self.fit.rows
            ],
            "refused": [{"name": name, "reason": reason} for name, reason in self.refused],
        }


def measure(
    seconds: float = 300.0,
    *,
    name: str | None = None,
    base: str | None = None,
    devices: Sequence[Any] | None = None,
    progress: Callable[[str, float], None] | None = None,
    timer: Timer | None = None,
) -> Measurements:
    """Time a table of ops on ``jax.devices()[0]``, collectives on all, and fit a chip to them.

    Args:
        seconds: about how long that may take; the table ends early rather than late.
        name: what to call the chip; by default as JAX calls the device.
        base: the chip whose figures stand for those that are not measured, such as tiles and the
            network; by default the chip itself where it is known, or one of its kind.
        devices: other devices than ``jax.devices()``.
        progress: is told what is measured, and the share of the time that is over.
        timer: something else to time ops with.

    Raises:
        LoweringError: there is no device, or nothing is known of such ones and there is no
            ``base`` (``devices``).
        CalculusError: there is no chip ``base`` (``unknown-hardware``).
    """
    devices = list(jax.devices() if devices is None else devices)
    if not devices:
        raise mistake("devices", "there is no device to measure", "pass jax.devices()")
    began = time.perf_counter()
    start, is_known = _start(devices, name, base)
    table = list(families(devices))
    found: dict[Op, MeasuredOp] = {}
    refused: dict[Op, str] = {}
    timed = _Timer() if timer is None else timer
    # What else the machine does lasts: the least of rounds that are some time apart is better than
    # that of one that takes as long.
    for last in range(1, ROUNDS + 1):
        end = began + seconds * last / ROUNDS
        for number, family in enumerate(table):
            slot = max(end - time.perf_counter(), 0.0) / (len(table) - number) / len(family)
            for op in family:
                if op in refused or op.bytes * _SHARE_OF_MEMORY > start.hbm_bytes:
                    break
                if progress is not None:
                    progress(op.name, min((time.perf_counter() - began) / seconds, 1.0))
                try:
                    row = found.get(op) or _row(op)
                    if row.cost(start).uncounted:
                        refused[op] = "what it takes is not known"
                        break
                    least = timed(op, row, slot)
                except (jax.errors.JaxRuntimeError, NotImplementedError) as error:
                    refused[op] = str(error).partition("\n")[0]
                    break
                found[op] = replace(row, step_seconds=min(row.step_seconds, least))
                if least * GROWTH * (_WARM_UP + _LEAST_BATCHES) > 2 * slot:
                    break
    rows = list(found.values())
    kind = devices[0].device_kind
    today = date.today().isoformat()
    source = f"{len(rows)} ops, JAX {jax.__version__} on {len(devices)} {kind}, {today}"
    fitted = fit(rows, start, source, keeps_peaks=is_known)
    took = time.perf_counter() - began
    reasons = tuple((op.name, reason) for op, reason in refused.items())
    return Measurements(fitted, kind, len(devices), took, reasons)


def _row(op: Op) -> MeasuredOp:
    """The row of ``op``, not measured yet."""
    donated = (0,) if op.donates else None
    result = lower(op.function, *op.shapes, donate_argnums=donated).propagate().result
    program = local_program(result, "xla")
    return MeasuredOp(
        op.name, program, math.inf, {}, group=op.group, flops=op.flops, moved_bytes=op.moved_bytes
    )


class _Timer:
    """Times ops, each of which is compiled once."""

    def __init__(self) -> None:
        self._compiled: dict[Op, Any] = {}

    def __call__(self, op: Op, _: MeasuredOp, seconds: float) -> float:
        """The least seconds of ``op``, from about so many of runs."""
        began = time.perf_counter()
        compiled = self._compiled.get(op)
        if compiled is None:
            donated = (0,) if op.donates else ()
            compiled = jax.jit(op.function, donate_argnums=donated).lower(*op.shapes).compile()
            self._compiled[op] = compiled
        arguments = _arguments(op)

        def run(count: int) -> None:
            for _ in range(count):
                out = compiled(*arguments)
                if op.donates:
                    arguments[0] = out
            _wait(out)

        return least_seconds(run, seconds - (time.perf_counter() - began))


def _arguments(op: Op) -> list[Any]:
    """Arrays for ``op``: numbers from 0 to 1 in no order, and indices."""
    rows = op.shapes[0].shape[0]
    made = []
    for seed, shape in enumerate(op.shapes):
        some = np.random.default_rng(seed).random(_PATTERN, np.float32)
        # Indices are below the number of rows; to repeat numbers is faster than to make them.
        whole = (some * rows).astype(np.int32) if shape.dtype == jnp.int32 else some
        repeated = np.resize(whole.astype(shape.dtype), shape.shape)
        made.append(jax.device_put(repeated, shape.sharding))
    return made


def least_seconds(
    run: Callable[[int], object], seconds: float, clock: Clock = time.perf_counter
) -> float:
    """Return the least seconds of one of the runs that ``run(count)`` starts one after the other,
    from batches that take about ``seconds`` in all.

    What else a machine does makes runs longer, never shorter.
    """

    def timed(count: int) -> float:
        began = clock()
        run(count)
        return (clock() - began) / count

    began = clock()
    once = min(timed(1) for _ in range(_WARM_UP))
    count = int(min(max(BATCH_SECONDS / max(once, 1e-9), 1), _MOST_RUNS))
    found = [timed(count) for _ in range(_LEAST_BATCHES)]
    while clock() - began < seconds:
        found.append(timed(count))
    return min(found)


def _start(devices: list[Any], name: str | None, base: str | None) -> tuple[Hardware, bool]:
    """The chip to start from, and whether it is one whose peaks are known."""
    device = devices[0]
    kind, platform = device.device_kind, device.platform
    own = _known_chip(kind)
    like = base or own or _LIKE.get(platform, "")
    if like == "":
        message = f"nothing is known of devices like {kind}"
        raise mistake("devices", message, "name a chip that is like it as base")
    chip = replace(_HOST, node_size=len(devices)) if like is None else hardware(like)
    if like is not None:
        # What was measured there was held against other figures.
        chip = replace(chip, measured={}, source=_sources(chip, like, is_own=like == own))
    memory = _memory_bytes(device)
    if memory is not None:
        source = {**chip.source, "hbm_bytes": "what the device says"}
        chip = replace(chip, hbm_bytes=float(memory), source=source)
    units = getattr(device, "core_count", None)
    if platform not in _COMPILERS and isinstance(units, int) and units > 0:
        chip = replace(chip, achieved=replace(chip.achieved, units=units))
    return replace(
        chip,
        name=name or re.sub(r"[^a-z0-9]+", "-", kind.lower()).strip("-") or platform,
        compiler=_COMPILERS.get(platform, "xla-gpu"),
    ), own is not None and like == own


def _sources(chip: Hardware, like: str, *, is_own: bool) -> dict[str, str]:
    """The sources of the figures of ``chip``, from which a measured one starts."""
    if is_own:
        return dict(chip.source)
    return {"default": f"assumed: as {like}"}


def _known_chip(kind: str) -> str | None:
    """The chip that JAX calls ``kind``, if it is one that is known."""
    plain = re.sub(r"[\W_]", "", kind.lower())
    if plain.startswith("tpu"):
        return _ALSO_CALLED.get(plain.removeprefix("tpu"))
    # The longest: a GB200 is no B200.
    names = sorted(hardware_names(), key=len, reverse=True)
    return next((each for each in names if each in plain), None)


def _memory_bytes(device: Any) -> int | None:
    """The memory of ``device``; ``None`` where nobody says it."""
    limit = (device.memory_stats() or {}).get("bytes_limit")
    if limit is None and device.platform == "cpu":
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return limit


_HOST = Hardware(
    name="cpu",
    kind="switched",
    flops={"bf16": 1e12},
    hbm_bytes=16e9,
    hbm_bytes_per_second=1e11,
    link_bytes_per_second=1e10,
    node_bytes_per_second=1e10,
    cache_bytes=32e6,
    cache_bytes_per_second=1e11,
    achieved=Achieved(mapped_bytes=1 << 25),
    source={"default": "assumed: a host with some cores"},
)
"""What is assumed of hosts where it is not measured."""
