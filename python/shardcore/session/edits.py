"""The edits of a session, the last of which can be taken back."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from types import EllipsisType
from typing import TYPE_CHECKING, TypeAlias

from shardcore.session.targets import Target

if TYPE_CHECKING:
    from shardcore._core import TensorSharding

MOST_UNDOS = 1000
"""The number of edits that can be undone."""

Edited: TypeAlias = "dict[Target, TensorSharding | None]"
"""The shardings that targets got, ``None`` where an annotation was removed."""

Change: TypeAlias = "Mapping[Target, TensorSharding | EllipsisType | None]"
"""What targets get: as :data:`Edited`, ``...`` for what the program came with."""

Step: TypeAlias = "tuple[Change, bool]"
"""What the targets of an edit had before it; and :attr:`Edits.are_plain`."""


class Edits:
    """What is edited now, and the steps back.

    An edit takes time and memory for what it edits, not for what was edited before.
    """

    def __init__(self, is_annotated: Callable[[Target], bool]) -> None:
        """No edits of a program, of which ``is_annotated`` says what it came with."""
        self._is_annotated = is_annotated
        self.now: Edited = {}
        self.are_plain = True
        """Whether each edit is valid by itself, whatever the others are."""
        self.version = 0
        """Another number after each change."""
        self.steps: deque[Step] = deque(maxlen=MOST_UNDOS)

    def apply(self, edited: Edited, *, are_plain: bool) -> None:
        """Edit the targets of ``edited``."""
        # If this is interrupted, a step back still leads to what was before.
        self.steps.append(
            ({target: self.now.get(target, ...) for target in edited}, self.are_plain)
        )
        self.are_plain = self.are_plain and are_plain
        self._update(edited)
        self.version += 1

    def after(self, edited: Edited) -> Edited:
        """What would be edited after ``edited``."""
        twin = Edits(self._is_annotated)
        twin.now = {**self.now}
        twin._update(edited)
        return twin.now

    def _update(self, edited: Change) -> None:
        for target, sharding in edited.items():
            # Where the program came without an annotation, removing one takes back an edit.
            is_back = sharding is None and target in self.now and not self._is_annotated(target)
            if sharding is ... or is_back:
                self.now.pop(target, None)
            else:
                self.now[target] = sharding

    def clear(self) -> None:
        """Take back all edits, which is a step that can be taken back too."""
        self.steps.append(({**self.now}, self.are_plain))
        self.now, self.are_plain = {}, True
        self.version += 1

    def undo(self) -> None:
        """Take back the last step.

        Raises:
            IndexError: there is none, or more than :data:`MOST_UNDOS` were taken back.
        """
        before, self.are_plain = self.steps.pop()
        self._update(before)
        self.version += 1

    def copy(self) -> Edits:
        """Edits equal to these, with the same steps, which are changed on their own."""
        twin = Edits(self._is_annotated)
        twin.now, twin.are_plain, twin.version = {**self.now}, self.are_plain, self.version
        twin.steps.extend(self.steps)
        return twin
