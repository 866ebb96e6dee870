"""Labels each op of a training step with its layer and its phase.

Values are of three kinds: parameters, and values computed from these alone; activations, which have
a part for each sequence of the batch; and gradients of parameters, which are sums over the batch.
An op on activations runs once per micro-batch, on that part; an op on parameters alone runs once
per micro-batch in full; an op on gradients runs once per step.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass

from shardcore._core import Op, Port, Value
from shardcore.pipeline.units import Body, taken

BEFORE = -1
"""The label of ops before the first layer. A layer's label is the number of its unit; the label of
ops after the last layer is the number of units."""

ACTIVATION, PARAMETER, GRADIENT = "activation", "parameter", "gradient"

PASSES = ("F", "B", "W")
"""The phases that run for each micro-batch."""

_SUMS = (
    "stablehlo.dot_general",
    "stablehlo.convolution",
    "stablehlo.reduce",
    "stablehlo.reduce_window",
    "stablehlo.scatter",
)
"""Ops that sum over the batch."""
BARRIER = "stablehlo.optimization_barrier"
"""What programs put between layers that are computed anew and their operands."""


@dataclass(frozen=True)
class Assigned:
    """The label and phase of an op."""

    label: int | None
    """The unit, :data:`BEFORE`, or the number of units; ``None`` if unknown."""
    phase: str
    """``F``, ``B``, ``W`` or ``U``: forward pass, gradient of the input, gradient of the
    parameters, and ops that run once per step."""
    is_fixed: bool
    """Whether it uses only parameters, so that its time does not shrink with micro-batches."""


class Labels:
    """The labels of the ops of a program."""

    def __init__(self, body: Body, state: Container[int]) -> None:
        """Label the ops of ``body``, which has units; ``state`` are the numbers of the arguments
        that are parameters or optimizer state."""
        self.body = body
        self.last = len(body.units)
        self.kinds: dict[str, str] = {}
        """The kinds of values; constants have no kind."""
        self.label_of_value: dict[str, int] = {}
        self._users: dict[str, list[int]] = defaultdict(list)
        for place, op in enumerate(body.ops):
            for name in taken(op):
                self._users[name].append(place)
        self.unit_of_place = {
            place: number for number, unit in enumerate(body.units) for place in unit.forward
        }
        self.backward = {
            unit.backward: n for n, unit in enumerate(body.units) if unit.backward is not None
        }
        ends = [place for unit in body.units for place in unit.forward]
        self._start, self._end = min(ends), max(ends)
        self.state = {each.name for at, each in enumerate(body.arguments) if at in state}
        """The names of these arguments."""
        for argument in body.arguments:
            is_state = argument.name in self.state
            self.kinds[argument.name] = PARAMETER if is_state else ACTIVATION
        self.ops: dict[int, Assigned] = {}
        self.inner: list[dict[str, Assigned]] = []
        """For each loop of layers, the labels of the ops in its body, by result name."""
        self.kinds_inside: list[tuple[Sequence[Op], dict[str, str]]] = []
        """The ops of each of these loops, and the kinds of the values in there."""
        self.loops: list[int] = []
        """The indices of these loops in the function body."""
        self._label_forward()
        self._label_rest()

    def boundary(self, number: int) -> list[Value]:
        """The activations that a unit takes from the unit before it, or its loop carries."""
        unit = self.body.units[number]
        if unit.count > 1:
            loop = self.body.ops[unit.forward[0]]
            return [loop.operands[at] for at in carried(loop, self.kinds)]
        inside = set(unit.forward)
        names: dict[str, Value] = {}
        for place in unit.forward:
            for value in self.body.ops[place].operands:
                made = self.body.makers.get(value.name)
                outside = made is None or made not in inside
                if (
                    outside
                    and self.kinds.get(value.name) == ACTIVATION
                    and self.label_of_value.get(value.name) == number
                ):
                    names[value.name] = value
        return list(names.values())

    def saved(self, values: Iterable[Value]) -> list[Value]:
        """The activations of the forward pass among ``values`` that its backward pass uses."""
        return [
            value
            for value in values
            if self.kinds.get(value.name) == ACTIVATION
            and any(self._is_backward(place) for place in self._users.get(value.name, ()))
        ]

    def _is_backward(self, place: int) -> bool:
        return place in self.backward or (
            place in self.ops and self.ops[place].phase in ("B", "W") and place > self._start
        )

    def _label_forward(self) -> None:
        """Label the values computed, and the arguments used, in the forward pass."""
        body = self.body
        uses: dict[str, set[int]] = defaultdict(set)
        for place, number in self.unit_of_place.items():
            for name in taken(body.ops[place]):
                uses[name].add(number)
        # The largest distance, in units, at which a result of a unit is used, by position.
        later: dict[tuple[int, int], int] = defaultdict(int)
        for number, unit in enumerate(body.units):
            for at, place in enumerate(unit.forward):
                for n, value in enumerate(body.ops[place].results):
                    most = max(uses.get(value.name, {number}), default=number)
                    later[at, n] = max(later[at, n], most - number)
        for number, unit in enumerate(body.units):
            if unit.count > 1:
                continue
            for at, place in enumerate(unit.forward):
                for n, value in enumerate(body.ops[place].results):
                    self.label_of_value[value.name] = min(number + later[at, n], self.last)
        for name, units in uses.items():
            made = body.makers.get(name)
            outside = made is None or made not in self.unit_of_place
            if outside and len(units) == 1:
                self.label_of_value[name] = next(iter(units))

    def _label_rest(self) -> None:
        """Label all ops in order, then go back for those that only later ops determine."""
        body = self.body
        labels: dict[int, int | None] = {}
        self._loss = self._loss_ops()
        self._set_kinds(None)
        for place, op in enumerate(body.ops):
            labels[place] = known = self._label(place, op)
            unit = self.loop_at(place)
            if unit is not None:
                # A carried value goes on to the next unit, in the backward pass to the unit before.
                on = unit - 1 if place in self.backward else unit + 1
                sent = carried(op, self.kinds)
                for at, value in enumerate(op.results):
                    self.label_of_value[value.name] = on if at in sent else unit
            elif known is not None and place > self._end:
                for value in op.results:
                    if value.shape:
                        self.label_of_value[value.name] = known
        self._label_by_users(labels)
        leads = self._leads(labels)
        self._set_kinds(leads)
        for place in range(len(body.ops) - 1, -1, -1):
            op = body.ops[place]
            if self.loop_at(place) is not None:
                self._label_loop(place, op)
            phase, is_fixed = self._phase(place, op, leads)
            self.ops[place] = Assigned(labels[place], phase, is_fixed)

    def loop_at(self, place: int) -> int | None:
        """The unit whose loop is the op at ``place``; ``None`` where it is not one of layers."""
        number = self.unit_of_place.get(place)
        if number is not None and self.body.units[number].count > 1:
            return number
        return self.backward.get(place)

    def _label(self, place: int, op: Op) -> int | None:
        if place in self.unit_of_place:
            return self.unit_of_place[place]
        if place in self.backward:
            return self.backward[place]
        if place <= self._end:
            kinds = {self.kinds.get(value.name) for value in op.operands}
            return BEFORE if place < self._start and ACTIVATION in kinds else None
        known = [
            self.label_of_value[value.name]
            for value in op.operands
            if value.name in self.label_of_value and value.shape
        ]
        return min(known, default=None)

    def _set_kinds(self, leads: set[int] | None) -> None:
        """Set the kinds of values; gradients can be recognized only after it is known what the
        backward pass of earlier layers depends on.
        """
        for place, op in enumerate(self.body.ops):
            kinds = {self.kinds.get(name) for name in taken(op)}
            kind = PARAMETER if PARAMETER in kinds else None
            if ACTIVATION in kinds:
                is_late = leads is not None and place > self._end
                is_late = is_late and place not in (leads or ()) and place not in self._loss
                is_sum = is_late and op.name in _SUMS and sums_batch(op, self.kinds)
                kind = GRADIENT if is_sum else ACTIVATION
            elif GRADIENT in kinds:
                kind = GRADIENT
            if self.loop_at(place) is not None:
                self._set_kinds_of_loop(place, op)
            elif op.name == BARRIER:
                self.kinds.update(_passed(op, self.kinds))
            elif kind is not None:
                for value in op.results:
                    self.kinds[value.name] = kind

    def _set_kinds_of_loop(self, place: int, loop: Op) -> None:
        """The stacked outputs of a loop are activations in the forward pass, gradients in the
        backward pass."""
        collected = GRADIENT if place in self.backward else ACTIVATION
        sent = carried(loop, self.kinds)
        arguments, returned = loop.regions[-1][0].arguments, loop.regions[-1][0].ops[-1].operands
        for at, value in enumerate(loop.results):
            known = self.kinds.get(loop.operands[at].name)
            if at not in sent and returned[at].name != arguments[at].name:
                # Loop counters are scalars.
                known = collected if value.shape else None
            if known is not None:
                self.kinds[value.name] = known

    def _leads(self, labels: Mapping[int, int | None]) -> set[int]:
        """The ops of the backward pass on which those of an earlier layer depend."""
        found: set[int] = set()
        last = len(self.body.ops) - 1
        # The last op is the return.
        for place in range(last - 1, self._end, -1):
            own = labels[place]
            if own is None:
                continue
            for value in self.body.ops[place].results:
                if not value.shape:
                    continue
                for user in self._users.get(value.name, ()):
                    other = labels[user]
                    if user in found or (other is not None and other < own and user != last):
                        found.add(place)
        return found

    def _label_by_users(self, labels: dict[int, int | None]) -> None:
        """Ops without a label, such as updates of moments, get the label of their users."""
        for place in range(len(self.body.ops) - 1, -1, -1):
            if labels[place] is not None:
                continue
            of_users = {
                labels[user]
                for value in self.body.ops[place].results
                for user in self._users.get(value.name, ())
            } - {None}
            if len(of_users) == 1:
                labels[place] = of_users.pop()

    def _phase(self, place: int, op: Op, leads: set[int]) -> tuple[str, bool]:
        kinds = {self.kinds.get(value.name) for value in op.operands}
        if ACTIVATION in kinds:
            if place <= self._end or place in self._loss:
                return "F", False
            return ("B" if place in leads else "W"), False
        if GRADIENT in kinds:
            return "U", False
        # What is computed from constants and parameters alone runs in the first pass that uses it.
        # What is computed from constants has the size of the activations that use it.
        passes = [
            self.ops[user].phase for value in op.results for user in self._users.get(value.name, ())
        ]
        served = [phase for phase in PASSES if phase in passes]
        return (served[0], PARAMETER in kinds) if served else ("U", False)

    def _loss_ops(self) -> set[int]:
        """The ops after the last layer on which the loss depends. The loss is the returned scalar
        with the fewest such ops; norms of gradients depend on more.
        """
        found = []
        for result in self.body.results:
            if result.shape == () and (result.dtype or "").startswith(("f", "bf")):
                places: set[int] = set()
                left = [result.name]
                while left:
                    place = self.body.makers.get(left.pop())
                    if place is not None and place > self._end and place not in places:
                        places.add(place)
                        left += taken(self.body.ops[place])
                if places:
                    found.append(places)
        return min(found, key=len, default=set())

    def _label_loop(self, place: int, loop: Op) -> None:
        """Label the ops in the body of a loop of layers."""
        number = self.unit_of_place.get(place, self.backward.get(place))
        block = loop.regions[-1][0]
        ops = block.ops
        kinds = dict(self.kinds)
        for argument, operand in zip(block.arguments, loop.operands, strict=True):
            known = self.kinds.get(operand.name)
            kinds[argument.name] = known or ""
        is_backward = place in self.backward
        returned = ops[-1].operands
        sends = {returned[at].name for at in carried(loop, self.kinds)}
        leads: set[int] = set()
        for at in range(len(ops) - 2, -1, -1):
            if any(value.name in sends for value in ops[at].results):
                leads.add(at)
                sends |= set(taken(ops[at]))
        inner: dict[str, Assigned] = {}
        self.inner.append(inner)
        self.loops.append(place)
        for at, op in enumerate(ops[:-1]):
            of_taken = {kinds.get(name) for name in taken(op)}
            phase, is_fixed = "F", ACTIVATION not in of_taken
            kind = PARAMETER if PARAMETER in of_taken else ""
            if ACTIVATION in of_taken:
                kind = ACTIVATION
                if is_backward:
                    phase = "B" if at in leads else "W"
                    if phase == "W" and op.name in _SUMS and sums_batch(op, kinds):
                        kind = GRADIENT
            elif is_backward:
                phase = "B" if GRADIENT not in of_taken else "U"
                kind = GRADIENT if GRADIENT in of_taken else kind
                is_fixed = phase == "B"
            passed = _passed(op, kinds) if op.name == BARRIER else {}
            for value in op.results:
                kinds[value.name] = passed.get(value.name, kind)
                inner[value.name] = Assigned(number, phase, is_fixed)
        self.kinds_inside.append((ops[:-1], kinds))


def _passed(barrier: Op, kinds: Mapping[str, str]) -> dict[str, str]:
    """The kinds of the results of a barrier: those of its operands."""
    both = zip(barrier.operands, barrier.results, strict=True)
    return {result.name: kinds[own.name] for own, result in both if kinds.get(own.name)}


def sums_batch(op: Op, kinds: Mapping[str, str]) -> bool:
    """Return whether a summing op takes activations only, and sums over the batch, which is their
    first dim; a product of activations and parameters does not, nor a softmax.
    """
    operands = op.operands[:2] if op.name in _SUMS[:2] else op.operands[:1]
    if op.name == "stablehlo.scatter":
        return kinds.get(op.operands[0].name) != ACTIVATION
    if op.name == "stablehlo.reduce" and 0 not in op.attributes["dimensions"]:
        return False
    return all(kinds.get(value.name) == ACTIVATION for value in operands)


def carried(loop: Op, kinds: Mapping[str, str]) -> list[int]:
    """Return the positions of the activations that a loop carries from trip to trip; values that it
    passes unchanged, stacks or counts are left out.
    """
    block = loop.regions[-1][0]
    returned = block.ops[-1].operands
    return [
        at
        for at, (argument, operand, result) in enumerate(
            zip(block.arguments, loop.operands, returned, strict=True)
        )
        if kinds.get(operand.name) == ACTIVATION and result.name != argument.name
    ]


def state_of(arguments: Sequence[Port], results: Iterable[Port]) -> set[int]:
    """Return the numbers of the arguments of a program that are parameters or optimizer state:
    those with the type of a result. If there are none, the non-integer arguments.
    """
    types = {port.type for port in results}
    found = {at for at, port in enumerate(arguments) if port.type in types and port.shape}
    if found:
        return found | {at for at, port in enumerate(arguments) if not port.shape}
    return {
        at for at, port in enumerate(arguments) if not (port.dtype or "").startswith(("i", "ui"))
    }
