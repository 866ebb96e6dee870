"""Registrations for targets of custom calls, and their answers for the calls of a program."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

from shardcore import _core
from shardcore.errors import Diagnostic, PartitionError, ShardcoreError
from shardcore.rules.given import note
from shardcore.rules.registry import Signature, TensorType

Answer = TypeVar("Answer")
Row = TypeVar("Row")
F = TypeVar("F", bound=Callable[[Signature], Any])


class TargetRules(Generic[Answer]):
    """Functions by target; each maps the signature of a call to an answer or ``None``."""

    def __init__(self, kind: str, hint: str | None = None) -> None:
        """``kind`` is used in errors (``"cost rule"``), and ``hint`` says what functions have to
        return."""
        self._kind = kind
        self._hint = hint
        self._functions: dict[str, Callable[[Signature], Answer | None]] = {}

    def register(self, target: str, answer: Answer | None) -> Callable[[F], F] | None:
        """Register ``answer`` for all calls of ``target``; without it, return a decorator."""
        if answer is not None:
            self._set(target, lambda _: answer)
            return None

        def decorate(function: F) -> F:
            self._set(target, function)
            return function

        return decorate

    def _set(self, target: str, function: Callable[[Signature], Answer | None]) -> None:
        self._functions[target] = function
        note(self._kind, target, function)

    def unregister(self, target: str) -> None:
        """Remove the registration for ``target``, if there is one."""
        self._functions.pop(target, None)
        note(self._kind, target, None)

    def registered(self) -> tuple[tuple[str, Callable[[Signature], Answer | None]], ...]:
        """Return the registered functions, with their targets."""
        return tuple(self._functions.items())

    def rows(self, module: _core.Module, row: Callable[[int, Signature, Answer], Row]) -> list[Row]:
        """Return ``row(number, signature, answer)`` for each signature of the custom calls of
        ``module`` that has an answer.

        Raises:
            PartitionError: a function or ``row`` fails (``invalid-rule``).
        """
        functions = dict(self._functions)
        found: dict[int, Row | None] = {}
        for op in module.ops() if functions else ():
            number = op.signature
            if op.name != "stablehlo.custom_call" or number is None or number in found:
                continue
            function = functions.get(str(op.attributes.get("call_target_name")))
            found[number] = None
            if function is None:
                continue
            signature = _signature(op)
            try:
                answer = function(signature)
                if answer is not None:
                    found[number] = row(number, signature, answer)
            except ShardcoreError as error:
                raise self._error(module, op, error.message, error.hint) from error
            # A user's function may raise any exception.
            except Exception as error:
                problem = f"the function raised {type(error).__name__}: {error}"
                raise self._error(module, op, problem, self._hint) from error
        return [row for row in found.values() if row is not None]

    def _error(
        self, module: _core.Module, op: _core.Op, problem: str, hint: str | None
    ) -> PartitionError:
        target = op.attributes.get("call_target_name")
        message = f'{self._kind} of custom call target "{target}": {problem}'
        return PartitionError(Diagnostic("invalid-rule", message, hint, module.filename, op.place))


def _signature(op: _core.Op) -> Signature:
    return Signature(
        op.name, _tensor_types(op.operands), _tensor_types(op.results), dict(op.attributes)
    )


def _tensor_types(values: Sequence[_core.Value]) -> tuple[TensorType | None, ...]:
    return tuple(
        None
        if value.shape is None or value.dtype is None
        else TensorType(tuple(size or 0 for size in value.shape), value.dtype)
        for value in values
    )
