"""The meaning of MaxText's configuration keys for a step, and the sizes of its models."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

CLASSES = ("used", "harmless", "unmodelled", "refused")
"""``used``: a step is built from the key; ``harmless``: it does not change the step;
``unmodelled``: it changes the step, but not the one built here, and is reported; ``refused``: only
its default is supported."""


@cache
def _data(name: str) -> dict[str, Any]:
    path = Path(__file__).with_name(name)
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


@cache
def defaults() -> Mapping[str, Any]:
    """Return the default of each key."""
    data = _data("keys.json")
    return MappingProxyType({key: one for kind in CLASSES for key, one in data[kind].items()})


@cache
def classes() -> Mapping[str, str]:
    """Return the class of each key, one of :data:`CLASSES`."""
    data = _data("keys.json")
    return MappingProxyType({key: kind for kind in CLASSES for key in data[kind]})


def as_modelled(key: str) -> list[Any]:
    """Return the values of an unmodelled ``key`` that agree with the step as it is built."""
    data = _data("keys.json")
    found: list[Any] = data["modelled"].get(key, [data["unmodelled"][key]])
    return found


@cache
def models() -> Mapping[str, dict[str, Any]]:
    """Return the values that MaxText sets for each ``model_name``."""
    known = {name: each for name, each in _data("models.json").items() if name != "source"}
    return MappingProxyType(known)


@cache
def topologies() -> Mapping[str, str]:
    """Return the torus of each TPU ``compile_topology``."""
    known = {name: torus for name, torus in _data("topologies.json").items() if name != "source"}
    return MappingProxyType(known)
