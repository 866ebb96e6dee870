"""Programs of other families than the test models of XLA: explanations were not made with these."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P

from tests.shardy.programs import layers
from tests.shardy.programs.registry import Tree, constrain, f32, i32, lower, mesh

Family = Callable[[], jax.stages.Lowered]

FAMILIES: dict[str, Family] = {}


def family(build: Family) -> Family:
    """Registers a program by its name."""
    FAMILIES[build.__name__.replace("_", "-")] = build
    return build


def bf16(*shape: int) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(shape, jnp.bfloat16)


def _descent(loss: Callable[..., jax.Array]) -> Callable[..., Any]:
    def step(params: Tree, *batch: Any) -> tuple[Tree, jax.Array]:
        value, grads = jax.value_and_grad(loss)(params, *batch)
        return jax.tree.map(lambda p, g: p - (0.1 * g).astype(p.dtype), params, grads), value

    return step


def _rms(x: jax.Array, scale: jax.Array) -> jax.Array:
    return x * jax.lax.rsqrt(jnp.mean(jnp.square(x), -1, keepdims=True) + 1e-6) * scale


@family
def encoder_decoder() -> jax.stages.Lowered:
    """Like T5: two stacks, relative positions, attention between them, a shared embedding."""
    on, width, heads, time = mesh(data=2, model=4), 256, 8, 64

    def block(x: jax.Array, p: Tree, bias: jax.Array, memory: jax.Array | None) -> jax.Array:
        with jax.named_scope("self"):
            y = _rms(x, p["n0"])
            x = x + layers.attend(y, y, p["self"], bias)
        if memory is not None:
            with jax.named_scope("cross"):
                x = x + layers.attend(_rms(x, p["n1"]), memory, p["cross"])
        with jax.named_scope("feed"):
            y = _rms(x, p["n2"])
            return x + (jax.nn.gelu(y @ p["gate"]) * (y @ p["up"])) @ p["down"]

    def loss(params: Tree, source: jax.Array, target: jax.Array) -> jax.Array:
        causal = jnp.tril(jnp.ones((time, time), bool))
        x = params["embedding"][source]
        for p in params["encoder"]:
            x = block(x, p, jnp.ones((time, time), bool), None)
        y = params["embedding"][target]
        for p in params["decoder"]:
            y = block(y, p, causal, x)
        logits = y @ params["embedding"].T * width**-0.5
        return layers.cross_entropy(logits[:, :-1], target[:, 1:])

    attention = layers.attention_shapes(width, heads), layers.attention_specs(None, "model")
    own = {"n0": f32(width), "self": attention[0], "n2": f32(width), "gate": f32(width, 1024)}
    own |= {"up": f32(width, 1024), "down": f32(1024, width)}
    own_specs = {"n0": P(), "self": attention[1], "n2": P(), "gate": P(None, "model")}
    own_specs |= {"up": P(None, "model"), "down": P("model", None)}
    both = own | {"n1": f32(width), "cross": attention[0]}
    both_specs = own_specs | {"n1": P(), "cross": attention[1]}
    params = {"embedding": f32(4096, width), "encoder": [own] * 2, "decoder": [both] * 2}
    specs = {"embedding": P("model"), "encoder": [own_specs] * 2, "decoder": [both_specs] * 2}
    tokens = i32(16, time)
    arguments = (params, tokens, tokens)
    return lower(_descent(loss), on, arguments, (specs, P("data"), P("data")), (specs, P()), 0)


@family
def u_net() -> jax.stages.Lowered:
    """Convolutions down and up again with skips, group norms, weights sharded like the batch."""
    on = mesh(data=8)

    def conv(x: jax.Array, w: jax.Array, stride: int = 1) -> jax.Array:
        dims = ("NHWC", "HWIO", "NHWC")
        return jax.lax.conv_general_dilated(x, w, (stride,) * 2, "SAME", dimension_numbers=dims)

    def norm(x: jax.Array) -> jax.Array:
        b, h, w, c = x.shape
        y = x.reshape(b, h, w, 8, c // 8)
        y = (y - y.mean((1, 2, 4), keepdims=True)) / (y.std((1, 2, 4), keepdims=True) + 1e-5)
        return jax.nn.silu(y.reshape(x.shape))

    def loss(params: Tree, x: jax.Array, noise: jax.Array) -> jax.Array:
        kept = []
        y = conv(x + noise, params["in"])
        for w in params["down"]:
            kept.append(y)
            y = norm(conv(y, w, 2))
        for w in params["up"]:
            b, h, s, c = y.shape
            y = jax.image.resize(y, (b, 2 * h, 2 * s, c), "nearest")
            y = norm(conv(jnp.concatenate([y, kept.pop()], -1), w))
        return jnp.mean(jnp.square(conv(y, params["out"]) - noise))

    params = {"in": f32(3, 3, 8, 32), "down": [f32(3, 3, 32, 64), f32(3, 3, 64, 128)]}
    params |= {"up": [f32(3, 3, 192, 64), f32(3, 3, 96, 32)], "out": f32(3, 3, 32, 8)}
    split = P(None, None, None, "data")
    specs = {"in": split, "down": [split] * 2, "up": [split] * 2, "out": split}
    image = f32(16, 32, 32, 8)
    arguments = (params, image, image)
    return lower(_descent(loss), on, arguments, (specs, P("data"), P("data")), (specs, P()), 0)


@family
def selective_scan() -> jax.stages.Lowered:
    """Like Mamba: a state for each channel, by an associative scan over time."""
    on, width, inner, state = mesh(data=2, model=4), 256, 512, 8

    def mixer(x: jax.Array, p: Tree) -> jax.Array:
        u, gate = jnp.split(x @ p["in"], 2, axis=-1)
        u = jax.nn.silu(
            sum(
                jnp.pad(u, ((0, 0), (k, 0), (0, 0)))[:, : u.shape[1]] * p["conv"][k]
                for k in (0, 1, 2)
            )
        )
        step = jax.nn.softplus(u @ p["dt_down"] @ p["dt_up"])
        b, c = u @ p["b"], u @ p["c"]
        decay = jnp.exp(step[..., None] * -jnp.exp(p["a"]))
        drive = (step * u)[..., None] * b[..., None, :]

        def join(one: Any, other: Any) -> Any:
            return one[0] * other[0], one[1] * other[0] + other[1]

        _, h = jax.lax.associative_scan(join, (decay, drive), axis=1)
        y = jnp.einsum("btcs,bts->btc", h, c) + u * p["d"]
        return (y * jax.nn.silu(gate)) @ p["out"]

    def loss(params: Tree, tokens: jax.Array) -> jax.Array:
        x = params["embedding"][tokens]
        for p in params["layers"]:
            x = x + mixer(_rms(x, p["norm"]), p)
        return layers.cross_entropy((x @ params["head"])[:, :-1], tokens[:, 1:])

    one = {"in": f32(width, 2 * inner), "conv": f32(3, inner), "dt_down": f32(inner, 16)}
    one |= {"dt_up": f32(16, inner), "b": f32(inner, state), "c": f32(inner, state)}
    one |= {"a": f32(inner, state), "d": f32(inner), "out": f32(inner, width), "norm": f32(width)}
    tall, wide = P("model", None), P(None, "model")
    own = {"in": wide, "conv": wide, "dt_down": tall, "dt_up": wide, "b": tall, "c": tall}
    own |= {"a": tall, "d": P("model"), "out": tall, "norm": P()}
    params = {"embedding": f32(2048, width), "layers": [one] * 2, "head": f32(width, 2048)}
    specs = {"embedding": P(), "layers": [own] * 2, "head": wide}
    arguments = (params, i32(16, 64))
    return lower(_descent(loss), on, arguments, (specs, P("data")), (specs, P()), 0)


@family
def click_rate() -> jax.stages.Lowered:
    """Like DLRM: tables by rows and by columns, bags, pairs of features, two dense stacks."""
    on = mesh(data=4, model=2)

    def loss(params: Tree, dense: jax.Array, bags: jax.Array, clicked: jax.Array) -> jax.Array:
        for w in params["bottom"]:
            dense = jax.nn.relu(dense @ w)
        rows = [params["rows"][bags[:, 0]].sum(1), params["columns"][bags[:, 1]].sum(1)]
        features = constrain(jnp.stack([dense, *rows], 1), on, ("data", "model"))
        pairs = jnp.einsum("bfd,bgd->bfg", features, features).reshape(dense.shape[0], -1)
        x = jnp.concatenate([dense, pairs], -1)
        for w in params["top"]:
            x = jax.nn.relu(x @ w)
        logit = x @ params["last"]
        return jnp.mean(jnp.logaddexp(0.0, logit) - clicked * logit)

    params = {"rows": f32(65536, 64), "columns": f32(32768, 64), "last": f32(128)}
    params |= {"bottom": [f32(16, 256), f32(256, 64)], "top": [f32(73, 256), f32(256, 128)]}
    specs: Tree = {"rows": P(("data", "model")), "columns": P(None, "model"), "last": P()}
    specs |= {"bottom": [P(), P()], "top": [P(), P()]}
    arguments = (params, f32(2048, 16), i32(2048, 2, 4), f32(2048))
    given = (specs, P(("data", "model")), P("data"), P(("data", "model")))
    return lower(_descent(loss), on, arguments, given, (specs, P()), 0)


@family
def pooled_patches() -> jax.stages.Lowered:
    """A vision transformer with a query that pools, weights sharded by both axes, in bfloat16."""
    on, width = mesh(fsdp=4, tensor=2), 256

    def loss(params: Tree, images: jax.Array, labels: jax.Array) -> jax.Array:
        x = images @ params["patch"] + params["position"]
        for p in params["layers"]:
            y = _rms(x, p["n0"])
            x = x + layers.attend(y, y, p["attention"])
            y = jax.nn.gelu(_rms(x, p["n1"]) @ p["up"])
            x = constrain(x + y @ p["down"], on, "fsdp")
        probe = jnp.broadcast_to(params["probe"], (x.shape[0], 1, width))
        pooled = layers.attend(probe, x, params["pool"])[:, 0]
        logits = (pooled @ params["head"]).astype(jnp.float32)
        return layers.cross_entropy(logits, labels)

    def half(tree: Tree) -> Tree:
        return jax.tree.map(lambda leaf: bf16(*leaf.shape), tree)

    attention = half(layers.attention_shapes(width, 8))
    spec = layers.attention_specs("fsdp", "tensor")
    one = {"n0": bf16(width), "attention": attention, "n1": bf16(width)}
    one |= {"up": bf16(width, 1024), "down": bf16(1024, width)}
    own = {"n0": P(), "attention": spec, "n1": P()}
    own |= {"up": P("fsdp", "tensor"), "down": P("tensor", "fsdp")}
    params = {"patch": bf16(192, width), "position": bf16(64, width), "layers": [one] * 2}
    params |= {"probe": bf16(1, 1, width), "pool": attention, "head": bf16(width, 1024)}
    specs = {"patch": P(None, "tensor"), "position": P(), "layers": [own] * 2}
    specs |= {"probe": P(), "pool": spec, "head": P("fsdp", "tensor")}
    arguments = (params, bf16(32, 64, 192), i32(32))
    return lower(_descent(loss), on, arguments, (specs, P("fsdp"), P("fsdp")), (specs, P()), 0)


@family
def ragged_experts() -> jax.stages.Lowered:
    """Tokens sorted by expert go to the experts' devices and through ragged products there."""
    on, experts, width, room = mesh(expert=8), 16, 256, 64

    def local(x: jax.Array, router: jax.Array, up: jax.Array, down: jax.Array) -> jax.Array:
        scores = jax.nn.softmax(x @ router)
        best = jnp.argmax(scores, -1)
        order = jnp.argsort(best)
        place = jnp.cumsum(jax.nn.one_hot(best[order], experts, dtype=jnp.int32), 0) - 1
        slot = jnp.take_along_axis(place, best[order][:, None], 1)[:, 0]
        sent = jnp.zeros((experts, room, width), x.dtype)
        sent = sent.at[best[order], jnp.minimum(slot, room - 1)].set(x[order])
        got = jax.lax.all_to_all(sent.reshape(8, 2, room, width), "expert", 0, 0)
        rows = got.transpose(1, 0, 2, 3).reshape(-1, width)
        sizes = jnp.full((2,), rows.shape[0] // 2, jnp.int32)
        y = jax.lax.ragged_dot(jax.nn.gelu(jax.lax.ragged_dot(rows, up, sizes)), down, sizes)
        back = y.reshape(2, 8, room, width).transpose(1, 0, 2, 3)
        back = jax.lax.all_to_all(back, "expert", 0, 0).reshape(experts, room, width)
        y = jnp.zeros_like(x).at[order].set(back[best[order], jnp.minimum(slot, room - 1)])
        return y * jnp.take_along_axis(scores, best[:, None], 1)

    split = P("expert")
    mapped = jax.shard_map(
        local, mesh=on, in_specs=(split, P(), split, split), out_specs=split, check_vma=False
    )

    def loss(params: Tree, x: jax.Array, y: jax.Array) -> jax.Array:
        x = x + mapped(x, params["router"], params["up"], params["down"])
        return jnp.mean(jnp.square(x @ params["head"] - y))

    params = {"router": f32(width, experts), "up": f32(experts, width, 512)}
    params |= {"down": f32(experts, 512, width), "head": f32(width, width)}
    specs = {"router": P(), "up": split, "down": split, "head": P()}
    arguments = (params, f32(1024, width), f32(1024, width))
    return lower(_descent(loss), on, arguments, (specs, split, split), (specs, P()), 0)


@family
def staged() -> jax.stages.Lowered:
    """A pipeline by permutes, each stage of two layers, on parts of the batch beside each other."""
    on, width, micro = mesh(stage=4, data=2), 256, 8

    def run(w: jax.Array, x: jax.Array) -> jax.Array:
        stage = jax.lax.axis_index("stage")
        out = jnp.zeros_like(x)
        held = jnp.zeros_like(x[0])
        for tick in range(micro + 3):
            held = jnp.where(stage == 0, x[min(tick, micro - 1)], held)
            for layer in range(2):
                held = held + jnp.tanh(held @ w[0, layer])
            if tick >= 3:
                out = out.at[tick - 3].set(jnp.where(stage == 3, held, 0.0))
            held = jax.lax.ppermute(held, "stage", [(i, (i + 1) % 4) for i in range(4)])
        return jax.lax.psum(out, "stage")

    mapped = jax.shard_map(
        run,
        mesh=on,
        in_specs=(P("stage"), P(None, "data")),
        out_specs=P(None, "data"),
        check_vma=False,
    )

    def loss(params: Tree, x: jax.Array, y: jax.Array) -> jax.Array:
        return jnp.mean(jnp.square(mapped(params["w"], x) @ params["head"] - y))

    params = {"w": f32(4, 2, width, width), "head": f32(width, 64)}
    specs = {"w": P("stage"), "head": P()}
    arguments = (params, f32(micro, 32, width), f32(micro, 32, 64))
    given = (specs, P(None, "data"), P(None, "data"))
    return lower(_descent(loss), on, arguments, given, (specs, P()), 0)


@family
def scanned_again() -> jax.stages.Lowered:
    """Layers in a scan, computed again in the backward pass, weights gathered in each turn."""
    on, width, depth = mesh(fsdp=8), 256, 4

    def loss(params: Tree, tokens: jax.Array) -> jax.Array:
        def body(x: jax.Array, p: Tree) -> tuple[jax.Array, None]:
            with jax.named_scope("layer"):
                y = _rms(x, p["n0"])
                x = x + layers.attend(y, y, p["attention"])
                y = _rms(x, p["n1"])
                x = x + (jax.nn.silu(y @ p["gate"]) * (y @ p["up"])) @ p["down"]
            return constrain(x, on, "fsdp"), None

        x = params["embedding"][tokens]
        x, _ = jax.lax.scan(jax.checkpoint(body), x, params["layers"])
        logits = x @ params["head"]
        return layers.cross_entropy(logits[:, :-1].astype(jnp.float32), tokens[:, 1:])

    one = {"n0": f32(width), "attention": layers.attention_shapes(width, 8), "n1": f32(width)}
    one |= {"gate": f32(width, 1024), "up": f32(width, 1024), "down": f32(1024, width)}
    stacks = jax.tree.map(lambda leaf: bf16(depth, *leaf.shape), one)
    split = jax.tree.map(lambda leaf: P(None, "fsdp"), one)
    params = {"embedding": bf16(2048, width), "layers": stacks, "head": bf16(width, 2048)}
    specs = {"embedding": P("fsdp"), "layers": split, "head": P("fsdp")}
    return lower(
        _descent(loss), on, (params, i32(16, 64)), (specs, P("fsdp")), (specs, P()), donate=0
    )


@family
def long_cache() -> jax.stages.Lowered:
    """A token against a cache that is sharded by length: partial softmaxes, joined by hand."""
    on, heads, width = mesh(batch=2, length=4), 8, 64

    def attend(q: jax.Array, k: jax.Array, v: jax.Array, at: jax.Array) -> jax.Array:
        first = jax.lax.axis_index("length") * k.shape[1]
        scores = jnp.einsum("bhd,bshd->bhs", q, k) * width**-0.5
        scores = jnp.where(first + jnp.arange(k.shape[1]) <= at, scores, -1e9)
        top = jax.lax.pmax(scores.max(-1), "length")
        weights = jnp.exp(scores - top[..., None])
        total = jax.lax.psum(weights.sum(-1), "length")
        return jax.lax.psum(jnp.einsum("bhs,bshd->bhd", weights, v), "length") / total[..., None]

    kept = P("batch", "length")
    joined = jax.shard_map(
        attend, mesh=on, in_specs=(P("batch"), kept, kept, P()), out_specs=P("batch")
    )

    def step(params: Tree, caches: Tree, tokens: jax.Array, at: jax.Array) -> Tree:
        x = params["embedding"][tokens]
        new = []
        for p, (keys, values) in zip(params["layers"], caches, strict=True):
            q, k, v = (jnp.einsum("bw,whd->bhd", x, p[name]) for name in "qkv")
            keys = jax.lax.dynamic_update_slice(keys, k[:, None], (0, at, 0, 0))
            values = jax.lax.dynamic_update_slice(values, v[:, None], (0, at, 0, 0))
            x = x + jnp.einsum("bhd,hdw->bw", joined(q, keys, values, at), p["o"])
            new.append((keys, values))
        return jnp.argmax(x @ params["head"], -1), new

    layer = {name: f32(512, heads, width) for name in "qkv"} | {"o": f32(heads, width, 512)}
    own = {name: P(None, "length") for name in "qkv"} | {"o": P("length")}
    params = {"embedding": f32(4096, 512), "layers": [layer] * 2, "head": f32(512, 4096)}
    specs = {"embedding": P("length"), "layers": [own] * 2, "head": P(None, "length")}
    caches = [(f32(8, 512, heads, width),) * 2] * 2
    cache_specs = [(kept, kept)] * 2
    return lower(
        step,
        on,
        (params, caches, i32(8), i32()),
        (specs, cache_specs, P("batch"), P()),
        (P("batch"), cache_specs),
        donate=1,
    )


@family
def two_towers() -> jax.stages.Lowered:
    """Like CLIP: each device compares its images with the texts of all."""
    on = mesh(data=8)

    def tower(x: jax.Array, p: Tree) -> jax.Array:
        for w in p:
            x = jax.nn.gelu(x @ w)
        return x / jnp.linalg.norm(x, axis=-1, keepdims=True)

    def loss(params: Tree, images: jax.Array, texts: jax.Array) -> jax.Array:
        logits = tower(images, params["image"]) @ tower(texts, params["text"]).T
        logits = logits * jnp.exp(params["scale"])
        labels = jnp.arange(logits.shape[0])
        return layers.cross_entropy(logits, labels) + layers.cross_entropy(logits.T, labels)

    params = {"image": [f32(512, 1024), f32(1024, 256)], "text": [f32(256, 512), f32(512, 256)]}
    params["scale"] = f32()
    specs = {"image": [P("data")] * 2, "text": [P("data")] * 2, "scale": P()}
    arguments = (params, f32(1024, 512), f32(1024, 256))
    return lower(_descent(loss), on, arguments, (specs, P("data"), P("data")), (specs, P()), 0)


@family
def recurrent() -> jax.stages.Lowered:
    """An LSTM over time whose gates are sharded, so that each turn sends its state."""
    on, width = mesh(data=2, model=4), 256

    def loss(params: Tree, x: jax.Array, y: jax.Array) -> jax.Array:
        def cell(state: Any, now: jax.Array) -> Any:
            h, c = state
            gates = now @ params["in"] + h @ params["own"]
            i, f, g, o = jnp.split(gates, 4, axis=-1)
            c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
            h = jax.nn.sigmoid(o) * jnp.tanh(c)
            return (h, c), h

        zeros = jnp.zeros((x.shape[1], width))
        _, out = jax.lax.scan(cell, (zeros, zeros), x)
        return jnp.mean(jnp.square(out @ params["head"] - y))

    params = {"in": f32(128, 4 * width), "own": f32(width, 4 * width), "head": f32(width, 128)}
    specs = {"in": P(None, "model"), "own": P(None, "model"), "head": P("model")}
    arguments = (params, f32(16, 64, 128), f32(16, 64, 128))
    given = (specs, P(None, "data"), P(None, "data"))
    return lower(_descent(loss), on, arguments, given, (specs, P()), 0)
