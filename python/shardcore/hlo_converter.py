"""Converts, through jaxlib, HLO to StableHLO text (``from``), StableHLO text to HLO text (``to``),
or HLO protos to HLO text (``show``).

A separate program, because jaxlib may crash its process on malformed input;
:mod:`shardcore.hlo` starts it. Imports nothing of shardcore.
"""

from __future__ import annotations

import contextlib
import itertools
import re
import runpy
import sys
from pathlib import Path
from typing import Any

NO_JAXLIB = 3
"""The exit code that says that jaxlib is not installed."""


def main() -> int:
    """Read standard input, write standard output, and return the exit code."""
    try:
        from jaxlib import _jax
    except ImportError:
        return NO_JAXLIB
    hlo: Any = _jax
    with contextlib.suppress(ImportError):
        # Since jaxlib 0.10 the HLO reader is in a module of its own.
        from jaxlib import _hlo  # type: ignore[attr-defined]

        hlo = _hlo
    data = sys.stdin.buffer.read()
    if sys.argv[-1] == "to":
        computation = _jax.mlir.mlir_module_to_xla_computation(
            data.decode(), use_tuple_args=False, return_tuple=False
        )
        text = computation.as_hlo_text()
    elif sys.argv[-1] == "show":
        text = hlo.XlaComputation(_without_wrapper(data)).get_hlo_module().to_string()
    else:
        is_text = data.lstrip().startswith(b"HloModule")
        computation = None if is_text else hlo.XlaComputation(_without_wrapper(data))
        text = computation.get_hlo_module().to_string() if computation else data.decode()
        if computation is None or _MESH_GROUPS.search(text):
            module = hlo.hlo_module_from_text(_MESH_GROUPS.sub(_listed, text))
            computation = hlo.XlaComputation(module.as_serialized_hlo_module_proto())
        text = _plain(str(_jax.mlir.xla_computation_to_mlir_module(computation)), _jax.mlir)
    sys.stdout.buffer.write(str(text).encode())
    return 0


_MESH_GROUPS = re.compile(
    r"replica_groups=mesh\[((?:'\w+'=\d+,?)+)\](?:, ?device_ids=\(([\d,]+)\))? ?\{('[^}]*)\}"
)
"""Groups of devices by the axes of a mesh, which StableHLO's verifier refuses in some ops."""


def _listed(match: re.Match[str]) -> str:
    """Groups of devices by the axes of a mesh as lists of devices."""
    sizes = {name: int(size) for name, size in re.findall(r"'(\w+)'=(\d+)", match[1])}
    axes = re.findall(r"'(\w+)'", match[3])
    if "(" in match[3] or not sizes.keys() >= set(axes):
        # Parts of axes.
        return match[0]
    groups: dict[tuple[int, ...], list[tuple[tuple[int, ...], int]]] = {}
    for device, at in enumerate(itertools.product(*map(range, sizes.values()))):
        place = dict(zip(sizes, at, strict=True))
        group = tuple(place[name] for name in sizes if name not in axes)
        groups.setdefault(group, []).append((tuple(place[name] for name in axes), device))
    ids = match[2].split(",") if match[2] else [str(number) for number in range(device + 1)]
    rows = (",".join(ids[each] for _, each in sorted(group)) for group in groups.values())
    return f"replica_groups={{{','.join(f'{{{row}}}' for row in rows)}}}"


