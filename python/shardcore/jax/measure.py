"""``shardcore.jax.measure``: times a table of ops on JAX's devices and fits a chip's figures."""

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
"""Seconds of a batch of runs: so long, runs are dispatched one after the other before the results
are awaited, as a training loop dispatches steps."""
_MOST_RUNS = 1000
ROUNDS = 3
"""How often the whole table is timed."""
GROWTH = 8
"""An upper bound of the time of a family's next op, as a multiple of the op before it."""
_WARM_UP = 2
_LEAST_BATCHES = 3
_PATTERN = 1 << 20
"""How many random numbers are drawn; larger arrays repeat them."""
_SHARE_OF_MEMORY = 8
"""Arguments take at most this fraction (one part in this number) of the device's memory."""

_LIKE = {"cpu": None, "gpu": "h100", "cuda": "h100", "rocm": "mi300x", "tpu": "tpu-v5e"}
"""For an unknown device of each platform, the chip whose figures replace those not measured."""
_COMPILERS = {"cpu": "xla-cpu", "tpu": "xla-tpu"}
_ALSO_CALLED = {
    "v2": None, "v3": "tpu-v3", "v4": "tpu-v4p", "v5lite": "tpu-v5e", "v5e": "tpu-v5e",
    "v5": "tpu-v5p", "v5p": "tpu-v5p", "v6lite": "tpu-v6e", "v6e": "tpu-v6e", "7x": "tpu-v7x",
}  # fmt: skip
"""Known TPU chips by JAX's ``device_kind``, without spaces."""

_wait: Any = jax.block_until_ready

Clock = Callable[[], float]
Timer = Callable[[Op, MeasuredOp, float], float]
"""Returns the seconds of an op, given its row and the seconds that the measurement may take."""


@dataclass(frozen=True)
class Measurements:
    """The measured ops and the chip that is fitted to them."""

    fit: Fit
    device: str
    """JAX's name of the device."""
    num_devices: int
    seconds: float
    """How long the measurement took."""
    refused: tuple[tuple[str, str], ...] = ()
    """Ops that the device did not run, each with the reason."""

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
        """Return the measurements as plain data."""
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
    """Time a table of ops on ``jax.devices()[0]``, collectives on all devices, and fit a chip to
    them.

    Args:
        seconds: about how long the measurement may take; it ends early rather than late.
        name: the name of the chip; by default JAX's name of the device.
        base: the chip whose figures are used for what is not measured, such as tiles and the
            network; by default the chip itself if it is known, else a chip of the same platform.
        devices: the devices; by default ``jax.devices()``.
        progress: called with what is being measured and the share of the time that is over.
        timer: a function that times ops instead of the built-in one.

    Raises:
        LoweringError: there is no device, or the device is unknown and ``base`` is not given
            (``devices``).
        CalculusError: there is no chip named ``base`` (``unknown-hardware``).
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
    # Other load on the machine lasts a while: the least of several rounds some time apart is
    # # better than one round that takes as long.
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
    """The row of ``op``, without a measurement yet."""
    donated = (0,) if op.donates else None
    result = lower(op.function, *op.shapes, donate_argnums=donated).propagate().result
    program = local_program(result, "xla")
    return MeasuredOp(
        op.name, program, math.inf, {}, group=op.group, flops=op.flops, moved_bytes=op.moved_bytes
    )


class _Timer:
    """Times ops; each is compiled once."""

    def __init__(self) -> None:
        self._compiled: dict[Op, Any] = {}

    def __call__(self, op: Op, _: MeasuredOp, seconds: float) -> float:
        """The least time of ``op`` in runs that take about ``seconds`` in all."""
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
    """Arrays for ``op``: uniform random numbers from 0 to 1, and random indices."""
    rows = op.shapes[0].shape[0]
    made = []
    for seed, shape in enumerate(op.shapes):
        some = np.random.default_rng(seed).random(_PATTERN, np.float32)
        # Indices are below the number of rows; repeating numbers is faster than drawing them.
        whole = (some * rows).astype(np.int32) if shape.dtype == jnp.int32 else some
        repeated = np.resize(whole.astype(shape.dtype), shape.shape)
        made.append(jax.device_put(repeated, shape.sharding))
    return made


def least_seconds(
    run: Callable[[int], object], seconds: float, clock: Clock = time.perf_counter
) -> float:
    """Return the least seconds per run, from batches that take about ``seconds`` in all;
    ``run(count)`` starts ``count`` runs one after the other.

    The least is taken because other load on the machine only makes runs longer.
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
    """The chip that the fit starts from, and whether its peaks are known."""
    device = devices[0]
    kind, platform = device.device_kind, device.platform
    own = _known_chip(kind)
    like = base or own or _LIKE.get(platform, "")
    if like == "":
        message = f"nothing is known of devices like {kind}"
        raise mistake("devices", message, "name a chip that is like it as base")
    chip = replace(_HOST, node_size=len(devices)) if like is None else hardware(like)
    if like is not None:
        # Earlier measurements of it were compared with other figures.
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
    """The sources of the figures of ``chip``, the start of a measured chip."""
    if is_own:
        return dict(chip.source)
    return {"default": f"assumed: as {like}"}


def _known_chip(kind: str) -> str | None:
    """The known chip with JAX's ``device_kind`` ``kind``; ``None`` if it is unknown."""
    plain = re.sub(r"[\W_]", "", kind.lower())
    if plain.startswith("tpu"):
        return _ALSO_CALLED.get(plain.removeprefix("tpu"))
    # The longest match: a GB200 is no B200.
    names = sorted(hardware_names(), key=len, reverse=True)
    return next((each for each in names if each in plain), None)


def _memory_bytes(device: Any) -> int | None:
    """The memory of ``device`` in bytes; ``None`` if JAX does not tell it."""
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
"""Figures that are assumed for hosts where they are not measured."""
