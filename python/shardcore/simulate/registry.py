"""Which function prepares which op: every file of the package registers its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from shardcore.simulate.site import Kernel, Site

__all__ = ["PREPARERS", "arrays", "op"]

Preparer = Callable[[Site], Kernel]

PREPARERS: dict[str, Preparer] = {}
"""By the op's full name, what makes its kernel."""

F = TypeVar("F", bound=Preparer)


def op(*names: str) -> Callable[[F], F]:
    """Register the decorated function as what prepares the ops called ``names``."""

    def register(prepare: F) -> F:
        for name in names:
            if name in PREPARERS:
                raise ValueError(f"{name} is registered twice")
            PREPARERS[name] = prepare
        return prepare

    return register


def arrays(compute: Callable[..., Any]) -> Kernel:
    """The kernel of an op that depends on nothing but the arrays it takes."""

    def kernel(run: object, *operands: Any) -> Any:
        return compute(*operands)

    return kernel
