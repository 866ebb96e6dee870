"""What is no op: programs by what is sound and broken in them."""

from __future__ import annotations

from collections.abc import Callable

from tests.shardy.verification import (
    aliases,
    attributes,
    functions,
    literals,
    locations,
    modules,
    names,
    resources,
    syntax,
    types,
)

FAMILIES: dict[str, Callable[[], list[str]]] = {
    "func": lambda: [*functions.sound(), *functions.broken()],
    "location": locations.programs,
    "module": modules.programs,
    "name": names.programs,
    "resource": resources.programs,
    "type": types.programs,
    "attribute": attributes.programs,
    "alias": aliases.programs,
    "literal": literals.programs,
    "syntax": syntax.programs,
}
