"""Reads the program in the bytes that ``jax.export`` writes, ``Exported.serialize()``.

They are a FlatBuffer whose field :data:`_PROGRAM` is a StableHLO portable artifact. Neither JAX nor
``flatbuffers`` is needed, and each offset is checked.

Source: ``jax/_src/export/serialization.fbs`` of JAX (the fields of ``Exported`` keep their places
over its versions); https://flatbuffers.dev/internals/
"""

from __future__ import annotations

import struct

from shardcore.bytecode import MAGIC

_PROGRAM = 30
"""The offset of ``mlir_module_serialized`` in the FlatBuffer's vtable."""


def program(data: bytes) -> bytes | None:
    """Return the bytecode of the exported function in ``data``; ``None`` if ``data`` is something
    else."""
    try:
        [root] = struct.unpack_from("<I", data)
        [back] = struct.unpack_from("<i", data, root)
        fields = root - back
        [size] = struct.unpack_from("<H", data, fields) if fields >= 0 else (0,)
        [field] = struct.unpack_from("<H", data, fields + _PROGRAM) if size > _PROGRAM else (0,)
        if not field:
            return None
        at = root + field
        at += struct.unpack_from("<I", data, at)[0]
        [length] = struct.unpack_from("<I", data, at)
    except struct.error:
        return None
    found = data[at + 4 : at + 4 + length]
    return found if len(found) == length and found.startswith(MAGIC) else None
