"""What a plan does not decide: ports that Shardy and XLA, or the next step, have otherwise."""

from __future__ import annotations

from shardcore import Plan, Port, Result
from shardcore.plan.roles import donated


def unlike(plan: Plan) -> list[tuple[Port, Port]]:
    """Ports of a plan that XLA completes otherwise, and arguments that are donated to results with
    another sharding."""
    result: Result = plan.session._propagated()
    in_xla = result._as_xla(False)[0]
    pairs = [
        *zip(result.arguments(), in_xla.arguments(), strict=True),
        *zip(result.results(), in_xla.results(), strict=True),
    ]
    for ports in (result, in_xla):
        results = ports.results()
        pairs += [
            (port, results[number])
            for port in ports.arguments()
            if (number := donated(port)) is not None
        ]
    return [(one, other) for one, other in pairs if _axes(one) != _axes(other)]


def _axes(port: Port) -> list[list[str]]:
    dims = [list(map(str, dim.axes)) for dim in port.sharding.dims] if port.sharding else []
    return dims if any(dims) else []
