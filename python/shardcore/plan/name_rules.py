"""Rules by name: regular expressions over paths, with the spec of the arguments that they match.

A rule has to match the whole path of an argument, ``params/layers/3/w_in``, as in ``re.fullmatch``;
the first rule that matches decides. Paths that differ in numbers only have one form. The most
common spec of a form gets a general rule; exceptions are listed by their numbers, and come first.
The last rule, ``.*``, covers all remaining paths.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import TypeVar

_Spec = TypeVar("_Spec", bound=Hashable)

EVERY = ".*"
"""The rule that matches every path."""
_MOST_STEPS = 6
"""How many first and last steps of a path a rule may name."""


def name_rules(specs: Mapping[str, _Spec], rest: _Spec) -> dict[str, _Spec]:
    """Return a few rules that give every path its spec; exceptions first, then the shortest rules.

    Args:
        specs: the spec of each path.
        rest: the spec that ``.*`` gives, if some path has it.

    >>> paths = ["layers/0/w_in", "layers/1/w_in", "layers/0/w_out", "layers/1/w_out", "step"]
    >>> name_rules(dict(zip(paths, ["column", "column", "row", "row", "none"])), "none")
    {'.*/w_in': 'column', '.*/w_out': 'row', '.*': 'none'}
    """
    forms: dict[str, dict[str, _Spec]] = defaultdict(dict)
    for path, spec in specs.items():
        forms[re.sub(r"\d+", "0", path)][path] = spec
    exceptions: dict[str, _Spec] = {}
    usual: dict[str, _Spec] = {}
    for form, members in forms.items():
        [(usual[form], _)] = Counter(members.values()).most_common(1)
        for spec in dict.fromkeys(members.values()):
            if spec != usual[form]:
                own = [path for path, other in members.items() if other == spec]
                exceptions[_listing(own)] = spec
    found: dict[str, _Spec] = {}
    for spec in dict.fromkeys(usual.values()):
        if spec != rest:
            own = [form for form, other in usual.items() if other == spec]
            others = [form for form, other in usual.items() if other != spec]
            found.update(dict.fromkeys(_covering(own, others), spec))
    last = {EVERY: rest} if rest in usual.values() else {}
    return {**_by_length(exceptions), **_by_length(found), **last}


def _by_length(rules: Mapping[str, _Spec]) -> dict[str, _Spec]:
    return dict(sorted(rules.items(), key=lambda rule: len(rule[0])))


def _listing(paths: Sequence[str]) -> str:
    """A regular expression for ``paths``, which have one form: a choice of numbers if they differ
    in one place, otherwise a choice of paths."""
    parts = [re.split(r"(\d+)", path) for path in paths]
    columns = list(zip(*parts, strict=True))
    differing = [place for place, column in enumerate(columns) if len(set(column)) > 1]
    if len(differing) != 1:
        return "|".join(map(re.escape, paths))
    numbers = "|".join(columns[differing[0]])
    return "".join(
        f"({numbers})" if place == differing[0] else re.escape(column[0])
        for place, column in enumerate(columns)
    )


def _covering(own: list[str], others: list[str]) -> Iterator[str]:
    """Regular expressions that match all of ``own`` and none of ``others``, found greedily: each
    time the one that matches most of the remaining paths, and of several the shortest."""
    matched: dict[str, frozenset[str]] = {}
    for rule in dict.fromkeys(rule for form in own for rule in _rules(form)):
        expression = re.compile(rule)
        if not any(map(expression.fullmatch, others)):
            matched[rule] = frozenset(filter(expression.fullmatch, own))
    left = set(own)
    while left:
        rule = min(matched, key=lambda each: (-len(matched[each] & left), len(each), each))
        yield rule
        left -= matched[rule]


def _rules(form: str) -> Iterator[str]:
    """Regular expressions that match paths of ``form``: by last steps, by first steps, by both, and
    by the whole path."""
    steps = [re.sub(r"\d+", lambda _: r"\d+", re.escape(step)) for step in form.split("/")]
    count = len(steps)
    for last in range(1, min(count, _MOST_STEPS)):
        tail = "/".join(steps[-last:])
        yield f".*/{tail}"
        yield f"{'/'.join(steps[:last])}/.*"
        for first in range(1, count - last):
            yield f"{'/'.join(steps[:first])}/.*/{tail}"
    yield "/".join(steps)
