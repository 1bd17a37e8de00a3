"""Progress on a terminal for what takes longer than two seconds: the one place that uses tqdm.

`watch` counts the items of a loop, `count` calls to a function, and `working` shows the time of one
long call, which must release the interpreter lock, as the sweeps of both engines do. `wanted`: True
shows it everywhere, False nowhere, and None on a terminal.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sized
from contextlib import closing, contextmanager
from typing import Any, TypeVar

__all__ = ["count", "line", "watch", "working"]

PATIENCE = 2.0  # seconds before anything is shown
PAUSE = 0.5  # seconds between two looks at the clock

Item = TypeVar("Item")


def watch(items: Iterable[Item], what: str, *, wanted: bool | None = None) -> Iterable[Item]:
    """The same items; how many have been done is shown from the third second on.

    >>> list(watch(range(3), "counting"))
    [0, 1, 2]
    """
    return _count(items, what) if _is_shown(wanted) else items


@contextmanager
def count(
    what: str, total: int | None = None, *, wanted: bool | None = None, done: int = 0
) -> Iterator[Callable[..., Any]]:
    """A function that is called after each of `total` pieces, or with a number of them."""
    if not _is_shown(wanted):
        yield lambda more=1: None
        return
    with closing(_Bar(what, total=total, initial=done)) as bar:
        yield bar.add


@contextmanager
def line(*, wanted: bool | None = None) -> Iterator[Callable[[str], None]]:
    """A function that shows a text in the place of the one before."""
    if not _is_shown(wanted):
        yield lambda text: None
        return
    with closing(_Bar("", bar_format="{desc}")) as bar:
        yield bar.say


@contextmanager
def working(what: str) -> Iterator[None]:
    """Shows how long the block has been running."""
    if not _is_shown(None):
        yield
        return
    done = threading.Event()
    with closing(_Bar(what, bar_format="{desc}: {elapsed}", miniters=0)) as bar:

        def tick() -> None:
            while not done.wait(PAUSE):
                bar.add(0)

        thread = threading.Thread(target=tick, daemon=True)
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()


def _is_shown(wanted: bool | None) -> bool:
    return sys.stderr.isatty() if wanted is None else wanted


def _count(items: Iterable[Item], what: str) -> Iterator[Item]:
    total = len(items) if isinstance(items, Sized) else None
    with closing(_Bar(what, total=total)) as bar:
        for item in items:
            yield item
            bar.add()


class _Bar:
    """A bar of tqdm that appears once PATIENCE has passed."""

    def __init__(self, what: str, **options: Any) -> None:
        self.options = {"desc": what, "leave": False, "unit_scale": True, **options}
        self.began, self.done = time.perf_counter(), options.get("initial", 0)
        self.bar: Any = None

    def add(self, more: int = 1) -> None:
        """Says that this many more are done."""
        self.done += more
        elapsed = time.perf_counter() - self.began
        if self.bar is not None:
            self.bar.update(more)
        elif elapsed >= PATIENCE:
            from tqdm import tqdm

            self.bar = tqdm(file=sys.stderr, **self.options)
            self.bar.n, self.bar.start_t = self.done, self.bar.start_t - elapsed
            self.bar.refresh()

    def say(self, text: str) -> None:
        """Shows a text."""
        self.options["desc"] = text
        self.add(0)
        if self.bar is not None:
            self.bar.set_description_str(text)

    def close(self) -> None:
        """Clears the line."""
        if self.bar is not None:
            self.bar.close()
