"""The text that ``shardcore doctor`` prints, to be pasted into an issue."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from shardcore.controls import in_lines
from shardcore.diagnose.known_issues import KNOWN_ISSUES
from shardcore.errors import folded
from shardcore.labels import file_line
from shardcore.units import format_bytes, format_seconds, plural
from shardcore.why.text import edit_effect, edit_text, without_mesh


def doctor_text(record: Mapping[str, Any]) -> str:
    """Return the record of :func:`shardcore.diagnose.doctor.checkup` as text."""
    record = in_lines(record)
    sections = (_head(record), _diagnostics(record), _collectives(record), _xla(record))
    return "\n\n".join("\n".join(section) for section in sections)


def _head(record: Mapping[str, Any]) -> Iterable[str]:
    versions = ", ".join(f"{name} {version}" for name, version in record["versions"].items())
    program, cost = record["program"], record["cost"]
    rules = "; with rules given at run time" if record["registered_rules"] else ""
    name = file_line(program["name"])
    yield f"{name}: {plural(len(record['diagnostics']), 'diagnostic')}"
    yield f"  versions  {versions}; Shardy of jaxlib {record['shardy']}{rules}"
    yield (
        f"  program   {plural(program['ops'], 'op')}, {plural(program['arguments'], 'argument')} "
        f"({program['sharded_arguments']} sharded), {plural(program['results'], 'result')}"
    )
    for mesh, axes in record["meshes"].items():
        yield f"  mesh      @{mesh} = {axes}"
    step, lower, upper = (
        format_seconds(cost[f"step_seconds{end}"]) for end in ("", "_lower", "_upper")
    )
    yield (
        f"  cost      on {cost['hardware']}: step {step}, between {lower} and {upper}; peak "
        f"{format_bytes(cost['peak_bytes'])} of {format_bytes(cost['hbm_bytes'])}; "
        f"{plural(cost['collectives'], 'collective')}, {format_bytes(cost['wire_bytes'])} sent"
    )


def _diagnostics(record: Mapping[str, Any]) -> Iterable[str]:
    rows = record["diagnostics"]
    yield "what to look at" if rows else "what to look at: nothing"
    for row in rows:
        yield f"  {row['code']}: {row['message']}{_at(row['location'])}"
        if row["hint"]:
            yield f"    {row['hint']}"
        follows = row.get("follows", ())
        shown, left = folded([each["code"] for each in follows])
        for each in (follows[index] for index in shown):
            yield f"    from it follows {each['code']}: {each['message']}{_at(each['location'])}"
        if left:
            yield f"    from it follows {left}"


def _collectives(record: Mapping[str, Any]) -> Iterable[str]:
    rows = record["collectives"]
    yield "collectives that take longest" if rows else "collectives that take longest: none"
    for row in rows:
        axes = ", ".join(f'"{axis}"' for axis in row["axes"]) or "unknown axes"
        cause = (row["cause"] or "an op").removeprefix("stablehlo.")
        times = f" in {row['count']} runs" if row["count"] > 1 else ""
        yield (
            f"  {row['kind']} along {axes} for {cause}{_at(row['location'])}: "
            f"{format_bytes(row['total_bytes'])}{times}, {format_seconds(row['total_seconds'])}"
        )
        names = [
            f"{source['label'] or source['name']} {without_mesh(source['sharding'])}"
            for source in row["annotations"]
        ]
        if names:
            yield f"    because of {' and '.join(names)}"
        edit = row["edit"]
        if edit is None:
            yield "    no edit of one annotation that was tried removes it"
            continue
        yield f"    {edit_text(edit)}: it {edit_effect(edit)}"


def _xla(record: Mapping[str, Any]) -> Iterable[str]:
    rows = record["xla"]
    kinds = plural(len(KNOWN_ISSUES), "kind")
    title = "where XLA is known to be wrong"
    yield title if rows else f"{title}: none of the {kinds} that are known"
    for row in rows:
        more = f" and {row['count'] - 1} more" if row["count"] > 1 else ""
        yield f"  {row['value']}{more}{_at(row['location'])}: {row['effect']}"
        yield f"    {row['issue']}, seen with jaxlib {' and '.join(row['versions'])}"


def _at(location: str | None) -> str:
    return f" at {file_line(location)}" if location else ""
