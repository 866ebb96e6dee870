"""Ops without a sharding rule, at which propagation stops."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from shardcore._core import op_names, ops_named
from shardcore.diagnose.findings import Finding, first_of
from shardcore.diagnose.places import warning
from shardcore.errors import Diagnostic, ShardcoreError
from shardcore.rules.partitioners import TARGET, function_called

if TYPE_CHECKING:
    from shardcore._core import Module, Op, Port, Result, Value

_KNOWN = ("stablehlo.", "sdy.", "func.", "builtin.")
"""Dialects whose ops have rules, or need none, except those below."""

_MAY_LACK_RULES = frozenset({"stablehlo.custom_call"})

_CONSTRAINT = "Sharding"
"""The target of custom calls that are sharding constraints."""


def op_findings(result: Result) -> list[Finding]:
    """Return findings about ops with sharded operands and unsharded results."""
    return first_of([*map(Finding, _without_rule(result))])


def _without_rule(result: Result) -> Iterator[Diagnostic]:
    # XLA legalizes CHLO before it propagates.
    module = result._legalized()
    seen: set[tuple[str, str | None]] = set()
    names = [
        name for name in op_names(module) if name in _MAY_LACK_RULES or not name.startswith(_KNOWN)
    ]
    for op in ops_named(module, names):
        if not any(map(is_sharded, op.operands)) or any(map(is_sharded, op.results)):
            continue
        tensors = [value for value in op.results if value.shape]
        name = _name(op)
        if not tensors or name == _CONSTRAINT or _has_rule(module, op):
            continue
        if any(map(_is_on_one_device, tensors)):
            # Callbacks run on one device, whatever their rule.
            continue
        key = (name, op.location)
        if key in seen:
            continue
        seen.add(key)
        lost = tensors[0].qualified_name
        message = f"propagation stops at {name}, which has no sharding rule: {lost} is replicated"
        hint = _hint_of_function(op) if _is_partitioned(op) else _hint(module, name)
        yield warning("no-rule", message, hint, lost, tensors[0].location)


def _hint(module: Module, name: str) -> str:
    """Return how to register a rule for the ops called ``name``, one that fits all of them."""
    forms = {_form(op) for op in module.ops() if _name(op) == name}
    function = f'a function under @shardcore.rule("{name}")'
    rule, where = _elementwise(forms), "if it is elementwise"
    if rule is None:
        rule, where = _mapped(forms), "if it maps over the first dim"
    if rule is None:
        return f"give it one: {function}"
    return f'give it one: shardcore.rule("{name}", "{rule}") {where}, or {function}'


def _hint_of_function(op: Op) -> str:
    """Return how to give the ``custom_partitioning`` function that ``op`` calls its own rule: all
    such functions share one target.
    """
    rule = _elementwise({_form(op)})
    if rule is None or "(" in rule:
        return "give it one: def_partition(..., sharding_rule=...)"
    return f'give it one: def_partition(..., sharding_rule="{rule}") if it is elementwise'


_Shape = tuple[int | None, ...]
_Form = tuple[tuple[_Shape, ...], tuple[_Shape, ...]]
"""The shapes of the operands and results of an op; empty for values that are no tensors."""


def _form(op: Op) -> _Form:
    operands = tuple(value.shape or () for value in op.operands)
    return operands, tuple(value.shape or () for value in op.results)


def _elementwise(forms: set[_Form]) -> str | None:
    """An elementwise rule, except for scalars; ``None`` unless one rule fits all forms."""
    if any(len({shape for part in form for shape in part if shape}) != 1 for form in forms):
        return None
    ranks = {max(len(shape) for part in form for shape in part) for form in forms}
    [rank, *others] = ranks
    dims = ["..."] if others else list(_LETTERS[:rank])
    if len(dims) < rank and not others:
        return None
    return _written({_pattern(form, lambda shape: dims if shape else []) for form in forms})


def _mapped(forms: set[_Form]) -> str | None:
    """A rule that maps over the first dim of all tensors except scalars; ``None`` unless one rule
    fits all forms.
    """
    if any(len({shape[0] for part in form for shape in part if shape}) != 1 for form in forms):
        return None
    return _written(
        {
            _pattern(form, lambda shape: ["i", *"_" * (len(shape) - 1)][: len(shape)])
            for form in forms
        }
    )


_LETTERS = "ijklmnopqrstuvwxyz"


def _pattern(form: _Form, dims: Callable[[_Shape], list[str]]) -> _Pattern:
    operands, results = (tuple(tuple(dims(shape)) for shape in part) for part in form)
    return operands, results


_Pattern = tuple[tuple[tuple[str, ...], ...], tuple[tuple[str, ...], ...]]


def _written(patterns: set[_Pattern]) -> str | None:
    """The notation of the only pattern; operands that are scalars are written with brackets."""
    if len(patterns) != 1:
        return None
    [(operands, results)] = patterns
    tensors = (*operands, *results)
    is_bracketed = not all(tensors) and any(len(dims) > 1 for dims in tensors)
    sides = (
        ", ".join(f"({', '.join(dims)})" if is_bracketed else " ".join(dims) for dims in side)
        for side in (operands, results)
    )
    return " -> ".join(sides)


def is_sharded(value: Value | Port) -> bool:
    """Whether a dim of ``value`` has axes."""
    sharding = value.sharding
    return sharding is not None and any(dim.axes for dim in sharding.dims)


def _is_on_one_device(value: Value) -> bool:
    mesh = None if value.sharding is None else value.sharding.mesh
    return mesh is not None and mesh.is_maximal


def _has_rule(module: Module, op: Op) -> bool:
    try:
        return bool(module.factor_table(op.results[0]).factors)
    except (ShardcoreError, KeyError):
        return False


def _name(op: Op) -> str:
    """The name under which a rule is registered: for a custom call its target; for a call of a
    ``custom_partitioning`` function the function's name.
    """
    if _is_partitioned(op):
        function = function_called(op.attributes.get("backend_config"))
        called = "a custom_partitioning function"
        return called if function is None else f"custom_partitioning function {function}"
    target = _target(op)
    return op.name if target is None else str(target).strip('"')


def _target(op: Op) -> object:
    return op.attributes.get("call_target_name") if op.name in _MAY_LACK_RULES else None


def _is_partitioned(op: Op) -> bool:
    return _target(op) == TARGET
