"""What the keys of a configuration of MaxText are to a step, and the sizes of its models."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

CLASSES = ("used", "harmless", "unmodelled", "refused")
"""Keys that a step is built of; that change none; that change it, which the step here has not, and
is listed; and those with which there is no step but with their defaults."""


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
    """Return the values of an unmodelled ``key`` with which the step is as it is built."""
    data = _data("keys.json")
    found: list[Any] = data["modelled"].get(key, [data["unmodelled"][key]])
    return found


@cache
def models() -> Mapping[str, dict[str, Any]]:
    """Return what MaxText sets for each ``model_name``."""
    known = {name: each for name, each in _data("models.json").items() if name != "source"}
    return MappingProxyType(known)


@cache
def topologies() -> Mapping[str, str]:
    """Return the torus of each ``compile_topology`` of TPUs."""
    known = {name: torus for name, torus in _data("topologies.json").items() if name != "source"}
    return MappingProxyType(known)
