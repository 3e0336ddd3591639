from __future__ import annotations

import contextlib
import errno
import os
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hfreg.errors import MachineError
from hfreg.files import TEMPORARY_PREFIX, locked, remove_leftovers, sync_folder, write_atomic


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("sync", [True, False])
@pytest.mark.parametrize("old", [None, b"", b"something longer than the new content"])
def test_a_file_holds_the_new_content_and_nothing_else_is_left(tmp_path: Path, old: bytes | None, sync: bool) -> None:
    path = tmp_path / "file"
    if old is not None:
        path.write_bytes(old)
    write_atomic(path, b"new\0content", sync=sync)
    assert path.read_bytes() == b"new\0content"
    assert names(tmp_path) == ["file"]


@given(st.binary(max_size=5000))
def test_any_content_is_written_as_it_is(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "any-content"
    write_atomic(path, content)
    assert path.read_bytes() == content


@pytest.mark.parametrize("mode", [0o644, 0o600])
def test_a_new_file_has_the_mode_that_was_asked_for(tmp_path: Path, mode: int) -> None:
    before = os.umask(0o022)
    try:
        write_atomic(tmp_path / "file", b"secret", mode=mode)
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == mode


def test_a_symbolic_link_is_replaced_and_not_followed(tmp_path: Path) -> None:
    (tmp_path / "target").write_bytes(b"old")
    (tmp_path / "link").symlink_to("target")
    write_atomic(tmp_path / "link", b"new")
    assert (tmp_path / "target").read_bytes() == b"old"
    assert not (tmp_path / "link").is_symlink()


@pytest.mark.parametrize(
    ("failing", "error", "expected"),
    [
        ("fsync", OSError(errno.ENOSPC, "No space left on device"), MachineError),
        ("fsync", KeyboardInterrupt(), KeyboardInterrupt),
        ("rename", OSError(errno.EACCES, "Permission denied"), MachineError),
    ],
)
def test_a_write_that_fails_leaves_the_old_content_and_no_leftovers(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    failing: str,
    error: BaseException,
    expected: type[BaseException],
) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def fail(*_: object) -> None:
        raise error

    with monkeypatch.context() as patch:
        if failing == "fsync":
            patch.setattr(os, "fsync", fail)
        else:
            patch.setattr(Path, "replace", fail)
        with pytest.raises(expected) as caught:
            write_atomic(path, b"new")
    if isinstance(error, OSError):
        assert str(error.strerror) in str(caught.value)
        assert str(path) in str(caught.value)
    assert path.read_bytes() == b"old"
    assert names(tmp_path) == ["file"]


def test_a_folder_that_is_not_there_is_a_fault_of_the_machine(tmp_path: Path) -> None:
    with pytest.raises(MachineError, match="No such file or directory") as caught:
        write_atomic(tmp_path / "absent" / "file", b"")
    assert caught.value.where == str(tmp_path / "absent" / "file")


def test_a_writer_that_dies_before_the_rename_leaves_the_old_content_and_a_leftover(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    program = (
        "import os, sys, pathlib\n"
        "from hfreg.files import write_atomic\n"
        "pathlib.Path.replace = lambda *_: os.kill(os.getpid(), 9)\n"
        "write_atomic(pathlib.Path(sys.argv[1]), b'new')\n"
    )
    assert subprocess.run([sys.executable, "-c", program, str(path)], check=False).returncode == -9
    assert path.read_bytes() == b"old"
    leftovers = [name for name in names(tmp_path) if name != "file"]
    assert len(leftovers) == 1 and leftovers[0].startswith(TEMPORARY_PREFIX)
    assert remove_leftovers(tmp_path) == 1
    assert names(tmp_path) == ["file"]


def test_leftovers_go_from_all_folders_and_nothing_else_goes(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / f"{TEMPORARY_PREFIX}folder").mkdir()
    for place in (f"{TEMPORARY_PREFIX}1", f"a/{TEMPORARY_PREFIX}2", f"a/b/{TEMPORARY_PREFIX}3"):
        (tmp_path / place).write_bytes(b"half")
    for place in ("a/b/kept", "a/.hidden", "a/tmp-kept"):
        (tmp_path / place).write_bytes(b"whole")
    assert remove_leftovers(tmp_path) == 3
    kept = sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file())
    assert kept == ["a/.hidden", "a/b/kept", "a/tmp-kept"]
    assert remove_leftovers(tmp_path) == 0


def test_a_folder_can_be_made_durable(tmp_path: Path) -> None:
    sync_folder(tmp_path)
    with pytest.raises(NotADirectoryError):
        sync_folder(Path(__file__))


def test_the_lock_names_its_holder_while_it_is_held(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    path.write_text("a longer line that an earlier holder left\n")
    with locked(path, purpose="publishing a@1.0.0"):
        assert path.read_text() == f"process {os.getpid()}: publishing a@1.0.0\n"
        with (
            pytest.raises(MachineError, match=f"still locked after 0 s by process {os.getpid()}: publishing") as caught,
            locked(path, purpose="another", timeout_s=0),
        ):
            pass
    assert caught.value.where == str(path)


def test_the_lock_is_free_again_after_use_and_after_an_error(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with contextlib.suppress(RuntimeError), locked(path, purpose="first"):
        raise RuntimeError
    with locked(path, purpose="second", timeout_s=0):
        assert "second" in path.read_text()


@contextlib.contextmanager
def another_holder(path: Path) -> Iterator[subprocess.Popen[str]]:
    program = (
        "import sys, pathlib\n"
        "from hfreg.files import locked\n"
        "with locked(pathlib.Path(sys.argv[1]), purpose='something long'):\n"
        "    print('held', flush=True)\n"
        "    sys.stdin.read()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "held\n"
            yield process
        finally:
            process.kill()


def test_a_lock_of_another_process_is_waited_for_and_then_blamed(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with another_holder(path) as process:
        started = time.monotonic()
        with (
            pytest.raises(MachineError, match=f"after 0.1 s by process {process.pid}: something long"),
            locked(path, purpose="mine", timeout_s=0.1),
        ):
            pass
        assert time.monotonic() - started >= 0.1


def test_the_lock_goes_with_its_holder(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with another_holder(path) as process:
        process.kill()
        process.wait()
        with locked(path, purpose="mine", timeout_s=0):
            assert "mine" in path.read_text()


def test_a_lock_that_cannot_be_opened_is_a_fault_of_the_machine(tmp_path: Path) -> None:
    # design.md, section 10: a fault of the environment says what is wrong and where, and exits with 3.
    with pytest.raises(MachineError), locked(tmp_path / "absent" / "lock", purpose="mine", timeout_s=0):
        pass
