from __future__ import annotations

import io
import threading

import pytest

from hfreg import progress
from hfreg.progress import Progress


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(progress, "time", made)
    return made


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_file_gets_a_line_now_and_then_and_the_last_one(clock: Clock) -> None:
    stream = io.StringIO()
    shown = Progress("building", 5, stream=stream)
    for seconds, label in ((0.5, "a"), (2.0, "b"), (2.5, "c"), (4.0, "d"), (4.25, "e")):
        clock.now = 100.0 + seconds
        shown.step(label)
    # A line at 2.0 and 4.0 s (at most one in 2 s), and the last one with the time that it took.
    assert stream.getvalue() == "building 2/5  b\nbuilding 4/5  d\nbuilding 5/5 in 4.2 s\n"


def test_short_work_gets_one_line(clock: Clock) -> None:
    stream = io.StringIO()
    shown = Progress("testing", 3, stream=stream)
    for _ in range(3):
        shown.step("x")
    assert stream.getvalue() == "testing 3/3 in 0.0 s\n"


def test_a_terminal_gets_one_line_that_changes(clock: Clock) -> None:
    stream = Terminal()
    shown = Progress("testing", 2, stream=stream)
    shown.step("relu " + "x" * 200)
    shown.step()
    first, second = stream.getvalue().split("\r\x1b[2K")[1:]
    assert first == ("testing 1/2  relu " + "x" * 200)[:110]  # cut, so that it stays one line
    assert second == "testing 2/2 in 0.0 s\n"


@pytest.mark.parametrize(("total", "is_shown"), [(3, False), (0, True)])
def test_hidden_or_empty_work_prints_nothing(total: int, is_shown: bool) -> None:
    stream = Terminal()
    shown = Progress("testing", total, stream=stream, is_shown=is_shown)
    shown.step()
    assert stream.getvalue() == ""


def test_progress_goes_to_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    Progress("testing", 1).step()
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("testing 1/1 in ")


def test_steps_of_several_threads_are_all_counted() -> None:
    stream = Terminal()
    shown = Progress("testing", 400, stream=stream)

    def work() -> None:
        for _ in range(100):
            shown.step()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    lines = stream.getvalue().split("\r\x1b[2K")[1:]
    assert [line.split()[1] for line in lines] == [f"{i}/400" for i in range(1, 401)]
