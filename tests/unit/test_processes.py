"""Real children, small ones: how they end is what is tested."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from hfreg.errors import MachineError, RunError
from hfreg.processes import (
    STDERR_TAIL,
    Exited,
    Killed,
    TimedOut,
    Worker,
    clean_environment,
    python_command,
    run,
)
from hfreg.wire import Message

LONG_S = 20.0
"""A deadline that nothing here should reach."""
SHORT_S = 0.25
"""A deadline that is meant to be reached."""


def python(program: str) -> list[str]:
    """A bare interpreter: no site, no user's settings."""
    return [sys.executable, "-I", "-S", "-c", program]


def is_alive(pid: int) -> bool:
    """Whether a process is there and not merely waiting to be collected."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def wait_until_gone(pid: int) -> bool:
    for _ in range(100):
        if not is_alive(pid):
            return True
        time.sleep(0.02)
    return False


@pytest.mark.parametrize("status", [0, 1, 77, 255])
def test_a_process_that_ends_by_itself_has_its_status_and_output(status: int) -> None:
    program = f"import sys; print('out'); print('  err  ', file=sys.stderr); sys.exit({status})"
    assert run(python(program), timeout_s=LONG_S, env={}) == Exited(status, b"out\n", "err")


def test_standard_input_arrives_and_is_closed() -> None:
    content = bytes(range(256)) * 4096  # more than a pipe holds
    program = "import sys; sys.stdout.buffer.write(sys.stdin.buffer.read()[::-1])"
    assert run(python(program), stdin=content, timeout_s=LONG_S, env={}) == Exited(0, content[::-1], "")


def test_a_process_that_does_not_read_its_input_is_no_problem() -> None:
    assert run(python("pass"), stdin=b"x" * 1_000_000, timeout_s=LONG_S, env={}) == Exited(0, b"", "")


@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGABRT, signal.SIGILL, signal.SIGKILL, signal.SIGTERM])
def test_a_process_that_a_signal_ends_says_which(number: signal.Signals) -> None:
    program = f"import os, sys; print('last words', file=sys.stderr, flush=True); os.kill(os.getpid(), {number:d})"
    ending = run(python(program), timeout_s=LONG_S, env={})
    assert ending == Killed(number, "last words")
    assert str(ending) == f"{number.name} ({signal.strsignal(number)})"


def test_a_real_time_signal_ends_a_process_like_any_other() -> None:
    # Linux has the signals 34 to 64 (signal(7)); Python names only the first and the last of them.
    ending = run(python("import os; os.kill(os.getpid(), 40)"), timeout_s=LONG_S, env={})
    assert ending == Killed(40, "")
    assert str(ending) == f"signal 40 ({signal.strsignal(40)})"


def test_a_process_is_killed_at_its_deadline() -> None:
    started = time.monotonic()
    program = "import sys, time; print('waiting', file=sys.stderr, flush=True); time.sleep(60)"
    assert run(python(program), timeout_s=SHORT_S, env={}) == TimedOut(SHORT_S, "waiting")
    assert SHORT_S <= time.monotonic() - started < 5


def test_a_process_that_ignores_polite_signals_is_killed_at_its_deadline() -> None:
    program = "import signal, time; [signal.signal(n, signal.SIG_IGN) for n in (1, 2, 15)]; time.sleep(60)"
    assert isinstance(run(python(program), timeout_s=SHORT_S, env={}), TimedOut)


def test_what_a_process_started_dies_with_it_at_the_deadline() -> None:
    program = (
        "import subprocess, sys, time\n"
        "child = subprocess.Popen(['sleep', '60'], stdin=-3, stdout=-3, stderr=-3)\n"  # -3: /dev/null
        "print(child.pid, file=sys.stderr, flush=True)\n"
        "time.sleep(60)\n"
    )
    ending = run(python(program), timeout_s=SHORT_S * 2, env={"PATH": os.environ["PATH"]})
    assert isinstance(ending, TimedOut)
    assert wait_until_gone(int(ending.stderr))


def test_the_deadline_holds_for_a_child_that_left_its_session_too() -> None:
    # The grandchild keeps the pipes open; `run` promises to run "to the end, or to the deadline".
    program = (
        "import subprocess, time\n"
        "subprocess.Popen(['sleep', '3'], start_new_session=True)\n"
        "time.sleep(60)\n"
    )  # fmt: skip
    started = time.monotonic()
    ending = run(python(program), timeout_s=SHORT_S, env={"PATH": os.environ["PATH"]})
    assert isinstance(ending, TimedOut)
    assert time.monotonic() - started < 2.0


def test_only_the_end_of_a_long_error_output_is_kept() -> None:
    program = r"import sys; sys.stderr.buffer.write(b'a' * 100000 + b' the end \xff')"
    ending = run(python(program), timeout_s=LONG_S, env={})
    assert ending == Exited(0, b"", "a" * (STDERR_TAIL - 10) + " the end \ufffd")


def test_a_process_gets_the_environment_and_folder_it_is_given_and_nothing_else(tmp_path: Path) -> None:
    program = "import json, os; print(json.dumps([os.getcwd(), dict(os.environ), os.getpid() == os.getsid(0)]))"
    ending = run(python(program), timeout_s=LONG_S, cwd=tmp_path, env={"A": "1", "LC_ALL": "C.UTF-8"})
    assert isinstance(ending, Exited)
    assert json.loads(ending.stdout) == [str(tmp_path), {"A": "1", "LC_ALL": "C.UTF-8"}, True]


def test_a_command_that_is_not_there_is_a_fault_of_the_machine() -> None:
    with pytest.raises(MachineError, match="cannot start no-such-command: No such file or directory"):
        run(["no-such-command"], timeout_s=LONG_S, env={})


def test_a_module_runs_in_this_interpreter_without_the_working_folder(tmp_path: Path) -> None:
    (tmp_path / "json.py").write_text("raise SystemExit('taken from the working folder')")
    ending = run(python_command("json.tool"), stdin=b"[1]", timeout_s=LONG_S, cwd=tmp_path, env={})
    assert isinstance(ending, Exited)
    assert (ending.status, ending.stdout) == (0, b"[\n    1\n]\n")
    assert python_command("a.b", "c", "d")[0] == sys.executable
    assert python_command("a.b", "c", "d")[-4:] == ["-m", "a.b", "c", "d"]


def test_the_clean_environment_keeps_the_search_paths_only(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        monkeypatch.delenv(name)
    for name, value in {
        "PATH": "/bin",
        "LD_LIBRARY_PATH": "/lib",
        "HOME": "/root",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "HFREG_SIGNING_KEY": "/key",
        "OMP_NUM_THREADS": "64",
        "HL_TARGET": "host",
        "PYTHONHASHSEED": "5",
    }.items():
        monkeypatch.setenv(name, value)
    assert clean_environment(EXTRA="x", LC_ALL="C") == {
        "PATH": "/bin",
        "LD_LIBRARY_PATH": "/lib",
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONHASHSEED": "0",
        "LC_ALL": "C",
        "EXTRA": "x",
    }


def limited(limits: str, program: str) -> Exited:
    """Run a program that limits itself first."""
    command = [
        sys.executable,
        "-c",
        f"from hfreg.processes import Limits, apply_limits\napply_limits(Limits({limits}))\n{program}",
    ]
    ending = run(command, timeout_s=LONG_S, env=clean_environment())
    assert isinstance(ending, Exited), ending
    return ending


def test_limits_hold_for_memory_files_and_descriptors(tmp_path: Path) -> None:
    program = (
        "import os, resource\n"
        "try:\n    bytearray(1 << 30); print('memory')\nexcept MemoryError: pass\n"
        f"file = open({str(tmp_path / 'file')!r}, 'wb', 0)\n"
        "try:\n    file.write(b'x' * 100); file.write(b'x'); print('file')\nexcept OSError: pass\n"
        "opened = []\n"
        "try:\n    while True: opened.append(os.open('/dev/null', 0))\nexcept OSError: pass\n"
        "print(len(opened) < 20, resource.getrlimit(resource.RLIMIT_CORE))\n"
    )
    ending = limited("address_space_bytes=512 << 20, file_bytes=100, open_files=20", program)
    assert ending == Exited(0, b"True (0, 0)\n", "")
    assert (tmp_path / "file").stat().st_size == 100


def test_a_limit_can_be_left_out() -> None:
    program = (
        "import resource; print(resource.getrlimit(resource.RLIMIT_FSIZE), resource.getrlimit(resource.RLIMIT_AS))"
    )
    before = limited("address_space_bytes=None, file_bytes=None", program)
    infinity = -1
    assert before.stdout.decode().split() == [f"({infinity},", f"{infinity})", f"({infinity},", f"{infinity})"]


SERVER = """
import os, sys, time
from hfreg.wire import Message
from hfreg.workers import serve

