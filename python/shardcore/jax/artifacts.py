"""Converts exported functions and serialized programs to :class:`~shardcore.jax.Lowered`."""

from __future__ import annotations

import jax.export

from shardcore._core import Module
from shardcore.bytecode import MAGIC
from shardcore.jax.lowered import Lowered
from shardcore.jax.mistakes import mistake
from shardcore.jax.result import JaxMesh
from shardcore.jax.trees import Trees

_OTHER_VERSIONS = {
    "unsupported version": "read them with the JAX that wrote them, or a later one",
    "backward-compatibility window": "JAX 0.11.0 and earlier read them; or export anew",
}
"""The hint for each message with which JAX says that another version of it wrote the bytes."""


def from_exported(exported: jax.export.Exported, mesh: JaxMesh | None) -> Lowered:
    """Return an exported function as a :class:`Lowered`."""
    module = Module.parse(
        str(exported.mlir_module()), filename=f"<{exported.fun_name.strip('<>')}>"
    )
    trees = Trees(
        exported.in_tree,
        exported.out_tree,
        tuple(exported.module_kept_var_idx),
        tuple(exported.in_avals),
        tuple(exported.out_avals),
    )
    return Lowered(module, trees, mesh)


def from_bytes(data: bytes, mesh: JaxMesh | None) -> Lowered:
    """Return a serialized ``jax.export.Exported``, or MLIR bytecode, as a :class:`Lowered`.

    Bytecode has no pytrees, so arguments and results are tuples.

    Raises:
        LoweringError: the bytes are neither of these (``artifact``), or another version of JAX
            wrote them, which the installed one cannot read (``jax-version``).
        ParseError: the bytecode cannot be read (``bytecode``).
    """
    if data.startswith(MAGIC):
        return Lowered(Module.parse(data, filename="<bytecode>"), None, mesh)
    return from_exported(_deserialized(data), mesh)


def _deserialized(data: bytes) -> jax.export.Exported:
    hint = "give what jax.export.export(...)(...).serialize() returns, or StableHLO bytecode"
    if not data:
        raise mistake("artifact", "there are no bytes to read", hint)
    try:
        return jax.export.deserialize(bytearray(data))
    except ImportError as error:
        raise mistake("artifact", str(error), "pip install flatbuffers") from None
    # flatbuffers does not check offsets, and raises various exceptions on malformed bytes.
    except Exception as error:
        for said, advice in _OTHER_VERSIONS.items():
            if said in str(error):
                message = f"JAX {jax.__version__} does not read bytes of another version"
                raise mistake("jax-version", f"{message}: {error}", advice) from error
        raise mistake(
            "artifact", f"the bytes are no exported function: {type(error).__name__}", hint
        ) from None
