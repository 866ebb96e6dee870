"""Explanations as readable trees."""

from __future__ import annotations

from typing import Any

from shardcore.labels import file_line
from shardcore.units import format_bytes, format_seconds, plural

_WRITTEN = {
    "argument": "the argument is annotated",
    "result": "the result is annotated",
    "constraint": "a sharding constraint",
    "group": "a sharding group",
    "op": "the op is annotated",
    "manual": "a manual computation",
}


WHY_NOT = {
    "taken": "the axis, or a part of it, is on another dim of the tensor",
    "replicated": "the axis is kept free on the tensor, as a replicated or unreduced axis",
    "closed": "the dim is closed",
    "blocked": "the sharding rule of the op blocks propagation along this factor",
    "direction": "the op propagates in the other direction only",
    "other-mesh": "the mesh of the tensor has no such axis, or the tensors of the op are over "
    "different meshes",
    "other-factor": "another factor of the op has the axis",
    "no-factor": "another tensor of the op has the axis, on a dim that corresponds to none here",
    "priority": "what won propagates at an earlier user priority",
    "op-priority": "what won propagates in an earlier op-priority step",
    "non-divisible": "the axis does not divide what is left of the factor, or a factor before it "
    "in the dim is not sharded whole",
    "manual": "the axis is manual in the computation, or would stand before one that is",
    "sub-axis": "the export removed a part of an axis, with what stands after it, from an open dim "
    "of an input or output",
    "conflict": "other axes are there, or on a dim that is the same factor",
    "no-rule": "the op has no sharding rule",
    "trimmed": "the export removed the axis: it does not divide the dim of the input or output",
    "never-arrived": "no dim that it could have come from has the axis",
}
"""Sentences for the reasons why an axis is not on a dim, by code."""


def absence(record: dict[str, Any]) -> str:
    """Return the sentence for a record of a :class:`WhyNot`."""
    name = record["label"] or record["value"]
    lines = [f'"{record["axis"]}" is not on dim {record["dim"]} of {name}']
    lines[0] += f": {WHY_NOT[record['code']]} ({record['code']})"
    at, instead = record["at"], record["instead"]
    # All values of a data-flow edge count as one tensor, which has the name of the edge's owner.
    is_elsewhere = (at["value"], at["dim"]) != (record["value"], record["dim"])
    if is_elsewhere and record["code"] != "never-arrived":
        lines.append(f"  it stops before dim {at['dim']} of {at['value']}")
    if record["op"]:
        where = _place(record["location"])
        lines.append(f"  at {record['op'].removeprefix('stablehlo.')}{where}")
    if instead:
        axes = ", ".join(f'"{axis}"' for axis in instead["axes"]) or "no axis"
        has = f"had {axes}, until the export removed it" if instead["is_trimmed"] else f"has {axes}"
        if record["closed_by"] is None:
            lines.append(f"  dim {instead['dim']} of {instead['value']} {has}{_won(instead)}")
    if record["closed_by"]:
        lines.append(f"  by {source_text(record['closed_by'])}")
        names = (axis.partition(":") for axis in (instead or {}).get("axes", ()))
        opened = ", ".join([*(f'"{name}"{colon}{part}' for name, colon, part in names), "?"])
        lines.append(f"  open it: {{{opened}}} as dim {at['dim']}")
    return "\n".join(lines)


def _won(instead: dict[str, Any]) -> str:
    """Where the axes that are there instead come from, and when they got there."""
    source = instead["source"]
    if source is None:
        return ""
    if instead["step"] is None and source["name"] == instead["value"]:
        return f": {_WRITTEN[source['kind']]}"
    name = source["label"] or source["name"]
    when = ""
    if instead["step"] is not None:
        when = f" at priority {instead['priority']}, step {instead['step']}"
    return f", from {name}{when}"


def tree(record: dict[str, Any]) -> str:
    """Return the tree of a record of a :class:`Why`."""
    name = record["label"] or record["value"]
    lines = [f"{name} {without_mesh(record['sharding'])}".rstrip()]
    if not record["axes"]:
        lines.append("└─ no dim has an axis")
    for place, axis in enumerate(record["axes"]):
        is_last = place == len(record["axes"]) - 1
        lines.append(f'{"└─" if is_last else "├─"} "{axis["axis"]}" on dim {axis["dim"]}')
        lead = "   " if is_last else "│  "
        steps = axis["chain"][::-1]
        lines += [f"{lead}← {step_text(step)}" for step in steps]
        lines.append(f"{lead}← {source_text(axis['source'])}")
    return "\n".join(lines)


