"""Random bits from counters, bit for bit as XLA makes them.

Sources: Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (Threefry-2x32 in 20 rounds,
Philox-4x32 in 10); the layout of counters and results is XLA's.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from shardcore.simulate.dtypes import bits_of
from shardcore.simulate.registry import arrays, op
from shardcore.simulate.site import Kernel, Site
from shardcore.simulate.values import Array

U32, U64 = np.uint32, np.uint64
Words = Sequence[Array]

_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = U32(0x1BD11BDA)


def _halves(words: Array) -> tuple[Array, Array]:
    """The lower and the upper 32 bits."""
    return words.astype(U32), (words >> U64(32)).astype(U32)


def _joined(low: Array, high: Array) -> Array:
    return low.astype(U64) | (high.astype(U64) << U64(32))


def threefry(counters: Words, key: Words) -> tuple[Array, Array]:
    """Two words of random bits for each pair of words in ``counters``."""
    schedule = (key[0], key[1], key[0] ^ key[1] ^ _PARITY)
    a, b = counters[0] + schedule[0], counters[1] + schedule[1]
    for group in range(5):
        for distance in _ROTATIONS[group % 2]:
            a = a + b
            b = a ^ ((b << U32(distance)) | (b >> U32(32 - distance)))
        a = a + schedule[(group + 1) % 3]
        b = b + schedule[(group + 2) % 3] + U32(group + 1)
    return a, b


def philox(counters: Words, key: Words) -> list[Array]:
    """Four words of random bits for each four words in ``counters``."""
    x, k = list(counters), list(key)
    for _ in range(10):
        low0, high0 = _halves(x[0].astype(U64) * U64(0xD2511F53))
        low1, high1 = _halves(x[2].astype(U64) * U64(0xCD9E8D57))
        x = [high1 ^ x[1] ^ k[0], low1, high0 ^ x[3] ^ k[1], low0]
        k = [k[0] + U32(0x9E3779B9), k[1] + U32(0xBB67AE85)]
    return x


def _column(words: Array) -> Array:
    return words[:, None]


def _threefry_bits(state: Array, shape: Sequence[int], bits: int) -> tuple[Array, Array]:
    """Random words in ``shape`` and the new state; the state is a key and a counter."""
    key = _halves(_column(state[:, 0]))
    # Words of 32 bits come in pairs; the two halves are neighbours along one dim.
    even = [dim for dim, size in enumerate(shape) if size % 2 == 0]
    largest = max(range(len(shape)), key=lambda dim: shape[dim], default=0)
    split = even[0] if even else largest
    half = list(shape) if bits == 64 else [*shape] or [1]
    if bits < 64:
        half[split] = -(-half[split] // 2) if shape else 1
    count = int(np.prod(half, dtype=np.int64))
    counters = _column(state[:, 1]) + np.arange(count, dtype=U64)
    low, high = threefry(_halves(counters), key)
    new = np.stack([state[:, 0], state[:, 1] + U64(count)], axis=1)
    if bits == 64:
        return _joined(low, high).reshape(len(state), *shape), new
    if not shape:
        return low[:, 0], new
    parts = [part.reshape(len(state), *half) for part in (low, high)]
    pairs = np.stack(parts, axis=split + 2)
    merged = pairs.reshape(len(state), *half[:split], 2 * half[split], *half[split + 1 :])
    return merged.take(range(shape[split]), axis=split + 1), new


def _philox_bits(state: Array, shape: Sequence[int], bits: int) -> tuple[Array, Array]:
    """Philox; the state is a key and a counter of 64 or 128 bits, or the counter alone."""
    key = _halves(_column(state[:, 0]))
    count = int(np.prod(shape, dtype=np.int64))
    blocks = -(-count // (2 if bits == 64 else 4))
    if state.shape[1] >= 3:
        low, high = state[:, 1], state[:, 2]
    else:
        low, high = state[:, 1], state[:, 0]
    steps = _column(low) + np.arange(blocks, dtype=U64)
    carried = _column(high) + (steps < _column(low)).astype(U64)
    words = philox((*_halves(steps), *_halves(carried)), key)
    if bits == 64:
        found = np.stack([_joined(*words[:2]), _joined(*words[2:])], axis=-1)
    else:
        found = np.stack(words, axis=-1)
    found = found.reshape(len(state), -1)[:, :count].reshape(len(state), *shape)
    after = low + U64(blocks)
    columns = [state[:, 0], after]
    if state.shape[1] >= 3:
        columns.append(high + (after < low).astype(U64))
    return found, np.stack(columns, axis=1)


@op("stablehlo.rng_bit_generator")
def rng_bit_generator(site: Site) -> Kernel:
    """Random bits and the next state; the default algorithm is Philox, as in XLA on CPUs."""
    algorithm = site.attributes.get("rng_algorithm", "DEFAULT")
    make = _threefry_bits if algorithm == "THREE_FRY" else _philox_bits
    state_type, result = site.operands[0], site.results[1]
    words = site.operands[0].shape[0] * bits_of(state_type.dtype) // 64
    if not (words == 2 or (words == 3 and algorithm != "THREE_FRY")):
        raise site.unsupported(f"a state of {words * 64} bits for {algorithm}")
    width = bits_of(result.dtype)

    def compute(state: Array) -> tuple[Array, Array]:
        plain = np.ascontiguousarray(state).view(U64)
        found, new = make(plain, result.shape, 64 if width == 64 else 32)
        unsigned = found.astype(f"u{max(width // 8, 1)}")
        return new.view(state.dtype), unsigned.view(result.dtype)

    return arrays(compute)


@op("stablehlo.rng")
def rng(site: Site) -> Kernel:
    """Refused: the numbers of this op are not specified."""
    hint = "use stablehlo.rng_bit_generator, or jax.random, whose numbers are determined"
    raise site.unsupported("the numbers of stablehlo.rng are not determined", hint)
