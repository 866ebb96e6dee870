"""The mesh of a configuration of MaxText: chips, slices and the devices along each axis."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from shardcore.bounded import shown
from shardcore.maxtext import facts
from shardcore.maxtext.config import Config

AXES = ("data", "fsdp", "fsdp_transpose", "expert", "context", "tensor")
"""The axes that are modelled; ``fsdp_transpose`` is a part of ``fsdp``."""

_TARGETS = {
    "v4": "tpu-v4p",
    "v5e": "tpu-v5e",
    "v5p": "tpu-v5p",
    "v6e": "tpu-v6e",
    "tpu7x": "tpu-v7x",
}
"""The chip of each ``compile_topology``."""

_DEVICES = {"tpu-v7x": 2}
"""Devices per chip in JAX, if there are several. In shardcore a device is a chip."""

_MOST_CHIPS = 1 << 20


@dataclass(frozen=True)
class Chips:
    """The chips that a step runs on."""

    hardware: str
    count: int
    """The number of chips in all slices."""
    slices: int
    topology: str | None
    """The torus of one slice."""

    @property
    def devices(self) -> int:
        """The number of devices as MaxText counts them."""
        return self.count * _DEVICES.get(self.hardware, 1)


def chips_of(
    config: Config, hardware: str | None, devices: int | None, topology: str | None
) -> Chips:
    """Return the chips of ``config``; arguments that are not ``None`` override it.

    Raises:
        LoweringError: the chip or the number of chips is missing (``maxtext-config``).
    """
    slices = max(config.number("compile_topology_num_slices", -1), 1)
    slices = max(slices, config.number("num_slices", -1), _product(config, "dcn"))
    if target := config.text("compile_topology"):
        target = config.text("compile_topology", facts.topologies())
        hardware = hardware or _TARGETS[target.partition("-")[0]]
        topology = topology or (None if devices else facts.topologies()[target])
    count = devices
    if hardware is None:
        raise config.error(
            "hardware", "the chip is not said", "give --hardware, or set compile_topology"
        )
    if topology is not None:
        sizes = topology.split("x")
        if not all(re.fullmatch("[1-9][0-9]{0,5}", size, re.ASCII) for size in sizes):
            message = f"the topology is {shown(topology)}"
            raise config.error("compile_topology", message, "write --topology 16x16, or 4x4x8")
        count = count or math.prod(map(int, sizes)) * slices
    if count is None and config.number("ici_data_parallelism", -1) > 0:
        known = [config.number(f"ici_{axis}_parallelism", -1) for axis in AXES]
        if all(size > 0 for size in known):
            count = math.prod(known) * slices // _DEVICES.get(hardware, 1)
    if count is None or not 0 < count <= _MOST_CHIPS or count % slices:
        wrong = "not said" if count is None else f"{count}, for {slices} slices"
        raise config.error(
            "compile_topology", f"the number of chips is {wrong}", "give --devices, of all slices"
        )
    return Chips(hardware, count, slices, topology)


def _product(config: Config, kind: str) -> int:
    sizes = [config.number(f"{kind}_{axis}_parallelism", -1) for axis in AXES]
    return math.prod(size for size in sizes if size > 0)


def sizes_of(config: Config, chips: Chips) -> dict[str, int]:
    """Return the sizes of the mesh axes of :class:`shardcore.bench.training.Training`.

    Raises:
        LoweringError: the product of one kind of parallelism is not the number of devices
            (``maxtext-config``).
    """
    inner = _filled(config, "ici", chips.devices // chips.slices, "devices of a slice")
    outer = _filled(config, "dcn", chips.slices, "slices")
    total = {axis: inner[axis] * outer[axis] for axis in AXES}
    # Two devices of a chip are one device here: the axis that fills the devices is halved.
    halved = chips.devices // chips.count
    for axis in ("fsdp", "data", "expert", "context", "tensor", "fsdp_transpose"):
        if halved > 1 and total[axis] % halved == 0:
            total[axis] //= halved
            halved = 1
    if halved > 1:
        raise config.error("ici_fsdp_parallelism", "no axis has the two devices of a chip")
    total["fsdp"] *= total.pop("fsdp_transpose")
    optional = {"expert", "context"}
    sizes = {axis: size for axis, size in total.items() if size > 1 or axis not in optional}
    if sizes["tensor"] > 1 and "expert" in sizes:
        raise config.error(
            "ici_expert_parallelism", "experts beside tensor parallelism are not modelled"
        )
    return sizes


def _filled(config: Config, kind: str, count: int, what: str) -> dict[str, int]:
    """The parallelism of ``kind``, with -1 replaced by the remaining factor of ``count``."""
    keys = {axis: f"{kind}_{axis}_parallelism" for axis in AXES}
    sizes = {axis: config.number(key, -1) for axis, key in keys.items()}
    for axis, size in sizes.items():
        if size == 0:
            raise config.error(keys[axis], f"{keys[axis]} is 0, neither -1 nor positive")
    open_axes = [axis for axis, size in sizes.items() if size == -1]
    known = math.prod(size for size in sizes.values() if size > 0)
    if len(open_axes) > 1:
        names = " and ".join(keys[axis] for axis in open_axes)
        raise config.error(keys[open_axes[1]], f"{names} are -1", "only one is filled")
    if open_axes and count % known == 0:
        return {**sizes, open_axes[0]: count // known}
    if known != count or open_axes:
        set_keys = [keys[axis] for axis, size in sizes.items() if size > 1] or [keys["fsdp"]]
        blamed = next((key for key in reversed(set_keys) if key in config.given), set_keys[-1])
        text = ", ".join(f"{keys[axis]}={size}" for axis, size in sizes.items() if size != 1)
        message = f"{text or f'a product of {kind} of 1'} does not multiply to {count} {what}"
        raise config.error(blamed, message, "set one of them to -1 to fill the rest")
    return sizes
