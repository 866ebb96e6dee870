"""``shardcore array``: shows the shards of an array, in every notation."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from shardcore.cli.options import print_json, print_text, shape
from shardcore.cli.where import (
    add_mesh,
    check_sizes,
    mesh_of,
    sizes_of,
)
from shardcore.errors import CalculusError
from shardcore.units import format_bytes, format_seconds, plural

if TYPE_CHECKING:
    from shardcore._core import Mesh, TensorSharding
    from shardcore.calculus.notation import NamedArray


def add(commands: Any) -> None:
    """Add the command to the parser's ``commands``."""
    parser = commands.add_parser(
        "array",
        help="show what each device holds of a sharded array, in every notation",
        description="Show the local shape, the bytes and the blocks of an array such as "
        "'A: bf16[I=1024_X, J=4096_Y]', and its sharding in every notation. It may be given in any "
        "of them: 'P(\"X\", None)', '[{\"X\"}, {}]', '{devices=[2,1,4]<=[8] "
        "last_tile_dim_replicate}'.",
    )
    parser.set_defaults(command=run)
    parser.add_argument("array", metavar="ARRAY", help="the array, e.g. 'bf16[2048_Y, 8192]'")
    add_mesh(parser, required=False)
    parser.add_argument(
        "--shape", type=shape, metavar="8x16", help="the sizes of all dims, where it has none"
    )
    parser.add_argument(
        "--hardware", metavar="NAME", help="a chip, e.g. h100: the time to read a shard from memory"
    )
    parser.add_argument("--hardware-file", metavar="FILE", help="TOML with other chips or figures")
    parser.add_argument("--blocks", action="store_true", help="show the block of every device")


def run(options: argparse.Namespace) -> int:
    """Run the command and return the exit code."""
    from shardcore.calculus.blocks import block_table
    from shardcore.calculus.spellings import parse_whole

    mesh = None if options.mesh is None else mesh_of(options)
    array, mesh, sharding = parse_whole(options.array, mesh, shape=options.shape)
    check_sizes(options, [array])
    array = array.with_sizes(sizes_of(options), options.dtype)
    record = _record(array, mesh, sharding)
    if options.hardware is not None:
        record |= _reading(array, mesh, options)
    if options.json:
        if options.blocks:
            record["blocks"] = _blocks(array, mesh)
        print_json(record)
        return 0
    _show(array, record)
    if options.blocks:
        print_text()
        print_text(block_table(array, mesh))
    return 0


def _record(array: NamedArray, mesh: Mesh, sharding: TensorSharding) -> dict[str, Any]:
    """The properties of ``array``; some need sizes or an element type."""
    record: dict[str, Any] = {"array": str(array), "mesh": dict(mesh.shape)}
    if all(dim.size is not None for dim in array.dims):
        record["shape"] = list(array.shape)
        record["local_shape"] = list(array.local_shape(mesh))
        if array.dtype is not None:
            record["bytes"] = array.bytes
            record["bytes_per_device"] = array.bytes_per_device(mesh)
            record["total_bytes"] = array.total_bytes(mesh)
    record["replication_factor"] = array.replication_factor(mesh)
    record["sdy"] = str(sharding)
    record["hlo"] = str(sharding.to_hlo())
    return {**record, **_spec(array, sharding)}


def _reading(array: NamedArray, mesh: Mesh, options: argparse.Namespace) -> dict[str, Any]:
    """The time that a device takes to read its shard from memory."""
    from shardcore.calculus.hardware import hardware

    chip = hardware(options.hardware, options.hardware_file)
    seconds = array.bytes_per_device(mesh) / chip.hbm_bytes_per_second
    return {
        "hardware": chip.name,
        "hbm_bytes_per_second": chip.hbm_bytes_per_second,
        "read_seconds": seconds,
    }


def _spec(array: NamedArray, sharding: TensorSharding) -> dict[str, Any]:
    """The sharding as a ``PartitionSpec``, and the properties that a spec cannot say."""
    from shardcore.calculus.partition_spec import to_spec

    notes = []
    if any(dim.is_open and dim.axes for dim in array.dims):
        notes.append("a PartitionSpec has no open dims with axes: these are closed")
        array = array.closed()
    if sharding.replicated or any(dim.priority is not None for dim in sharding.dims):
        notes.append("only sdy says priorities and axes that are kept replicated")
    try:
        return {"spec": str(to_spec(array)), "notes": notes}
    except CalculusError as error:
        return {"spec": None, "notes": [*notes, error.message]}


def _blocks(array: NamedArray, mesh: Mesh) -> list[dict[str, Any]]:
    from shardcore.calculus.blocks import blocks

    return [
        {
            "device": block.device,
            "coordinates": block.coordinates,
            "index": list(block.numbers),
            "slices": None
            if block.slices is None
            else [[part.start, part.stop] for part in block.slices],
        }
        for block in blocks(array, mesh)
    ]


def _show(array: NamedArray, record: dict[str, Any]) -> None:
    copies = plural(record["replication_factor"], "copy", "copies") + " of every block"
    print_text(f"array        {array}")
    if "local_shape" in record:
        local = f"{array.dtype or ''}[{', '.join(map(str, record['local_shape']))}]"
        size = f", {format_bytes(record['bytes_per_device'])}" if "bytes" in record else ""
        print_text(f"per device   {local}{size}")
    whole = f"{format_bytes(record['total_bytes'])}, " if "bytes" in record else ""
    print_text(f"all devices  {whole}{copies}")
    if "read_seconds" in record:
        rate = f"{record['hbm_bytes_per_second']:.4g} B/s"
        print_text(
            f"read         {format_seconds(record['read_seconds'], 4)} from the memory of one "
            f"{record['hardware']}, at {rate}"
        )
    print_text(f"sdy          {record['sdy']}")
    print_text(f"gspmd        {record['hlo']}")
    if record["spec"] is not None:
        print_text(f"jax          {record['spec']}")
    for note in record["notes"]:
        print_text(f"note         {note}")
