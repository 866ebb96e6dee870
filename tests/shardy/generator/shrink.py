"""Makes a module that the engines treat differently small, by edits of its ops and annotations."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from jaxlib.mlir import ir

from tests.shardy import reference

Edit = Callable[[ir.Module], bool]
"""Changes a module in place; false if there is nothing to change."""


def shrink(text: str, is_interesting: Callable[[str], bool], rounds: int = 4) -> str:
    """The smallest module found that is still interesting."""
    for _ in range(rounds):
        before = text
        for edit in list(_edits(text)):
            smaller = _apply(text, edit)
            if smaller is not None and smaller != text and is_interesting(smaller):
                text = smaller
        if text == before:
            break
    return text


def _apply(text: str, edit: Edit) -> str | None:
    with reference.context(), ir.Location.unknown():
        try:
            module = ir.Module.parse(text)
            if edit(module) and module.operation.verify():
                return str(module)
        except (ir.MLIRError, ValueError, IndexError, RuntimeError):
            pass
    return None


def _edits(text: str) -> Iterator[Edit]:
    """Edits by the position of an op from the end, so that those to come keep their meaning."""
    with reference.context():
        module = ir.Module.parse(text)
        _, *ops = reference.walk(module.operation)
        counts = [len(op.results) for op in ops]
        names = [list(op.attributes) for op in ops]
    total = len(ops)
    for at in reversed(range(total)):
        for result in range(counts[at]):
            yield lambda module, at=at, result=result: _bypass(module, at - total, result)
        yield lambda module, at=at: _erase(module, at - total)
        for name in names[at]:
            if name.startswith("sdy."):
                yield lambda module, at=at, name=name: _drop(module, at - total, name)
            elif name in ("arg_attrs", "res_attrs"):
                yield lambda module, at=at, name=name: _drop(module, at - total, name)
                for entry in range(9):
                    yield lambda module, at=at, name=name, entry=entry: _drop_entry(
                        module, at - total, name, entry
                    )


def _op(module: ir.Module, at: int) -> ir.Operation:
    _, *ops = reference.walk(module.operation)
    return ops[at]


def _bypass(module: ir.Module, at: int, result: int) -> bool:
    """Lets the users of a result use an operand or a block argument of its type instead."""
    op = _op(module, at)
    value = op.results[result]
    block = op.block
    candidates = [*op.operands, *(block.arguments if block else [])]
    for candidate in candidates:
        if candidate.type == value.type and candidate != value:
            value.replace_all_uses_with(candidate)
            return True
    return False


def _erase(module: ir.Module, at: int) -> bool:
    op = _op(module, at)
    if any(list(result.uses) for result in op.results) or op.name.endswith(("return", "func")):
        return False
    op.erase()
    return True


def _drop(module: ir.Module, at: int, name: str) -> bool:
    op = _op(module, at)
    if name not in op.attributes:
        return False
    del op.attributes[name]
    return True


def _drop_entry(module: ir.Module, at: int, name: str, entry: int) -> bool:
    op = _op(module, at)
    if name not in op.attributes:
        return False
    entries = list(ir.ArrayAttr(op.attributes[name]))
    if entry >= len(entries):
        return False
    entries[entry] = ir.DictAttr.get({})
    op.attributes[name] = ir.ArrayAttr.get(entries)
    return True
