"""What to write in a program so that its layers keep what was chosen."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from shardcore.remat.choices import Choice, Runs, Setting
from shardcore.remat.programs import Stack
from shardcore.remat.values import Value
from shardcore.units import format_bytes

Values = Sequence[Sequence[Value]]
"""Of the layers of each stack the values with names that are used."""


def to_python(stacks: Sequence[Stack], setting: Setting, values: Values) -> str:
    """Return the code: lines that name values, and a policy for each stack of layers."""
    lines = ["import jax"]
    if any(not value.is_given for each in values for value in each):
        lines += ["from jax.ad_checkpoint import checkpoint_name"]
    return "\n".join([*lines, *layer_lines(stacks, setting, values)]) + "\n"


def layer_lines(stacks: Sequence[Stack], setting: Setting, values: Values) -> Iterator[str]:
    """Yield the lines for each stack of layers."""
    for number, (stack, runs, named) in enumerate(zip(stacks, setting, values, strict=True)):
        suffix = "" if len(stacks) == 1 else f"_{number}"
        yield from ("", f"# {stack_text(stack)}", *_naming(named))
        yield from (*_policies(runs, suffix), *_wrapping(stack, runs, suffix))


def commented(stacks: Sequence[Stack], setting: Setting, values: Values) -> str:
    """Return the policies as code, and as comments what to write in the program."""
    lines = ["# What layers keep for the backward pass:"]
    for number, (stack, runs, named) in enumerate(zip(stacks, setting, values, strict=True)):
        suffix = "" if len(stacks) == 1 else f"_{number}"
        lines += ["", f"# {stack_text(stack)}"]
        lines += [f"# {line.removeprefix('# ')}" for line in _naming(named)]
        lines += [*_policies(runs, suffix)]
        lines += [f"# {line.removeprefix('# ')}" for line in _wrapping(stack, runs, suffix)]
    return "\n".join(lines)


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


def _naming(values: Sequence[Value]) -> list[str]:
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


def _policies(runs: Runs, suffix: str) -> Iterator[str]:
    """The definition of what the layers of a stack keep."""
    if len(runs) > 1:
        yield f"policies{suffix} = ["
        for count, choice in runs:
            code = choice.code().replace("\n", "\n    ")
            yield f"    *[{code}] * {count},"
        yield "]"
    elif runs[0][1].is_checkpointed:
        yield f"policy{suffix} = {runs[0][1].code()}"


def _wrapping(stack: Stack, runs: Runs, suffix: str) -> list[str]:
    layer = stack.function if stack.function and stack.function.isidentifier() else "layer"
    if len(runs) == 1:
        [(_, choice)] = runs
        if not choice.is_checkpointed:
            return [f"# {layer} without jax.checkpoint"]
        return [_wrapped(layer, stack, f"policy{suffix}")]
    lines = [f"for number, policy in enumerate(policies{suffix}):"]
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
