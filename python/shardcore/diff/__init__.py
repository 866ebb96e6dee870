"""What changed between two versions of a program: ``shardcore.diff`` and ``shardcore diff``.

==================  ============================================================================
:mod:`~.same_lines`  matches source lines of the two versions
:mod:`~.shardings`   arguments, results and values with other shardings
==================  ============================================================================

Costs are compared by :mod:`shardcore.costs.compare`, expectations by :mod:`shardcore.expect`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from os import PathLike
from typing import TYPE_CHECKING, Any

from shardcore._core import Module, Result
from shardcore.costs.compare import Comparison, compare
from shardcore.diagnose import diagnostics
from shardcore.diff.same_lines import same_lines
from shardcore.diff.shardings import LineShardings, PortChange, line_shardings, port_changes
from shardcore.expected import expect as expect_type
from shardcore.labels import without_column

if TYPE_CHECKING:
    from shardcore.calculus.hardware import Hardware
    from shardcore.errors import Diagnostic
    from shardcore.expect import Check

__all__ = ["Diff", "LineShardings", "PortChange", "diff"]


@dataclass(frozen=True)
class Diff:
    """What changed between two versions of a program. ``str()`` is a report for a terminal,
    :meth:`markdown` one for a pull request."""

    names: tuple[str, str]
    """The names of both programs."""
    meshes: tuple[str, str]
    """The meshes of both programs, as ``sdy`` text."""
    hardware: str
    """The chip of the times."""
    costs: Comparison
    """The figures of both programs, and the lines whose cost changed."""
    ports: tuple[PortChange, ...]
    """Arguments and results with changed shardings."""
    values: tuple[LineShardings, ...]
    """Other values with changed shardings, by line; lines with most values come first."""
    appeared: tuple[Diagnostic, ...]
    """Diagnostics that only ``head`` has, such as annotations without effect."""
    gone: tuple[Diagnostic, ...]
    """Diagnostics that only ``base`` has."""
    check: Check | None
    """Whether ``head`` meets its expectations; ``None`` if there are none."""

    @property
    def ok(self) -> bool:
        """Whether ``head`` meets its expectations, or has none."""
        return self.check is None or self.check.ok

    def text(self, *, top: int = 10) -> str:
        """Return the report for a terminal, with at most ``top`` rows in each table."""
        from shardcore.report.console import plain_text
        from shardcore.report.diff_table import diff_parts

        return plain_text(diff_parts(self, top=top))

    def markdown(self, *, top: int = 10) -> str:
        """Return the report as a few lines of Markdown, with at most ``top`` rows in each table."""
        from shardcore.report.diff_table import diff_parts
        from shardcore.report.markdown import markdown

        return markdown(diff_parts(self, top=top))

    def record(self) -> dict[str, Any]:
        """Return everything as plain data; figures are in seconds, bytes and FLOPs of one
        device."""
        return {
            "names": {"before": self.names[0], "after": self.names[1]},
            "meshes": {"before": self.meshes[0], "after": self.meshes[1]},
            "hardware": self.hardware,
            "costs": self.costs.record(),
            "ports": [row.record() for row in self.ports],
            "values": [row.record() for row in self.values],
            "appeared": [each.record() for each in self.appeared],
            "gone": [each.record() for each in self.gone],
            "check": None if self.check is None else {"ok": self.check.ok, **asdict(self.check)},
            "ok": self.ok,
        }

    def _repr_html_(self) -> str:
        from shardcore.report.diff_table import diff_parts
        from shardcore.report.html import parts_html

        return parts_html(diff_parts(self))

    def __str__(self) -> str:
        return self.text()


def diff(
    base: Any,
    head: Any,
    hardware: str | Hardware = "tpu-v5p",
    policy: str = "xla",
    *,
    expect: str | PathLike[str] | Mapping[str, Any] | None = None,
    progress: Callable[[str, float], object] | None = None,
    **options: Any,
) -> Diff:
    """Return what changed from ``base`` to ``head``, two versions of a program.

    Lines are those of ``head``; lines of ``base`` are recognized where the edit moved them.

    Args:
        base: the old version: a propagated program, as :meth:`Module.propagate` or a lowered JAX
            function's ``propagate`` returns it, or a module, which is propagated first.
        head: the new version.
        hardware: the chip for times and peak memory.
        policy: the policy that makes the per-device programs.
        expect: the expectations for ``head``, as :meth:`Result.check` takes them.
        progress: called with the current step and the fraction done.
        **options: other options of :func:`shardcore.cost`.

    Raises:
        ExpectationError: the expectations are malformed.
        OSError: the file of expectations cannot be read.
        ShardcoreError: as for :func:`shardcore.cost`.
    """
    tell = progress or (lambda step, fraction: None)
    before, after = (_completed(program) for program in (base, head))
    tell("costs", 0.1)
    lines = same_lines(before, after)
    old, new = (result.cost(hardware, policy, **options) for result in (before, after))
    tell("diagnostics", 0.3)
    warned = diagnostics(before, old.hardware, cost=old)
    tell("diagnostics", 0.6)
    appeared, gone = _apart(warned, diagnostics(after, new.hardware, cost=new), lines)
    tell("shardings", 0.9)
    return Diff(
        names=(before.module.filename, after.module.filename),
        meshes=(_meshes(before), _meshes(after)),
        hardware=new.hardware.name,
        costs=compare(old, new, lines=lines),
        ports=tuple(port_changes(before, after)),
        values=tuple(line_shardings(before, after, lines)),
        appeared=appeared,
        gone=gone,
        check=None if expect is None else after.check(expect),
    )


def _completed(program: Any) -> Result:
    """The propagation result of ``program``."""
    if isinstance(program, Module):
        return program.propagate()
    # A ``JaxResult`` contains one.
    result: Result = getattr(program, "result", program)
    expect_type(result, Result)
    return result


def _meshes(result: Result) -> str:
    return ", ".join(map(str, result.module.meshes.values()))


def _apart(
    before: tuple[Diagnostic, ...], after: tuple[Diagnostic, ...], lines: Mapping[str, str]
) -> tuple[tuple[Diagnostic, ...], tuple[Diagnostic, ...]]:
    """The warnings that only ``after`` has, and those that only ``before`` has."""
    old = {_key(each, lines): each for each in before}
    new = {_key(each, {}): each for each in after}
    return (
        tuple(each for key, each in new.items() if key not in old),
        tuple(each for key, each in old.items() if key not in new),
    )


def _key(warning: Diagnostic, lines: Mapping[str, str]) -> tuple[str, str]:
    """A key that identifies a warning in both versions; names of values change with every added
    op."""
    if warning.location is None:
        return warning.code, warning.value or warning.message
    line = without_column(warning.location)
    return warning.code, lines.get(line, line)
