"""Reads MaxText's golden files of shardings as expectations.

For each configuration MaxText keeps three JSON files about the state and activations of a step:

==========================  ====================================================================
``named_shardings.json``    for each leaf of the state its mesh, ``PartitionSpec`` and shape
``logical_shardings.json``  for each leaf the names of its axes and its shape; the rules that make
                            mesh axes of names are not in it, so only ranks and shapes are compared
``input_shardings.json``    for each activation, ``FILE/VARIABLE: TYPE[SHAPE]``, the spec that it is
                            constrained to
==========================  ====================================================================

Leaves are named by the steps of their paths as JAX writes them, ``.params/['params']/['decoder']``,
starting at the state: the name of the state itself does not matter. Axes of size 1 are left out.

Source: ``tests/utils/sharding_dump.py`` and ``maxtext/utils/sharding.py`` of MaxText.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from shardcore.bounded import shown
from shardcore.errors import Diagnostic, ExpectationError, Place
from shardcore.expect.mistakes import Mistakes
from shardcore.expect.toml_places import Path, Places
from shardcore.session.paths import MANY

if TYPE_CHECKING:
    from typing import TypeGuard

_ACTIVATIONS = "Activation Sharding Dump"
_HINT = "MaxText writes named_shardings.json, logical_shardings.json and input_shardings.json"


def is_golden(filename: str) -> bool:
    """Whether the file is a JSON file, by its name."""
    return filename.lower().endswith(".json")


def read(text: str, filename: str) -> tuple[dict[str, Any], Places]:
    """Return the expectations in a golden file, in the form of the TOML file, and their positions.

    Raises:
        ExpectationError: the file is not JSON (``expectation-syntax``), or no golden file
            (``invalid-expectation``).
    """
    try:
        data = json.loads(text)
    except json.JSONDecodeError as error:
        lines = text.split("\n")
        place = Place(error.lineno, error.colno, error.colno + 1, lines[error.lineno - 1])
        message = f"it is not JSON: {error.msg}"
        raise ExpectationError(
            Diagnostic("expectation-syntax", message, None, filename, place)
        ) from None
    # Numbers may have too many digits, and lists too many levels.
    except (ValueError, RecursionError) as error:
        message = f"it is not JSON: {error}"
        raise ExpectationError(Diagnostic("expectation-syntax", message, None, filename)) from None
    return _Golden(text, filename).read(data)


class _Golden:
    """Reads one file."""

    def __init__(self, text: str, filename: str) -> None:
        self.places = Places(text)
        self.mistakes = Mistakes(filename, self.places)
        self.found: dict[str, dict[str, Any]] = {}

    def read(self, data: object) -> tuple[dict[str, Any], Places]:
        if isinstance(data, dict) and _ACTIVATIONS in data:
            self.activations(data[_ACTIVATIONS])
        elif isinstance(data, dict) and data:
            for name, leaf in data.items():
                self.leaf(name, leaf)
        else:
            self.mistakes.invalid((), f"{shown(data)} are no shardings", _HINT)
        self.mistakes.check()
        return self.found, self.places

    def put(self, section: str, key: str, name: str, value: object) -> None:
        """Expect ``value`` for ``key``, which is called ``name`` in the file."""
        self.found.setdefault(section, {})[key] = value
        self.place((section, key), name)

    def place(self, path: Path, name: str) -> None:
        quoted = json.dumps(name, ensure_ascii=False)
        start = self.places.text.find(quoted)
        if start >= 0:
            self.places.keys[path] = self.places.values[path] = (start, start + len(quoted))

    def leaf(self, name: str, leaf: object) -> None:
        """Add the sharding of a leaf of the state."""
        self.place((name,), name)
        spec = leaf.get("partition_spec") if isinstance(leaf, dict) else None
        if not isinstance(leaf, dict) or not _is_spec(spec):
            self.mistakes.invalid((name,), f"{shown(leaf)} has no partition_spec", _HINT)
            return
        key = MANY + name if name.startswith(("[", ".", "/")) else f"{MANY}/{name}"
        mesh = leaf.get("mesh")
        if mesh is not None:
            sizes = mesh.get("shape") if isinstance(mesh, dict) else None
            if not isinstance(sizes, dict) or self.found.setdefault("mesh", sizes) != sizes:
                message = f"its mesh, {shown(sizes)}, is not that of the leaves above"
                self.mistakes.invalid((name,), message, None)
                return
            self.put("shardings", key, name, _spec(spec, sizes))
        if isinstance(leaf.get("shape"), list):
            self.put("shapes", key, name, leaf["shape"])

    def activations(self, rows: object) -> None:
        """Add the constraints of activations; several may have one name."""
        for row in rows if isinstance(rows, list) else [rows]:
            for name, found in (row if isinstance(row, dict) else {str(row): None}).items():
                spec = found.get("PartitionSpec") if isinstance(found, dict) else None
                if not isinstance(spec, str):
                    self.place((name,), name)
                    message = f"{shown(found)} has no PartitionSpec"
                    self.mistakes.invalid((name,), message, _HINT)
                    continue
                specs = self.found.get("constraints", {}).get(name, [])
                self.put("constraints", name, name, [*specs, spec])


def _is_spec(value: object) -> TypeGuard[list[Any]]:
    """Whether it is a list of axis names, lists of axis names, or null."""
    return isinstance(value, list) and all(
        entry is None
        or isinstance(entry, str)
        or (isinstance(entry, list) and all(isinstance(name, str) for name in entry))
        for entry in value
    )


def _spec(entries: list[Any], sizes: Mapping[str, Any]) -> str:
    """A ``PartitionSpec`` as text, without axes of size 1."""
    kept = []
    for entry in entries:
        names = [] if entry is None else entry if isinstance(entry, list) else [entry]
        axes = [name for name in names if sizes.get(name) != 1]
        kept.append(repr(tuple(axes) if len(axes) > 1 else axes[0] if axes else None))
    return f"P({', '.join(kept)})"
