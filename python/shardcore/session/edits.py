"""The edits of a session, and how they are undone."""

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
"""The sharding of each edited target; ``None`` where the annotation was removed."""

Change: TypeAlias = "Mapping[Target, TensorSharding | EllipsisType | None]"
"""New shardings as in :data:`Edited`; ``...`` restores the annotation of the original program."""

Step: TypeAlias = "tuple[Change, bool]"
"""The state of the edited targets before an edit, and :attr:`Edits.are_plain`."""


class Edits:
    """The current edits, and the steps to undo them.

    An edit takes time and memory for its own targets only, not for earlier edits.
    """

    def __init__(self, is_annotated: Callable[[Target], bool]) -> None:
        """Start without edits; ``is_annotated`` says whether the original program annotates a
        target."""
        self._is_annotated = is_annotated
        self.now: Edited = {}
        self.are_plain = True
        """Whether each edit is valid on its own, whatever the other edits are."""
        self.version = 0
        """A number that is different after each change."""
        self.steps: deque[Step] = deque(maxlen=MOST_UNDOS)

    def apply(self, edited: Edited, *, are_plain: bool) -> None:
        """Apply the edits ``edited``."""
        # If this is interrupted, undoing still restores the earlier state.
        self.steps.append(
            ({target: self.now.get(target, ...) for target in edited}, self.are_plain)
        )
        self.are_plain = self.are_plain and are_plain
        self._update(edited)
        self.version += 1

    def after(self, edited: Edited) -> Edited:
        """The edits that would be current after ``edited``."""
        twin = Edits(self._is_annotated)
        twin.now = {**self.now}
        twin._update(edited)
        return twin.now

    def _update(self, edited: Change) -> None:
        for target, sharding in edited.items():
            # If the original program has no annotation here, removing one just drops the edit.
            is_back = sharding is None and target in self.now and not self._is_annotated(target)
            if sharding is ... or is_back:
                self.now.pop(target, None)
            else:
                self.now[target] = sharding

    def clear(self) -> None:
        """Drop all edits, as one step that can be undone."""
        self.steps.append(({**self.now}, self.are_plain))
        self.now, self.are_plain = {}, True
        self.version += 1

    def undo(self) -> None:
        """Undo the last step.

        Raises:
            IndexError: there is no step, or more than :data:`MOST_UNDOS` steps were undone.
        """
        before, self.are_plain = self.steps.pop()
        self._update(before)
        self.version += 1

    def copy(self) -> Edits:
        """A copy of these edits with the same steps; it changes independently."""
        twin = Edits(self._is_annotated)
        twin.now, twin.are_plain, twin.version = {**self.now}, self.are_plain, self.version
        twin.steps.extend(self.steps)
        return twin
