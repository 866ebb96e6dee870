"""Compiles the text of a program by XLA's own compilers, without the chips that it is for.

Nothing runs: figures are those that the compiler decided. On GPUs kernels are not timed to choose
among them, as that needs the chip.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from shardcore import isolated
from shardcore.errors import CompilerError, Diagnostic
from shardcore.explain import hlo_text
from shardcore.xla.buffers import heap_bytes
from shardcore.xla.compile_runner import NOT_INSTALLED
from shardcore.xla.hlo_figures import Sent, num_kernels, sent_by_kind
from shardcore.xla.targets import EXTRAS, Target

__all__ = ["CompiledProgram", "compile_for"]

SECONDS = 600.0
"""How long a compiler may take, unless told otherwise; that for TPUs takes up to minutes."""

RUNNER = Path(__file__).with_name("compile_runner.py")
"""The program that compiles."""

_MEMORY = 1 << 36
"""A limit of memory where the size of the machine's is unknown."""

_ENVIRONMENT = {
    # Without these, libtpu asks a cloud's metadata server where it is, and for its lock.
    "TPU_WORKER_HOSTNAMES": "localhost",
    "TPU_ACCELERATOR_TYPE": "v5litepod-8",
    "TPU_SKIP_MDS_QUERY": "1",
    "ALLOW_MULTIPLE_LIBTPU_LOAD": "true",
}
_DROPPED = ("XLA_FLAGS", "LIBTPU_INIT_ARGS", "JAX_PLATFORMS")
"""Variables that would change what is compiled, or where."""


@dataclass(frozen=True)
class CompiledProgram:
    """What XLA says of a program that it compiled. All figures are for one device, in bytes."""

    target: Target
    versions: Mapping[str, str]
    """The packages that the compiler is from, with their versions."""
    argument_bytes: int
    output_bytes: int
    alias_bytes: int
    """The part of the outputs that reuses the memory of donated arguments."""
    temp_bytes: int
    """What is allocated beside arguments and outputs. On TPUs ``memory_analysis()`` counts the
    holes between buffers twice there, or the temporaries not at all; see :attr:`heap_bytes`."""
    heap_bytes: int | None
    """What buffer assignment reserves for temporaries in HBM, on TPUs; else ``None``."""
    host_bytes: int
    """Arguments, outputs and temporaries in host memory."""
    flops: int
    """As XLA's cost analysis counts them, loops once."""
    bytes_accessed: int
    """The bytes that kernels read and write, as that analysis counts them, loops once."""
    num_kernels: int
    """Kernels, those in loops once."""
    collectives: Mapping[str, Sent]
    """What is sent by kind, the kinds of :attr:`shardcore.costs.CollectiveCost.kind`."""
    hlo: str = field(repr=False)
    """The compiled HLO as text."""

    @property
    def port_bytes(self) -> int:
        """Arguments and outputs."""
        return self.argument_bytes + self.output_bytes - self.alias_bytes

    @property
    def peak_bytes(self) -> int:
        """Arguments, outputs and temporaries, as ``memory_analysis()`` has them."""
        return self.port_bytes + self.temp_bytes

    @property
    def reserved_bytes(self) -> int | None:
        """Arguments, outputs and :attr:`heap_bytes`."""
        return None if self.heap_bytes is None else self.port_bytes + self.heap_bytes

    @property
    def version(self) -> str:
        """The versions of its compiler, as text."""
        return ", ".join(f"{name} {version}" for name, version in self.versions.items())


