"""The chips that XLA's compilers compile for without them, and how they are named to XLA."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from shardcore.calculus.hardware import Hardware
from shardcore.calculus.topology import parse_shape
from shardcore.compilers import PLATFORMS
from shardcore.errors import CalculusError, CompilerError, Diagnostic
from shardcore.xla.gpus import GPUS

__all__ = ["EXTRAS", "TPUS", "Target", "target_of"]

TPUS = {"tpu-v5e": "v5e", "tpu-v5p": "v5p", "tpu-v6e": "v6e"}
"""The names that XLA's compiler for TPUs has for chips. A device is a whole chip on each."""

EXTRAS = {"xla-tpu": "tpu-oracle", "xla-gpu": "gpu-oracle", "xla-cpu": "jax"}
"""The extra that installs each compiler."""

_HOST = (2, 2)
"""The chips of a host of TPUs along the first axes; slices are whole hosts."""


@dataclass(frozen=True)
class Target:
    """What a program is compiled for."""

    compiler: str
    """``xla-tpu``, ``xla-gpu`` or ``xla-cpu``."""
    chip: str
    """The name of the chip; ``cpu`` for hosts."""
    num_devices: int
    """The devices that the program runs on: the first ones of :attr:`topology`."""
    topology: str
    """The slice of a TPU, ``v5e:2x4``; the slices, hosts and GPUs of a host, ``1x1x8``; empty for
    hosts."""
    description: str | None = None
    """The description of a GPU."""

    @property
    def platform(self) -> str:
        """The name of the platform in JAX."""
        return PLATFORMS[self.compiler]


def target_of(
    compiler: str,
    chip: Hardware,
    num_devices: int,
    topology: str | Sequence[int] | None = None,
) -> Target:
    """Return the target for ``num_devices`` devices.

    Args:
        compiler: ``"xla-tpu"``, ``"xla-gpu"`` or ``"xla-cpu"``; the last compiles for hosts,
            whatever ``chip`` is.
        chip: the chip.
        num_devices: the devices of the program's mesh.
        topology: of TPUs the slice, ``"4x4"``; by default the smallest that has so many devices,
            whose axes are powers of two.

    Raises:
        CompilerError: it is no compiler of XLA's, or does not compile for the chip
            (``no-compiler``).
        CalculusError: no slice of the chip has so many devices, or ``topology`` has fewer
            (``invalid-topology``).
    """
    if compiler == "xla-cpu":
        return Target(compiler, "cpu", num_devices, "")
    if compiler == "xla-tpu" and chip.name in TPUS:
        sizes = _slice(chip, num_devices, topology)
        name = f"{TPUS[chip.name]}:{'x'.join(map(str, sizes))}"
        return Target(compiler, chip.name, num_devices, name)
    if compiler == "xla-gpu" and chip.name in GPUS:
        hosts = math.ceil(num_devices / chip.node_size)
        name = f"1x{hosts}x{min(num_devices, chip.node_size)}"
        return Target(compiler, chip.name, num_devices, name, GPUS[chip.name].description)
    raise _no_compiler(compiler, chip)


def _no_compiler(compiler: str, chip: Hardware) -> CompilerError:
    if compiler not in EXTRAS:
        message = f"{compiler} is no compiler of XLA's"
        hint = f"take {', '.join(EXTRAS)}"
    else:
        message = f"{compiler} does not compile for {chip.name} where there is none"
        known = TPUS if compiler == "xla-tpu" else GPUS
        hint = f"it does for {', '.join(known)}; xla-cpu compiles for hosts, on any chip"
    return CompilerError(Diagnostic("no-compiler", message, hint))


def _slice(
    chip: Hardware, num_devices: int, topology: str | Sequence[int] | None
) -> tuple[int, ...]:
    """The sizes of the axes of a slice with ``num_devices`` chips or more."""
    rank = len(chip.pod)
    if topology is not None:
        sizes = parse_shape(topology)
        if len(sizes) != rank or math.prod(sizes) < num_devices:
            raise _invalid(
                f"a slice of {chip.name} has {rank} axes and, for this program, at least "
                f"{num_devices} chips"
            )
        return sizes
    found = [*_HOST, 1, 1][:rank]
    while math.prod(found) < num_devices:
        # The smallest axis, of equal ones the last.
        at = min(range(rank), key=lambda axis: (found[axis], -axis))
        found[at] *= 2
    if any(size > most for size, most in zip(sorted(found), sorted(chip.pod), strict=True)):
        raise _invalid(
            f"no slice of {chip.name} whose axes are powers of two has {num_devices} chips"
        )
    return tuple(found)


def _invalid(message: str) -> CalculusError:
    hint = "give --topology, or a mesh of fewer devices"
    return CalculusError(Diagnostic("invalid-topology", message, hint))
