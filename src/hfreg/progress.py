"""Progress of long work, on standard error: one line that changes on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import sys
import threading
import time
from typing import TextIO

QUIET_S = 2.0
"""Elsewhere than on a terminal, at most one line in this time, and the last one."""


class Progress:
    """Counts steps of a known number. Safe to call from several threads."""

    def __init__(self, title: str, total: int, *, stream: TextIO | None = None, is_shown: bool = True) -> None:
        self._title, self._total, self._done = title, total, 0
        self._stream = stream or sys.stderr
        self._is_shown = is_shown and total > 0
        self._is_terminal = self._stream.isatty()
        self._started = self._printed = time.monotonic()
        self._lock = threading.Lock()

    def step(self, label: str = "") -> None:
        """Count one step that is done."""
        with self._lock:
            self._done += 1
            now = time.monotonic()
            is_last = self._done >= self._total
            if self._is_shown and (self._is_terminal or is_last or now - self._printed >= QUIET_S):
                self._printed = now
                self._print(label, is_last=is_last, seconds=now - self._started)

    def _print(self, label: str, *, is_last: bool, seconds: float) -> None:
        text = f"{self._title} {self._done}/{self._total}"
        text += f" in {seconds:.1f} s" if is_last else f"  {label}"
        if self._is_terminal:
            self._stream.write(f"\r\x1b[2K{text[:110]}" + ("\n" if is_last else ""))
        else:
            self._stream.write(f"{text}\n")
        self._stream.flush()
