"""``shardcore array``: what devices hold of a sharded array."""

from __future__ import annotations

import argparse
from typing import Any

from shardcore.cli.where import add_mesh, bytes_text, mesh_of, print_json, sizes_of


def add(commands: Any) -> None:
    """Add the command to the parser's ``commands``."""
    parser = commands.add_parser(
        "array",
        help="show what each device holds of a sharded array",
        description="Show the local shape, the bytes and the blocks of an array such as "
        "'A: bf16[I=1024_X, J=4096_Y]'.",
    )
    parser.set_defaults(command=run)
    parser.add_argument("array", metavar="ARRAY", help="the array, e.g. 'bf16[2048_Y, 8192]'")
    add_mesh(parser)
    parser.add_argument("--blocks", action="store_true", help="show the block of every device")


def run(options: argparse.Namespace) -> int:
    """Run the command and return the exit code."""
    from shardcore.calculus.blocks import block_table, blocks
    from shardcore.calculus.notation import NamedArray
    from shardcore.calculus.partition_spec import to_spec

    mesh = mesh_of(options)
    array = NamedArray.parse(options.array, mesh, filename="<array>")
    array = array.with_sizes(sizes_of(options), options.dtype)
    record: dict[str, Any] = {
        "array": str(array),
        "mesh": dict(mesh.shape),
        "shape": list(array.shape),
        "local_shape": list(array.local_shape(mesh)),
        "bytes": array.bytes,
        "bytes_per_device": array.bytes_per_device(mesh),
        "total_bytes": array.total_bytes(mesh),
        "replication_factor": array.replication_factor(mesh),
        "sdy": str(array.to_sharding(mesh)),
    }
    if not any(dim.is_open and dim.axes for dim in array.dims) and ":(" not in str(array):
        record["spec"] = str(to_spec(array))
    if options.json:
        if options.blocks:
            record["blocks"] = [
                {
                    "device": block.device,
                    "coordinates": block.coordinates,
                    "index": list(block.numbers),
                    "slices": [[part.start, part.stop] for part in block.slices or ()],
                }
                for block in blocks(array, mesh)
            ]
        print_json(record)
        return 0
    local = ", ".join(map(str, record["local_shape"]))
    print(f"array        {array}")
    print(f"per device   {array.dtype or ''}[{local}], {bytes_text(record['bytes_per_device'])}")
    print(
        f"all devices  {bytes_text(record['total_bytes'])}, "
        f"{record['replication_factor']} copies of every block"
    )
    print(f"sdy          {record['sdy']}")
    if "spec" in record:
        print(f"jax          {record['spec']}")
    if options.blocks:
        print()
        print(block_table(array, mesh))
    return 0
