"""The functions that prepare ops, by op name: every file of the package registers its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from shardcore.simulate.site import Kernel, Site

__all__ = ["PREPARERS", "arrays", "op"]

Preparer = Callable[[Site], Kernel]

PREPARERS: dict[str, Preparer] = {}
"""For each op, by full name, the function that makes its kernel."""

F = TypeVar("F", bound=Preparer)


def op(*names: str) -> Callable[[F], F]:
    """Register the decorated function, which prepares the ops called ``names``."""

    def register(prepare: F) -> F:
        for name in names:
            if name in PREPARERS:
                raise ValueError(f"{name} is registered twice")
            PREPARERS[name] = prepare
        return prepare

    return register


def arrays(compute: Callable[..., Any]) -> Kernel:
    """The kernel of an op whose results depend only on its operands."""

    def kernel(run: object, *operands: Any) -> Any:
        return compute(*operands)

    return kernel
