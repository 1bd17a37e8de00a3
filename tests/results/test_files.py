"""Files are written whole or not at all; every damaged or hostile file is one ModelError."""

from __future__ import annotations

import contextlib
import csv
import errno
import io
import json
import os
import threading
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pkd.cli import main
from pkd.files import atomic as files
from pkd.files.atomic import read_arrays, read_npz, replacing, write_csv, write_npz, write_text
from pkd.model import ModelError
from pkd.tables.tabular import TabularMDP


class Stopped(BaseException):
    """Somebody pressed Ctrl-C."""


def stop_after_half(path: Path) -> None:
    with replacing(path) as file:
        file.write(b"ne")
        raise Stopped


def test_a_file_that_cannot_be_finished_leaves_the_old_one_and_nothing_else(tmp_path: Path) -> None:
    write_text(tmp_path / "page.html", "old")
    with pytest.raises(Stopped):
        stop_after_half(tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["page.html"]


@pytest.mark.parametrize("words", [(errno.ENOSPC, "No space left on device"), ("full",)])
def test_a_full_disk_names_the_file(
    words: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(_: int) -> None:
        raise OSError(*words)

    monkeypatch.setattr("os.fsync", refuse)
    path = tmp_path / "run.npz"
    with pytest.raises(OSError, match=r"'.*run\.npz'"):
        write_npz(path, {}, {})
    learn = ["learn", "two_state_chain", "--episodes", "3", "--quiet"]
    assert main([*learn, "--save", str(path)]) == 2
    assert capsys.readouterr().err == f"pkd: error: {path}: {words[-1]}\n"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "write",
    [
        lambda path, bad: write_csv(path, ["a"], ([cell] for cell in bad())),
        lambda path, bad: write_npz(path, {}, {"x": object()}),
    ],
)
def test_every_writer_leaves_the_old_file_when_it_fails(
    tmp_path: Path, write: Callable[..., None]
) -> None:
    def bad() -> list[object]:
        raise TypeError

    (tmp_path / "file").write_text("old")
    with pytest.raises(TypeError):
        write(tmp_path / "file", bad)
    assert (tmp_path / "file").read_text() == "old"


def read_pipe(pipe: Path, write: Callable[[], object]) -> bytes:
    """What arrives in a pipe that is written to."""
    found: list[bytes] = []
    reader = threading.Thread(target=lambda: found.append(pipe.read_bytes()), daemon=True)
    reader.start()
    write()
    reader.join(20)
    return found[0]


@pytest.mark.skipif(os.name == "nt", reason="no named pipes")
def test_a_pipe_is_written_to_and_not_replaced(tmp_path: Path) -> None:
    """A file in the place of /dev/null would break the machine of an administrator."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    text = read_pipe(pipe, lambda: main(["plan", "two_state_chain", "--csv", str(pipe)]))
    assert text.startswith(b"step,until,x,action")
    assert pipe.is_fifo()
    with zipfile.ZipFile(io.BytesIO(read_pipe(pipe, lambda: write_npz(pipe, {}, {})))) as archive:
        assert archive.namelist() == ["meta.npy"]


def test_an_error_of_the_system_names_the_file_that_was_asked_for(tmp_path: Path) -> None:
    path = tmp_path / ("a" * 240)  # the file beside it has a longer name than the system allows
    with pytest.raises(OSError, match="too long") as caught:
        write_text(path, "text")
    assert caught.value.filename == str(path)


@pytest.mark.parametrize(
    ("cell", "written"),
    [
        ("=1+1", "'=1+1"),
        ("+cmd", "'+cmd"),
        ("-x", "'-x"),
        ("@SUM(A1)", "'@SUM(A1)"),
        ("-1.5", "-1.5"),  # a number stays a number
        ("+2e3", "+2e3"),
        (-1.5, "-1.5"),
        ("a=b", "a=b"),
        ("", ""),
    ],
)
def test_a_label_that_a_spreadsheet_would_run_is_neutralised(
    tmp_path: Path, cell: object, written: str
) -> None:
    write_csv(tmp_path / "t.csv", ["label", "=header"], [[cell, 0.1]])
    with (tmp_path / "t.csv").open(newline="", encoding="utf-8") as file:
        assert list(csv.reader(file)) == [["label", "'=header"], [written, "0.1"]]


def test_arrays_and_json_come_back(tmp_path: Path) -> None:
    arrays = {"a": np.arange(6.0).reshape(2, 3), "b": np.array(["x", "yz"]), "c": np.zeros((0, 2))}
    write_npz(tmp_path / "f.npz", arrays, {"k": [1, None]})
    found, meta = read_npz(tmp_path / "f.npz")
    assert meta == {"k": [1, None]}
    assert {name: part.tolist() for name, part in found.items()} == {
        name: part.tolist() for name, part in arrays.items()
    }


def pack(path: Path, members: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> None:
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, content in members.items():
            archive.writestr(name, content)


def array(values: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.save(file, values)
    return file.getvalue()


def meta(text: str) -> bytes:
    return array(np.array(text))


def header(shape: tuple[int, ...], dtype: str = "<f8") -> bytes:
    """An array file that promises a shape and has no content."""
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        file, {"descr": dtype, "fortran_order": False, "shape": shape}
    )
    return file.getvalue()


DAMAGED: dict[str, tuple[dict[str, bytes], str]] = {
    "terabytes": ({"a.npy": header((2**37,))}, "the array 'a' has 0 bytes where its header says 1"),
    "negative": ({"a.npy": header((-1, 8)) + b"x" * 64}, "the array 'a' has 64 bytes"),
    "objects": ({"a.npy": header((1,), "|O") + b"x" * 8}, "the array 'a' holds object"),
    "no array": ({"a.txt": b"hello"}, "it holds 'a.txt', which is no array"),
    "no header": ({"a.npy": b"hello there, hello"}, "magic"),
    "nested": ({"meta.npy": meta("[" * 100_000)}, "its description is nested too deeply"),
    "half JSON": ({"meta.npy": meta('{"a": ')}, "Expecting value"),
    "a list": ({"meta.npy": meta("[1]")}, "'meta' is no JSON object"),
    "a number too long": ({"meta.npy": meta("1" * 5000)}, "Exceeds the limit"),
}


@pytest.mark.parametrize("kind", DAMAGED)
def test_a_hostile_file_is_one_error_that_names_it(tmp_path: Path, kind: str) -> None:
    members, reason = DAMAGED[kind]
    pack(tmp_path / "bad.npz", members)
    with pytest.raises(ModelError) as error:
        read_npz(tmp_path / "bad.npz")
    assert str(error.value).startswith(f"{tmp_path / 'bad.npz'} is not a file that pkd wrote: ")
    assert reason in str(error.value)


def test_a_file_without_description_says_what_it_has(tmp_path: Path) -> None:
    pack(tmp_path / "noh.npz", {"P.npy": array(np.ones(2)), "r.npy": array(np.ones(2))})
    with pytest.raises(
        ModelError, match=r"it has no description of its content \('meta'\), only P"
    ):
        read_npz(tmp_path / "noh.npz")


def test_a_large_claim_is_refused_before_anything_is_inflated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pack(tmp_path / "bomb.npz", {"a.npy": array(np.zeros(10_000))})
    monkeypatch.setattr(files, "memory", lambda: 100_000)
    monkeypatch.setattr(zipfile.ZipFile, "open", lambda *_: pytest.fail("it was inflated"))
    with pytest.raises(
        ModelError, match=r"it claims 80,128 bytes; this machine reads 50,000 at most"
    ):
        read_arrays(tmp_path / "bomb.npz")


def test_a_claim_that_deflate_cannot_hold_is_refused(tmp_path: Path) -> None:
    """The directory of the archive is forged: a gigabyte out of a hundred bytes."""
    pack(tmp_path / "bomb.npz", {"a.npy": array(np.zeros(4))})
    content = bytearray((tmp_path / "bomb.npz").read_bytes())
    directory = content.index(b"PK\x01\x02")
    content[directory + 24 : directory + 28] = (2**30).to_bytes(4, "little")
    (tmp_path / "bomb.npz").write_bytes(content)
    with pytest.raises(
        ModelError, match=r"it claims 1,073,741,824 bytes, which its .* cannot hold"
    ):
        read_arrays(tmp_path / "bomb.npz")


@pytest.mark.parametrize("readable", [read_npz, read_arrays, TabularMDP.from_npz])
@given(data=st.data())
@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_a_damaged_file_is_read_or_refused_and_nothing_else(
    tmp_path: Path, readable: Callable[[Path], object], data: st.DataObject
) -> None:
    """Bytes of a good file are changed, cut off or put in: an answer or a ModelError."""
    path = tmp_path / "table.npz"
    TabularMDP([[[0.5, 0.5]], [[0.0, 1.0]]], [[0.0], [1.0]], 3).save_npz(path)
    content = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(content) - 1))
        match data.draw(st.sampled_from(["change", "cut", "insert"])):
            case "change":
                content[place] = data.draw(st.integers(0, 255))
            case "cut":
                del content[place : place + data.draw(st.integers(1, 50))]
            case _:
                content[place:place] = data.draw(st.binary(min_size=1, max_size=20))
        if not content:
            break
    path.write_bytes(content)
    with contextlib.suppress(ModelError):
        readable(path)


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="is not a file that pkd wrote"):
        read_npz(tmp_path)


def test_the_description_is_json(tmp_path: Path) -> None:
    """So that other programs can read it."""
    write_npz(tmp_path / "f.npz", {}, {"a": [1.5, "x"]})
    with np.load(tmp_path / "f.npz") as file:
        assert json.loads(str(file["meta"])) == {"a": [1.5, "x"]}