def step_text(step: dict[str, Any]) -> str:
    """Return one step as text: the op, its line, the axis's factor and direction, the other
    tensor."""
    where = _place(step["line"])
    how = [f"factor {step['factor']}"] if step["factor"] else []
    how += [step["direction"]] if step["direction"] != "both" else []
    if step["factor"]:
        how += [f"priority {step['priority']}", f"step {step['step']}"]
    detail = f" ({', '.join(how)})" if how else ""
    return f"{step['op'].removeprefix('stablehlo.')}{where}{detail} from {step['from']}"


def source_text(source: dict[str, Any]) -> str:
    """Return a user's annotation as text, with its location."""
    name = source["label"] or source["name"]
    where = _place(source["location"], ", ")
    sharding = without_mesh(source["sharding"])
    return f"{name} {sharding} ({_WRITTEN[source['kind']]}{where})"


def _place(location: str | None, before: str = " ") -> str:
    """Return the file name, line and column of ``location``; records have the full path."""
    return before + file_line(location) if location else ""


def without_mesh(sharding: str) -> str:
    """Return ``sharding``, ``<@mesh, [...]>``, without its mesh."""
    at = sharding.find(", [")
    return sharding[at + 2 : -1] if at >= 0 else sharding


MOST_STEPS = 6
"""How many steps of a chain the tree of a collective shows; ``why(value)`` shows all."""


def collective_tree(record: dict[str, Any]) -> str:
    """Return the tree of a record of a :class:`CollectiveWhy`."""
    axes = ", ".join(f'"{axis}"' for axis in record["axes"]) or "unknown axes"
    cause = (record["cause"] or "an op").removeprefix("stablehlo.")
    where = _place(record["location"])
    lines = [f"{record['kind']} along {axes} for {cause}{where}"]
    shown: dict[tuple[str, str | None], dict[str, Any]] = {}
    for side in record["sides"]:
        # Of several tensors with an axis from one annotation, the one nearest to it.
        known = shown.setdefault((side["source"]["name"], side["axis"]), side)
        if len(side["chain"]) < len(known["chain"]):
            shown[side["source"]["name"], side["axis"]] = side
    if record["computed_whole"]:
        lines.append(f"├─ every device computes all of this {cause}: it has no way on these shards")
    if not shown:
        lines.append("├─ no annotation that requires it was found")
    for side in shown.values():
        axis = f' has "{side["axis"]}" on dim {side["dim"]}' if side["axis"] else ""
        lines.append(f"├─ {side['value']} {without_mesh(side['sharding'])}{axis}")
        steps = side["chain"][::-1]
        lines += [f"│  ← {step_text(step)}" for step in steps[:MOST_STEPS]]
        if len(steps) > MOST_STEPS:
            lines.append(f"│  ← ... {plural(len(steps) - MOST_STEPS, 'more step')}")
        lines.append(f"│  ← {source_text(side['source'])}")
    edit = record["edit"]
    if edit is None:
        return "\n".join([*lines, "└─ no edit of one annotation that was tried removes it"])
    lines.append(f"└─ {edit_text(edit)}:")
    lines.append(f"   this {record['kind']} {edit_effect(edit)}")
    return "\n".join(lines)


def edit_text(edit: dict[str, Any]) -> str:
    """Return the edit in the record of a :class:`Remedy`, as an instruction to the user."""
    sharding = without_mesh(edit["sharding"])
    if edit["line"] is not None:
        return f"write {edit['line']} at {file_line(edit['place'])}"
    if edit["place"] is not None:
        return f"constrain what {file_line(edit['place'])} makes to {sharding}"
    return f"annotate {edit['target']} with {sharding}"


def edit_effect(edit: dict[str, Any]) -> str:
    """Return the effects of the edit on its collective, the step and the peak, as text."""
    changes = (format_seconds(abs(edit["seconds"])), format_bytes(abs(edit["peak_bytes"])))
    signs = ["-" if edit[key] < 0 else "+" for key in ("seconds", "peak_bytes")]
    step, peak = (sign + text for sign, text in zip(signs, changes, strict=True))
    becomes = "becomes one of another kind" if edit["is_replaced"] else "goes"
    return f"{becomes} (step {step}, peak {peak})"