def answer(message):
    body = message.body
    match body.get("do"):
        case "hang": time.sleep(60)
        case "signal": os.kill(os.getpid(), body["number"])
        case "exit": print("going", file=sys.stderr, flush=True); os._exit(body["status"])
        case "print": print("printed", flush=True); os.system("echo from the shell")
        case "junk": os.write(1, b"x"); os.write(4, b"Traceback (most recent call last)" * 9)
        case "close": os.close(4); time.sleep(60)
        case "error": raise ValueError("not today")
    return Message({"pid": os.getpid(), "got": body}, message.arrays)

serve(answer)
"""


@contextlib.contextmanager
def worker() -> Iterator[Worker]:
    with Worker([sys.executable, "-c", SERVER], env=clean_environment()) as process:
        yield process


def ask(process: Worker, timeout_s: float = LONG_S, **body: object) -> object:
    return process.ask(Message(body), timeout_s=timeout_s)


def test_a_worker_answers_one_message_after_another() -> None:
    with worker() as process:
        large = np.arange(3_000_000, dtype=np.uint8).reshape(3, 1_000_000)  # more than a pipe holds, both ways
        answer = process.ask(Message({"n": 1}, {"x": large}), timeout_s=LONG_S)
        assert isinstance(answer, Message)
        assert answer.body["got"] == {"n": 1}
        np.testing.assert_array_equal(answer.arrays["x"], large)
        again = ask(process, n=2)
        assert isinstance(again, Message)
        assert again.body == {"pid": answer.body["pid"], "got": {"n": 2}}


def test_a_worker_ends_when_its_context_is_left() -> None:
    with worker() as process:
        answer = ask(process)
        assert isinstance(answer, Message)
        pid = int(answer.body["pid"])
        assert is_alive(pid)
    assert not is_alive(pid)


def test_what_a_worker_prints_does_not_break_the_protocol() -> None:
    with worker() as process:
        assert isinstance(ask(process, do="print"), Message)
        assert isinstance(ask(process), Message)
        ending = ask(process, do="exit", status=0)
    assert isinstance(ending, Exited)
    assert ending.stderr.splitlines() == ["printed", "from the shell", "going"]


@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGKILL])
def test_a_worker_that_crashes_is_an_ending(number: signal.Signals) -> None:
    with worker() as process:
        assert ask(process, do="signal", number=int(number)) == Killed(number, "")
        assert ask(process) == Killed(number, "")  # and stays one


@pytest.mark.parametrize("status", [0, 3])
def test_a_worker_that_exits_is_an_ending(status: int) -> None:
    with worker() as process:
        assert ask(process, do="exit", status=status) == Exited(status, b"", "going")


def test_a_worker_that_raises_ends_with_its_traceback() -> None:
    with worker() as process:
        ending = ask(process, do="error")
    assert isinstance(ending, Exited)
    assert ending.status == 1
    assert ending.stderr.endswith("ValueError: not today")


def test_a_worker_that_hangs_is_killed_at_the_deadline() -> None:
    with worker() as process:
        answer = ask(process)
        assert isinstance(answer, Message)
        assert ask(process, SHORT_S, do="hang") == TimedOut(SHORT_S, "")
        assert not is_alive(int(answer.body["pid"]))


def test_a_worker_that_stops_talking_is_killed_at_the_deadline() -> None:
    with worker() as process:
        assert isinstance(ask(process), Message)
        ending = ask(process, SHORT_S, do="close")
    # The field says after how many seconds it was killed, as it does everywhere else.
    assert isinstance(ending, TimedOut)
    assert ending.seconds == SHORT_S


def test_a_worker_that_sends_junk_is_a_run_error() -> None:
    with worker() as process, pytest.raises(RunError, match="no message"):
        ask(process, do="junk")


def test_a_worker_that_does_not_read_is_killed_at_the_deadline() -> None:
    message = Message({}, {"x": np.zeros(1_000_000, np.uint8)})
    with Worker(python("import time; time.sleep(60)"), env={}) as process:
        assert process.ask(message, timeout_s=SHORT_S) == TimedOut(SHORT_S, "")


def test_a_worker_that_ends_at_once_is_an_ending() -> None:
    with Worker(python("raise SystemExit(7)"), env={}) as process:
        assert ask(process) == Exited(7, b"", "")


def test_a_worker_that_cannot_be_started_is_a_fault_of_the_machine() -> None:
    with pytest.raises(MachineError, match="cannot start no-such-command"):
        Worker(["no-such-command"], env={})
