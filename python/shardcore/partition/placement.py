"""Converts global arrays to the shards of all devices, and back."""

from __future__ import annotations

from typing import Any

import numpy as np

from shardcore._core import Port, TensorSharding
from shardcore.simulate.dtypes import are_equal, iinfo, is_integer


def scatter(array: Any, port: Port, num_devices: int, padding: Any = None) -> np.ndarray[Any, Any]:
    """The padded shards of ``array``, stacked along a leading device dim.

    Along unreduced axes, where the array is the sum over devices, the first device holds the shard
    and the others hold zeros.
    """
    whole = np.asarray(array)
    sharding = _sharding(port)
    if sharding is None:
        return whole
    shape = tuple(size or 0 for size in port.shape or ())
    if whole.shape != shape:
        raise ValueError(f"{port.name} has shape {shape}, not {whole.shape}")
    local = sharding.local_shape(shape)
    held = np.full((num_devices, *local), _filler(whole.dtype, padding), whole.dtype)
    terms = _terms(port, num_devices)
    for device in range(num_devices):
        piece = whole[sharding.shard_slice(shape, device)]
        index: Any = (device, *(slice(0, size) for size in piece.shape))
        held[index] = piece if terms[device] == 0 else 0
    return held


def _sharding(port: Port) -> TensorSharding | None:
    """The sharding of ``port``; ``None`` if its mesh has no axes.

    Devices of such a per-device program all hold the same values, and a mesh of one device, or
    none.
    """
    sharding = port.sharding
    has_axes = sharding is not None and (sharding.mesh is None or bool(sharding.mesh.axes))
    return sharding if has_axes else None


def _terms(port: Port, num_devices: int) -> list[int]:
    """For each device, which term of the sum it holds: its position along the unreduced axes."""
    sharding = _sharding(port)
    if sharding is None or not sharding.unreduced:
        return [0] * num_devices
    assert sharding.mesh is not None
    along = TensorSharding(sharding.mesh, [sharding.unreduced])
    return [along.shard_slice((num_devices,), device)[0].start for device in range(num_devices)]


def gather(held: np.ndarray[Any, Any] | None, port: Port) -> Any:
    """The global array of which ``held`` has the shards, stacked along a leading device dim; a
    token is ``None``.

    Along unreduced axes the shards of the devices are added.

    Raises:
        ValueError: replicas of a shard differ between devices.
    """
    if held is None:
        return None
    terms = _terms(port, held.shape[0])
    found = [_gathered(held, port, term, terms) for term in dict.fromkeys(terms)]
    return sum(found[1:], found[0])


def _gathered(
    held: np.ndarray[Any, Any], port: Port, term: int, terms: list[int]
) -> np.ndarray[Any, Any]:
    """The global array made of the shards of those devices that hold ``term``."""
    shape = tuple(size or 0 for size in port.shape or ())
    sharding = _sharding(port)
    whole = np.zeros(shape, held.dtype)
    is_known = np.zeros(shape, bool)
    for device in (device for device, own in enumerate(terms) if own == term):
        part: Any = ()
        piece = held[device]
        if sharding is not None:
            part = sharding.shard_slice(shape, device)
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
    return are_equal(np.ravel(before), np.ravel(piece))


def _filler(dtype: np.dtype[Any], padding: Any) -> Any:
    if padding is not None:
        return padding
    if is_integer(dtype):
        return iinfo(dtype).max
    if dtype.kind == "b":
        return True
    return np.nan if dtype.kind in "fcV" else 0
