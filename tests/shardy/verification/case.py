"""One op in generic form, taken apart so that each part can be changed."""

from __future__ import annotations

from dataclasses import dataclass, field

MOST = 12
"""Operands beyond this are not named one by one."""


@dataclass(frozen=True)
class Region:
    """A region of one block: the types of its arguments, its ops, and what it returns.

    Arguments are called ``%x0``, ``%x1``; what is returned is given by name and type.
    """

    args: tuple[str, ...] = ()
    ops: tuple[str, ...] = ()
    returned: tuple[tuple[str, str], ...] = ()
    terminator: str = "stablehlo.return"
    more: str = ""
    """Further blocks."""
    is_empty: bool = False

    def text(self, number: int) -> str:
        if self.is_empty:
            return "{}"
        scope = f"%r{number}x"
        args = ", ".join(f"{scope}{at}: {ty}" for at, ty in enumerate(self.args))
        names = ", ".join(name for name, _ in self.returned)
        types = ", ".join(ty for _, ty in self.returned)
        lines = [f"  ^bb0({args}):" if args else "  ^bb0:"]
        lines += [f"    {op}" for op in self.ops]
        if self.terminator:
            lines.append(f'    "{self.terminator}"({names}) : ({types}) -> ()')
        body = "\n".join(lines + ([self.more] if self.more else []))
        return "{\n" + body.replace("%x", scope) + "\n  }"


@dataclass(frozen=True)
class Case:
    """An op: its name, types, attributes and regions. ``constants`` are operands of known value."""

    name: str
    operands: tuple[str, ...] = ()
    results: tuple[str, ...] = ()
    attributes: dict[str, str] = field(default_factory=dict)
    regions: tuple[Region, ...] = ()
    constants: dict[int, str] = field(default_factory=dict)
    as_properties: bool = False
    more: str = ""
    """Further functions."""

    def text(self) -> str:
        """A module around the op."""
        args = ", ".join(
            f"%a{at}: {ty}" for at, ty in enumerate(self.operands) if at not in self.constants
        )
        lines = [f"func.func @f({args}) {{"]
        for at, value in self.constants.items():
            if at < len(self.operands):
                ty = self.operands[at]
                lines.append(
                    f'  %a{at} = "stablehlo.constant"() {{value = {value} : {ty}}} : () -> {ty}'
                )
        lines.append("  " + self.op())
        return "\n".join([*lines, "  return", "}", self.more])

    def op(self) -> str:
        names = ", ".join(f"%a{at}" for at in range(len(self.operands)))
        named = f"%r:{len(self.results)} = " if self.results else ""
        pairs = ", ".join(
            name if value == "unit" else f"{name} = {value}"
            for name, value in self.attributes.items()
        )
        regions = ", ".join(region.text(at) for at, region in enumerate(self.regions))
        properties = f" <{{{pairs}}}>" if pairs and self.as_properties else ""
        attributes = f" {{{pairs}}}" if pairs and not self.as_properties else ""
        types = f"({', '.join(self.operands)}) -> ({', '.join(self.results)})"
        body = f" ({regions})" if regions else ""
        return f'{named}"{self.name}"({names}){properties}{body}{attributes} : {types}'
