"""Converts global arrays to the shards of all devices, and back."""

from __future__ import annotations

from typing import Any

import numpy as np

from shardcore._core import Port


def scatter(array: Any, port: Port, num_devices: int, padding: Any = None) -> np.ndarray[Any, Any]:
    """The shards of ``array``, padded, with a leading device dim."""
    whole = np.asarray(array)
    if port.sharding is None:
        return whole
    shape = tuple(size or 0 for size in port.shape or ())
    if whole.shape != shape:
        raise ValueError(f"{port.name} has shape {shape}, not {whole.shape}")
    local = port.sharding.local_shape(shape)
    held = np.full((num_devices, *local), _filler(whole.dtype, padding), whole.dtype)
    for device in range(num_devices):
        piece = whole[port.sharding.shard_slice(shape, device)]
        index: Any = (device, *(slice(0, size) for size in piece.shape))
        held[index] = piece
    return held


def gather(held: np.ndarray[Any, Any], port: Port) -> np.ndarray[Any, Any]:
    """The global array that the shards ``held``, with a leading device dim, are of.

    Raises:
        ValueError: devices with the same shard hold different values.
    """
    shape = tuple(size or 0 for size in port.shape or ())
    whole = np.zeros(shape, held.dtype)
    is_known = np.zeros(shape, bool)
    for device in range(held.shape[0]):
        part: Any = ()
        piece = held[device]
        if port.sharding is not None:
            part = port.sharding.shard_slice(shape, device)
            sizes = whole[part].shape
            piece = piece[tuple(slice(0, size) for size in sizes)]
        before, known = whole[part], is_known[part]
        if not _agree(before[known] if before.ndim else before, piece[known], known):
            raise ValueError(f"{port.name} differs between devices that hold the same part of it")
        whole[part] = piece
        is_known[part] = True
    return whole


def _agree(before: Any, piece: Any, known: Any) -> bool:
    if not np.any(known):
        return True
    equal_nan = np.asarray(piece).dtype.kind in "fc"
    return np.array_equal(np.ravel(before), np.ravel(piece), equal_nan=equal_nan)


def _filler(dtype: np.dtype[Any], padding: Any) -> Any:
    if padding is not None:
        return padding
    if dtype.kind in "iu":
        return np.iinfo(dtype).max
    if dtype.kind == "b":
        return True
    return np.nan if dtype.kind in "fcV" else 0
