"""What changed between two versions of a program: ``shardcore.diff`` and ``shardcore diff``.

==================  ============================================================================
:mod:`~.same_lines`  which line of the source is which line of the other version's
:mod:`~.shardings`   arguments, results and values that are sharded otherwise
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
    """The meshes of both, as ``sdy`` text."""
    hardware: str
    """The chip that times are for."""
    costs: Comparison
    """The figures of both, and the lines that cost more or less."""
    ports: tuple[PortChange, ...]
    """Arguments and results that are sharded otherwise."""
    values: tuple[LineShardings, ...]
    """Other values that are sharded otherwise, by line; most values come first."""
    appeared: tuple[Diagnostic, ...]
    """What a person should look at now, and not before, as annotations without effect."""
    gone: tuple[Diagnostic, ...]
    """What is mended."""
    check: Check | None
    """Whether the program is now as expected; ``None`` where nothing is expected of it."""

    @property
    def ok(self) -> bool:
        """Whether the program is as expected, or nothing is expected of it."""
        return self.check is None or self.check.ok

    def text(self, *, top: int = 10) -> str:
        """Return the report for a terminal, with at most ``top`` rows in each table."""
        from shardcore.report.console import plain_text
        from shardcore.report.diff_table import diff_parts

        return plain_text(diff_parts(self, top=top))

    def markdown(self, *, top: int = 10) -> str:
        """Return it as a few lines of Markdown, with at most ``top`` rows in each table."""
        from shardcore.report.diff_table import diff_parts
        from shardcore.report.markdown import markdown

        return markdown(diff_parts(self, top=top))

    def record(self) -> dict[str, Any]:
        """Return it as plain data; figures are in seconds, bytes and FLOPs of one device."""
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

    Lines of the source are those of ``head``; those of ``base`` are known again where the edit
    moved them.

    Args:
        base: the version that there was: a completed program, as :meth:`Module.propagate` or that
            of a lowered JAX function returns it, or a module, which is completed first.
        head: the version that there is.
        hardware: the chip that times and peak memory are for.
        policy: the policy that makes the programs of one device.
        expect: what is expected of ``head``, as :meth:`Result.check` takes it.
        progress: called with the step and the fraction of the work that is done.
        **options: other arguments of :func:`shardcore.cost`.

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
    """The result that is compared."""
    if isinstance(program, Module):
        return program.propagate()
    # That of a JAX function has it.
    result: Result = getattr(program, "result", program)
    expect_type(result, Result)
    return result


def _meshes(result: Result) -> str:
    return ", ".join(map(str, result.module.meshes.values()))


def _apart(
    before: tuple[Diagnostic, ...], after: tuple[Diagnostic, ...], lines: Mapping[str, str]
) -> tuple[tuple[Diagnostic, ...], tuple[Diagnostic, ...]]:
    """The warnings that only the second has, and those that only the first has."""
    old = {_key(each, lines): each for each in before}
    new = {_key(each, {}): each for each in after}
    return (
        tuple(each for key, each in new.items() if key not in old),
        tuple(each for key, each in old.items() if key not in new),
    )


def _key(warning: Diagnostic, lines: Mapping[str, str]) -> tuple[str, str]:
    """What a warning is known again by: names of values change with every op that is added."""
    if warning.location is None:
        return warning.code, warning.value or warning.message
    line = without_column(warning.location)
    return warning.code, lines.get(line, line)
