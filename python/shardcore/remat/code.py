"""What to write in a program so that its layers keep what was chosen."""

from __future__ import annotations

import os

from shardcore.remat.answer import Remat
from shardcore.remat.choices import Choice, Runs
from shardcore.remat.programs import Stack
from shardcore.remat.values import Value
from shardcore.units import format_bytes


def to_python(found: Remat) -> str:
    """Return the code: lines that name values, and a policy for each stack of layers."""
    new = [value for values in found.values for value in values if not value.is_given]
    lines = ["import jax"]
    if new:
        lines += ["from jax.ad_checkpoint import checkpoint_name"]
    for number, (stack, runs, values) in enumerate(
        zip(found.stacks, found.setting, found.values, strict=True)
    ):
        suffix = "" if len(found.stacks) == 1 else f"_{number}"
        lines += ["", f"# {stack_text(stack)}"]
        lines += _naming(values)
        lines += _wrapping(stack, runs, suffix)
    return "\n".join(lines) + "\n"


def stack_text(stack: Stack) -> str:
    """Return what a stack of layers is, and where."""
    kind = "the scan over" if stack.is_scan else "the blocks of"
    where = "" if stack.place is None else f" at {_line(stack.place)}"
    return f"{kind} {stack.count} layers{where}"


def _line(location: str) -> str:
    """``file:line`` of a location, the file from the current folder if it is in there."""
    file, _, line = location.rpartition(":")[0].rpartition(":")
    near = os.path.relpath(file) if os.path.isabs(file) else file
    return f"{file if near.startswith(os.pardir) else near}:{line}"


def _naming(values: tuple[Value, ...]) -> list[str]:
    lines = []
    for value in values:
        where = "" if value.location is None else f"{_line(value.location)}, "
        text = f"{where}{value.type}, {format_bytes(value.bytes)} a layer"
        if value.is_given:
            lines.append(f"# {value.name} is named: {text}")
        elif value.is_input:
            lines += [f"# first in the layer: {text}", value.line]
        elif value.site is not None and value.site.name is None:
            lines += [f"# in place of the expression: {text}", value.line]
        else:
            lines += [f"# behind the line: {text}", value.line]
    return lines


def _wrapping(stack: Stack, runs: Runs, suffix: str) -> list[str]:
    layer = stack.function if stack.function and stack.function.isidentifier() else "layer"
    if len(runs) == 1:
        [(_, choice)] = runs
        if not choice.is_checkpointed:
            return [f"# {layer} without jax.checkpoint"]
        return [f"policy{suffix} = {choice.code()}", _wrapped(layer, stack, f"policy{suffix}")]
    lines = [f"policies{suffix} = ["]
    for count, choice in runs:
        code = choice.code().replace("\n", "\n    ")
        lines.append(f"    *[{code}] * {count},")
    lines.append("]")
    lines.append(f"for number, policy in enumerate(policies{suffix}):")
    lines += [f"    {line}" for line in _in_loop(layer, stack, [one for _, one in runs])]
    return lines


def _in_loop(layer: str, stack: Stack, choices: list[Choice]) -> list[str]:
    wrapped = _wrapped(layer, stack, "policy", "wrapped")
    if all(choice.is_checkpointed for choice in choices):
        return [f"{wrapped}  # for the layer of that number"]
    return [
        f"wrapped = {layer}  # for the layer of that number",
        "if policy is not None:",
        f"    {wrapped}",
    ]


def _wrapped(layer: str, stack: Stack, policy: str, target: str | None = None) -> str:
    options = ", prevent_cse=False" if stack.is_scan else ""
    return f"{target or layer} = jax.checkpoint({layer}, policy={policy}{options})"
