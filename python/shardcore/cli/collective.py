"""``shardcore collective``: the effect of a collective on an array, and its time."""

from __future__ import annotations

import argparse
import re
from typing import TYPE_CHECKING, Any

from shardcore.cli.options import print_json, print_text, write
from shardcore.cli.where import (
    add_hardware,
    add_mesh,
    check_sizes,
    mesh_of,
    sizes_of,
    time_options,
    topology_of,
)
from shardcore.errors import VerificationError
from shardcore.units import format_bytes, format_seconds, plural

if TYPE_CHECKING:
    from shardcore._core import AxisRef, Mesh
    from shardcore.calculus.collective_time import Estimate


def add(commands: Any) -> None:
    """Add the command to the parser's ``commands``."""
    parser = commands.add_parser(
        "collective",
        help="compute the time of a collective, and its bound",
        description="Say what all_gather, reduce_scatter, all_reduce, all_to_all, permute or slice "
        "does to a sharded array, its time, and what bounds it.",
    )
    parser.set_defaults(command=run)
    parser.add_argument("op", metavar="OP", help="the collective, e.g. all_gather")
    parser.add_argument(
        "--array", required=True, metavar="ARRAY", help="the array, e.g. 'bf16[2048_Y, 8192]'"
    )
    parser.add_argument(
        "--axes",
        required=True,
        metavar="AXES",
        help="the mesh axes along which devices communicate, X,Y; X:(2)2 is the minor half of X=4",
    )
    parser.add_argument(
        "--dim", metavar="DIM", help="the dim that gets the axes, by name or by index from 0"
    )
    parser.add_argument(
        "--shift", type=int, default=1, metavar="K", help="the distance, in devices, of permute [1]"
    )
    add_mesh(parser)
    add_hardware(parser)
    parser.add_argument(
        "--by-size",
        action="store_true",
        help="add a table of times and reached bandwidth for arrays of other sizes",
    )
    parser.add_argument(
        "--ring",
        nargs="?",
        const="-",
        metavar="FILE",
        help="print what each device holds after each hop around a ring instead; to out.svg, an "
        "animation of it",
    )
    parser.add_argument(
        "--snippet", action="store_true", help="print a JAX program that runs and times it instead"
    )


def run(options: argparse.Namespace) -> int:
    """Run the command and return the exit code."""
    from shardcore.calculus.collective_time import estimate
    from shardcore.calculus.collectives import Collective, deferred, op_name, scatter_choices
    from shardcore.calculus.message_sizes import by_size
    from shardcore.calculus.notation import NamedArray
    from shardcore.calculus.rings import ring

    mesh = mesh_of(options)
    op = op_name(options.op)
    array = NamedArray.parse(options.array, mesh, filename="<array>")
    check_sizes(options, [array])
    array = array.with_sizes(sizes_of(options), options.dtype)
    axes = _axes(options.axes, mesh)
    topology, how = topology_of(options, mesh), time_options(options)
    collective = Collective.of(op, array, axes, dim=options.dim, mesh=mesh, shift=options.shift)
    if options.snippet:
        from shardcore.calculus.snippets import snippet

        print_text(snippet(collective, mesh), end="")
        return 0
    found = estimate(collective, topology, how)
    if options.ring is not None:
        schedule = ring(op, found.rates.devices, both_ways=not options.one_way)
        if options.ring == "-":
            print_text(schedule)
        else:
            write(options.ring, schedule.svg())
        return 0
    record = {**found.record(mesh), "mesh": dict(mesh.shape), "hardware": topology.hardware.name}
    if op in ("reduce_scatter", "slice", "all_to_all") and options.dim is None:
        results = (
            Collective.of(op, array, axes, dim=index, mesh=mesh).result
            for index in scatter_choices(array, axes, mesh)
            if op != "all_to_all" or not set(array.dims[index].axes) & set(axes)
        )
        record["choices"] = [str(result) for result in results]
    if op == "all_reduce":
        parts = deferred(collective.array, axes, dim=options.dim, mesh=mesh)
        record["deferred"] = [
            {"op": part.op, "result": str(part.result), "seconds": each.seconds}
            for part, each in ((part, estimate(part, topology, how)) for part in parts)
        ]
    if options.by_size:
        record["by_size"] = [row.record() for row in by_size(found, topology)]
    if options.json:
        print_json(record)
    else:
        _show(found, record)
    return 0


def _axes(text: str, mesh: Mesh) -> list[AxisRef]:
    """The axes in ``X,Y``, ``XY`` or ``X:(2)2``."""
    from shardcore.calculus.axes import axis_ref
    from shardcore.calculus.mistakes import choices, mistake
    from shardcore.calculus.notation_parser import split_axes

    found: list[AxisRef] = []
    for word in re.finditer(r"[^,\s]+", text):
        part = axis_ref(word[0])
        axes = [word[0]] if not part.is_full else split_axes(word[0], mesh)
        if axes is None:
            raise mistake(
                VerificationError,
                "unknown-axis",
                f'the mesh has no axis "{word[0]}"',
                hint=choices(word[0], mesh.axis_names),
                text=text,
                span=word.span(),
                filename="<axes>",
            )
        found += map(axis_ref, axes)
    return found


def _show(found: Estimate, record: dict[str, Any]) -> None:
    rates = found.rates
    print_text(found.collective)
    print_text(f"time       {format_seconds(found.seconds, 4)}, bound by {found.bound}")
    print_text(f"           {found.formula}")
    print_text(
        f"bandwidth  {format_seconds(found.bandwidth_seconds, 4)} for {format_bytes(found.bytes)}; "
        f"a device sends {format_bytes(found.wire_bytes)}"
    )
    shape = "with wrap-around" if rates.wraparound else "without wrap-around"
    print_text(
        f"latency    {format_seconds(found.latency_seconds, 4)} for {plural(rates.hops, 'hop')} "
        f"among {plural(rates.devices, 'device')}, {shape}"
    )
    if found.latency_seconds:
        print_text(
            f"           longer than the bandwidth allows below {found.threshold_bytes:.4g} B"
        )
    if found.reached != 1:
        print_text(
            f"achieved   {format_seconds(found.achieved_seconds, 4)}, as messages of this size "
            f"reach {found.reached:.0%} of the bandwidth"
        )
    print_text(f"transpose  {found.collective.transpose}")
    for choice in record.get("choices", ())[1:]:
        print_text(f"or         {choice}")
    for part in record.get("deferred", ()):
        print_text(
            f"deferred   {part['op']}: {format_seconds(part['seconds'], 4)}, {part['result']}"
        )
    for row in record.get("by_size", ()):
        print_text(
            f"{format_bytes(row['bytes']):>10} {format_seconds(row['achieved_seconds'], 4):>10} "
            f"{format_bytes(row['bytes_per_second']):>10}/s {row['reached']:>5.0%}"
        )
    for note in record["notes"]:
        print_text(f"note       {note}")
