"""Runs whose speed was published, with the programs that were run.

Sources: github.com/AI-Hypercomputer/maxtext at 0ed7bd5, ``MaxText/configs/{v5p,v5e}/README.md`` and
``MaxText/configs/a3/llama_2_7b/README.md``, with the scripts beside them; in their names v5p-128 is
64 chips. github.com/AI-Hypercomputer/tpu-recipes, ``training/trillium``, for v6e.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from shardcore.bench.kernels import Blocks
from shardcore.bench.models import MODELS, Layers, Model
from shardcore.bench.training import Remat, Training
from shardcore.calculus.hardware import hardware

REMAT = {
    "full": Remat(),
    "minimal": Remat(products=True),
    "context": Remat(("context",), products=True),
    "qkv": Remat(("query", "key", "value", "out")),
}
"""What is kept: nothing, products, also what attention computes, or only these products."""


@dataclass(frozen=True)
class Run:
    """A run, and how fast it was."""

    name: str
    chip: str
    model: Model
    remat: str
    sizes: dict[str, int]
    """Of the mesh: ``data`` is the number of slices or nodes."""
    batch: float
    """Sequences on each chip."""
    tflops: float
    """Published model TFLOP/s a chip."""
    time: int = 2048
    """Tokens of a sequence."""
    scan: bool = True
    """Whether layers are scanned."""
    held_out: bool = False
    """Whether it was left out when the chip's figures were calibrated."""

    @property
    def chips(self) -> int:
        return self.sizes.get("data", 1) * self.sizes["fsdp"] * self.sizes.get("tensor", 1)

    @property
    def platform(self) -> str:
        return "tpu" if self.chip.startswith("tpu") else "cuda"

    @property
    def slices(self) -> int | None:
        return self.sizes.get("data", 1) if self.platform == "tpu" else None

    @property
    def step_seconds(self) -> float:
        """Seconds of the step that was published."""
        tokens = round(self.batch * self.time)
        return self.model.step_flops(tokens, self.time, causal=False) / (self.tflops * 1e12)

    @property
    def training(self) -> Training:
        """The configuration that the program is made of."""
        return Training(
            self.model,
            {name: self.sizes.get(name, 1) for name in ("data", "fsdp", "tensor")},
            round(self.batch * self.chips),
            self.time,
            REMAT[self.remat],
            self.platform,
            scan=self.scan,
            blocks=Blocks(tile=hardware(self.chip).achieved.tile[2]),
        )


def scaled(scale: int) -> Model:
    """The decoder of ``global_parameter_scale=scale``, a power of two."""
    base, rest = divmod(scale.bit_length() - 1, 3)
    wide = 2 ** (base + (rest > 0))
    heads = 16 * wide
    layers = Layers(16 * 2**base, heads, heads, 128, 7168 * wide)
    return Model(f"default-{scale}", "llama", 2048 * 2 ** (base + (rest > 1)), 32_000, (layers,))


def _v5p() -> Iterator[Run]:
    rows = [
        (32, 64, 4, 6, "minimal", {1: 328, 2: 319}),
        (64, 64, 4, 3, "minimal", {1: 323, 2: 309}),
        (128, 128, 8, 1, "minimal", {1: 315, 2: 305}),
        (128, 256, 8, 1, "minimal", {1: 316, 2: 274}),
        (256, 512, 8, 1, "minimal", {1: 308, 2: 289}),
        (512, 512, 8, 2, "full", {1: 294, 2: 282}),
        (1024, 1024, 16, 2, "full", {1: 254, 2: 237}),
        (1024, 2048, 16, 2, "full", {1: 297, 2: 279}),
    ]
    for scale, chips, tensor, batch, remat, found in rows:
        for slices, tflops in found.items():
            sizes = {"data": slices, "fsdp": chips // tensor, "tensor": tensor}
            name = f"{slices}xv5p-{2 * chips} {scale}B"
            yield Run(name, "tpu-v5p", scaled(scale), remat, sizes, batch, tflops)


def _v5e() -> Iterator[Run]:
    rows = {
        16: (6, {1: 120, 2: 117, 4: 117, 8: 115, 16: 111, 32: 108}),
        32: (4, {1: 132, 2: 128, 4: 126, 8: 125, 16: 123, 32: 119}),
        64: (2, {1: 118, 2: 112, 4: 110, 8: 108, 16: 105, 32: 99}),
        128: (1, {1: 110, 2: 110, 4: 108, 8: 104, 16: 100, 32: 91}),
    }
    for scale, (batch, found) in rows.items():
        for slices, tflops in found.items():
            tensor = 16 if scale == 128 else 1
            sizes = {"data": slices, "fsdp": 256 // tensor, "tensor": tensor}
            remat = "qkv" if scale == 128 else "full"
            name = f"{slices}xv5e-256 {scale}B"
            yield Run(name, "tpu-v5e", scaled(scale), remat, sizes, batch, tflops)


def _h100() -> Iterator[Run]:
    for nodes, tflops in {1: 492, 2: 422, 4: 407, 8: 409, 16: 375}.items():
        sizes = {"data": nodes, "fsdp": 8}
        name, model = f"{nodes}xA3 Llama2-7B", MODELS["llama2-7b"]
        yield Run(name, "h100", model, "context", sizes, 4, tflops, time=4096, scan=False)


def runs() -> list[Run]:
    """All runs; of each chip every third is held out."""
    groups = (_v5p(), _v5e(), _h100())
    return [
        replace(run, held_out=place % 3 == 2) for group in groups for place, run in enumerate(group)
    ]
