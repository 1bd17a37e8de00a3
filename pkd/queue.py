"""`Queue`: a first-in first-out part of y, by which the core compiles large models.

A shift register (orders on their way, commands that take effect late, actions whose result is not
shown yet) gives y as many values as there are sequences of entries, but a move looks at few of
them: at the oldest entry, or at none. So the explorer asks a model with *hidden* entries. Pushing,
popping, clearing and counting need no values and stay symbolic. Whatever reads a hidden entry
raises `Look`, and the explorer asks again, once for each value of that entry. Nothing is promised
by the user, so nothing can be promised wrongly.

A worked example: y is `Queue((3, 1))`, and `step` returns `queue.push(a).pop()` after it has read
`queue.oldest`. The explorer asks with two hidden entries; `oldest` raises `Look(0)`. It asks again
with (v, hidden) for each value v that the first entry can have. Now the answer is a queue of one
hidden entry followed by a: all queues that start with v move alike, and one answer serves them all.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator
from typing import Any

import attrs

from pkd.expect import require, show, whole
from pkd.model import ModelError


class Queue:
    """First in, first out, inside y: y itself, or anywhere in (named) tuples and attrs classes.

    None may stand for it. It is immutable, and equal, hashed, ordered and pickled like the tuple of
    its entries. `push`, `pop`, `clear` and `len` are free. Everything else looks at entries: a
    large model is then asked once for each value of every entry up to the one looked at. Looking at
    `oldest` costs one question per value; looking at everything is the same as having no queue. It
    changes no result, only how large models are compiled.

    >>> pipeline = Queue((2, 0)).push(5)
    >>> pipeline.oldest, len(pipeline), pipeline.pop()
    (2, 3, Queue((0, 5)))
    >>> pipeline == (2, 0, 5)
    True
    """

    __slots__ = ("_entries",)

    _entries: tuple[Any, ...]

    def __init__(self, entries: Iterable[Any] = ()) -> None:
        try:
            self._entries = tuple(entries)
        except TypeError:
            raise ModelError(f"entries is {show(entries)}; expected an iterable") from None

    def push(self, *entries: Any) -> Queue:
        """The queue with more entries at its end."""
        return _make(self._entries + entries)

    def pop(self, count: int = 1) -> Queue:
        """The queue without its oldest `count` entries."""
        if type(count) is not int or count < 0:
            require(whole("count", count))
        return _make(self._entries[count:])

    def clear(self) -> Queue:
        """The empty queue."""
        return Queue()

    @property
    def oldest(self) -> Any:
        """The entry that was pushed first."""
        return self._entries[0]

    def __len__(self) -> int:
        return len(self._entries)

    def __getitem__(self, at: Any) -> Any:
        return self._read()[at]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._read())

    def __contains__(self, entry: Any) -> bool:
        return entry in self._read()

    def __eq__(self, other: object) -> bool:
        if type(self) is type(other) is Queue:
            return self._entries == other._entries
        if isinstance(other, Queue):
            return len(self) == len(other) and self._read() == other._read()
        if isinstance(other, tuple):
            return len(self) == len(other) and self._read() == other
        return NotImplemented

    def __hash__(self) -> int:
        return hash(self._entries)

    def __lt__(self, other: Any) -> bool:
        return bool(self._read() < _entries(other))

    def __le__(self, other: Any) -> bool:
        return bool(self._read() <= _entries(other))

    def __gt__(self, other: Any) -> bool:
        return bool(self._read() > _entries(other))

    def __ge__(self, other: Any) -> bool:
        return bool(self._read() >= _entries(other))

    def __repr__(self) -> str:
        return f"Queue({self._read()!r})"

    def __reduce__(self) -> tuple[type[Queue], tuple[tuple[Any, ...]]]:
        return Queue, (self._read(),)

    def _read(self) -> tuple[Any, ...]:
        """All entries."""
        return self._entries


def _make(entries: tuple[Any, ...]) -> Queue:
    """A queue of a tuple, without a copy."""
    queue = Queue.__new__(Queue)
    queue._entries = entries
    return queue


def _entries(other: Any) -> Any:
    return other._read() if isinstance(other, Queue) else other


class Look(BaseException):
    """A hidden entry was read. Not an Exception: a user's `except Exception` must let it pass."""


@attrs.define
class Veil:
    """Belongs to one explorer: whether the present question has read a hidden entry.

    The flag catches what a bare `except:` in a model would swallow.
    """

    looked: bool = False

    def look(self) -> Look:
        """Notes that a hidden entry was read."""
        self.looked = True
        return Look()


