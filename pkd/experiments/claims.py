"""Claims: who computes which run of a folder, so that several processes share the work.

A claim is a file `<key>.<n>`; the one with the largest n counts. Creating a file that must not
exist is atomic, so of two processes one wins. Its owner touches it while it lives. A claim is stale
if its owner is a process of this machine that is gone, or if nobody has touched it for a minute;
then the next n may be created. If two processes compute the same run after all, they write the
same bytes.
"""

from __future__ import annotations

import json
import os
import platform
import threading
import time
from collections.abc import Callable
from pathlib import Path

__all__ = ["Claims"]

BEAT_SECONDS = 5.0
STALE_SECONDS = 60.0


class Claims:
    """The claims of this process in one folder; use it as a context."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.held: dict[str, Path] = {}
        self._stop = threading.Event()
        self._beat = threading.Thread(target=self._touch, daemon=True, name="pkd-claims")

    def __enter__(self) -> Claims:
        self.folder.mkdir(parents=True, exist_ok=True)
        self._beat.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._stop.set()
        self._beat.join()
        for key in list(self.held):
            self.release(key)
        _remove_folder(self.folder)

    def take(self, key: str) -> bool:
        """Whether the run is ours to compute now."""
        last = self._find_last(key)
        if last is not None and not _is_stale(last):
            return False
        number = 0 if last is None else int(last.suffix[1:]) + 1
        path = self.folder / f"{key}.{number}"
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with path.open("x", encoding="utf-8") as file:
                json.dump(_identify(os.getpid()), file)
        except FileExistsError:
            return False  # another process was faster
        self.held[key] = path
        return True

    def is_taken(self, key: str) -> bool:
        """Whether somebody computes a run now."""
        last = self._find_last(key)
        return last is not None and not _is_stale(last)

    def release(self, key: str) -> None:
        """Gives a claim back; the old ones go first, so that the last one counts to the end."""
        del self.held[key]
        for path in self._list(key):
            path.unlink(missing_ok=True)

    def sweep(self, key: str, clean: Callable[[str], None]) -> None:
        """Removes the claim of a finished run whose owner is gone, and what it left behind."""
        last = self._find_last(key)
        if last is not None and key not in self.held and _is_stale(last):
            clean(key)
            for path in self._list(key):
                path.unlink(missing_ok=True)

    def _list(self, key: str) -> list[Path]:
        found = [
            path for path in self.folder.glob(f"{_escape(key)}.*") if path.suffix[1:].isdigit()
        ]
        return sorted(found, key=lambda path: int(path.suffix[1:]))

    def _find_last(self, key: str) -> Path | None:
        found = self._list(key)
        return found[-1] if found else None

    def _touch(self) -> None:
        while not self._stop.wait(BEAT_SECONDS):
            for path in list(self.held.values()):
                try:
                    path.touch(exist_ok=True)
                except OSError:  # a full disk must not end the work; the claim may become stale
                    continue


def _is_stale(path: Path) -> bool:
    try:
        age = time.time() - path.stat().st_mtime
        owner = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return False  # its owner has just finished
    except (OSError, ValueError):
        return age > STALE_SECONDS  # still being written, or its owner died in the middle
    if age > STALE_SECONDS:
        return True
    if not isinstance(owner, dict) or owner.get("machine") != _name_machine():
        return False
    return bool(_identify(owner.get("process", -1)) != owner)


def _identify(process: int) -> dict[str, object]:
    """A process by its number and the time at which it started: numbers are used again."""
    try:
        text = Path(f"/proc/{process}/stat").read_text(encoding="utf-8")
        fields = text.rpartition(")")[2].split()
        # A zombie computes nothing any more.
        started = None if fields[0] in "ZX" else fields[19]
    except (OSError, IndexError):
        started = "unknown" if not Path("/proc/self/stat").exists() else None
    return {"machine": _name_machine(), "process": process, "started": started}


def _name_machine() -> str:
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="utf-8").strip()
    except OSError:
        boot = ""
    return f"{platform.node()} {boot}".strip()


def _escape(key: str) -> str:
    import glob

    return glob.escape(key)


def _remove_folder(folder: Path) -> None:
    try:
        folder.rmdir()
    except OSError:  # other processes have claims in it
        return
