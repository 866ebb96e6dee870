"""Custom calls with targets that frameworks use."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from shardcore.rules.partitioners import TARGET, function_called, partitioner
from shardcore.simulate import lapack
from shardcore.simulate.ragged import ragged_all_to_all
from shardcore.simulate.registry import arrays, op
from shardcore.simulate.run import Run
from shardcore.simulate.site import Kernel, Site
from shardcore.simulate.sort import approximate_top_k, largest

if TYPE_CHECKING:
    from shardcore.simulate.values import Value

__all__ = ["TARGETS"]


def _identity(site: Site) -> Kernel:
    """The operands themselves: the call is an annotation for the compiler."""

    def compute(*values: Any) -> Any:
        return values[0] if len(values) == 1 else values

    return arrays(compute)


def _top_k(site: Site) -> Kernel:
    count = site.results[0].shape[-1]
    return arrays(lambda x: largest(x, count))


def _partitioned_by_user(site: Site) -> Kernel:
    """The user's function of a ``custom_partitioning`` call, on all of its operands."""
    key = site.attributes.get("backend_config")
    known = partitioner(key) if isinstance(key, str) else None
    program = None if known is None else known.global_program()
    body = None if program is None else site.entry(program)
    if body is None:
        called = function_called(key) or "a custom_partitioning function"
        raise site.unsupported(
            f"the call of {called} cannot be simulated: its function is not known here",
            "give shardcore.jax.lower the JAX function that calls it, in this process",
        )

    def kernel(run: Run, *values: Value) -> Value:
        # The function's ops are in another module.
        inner = run if run.watch is None else replace(run, watch=None)
        found = inner.call(body, list(values))
        return found[0] if len(found) == 1 else found

    return kernel


TARGETS: dict[str, Callable[[Site], Kernel]] = {
    "Sharding": _identity,
    "annotate_device_placement": _identity,
    "MoveToDevice": _identity,
    "MoveToHost": _identity,
    "LayoutConstraint": _identity,
    "ragged_all_to_all": ragged_all_to_all,
    "xla.sdy.FuncResultSharding": _identity,
    "ApproxTopK": approximate_top_k,
    "TopK": _top_k,
    TARGET: _partitioned_by_user,
    **lapack.TARGETS,
}
"""The function that prepares a custom call, by target."""

_KERNELS = ("tpu_custom_call", "mosaic_gpu", "triton_kernel_call", "__gpu$xla.gpu.triton")
"""Prefixes of the targets of kernels that Pallas and Triton compile."""
_CALLBACKS = ("callback", "Callback")
_MANUAL = ("SPMDFullToShardShape", "SPMDShardToFullShape")


@op("stablehlo.custom_call")
def custom_call(site: Site) -> Kernel:
    """A call with a known target."""
    target = str(site.attributes["call_target_name"])
    prepare = TARGETS.get(target)
    if prepare is not None:
        return prepare(site)
    hint = "known targets are in shardcore.simulate.TARGETS, to which yours can be added"
    if target.startswith(_KERNELS):
        hint = "pallas_call(..., interpret=True) lowers to ops that can be simulated"
    elif any(word in target for word in _CALLBACKS):
        hint = "there is no host that could be called back"
    elif target in _MANUAL:
        hint = "import it first: shardcore.import_hlo_shardings makes sdy ops of it"
    raise site.unsupported(f'the custom call of "{target}" cannot be simulated', hint)
