"""Exchange of slices with dynamic offsets and sizes: JAX's custom call ``ragged_all_to_all``."""

from __future__ import annotations

import numpy as np

from shardcore.simulate.dtypes import wide
from shardcore.simulate.groups import Groups
from shardcore.simulate.run import Run
from shardcore.simulate.site import Kernel, Site
from shardcore.simulate.values import Array, spread

__all__ = ["ragged_all_to_all"]


def ragged_all_to_all(site: Site) -> Kernel:
    """Each device sends a slice of its operand to each device of its group, which writes it into
    its output.

    The sender knows the slice's offset in its operand, its size, and its offset in the receiver's
    output; the receiver knows the size that it expects.
    """
    options = site.options()
    listed = [[int(device) for device in group] for group in options["replica_groups"]]
    groups = Groups(site, listed, int(options.get("channel_id", 0)), across_both=False)

    def kernel(run: Run, *operands: Array) -> Array:
        count = len(run.devices)
        operand, output, *numbers = (spread(x, count) for x in operands)
        starts, sizes, targets, received = (wide(x).astype(np.int64) for x in numbers)
        found = np.array(output)
        for group in groups.rows(run):
            slices = starts.shape[1] // len(group)
            for at, sender in enumerate(group):
                for number, place in enumerate(np.repeat(group, slices)):
                    own = at * slices + number % slices
                    length = sizes[sender, number]
                    if length != received[place, own]:
                        message = (
                            f"device {run.devices[sender]} sends {length} rows to device "
                            f"{run.devices[place]}, which expects {received[place, own]}"
                        )
                        raise site.error("invalid-op", message, None)
                    start, target = starts[sender, number], targets[sender, number]
                    part = operand[sender, start : start + length]
                    found[place, target : target + length] = part
        return found

    return kernel
