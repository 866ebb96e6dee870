"""Sizes of published models, as kinds of repeated layers.

Sources: the papers and model cards of each family; for Gemma 4, Llama 4 and GPT-OSS
``src/maxtext/configs/models`` of github.com/AI-Hypercomputer/maxtext at e591f30cb.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType


@dataclass(frozen=True)
class Experts:
    """A mixture of experts in place of a feed-forward network."""

    count: int
    inner: int
    """Hidden units of an expert."""
    chosen: int
    """The number of experts per token."""
    shared: int = 0
    """Hidden units of the shared expert, which all tokens pass through."""


@dataclass(frozen=True)
class Latent:
    """Sizes of latent attention, in which keys and values are projected from a short vector."""

    query: int
    """Width of the vector that queries are projected from; 0 if that is the layer's input."""
    keys: int
    """Width of the vector that keys and values are projected from."""
    rotated: int
    """The width of the rotated part of a head; for keys it is common to all heads."""
    value: int
    """Width of a head's values."""


@dataclass(frozen=True)
class Layers:
    """Equal layers, which run in a scan."""

    depth: int
    heads: int
    kv_heads: int
    head: int
    """Width of a head of queries and keys."""
    inner: int = 0
    """Hidden units of the feed-forward network; unused with experts."""
    experts: Experts | None = None
    latent: Latent | None = None
    windows: tuple[int | None, ...] = (None,)
    """For consecutive layers, the number of keys that a query attends to; ``None``: all before it.
    Every layer's kernel gets the mean work."""
    shares_keys: bool = False
    """Whether values equal keys, computed by one product."""


@dataclass(frozen=True)
class Model:
    """A decoder. Kinds of layers that alternate in the model come one after the other here."""

    name: str
    family: str
    width: int
    vocab: int
    kinds: tuple[Layers, ...]
    gated: bool = True
    """Whether the feed-forward network multiplies two products (a gated unit)."""
    tied: bool = False
    """Whether the logits use the embedding table."""
    positions: int = 0
    """The number of learned positions; without them, queries and keys are rotated."""
    biased: bool = False
    """Whether products have biases."""
    norms: int = 2
    """The number of norms in a layer."""

    @property
    def depth(self) -> int:
        """The number of layers."""
        return sum(each.depth for each in self.kinds)

    @property
    def parameters(self) -> int:
        """The number of parameters."""
        from shardcore.bench.parameters import shapes

        return sum(math.prod(each.shape) for each in shapes(self).values())

    def step_flops(self, tokens: int, time: int, *, causal: bool) -> float:
        """Model FLOPs of a step as publications count them: six per token and parameter that is
        used for it, plus attention.

        Args:
            tokens: tokens of the step.
            time: tokens of a sequence.
            causal: whether only the keys up to a query count.
        """
        from shardcore.bench.parameters import is_expert, shapes

        met = 0.0
        for name, each in shapes(self).items():
            kind = self.kinds[each.kind] if each.kind is not None else None
            share = 1.0
            if kind is not None and kind.experts and is_expert(name):
                share = kind.experts.chosen / kind.experts.count
            met += math.prod(each.shape) * share
        attention = sum(each.depth * each.heads * each.head for each in self.kinds)
        return tokens * (6 * met + (6 if causal else 12) * attention * time)


def _llama(name: str, depth: int, width: int, heads: int, kv: int, inner: int, vocab: int) -> Model:
    kind = Layers(depth, heads, kv, width // heads, inner)
    return Model(name, "llama", width, vocab, (kind,))


def _gpt(name: str, depth: int, width: int, heads: int, vocab: int) -> Model:
    kind = Layers(depth, heads, heads, width // heads, 4 * width)
    return Model(
        name, "gpt3", width, vocab, (kind,), gated=False, tied=True, positions=2048, biased=True
    )


def _mixtral(name: str, depth: int, width: int, heads: int, inner: int, vocab: int) -> Model:
    kind = Layers(depth, heads, 8, 128, experts=Experts(8, inner, 2))
    return Model(name, "mixtral", width, vocab, (kind,))


def _deepseek() -> Model:
    latent = Latent(query=1536, keys=512, rotated=64, value=128)
    dense = Layers(3, 128, 128, 192, 18432, latent=latent)
    experts = Experts(256, 2048, 8, shared=2048)
    return Model(
        "deepseek-v3",
        "deepseek",
        7168,
        129_280,
        (dense, replace(dense, depth=58, inner=0, experts=experts)),
    )


def _llama4(name: str, dense: int, experts: int) -> Model:
    layer = Layers(dense, 40, 8, 128, 16384)
    mixed = replace(
        layer, depth=48 - dense, inner=0, experts=Experts(experts, 8192, 1, shared=8192)
    )
    return Model(name, "llama4", 5120, 202_048, (layer, mixed) if dense else (mixed,))


def _gemma4(name: str, depth: int, width: int, heads: int, inner: int, kv: int) -> Model:
    experts = Experts(128, 704, 8, shared=inner) if name == "gemma4-26b" else None
    local = Layers(depth * 5 // 6, heads, kv, 256, inner, experts, windows=(1024,))
    whole = replace(
        local, depth=depth // 6, kv_heads=kv // 4, head=512, windows=(None,), shares_keys=True
    )
    return Model(name, "gemma", width, 262_144, (local, whole), tied=True, norms=4)


def _models() -> list[Model]:
    oss = Layers(36, 64, 8, 64, experts=Experts(128, 2880, 4), windows=(128, None))
    gemma = Layers(28, 16, 16, 256, 24576)
    return [
        _llama("llama2-7b", 32, 4096, 32, 32, 11008, 32_000),
        _llama("llama2-70b", 80, 8192, 64, 8, 28672, 32_000),
        _llama("llama3.1-8b", 32, 4096, 32, 8, 14336, 128_256),
        _llama("llama3.1-70b", 80, 8192, 64, 8, 28672, 128_256),
        _llama("llama3.1-405b", 126, 16384, 128, 8, 53248, 128_256),
        _mixtral("mixtral-8x7b", 32, 4096, 32, 14336, 32_000),
        _mixtral("mixtral-8x22b", 56, 6144, 48, 16384, 32_768),
        _deepseek(),
        Model("qwen3-32b", "qwen3", 5120, 151_936, (Layers(64, 64, 8, 128, 25600),), norms=2),
        Model(
            "qwen3-235b-a22b",
            "qwen3",
            4096,
            151_936,
            (Layers(94, 64, 4, 128, experts=Experts(128, 1536, 8)),),
        ),
        _gpt("gpt3-175b", 96, 12288, 96, 50_257),
        _gpt("megatron-22b", 48, 6144, 64, 51_200),
        Model("gemma-7b", "gemma", 3072, 256_000, (gemma,), tied=True),
        _gemma4("gemma4-26b", 30, 2816, 16, 2112, 8),
        _gemma4("gemma4-31b", 60, 5376, 32, 21504, 16),
        _llama4("llama4-scout", 0, 16),
        _llama4("llama4-maverick", 24, 128),
        Model("gpt-oss-120b", "gpt-oss", 2880, 201_088, (oss,), biased=True),
    ]


MODELS: Mapping[str, Model] = MappingProxyType({model.name: model for model in _models()})
"""The models by name."""
