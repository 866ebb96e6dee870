"""Collectives among chips on switches: GPUs in nodes.

=================  ====================================================================
in a node          ``V * (N - 1) / (N * W)``; AllToAll ``V * (N - 1) / (N**2 * W)``
across M nodes     ``V / W_node``; AllToAll ``V * (M - 1) / (M**2 * W_node)``
=================  ====================================================================

An AllReduce is two of the first. Where the switch adds up (NVLink SHARP), a device of ``n`` in the
node sends all of V into it, and its part of the sum out to the others: ``V * (1 + 1 / n) / W``,
which ``exact`` takes where it is less. Gathers and scatters do not get shorter by that: what a
device receives or sends is the same.

Source: "How to Scale Your Model", chapter 12.
"""

from __future__ import annotations

import math

from shardcore._core import AxisRef
from shardcore.calculus.rates import Rates, TimeOptions, chunks_of, steps_of
from shardcore.calculus.topology import Topology
from shardcore.units import format_seconds


def switched(
    op: str, axes: tuple[AxisRef, ...], devices: int, topology: Topology, options: TimeOptions
) -> Rates:
    """Return the rates from which the time of ``op`` along ``axes`` follows."""
    chip = topology.hardware
    nodes, inside = topology.nodes_of(axes)
    width = chip.link_bytes_per_second * options.efficiency
    out = chip.node_bytes_per_second * options.efficiency
    times = 2 if op == "all_reduce" else 1
    links = share, formula = _in_node(op, devices, width)
    reduced = math.inf
    if chip.switch_reduces and op == "all_reduce" and inside > 1:
        reduced = (1 + 1 / inside) / width
        if options.exact and reduced < times * share:
            text = f"{{V}} B * {inside + 1}/{times * inside} / {width:.4g} B/s"
            share, formula = reduced / times, text
    network = 0.0
    if nodes > 1:
        across = _across(op, nodes, inside, out, topology, options)
        network = times * across[0]
        # In the source, traffic within nodes overlaps with that between nodes, and is not counted.
        share, formula = max(across, (share, formula)) if options.exact else across
    prefix = "2 * " if times == 2 else ""
    hops = 1 if nodes == 1 else 2
    latency = times * hops * chip.hop_seconds
    return Rates(
        devices,
        times * hops,
        times * share,
        latency,
        prefix + formula,
        f"{prefix}{hops} * {format_seconds(chip.hop_seconds, 4)}" if latency else "",
        False,
        times * share * width,
        network,
        times * links[0] if options.exact or nodes == 1 else 0.0,
        reduced,
        overlaps_network=True,
        links_steps=steps_of(op, inside),
        network_steps=steps_of(op, nodes) if nodes > 1 else 0,
        chunks=chunks_of(op, devices),
    )


def _in_node(op: str, devices: int, width: float) -> tuple[float, str]:
    """Seconds per byte over the switch of a node, and the formula."""
    if op == "permute":
        return 1 / width, f"{{V}} B / {width:.4g} B/s"
    power = 2 if op == "all_to_all" else 1
    text = f"{{V}} B * {devices - 1}/{devices}{'^2' if power == 2 else ''} / {width:.4g} B/s"
    return (devices - 1) / devices**power / width, text


def _across(
    op: str, nodes: int, inside: int, out: float, topology: Topology, options: TimeOptions
) -> tuple[float, str]:
    """Seconds per byte between nodes, and the formula."""
    share, text = 1.0, ""
    if op == "all_to_all":
        share, text = (nodes - 1) / nodes**2, f" * {nodes - 1}/{nodes}^2"
    elif options.exact and op != "permute":
        share, text = (nodes - 1) / nodes, f" * {nodes - 1}/{nodes}"
    if options.exact:
        groups = groups_of_node(inside, topology)
        if groups > 1:
            share *= groups
            text += f" * {groups} groups"
    return share / out, f"{{V}} B{text} / {out:.4g} B/s"


def groups_of_node(inside: int, topology: Topology) -> int:
    """The number of groups that share a node; each has ``inside`` devices in it."""
    devices = min(topology.hardware.node_size, topology.mesh.num_devices)
    return max(devices // inside, 1)
