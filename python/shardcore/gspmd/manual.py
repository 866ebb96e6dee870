"""Manual bodies: calls between ``@SPMDFullToShardShape`` and ``@SPMDShardToFullShape``.

GSPMD has a manual body as a function that is called with shards; Shardy has it as a region. The
function's lines move into a ``sdy.manual_computation``, under names of their own.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Protocol

from shardcore.gspmd.annotations import CustomCall, custom_call, depth

if TYPE_CHECKING:
    from shardcore.errors import ShardcoreError

__all__ = ["Meaning", "inline_bodies"]

_CALL = re.compile(
    r"(?P<indent>\s*)%(?P<result>[\w$.-]+)(?::(?P<count>[0-9]+))? = (?:func\.)?call "
    r"@\"?(?P<callee>[^\"(]+)\"?\((?P<operands>[^()]*)\)"
)
_CONSTRAINT = re.compile(r"\s*%([\w$.-]+) = sdy\.sharding_constraint %([\w$.#-]+) (<.*>) : ")
_HEAD = re.compile(r"\s*func\.func (?:\w+ )?@\"?([^\"(]+)\"?\((.*)$")
_ARGUMENT = re.compile(r"%([\w$.-]+): (tensor<[^>]*(?:<[^>]*>[^>]*)?>)")
_NAME = re.compile(r"%([\w$.-]+(?:#[0-9]+)?)")


class Meaning(Protocol):
    """What the importer knows of the calls."""

    def text_of(self, call: CustomCall) -> str:
        """Return the sharding of a call as ``sdy`` text."""

    def region(self, call: CustomCall) -> tuple[str, ...]:
        """Return the manual axes, quoted, of the body that ``call`` starts."""

    def refused(self, call: CustomCall, message: str) -> ShardcoreError:
        """Return the error of a call that makes no sense."""


def inline_bodies(lines: list[str], meaning: Meaning) -> list[str]:
    """Replace the calls of manual bodies by manual computations."""
    if not any("@SPMD" in line for line in lines):
        return lines
    functions = _functions(lines)
    module = _Module({name: lines[start:end] for name, (start, end) in functions.items()}, meaning)
    done: list[str] = []
    at = 0
    for name, (start, end) in functions.items():
        done += lines[at:start]
        done += module.converted(name)
        at = end
    done += lines[at:]
    return module.without_unused(done)


def _functions(lines: list[str]) -> dict[str, tuple[int, int]]:
    """Return the first line of each function, and the line after its last."""
    found: dict[str, tuple[int, int]] = {}
    at = 0
    while at < len(lines):
        head = _HEAD.match(lines[at])
        end = at + 1
        if head and lines[at].endswith("{"):
            opened = depth(lines[at])
            while opened > 0:
                opened += depth(lines[end])
                end += 1
            found[head[1]] = (at, end)
        at = end
    return found


class _Module:
    def __init__(self, bodies: dict[str, list[str]], meaning: Meaning) -> None:
        self.bodies = bodies
        self.meaning = meaning
        self.done: dict[str, list[str]] = {}
        self.inlined: list[str] = []

    def converted(self, name: str) -> list[str]:
        """Return the lines of a function, with manual computations in it."""
        if name not in self.done:
            # A function that calls itself stays as it is, and is refused when it propagates.
            self.done[name] = self.bodies[name]
            self.done[name] = _Function(self.bodies[name], self).lines()
        return self.done[name]

    def without_unused(self, lines: list[str]) -> list[str]:
        """Drop the private functions that are regions now and called no more."""
        for name in self.inlined:
            calls = sum(f"@{name}(" in line or f'@"{name}"(' in line for line in lines)
            at = _functions(lines).get(name)
            if at and calls == 1 and "func.func private" in lines[at[0]]:
                lines = lines[: at[0]] + lines[at[1] :]
        return lines


class _Function:
    def __init__(self, lines: list[str], module: _Module) -> None:
        self.source = lines
        self.module = module
        self.calls = {call.result: call for call in map(custom_call, lines) if call}
        matches = (_CONSTRAINT.match(line) for line in lines)
        self.constraints = {m[1]: (m[2], m[3]) for m in matches if m}
        names = (name for line in lines for name in _NAME.findall(line))
        self.uses: dict[str, int] = {}
        for name in names:
            self.uses[name] = self.uses.get(name, 0) + 1
        self.alias: dict[str, str] = {}
        self.dropped: set[str] = set()

    def lines(self) -> list[str]:
        regions = {at: match for at, line in enumerate(self.source) if (match := self._body(line))}
        made = {at: self._region(match, at) for at, match in regions.items()}
        for call in self.calls.values():
            if call.target == "Sharding":
                self._alias(call.result, call.operand)
            elif call.result not in self.dropped:
                message = f"@{call.target} without the call of a manual body"
                raise self.module.meaning.refused(call, message)
        done: list[str] = []
        for at, line in enumerate(self.source):
            if at in made:
                done += map(self._renamed, made[at])
                continue
            result = _NAME.match(line.strip())
            if result is None or result[1] not in self.dropped:
                done.append(self._renamed(line))
        return done

    def _alias(self, result: str, operand: str) -> None:
        self.alias[result] = operand
        self.dropped.add(result)

    def _renamed(self, line: str) -> str:
        def name(match: re.Match[str]) -> str:
            found = match[1]
            while found in self.alias:
                found = self.alias[found]
            return f"%{found}"

        return _NAME.sub(name, line)

    def _body(self, line: str) -> re.Match[str] | None:
        """Return the match of a call whose operands are shards."""
        match = _CALL.match(line)
        if match is None or match["callee"] not in self.module.bodies:
            return None
        operands = [self.calls.get(name) for name in _NAME.findall(match["operands"])]
        shards = [op is not None and op.target == "SPMDFullToShardShape" for op in operands]
        return match if shards and all(shards) else None

    def _input(self, call: CustomCall) -> tuple[str, str]:
        """Return the whole tensor that a shard is of, and how it is sharded."""
        self.dropped.add(call.result)
        constraint = self.constraints.get(call.operand)
        if constraint is None:
            message = "the tensor that is cut into shards has no @Sharding call in front"
            raise self.module.meaning.refused(call, message)
        if self.uses[call.operand] == 2:
            self._alias(call.operand, constraint[0])
        return call.operand, constraint[1]

    def _output(self, name: str) -> CustomCall | None:
        """Return the call that makes a whole tensor of the body's result ``name``."""
        names = {name}
        for call in self.calls.values():
            if call.target == "Sharding" and call.operand in names:
                names.add(call.result)
        for result, (operand, _) in self.constraints.items():
            if operand in names:
                names.add(result)
                self.dropped.add(result)
        for call in self.calls.values():
            if call.target == "SPMDShardToFullShape" and call.operand in names:
                self._alias(call.result, name)
                return call
        return None

    def _region(self, match: re.Match[str], at: int) -> list[str]:
        meaning = self.module.meaning
        shards = [self.calls[name] for name in _NAME.findall(match["operands"])]
        inputs = [self._input(call) for call in shards]
        count = int(match["count"] or 1)
        many = match["count"] is not None
        names = [f"{match['result']}#{i}" if many else match["result"] for i in range(count)]
        outputs = [call for call in map(self._output, names) if call]
        if len(outputs) != count:
            message = f"{count - len(outputs)} results of the manual body stay shards"
            raise meaning.refused(shards[0], message)
        self.module.inlined.append(match["callee"])
        body = self.module.converted(match["callee"])
        head = _HEAD.match(body[0])
        given = _ARGUMENT.findall(head[2].split(") -> ")[0]) if head else []
        own = f"m{at}_"
        arguments = ", ".join(f"%{own}{name}: {type_}" for name, type_ in given)
        types = [call.type for call in outputs]
        results = types[0] if count == 1 else f"({', '.join(types)})"
        return [
            f"{match['indent']}%{match['result']}{f':{count}' if many else ''} = "
            f"sdy.manual_computation({', '.join(f'%{name}' for name, _ in inputs)}) "
            f"in_shardings=[{', '.join(said for _, said in inputs)}] "
            f"out_shardings=[{', '.join(map(meaning.text_of, outputs))}] "
            f"manual_axes={{{', '.join(meaning.region(shards[0]))}}} ({arguments}) {{",
            *(_NAME.sub(rf"%{own}\1", _returning(line)) for line in body[1:-1]),
            f"{match['indent']}}} : ({', '.join(call.operand_type for call in shards)}) "
            f"-> {results}",
        ]


def _returning(line: str) -> str:
    return re.sub(r"^\s*(?:func\.)?return\b", "    sdy.return", line)
