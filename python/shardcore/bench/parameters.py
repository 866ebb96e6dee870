"""Shapes of a model's parameters, with a name for each dim.

The name of a dim decides the mesh axes that shard it, as in MaxText's ``logical_axis_rules``;
:mod:`shardcore.bench.training` has the rules.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from shardcore.bench.models import Layers, Model

EXPERT = ("expert_gate", "expert_up", "expert_down")
"""Names of the parameters that each expert has."""

PRODUCTS = ("query", "key", "value", "out", "gate", "up", "down", *EXPERT)
"""Names of the weights whose products use the run's type; other products are in bfloat16."""


@dataclass(frozen=True)
class Parameter:
    """A parameter; those of all layers of a kind are stacked."""

    shape: tuple[int, ...]
    dims: tuple[str, ...]
    """The name of each dim: ``layers``, ``embed``, ``heads``, ``inner``, ``vocab``, ``expert``,
    ``expert_inner``, ``norm`` or ``whole``."""
    kind: int | None = None
    """The index of its layers in ``Model.kinds``; ``None`` outside of layers."""


def shapes(model: Model) -> dict[str, Parameter]:
    """Return the parameters of ``model`` by name; names for layers of kind ``2`` end in ``.2``,
    those for kind ``0`` have no suffix."""
    found = {"embedding": Parameter((model.vocab, model.width), ("vocab", "embed"))}
    if not model.tied:
        found["logits"] = Parameter((model.width, model.vocab), ("embed", "vocab"))
    if model.positions:
        found["positions"] = Parameter((model.positions, model.width), ("whole", "embed"))
    found["norm"] = Parameter((model.width,), ("norm",))
    for place, kind in enumerate(model.kinds):
        for name, sizes in _layer(model, kind):
            shape = (kind.depth, *(size for size, _ in sizes))
            dims = ("layers", *(dim for _, dim in sizes))
            found[named(name, place)] = Parameter(shape, dims, place)
    return found


def named(name: str, kind: int) -> str:
    """The name of the parameter ``name`` for layers of kind ``kind``."""
    return f"{name}.{kind}" if kind else name


def is_expert(name: str) -> bool:
    """Whether ``name`` is a parameter of each expert."""
    return name.split(".")[0] in EXPERT


Sizes = list[tuple[int, str]]


def _layer(model: Model, kind: Layers) -> Iterator[tuple[str, Sizes]]:
    yield from _attention(model, kind)
    if kind.experts is None:
        yield from _network(model, kind.inner)
    else:
        yield from _experts(model, kind)
    for norm in ("norm_attention", "norm_mlp", "norm_after_attention", "norm_after_mlp")[
        : model.norms
    ]:
        yield norm, [(model.width, "norm")]


def _attention(model: Model, kind: Layers) -> Iterator[tuple[str, Sizes]]:
    width, heads = (model.width, "embed"), (kind.heads, "heads")
    keys = (kind.kv_heads, "heads")
    if kind.latent is not None:
        latent = kind.latent
        short, own = (latent.query, "whole"), (latent.keys, "whole")
        plain = kind.head - latent.rotated
        if latent.query:
            yield "query_down", [width, short]
            yield "query_norm", [short]
        yield "query", [short if latent.query else width, heads, (kind.head, "whole")]
        yield "latent", [width, (latent.keys + latent.rotated, "whole")]
        yield "latent_norm", [own]
        yield "key", [own, heads, (plain, "whole")]
        yield "value", [own, heads, (latent.value, "whole")]
        yield "out", [heads, (latent.value, "whole"), width]
        return
    head = (kind.head, "whole")
    yield "query", [width, heads, head]
    yield "key", [width, keys, head]
    if not kind.shares_keys:
        yield "value", [width, keys, head]
    yield "out", [heads, head, width]
    if model.biased:
        yield "query_bias", [heads, head]
        yield "key_bias", [keys, head]
        yield "value_bias", [keys, head]
        yield "out_bias", [(model.width, "norm")]


def _network(model: Model, inner: int) -> Iterator[tuple[str, Sizes]]:
    width, hidden = (model.width, "embed"), (inner, "inner")
    if model.gated:
        yield "gate", [width, hidden]
    yield "up", [width, hidden]
    yield "down", [hidden, width]
    if model.biased:
        yield "up_bias", [hidden]
        yield "down_bias", [(model.width, "norm")]


def _experts(model: Model, kind: Layers) -> Iterator[tuple[str, Sizes]]:
    experts = kind.experts
    assert experts is not None
    number, width = (experts.count, "expert"), (model.width, "embed")
    hidden = (experts.inner, "expert_inner")
    yield "router", [(model.width, "whole"), (experts.count, "whole")]
    yield "expert_gate", [number, width, hidden]
    yield "expert_up", [number, width, hidden]
    yield "expert_down", [number, hidden, width]
    if experts.shared:
        yield from _network(model, experts.shared)
