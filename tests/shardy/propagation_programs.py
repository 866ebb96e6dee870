"""Random programs for propagation passes.

Every op with a rule has it as an attribute, so that no registry of rules is needed. What matters
here is the order of visits and conflicts between axes: programs have many uses of each value,
nested regions, edges, calls, groups, several meshes, sub-axes and priorities. ``program(seed,
features)`` is a function of its arguments.
"""

from __future__ import annotations

import random

from tests.shardy.propagation_ops import (
    MESHES,
    Features,
    Ops,
    Piece,
    Pool,
    Shape,
    group,
    names,
    product,
    result_types,
    tensor,
    typed,
    types,
)


class Generator(Ops):
    """Writes one program."""

    def optimization_barrier(self, pool: Pool) -> tuple[list[str], Pool]:
        operands = [self.pick(pool) for _ in range(self.rng.choice((1, 2, 3)))]
        values, types, name = "", "", self.fresh()
        values = ", ".join(value for value, _ in operands)
        types = ", ".join(tensor(shape) for _, shape in operands)
        left, results = group(name, [shape for _, shape in operands])
        line = f"{left} = stablehlo.optimization_barrier {values} : {types}"
        return [line], results

    def loop(self, pool: Pool, depth: int) -> tuple[list[str], Pool]:
        carried = [self.pick(pool) for _ in range(self.rng.choice((1, 2, 3)))]
        name = self.fresh()
        arguments = [(self.fresh(), shape) for _, shape in carried]
        inits = ", ".join(
            f"{arg} = {value}" for (arg, _), (value, _) in zip(arguments, carried, strict=True)
        )
        types = ", ".join(tensor(shape) for _, shape in carried)
        test = self.fresh()
        left, results = group(name, [shape for _, shape in carried])
        lines = [f"{left} = stablehlo.while({inits}) : {types}"]
        call = f"stablehlo.custom_call @test({arguments[0][0]})"
        lines += ["cond {", f"{test} = {call} : ({tensor(arguments[0][1])}) -> tensor<i1>"]
        lines += [f"stablehlo.return {test} : tensor<i1>", "} do {"]
        # The body sees values from outside too.
        lines += self.body(pool + arguments, arguments, depth, "stablehlo.return")
        return [*lines, "}"], results

    def case(self, pool: Pool, depth: int) -> tuple[list[str], Pool]:
        shapes = [self.pick(pool)[1] for _ in range(self.rng.choice((1, 2)))]
        index, name = self.fresh(), self.fresh()
        left, results = group(name, shapes)
        lines = [f"{index} = stablehlo.constant dense<0> : tensor<i32>"]
        lines.append(f'{left} = "stablehlo.case"({index}) ({{')
        wanted = [("", shape) for shape in shapes]
        for branch in range(self.rng.choice((1, 2, 3))):
            lines += ["}, {"] if branch else []
            lines += self.body(pool, wanted, depth, "stablehlo.return")
        types = ", ".join(tensor(shape) for shape in shapes)
        types = types if len(shapes) == 1 else f"({types})"
        return [*lines, f"}}) : (tensor<i32>) -> {types}"], results

    def body(self, pool: Pool, wanted: Pool, depth: int, terminator: str) -> list[str]:
        lines, inner = self.ops(list(pool), self.rng.choice((0, 1, 2, 4)), depth + 1)
        returned = []
        for _, shape in wanted:
            same = [value for value, own in inner if own == shape]
            returned.append(self.rng.choice(same[-4:]))
        types = ", ".join(tensor(shape) for _, shape in wanted)
        return [*lines, f"{terminator} {', '.join(returned)} : {types}"]

    def manual_computation(self, pool: Pool, depth: int) -> tuple[list[str], Pool]:
        """A body over some of the axes, which sees its arguments only."""
        free = [axis for axis in self.mesh if axis[0] not in self.manual]
        if not free:
            return self.elementwise(pool)
        chosen = dict(self.rng.sample(free, self.rng.choice((1, min(2, len(free))))))
        operands = [self.pick(pool) for _ in range(self.rng.choice((1, 2)))]
        before, arguments = self.manual, []
        # Inside, shardings have neither these axes nor those of manual computations around it.
        self.manual = before | chosen
        in_shardings = []
        for _, shape in operands:
            start = self.manual_axes(shape, chosen, divide=True)
            in_shardings.append(self.sharding_over("mesh", start, priorities=False))
            sizes = zip(shape, start, strict=True)
            local = tuple(size // product(axis[2] for axis in dim) for size, dim in sizes)
            arguments.append((self.fresh(), local))
        lines, inner = self.ops(list(arguments), self.rng.choice((1, 2, 4)), depth + 1)
        returned = [self.pick(inner) for _ in range(self.rng.choice((1, 2)))]
        out_shardings, shapes = [], []
        for _, local in returned:
            start = self.manual_axes(local, chosen, divide=False)
            out_shardings.append(self.sharding_over("mesh", start, priorities=False))
            sizes = zip(local, start, strict=True)
            shapes.append(tuple(size * product(axis[2] for axis in dim) for size, dim in sizes))
        self.manual = before
        left, results = group(self.fresh(), shapes)
        axes = ", ".join(f'"{name}"' for name, _ in self.mesh if name in chosen)
        head = (
            f"in_shardings=[{', '.join(in_shardings)}] out_shardings=[{', '.join(out_shardings)}]"
        )
        head = f"sdy.manual_computation({names(operands)}) {head} manual_axes={{{axes}}}"
        last = [f"sdy.return {names(returned)} : {types(returned)}"]
        tail = [f"}} : ({types(operands)}) -> {result_types(shapes)}"]
        return [f"{left} = {head} ({typed(arguments)}) {{", *lines, *last, *tail], results

    def manual_axes(self, shape: Shape, chosen: dict[str, int], divide: bool) -> list[list[Piece]]:
        start: list[list[Piece]] = [[] for _ in shape]
        for name, size in chosen.items():
            fits = [
                dim
                for dim, own in zip(start, shape, strict=True)
                if not divide or own % (size * product(axis[2] for axis in dim)) == 0
            ]
            if fits and not self.one_in(3):
                self.rng.choice(fits).append((name, 1, size))
        return start

    def named_computation(self, pool: Pool, depth: int) -> tuple[list[str], Pool]:
        operands = [self.pick(pool) for _ in range(self.rng.choice((1, 2)))]
        arguments = [(self.fresh(), shape) for _, shape in operands]
        lines, inner = self.ops(list(arguments), self.rng.choice((1, 2, 4)), depth + 1)
        returned = [self.pick(inner) for _ in range(self.rng.choice((1, 2)))]
        left, results = group(self.fresh(), [shape for _, shape in returned])
        head = f'sdy.named_computation<"inner">({names(operands)})'
        for name, values in (("in_shardings", operands), ("out_shardings", returned)):
            if self.one_in(3):
                shardings = ", ".join(self.sharding(len(shape), False) for _, shape in values)
                head += f" {name}=[{shardings}]"
        last = [f"sdy.return {names(returned)} : {types(returned)}"]
        shapes = [shape for _, shape in returned]
        tail = [f"}} : ({types(operands)}) -> {result_types(shapes)}"]
        return [f"{left} = {head} ({typed(arguments)}) {{", *lines, *last, *tail], results

    def call(self, pool: Pool) -> tuple[list[str], Pool]:
        fitting = []
        for name, wanted, shapes in self.functions:
            values = [[value for value in pool if value[1] == shape] for shape in wanted]
            if all(values):
                fitting.append((name, [self.rng.choice(own) for own in values], shapes))
        if not fitting:
            return self.elementwise(pool)
        name, operands, shapes = self.rng.choice(fitting)
        left, results = group(self.fresh(), shapes)
        signature = f"({types(operands)}) -> {result_types(shapes)}"
        return [f"{left} = func.call @{name}({names(operands)}) : {signature}"], results

    def function(self, name: str, shapes: list[Shape]) -> list[str]:
        """A private function, which may call those before it."""
        arguments = [(f"%arg{i}", shape) for i, shape in enumerate(shapes)]
        body, pool = self.ops(list(arguments), self.rng.choice((1, 2, 4)))
        returned = [self.pick(pool) for _ in range(self.rng.choice((1, 2)))]
        head = ", ".join(f"{value}: {tensor(shape)}{self.on(shape)}" for value, shape in arguments)
        results = ", ".join(f"{tensor(shape)}{self.on(shape)}" for _, shape in returned)
        self.functions.append((name, shapes, [shape for _, shape in returned]))
        last = [f"return {names(returned)} : {types(returned)}", "}"]
        return [f"func.func private @{name}({head}) -> ({results}) {{", *body, *last]

    def concatenation(self, pool: Pool) -> tuple[list[str], Pool]:
        return self.custom_call(pool[-6:], self.rng.choice((17, 20, 40)))

    def ops(self, pool: Pool, number: int, depth: int = 0) -> tuple[list[str], Pool]:
        makers = [self.custom_call] * 4 + [self.elementwise] * 4 + [self.transpose, self.broadcast]
        makers += [self.constraint, self.barrier]
        lines: list[str] = []
        for _ in range(number):
            if self.features.wide and self.one_in(8):
                new, values = self.concatenation(pool)
            elif self.features.regions and depth < 2 and self.one_in(6):
                regions = (self.loop, self.case, self.manual_computation, self.named_computation)
                maker = self.rng.choice(regions)
                new, values = maker(pool, depth)
            elif self.functions and self.one_in(4):
                new, values = self.call(pool)
            elif self.features.regions and self.one_in(10):
                new, values = self.optimization_barrier(pool)
            else:
                new, values = self.rng.choice(makers)(pool)
            lines += new
            pool += values
        return lines, pool

    def sharding_groups(self, pool: Pool) -> list[str]:
        members = [value for value in pool if value[1]]
        self.rng.shuffle(members)
        lines = []
        for number in range(self.rng.choice((1, 2))):
            if not members:
                break
            shape = members[0][1]
            same = [v for v in members if v[1] == shape][: self.rng.choice((2, 3))]
            members = [v for v in members if v not in same]
            lines += [
                f"sdy.sharding_group {value} group_id={number} : {tensor(shape)}"
                for value, _ in same
            ]
        return lines

    def program(self) -> str:
        self.mesh = self.rng.choice(MESHES)
        self.density = self.rng.choice((0.05, 0.2, 0.5))
        axes = ", ".join(f'"{name}"={size}' for name, size in self.mesh)
        lines = [f"sdy.mesh @mesh = <[{axes}]>"]
        if self.features.meshes:
            total = product(size for _, size in self.mesh)
            ids = ", ".join(str(i) for i in reversed(range(total)))
            lines += [f"sdy.mesh @same = <[{axes}]>", "sdy.mesh @empty = <[]>"]
            lines.append(f"sdy.mesh @turned = <[{axes}], device_ids=[{ids}]>")
            self.names += ["same", "empty", "turned"]
        arguments = [(f"%arg{i}", self.shape()) for i in range(self.rng.choice((1, 2, 3, 4)))]
        if self.features.calls:
            for number in range(self.rng.choice((1, 2, 3))):
                shapes = [self.rng.choice(arguments)[1] for _ in range(self.rng.choice((1, 2)))]
                lines += self.function(f"f{number}", shapes)
        header = ", ".join(f"{name}: {tensor(shape)}{self.on(shape)}" for name, shape in arguments)
        body, pool = self.ops(list(arguments), self.rng.randint(1, self.features.ops))
        if self.features.groups:
            body += self.sharding_groups(pool)
        returned = [self.pick(pool) for _ in range(self.rng.choice((1, 2, 3)))]
        results = ", ".join(f"{tensor(shape)}{self.on(shape)}" for _, shape in returned)
        lines.append(f"func.func @main({header}) -> ({results}) {{")
        lines += body
        lines.append(f"return {names(returned)} : {types(returned)}")
        return "\n".join([*lines, "}"]) + "\n"

    def on(self, shape: Shape) -> str:
        if not self.one_in(2):
            return ""
        return f" {{sdy.sharding = #sdy.sharding{self.sharding(len(shape))}}}"


def program(seed: int, features: Features) -> str:
    """The program of ``seed``."""
    return Generator(random.Random(seed), features).program()
