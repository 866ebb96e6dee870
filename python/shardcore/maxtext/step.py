"""The training step of a MaxText configuration, as :mod:`shardcore.bench` lowers it, and its
cost."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shardcore.bench.leaderboard import CHIPS_FILE, check_jax
from shardcore.bounded import shown
from shardcore.calculus.hardware import hardware as chip_named
from shardcore.maxtext import facts
from shardcore.maxtext.config import Config
from shardcore.maxtext.mesh import Chips, chips_of, sizes_of
from shardcore.maxtext.models import accounted, model_of

if TYPE_CHECKING:
    from shardcore.bench.kernels import Blocks
    from shardcore.bench.training import Remat, Training
    from shardcore.costs import Cost

_QKV = ("query", "key", "value")
_SAVED = {
    "save_qkv_proj": _QKV,
    "save_out_proj": ("out",),
    "save_dot_except_mlp": (*_QKV, "out"),
    "save_dot_with_context_except_mlp": (*_QKV, "context", "out"),
    "save_dot_except_mlpwi": (*_QKV, "out", "down"),
}
_OFFLOADED = {
    "qkv_proj_offloaded": _QKV,
    "minimal_offloaded": (*_QKV, "out", "gate", "up", "down"),
}
_NAMED = {
    "decoder_layer_input": ("layer_input",),
    "out_proj": ("out",),
    "query_proj": ("query",),
    "key_proj": ("key",),
    "value_proj": ("value",),
    "qkv_proj": _QKV,
    "context": ("context",),
    "mlpwi": ("up",),
    "mlpwi_0": ("gate",),
    "mlpwi_1": ("up",),
    "mlpwo": ("down",),
}
"""For each MaxText key that says where an intermediate is kept: its name in a layer."""

_POLICIES = ("full", "none", "minimal", "minimal_flash", "minimal_with_context", "custom")
_NARROW = ("fp8", "fp8_full", "fp8_gpu", "nanoo_fp8", "te_fp8_delayedscaling")
"""The values of ``quantization`` with products in 8-bit floats; only ``fp8_full`` finds the scales
of gradients in the step."""
_WHOLE_STEP = ("int8", "int8w", "intmp", "int4", "int4w")


@dataclass(frozen=True)
class Step:
    """A configuration as a run, and what the run does not model."""

    run: Training
    chips: Chips
    unmodelled: dict[str, Any]
    """Keys that would change the step but are not modelled, with their values."""
    overruled: tuple[str, ...]
    """Keys of files that the model's values override."""

    def record(self) -> dict[str, Any]:
        """Return it as plain data."""
        run, model = self.run, self.run.model
        return {
            "model": model.name,
            "decoder_block": model.family,
            "parameters": model.parameters,
            "layers": model.depth,
            "mesh": dict(run.sizes),
            "hardware": self.chips.hardware,
            "chips": self.chips.count,
            "slices": self.chips.slices,
            "topology": self.chips.topology,
            "batch": run.batch,
            "parts": run.microbatches,
            "sequence": run.time,
            "dtype": run.dtype,
            "scanned": run.scan,
            "kept": None if run.remat is None else list(run.remat.saved),
            "offloaded": [] if run.remat is None else list(run.remat.offloaded),
            "products_kept": run.remat is None or run.remat.products,
            "not_modelled": {key: shown(value) for key, value in self.unmodelled.items()},
            "overruled": list(self.overruled),
        }

    def tokens_per_second(self, cost: Cost) -> float:
        """Return the tokens per second and chip that follow from ``cost``."""
        return self.run.batch * self.run.time / cost.step_seconds / self.chips.count

    def cost(self, hardware_file: str | Path | None = None) -> Cost:
        """Return the cost of the step.

        Args:
            hardware_file: a file with further chips; by default that of the benchmark's chips.

        Raises:
            LoweringError: jax is not installed (``lowering``).
        """
        check_jax()
        from shardcore.bench.kernels import with_attention
        from shardcore.bench.step import lower

        chips = self.chips
        chip = chip_named(chips.hardware, hardware_file or CHIPS_FILE)
        known = with_attention(chip, self.run) if self.run.platform == "tpu" else chip
        slices = chips.slices if chip.is_torus else None
        return lower(self.run).propagate().cost(known, topology=chips.topology, slices=slices)


def step_of(
    config: Config,
    *,
    hardware: str | None = None,
    devices: int | None = None,
    topology: str | None = None,
) -> Step:
    """Return the step of ``config``.

    Args:
        config: the configuration.
        hardware: the chip; by default that of ``compile_topology``.
        devices: the number of chips in all slices; by default that of ``compile_topology``.
        topology: the torus of a slice, such as ``16x16``.

    Raises:
        LoweringError: jax is not installed (``lowering``), or the configuration is not supported
            (``maxtext-config``).
    """
    check_jax()
    from shardcore.bench.kernels import Blocks
    from shardcore.bench.training import Training

    for key, kind in facts.classes().items():
        value, default = config.values[key], facts.defaults()[key]
        if kind == "refused" and value != default:
            message = f"{key} {shown(value)} is not modelled, nor what it does to the rest"
            raise config.error(key, message, f"set {key}={str(default).lower()}")
    model, chips = model_of(config), chips_of(config, hardware, devices, topology)
    sizes = sizes_of(config, chips)
    parts = config.number("gradient_accumulation_steps")
    each = config.real("per_device_batch_size")
    whole = each * chips.devices
    if not whole.is_integer() or whole < 1:
        raise config.error(
            "per_device_batch_size",
            f"{each:g} sequences on {chips.devices} devices are {whole:g}, not a whole number",
        )
    shards = math.prod(sizes.get(axis, 1) for axis in ("data", "fsdp", "expert"))
    if int(whole) % shards:
        raise config.error(
            "per_device_batch_size",
            f"a batch of {int(whole)} is not divided over {shards} devices",
        )
    is_tpu = chips.hardware.startswith("tpu")
    quantization = config.text("quantization", ("", *_NARROW, *_WHOLE_STEP))
    narrow = "fp8_full" if quantization == "fp8_full" else "fp8"
    run = Training(
        model,
        sizes,
        int(whole) * parts,
        config.number("max_target_length"),
        _remat(config),
        "tpu" if is_tpu else "cuda",
        narrow if quantization in _NARROW else "bf16",
        scan=config.flag("scan_layers"),
        iota=config.flag("use_iota_embed"),
        sorts_gradients=config.flag("use_custom_sort_vjp"),
        flash=config.text("attention") != "dot_product",
        blocks=_blocks(config, chips) if is_tpu else Blocks(),
        local_blocks=_blocks(config, chips, "local_") if is_tpu else Blocks(),
        microbatches=parts,
    )
    _check_shapes(config, run)
    return Step(run, chips, _unmodelled(config, run, chips), config.overruled)


