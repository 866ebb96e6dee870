"""Texts of programs that several tests use."""

from __future__ import annotations


def sharded(*dims: str) -> str:
    """The sharding over `@mesh` as an attribute of an argument.

    A dim is an axis, ``""`` for none, or any text between the braces: ``?``, ``"x":(1)2``.
    """
    text = ", ".join(f'{{"{dim}"}}' if dim.isidentifier() else f"{{{dim}}}" for dim in dims)
    return f"{{sdy.sharding = #sdy.sharding<@mesh, [{text}]>}}"
