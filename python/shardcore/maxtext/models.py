"""The model of a MaxText configuration: its kinds of layers, by decoder block."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from shardcore.bench.models import Experts, Latent, Layers, Model
from shardcore.maxtext.config import Config

_MOST_LAYERS = 1024

Kinds = tuple[Layers, ...]


def model_of(config: Config) -> Model:
    """Return the model of ``config``.

    Raises:
        LoweringError: its decoder block is not modelled, or a size is not valid
            (``maxtext-config``).
    """
    block = config.text("decoder_block", BLOCKS)
    depth = config.number("base_num_decoder_layers")
    if depth > _MOST_LAYERS:
        raise config.error("base_num_decoder_layers", f"{depth} layers, of at most {_MOST_LAYERS}")
    activations = config.values["mlp_activations"]
    if not isinstance(activations, list) or len(activations) not in (1, 2):
        raise config.error("mlp_activations", "mlp_activations is not a list of one or two names")
    plain = Layers(
        depth,
        config.number("base_num_query_heads"),
        config.number("base_num_kv_heads"),
        config.number("head_dim"),
        config.number("base_mlp_dim"),
    )
    if plain.heads % plain.kv_heads:
        raise config.error(
            "base_num_kv_heads",
            f"{plain.heads} heads are not divided over {plain.kv_heads} heads of keys",
            "give a divisor of base_num_query_heads",
        )
    kinds = BLOCKS[block](config, plain)
    positions = config.number("trainable_position_size", -1)
    time = config.number("max_target_length")
    if 0 < positions < time:
        message = f"{time} tokens, and {positions} positions that are learned"
        raise config.error("max_target_length", message, "set trainable_position_size")
    after = config.flag("use_post_attn_norm") and config.flag("use_post_ffw_norm")
    return Model(
        config.text("model_name"),
        block,
        config.number("base_emb_dim"),
        config.number("vocab_size"),
        tuple(kind for kind in kinds if kind.depth),
        gated=len(activations) == 2,
        tied=config.flag("logits_via_embedding"),
        positions=max(positions, 0),
        biased=block in ("gpt3", "gpt_oss"),
        norms=4 if after else 2,
    )


def accounted(model: Model) -> set[tuple[str, object]]:
    """Return unmodelled keys with values that the layers of ``model`` nevertheless have."""
    found: set[tuple[str, object]] = set()
    if model.biased:
        found |= {("attention_bias", True), ("mlp_bias", True)}
    if any(kind.latent for kind in model.kinds):
        found.add(("attention_type", "mla"))
    if any(window for kind in model.kinds for window in kind.windows):
        found.add(("attention_type", "local_sliding"))
    return found


def _dense(config: Config, plain: Layers) -> Kinds:
    if config.number("num_experts") > 1:
        block = config.text("decoder_block")
        known = "mixtral, qwen3_moe, deepseek, llama4, gemma4 and gpt_oss have them"
        raise config.error("num_experts", f"experts of {block} are not modelled", known)
    return (plain,)


def _mixture(config: Config, shared: int = 0) -> Experts:
    inner = config.number("base_moe_mlp_dim", -1)
    if inner < 1:
        inner = config.number("base_mlp_dim")
    count, chosen = config.number("num_experts"), config.number("num_experts_per_tok")
    if chosen > count:
        raise config.error("num_experts_per_tok", f"{chosen} experts a token, of {count}")
    if not shared:
        shared = inner * config.number("shared_experts", 0)
    return Experts(count, inner, chosen, shared)


def _mixed(config: Config, plain: Layers) -> Kinds:
    return (replace(plain, inner=0, experts=_mixture(config)),)


def _windowed(pattern: Callable[[int], bool], scale: int = 1) -> Callable[[Config, Layers], Kinds]:
    """Dense layers; each layer that MaxText counts is ``scale`` layers; ``pattern`` says which of
    them
    attend to all keys."""

    def kinds(config: Config, plain: Layers) -> Kinds:
        window = config.number("sliding_window_size", 0) or None
        depth = plain.depth * scale
        windows = tuple(None if pattern(place) else window for place in range(depth))
        return _dense(config, replace(plain, depth=depth, windows=windows))

    return kinds


def _gpt_oss(config: Config, plain: Layers) -> Kinds:
    window = config.number("sliding_window_size", 0) or None
    return (replace(plain, inner=0, experts=_mixture(config), windows=(window, None)),)


def _gemma4(config: Config, plain: Layers) -> Kinds:
    """Of six layers, five attend to a window; the sixth has other heads."""
    window = config.number("sliding_window_size", 0) or None
    experts = None
    if config.number("num_experts") > 1:
        experts = _mixture(config, plain.inner if config.number("shared_experts", 0) else 0)
    whole = plain.depth // 6
    local = replace(plain, depth=plain.depth - whole, experts=experts, windows=(window,))
    last = replace(
        local,
        depth=whole,
        kv_heads=config.number("global_num_kv_heads", 0) or plain.kv_heads,
        head=config.number("global_head_dim", 0) or plain.head,
        windows=(None,),
        shares_keys=config.flag("share_kv_projections"),
    )
    return (local, last)


def _deepseek(config: Config, plain: Layers) -> Kinds:
    latent = Latent(
        config.number("q_lora_rank", 0),
        config.number("kv_lora_rank"),
        config.number("qk_rope_head_dim"),
        config.number("v_head_dim"),
    )
    head = config.number("qk_nope_head_dim") + latent.rotated
    first = config.number("first_num_dense_layers", 0)
    if first > plain.depth:
        raise config.error("first_num_dense_layers", f"{first} dense layers, of {plain.depth}")
    dense = replace(plain, depth=first, head=head, latent=latent)
    experts = _mixture(config)
    return (dense, replace(dense, depth=plain.depth - first, inner=0, experts=experts))


def _llama4(config: Config, plain: Layers) -> Kinds:
    step = config.number("interleave_moe_layer_step")
    mixed = plain.depth // step
    return (
        replace(plain, depth=plain.depth - mixed),
        replace(plain, depth=mixed, inner=0, experts=_mixture(config)),
    )


BLOCKS: dict[str, Callable[[Config, Layers], Kinds]] = {
    **dict.fromkeys(("default", "llama2", "mistral", "gemma", "qwen2", "qwen3", "gpt3"), _dense),
    **dict.fromkeys(("mixtral", "qwen3_moe"), _mixed),
    # MaxText counts two layers as one; the second attends to all keys.
    "gemma2": _windowed(lambda place: place % 2 == 1, scale=2),
    "gemma3": _windowed(lambda place: place % 6 == 5),
    "gemma4": _gemma4,
    "gpt_oss": _gpt_oss,
    "deepseek": _deepseek,
    "llama4": _llama4,
}
"""The function that makes the kinds of layers, by decoder block."""
