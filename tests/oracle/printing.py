"""Prints a program as MLIR text."""

from __future__ import annotations

from collections.abc import Sequence

from .graph import BARRIER, EDGE, GROUP, Op, Program, Value
from .sharding import TensorSharding


def tensor_type(value: Value) -> str:
    return "tensor<" + "".join(f"{size}x" for size in value.shape) + value.element + ">"


class Printer:
    """Names the values of one program and prints its ops."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.names: dict[Value, str] = {}
        self.num_ops = 0
        self.lines: list[str] = []

    def print(self) -> str:
        self.lines = [f"sdy.mesh @{name} = {mesh}" for name, mesh in self.program.meshes.items()]
        self.lines.append(self._signature())
        self._ops(self.program.ops)
        self.lines.append("}")
        return "\n".join(self.lines) + "\n"

    def _signature(self) -> str:
        arguments = []
        for index, value in enumerate(self.program.arguments):
            self.names[value] = f"%arg{index}"
            sharding = self.program.shardings.get(value)
            arguments.append(f"%arg{index}: {tensor_type(value)}{_attribute(sharding)}")
        results = [
            tensor_type(value) + _attribute(sharding)
            for value, sharding in zip(
                self.program.returned, self.program.result_shardings, strict=True
            )
        ]
        return f"func.func @main({', '.join(arguments)}) -> ({', '.join(results)}) {{"

    def _ops(self, ops: Sequence[Op]) -> None:
        for op in ops:
            if op.name == "stablehlo.while":
                self._while(op)
            elif op.name == "stablehlo.case":
                self._case(op)
            else:
                self.lines.append("  " + self._left_side(op) + self._right_side(op))

    def _left_side(self, op: Op) -> str:
        if not op.results:
            return ""
        name = f"%{self.num_ops}"
        self.num_ops += 1
        if len(op.results) == 1:
            self.names[op.results[0]] = name
            return f"{name} = "
        self.names.update({value: f"{name}#{value.index}" for value in op.results})
        return f"{name}:{len(op.results)} = "

    def _right_side(self, op: Op) -> str:
        operands = ", ".join(self.names[value] for value in op.operands)
        types = ", ".join(map(tensor_type, op.operands))
        if op.is_terminator:
            return f"{op.name} {operands} : {types}"
        if op.name == GROUP:
            return f"{op.name} {operands} group_id={op.group} : {types}"
        if op.name in ("sdy.sharding_constraint", EDGE):
            sharding = self.program.shardings.get(op.results[0])
            key = "sharding=" if op.name == EDGE and sharding else ""
            return f"{op.name} {operands} {key}{sharding or ''} : {types}"
        if op.name in ("stablehlo.add", "stablehlo.tanh"):
            return f"{op.name} {operands} {self._attributes(op)} : {tensor_type(op.results[0])}"
        if op.name == BARRIER:
            return f"{op.name} {operands} {op.details} {self._attributes(op)} : {types}"
        if op.name == "stablehlo.optimization_barrier":
            return f"{op.name} {self._attributes(op)} {operands} : {types}"
        signature = f"({types}) -> ({', '.join(map(tensor_type, op.results))})"
        if op.name == "stablehlo.custom_call":
            return f"{op.name} @f({operands}) {self._attributes(op)} : {signature}"
        details = f", {op.details}" if op.details else ""
        return f"{op.name} {operands}{details} {self._attributes(op)} : {signature}"

    def _case(self, op: Op) -> None:
        (index,) = op.operands
        left, number = self._left_side(op), self.names[index]
        self.lines.append(f'  {left}"{op.name}"({number}) ({{')
        for position, block in enumerate(op.regions):
            if position > 0:
                self.lines.append("  }, {")
            self._ops(block.ops)
        results = ", ".join(map(tensor_type, op.results))
        self.lines.append(f"  }}) {self._attributes(op)} : ({tensor_type(index)}) -> ({results})")

    def _attributes(self, op: Op) -> str:
        attributes = []
        if op.name == "stablehlo.custom_call" and not op.is_pure:
            attributes.append("has_side_effect = true")
        shardings = [self.program.shardings.get(value) for value in op.results]
        if any(shardings):
            per_value = ", ".join(map(str, shardings))
            attributes.append(f"sdy.sharding = #sdy.sharding_per_value<[{per_value}]>")
        if op.rule is not None and op.name != BARRIER:
            attributes.append(f"sdy.sharding_rule = #sdy.op_sharding_rule{op.rule}")
        return "{" + ", ".join(attributes) + "}" if attributes else ""

    def _while(self, op: Op) -> None:
        condition, body = op.regions
        pairs = []
        for index, (value, operand) in enumerate(
            zip(condition.arguments, op.operands, strict=True)
        ):
            self.names[value] = f"%iter{self.num_ops}_{index}"
            self.names[body.arguments[index]] = self.names[value]
            pairs.append(f"{self.names[value]} = {self.names[operand]}")
        types = ", ".join(map(tensor_type, op.results))
        left, attributes = self._left_side(op), self._attributes(op)
        attributes = f" attributes {attributes}" if attributes else ""
        self.lines.append(f"  {left}{op.name}({', '.join(pairs)}) : {types}{attributes}")
        self.lines.append("  cond {")
        self._ops(condition.ops)
        self.lines.append("  } do {")
        self._ops(body.ops)
        self.lines.append("  }")


def _attribute(sharding: TensorSharding | None) -> str:
    return "" if sharding is None else f" {{sdy.sharding = #sdy.sharding{sharding}}}"


def to_mlir(program: Program) -> str:
    return Printer(program).print()