def _blocks(config: Config, chips: Chips, prefix: str = "") -> Blocks:
    """The blocks of the attention kernel, by the keys that begin with ``prefix``; those that are
    ``None`` have the value of the key without it."""
    from shardcore.bench.kernels import Blocks

    def key(name: str) -> str:
        return name if config.values[prefix + name] in (None, "None") else prefix + name

    is_fused = config.flag(key("sa_use_fused_bwd_kernel"))
    tile = chip_named(chips.hardware, CHIPS_FILE).achieved.tile[2]
    return Blocks.of(lambda name: config.number(key(f"sa_block_{name}")), is_fused, tile)


def _remat(config: Config) -> Remat | None:
    from shardcore.bench.training import Remat

    policy = config.text("remat_policy", (*_POLICIES, *_SAVED, *_OFFLOADED))
    if policy in ("full", "none"):
        return Remat() if policy == "full" else None
    if policy == "minimal":
        return Remat(products=True)
    if policy.startswith("minimal_") and policy not in _OFFLOADED:
        return Remat(("context",), products=True)
    if policy in _SAVED:
        return Remat(_SAVED[policy])
    if policy in _OFFLOADED:
        return Remat((), _OFFLOADED[policy])
    kept: dict[str, list[str]] = {"device": [], "offload": [], "remat": []}
    for key, names in _NAMED.items():
        place = config.text(key, kept)
        kept[place] += [name for name in names if name not in kept[place]]
    # The input of a layer is always kept.
    saved = tuple(name for name in kept["device"] if name != "layer_input")
    return Remat(saved, tuple(kept["offload"]))


def _check_shapes(config: Config, run: Training) -> None:
    """Check that each dim divides evenly over the devices that it is sharded on."""
    from shardcore.bench.parameters import shapes
    from shardcore.bench.placement import entries

    def check(what: str, size: int, axes: tuple[str, ...], key: str) -> None:
        count = math.prod(run.sizes.get(axis, 1) for axis in axes)
        if size % count:
            text = " and ".join(axes)
            message = f"{what} {size} is not divided over {count} devices of {text}"
            hint = f"make {key} a multiple of {count}, or set ici_{axes[0]}_parallelism"
            raise config.error(key, message, hint)

    specs = run.specs()
    for name, parameter in shapes(run.model).items():
        for size, dim, axes in zip(
            parameter.shape, parameter.dims, entries(specs[name]), strict=False
        ):
            own = "base_num_kv_heads" if name[:3] in ("key", "val") else "base_num_query_heads"
            key = own if dim == "heads" else _SIZED.get(dim, "base_emb_dim")
            check(f"{name}: {dim} of", size, axes, key)
    check("max_target_length of", run.time, run.present("context"), "max_target_length")


_SIZED = {
    "inner": "base_mlp_dim",
    "expert_inner": "base_moe_mlp_dim",
    "vocab": "vocab_size",
    "expert": "num_experts",
}
"""For each dim the key with its size; other dims have ``base_emb_dim``."""


def _unmodelled(config: Config, run: Training, chips: Chips) -> dict[str, Any]:
    """Keys that would change the step but are not modelled, with their values."""
    same = accounted(run.model)
    found = {
        key: config.values[key]
        for key, kind in facts.classes().items()
        if kind == "unmodelled"
        and config.values[key] not in facts.as_modelled(key)
        and not any(key == one and config.values[key] == value for one, value in same)
    }
    chunk = config.values["chunk_attn_window_size"]
    if isinstance(chunk, int) and chunk >= run.time:
        found.pop("chunk_attn_window_size", None)
    values = config.values
    partly = {
        "quantization": values["quantization"] in _WHOLE_STEP,
        "ici_fsdp_transpose_parallelism": values["ici_fsdp_transpose_parallelism"] not in (1, -1),
        "ici_expert_parallelism": "expert" in run.sizes,
        **{
            f"dcn_{axis}_parallelism": values[f"dcn_{axis}_parallelism"] not in (1, -1)
            and any(run.sizes.get(one, 1) > 1 for one in _before(axis))
            and chips.slices > 1
            for axis in ("fsdp", "expert", "context", "tensor")
        },
    }
    return {**found, **{key: values[key] for key, is_so in partly.items() if is_so}}


def _before(axis: str) -> tuple[str, ...]:
    axes = ("data", "fsdp", "expert", "context", "tensor")
    return axes[: axes.index(axis)]