def compile_for(
    target: Target,
    text: str,
    *,
    seconds: float = SECONDS,
    options: Mapping[str, Any] | None = None,
) -> CompiledProgram:
    """Compile a program, which XLA partitions, in a process of its own.

    Args:
        target: what to compile for.
        text: the program as StableHLO text, with its shardings.
        seconds: how long the compiler may take; it may use as much memory as the machine has.
        options: options of XLA, ``{"xla_dump_to": "folder"}``.

    Raises:
        CompilerError: the compiler is not installed (``compiler-missing``), or refuses the program,
            crashes, or takes too much time or memory (``not-compiled``).
    """
    asked = {
        "platform": target.platform,
        "topology": target.topology,
        "description": target.description,
        "num_devices": target.num_devices,
        "options": dict(options or {}),
    }
    data = f"{json.dumps(asked)}\n{text}".encode()
    kept = {name: value for name, value in os.environ.items() if name not in _DROPPED}
    with tempfile.TemporaryDirectory(prefix="shardcore-") as name:
        folder = Path(name)
        try:
            done = isolated.run(
                RUNNER,
                (name,),
                data,
                seconds=seconds,
                memory=_machine_bytes(),
                environment={**kept, **_ENVIRONMENT},
            )
        except subprocess.TimeoutExpired:
            hint = "give it more, --seconds, or compile fewer layers"
            raise _not_compiled(target, f"takes longer than {seconds:g} s", hint) from None
        if done.returncode == NOT_INSTALLED:
            raise _missing(target, done.stdout.decode().strip())
        if not (folder / "report.json").exists():
            raise _not_compiled(target, f"crashes: {_ending(done)}", _CRASHED)
        report = json.loads((folder / "report.json").read_text(encoding="utf-8"))
        if "error" in report:
            reason = _first_line(report["error"])
            raise _not_compiled(target, f"refuses the program: {reason}", _REFUSED)
        return _read(target, report, folder)


_CAUSE = re.compile(r"Check failed: .*|STACK OVERFLOW|std::bad_alloc|[Oo]ut of memory")
"""What a compiler prints before it ends its process."""
_LONGEST = 500
"""The characters of a compiler's message that are shown."""
_CRASHED = "no program should crash it: try another chip, or report it at github.com/openxla/xla"
_REFUSED = "XLA gets the program as it was given, which shardcore opt FILE prints"


def _read(target: Target, report: Mapping[str, Any], folder: Path) -> CompiledProgram:
    """The figures that the compiling process wrote."""
    hlo = (folder / "module.txt").read_text(encoding="utf-8")
    [module] = hlo_text.read(hlo)
    executable = folder / "executable"
    size = report["memory"].__getitem__
    parts = ("argument", "output", "temp")
    host = sum(size(f"host_{part}_size_in_bytes") for part in parts)
    return CompiledProgram(
        target=target,
        versions=report["versions"],
        argument_bytes=size("argument_size_in_bytes"),
        output_bytes=size("output_size_in_bytes"),
        alias_bytes=size("alias_size_in_bytes"),
        temp_bytes=size("temp_size_in_bytes"),
        heap_bytes=heap_bytes(executable.read_bytes(), module.name)
        if executable.exists()
        else None,
        host_bytes=host - size("host_alias_size_in_bytes"),
        flops=round(report["flops"]),
        bytes_accessed=round(report["bytes_accessed"]),
        num_kernels=num_kernels(module),
        collectives=sent_by_kind(module),
        hlo=hlo,
    )


def _machine_bytes() -> int:
    """The memory of this machine."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return _MEMORY


def _missing(target: Target, packages: str) -> CompilerError:
    message = f"{target.compiler} needs {packages}, and it is not installed"
    hint = f'pip install "shardcore[{EXTRAS[target.compiler]}]"; Python 3.11 or newer'
    return CompilerError(Diagnostic("compiler-missing", message, hint))


def _not_compiled(target: Target, what: str, hint: str) -> CompilerError:
    return CompilerError(Diagnostic("not-compiled", f"{target.compiler} {what}", hint))


def _first_line(error: str) -> str:
    return error.strip().split("\n")[0][:_LONGEST]


def _ending(done: subprocess.CompletedProcess[bytes]) -> str:
    """How the process ended, with the check that failed, if one did."""
    printed = done.stderr.decode(errors="replace")
    if done.returncode >= 0:
        return (printed.strip().split("\n")[-1] or f"exit code {done.returncode}")[:_LONGEST]
    code = -done.returncode
    ending = signal.Signals(code).name if code in [*signal.Signals] else f"signal {code}"
    found = _CAUSE.search(printed)
    return f"{ending}, {found[0][:_LONGEST]}" if found else ending
