"""Functions traced with the scan over their layers as a pipeline.

The scan is replaced where the function calls it, before anything is differentiated: the gradient
goes through the pipeline as through the scan.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

from shardcore.jax.mistakes import mistake

_one_at_a_time = threading.Lock()


@dataclass
class Pipelined:
    """What takes the place of a scan over ``length`` layers."""

    length: int
    micro_batches: int
    run: Callable[[Any, Any, Any, Any], Any]
    """``pipelined`` of the code of a pipeline."""
    mesh: Any
    wrap: Callable[[Any], Any] | None = None
    """Makes a layer that keeps what is chosen for the backward pass."""
    is_found: bool = False

    def is_of(self, carry: Any, xs: Any, length: int | None, reverse: bool) -> bool:
        """Whether a scan is over the layers, from one activation to the next."""
        sizes = {length} - {None} | {jnp.shape(x)[0] for x in jax.tree.leaves(xs) if jnp.ndim(x)}
        is_array = hasattr(carry, "shape") and jnp.ndim(carry) > 0
        return sizes == {self.length} and xs is not None and not reverse and is_array

    def scan(self, layer: Any, carry: Any, xs: Any) -> tuple[Any, None]:
        """Return what the scan returns."""
        part = jax.lax.slice_in_dim(carry, 0, carry.shape[0] // self.micro_batches)
        first = jax.tree.map(lambda x: x[0], xs)
        made = jax.eval_shape(layer, part, first)[1]
        if jax.tree.leaves(made):
            raise mistake(
                "lowering",
                "the scan over the layers returns something of each layer",
                "a pipeline sends what one layer gives to the next alone: return (x, None)",
            )
        if self.wrap is not None:
            layer = self.wrap(layer)
        # What all layers take is given to each, so that its gradient is summed over the stages.
        _, taken = jax.closure_convert(layer, part, first)
        spread = [jnp.broadcast_to(each, (self.length, *jnp.shape(each))) for each in taken]

        def one(x: Any, given: Any) -> tuple[Any, None]:
            # Traced anew, as the axis of stages is manual here.
            inside, _ = jax.closure_convert(layer, x, given["layers"])
            return inside(x, given["layers"], *given["all"])[0], None

        self.is_found = True
        return self.run(one, carry, {"layers": xs, "all": spread}, self.mesh), None


def traced(function: Callable[[], Any], wanted: Pipelined) -> Any:
    """Return what ``function`` traces, with ``wanted`` in the place of its scan.

    Raises:
        LoweringError: it has no such scan (``lowering``).
    """
    with _replaced(wanted):
        found = function()
    if not wanted.is_found:
        raise mistake(
            "lowering",
            f"the function has no scan over {wanted.length} layers from one array to the next",
            "call jax.lax.scan by that name, from one array to the next",
        )
    return found


@contextmanager
def _replaced(wanted: Pipelined) -> Iterator[None]:
    own, thread = jax.lax.scan, threading.get_ident()

    @functools.wraps(own)
    def scan(
        f: Any, init: Any, xs: Any = None, length: int | None = None, *args: Any, **options: Any
    ) -> Any:
        is_ours = threading.get_ident() == thread and not wanted.is_found
        reverse = bool(args[0] if args else options.get("reverse", False))
        if is_ours and wanted.is_of(init, xs, length, reverse):
            return wanted.scan(f, init, xs)
        return own(f, init, xs, length, *args, **options)

    with _one_at_a_time:
        jax.lax.scan = scan
        try:
            yield
        finally:
            jax.lax.scan = own