def _without_wrapper(data: bytes) -> bytes:
    """The ``HloModuleProto`` in ``data``, which XLA dumps as the first field of an ``HloProto``."""
    if data[:1] != b"\n":
        return data
    size, shift, at = 0, 0, 1
    while at < len(data) and shift < 64:
        size |= (data[at] & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if data[at - 1] < 0x80:
            break
    inside = data[at : at + size]
    # A module proto starts with its name, whose tag byte cannot start a line of text.
    return inside if len(inside) == size and inside[:1] == b"\n" else data


def _plain(text: str, jax_mlir: Any) -> str:
    """``text`` with MHLO ops converted to StableHLO where possible, and tuples flattened."""
    if "tuple<" not in text and re.search(r"[ \"]mhlo\.\w+[ \"(]", text) is None:
        return text
    from jaxlib.mlir import ir

    with runpy.run_path(str(Path(__file__).with_name("jaxlib_context.py")))["context"]():
        module = ir.Module.parse(text)
        _Flattening(ir).module(module)
        _inline_fusions(module)
        _lower_bitcasts(module, ir)
        text = _print(module)
        with contextlib.suppress(Exception):
            # Some ops have no conversion.
            text = _print(ir.Module.parse(jax_mlir.mhlo_to_stablehlo(text)))
        return text


def _inline_fusions(op: Any) -> None:
    """Inline the fusions of a compiled program."""
    for region in op.operation.regions:
        for block in region.blocks:
            for view in list(block.operations):
                inner = view.operation
                _inline_fusions(inner)
                if inner.name != "mhlo.fusion":
                    continue
                [body] = inner.regions[0].blocks
                for argument, operand in zip(body.arguments, inner.operands, strict=True):
                    argument.replace_all_uses_with(operand)
                *ops, returned = list(body.operations)
                for each in ops:
                    each.operation.move_before(inner)
                for result, value in zip(inner.results, returned.operation.operands, strict=True):
                    result.replace_all_uses_with(value)
                inner.erase()


def _lower_bitcasts(op: Any, ir: Any) -> None:
    """Replace the bitcasts of a compiled program by transposes and reshapes, which follow from the
    layouts."""
    for region in op.operation.regions:
        for block in region.blocks:
            for view in list(block.operations):
                inner = view.operation
                _lower_bitcasts(inner, ir)
                if inner.name == "mhlo.bitcast":
                    inner.result.replace_all_uses_with(_in_new_layout(inner, ir))
                    inner.erase()


def _in_new_layout(op: Any, ir: Any) -> Any:
    """The operand's elements of a bitcast, rearranged to the shape of the result."""
    [value], result = op.operands, ir.RankedTensorType(op.result.type)
    names = "source_layout", "result_layout"
    # Layouts list dims from minor to major.
    source, target = (
        [*ir.DenseIntElementsAttr(op.attributes[name])][::-1] if name in op.attributes else None
        for name in names
    )

    def made(name: str, shape: list[int], attributes: dict[str, Any]) -> Any:
        ty = ir.RankedTensorType.get(shape, result.element_type, loc=op.location)
        at = {"loc": op.location, "ip": ir.InsertionPoint(op)}
        return ir.Operation.create(name, [ty], [value], attributes, **at).result

    def transposed(order: list[int]) -> Any:
        shape = list(ir.RankedTensorType(value.type).shape)
        permutation = {"permutation": ir.DenseI64ArrayAttr.get(order)}
        return made("stablehlo.transpose", [shape[dim] for dim in order], permutation)

    if source is not None and source != sorted(source):
        value = transposed(source)
    order = target if target is not None else list(range(result.rank))
    value = made("stablehlo.reshape", [result.shape[dim] for dim in order], {})
    if order != sorted(order):
        value = transposed([order.index(dim) for dim in range(result.rank)])
    return value


def _print(module: Any) -> str:
    return str(module.operation.get_asm(enable_debug_info=True))


class _Flattening:
    """Replaces tuples by their elements in a jaxlib module."""

    DROPPED = ("operand_layouts", "output_operand_aliases", "result_layouts", "xla_shape")
    """Attributes of custom calls that refer to operands or results by number."""

    def __init__(self, ir: Any) -> None:
        self.ir = ir
        self.elements: dict[Any, list[Any]] = {}
        """The elements of each tuple value; nested tuples are flattened."""
        self.replaced: list[Any] = []

    def module(self, module: Any) -> None:
        """Flatten the functions of ``module``."""
        for function in module.body.operations:
            if function.operation.name == "func.func":
                self.signature(function)
                self.regions(function)
        for op in reversed(self.replaced):
            op.erase()

    def signature(self, function: Any) -> None:
        """Flatten the types and the attributes of the arguments and results of ``function``."""
        ir, attributes = self.ir, function.operation.attributes
        ty = ir.TypeAttr(attributes["function_type"]).value
        flat = ir.FunctionType.get(self.types(ty.inputs), self.types(ty.results))
        for name, types in (("arg_attrs", ty.inputs), ("res_attrs", ty.results)):
            if name in attributes:
                pairs = zip(types, ir.ArrayAttr(attributes[name]), strict=True)
                rows = [row for own, attrs in pairs for row in self.rows(own, attrs)]
                attributes[name] = ir.ArrayAttr.get(rows)
        attributes["function_type"] = ir.TypeAttr.get(flat)

    def rows(self, ty: Any, attributes: Any) -> list[Any]:
        """The attributes of each element of a value of type ``ty`` with ``attributes``."""
        ir, count = self.ir, len(self.types([ty]))
        if not isinstance(ty, ir.TupleType):
            return [attributes]
        own = _named(ir.DictAttr(attributes))
        sharding = own.pop("mhlo.sharding", None)
        parts = _parts(ir.StringAttr(sharding).value) if sharding is not None else []
        if len(parts) == count:
            rows = [{**own, "mhlo.sharding": ir.StringAttr.get(part)} for part in parts]
        else:
            rows = [own] * count
        return [ir.DictAttr.get(row) for row in rows]

    def types(self, types: Any) -> list[Any]:
        """``types`` with each tuple type replaced by its element types."""
        found = []
        for ty in types:
            if isinstance(ty, self.ir.TupleType):
                tuple_type = self.ir.TupleType(ty)
                found += self.types([tuple_type.get_type(i) for i in range(tuple_type.num_types)])
            else:
                found.append(ty)
        return found

    def values(self, values: Any) -> list[Any]:
        """``values`` with each tuple replaced by its elements."""
        return [one for value in values for one in self.elements.get(value, [value])]

    def regions(self, op: Any) -> None:
        """Flatten the block arguments in the regions of ``op``, and the ops in them."""
        for region in op.operation.regions:
            for block in region.blocks:
                self.arguments(block)
                for inner in list(block.operations):
                    self.op(inner.operation)

    def arguments(self, block: Any) -> None:
        """Flatten the arguments of ``block``."""
        old = list(block.arguments)
        if not any(isinstance(argument.type, self.ir.TupleType) for argument in old):
            return
        for argument in old:
            types = self.types([argument.type])
            new = [block.add_argument(ty, argument.location) for ty in types]
            if isinstance(argument.type, self.ir.TupleType):
                self.elements[argument] = new
            else:
                argument.replace_all_uses_with(new[0])
        self.replaced += [_Argument(block, index) for index in range(len(old))]

    def op(self, op: Any) -> None:
        """Flatten ``op``; if its result is a tuple, record its elements."""
        operands = self.values(op.operands)
        if op.name == "stablehlo.tuple":
            self.elements[op.result] = operands
            self.replaced.append(op)
        elif op.name == "mhlo.copy" and len(operands) == 1:
            # The result may have another layout, which does not matter here, or a sharding.
            op.result.replace_all_uses_with(self.constrained(op, operands[0]))
            self.replaced.append(op)
        elif op.name == "stablehlo.get_tuple_element":
            index = self.ir.IntegerAttr(op.attributes["index"]).value
            ty = self.ir.TupleType(op.operands[0].type)
            start = len(self.types([ty.get_type(i) for i in range(index)]))
            found = operands[start : start + len(self.types([ty.get_type(index)]))]
            if isinstance(op.result.type, self.ir.TupleType):
                self.elements[op.result] = found
            else:
                op.result.replace_all_uses_with(found[0])
            self.replaced.append(op)
        else:
            results = self.types([result.type for result in op.results])
            if len(results) != len(op.results) or operands != list(op.operands):
                op = self.rebuilt(op, operands, results)
            self.regions(op)

    def constrained(self, op: Any, value: Any) -> Any:
        """``value`` with the sharding of ``op``, if it has one."""
        if "mhlo.sharding" not in op.attributes:
            return value
        attributes = {
            "call_target_name": self.ir.StringAttr.get("Sharding"),
            "mhlo.sharding": op.attributes["mhlo.sharding"],
        }
        at = {"loc": op.location, "ip": self.ir.InsertionPoint(op)}
        call = "stablehlo.custom_call"
        return self.ir.Operation.create(call, [value.type], [value], attributes, **at).result

    def rebuilt(self, op: Any, operands: list[Any], results: list[Any]) -> Any:
        """Replace ``op`` by the same op with these operands and result types."""
        named = _named(op.attributes)
        attributes = {name: attr for name, attr in named.items() if name not in self.DROPPED}
        new = self.ir.Operation.create(
            op.name,
            results,
            operands,
            attributes,
            regions=len(op.regions),
            loc=op.location,
            ip=self.ir.InsertionPoint(op),
        )
        for source, target in zip(op.regions, new.regions, strict=True):
            for block in list(source.blocks):
                block.append_to(target)
        rest = list(new.results)
        for result in op.results:
            count = len(self.types([result.type]))
            own, rest = rest[:count], rest[count:]
            if isinstance(result.type, self.ir.TupleType):
                self.elements[result] = own
            else:
                result.replace_all_uses_with(own[0])
        self.replaced.append(op)
        return new


class _Argument:
    """A block argument that is to be erased."""

    def __init__(self, block: Any, index: int) -> None:
        self.block, self.index = block, index

    def erase(self) -> None:
        """Erase the argument."""
        self.block.erase_argument(self.index)


def _named(attributes: Any) -> dict[str, Any]:
    """``attributes`` as a dict; iterating over them gives names or pairs, by jaxlib's version."""
    pairs = (attributes[index] for index in range(len(attributes)))
    return {pair.name: pair.attr for pair in pairs}


def _parts(sharding: str) -> list[str]:
    """The elements of a tuple's sharding, ``{{replicated}, {devices=[2]<=[2]}}``, in order."""
    parts: list[str] = []
    start = -1
    for at, character in enumerate(sharding):
        if character == "{":
            start = at
        elif character == "}":
            if start >= 0:
                parts.append(sharding[start : at + 1])
            start = -1
    return parts


if __name__ == "__main__":
    sys.exit(main())
