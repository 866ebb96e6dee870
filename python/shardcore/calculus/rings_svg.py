"""Draws the schedule of a collective on a ring as a looping animated SVG."""

from __future__ import annotations

import math
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shardcore.calculus.rings import Ring

HOP_SECONDS = 1.5
"""The duration of a hop in the animation."""
_SIZE, _RADIUS, _BOX = 520, 170, 62
_COLOURS = ("#4c78a8", "#f58518", "#54a24b", "#e45756", "#72b7b2", "#b279a2", "#9d755d", "#eeca3b")


def animation(ring: Ring) -> str:
    """Return ``ring`` as SVG: the devices, the blocks on each after each hop, and moving blocks.

    It has no script; viewers without animation show the blocks before the first hop.
    """
    steps = len(ring.held)
    length = HOP_SECONDS * steps
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_SIZE} {_SIZE}" width="{_SIZE}" '
        'font-family="sans-serif" font-size="11" text-anchor="middle">',
        f"<title>{escape(repr(ring)[1:-1])}</title>",
        f'<circle cx="{_SIZE / 2}" cy="{_SIZE / 2}" r="{_RADIUS}" fill="none" stroke="#bbb"/>',
    ]
    for device in range(ring.devices):
        parts.append(_device(ring, device))
    for step, state in enumerate(ring.held):
        parts.append(_during(step, steps, length, "".join(_labels(ring, state, step))))
    for step, sends in enumerate(ring.hops):
        for send in sends:
            text = " ".join(send.blocks)
            parts.append(_moving(ring, send.source, send.target, text, step, steps, length))
    return "\n".join([*parts, "</svg>\n"])


def _place(ring: Ring, device: float) -> tuple[float, float]:
    angle = 2 * math.pi * device / ring.devices - math.pi / 2
    return _SIZE / 2 + _RADIUS * math.cos(angle), _SIZE / 2 + _RADIUS * math.sin(angle)


def _device(ring: Ring, device: int) -> str:
    x, y = _place(ring, device)
    return (
        f'<rect x="{x - _BOX / 2:.1f}" y="{y - _BOX / 2:.1f}" rx="6" '
        f'width="{_BOX}" height="{_BOX}" '
        f'fill="#fff" stroke="#555"/>'
        f'<text x="{x:.1f}" y="{y - _BOX / 2 - 5:.1f}">device {device}</text>'
    )


def _labels(ring: Ring, state: tuple[tuple[str, ...], ...], step: int) -> list[str]:
    centre = "start" if step == 0 else f"hop {step} of {len(ring.hops)}"
    lines = [f'<text x="{_SIZE / 2}" y="{_SIZE / 2}" font-size="16">{centre}</text>']
    for device, blocks in enumerate(state):
        x, y = _place(ring, device)
        shown = list(blocks[:4]) + (["..."] if len(blocks) > 4 else [])
        for row, block in enumerate(shown):
            text = escape(block if len(block) <= 11 else block[:10] + "…")
            top = y - _BOX / 2 + 13 + 12 * row
            colour = _COLOURS[_number(block) % len(_COLOURS)]
            lines.append(f'<text x="{x:.1f}" y="{top:.1f}" fill="{colour}">{text}</text>')
    return lines


def _number(block: str) -> int:
    """The number that decides a block's colour: its own, or that of the device it is for."""
    last = block.removesuffix("*B").replace(">", "@").rsplit("@", 1)[-1]
    return int(last) if last.isdigit() else 0


def _during(step: int, steps: int, length: float, inside: str) -> str:
    """A group that is visible during one step of the animation."""
    start, end = step / steps, (step + 1) / steps
    times = [0.0, start, end] if start else [0.0, end]
    values = ["hidden", "visible", "hidden"] if start else ["visible", "hidden"]
    first = "visible" if step == 0 else "hidden"
    return (
        f'<g visibility="{first}">{inside}<animate attributeName="visibility" '
        f'calcMode="discrete" dur="{length:g}s" repeatCount="indefinite" '
        f'keyTimes="{";".join(f"{each:.4f}" for each in times)}" values="{";".join(values)}"/></g>'
    )


def _moving(
    ring: Ring, source: int, target: int, text: str, step: int, steps: int, length: float
) -> str:
    (x1, y1), (x2, y2) = _place(ring, source), _place(ring, target)
    start, end = step / steps, (step + 1) / steps
    colour = _COLOURS[_number(text.split(" ")[0]) % len(_COLOURS)]
    shown = escape(text if len(text) <= 14 else text[:13] + "…")
    times = f"0;{start:.4f};{end:.4f};1" if start else f"0;{end:.4f};1"
    points = f"{x1:.1f},{y1:.1f};" if start else ""
    path = f"{points}{x1:.1f},{y1:.1f};{x2:.1f},{y2:.1f};{x2:.1f},{y2:.1f}"
    body = (
        f'<g><circle r="9" fill="{colour}" fill-opacity="0.25"/><text y="4">{shown}</text>'
        f'<animateTransform attributeName="transform" type="translate" dur="{length:g}s" '
        f'repeatCount="indefinite" keyTimes="{times}" values="{path}"/></g>'
    )
    return _during(step, steps, length, body) if step else _during(0, steps, length, body)
