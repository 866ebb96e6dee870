"""Other meshes and annotations for a program that has some already.

A real program exercises one path through the propagation; with its axes resized and its arguments,
results, constraints and a few of its ops annotated at random it exercises many. Seeds make it
repeatable. What JAX cannot say is included: sub-axes, open dims, priorities, replicated axes, dims
that do not divide.
"""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Iterator
from typing import Any

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import sdy

from tests.shardy import reference

AXIS_SIZES = (2, 2, 2, 3, 4, 4, 6, 8)


@dataclasses.dataclass
class Annotator:
    """Random shardings over one mesh."""

    mesh_name: str
    axes: dict[str, int]
    rng: random.Random
    priorities: bool

    def sharding(self, rank: int) -> str:
        """A sharding as it stands between the angle brackets."""
        free = self._axis_refs()
        self.rng.shuffle(free)
        dims: list[list[str]] = [[] for _ in range(rank)]
        for dim in dims:
            while free and self.rng.random() < 0.4:
                dim.append(free.pop())
        printed = ", ".join(self._dim(dim) for dim in dims)
        replicated = ""
        if free and self.rng.random() < 0.15:
            replicated = f", replicated={{{free[0]}}}"
        return f"@{self.mesh_name}, [{printed}]{replicated}"

    def _axis_refs(self) -> list[str]:
        """Every axis, some of them in two halves of which both, one or none may be used."""
        refs = []
        for name, size in self.axes.items():
            inner = next((f for f in (2, 3) if size % f == 0 and size > f), None)
            if inner is None or self.rng.random() < 0.8:
                refs.append(f'"{name}"')
            else:
                refs.append(f'"{name}":(1){size // inner}')
                refs.append(f'"{name}":({size // inner}){inner}')
        return refs

    def _dim(self, axes: list[str]) -> str:
        is_open = self.rng.random() < 0.4
        priority = ""
        if self.priorities and (axes or is_open) and self.rng.random() < 0.3:
            priority = f"p{self.rng.randrange(3)}"
        return "{" + ", ".join(self._merged(axes) + ["?"] * is_open) + "}" + priority

    def _merged(self, axes: list[str]) -> list[str]:
        """Two halves that follow each other in order must be written as the whole axis."""
        merged: list[str] = []
        for axis in axes:
            name = axis.partition(":")[0]
            if merged and ":(1)" in merged[-1] and merged[-1].startswith(f"{name}:"):
                merged[-1] = name
            else:
                merged.append(axis)
        return merged


def reannotate(text: str, seed: int, priorities: bool = False) -> str:
    """`text` under another mesh and with other annotations; the same for the same seed."""
    rng = random.Random(seed)
    with reference.context():
        module = ir.Module.parse(text)
        ops = list(reference.walk(module.operation))
        # In a manual computation sizes are part of the shapes, and some axes are taken.
        manual = any(op.name == "sdy.manual_computation" for op in ops)
        annotator = Annotator(*_other_mesh(module, ops, rng, manual), rng, priorities)
        for op in ops:
            if op.name == "func.func":
                if ir.StringAttr(op.attributes["sym_name"]).value == "main":
                    _annotate_function(op, annotator)
            elif manual:
                continue
            elif op.name == "sdy.sharding_constraint" and rng.random() < 0.5:
                rank = ir.ShapedType(op.results[0].type).rank
                op.attributes["sharding"] = _attribute(annotator.sharding(rank))
            elif op.name.startswith("stablehlo.") and rng.random() < 0.02:
                _annotate_op(op, annotator)
        return str(module)


def _other_mesh(
    module: ir.Module, ops: list[ir.Operation], rng: random.Random, keep_sizes: bool
) -> tuple[str, dict[str, int]]:
    """Resizes the axes of the program's mesh and adds one, or makes a mesh if there is none."""
    meshes = [op for op in ops if op.name == "sdy.mesh"]
    if not meshes:
        with ir.InsertionPoint.at_block_begin(module.body), ir.Location.unknown():
            meshes = [sdy.MeshOp("mesh", ir.Attribute.parse('#sdy.mesh<["x"=2, "y"=4]>')).operation]
    name = ir.StringAttr(meshes[0].attributes["sym_name"]).value
    parts = map(sdy.MeshAxisAttr, sdy.MeshAttr(meshes[0].attributes["mesh"]).axes)
    axes = {axis.name: axis.size for axis in parts}
    if not keep_sizes:
        axes = {axis: rng.choice(AXIS_SIZES) for axis in axes}
        if rng.random() < 0.5:
            axes["extra"] = rng.choice(AXIS_SIZES)
        sizes = ", ".join(f'"{axis}"={size}' for axis, size in axes.items())
        meshes[0].attributes["mesh"] = ir.Attribute.parse(f"#sdy.mesh<[{sizes}]>")
    return name, axes


def _attribute(sharding: str) -> ir.Attribute:
    return ir.Attribute.parse(f"#sdy.sharding<{sharding}>")


def _annotate_function(function: ir.Operation, annotator: Annotator) -> None:
    kind = ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value)
    for key, types in (("arg_attrs", kind.inputs), ("res_attrs", kind.results)):
        if key in function.attributes:
            old = [dict(_entries(entry)) for entry in ir.ArrayAttr(function.attributes[key])]
        else:
            old = [{} for _ in types]
        chance = annotator.rng.choice((0.05, 0.3, 0.8))
        for attributes, of in zip(old, types, strict=True):
            roll = annotator.rng.random()
            if roll < chance and isinstance(of, ir.RankedTensorType):
                attributes["sdy.sharding"] = _attribute(annotator.sharding(of.rank))
            elif roll > 0.6:
                attributes.pop("sdy.sharding", None)
        function.attributes[key] = ir.ArrayAttr.get([ir.DictAttr.get(entry) for entry in old])


def _entries(attributes: ir.Attribute) -> Iterator[tuple[str, Any]]:
    entries = ir.DictAttr(attributes)
    for at in range(len(entries)):
        yield entries[at].name, entries[at].attr


def _annotate_op(op: ir.Operation, annotator: Annotator) -> None:
    types = [result.type for result in op.results]
    if types and all(isinstance(of, ir.RankedTensorType) for of in types):
        shardings = ", ".join(f"<{annotator.sharding(of.rank)}>" for of in types)
        printed = f"#sdy.sharding_per_value<[{shardings}]>"
        op.attributes["sdy.sharding"] = ir.Attribute.parse(printed)