class _HiddenQueue(Queue):
    """front, then `hidden` entries without values, then back.

    dropped: hidden entries that were popped unread.
    """

    __slots__ = ("back", "dropped", "front", "hidden", "veil")

    def __init__(
        self,
        front: tuple[Any, ...],
        hidden: int,
        back: tuple[Any, ...],
        veil: Veil,
        dropped: int = 0,
    ) -> None:
        self._entries = ()
        self.front, self.hidden, self.back = front, hidden, back
        self.veil, self.dropped = veil, dropped

    def push(self, *entries: Any) -> Queue:
        return _HiddenQueue(self.front, self.hidden, self.back + entries, self.veil, self.dropped)

    def pop(self, count: int = 1) -> Queue:
        if not isinstance(count, int) or count < 0:
            raise self.veil.look()
        front = self.front[count:]
        count -= len(self.front) - len(front)
        dropped = min(count, self.hidden)
        if dropped == self.hidden:
            return Queue(front + self.back[count - dropped :])
        return _HiddenQueue(
            front, self.hidden - dropped, self.back, self.veil, self.dropped + dropped
        )

    @property
    def oldest(self) -> Any:
        return self[0]

    def __hash__(self) -> int:
        raise self.veil.look()

    def __len__(self) -> int:
        return len(self.front) + self.hidden + len(self.back)

    def __getitem__(self, at: Any) -> Any:
        if isinstance(at, int):
            place = at + len(self) if at < 0 else at
            if 0 <= place < len(self.front):
                return self.front[place]
            if len(self) - len(self.back) <= place < len(self):
                return self.back[place - len(self) + len(self.back)]
            if place < 0 or place >= len(self):
                raise IndexError("queue index out of range")
        raise self.veil.look()

    def _read(self) -> tuple[Any, ...]:
        raise self.veil.look()


def hide(front: tuple[Any, ...], hidden: int, veil: Veil) -> Queue:
    """A queue with `hidden` entries of which only the length is known, after those of `front`."""
    return _HiddenQueue(front, hidden, (), veil) if hidden else Queue(front)


def parts(queue: Queue) -> tuple[tuple[Any, ...], int, tuple[Any, ...], int]:
    """(front, hidden entries, back, hidden entries popped unread) of a queue from a model."""
    if isinstance(queue, _HiddenQueue):
        return queue.front, queue.hidden, queue.back, queue.dropped
    return queue._entries, 0, (), 0


class _Hole:
    def __repr__(self) -> str:
        return "queue"


CACHED_HASH = "_attrs_cached_hash"  # where attrs keeps the hash of a class with cache_hash=True
HOLE = _Hole()  # what a block has in place of its queue


def find_queue(y: Any) -> tuple[Any, ...] | None:
    """Where the outermost queue of y is; () where y is one; None without any."""
    if isinstance(y, Queue):
        return ()
    if _is_plain_tuple(y):  # the usual case, and the explorer asks it of every branch
        for step, child in enumerate(y):
            if isinstance(child, Queue):
                return (step,)
    level: list[tuple[tuple[Any, ...], Any]] = [((), y)]
    while level:
        deeper = []
        for path, value in level:
            if _is_plain_tuple(value):
                children: Iterable[tuple[Any, Any]] = enumerate(value)
            elif attrs.has(type(value)):
                children = [(a.name, getattr(value, a.name)) for a in attrs.fields(type(value))]
            else:
                continue
            for step, child in children:
                if isinstance(child, Queue):
                    return (*path, step)
                if isinstance(child, tuple) or attrs.has(type(child)):
                    deeper.append(((*path, step), child))
        level = deeper
    return None


def _is_plain_tuple(value: Any) -> bool:
    """A tuple or a named tuple: other subclasses may hold more than their entries."""
    return type(value) is tuple or (isinstance(value, tuple) and hasattr(value, "_fields"))


def get_part(y: Any, path: tuple[Any, ...]) -> Any:
    """The part of y at a path."""
    for step in path:
        y = y[step] if isinstance(y, tuple) else getattr(y, step)
    return y


def replace_part(y: Any, path: tuple[Any, ...], value: Any) -> Any:
    """y with another value at a path."""
    if not path:
        return value
    step, rest = path[0], path[1:]
    if not isinstance(y, tuple):
        # Not attrs.evolve: validators and converters of the class must not see a hole.
        other = copy.copy(y)
        object.__setattr__(other, step, replace_part(getattr(y, step), rest, value))
        if hasattr(other, CACHED_HASH):
            object.__setattr__(other, CACHED_HASH, None)
        return other
    new = replace_part(y[step], rest, value) if rest else value
    make = getattr(y, "_make", tuple)  # a named tuple stays one
    return make((*y[:step], new, *y[step + 1 :]))
