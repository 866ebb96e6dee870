"""Tools that open programs and say how they are sharded, and why."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated

from shardcore import program_files
from shardcore.calculus.hardware import hardware as find_hardware
from shardcore.costs.longest import longest_collectives
from shardcore.errors import Diagnostic, LocationError
from shardcore.expect.subjects import Subject, Subjects
from shardcore.labels import REPLICATED, file_line, folded, sharding_text
from shardcore.line_values import line_values
from shardcore.mcp.programs import Answer, Programs, call, table_text
from shardcore.mcp.toolbox import about, tool
from shardcore.session import Session
from shardcore.units import format_bytes, plural
from shardcore.why import absences

if TYPE_CHECKING:
    from shardcore._core import Port, Result, Value
    from shardcore.mcp.programs import Program

Which = Annotated[
    str | None, about("the program, as open named it: p1; by default the one used last")
]
_TEXT = re.compile(r"\n|func\.func|HloModule")
_LINE = re.compile(r"[^%@\s][^\s]*:\d+")
_MOST_COLLECTIVES = 20
_MOST_VALUES = 3
"""How many values of a line are explained."""


@tool
def open_(
    programs: Programs,
    program: Annotated[
        str,
        about(
            "the path of a file of StableHLO or HLO; or model.py:build, a Python function that is "
            "run and returns a step and its arguments; or the text of a program itself"
        ),
    ],
    mesh: Annotated[
        dict[str, int] | None, about('a mesh in the place of its own: {"data": 8, "model": 4}')
    ] = None,
    hardware: Annotated[str | None, about("the chip that figures are for: tpu-v5p, h100")] = None,
) -> Answer:
    """Open a program and keep it open, so that other tools can ask about it and edit it."""
    chip = find_hardware(hardware or programs.hardware).name
    if _TEXT.search(program):
        path, module = "<text>", program_files.parse(program, "<text>")
    else:
        path, module = program, program_files.read(program)
    session = Session(module, mesh=mesh)
    # A program that cannot be propagated is not opened.
    result: Result = session.result
    arguments, results = result.arguments(), result.results()
    opened = programs.add(path, session, chip)
    annotated = sum(port.sharding is not None for port in result._annotated()[0])
    size = sum(port.bytes_per_device or 0 for port in arguments)
    meshes = ", ".join(str(mesh) for mesh in session.module.meshes.values()) or "none"
    lines = [
        f"{opened.name}: {file_line(path) or path}, {plural(module.num_ops, 'op')}",
        f"mesh: {meshes}; chip: {chip}",
        f"{plural(len(arguments), 'argument')}, {annotated} of them annotated, "
        f"{format_bytes(size)} on a device; {plural(len(results), 'result')}",
    ]
    if not session.module.meshes:
        again = call("open", program=path, mesh={"data": 8})
        return Answer("\n".join(lines), again if path != "<text>" else "open with mesh={...}")
    return Answer("\n".join(lines), "cost()" if annotated else "plan()")


@tool
def shardings(
    programs: Programs,
    target: Annotated[
        str | None,
        about(
            "what to show: a path, params['w'], a pattern, params/**/w, a value, %12, or a line, "
            "model.py:42; by default all arguments and results"
        ),
    ] = None,
    top: Annotated[int, about("the most rows")] = 30,
    program: Which = None,
) -> Answer:
    """Say how values are sharded, with the shape and the bytes that one device holds."""
    opened = programs.get(program)
    result = opened.result
    if target is None:
        found: list[Subject] = [*result.arguments(), *result.results()]
    else:
        named = Subjects(result).find(target)
        if isinstance(named, str):
            message = f"nothing is called {target}"
            raise LocationError(Diagnostic("unknown-location", message, named))
        found = named
    rows = folded((_name(each), _cells(each), each) for each in found)
    table = table_text(
        ("value", "", "type", "sharding", "on a device", ">bytes"),
        (
            (label, f"x {len(joined)}" if len(joined) > 1 else "", *_cells(joined[0]))
            for label, joined in rows
        ),
        max(top, 1),
    )
    first = next((each for each in found if each.sharding is not None), None)
    name = "%12" if first is None else _name(first)
    return Answer(table, call("why", value=name))


def _name(subject: Subject) -> str:
    label = getattr(subject, "label", None)
    return str(label or getattr(subject, "qualified_name", subject.name))


def _cells(subject: Port | Value) -> tuple[str, ...]:
    from shardcore.report.table import format_local_shape, format_shape, format_sharding

    size = subject.bytes_per_device
    return (
        format_shape(subject),
        format_sharding(subject) or REPLICATED,
        format_local_shape(subject),
        "" if size is None else format_bytes(size),
    )


@tool
def why(
    programs: Programs,
    value: Annotated[
        str | None,
        about("what is asked for: a path, params['w'], a value, %12, or a line, model.py:42"),
    ] = None,
    axis: Annotated[str | None, about("this axis of the mesh only")] = None,
    dim: Annotated[int | None, about("this dim only")] = None,
    collective: Annotated[
        int | None,
        about("instead of a value, the number of a collective in what cost answered, from 1"),
    ] = None,
    program: Which = None,
) -> Answer:
    """Say from which annotation each axis of a value comes, and through which ops; or why a
    collective is there, and which edit of an annotation removes it."""
    opened = programs.get(program)
    if (value is None) == (collective is None):
        message = "why takes a value or the number of a collective"
        raise LocationError(Diagnostic("invalid-arguments", message, 'why(value="%0")'))
    if collective is not None:
        return _why_collective(opened, collective)
    assert value is not None
    if _LINE.fullmatch(value):
        return _why_line(opened, value, axis)
    found = opened.result.why(value, axis, dim)
    if found.axes:
        return Answer(str(found), "cost()")
    axes = [name for mesh in opened.session.module.meshes.values() for name in mesh.axis_names]
    return Answer(str(found), call("why_not", value=value, axis=axes[0] if axes else "data"))


def _why_line(opened: Program, line: str, axis: str | None) -> Answer:
    """The origins of the axes of the values that a line computes."""
    values = [value for value in line_values(opened.result, line) if value.shape]
    whys = (str(opened.result.why(value)) for value in values[:_MOST_VALUES])
    if axis is not None:
        whys = (
            "\n".join(map(str, absences(opened.result, value, axis)))
            or str(opened.result.why(value, axis))
            for value in values[:_MOST_VALUES]
        )
    more = len(values) - _MOST_VALUES
    note = [f"... {plural(more, 'value')} more of that line"] if more > 0 else []
    text = "\n".join([*whys, *note]) or f"{line} made no value with dims"
    return Answer(text, call("shardings", target=line))


def _why_collective(opened: Program, number: int) -> Answer:
    rows = longest_collectives(opened.session.cost(opened.hardware), _MOST_COLLECTIVES)
    if not 1 <= number <= len(rows):
        message = f"there is no collective {number}, but {plural(len(rows), 'place')} with some"
        raise LocationError(Diagnostic("unknown-location", message, "cost() lists them"))
    found = rows[number - 1].why
    edit = found.edit
    if edit is None or edit.seconds > 0:
        return Answer(str(found), "plan()")
    return Answer(str(found), call("edit", set={edit.target: sharding_text(edit.sharding)}))


@tool
def why_not(
    programs: Programs,
    value: Annotated[str, about("a path, params['w'], or a value, %12")],
    axis: Annotated[str, about("the axis of the mesh that it does not have")],
    dim: Annotated[int | None, about("the dim that could have it; by default all")] = None,
    program: Which = None,
) -> Answer:
    """Say why an axis is not on a value, and what won instead."""
    opened = programs.get(program)
    missing = absences(opened.result, value, axis, dim)
    if not missing:
        return Answer(f'"{axis}" is on {value}', call("why", value=value, axis=axis))
    instead = next((each.record()["instead"] for each in missing if each.record()["instead"]), None)
    after = call("why", value=instead["value"]) if instead else call("edit", set={value: "P(...)"})
    return Answer("\n".join(map(str, missing)), after)
