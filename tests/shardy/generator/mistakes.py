"""Spoils the annotations of a module at one place, for verifiers to find."""

from __future__ import annotations

import re
from random import Random

AXIS = re.compile(r'(?<!= )"(\w+)"(:\(\d+\)\d+)?(?=[,}\s]|\])')
DIM = re.compile(r"\{[^{}<>=\n]*\}(p\d)?")
SHARDING = re.compile(r"<(@\w+|mesh<[^>]*>), \[[^\]\n]*\][^>\n]*>")


def spoil(rng: Random, text: str) -> str:
    """`text` with one random change, which may be no mistake at all."""
    for _ in range(10):
        made = rng.choice(CHANGES)(rng, text)
        if made is not None and made != text:
            return made
    return text


def _replace(rng: Random, text: str, pattern: re.Pattern[str], other: str) -> str | None:
    found = [match for match in pattern.finditer(text) if not _in_mesh(text, match.start())]
    if not found:
        return None
    match = rng.choice(found)
    return text[: match.start()] + other.replace("\0", match[0]) + text[match.end() :]


def _in_mesh(text: str, at: int) -> bool:
    line = text[text.rfind("\n", 0, at) + 1 : at]
    return line.startswith("sdy.mesh")


def _axis(rng: Random, text: str) -> str | None:
    names = re.findall(r'"(\w+)"=\d', text) or ["x"]
    name = rng.choice([*names, "nowhere"])
    part = rng.choice(["", "", ":(1)2", ":(2)2", ":(1)1", ":(0)2", ":(1)3", ":(2)4", ":(4)2"])
    return _replace(rng, text, AXIS, f'"{name}"{part}')


def _twice(rng: Random, text: str) -> str | None:
    return _replace(rng, text, AXIS, "\0, \0")


def _dim(rng: Random, text: str) -> str | None:
    other = ["", "{}", "{?}", "\0, \0", "\0, {}", "{}p1", "{?}p3", "{?, ?}", "{}p0"]
    return _replace(rng, text, DIM, rng.choice(other))


def _mesh(rng: Random, text: str) -> str | None:
    name = rng.choice(["@nowhere", "@mesh", "@other", "@same", "@on_three", "@main"])
    return _replace(rng, text, re.compile(r"@\w+(?=, \[)"), name)


def _trailer(rng: Random, text: str) -> str | None:
    names = re.findall(r'"(\w+)"=\d', text) or ["x"]
    axes = ", ".join(f'"{rng.choice(names)}"' for _ in range(rng.randint(1, 2)))
    key = rng.choice(["replicated", "unreduced"])
    found = list(SHARDING.finditer(text))
    if not found:
        return None
    end = rng.choice(found).end() - 1
    return f"{text[:end]}, {key}={{{axes}}}{text[end:]}"


def _drop_sharding(rng: Random, text: str) -> str | None:
    return _replace(rng, text, SHARDING, rng.choice(["\0, \0", ""]))


def _manual_axes(rng: Random, text: str) -> str | None:
    names = re.findall(r'"(\w+)"=\d', text) or ["x"]
    axes = ", ".join(f'"{name}"' for name in rng.sample(names, rng.randint(0, min(2, len(names)))))
    return _replace(rng, text, re.compile(r"manual_axes=\{[^}]*\}"), f"manual_axes={{{axes}}}")


def _rule(rng: Random, text: str) -> str | None:
    kind = rng.choice(["reduction", "need_replication", "permutation", "blocked_propagation"])
    factor = rng.choice("ijklmz")
    return _replace(rng, text, re.compile(r", custom>"), f" {kind}={{{factor}}}, custom>")


def _size(rng: Random, text: str) -> str | None:
    """In meshes and groups; the reference does not check the sizes of rules, we do."""
    found = list(re.finditer(r'(?:(?<="=)|(?<=id=))\d+(?=[,}\]> ])', text))
    if not found:
        return None
    match = rng.choice(found)
    return text[: match.start()] + rng.choice(["0", "1", "2", "3", "8"]) + text[match.end() :]


CHANGES = [
    _axis, _axis, _twice, _dim, _dim, _mesh, _trailer, _drop_sharding, _manual_axes, _rule, _size,
]  # fmt: skip
